//! The transfer of a cluster between upstream OLM and this project's controllers.
//!
//! ```text
//!   upstream OLM runs --stop--> Deployments at zero replicas, the number in an annotation --start--> upstream OLM runs
//! ```
//! Nothing else of upstream OLM changes, so that it continues where it stopped.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CONTROLLERS, NAMESPACE, Release, own};
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::plan::Verb;

/// The annotation of a stopped Deployment with its number of replicas before.
pub const REPLICAS: &str = "kubectl-olm/replicas";

/// Returns the number of replicas that a Deployment specifies; 1 if it specifies none.
fn replicas(deployment: &Value) -> i64 {
    object::at(deployment, &["spec", "replicas"]).as_i64().unwrap_or(1)
}

/// Returns whether a Deployment is scaled to zero.
pub fn is_stopped(deployment: &Value) -> bool {
    replicas(deployment) <= 0
}

/// Returns whether a Deployment has pods that write: it is neither scaled to zero nor being deleted.
pub fn is_running(deployment: &Value) -> bool {
    !is_stopped(deployment) && !object::is_deleting(deployment)
}

/// Returns the patch that scales a Deployment to zero and records its number of replicas; `None` if it is stopped already.
pub fn stop(deployment: &Value) -> Option<Value> {
    let replicas = replicas(deployment);
    (replicas > 0).then(
        || json!({ "metadata": { "annotations": { REPLICAS: replicas.to_string() } }, "spec": { "replicas": 0 } }),
    )
}

/// Returns the patch that scales a Deployment to the recorded number of replicas. Without a valid record it gets one replica, as in the
/// manifests of upstream OLM. If another client has started it, only the record is removed; `None` if there is nothing to change.
pub fn start(deployment: &Value) -> Option<Value> {
    let record = object::annotation(deployment, REPLICAS);
    let recorded = record.and_then(|text| text.parse::<i32>().ok());
    let replicas = recorded.filter(|replicas| *replicas > 0).unwrap_or(1);
    let forget = json!({ "annotations": { REPLICAS: null } });
    if is_stopped(deployment) {
        return Some(json!({ "metadata": forget, "spec": { "replicas": replicas } }));
    }
    record.is_some().then(|| json!({ "metadata": forget }))
}

/// Returns whether a write only reports that a catalog cannot be read: it sets the status of the CatalogSource, or of a Subscription that can
/// use the catalog. Such a write is no disagreement with upstream OLM: the catalog may be reachable only in the cluster, or be unavailable
/// at the moment. `unread` contains namespace and name of the catalogs, `global` is the namespace of global ones.
pub fn only_reports_catalogs(
    verb: Verb,
    target: &ObjectRef,
    unread: &BTreeSet<(String, String)>,
    global: &str,
) -> bool {
    let is_of = |kind: &kinds::Kind| target.gvk == kind.gvk();
    let can_use = |namespace: &str| namespace == target.namespace || namespace == global;
    verb == Verb::UpdateStatus
        && (is_of(&kinds::CATALOG_SOURCE) && unread.contains(&(target.namespace.clone(), target.name.clone()))
            || is_of(&kinds::SUBSCRIPTION) && unread.iter().any(|(namespace, _)| can_use(namespace)))
}

impl Release {
    /// Returns the part of this project's release that a cluster with upstream OLM lacks: the controllers with their account and
    /// permissions, and the namespace of their Lease. They do not serve PackageManifests, as upstream OLM has a package server.
    #[must_use]
    pub fn only_controllers(mut self) -> Self {
        let namespace = self.namespace.clone();
        self.objects.retain(|object| match object::kind(object) {
            "Namespace" => object::name(object) == NAMESPACE && namespace != NAMESPACE,
            _ => object::name(object) == CONTROLLERS,
        });
        let is_deployment = |object: &&mut Value| object::kind(object) == "Deployment";
        self.objects.iter_mut().filter(is_deployment).for_each(own::remove_packages);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Changes, own};

