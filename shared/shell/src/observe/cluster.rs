//! Reads a cluster once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::settings::Settings;
use olm_core::world::{Fact, FactKey, World};

use super::list::{list_all, listed};
use super::read_failure::ReadFailure;
use super::scope::ReadScope;
use super::served::Served;
use super::state::ClusterState;
use crate::cluster::api::Api;
use crate::cluster::request_error::RequestError;

/// The default namespaces of OLM's global catalogs: upstream and on OpenShift.
pub(super) const GLOBAL: [&str; 2] = ["olm", "openshift-marketplace"];

/// Reads a cluster: one namespace, or all namespaces if there is no name. `catalog_namespace`: the namespace of the global catalogs, if
/// known.
pub(super) async fn read(
    api: Api,
    namespace: Option<String>,
    scope: ReadScope,
    catalog_namespace: Option<&str>,
) -> Result<ClusterState, RequestError> {
    let mut world = World::new();
    let (mut failures, lists) = list_all(&api, namespace.as_deref().unwrap_or_default(), scope, &mut world).await?;
    let mut served = Served::default();
    let lacks_catalogs =
        matches!(scope, ReadScope::Planning | ReadScope::Diagnosis) || failures.iter().any(ReadFailure::is_of_catalogs);
    if let Some(namespace) = namespace.as_ref().filter(|_| lacks_catalogs) {
        let global = catalog_namespace.map_or(&GLOBAL[..], |_| &[]).iter().copied();
        let global = global.chain(catalog_namespace).filter(|global| global != namespace);
        for global in global {
            failures.extend(list_catalogs(&api, global, &mut world).await);
        }
    }
    if scope == ReadScope::Planning {
        match api.discover().await {
            Ok((resources, stale)) => {
                for resource in resources {
                    served.add(resource.gvk, Some(resource.namespaced));
                }
                served.complete();
                for (group, version) in stale {
                    failures.push(ReadFailure::stale(&group, &version));
                    served.hide(group, version);
                }
            }
            Err(refusal) => failures.push(ReadFailure::discovery(&refusal)),
        }
        if let Ok(version) = api.version().await {
            world.learn(FactKey::ServerVersion, Some(Fact::ServerVersion(version)));
        }
    }
    let settings = Settings::default();
    let (places, on_top) = (BTreeMap::new(), Vec::new());
    Ok(ClusterState {
        world,
        namespace,
        served,
        places,
        read_failures: failures,
        settings,
        at: Timestamp::now(),
        on_top,
        lists,
        api: Some(api),
    })
}

/// Lists the CatalogSources of a namespace.
async fn list_catalogs(api: &Api, namespace: &str, world: &mut World) -> Vec<ReadFailure> {
    match listed(api, &kinds::CATALOG_SOURCE, namespace).await {
        Ok((_, objects, failures)) => {
            for object in objects {
                world.apply(object);
            }
            failures
        }
        Err(refusal) => vec![ReadFailure::list(&kinds::CATALOG_SOURCE, namespace, &refusal)],
    }
}
