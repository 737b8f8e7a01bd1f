//! Which pods stand behind the Service of a catalog: when they are replaced, a connection leads nowhere, and nothing else may say so for
//! as long as the network keeps it.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::{kinds, object};
use serde_json::Value;

use super::api::{Api, ListQuery, Resource, WatchEvent};
use super::watcher::{Step, Watcher};

/// Watches the pods behind the Service at an address.
pub(super) struct Watch {
    /// `None`: the address is not of a Service, or EndpointSlices may not be read.
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

    /// Resolves when the pods were replaced; never where that cannot be known.
    pub(super) async fn replaced(&mut self) {
        while let Some(watcher) = &mut self.watcher {
            match watcher.next().await {
                Step::Failed(refusal) if matches!(refusal.code, 401 | 403) => {
                    tracing::debug!(self.address, "what stands behind the Service is not followed: {refusal}");
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

/// Namespace, name and port of the Service that an address in a cluster is of.
pub(crate) fn service(address: &str) -> Option<(&str, &str, &str)> {
    let (host, port) = address.rsplit_once(':')?;
    let mut parts = host.split('.');
    let (service, namespace) = (parts.next()?, parts.next()?);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    (!is_address && matches!(parts.next(), None | Some("svc"))).then_some((namespace, service, port))
}

/// The pods behind a Service that are ready.
#[derive(Default)]
struct Backends {
    /// By the EndpointSlice that names them.
    ready: BTreeMap<String, BTreeSet<String>>,
    /// The pages of a list so far.
    listing: BTreeMap<String, BTreeSet<String>>,
    /// Those that a connection may be to: the last that there were. `None`: nothing was listed yet.
    serving: Option<BTreeSet<String>>,
}

impl Backends {
    /// Takes in what was observed. Was any of those replaced that a connection may be to?
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
            // One that is not ready for a while is no other.
            Some(_) if ready.is_empty() => false,
            Some(serving) => {
                let replaced = serving.is_empty() || !serving.is_subset(&ready);
                *serving = ready;
                replaced
            }
        }
    }
}

/// The uids of the pods of an EndpointSlice that are ready; addresses, where there are no pods.
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

    /// Whether each of these steps tells of a replacement.
    fn told(steps: Vec<Step>) -> Vec<bool> {
        let mut backends = Backends::default();
        steps.into_iter().map(|step| backends.take(step)).collect()
    }

    #[test]
    fn a_pod_that_takes_the_place_of_another_is_told() {
        let one = |pods: &[(&str, bool)]| Step::Event(WatchEvent::Modified(slice("a", pods)));
        let listed = |pods: &[(&str, bool)]| vec![page(vec![slice("a", pods)]), Step::Watching];
        let after = |pods, rest: Vec<Step>| {
            let mut events = listed(pods);
            events.extend(rest);
            let told = told(events);
            assert_eq!(told[..2], [false; 2], "what is listed first is what was dialled");
            told[2..].to_vec()
        };
        assert_eq!(after(&[("old", true)], vec![one(&[("old", false)]), one(&[("new", true)])]), [false, true]);
        assert_eq!(after(&[("old", true)], vec![one(&[("old", false)]), one(&[("old", true)])]), [false, false]);
        // It comes before the other goes.
        let both = [("old", true), ("new", true)];
        assert_eq!(after(&[("old", true)], vec![one(&both), one(&[("new", true)])]), [false, true]);
        // There was none before.
        assert_eq!(after(&[], vec![one(&[("new", false)]), one(&[("new", true)])]), [false, true]);
        // The slice goes with the Service.
        assert_eq!(
            after(&[("old", true)], vec![Step::Event(WatchEvent::Deleted(slice("a", &[]))), one(&[("new", true)])]),
            [false, true]
        );
        // A list that is made again says what happened meanwhile.
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
    async fn who_may_not_read_them_is_left_alone() {
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
            assert_eq!(watch.watcher.is_some(), watches, "any other error may pass");
        }
    }

    #[test]
    fn addresses_of_services_are_known() {
        assert_eq!(service("market.olm.svc:50051"), Some(("olm", "market", "50051")));
        assert_eq!(service("market.olm.svc.cluster.local:1"), Some(("olm", "market", "1")));
        assert_eq!(service("market.olm:1"), Some(("olm", "market", "1")));
        for other in ["market:1", "market.example.com:1", "market.olm.svc", "127.0.0.1:50051", "[::1]:50051"] {
            assert_eq!(service(other), None, "{other}");
        }
    }
}
