//! List and watch: every kind that planning reads, into events.

use std::time::Duration;

use futures::StreamExt;
use kube::core::WatchEvent;
use olm_core::api::object::{self, Gvk};
use olm_core::api::status::Status;
use olm_core::planner::Event;
use olm_core::world::{GroupKind, trim};
use serde_json::Value;
use tokio::sync::mpsc;

use super::api::{Api, Resource};

/// Only what OLM made is of interest.
const MANAGED: &str = "olm.managed=true";

/// `group/version kind plural namespaced labels`: what is watched. Kinds of which planning reads what users made are watched whole.
const KINDS: [(&str, &str, &str, &str, bool, &str); 22] = [
    ("operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "clusterserviceversions", true, ""),
    ("operators.coreos.com", "v1alpha1", "Subscription", "subscriptions", true, ""),
    ("operators.coreos.com", "v1alpha1", "InstallPlan", "installplans", true, ""),
    ("operators.coreos.com", "v1alpha1", "CatalogSource", "catalogsources", true, ""),
    ("operators.coreos.com", "v1", "OperatorGroup", "operatorgroups", true, ""),
    ("operators.coreos.com", "v1", "Operator", "operators", false, ""),
    ("operators.coreos.com", "v1", "OLMConfig", "olmconfigs", false, ""),
    ("operators.coreos.com", "v2", "OperatorCondition", "operatorconditions", true, ""),
    ("", "v1", "Namespace", "namespaces", false, ""),
    ("", "v1", "ServiceAccount", "serviceaccounts", true, ""),
    ("", "v1", "Service", "services", true, MANAGED),
    ("", "v1", "Secret", "secrets", true, MANAGED),
    ("", "v1", "ConfigMap", "configmaps", true, MANAGED),
    ("apps", "v1", "Deployment", "deployments", true, MANAGED),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", true, ""),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true, ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false, ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false, ""),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false, ""),
    ("apiregistration.k8s.io", "v1", "APIService", "apiservices", false, ""),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
        MANAGED,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
        MANAGED,
    ),
];

/// A pause before a watch that broke is made again.
const PAUSE: Duration = Duration::from_millis(500);

/// A kind that is watched.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) resource: Resource,
    labels: &'static str,
}

/// The kinds that are watched.
pub(super) fn kinds() -> Vec<Watched> {
    KINDS
        .iter()
        .map(|(group, version, kind, plural, namespaced, labels)| Watched {
            resource: Resource {
                gvk: Gvk::new(group, version, kind),
                plural: (*plural).to_owned(),
                namespaced: *namespaced,
            },
            labels,
        })
        .collect()
}

/// What a watch tells the loop.
#[derive(Debug)]
pub(super) enum Signal {
    /// Something was observed.
    Event(Event),
    /// The first list of a kind is complete.
    Synced(Gvk),
    /// A kind cannot be listed or watched now.
    Trouble(Gvk, Status),
}

/// Lists and watches one kind for ever.
pub(super) async fn run(api: Api, watched: Watched, signals: mpsc::UnboundedSender<Signal>) {
    let gvk = watched.resource.gvk.clone();
    let mut troubled = false;
    loop {
        match list(&api, &watched, &signals).await {
            Ok(version) => {
                troubled = false;
                if signals.send(Signal::Synced(gvk.clone())).is_err() {
                    return;
                }
                follow(&api, &watched, version, &signals).await;
            }
            Err(refusal) => {
                if !troubled && signals.send(Signal::Trouble(gvk.clone(), refusal)).is_err() {
                    return;
                }
                troubled = true;
            }
        }
        if signals.is_closed() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn list(api: &Api, watched: &Watched, signals: &mpsc::UnboundedSender<Signal>) -> Result<String, Status> {
    let mut objects: Vec<Value> = Vec::new();
    let mut token = String::new();
    loop {
        let page = api.list(&watched.resource, watched.labels, &token).await?;
        objects.extend(page.objects.into_iter().map(|mut object| {
            trim(&mut object);
            object
        }));
        if page.next.is_empty() {
            let gvk = &watched.resource.gvk;
            let version = page.resource_version.parse().unwrap_or_default();
            let _ = signals.send(Signal::Event(Event::Listed(GroupKind::new(&gvk.group, &gvk.kind), objects, version)));
            return Ok(page.resource_version);
        }
        token = page.next;
    }
}

/// Watches from a resourceVersion on, again and again, until the API server no longer knows that version.
async fn follow(api: &Api, watched: &Watched, mut version: String, signals: &mpsc::UnboundedSender<Signal>) {
    loop {
        let events = match api.watch(&watched.resource, watched.labels, &version).await {
            Ok(events) => events,
            Err(refusal) => {
                if refusal.code != 0 {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
                if signals.is_closed() {
                    return;
                }
                continue;
            }
        };
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(WatchEvent::Added(mut object) | WatchEvent::Modified(mut object)) => {
                    object::resource_version(&object).clone_into(&mut version);
                    trim(&mut object);
                    Event::Applied(object)
                }
                Ok(WatchEvent::Deleted(object)) => {
                    object::resource_version(&object).clone_into(&mut version);
                    Event::Deleted(object)
                }
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(_)) => return,
                Err(_) => break,
            };
            if signals.send(Signal::Event(event)).is_err() {
                return;
            }
        }
    }
}
