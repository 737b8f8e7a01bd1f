//! Dispatches keys to their controllers.

use jiff::Timestamp;

use crate::api::object;
use crate::plan::{Controller, Key, Plan, Reason};
use crate::settings::Settings;
use crate::world::{Reader, kind};
use crate::{
    apiroles, catalogsource, copiedcsv, csv, installplan, operator, operatorcondition, operatorgroup, subscription,
};

/// Plans one key. Running, explaining, auditing and simulating all use this function.
pub(super) fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    match key.controller {
        Controller::CatalogSource => catalogsource::plan(settings, world, key, now),
        Controller::Resolution => subscription::plan(settings, world, key, now),
        Controller::InstallPlan => installplan::plan(settings, world, key, now),
        Controller::OperatorGroup => operatorgroup::plan(world, key, now),
        Controller::Namespace => operatorgroup::plan_namespace(world, key),
        Controller::ClusterServiceVersion => csv::plan(world, key, now),
        Controller::CopiedCsv => copiedcsv::plan(settings, world, key, now),
        Controller::ProvidedApiRoles => apiroles::plan(world, key),
        Controller::OperatorCondition => operatorcondition::plan(world, key, now),
        Controller::Adoption => operator::plan_adoption(world, key),
        Controller::Operator => operator::plan(world, key),
        Controller::OlmConfig => copiedcsv::plan_config(settings, world, key, now),
    }
}

/// Plans one key of a ClusterServiceVersion that is being deleted, does not exist, or is about to be deleted with its namespace. Plans
/// nothing for any other.
pub(super) fn release(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let namespace = || world.json(&kind::NAMESPACE, "", &key.namespace);
    let found = world.json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name);
    match (key.controller, found) {
        (Controller::ClusterServiceVersion, None) => csv::plan(world, key, now),
        (Controller::ClusterServiceVersion, Some(json)) if object::is_deleting(json) => csv::plan(world, key, now),
        (Controller::ClusterServiceVersion, Some(_)) if namespace().is_some_and(object::is_terminating) => {
            Plan::wait(Reason::StatusWaits {
                object: format!("ClusterServiceVersion {}/{}", key.namespace, key.name),
                message: "its namespace is being deleted, and Kubernetes has not deleted it yet".to_owned(),
            })
        }
        (Controller::CopiedCsv, None) => copiedcsv::plan(settings, world, key, now),
        _ => Plan::nothing(),
    }
}

/// Plans for an OperatorGroup that does not exist. Plans nothing for an existing one.
pub(super) fn release_group(world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    match world.json(&kind::OPERATOR_GROUP, &key.namespace, &key.name) {
        None => operatorgroup::plan(world, key, now),
        Some(_) => Plan::nothing(),
    }
}
