//! From a key to the controller that plans for it.

use jiff::Timestamp;

use crate::plan::{Controller, Key, Plan};
use crate::settings::Settings;
use crate::world::Reader;
use crate::{catalogsource, csv, installplan, subscription};

/// Plans for one key: the one function behind running, explaining, auditing and simulating.
pub(super) fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
    let _ = (settings, world, namespace, name, now);
    match key.controller {
        Controller::CatalogSource => catalogsource::plan(world, key, now),
        Controller::Resolution => subscription::plan(settings, world, key, now),
        Controller::InstallPlan => installplan::plan(settings, world, key, now),
        Controller::OperatorGroup => Plan::nothing(),
        Controller::Namespace => Plan::nothing(),
        Controller::ClusterServiceVersion => csv::plan(world, key, now),
        Controller::CopiedCsv => Plan::nothing(),
        Controller::OperatorCondition => Plan::nothing(),
        Controller::Adoption => Plan::nothing(),
        Controller::Operator => Plan::nothing(),
        Controller::OlmConfig => Plan::nothing(),
    }
}
