//! Pauses the controllers while upstream OLM runs: it may be installed, or scaled up again, while they are running.
//!
//! One watch with a label selector, which costs nothing while nothing changes. Other requests are sent only when a Deployment with the name
//! and labels of upstream OLM changes, at most every [`PAUSE`]: tenants can create such Deployments, which do not count.

use std::collections::BTreeMap;
use std::time::Duration;

use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::{self, transfer};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use super::api::{Api, ListQuery, Resource, WatchEvent};
use super::error::Error;
use super::installed::UPSTREAM;
use super::lease::Pause;
use super::request_error::RequestError;
use super::supervise::supervised;
use super::upstream::{running, wait_until_stopped};
use super::watcher::{Step, Watcher};

/// The least time between two checks whether Deployments belong to upstream OLM.
const PAUSE: Duration = Duration::from_secs(5);

/// Begins a pause when upstream OLM starts, and ends it when none of its pods runs, until the future is dropped.
pub(crate) async fn pause_while_running(api: Api, pauses: watch::Sender<Pause>) {
    let begin = || {
        let (api, pauses) = (api.clone(), pauses.clone());
        async move {
            Guard::new(api, pauses).run().await;
            Ok::<(), Error>(())
        }
    };
    // A panic is logged.
    supervised(begin, |_| ()).await;
}

/// Returns the reason of a pause.
pub(crate) fn why(running: &[Value]) -> String {
    let names: Vec<String> = running.iter().map(|deployment| ObjectRef::from_object(deployment).to_string()).collect();
    format!("upstream OLM is running: {}", names.join(", "))
}

struct Guard {
    api: Api,
    watcher: Watcher,
    pauses: watch::Sender<Pause>,
    /// The earliest time of the next check.
    next: Instant,
    /// The failure that was logged last.
    logged: String,
}

impl Guard {
    fn new(api: Api, pauses: watch::Sender<Pause>) -> Self {
        let query = ListQuery::all(&Resource::from(&kinds::DEPLOYMENT)).labelled(UPSTREAM);
        let watcher = Watcher::new(api.clone(), query);
        Self { api, watcher, pauses, next: Instant::now(), logged: String::new() }
    }

    async fn run(&mut self) {
        loop {
            let mut known = BTreeMap::new();
            if self.pauses.borrow().why().is_none() {
                let found = self.check_after(|step| changes(step).any(may_count), |found| !found.is_empty()).await;
                self.pause(found, &mut known);
            }
            // Its Deployments may have been started before the pods of an earlier stop have ended.
            loop {
                let found = self.check().await;
                if found.is_empty() {
                    break;
                }
                self.pause(found, &mut known);
                // A list may lack a Deployment whose deletion was not observed.
                let may_end = |step: &Step| matches!(step, Step::Page(_)) || changes(step).next().is_some();
                self.check_after(may_end, <[Value]>::is_empty).await;
            }
            for deployment in known.values() {
                self.until_stopped(deployment).await;
            }
            if self.check().await.is_empty() {
                self.pauses.send_modify(Pause::end);
            }
        }
    }

    /// Begins a pause because of these Deployments, and adds them to the known ones.
    fn pause(&self, found: Vec<Value>, known: &mut BTreeMap<ObjectRef, Value>) {
        self.pauses.send_modify(|pause| pause.begin(why(&found)));
        known.extend(found.into_iter().map(|deployment| (ObjectRef::from_object(&deployment), deployment)));
    }

    /// Returns the running Deployments of upstream OLM as soon as `is_so` holds for them. They are checked after relevant changes.
    async fn check_after(
        &mut self,
        is_relevant: impl Fn(&Step) -> bool,
        is_so: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        loop {
            let step = self.watcher.next().await;
            if let Step::Failed(refusal) = &step {
                let error = RequestError::new("watch", "deployments.apps", "", refusal.clone());
                self.log("cannot notice that upstream OLM is started", &error);
            }
            if is_relevant(&step) {
                let found = self.check().await;
                if is_so(&found) {
                    return found;
                }
            }
        }
    }

    /// Returns the running Deployments of upstream OLM, after a pause since the last check.
    async fn check(&mut self) -> Vec<Value> {
        loop {
            tokio::time::sleep_until(self.next).await;
            let found = running(&self.api).await;
            self.next = Instant::now() + PAUSE;
            match found {
                Ok(found) => return found,
                Err(error) => self.log("cannot notice whether upstream OLM is running", &error),
            }
        }
    }

