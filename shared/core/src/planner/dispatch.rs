//! From a key to the controller that plans for it.

use jiff::Timestamp;

use crate::apiroles;
use crate::copiedcsv;
use crate::csv;
use crate::operator;
use crate::operatorcondition;
use crate::operatorgroup;
use crate::plan::{Controller, Key, Plan};
use crate::settings::Settings;
use crate::world::Reader;

/// Plans for one key: the one function behind running, explaining, auditing and simulating.
pub(super) fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let _ = (settings, world, namespace, name, now);
    match key.controller {
        Controller::CatalogSource => Plan::nothing(),
        Controller::Subscription => Plan::nothing(),
        Controller::Resolution => Plan::nothing(),
        Controller::InstallPlan => Plan::nothing(),
        Controller::OperatorGroup => operatorgroup::plan(world, key, now),
        Controller::Namespace => operatorgroup::plan_namespace(world, key),
        Controller::ClusterServiceVersion => csv::plan(world, key, now),
        Controller::CopiedCsv => copiedcsv::plan(settings, world, key),
        Controller::ProvidedApiRoles => apiroles::plan(world, key),
        Controller::OperatorCondition => operatorcondition::plan(world, key, now),
        Controller::Adoption => operator::plan_adoption(world, key),
        Controller::Operator => operator::plan(world, key),
        Controller::OlmConfig => copiedcsv::plan_config(settings, world, key, now),
    }
}
