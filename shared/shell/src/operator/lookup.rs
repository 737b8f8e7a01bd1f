//! Finds operators in the state of a cluster.

use olm_core::health::{self, Operator, Scope};
use olm_core::world::Reader;

use crate::cli::{CliError, ErrorKind};
use crate::observe::{ClusterState, ReadFailure};

/// Returns the operators of the requested namespaces.
///
/// # Errors
/// Subscriptions or ClusterServiceVersions could not be read.
pub(super) fn operators(state: &ClusterState) -> Result<Vec<Operator>, CliError> {
    let is_vital = |failure: &&ReadFailure| failure.is_of("subscriptions") || failure.is_of("clusterserviceversions");
    if let Some(failure) = state.read_failures.iter().find(is_vital) {
        return Err(CliError::from(failure));
    }
    let unread = |plural: &str| state.read_failures.iter().any(|failure: &ReadFailure| failure.is_of(plural));
    let scope = Scope {
        settings: &state.settings,
        knows_groups: !unread("operatorgroups"),
        knows_catalogs: !unread("catalogsources"),
    };
    Ok(health::operators(&Reader::new(&state.world), scope, state.namespace.as_deref()))
}

/// Returns whether a name means the operator: that of its Subscription, of its package, or of its ClusterServiceVersion.
pub(super) fn is_named(operator: &Operator, name: &str) -> bool {
    let csv = |version: &Option<health::Version>| version.as_ref().is_some_and(|version| version.csv == name);
    operator.name == name || operator.package == name || csv(&operator.installed)
}

/// Returns the error for an operator that does not exist.
pub(super) fn not_found(name: &str, namespace: Option<&str>) -> CliError {
    let place = namespace.map_or_else(|| "any namespace".to_owned(), |namespace| format!("namespace {namespace}"));
    CliError::new(ErrorKind::Api, format!("there is no operator {name:?} in {place}")).hint(
        "an operator has the name of its Subscription; kubectl olm operator list -A lists those of all namespaces",
    )
}
