//! What is installed on a cluster: distribution, version and namespace.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::{CONTROLLERS, Distribution, PACKAGE_SERVER, RELEASE, UPSTREAM, transfer, version_of};
use crate::api::cluster_service_version::is_copy;
use crate::api::object;

/// An installation of OLM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Installation {
    /// The distribution that it belongs to.
    pub distribution: Distribution,
    /// The version, with a leading `v`, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The namespace of the controllers.
    pub namespace: String,
    /// The names of the Deployments.
    pub controllers: Vec<String>,
    /// Whether all of its Deployments are scaled to zero.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

impl Installation {
    /// Returns whether OpenShift manages it.
    pub fn is_openshift(&self) -> bool {
        self.namespace.starts_with("openshift-")
    }

    /// Returns the distribution, version and namespace for messages.
    pub fn describe(&self) -> String {
        let version = self.version.as_deref().unwrap_or("(unknown version)");
        let stopped = if self.stopped { " (stopped)" } else { "" };
        format!("{} {version} in namespace {}{stopped}", self.distribution.as_str(), self.namespace)
    }
}

/// How long after its time limit a Lease counts as held: clocks differ.
const SLACK: SignedDuration = SignedDuration::from_mins(1);

/// Reports whether controllers are running: a Deployment of upstream OLM is available, or the Lease of `kubectl olm run` is held.
/// `deployments` are those of upstream OLM. Returns `None` if the time limit of a Lease is over: an idle process does not renew it.
pub fn are_running(deployments: &[Value], leases: &[Value], now: Timestamp) -> Option<bool> {
    let available = |deployment: &Value| object::at(deployment, &["status", "availableReplicas"]).as_i64() > Some(0);
    let has_holder = |lease: &Value| !object::text(lease, &["spec", "holderIdentity"]).is_empty();
    let is_held = |lease: &Value| {
        let spec = object::at(lease, &["spec"]);
        let seconds = object::at(spec, &["leaseDurationSeconds"]).as_i64().unwrap_or_default();
        let until = object::parse_time(object::text(spec, &["renewTime"]))
            .and_then(|renewed| renewed.checked_add(SignedDuration::from_secs(seconds)).ok())
            .and_then(|end| end.checked_add(SLACK).ok());
        has_holder(lease) && until.is_none_or(|until| now <= until)
    };
    if deployments.iter().any(available) || leases.iter().any(is_held) {
        return Some(true);
    }
    if leases.iter().any(has_holder) { None } else { Some(false) }
}

/// Returns whether upstream OLM runs the cluster, and not `kubectl olm run`. If the holder of the Lease may have ended, it does if
/// one of its Deployments is available.
pub fn is_run_by_upstream(deployments: &[Value], leases: &[Value], now: Timestamp) -> bool {
    match are_running(&[], leases, now) {
        Some(is_run_by_plugin) => !deployments.is_empty() && !is_run_by_plugin,
        None => are_running(deployments, &[], now) == Some(true),
    }
}

/// Retains the Deployments in namespaces whose ServiceAccounts have this ClusterRole, according to all ClusterRoleBindings, or in `also`:
/// a tenant can create a Deployment with any name and label, but no such binding.
pub fn retain_permitted(deployments: &mut Vec<Value>, bindings: &[Value], role: &str, also: Option<&str>) {
    let namespaces: BTreeSet<&str> = bindings
        .iter()
        .filter(|binding| object::text(binding, &["roleRef", "name"]) == role)
        .flat_map(|binding| object::list(binding, &["subjects"]))
        .map(|subject| object::text(subject, &["namespace"]))
        .chain(also)
        .collect();
    deployments.retain(|deployment| namespaces.contains(object::namespace(deployment)));
}