    /// Waits until no pod of a Deployment runs. Without permission to read pods they are assumed to have ended.
    async fn until_stopped(&mut self, deployment: &Value) {
        loop {
            match wait_until_stopped(&self.api, deployment, |_| ()).await {
                Ok(()) => return,
                Err(error) => {
                    self.log("cannot notice whether pods of upstream OLM have ended", &error);
                    if error.status.is_forbidden() {
                        return;
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Logs a refusal once. That the API server does not respond is reported by the watches of the controllers.
    fn log(&mut self, what: &str, error: &RequestError) {
        let failure = format!("{what}: {error}");
        if error.status.code != 0 && failure != self.logged {
            warn!("{failure}");
            self.logged = failure;
        }
    }
}

/// Returns the Deployments that a step adds or changes.
fn changes(step: &Step) -> impl Iterator<Item = &Value> {
    let (page, event) = match step {
        Step::Page(page) => (&page.objects[..], None),
        Step::Event(WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) => {
            (&[][..], Some(object))
        }
        _ => (&[][..], None),
    };
    page.iter().chain(event)
}

/// Returns whether a Deployment may be one of upstream OLM that runs.
fn may_count(deployment: &Value) -> bool {
    distribution::UPSTREAM.contains(&object::name(deployment)) && transfer::is_running(deployment)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;

    /// A server with these Deployments, or one that refuses to list them, and the requests that it gets.
    fn server(deployments: Option<Value>) -> (Api, Arc<Mutex<Vec<String>>>) {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = asked.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let uri = request.uri().to_string();
            let path = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            log.lock().unwrap().push(path.clone() + if uri.contains("watch=") { "?watch" } else { "" });
            let items = match (&deployments, path.as_str()) {
                (Some(deployments), "deployments") => Some(deployments.clone()),
                (None, "deployments") => None,
                _ => Some(json!([])),
            };
            let (code, body) = match items {
                None => (
                    403,
                    json!({ "kind": "Status", "code": 403, "reason": "Forbidden", "message": "no" }).to_string().into(),
                ),
                Some(_) if uri.contains("watch=") => {
                    let silence = futures::stream::pending::<Result<bytes::Bytes, Infallible>>();
                    (200, axum::body::Body::from_stream(silence))
                }
                Some(items) => {
                    (200, json!({ "metadata": { "resourceVersion": "9" }, "items": items }).to_string().into())
                }
            };
            let answer = http::Response::builder().status(code).body(body).unwrap();
            async move { Ok::<_, Infallible>(answer) }
        });
        (Api::new(kube::Client::new(service, "default")), asked)
    }

    fn deployment(namespace: &str, replicas: u32) -> Value {
        let labels = json!({ "app": "olm-operator" });
        json!({
            "metadata": { "name": "olm-operator", "namespace": namespace, "labels": labels, "resourceVersion": "1" },
            "spec": { "replicas": replicas, "selector": { "matchLabels": labels } },
        })
    }

    /// Returns the reason of the pause after a moment, and the requests.
    async fn paused(deployments: Option<Value>) -> (Option<String>, Vec<String>) {
        let (api, asked) = server(deployments);
        let pauses = watch::Sender::new(Pause::default());
        let mut seen = pauses.subscribe();
        let guard = pause_while_running(api, pauses);
        let moment = Duration::from_millis(300);
        let found = tokio::select! {
            () = guard => None,
            pause = seen.wait_for(|pause| pause.why().is_some()) => pause.unwrap().why().map(str::to_owned),
            () = tokio::time::sleep(moment) => None,
        };
        let asked = asked.lock().unwrap().clone();
        (found, asked)
    }

    #[tokio::test]
    async fn only_a_deployment_with_permissions_of_olm_begins_a_pause() {
        let (why, asked) = paused(Some(json!([deployment("olm", 1)]))).await;
        assert_eq!(why.as_deref(), Some("upstream OLM is running: Deployment/olm/olm-operator"), "{asked:?}");
        // A tenant's Deployment costs a check; nothing else costs anything.
        let (why, asked) = paused(Some(json!([deployment("aaa", 1)]))).await;
        assert_eq!(
            (why, asked),
            (
                None,
                ["deployments", "deployments", "clusterrolebindings", "deployments?watch"].map(str::to_owned).to_vec()
            )
        );
        for idle in [json!([]), json!([deployment("olm", 0)])] {
            let (why, asked) = paused(Some(idle)).await;
            assert_eq!((why, asked), (None, ["deployments", "deployments?watch"].map(str::to_owned).to_vec()));
        }
    }

    #[tokio::test]
    async fn without_permission_the_controllers_go_on() {
        let (why, asked) = paused(None).await;
        assert_eq!((why, asked), (None, vec!["deployments".to_owned()]));
    }
}
