//! Kinds that a plan needs and the cluster does not serve.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::Unserved;
use super::simulated_plan::{self, SimulatedPlan};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::install_plan::{Step, StepStatus};
use crate::api::object::Gvk;
use crate::installplan::kind_made;

/// Returns the kinds of steps that neither the cluster serves nor the plan defines, by ClusterServiceVersion and kind.
pub(super) fn missing(simulated: &SimulatedPlan) -> Vec<Unserved> {
    let brought = brought(simulated);
    let api = simulated.before.api();
    let all: BTreeSet<&str> = simulated.steps().iter().map(|s| Step::new(s).resolving()).collect();
    let mut missing: BTreeMap<(&str, Gvk), Unserved> = BTreeMap::new();
    for step in simulated.steps() {
        let gvk = kind_made(step);
        let served = api.served_versions(&gvk.group, &gvk.kind);
        if served.contains(&gvk.version.as_str()) || brought.contains(&gvk) || is_done(step) {
            continue;
        }
        let csv = Step::new(step).resolving();
        let others = all.iter().filter(|other| **other != csv && !other.is_empty());
        let entry = missing.entry((csv, gvk.clone())).or_insert_with(|| Unserved {
            served: served.into_iter().map(str::to_owned).collect(),
            csv: csv.to_owned(),
            subscriptions: simulated.subscriptions_of(csv),
            blocks: others.map(|other| (*other).to_owned()).collect(),
            optional: true,
            gvk,
            ..Unserved::default()
        });
        entry.optional &= Step::new(step).is_optional();
        entry.objects.push(Step::new(step).name().to_owned());
    }
    let mut missing: Vec<Unserved> = missing.into_values().collect();
    for unserved in missing.iter_mut().filter(|unserved| unserved.optional) {
        unserved.blocks.clear();
    }
    missing
}

fn is_done(step: &Value) -> bool {
    let step = Step::new(step);
    step.is_done() || step.status() == StepStatus::NotCreated
}

/// Returns the kinds that the CustomResourceDefinitions of the plan define.
fn brought(simulated: &SimulatedPlan) -> BTreeSet<Gvk> {
    let is_crd = |s: &&Value| Step::new(s).is_crd();
    let mut brought = BTreeSet::new();
    for crd in simulated.steps().iter().filter(is_crd).filter_map(simulated_plan::manifest) {
        let crd = CustomResourceDefinition::new(&crd);
        brought.extend(crd.versions().map(|version| Gvk::new(crd.group(), version.name(), crd.kind())));
    }
    brought
}