/// Returns the installations: by their Deployments, and by the ClusterServiceVersion of the package server.
pub fn installations(deployments: &[Value], csvs: &[Value]) -> Vec<Installation> {
    let mut found: BTreeMap<(String, Distribution), Installation> = BTreeMap::new();
    let mut add = |distribution: Distribution, object: &Value, controller: Option<&str>, version: Option<String>| {
        let namespace = object::namespace(object).to_owned();
        let installation = found.entry((namespace.clone(), distribution)).or_insert(Installation {
            distribution,
            version: None,
            namespace,
            controllers: Vec::new(),
            stopped: true,
        });
        installation.stopped &= controller.is_none() || transfer::is_stopped(object);
        installation.controllers.extend(controller.map(str::to_owned));
        installation.version = installation.version.take().or(version);
    };
    for csv in csvs.iter().filter(|csv| object::name(csv) == PACKAGE_SERVER && !is_copy(csv)) {
        add(Distribution::Upstream, csv, None, version_of(csv));
    }
    for deployment in deployments {
        let name = object::name(deployment);
        let version = object::label(deployment, RELEASE).map(str::to_owned);
        let is_upstream = object::label(deployment, "app").is_some_and(|app| UPSTREAM.contains(&app));
        if name == CONTROLLERS && version.is_some() {
            add(Distribution::Own, deployment, Some(name), version);
        } else if is_upstream {
            add(Distribution::Upstream, deployment, Some(name), version);
        }
    }
    let finish = |installation: Installation| Installation {
        stopped: installation.stopped && !installation.controllers.is_empty(),
        ..installation
    };
    found.into_values().map(finish).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deployments_count_where_accounts_have_the_role() {
        let deployments =
            ["aaa", "lifecycle", "olm"].map(|namespace| json!({ "metadata": { "namespace": namespace } }));
        let binding = |role: &str, namespace: &str| json!({ "roleRef": { "name": role }, "subjects": [{ "namespace": namespace }, { "kind": "User" }] });
        let bindings = [binding("olm", "lifecycle"), binding("edit", "aaa")];
        let retained = |also| {
            let mut retained = deployments.to_vec();
            retain_permitted(&mut retained, &bindings, "olm", also);
            retained.iter().map(|deployment| object::namespace(deployment).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            (retained(None), retained(Some("olm"))),
            (vec!["lifecycle".to_owned()], vec!["lifecycle".to_owned(), "olm".to_owned()])
        );
    }

    #[test]
    fn controllers_run_in_deployments_or_hold_a_lease() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let deployment = |available: u64| json!({ "status": { "availableReplicas": available } });
        let lease = |holder: &str, renewed: &str| json!({ "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed } });
        let cases = [
            (vec![], vec![], Some(false)),
            (vec![deployment(0), json!({})], vec![], Some(false)),
            (vec![deployment(1)], vec![], Some(true)),
            (vec![deployment(1)], vec![lease("a", "2026-11-21T11:00:00.000000Z")], Some(true)),
            (vec![], vec![lease("a", "2026-11-21T11:59:50.000000Z")], Some(true)),
            (vec![], vec![lease("", "2026-11-21T11:59:50.000000Z")], Some(false)),
            (vec![], vec![lease("a", "2026-11-21T11:00:00.000000Z")], None),
        ];
        for (deployments, leases, expected) in cases {
            assert_eq!(are_running(&deployments, &leases, now), expected, "{deployments:?} {leases:?}");
        }
        let (recent, expired) = (lease("a", "2026-11-21T11:59:50.000000Z"), lease("a", "2026-11-21T11:00:00.000000Z"));
        for (deployments, leases, expected) in [
            (vec![], vec![], false),
            (vec![deployment(0)], vec![], true),
            (vec![deployment(1)], vec![recent.clone()], false),
            (vec![deployment(0)], vec![expired.clone()], false),
            (vec![deployment(1)], vec![expired], true),
        ] {
            assert_eq!(is_run_by_upstream(&deployments, &leases, now), expected, "{deployments:?} {leases:?}");
        }
    }
}
