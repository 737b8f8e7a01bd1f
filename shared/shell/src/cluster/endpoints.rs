//! The pods behind the Service of a catalog. After they were replaced, a connection leads nowhere, and the network may not report it for a
//! long time.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::{kinds, object};
use serde_json::Value;

use super::api::{Api, ListQuery, Resource, WatchEvent};
use super::watcher::{Step, Watcher};

/// Watches the pods behind the Service at an address.
pub(super) struct Watch {
    /// `None`: the address does not belong to a Service, or reading EndpointSlices is forbidden.
    watcher: Option<Watcher>,
    address: String,
    backends: Backends,
}

impl Watch {
    pub(super) fn new(cluster: Api, address: &str) -> Self {
        let watcher = service(address).map(|(namespace, service, _)| {
            let resource = Resource::from(&kinds::ENDPOINT_SLICE);
            let labels = format!("kubernetes.io/service-name={service}");
            Watcher::new(cluster, ListQuery::all(&resource).within(namespace).labelled(&labels))
        });
        Self { watcher, address: address.to_owned(), backends: Backends::default() }
    }

    /// Resolves when the pods were replaced; never if that cannot be determined.
    pub(super) async fn replaced(&mut self) {
        while let Some(watcher) = &mut self.watcher {
            match watcher.next().await {
                Step::Failed(refusal) if matches!(refusal.code, 401 | 403) => {
                    tracing::debug!(self.address, "not watching the EndpointSlices of the Service: {refusal}");
                    self.watcher = None;
                }
                step => {
                    if self.backends.take(step) {
                        return;
                    }
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

/// Returns namespace, name and port of the Service of an address inside a cluster.
pub(crate) fn service(address: &str) -> Option<(&str, &str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    let mut parts = host.split('.');
    let (service, namespace) = (parts.next()?, parts.next()?);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    (!is_address && matches!(parts.next(), None | Some("svc"))).then_some((namespace, service, port))
}

/// The ready pods behind a Service.
#[derive(Default)]
struct Backends {
    /// The ready pods, by EndpointSlice.
    ready: BTreeMap<String, BTreeSet<String>>,
    /// The pages of an incomplete list.
    listing: BTreeMap<String, BTreeSet<String>>,
    /// The pods that a connection may lead to: the last non-empty set. `None`: nothing was listed yet.
    serving: Option<BTreeSet<String>>,
}

impl Backends {
    /// Processes an observation. Returns whether a pod was replaced that a connection may lead to.
    fn take(&mut self, step: Step) -> bool {
        let read = |slice: &Value| (object::name(slice).to_owned(), ready_in(slice));
        match step {
            Step::Page(page) => {
                self.listing.extend(page.objects.iter().map(read));
                if !page.next.is_empty() {
                    return false;
                }
                self.ready = std::mem::take(&mut self.listing);
            }
            Step::Event(WatchEvent::Added(slice) | WatchEvent::Modified(slice)) => self.ready.extend([read(&slice)]),
            Step::Event(WatchEvent::Deleted(slice)) => drop(self.ready.remove(object::name(&slice))),
            Step::Event(_) | Step::Watching => return false,
            Step::Failed(_) => {
                self.listing.clear();
                return false;
            }
        }
        self.compare()
    }

    fn compare(&mut self) -> bool {
        let ready: BTreeSet<String> = self.ready.values().flatten().cloned().collect();
        match &mut self.serving {
            None => {
                self.serving = Some(ready);
                false
            }
            // A pod that is temporarily not ready is not replaced.
            Some(_) if ready.is_empty() => false,
            Some(serving) => {
                let replaced = serving.is_empty() || !serving.is_subset(&ready);
                *serving = ready;
                replaced
            }
        }
    }
}

/// Returns the UIDs of the ready pods of an EndpointSlice; the addresses of endpoints without pods.
fn ready_in(slice: &Value) -> BTreeSet<String> {
    let endpoints = object::list(slice, &["endpoints"]).iter();
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    ready
        .flat_map(|endpoint| match object::text(endpoint, &["targetRef", "uid"]) {
            "" => object::list(endpoint, &["addresses"]).iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            uid => vec![uid.to_owned()],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::api::Page;
    use super::*;

    fn slice(name: &str, pods: &[(&str, bool)]) -> Value {
        let endpoint = |(uid, ready): &(&str, bool)| json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready }, "targetRef": { "kind": "Pod", "uid": uid } });
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": { "name": name, "namespace": "olm" },
            "addressType": "IPv4", "endpoints": pods.iter().map(endpoint).collect::<Vec<_>>(),
        })
    }

    fn page(slices: Vec<Value>) -> Step {
        let (unreadable, resource_version, next) = (Vec::new(), String::new(), String::new());
        Step::Page(Page { objects: slices, unreadable, resource_version, next })
    }

    /// Returns for each step whether it reports a replacement.
    fn reported(steps: Vec<Step>) -> Vec<bool> {
        let mut backends = Backends::default();
        steps.into_iter().map(|step| backends.take(step)).collect()
    }

    #[test]
    fn a_replaced_pod_is_reported() {
        let one = |pods: &[(&str, bool)]| Step::Event(WatchEvent::Modified(slice("a", pods)));
        let listed = |pods: &[(&str, bool)]| vec![page(vec![slice("a", pods)]), Step::Watching];
        let after = |pods, rest: Vec<Step>| {
            let mut events = listed(pods);
            events.extend(rest);
            let reported = reported(events);
            assert_eq!(reported[..2], [false; 2], "the first list is not a replacement");
            reported[2..].to_vec()
        };
        assert_eq!(after(&[("old", true)], vec![one(&[("old", false)]), one(&[("new", true)])]), [false, true]);
        assert_eq!(after(&[("old", true)], vec![one(&[("old", false)]), one(&[("old", true)])]), [false, false]);
        // The new pod is ready before the old one is removed.
        let both = [("old", true), ("new", true)];
        assert_eq!(after(&[("old", true)], vec![one(&both), one(&[("new", true)])]), [false, true]);
        // There was no pod before.
        assert_eq!(after(&[], vec![one(&[("new", false)]), one(&[("new", true)])]), [false, true]);
        // The slice is deleted with the Service.
        assert_eq!(
            after(&[("old", true)], vec![Step::Event(WatchEvent::Deleted(slice("a", &[]))), one(&[("new", true)])]),
            [false, true]
        );
        // A new list contains the changes since the last one.
        assert_eq!(after(&[("old", true)], listed(&[("old", true)])), [false; 2]);
        assert_eq!(after(&[("old", true)], listed(&[("new", true)])), [true, false]);
    }

    #[test]
    fn addresses_without_pods_count_as_well() {
        let endpoints = json!({ "endpoints": [
            { "addresses": ["10.0.0.1", "10.0.0.2"] }, { "addresses": ["10.0.0.3"], "conditions": { "ready": false } },
        ] });
        assert_eq!(ready_in(&endpoints), ["10.0.0.1", "10.0.0.2"].map(str::to_owned).into());
        assert_eq!(ready_in(&json!({ "endpoints": null })), BTreeSet::new());
    }

    #[tokio::test]
    async fn a_forbidden_watch_is_not_retried() {
        let api = |code: u16| {
            let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
                let refusal = json!({ "kind": "Status", "code": code, "message": "no" }).to_string();
                let answer = http::Response::builder().status(code).body(axum::body::Body::from(refusal)).unwrap();
                async move { Ok::<_, std::convert::Infallible>(answer) }
            });
            Api::new(kube::Client::new(service, "default"))
        };
        for (code, watches) in [(403, false), (503, true)] {
            let mut watch = Watch::new(api(code), "main.olm.svc:50051");
            let replaced = tokio::time::timeout(std::time::Duration::from_millis(200), watch.replaced()).await;
            assert!(replaced.is_err());
            assert_eq!(watch.watcher.is_some(), watches, "other errors are retried");
        }
    }

    #[test]
    fn addresses_of_services_are_recognized() {
        assert_eq!(service("market.olm.svc:50051"), Some(("olm", "market", "50051")));
        assert_eq!(service("market.olm.svc.cluster.local:1"), Some(("olm", "market", "1")));
        assert_eq!(service("market.olm:1"), Some(("olm", "market", "1")));
        for other in ["market:1", "market.example.com:1", "market.olm.svc", "127.0.0.1:50051", "[::1]:50051"] {
            assert_eq!(service(other), None, "{other}");
        }
    }
}
