//! Which pods stand behind the Service of a catalog: when they are replaced, a connection leads nowhere, and nothing else may say so for
//! as long as the network keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use olm_core::api::object;
use serde_json::Value;

/// Yields each time the pods behind the Service at an address were replaced. Yields nothing for other addresses, nor where EndpointSlices
/// may not be read.
pub(super) fn replaced(cluster: kube::Client, address: &str) -> BoxStream<'static, ()> {
    let Some((namespace, service, _)) = service(address) else { return stream::pending().boxed() };
    let gvk = GroupVersionKind::gvk("discovery.k8s.io", "v1", "EndpointSlice");
    let kind = ApiResource::from_gvk_with_plural(&gvk, "endpointslices");
    let api = kube::Api::<DynamicObject>::namespaced_with(cluster, namespace, &kind);
    let config = watcher::Config::default().labels(&format!("kubernetes.io/service-name={service}"));
    changes(watcher(api, config).default_backoff(), address.to_owned()).chain(stream::pending()).boxed()
}

fn changes(
    events: impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Send + 'static,
    address: String,
) -> impl Stream<Item = ()> + Send {
    let allowed = events.take_while(move |event| {
        let refusal = event.as_ref().err().and_then(refused);
        if let Some(message) = &refusal {
            tracing::debug!(address, "what stands behind the Service is not followed: {message}");
        }
        ready(refusal.is_none())
    });
    let replaced =
        allowed.scan(Backends::default(), |backends, event| ready(Some(event.is_ok_and(|e| backends.take(e)))));
    replaced.filter_map(|replaced| ready(replaced.then_some(())))
}

/// The refusal of somebody who may not.
fn refused(error: &watcher::Error) -> Option<String> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
            if matches!(status.code, 401 | 403) =>
        {
            Some(status.message.clone())
        }
        _ => None,
    }
}

/// Namespace, name and port of the Service that an address in a cluster is of.
pub(super) fn service(address: &str) -> Option<(&str, &str, &str)> {
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
    /// A list that is on its way.
    listing: Option<BTreeMap<String, BTreeSet<String>>>,
    /// Those that a connection may be to: the last that there were. `None`: nothing was listed yet.
    serving: Option<BTreeSet<String>>,
}

impl Backends {
    /// Takes in what was observed. Was any of those replaced that a connection may be to?
    fn take(&mut self, event: Event<DynamicObject>) -> bool {
        let read = |slice: DynamicObject| {
            let slice = serde_json::to_value(&slice).unwrap_or_default();
            (object::name(&slice).to_owned(), ready_in(&slice))
        };
        match event {
            Event::Init => self.listing = Some(BTreeMap::new()),
            Event::InitApply(slice) => self.listing.get_or_insert_default().extend([read(slice)]),
            Event::InitDone => self.ready = self.listing.take().unwrap_or_default(),
            Event::Apply(slice) => self.ready.extend([read(slice)]),
            Event::Delete(slice) => drop(self.ready.remove(&read(slice).0)),
        }
        self.listing.is_none() && self.compare()
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

    use super::*;

    fn slice(name: &str, pods: &[(&str, bool)]) -> DynamicObject {
        let endpoint = |(uid, ready): &(&str, bool)| json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready }, "targetRef": { "kind": "Pod", "uid": uid } });
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": { "name": name, "namespace": "olm" },
            "addressType": "IPv4", "endpoints": pods.iter().map(endpoint).collect::<Vec<_>>(),
        });
        serde_json::from_value(slice).unwrap()
    }

    /// Whether each of these events tells of a replacement.
    fn told(events: Vec<Event<DynamicObject>>) -> Vec<bool> {
        let mut backends = Backends::default();
        events.into_iter().map(|event| backends.take(event)).collect()
    }

    #[test]
    fn a_pod_that_takes_the_place_of_another_is_told() {
        let one = |pods: &[(&str, bool)]| Event::Apply(slice("a", pods));
        let listed = |pods: &[(&str, bool)]| vec![Event::Init, Event::InitApply(slice("a", pods)), Event::InitDone];
        let after = |pods, rest: Vec<Event<DynamicObject>>| {
            let mut events = listed(pods);
            events.extend(rest);
            let told = told(events);
            assert_eq!(told[..3], [false; 3], "what is listed first is what was dialled");
            told[3..].to_vec()
        };
        assert_eq!(after(&[("old", true)], vec![one(&[("old", false)]), one(&[("new", true)])]), [false, true]);
        assert_eq!(after(&[("old", true)], vec![one(&[("old", false)]), one(&[("old", true)])]), [false, false]);
        // It comes before the other goes.
        let both = [("old", true), ("new", true)];
        assert_eq!(after(&[("old", true)], vec![one(&both), one(&[("new", true)])]), [false, true]);
        // There was none before.
        assert_eq!(after(&[], vec![one(&[("new", false)]), one(&[("new", true)])]), [false, true]);
        // The slice goes with the Service.
        assert_eq!(after(&[("old", true)], vec![Event::Delete(slice("a", &[])), one(&[("new", true)])]), [false, true]);
        // A list that is made again says what happened meanwhile.
        assert_eq!(after(&[("old", true)], listed(&[("old", true)])), [false; 3]);
        assert_eq!(after(&[("old", true)], listed(&[("new", true)])), [false, false, true]);
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
        let forbidden = || {
            let status = kube::core::Status::failure("endpointslices is forbidden", "Forbidden").with_code(403);
            watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status)))
        };
        let events =
            vec![Err(forbidden()), Ok(Event::Init), Ok(Event::InitDone), Ok(Event::Apply(slice("a", &[("p", true)])))];
        let told: Vec<()> = changes(stream::iter(events), "main.olm.svc:50051".to_owned()).collect().await;
        assert_eq!(told.len(), 0);
        let events = vec![
            Err(watcher::Error::NoResourceVersion),
            Ok(Event::Init),
            Ok(Event::InitDone),
            Ok(Event::Apply(slice("a", &[("p", true)]))),
        ];
        let told: Vec<()> = changes(stream::iter(events), "main.olm.svc:50051".to_owned()).collect().await;
        assert_eq!(told.len(), 1, "any other error may pass");
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