    #[test]
    fn a_deployment_runs_again_with_the_replicas_it_had() {
        for (before, recorded) in [(json!({ "replicas": 3 }), "3"), (json!({}), "1")] {
            let mut deployment = json!({ "metadata": { "name": "olm-operator" }, "spec": before });
            let stopped = stop(&deployment).unwrap();
            assert_eq!(
                stopped,
                json!({ "metadata": { "annotations": { REPLICAS: recorded } }, "spec": { "replicas": 0 } })
            );
            assert_eq!(start(&deployment), None);
            json_patch::merge(&mut deployment, &stopped);
            assert!(is_stopped(&deployment));
            // The record of the first stop remains.
            assert_eq!(stop(&deployment), None);
            let started = start(&deployment).unwrap();
            json_patch::merge(&mut deployment, &started);
            assert_eq!(
                deployment,
                json!({
                    "metadata": { "name": "olm-operator", "annotations": {} },
                    "spec": { "replicas": recorded.parse::<i64>().unwrap() },
                })
            );
        }
    }

    #[test]
    fn a_deployment_that_is_deleted_or_scaled_to_zero_does_not_run() {
        let deployment = |metadata: Value, spec: Value| json!({ "metadata": metadata, "spec": spec });
        let deleting = json!({ "deletionTimestamp": "2026-11-21T12:00:00Z" });
        assert!(is_running(&deployment(json!({}), json!({}))));
        assert!(is_running(&deployment(json!({}), json!({ "replicas": 2 }))));
        assert!(!is_running(&deployment(json!({}), json!({ "replicas": 0 }))));
        assert!(!is_running(&deployment(deleting, json!({ "replicas": 2 }))));
    }

    #[test]
    fn only_the_status_of_what_depends_on_a_catalog_reports_it() {
        let unread = [("olm", "market"), ("garden", "shed")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        let source = |namespace, name| kinds::CATALOG_SOURCE.object(namespace, name);
        let subscription = |namespace| kinds::SUBSCRIPTION.object(namespace, "rose");
        let is = |verb, target: &ObjectRef, global| only_reports_catalogs(verb, target, &unread, global);
        assert!(is(Verb::UpdateStatus, &source("olm", "market"), "olm"));
        assert!(!is(Verb::UpdateStatus, &source("olm", "other"), "olm"));
        assert!(!is(Verb::Update, &source("olm", "market"), "olm"));
        assert!(is(Verb::UpdateStatus, &subscription("park"), "olm"), "it can use the global catalog");
        assert!(is(Verb::UpdateStatus, &subscription("garden"), "lifecycle"));
        assert!(!is(Verb::UpdateStatus, &subscription("park"), "lifecycle"));
        assert!(!is(Verb::UpdateStatus, &kinds::INSTALL_PLAN.object("garden", "install-a"), "olm"));
    }

    #[test]
    fn an_invalid_record_counts_as_one_replica() {
        for record in ["", "many", "0", "-4", "99999999999"] {
            let deployment = json!({
                "metadata": { "annotations": { REPLICAS: record } }, "spec": { "replicas": 0 },
            });
            assert_eq!(start(&deployment).unwrap()["spec"]["replicas"], 1, "{record}");
        }
    }

    #[test]
    fn a_deployment_that_was_started_by_others_keeps_its_replicas() {
        let deployment = json!({ "metadata": { "annotations": { REPLICAS: "2" } }, "spec": { "replicas": 5 } });
        assert_eq!(start(&deployment).unwrap(), json!({ "metadata": { "annotations": { REPLICAS: null } } }));
    }

    #[test]
    fn the_controllers_are_added_without_what_upstream_olm_has() {
        let named = |release: Release| -> Vec<String> {
            let objects = release.only_controllers().objects;
            objects.iter().map(|object| format!("{}/{}", object::kind(object), object::name(object))).collect()
        };
        let added = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"]
            .map(|kind| format!("{kind}/{CONTROLLERS}"));
        let release = || own("1.0.0", Some("example.com/run:1"));
        assert_eq!(named(release()), added);
        assert!(release().creates_packages_api() && !release().only_controllers().creates_packages_api());
        let args = release().only_controllers().objects[3].pointer("/spec/template/spec/containers/0/args").cloned();
        assert_eq!(args.unwrap().as_array().unwrap().len(), 6);
        let changes = Changes { namespace: Some("operator-lifecycle".to_owned()), ..Changes::default() };
        assert_eq!(named(release().with(&changes))[0], "Namespace/olm");
    }
}
