//! Which InstallPlans are meant, and how they are told from each other.

use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::installplan::summary::{self, PlanSummary};
use olm_core::world::Reader;
use serde_json::Value;

use crate::cli::connect;
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind, table};
use crate::cluster::api::Api;
use crate::cluster::request_error::RequestError;
use crate::observe::{ClusterState, Gap};

/// What nobody knows.
const UNKNOWN: &str = "<unknown>";

/// A connection to the cluster, and the namespace to work in.
pub(super) async fn connect(cluster: &ClusterFlags, namespace: Option<&str>) -> Result<(Api, String), CliError> {
    connect::connect_in(cluster, namespace).await
}

/// Where a plan stands, as far as what was seen tells.
pub(super) fn summary_in(seen: &ClusterState, plan: &Value) -> PlanSummary {
    let mut summary = summary::summarize(&seen.settings, &Reader::new(&seen.world), plan);
    let namespace = object::namespace(plan);
    let hides_groups = |gap: &Gap| gap.is_of("operatorgroups") && gap.covers(namespace);
    if seen.gaps.iter().any(hides_groups) {
        summary.without_groups();
    }
    summary
}

/// The InstallPlan of that name.
pub(super) fn plan_ref(namespace: &str, name: &str) -> ObjectRef {
    let gvk = Gvk::new("operators.coreos.com", "v1alpha1", "InstallPlan");
    ObjectRef { gvk, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// There is none.
pub(super) fn not_found(what: &str, name: &str, namespace: &str) -> CliError {
    CliError::new(ErrorKind::Api, format!("there is no {what} {name:?} in namespace {namespace}"))
        .hint(whereabouts(what))
}

/// How to find one.
pub(super) fn whereabouts(what: &str) -> &'static str {
    match what {
        "InstallPlan" => "kubectl olm install-plan list -A lists the plans of all namespaces",
        _ => "kubectl get subscriptions.operators.coreos.com -A lists those of all namespaces",
    }
}

/// InstallPlans, or Subscriptions, cannot be read or written.
pub(super) fn refused(status: &Status, verb: &'static str, plural: &str, namespace: &str) -> CliError {
    RequestError::new(verb, format!("{plural}.operators.coreos.com"), namespace, status.clone()).into()
}

/// How long an object has been there, as kubectl shows it.
pub(super) fn age(object: &Value, now: Timestamp) -> String {
    let created = object::parse_time(object::text(object, &["metadata", "creationTimestamp"]));
    let since = created.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
    since.map_or_else(|| UNKNOWN.to_owned(), table::age)
}
