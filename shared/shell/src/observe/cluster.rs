//! Reads a cluster once.

use std::collections::BTreeMap;

use futures::future::join_all;
use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::settings::Settings;
use olm_core::world::{Fact, FactKey, World};
use serde_json::Value;

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
    let (lists, early, discovered) = futures::join!(
        list_all(&api, namespace.as_deref().unwrap_or_default(), scope, &mut world),
        async {
            if scope.needs_global_catalogs() {
                list_global_catalogs(&api, namespace.as_deref(), catalog_namespace).await
            } else {
                Catalogs::default()
            }
        },
        async { if scope == ReadScope::Planning { Some(futures::join!(api.discover(), api.version())) } else { None } },
    );
    let (mut failures, lists) = lists?;
    let lacks_catalogs = !scope.needs_global_catalogs() && failures.iter().any(ReadFailure::is_of_catalogs);
    let late = if lacks_catalogs {
        list_global_catalogs(&api, namespace.as_deref(), catalog_namespace).await
    } else {
        Catalogs::default()
    };
    for Catalogs { objects, failures: unread } in [early, late] {
        failures.extend(unread);
        for object in objects {
            world.apply(object);
        }
    }
    let mut served = Served::default();
    if let Some((discovery, version)) = discovered {
        match discovery {
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
        if let Ok(version) = version {
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

/// CatalogSources, and what could not be read.
#[derive(Default)]
struct Catalogs {
    objects: Vec<Value>,
    failures: Vec<ReadFailure>,
}

/// Lists the CatalogSources of the namespaces of global catalogs, unless all namespaces are read.
async fn list_global_catalogs(api: &Api, namespace: Option<&str>, catalog_namespace: Option<&str>) -> Catalogs {
    let mut found = Catalogs::default();
    let Some(namespace) = namespace else { return found };
    let global = catalog_namespace.map_or(&GLOBAL[..], |_| &[]).iter().copied();
    let global: Vec<&str> = global.chain(catalog_namespace).filter(|global| *global != namespace).collect();
    let answers = join_all(global.iter().map(|global| listed(api, &kinds::CATALOG_SOURCE, global, None))).await;
    for (global, answer) in global.into_iter().zip(answers) {
        match answer {
            Ok((_, objects, failures)) => {
                found.objects.extend(objects);
                found.failures.extend(failures);
            }
            Err(refusal) => found.failures.push(ReadFailure::list(&kinds::CATALOG_SOURCE, global, &refusal)),
        }
    }
    found
}
