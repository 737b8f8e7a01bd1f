//! Objects that endanger the stability of a cluster, in the words of the operator-framework.

use super::input::{Input, texts};
use super::rule;
use crate::api::object::{at, kind, list};
use crate::bundle::synthesis::Manifest;

/// The default SecurityContextConstraints of OpenShift.
const SCCS: [&str; 8] =
    ["privileged", "restricted", "anyuid", "hostaccess", "hostmount-anyuid", "hostnetwork", "node-exporter", "nonroot"];

/// Checks all objects.
pub(super) fn check(input: &mut Input) {
    for manifest in input.objects.clone() {
        match kind(&manifest.object) {
            "PodDisruptionBudget" => disruption_budget(input, &manifest),
            "PriorityClass" if manifest.object["globalDefault"] == true => {
                let message = "globalDefault field cannot be set to true";
                input.report(&rule::GLOBAL_PRIORITY, &manifest, &["globalDefault"], message);
            }
            "Role" | "ClusterRole" => role(input, &manifest),
            _ => {}
        }
    }
}

fn disruption_budget(input: &mut Input, manifest: &Manifest) {
    let spec = at(&manifest.object, &["spec"]);
    // Unlike the operator-framework, which takes every percentage for 0.
    if spec["maxUnavailable"] == 0 || spec["maxUnavailable"] == "0%" {
        let message = "maxUnavailable field cannot be set to 0 or 0%";
        input.report(&rule::DISRUPTION_BUDGET, manifest, &["spec", "maxUnavailable"], message);
    }
    if spec["minAvailable"] == "100%" {
        let message = "minAvailable field cannot be set to 100%";
        input.report(&rule::DISRUPTION_BUDGET, manifest, &["spec", "minAvailable"], message);
    }
}

fn role(input: &mut Input, manifest: &Manifest) {
    for (n, policy) in list(&manifest.object, &["rules"]).iter().enumerate() {
        let n = n.to_string();
        let path = ["rules", n.as_str()];
        let has = |field: &str, any: &[&str]| texts(policy, field).any(|value: &str| any.contains(&value));
        if has("apiGroups", &["policy"])
            && has("resources", &["poddisruptionbudgets"])
            && has("verbs", &["*", "create", "update", "patch"])
        {
            let message =
                "RBAC includes permission to create/update poddisruptionbudgets, which could impact cluster stability";
            input.report(&rule::WRITES_DISRUPTION_BUDGETS, manifest, &path, message);
        }
        if has("apiGroups", &["security.openshift.io"])
            && has("resources", &["securitycontextconstraints"])
            && has("verbs", &["*", "delete", "update", "patch"])
            && has("resourceNames", &SCCS)
        {
            let message = "RBAC includes permission to modify default securitycontextconstraints, which could impact cluster stability";
            input.report(&rule::WRITES_DEFAULT_SCCS, manifest, &path, message);
        }
    }
}
