//! From a key to the controller that plans for it.

use jiff::Timestamp;

use crate::api::object;
use crate::plan::{Controller, Key, Plan};
use crate::settings::Settings;
use crate::world::{Reader, kind};
use crate::{
    apiroles, catalogsource, copiedcsv, csv, installplan, operator, operatorcondition, operatorgroup, subscription,
};

/// Plans for one key: the one function behind running, explaining, auditing and simulating.
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

/// Plans for one key of a ClusterServiceVersion that is being deleted, or is gone; nothing for one that stays.
pub(super) fn release(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let found = world.json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name);
    match (key.controller, found) {
        (Controller::ClusterServiceVersion, None) => csv::plan(world, key, now),
        (Controller::ClusterServiceVersion, Some(json)) if object::is_deleting(json) => csv::plan(world, key, now),
        (Controller::CopiedCsv, None) => copiedcsv::plan(settings, world, key, now),
        _ => Plan::nothing(),
    }
}
