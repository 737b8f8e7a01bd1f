//! The interface to the cluster that the runner drives, with the controllers under test.
//!
//! ```text
//!   runner ── apply, patch, delete, serve, command ──▶ engine (sim: the in-memory cluster; cluster: a real control plane)
//!          ◀── changes, by the engine's clock ──
//! ```
//!
//! The engine's clock is real on a cluster and virtual in the simulation. Time passes only within [`Engine::changes`] (on a
//! real cluster also within any other call; the controllers of the simulation wait while a command runs), so that the runner's
//! timeouts and quiet times have the same meaning on both.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::catalog::Snapshot;
use serde_json::Value;

use super::catalog::load;
use super::format::{FaultSpec, PatchSpec};
use super::store::Change;

/// A cluster with OLM's CRDs, Kubernetes' own namespaces, and the controllers under test.
pub trait Engine {
    /// Its name in `passing.yaml` and `differences.yaml`.
    fn name(&self) -> &'static str;

    /// Returns the time since some start of its own.
    fn now(&self) -> Duration;

    /// Returns how long nothing may change where the recording waited for `recorded`. A cluster whose controllers do not poll
    /// may use less.
    fn quiet(&self, recorded: Duration) -> Duration {
        recorded
    }

    /// Applies the object by server-side apply (field manager `scenario`, forced); creates one without a name.
    fn apply(&mut self, object: &Value) -> Result<()>;

    /// Patches an object; its name and API version are those of `target`.
    fn patch(&mut self, target: &ObjectRef, patch: &PatchSpec) -> Result<()>;

    /// Deletes an object with background propagation.
    fn delete(&mut self, target: &ObjectRef) -> Result<()>;

    /// Calls `_run` with an administrator's kubeconfig that is valid during the call.
    fn command<T>(&mut self, _run: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        bail!("{} has no address for commands", self.name())
    }

    /// Makes the API server refuse requests of the controllers.
    fn fault(&mut self, fault: &FaultSpec) -> Result<()> {
        bail!("{} cannot refuse to {} {} {}", self.name(), fault.verb, fault.kind, fault.name)
    }

    /// Returns all objects of a custom resource that is not watched. Empty if it is not served.
    fn list(&mut self, resource: &Gvk, plural: &str) -> Result<Vec<Value>>;

    /// Serves a directory as the named catalog, replacing the previous content, and returns the address to dial.
    fn serve(&mut self, catalog: &str, directory: &Path) -> Result<String> {
        self.serve_snapshot(catalog, load(directory)?)
    }

    /// Does the same with a loaded catalog.
    fn serve_snapshot(&mut self, catalog: &str, snapshot: Snapshot) -> Result<String>;

    /// Waits until the watched kinds have changed, at most for `at_most`, and returns the changes in order.
    fn changes(&mut self, at_most: Duration) -> Result<Vec<Change>>;

    /// Returns the progress that the controllers report.
    fn progress(&mut self) -> Result<Progress> {
        Ok(Progress::default())
    }

    /// Returns what the controllers would do next, which must be nothing after a scenario.
    fn unfinished(&mut self) -> Result<Vec<String>> {
        Ok(vec![])
    }

    /// Returns the end of the controllers' log, to explain a failure.
    fn log(&self) -> String {
        String::new()
    }
}

/// The progress of the controllers. Quiet alone is not sufficient to detect their end, because a slow machine may be quiet for
/// a long time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of executed actions.
    pub actions: u64,
    /// Number of keys with work in progress or queued.
    pub unsettled: u64,
}

impl Progress {
    /// Reads the progress from the metrics of `kubectl olm run`.
    pub fn read(metrics: &str) -> Result<Self> {
        let numbers = |name: &str| -> Vec<u64> {
            let of_name =
                metrics.lines().filter(|line| line.strip_prefix(name).is_some_and(|l| l.starts_with([' ', '{'])));
            of_name.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
        };
        let unsettled = numbers("kubectl_olm_unsettled");
        let [unsettled] = unsettled[..] else {
            bail!("the metrics do not contain the progress of the controllers:\n{metrics}")
        };
        Ok(Self { actions: numbers("kubectl_olm_actions_total").iter().sum(), unsettled })
    }
}

/// The watched kinds: `apiVersion`, kind, plural.
pub const WATCHED: &[(&str, &str, &str)] = &[
    ("v1", "Namespace", "namespaces"),
    ("v1", "Pod", "pods"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "Service", "services"),
    ("v1", "Secret", "secrets"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Event", "events"),
    ("apps/v1", "Deployment", "deployments"),
    ("batch/v1", "Job", "jobs"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    ("apiregistration.k8s.io/v1", "APIService", "apiservices"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("operators.coreos.com/v1alpha1", "Subscription", "subscriptions"),
    ("operators.coreos.com/v1alpha1", "InstallPlan", "installplans"),
    ("operators.coreos.com/v1alpha1", "ClusterServiceVersion", "clusterserviceversions"),
    ("operators.coreos.com/v1alpha1", "CatalogSource", "catalogsources"),
    ("operators.coreos.com/v1", "OperatorGroup", "operatorgroups"),
    ("operators.coreos.com/v1", "Operator", "operators"),
    ("operators.coreos.com/v1", "OLMConfig", "olmconfigs"),
    ("operators.coreos.com/v2", "OperatorCondition", "operatorconditions"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_from_metrics() {
        let metrics = "# TYPE kubectl_olm_actions_total counter\nkubectl_olm_actions_total{verb=\"create\"} 3\n\
                       kubectl_olm_actions_total{verb=\"update\"} 4\nkubectl_olm_unsettled 1\nkubectl_olm_refused_total 9\n";
        assert_eq!(Progress::read(metrics).unwrap(), Progress { actions: 7, unsettled: 1 });
        assert!(Progress::read("404 Not Found").is_err());
    }
}
