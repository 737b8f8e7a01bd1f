//! The final state of Subscriptions, InstallPlans and ClusterServiceVersions, as a table.

use std::collections::BTreeSet;

use olm_core::api::cluster_service_version::{self, Csv};
use olm_core::api::install_plan::{self, InstallPlan};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::subscription::condition_type::RESOLUTION_FAILED;
use olm_core::api::subscription::{State, Subscription};
use olm_core::world::{GroupKind, Reader, World, kind};
use serde_json::Value;

use crate::cli::table::Table;

/// Returns the table of Subscriptions, InstallPlans and ClusterServiceVersions, without copies. With more than `many`,
/// only those that are among `changed` or are not settled.
pub(super) fn table(world: &World, many: usize, changed: &BTreeSet<ObjectRef>) -> Table {
    let world = Reader::new(world);
    let of = |kind: &GroupKind| world.all(kind).map(|object| object.json()).collect::<Vec<&Value>>();
    let subscriptions = of(&kind::SUBSCRIPTION).into_iter().map(subscription);
    let plans = of(&kind::INSTALL_PLAN).into_iter().map(plan);
    // Copies, of which there may be tens of thousands, are stored separately in the World.
    let originals = world.all(&kind::CLUSTER_SERVICE_VERSION).filter(|csv| csv.digest().is_none());
    let csvs = originals.map(|csv| csv.json()).map(csv);
    let mut states: Vec<FinalState<'_>> = subscriptions.chain(plans).chain(csvs).collect();
    if states.len() > many {
        states.retain(|state| !state.is_settled || changed.contains(&ObjectRef::from_object(state.object)));
    }
    let mut table = Table::new(["NAMESPACE", "OBJECT", "STATE", "MESSAGE"]);
    for FinalState { object, state, message, .. } in states {
        let kind = object::text(object, &["kind"]).to_lowercase();
        let name = format!("{kind}/{}", object::name(object));
        table.row([object::namespace(object).to_owned(), name, state.to_owned(), message]);
    }
    table
}

struct FinalState<'w> {
    object: &'w Value,
    state: &'w str,
    message: String,
    is_settled: bool,
}

fn subscription(object: &Value) -> FinalState<'_> {
    let subscription = Subscription::new(object);
    let failed = subscription.conditions().holding(RESOLUTION_FAILED);
    let message = failed.map_or_else(|| subscription.installed_csv(), |condition| condition.message()).to_owned();
    let is_settled = failed.is_none() && subscription.state() == State::AtLatestKnown;
    FinalState { object, state: subscription.state_text(), message, is_settled }
}

fn plan(object: &Value) -> FinalState<'_> {
    let plan = InstallPlan::new(object);
    let message = plan.csv_names().collect::<Vec<_>>().join(", ");
    let is_settled = plan.phase() == install_plan::Phase::Complete;
    FinalState { object, state: plan.phase_text(), message, is_settled }
}

fn csv(object: &Value) -> FinalState<'_> {
    let csv = Csv::new(object);
    let is_settled = csv.phase() == cluster_service_version::Phase::Succeeded;
    FinalState { object, state: csv.phase_text(), message: csv.message().to_owned(), is_settled }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_table_contains_only_changed_or_unsettled_objects() {
        let mut world = World::new();
        let mut changed = BTreeSet::new();
        for (name, phase) in [("rose", "Succeeded"), ("tulip", "Succeeded"), ("weed", "Failed")] {
            let csv = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                "metadata": { "name": name, "namespace": "garden", "uid": name, "resourceVersion": "1" },
                "status": { "phase": phase },
            });
            if name == "tulip" {
                changed.insert(ObjectRef::from_object(&csv));
            }
            world.apply(csv);
        }
        let names = |many| -> Vec<String> {
            let table = table(&world, many, &changed).to_string();
            table.lines().skip(1).map(|l| l.split_whitespace().nth(1).unwrap_or_default().to_owned()).collect()
        };
        let all = ["clusterserviceversion/rose", "clusterserviceversion/tulip", "clusterserviceversion/weed"];
        assert_eq!(names(3), all);
        assert_eq!(names(2), all[1..]);
    }
}
