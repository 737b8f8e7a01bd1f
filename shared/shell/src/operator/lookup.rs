//! Finds operators in the state of a cluster.

use olm_core::api::kinds;
use olm_core::health::{self, Operator, Scope};
use olm_core::world::{Reader, kind};

use crate::cli::flags::{ClusterFlags, NamespaceFlags, SourceFlags};
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{ListQuery, Resource};
use crate::observe::{ClusterState, ReadFailure, ReadScope};
use crate::registry::local::CatalogDirectory;

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

/// Reads the namespace of an operator that is removed or replaced, and the objects of other operators that concern it. Also returns
/// the namespace. `None` is that of the context.
///
/// # Errors
/// The cluster cannot be read, or its Subscriptions or ClusterServiceVersions cannot.
pub(super) async fn read(
    cluster: &ClusterFlags,
    catalogs: &[CatalogDirectory],
    namespace: Option<&str>,
    printer: &mut Printer,
) -> Result<(ClusterState, String), CliError> {
    let source = SourceFlags { cluster: cluster.clone(), catalogs: catalogs.to_vec(), ..SourceFlags::default() };
    let namespaces = NamespaceFlags { namespace: namespace.map(str::to_owned), all_namespaces: false };
    let mut state = source.read(&namespaces, &[], ReadScope::Planning, printer).await?;
    let namespace = state.namespace.clone().unwrap_or_default();
    operators(&state)?;
    state.read_kind(&kind::CLUSTER_SERVICE_VERSION, "").await;
    read_operators(&mut state).await;
    Ok((state, namespace))
}

/// Reads the Operator objects: an interrupted removal is recorded in one. They are not required.
async fn read_operators(state: &mut ClusterState) {
    let Some(api) = state.api().cloned() else { return };
    if let Ok(page) = api.list(&ListQuery::all(&Resource::from(&kinds::OPERATOR))).await {
        for operator in page.objects {
            state.world.apply(operator);
        }
    }
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
