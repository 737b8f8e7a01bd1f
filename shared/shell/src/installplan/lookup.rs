//! Finds InstallPlans, and reports missing ones.

use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::installplan::summary::{self, PlanSummary};
use olm_core::world::Reader;
use serde_json::Value;

use crate::cli::connect;
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind};
use crate::cluster::api::Api;
use crate::cluster::request_error::RequestError;
use crate::observe::{ClusterState, ReadFailure};

/// Connects to the cluster, and returns the namespace to work in.
pub(super) async fn connect(cluster: &ClusterFlags, namespace: Option<&str>) -> Result<(Api, String), CliError> {
    connect::connect_in(cluster, namespace).await
}

/// Returns the state of a plan, as far as the objects that were read show it.
pub(super) fn summary_in(state: &ClusterState, plan: &Value) -> PlanSummary {
    let mut summary = summary::summarize(&state.settings, &Reader::new(&state.world), plan);
    let namespace = object::namespace(plan);
    let hides_groups = |failure: &ReadFailure| failure.is_of("operatorgroups") && failure.covers(namespace);
    if state.read_failures.iter().any(hides_groups) {
        summary.without_groups();
    }
    let hides_operators = |failure: &ReadFailure| {
        (failure.is_of("subscriptions") || failure.is_of("clusterserviceversions")) && failure.covers(namespace)
    };
    let knows_operators = state.api().is_some() && !state.read_failures.iter().any(hides_operators);
    if knows_operators && summary::is_left_over(&Reader::new(&state.world), plan) {
        summary.set_left_over();
    }
    summary
}

/// Returns a reference to the InstallPlan of that name.
pub(super) fn plan_ref(namespace: &str, name: &str) -> ObjectRef {
    kinds::INSTALL_PLAN.object(namespace, name)
}

/// Returns the error for an object that does not exist.
pub(super) fn not_found(what: &str, name: &str, namespace: &str) -> CliError {
    CliError::new(ErrorKind::Api, format!("there is no {what} {name:?} in namespace {namespace}"))
        .hint(whereabouts(what))
}

/// Returns a hint on how to find objects of the kind.
pub(super) fn whereabouts(what: &str) -> &'static str {
    match what {
        "InstallPlan" => "kubectl olm install-plan list -A lists the plans of all namespaces",
        _ => "kubectl get subscriptions.operators.coreos.com -A lists the Subscriptions of all namespaces",
    }
}

/// Returns the error for InstallPlans or Subscriptions that cannot be read or written.
pub(super) fn refused(status: &Status, verb: &'static str, plural: &str, namespace: &str) -> CliError {
    RequestError::new(verb, format!("{plural}.operators.coreos.com"), namespace, status.clone()).into()
}
