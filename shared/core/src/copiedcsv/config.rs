//! OLMConfig/cluster: whether members of global OperatorGroups are copied, and a condition that says whether that is so yet
//! (reference/olm-operator.md §5.4).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Copies, Offered, accepts_copy, offering_group};
use crate::api::object;
use crate::membership::{self, Group};
use crate::plan::{Action, Controller, Key, Plan};
use crate::settings::Settings;
use crate::world::{IndexKey, Reader, kind};

/// The one OLMConfig that counts.
const NAME: &str = "cluster";
const TYPE: &str = "DisabledCopiedCSVs";

/// Are copies of global operators switched off?
pub(super) fn disables_copies(world: &Reader<'_>) -> bool {
    world.json(&kind::OLM_CONFIG, "", NAME).is_some_and(disables)
}

fn disables(config: &Value) -> bool {
    object::at(config, &["spec", "features", "disableCopiedCSVs"]).as_bool().unwrap_or_default()
}

/// Plans the status of an OLMConfig. While copies are on their way nothing is written: it is told when they are as they should be,
/// or when the API server refuses to make them so.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let Some(config) = world.json(&kind::OLM_CONFIG, "", &key.name).filter(|_| key.name == NAME) else {
        return Plan::nothing();
    };
    let wrong: Vec<Key> = wrongly_copied(settings, world);
    let refused = |key: &Key| !world.refusals(key).is_empty();
    if !wrong.is_empty() && !wrong.iter().any(refused) {
        return Plan::nothing();
    }
    let (status, reason, message) = match (disables(config), wrong.is_empty()) {
        (false, true) => ("False", "CopiedCSVsEnabled", "Copied CSVs are enabled and present across the cluster"),
        (false, false) => {
            ("False", "CopiedCSVsEnabled", "Copied CSVs are enabled and at least one copied CSVs is missing")
        }
        (true, false) => (
            "False",
            "CopiedCSVsDisabled",
            "Copied CSVs are disabled and at least one unexpected copied CSV was found for an operator installed in AllNamespace mode",
        ),
        (true, true) => (
            "True",
            "CopiedCSVsDisabled",
            "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
        ),
    };
    let mut wanted = json!({ "type": TYPE, "status": status, "reason": reason, "message": message });
    let mut conditions = object::list(config, &["status", "conditions"]).to_vec();
    let old = conditions.iter_mut().find(|c| object::text(c, &["type"]) == TYPE);
    if old.as_ref().is_some_and(|old| object::covers(old, &wanted)) {
        return Plan::nothing();
    }
    let since = old
        .as_ref()
        .filter(|old| object::text(old, &["status"]) == status)
        .map_or_else(|| object::time(now), |old| object::text(old, &["lastTransitionTime"]).to_owned());
    object::map_mut(&mut wanted, &[]).insert("lastTransitionTime".to_owned(), since.into());
    match old {
        Some(old) => *old = wanted,
        None => conditions.push(wanted),
    }
    let mut new = config.clone();
    object::map_mut(&mut new, &["status"]).insert("conditions".to_owned(), conditions.into());
    Plan::act(vec![Action::UpdateStatus(new)])
}

/// The members of global OperatorGroups that lack a copy, or have one too many: the keys that plan for them.
fn wrongly_copied(settings: &Settings, world: &Reader<'_>) -> Vec<Key> {
    let mut wrong = Vec::new();
    for group in world.indexed(IndexKey::Target(String::new())) {
        let group = Group(group.json());
        let offered = Offered::of(settings, world, group);
        for csv in membership::originals(world, group.namespace()) {
            if offering_group(world, csv) != Some(group) {
                continue;
            }
            let name = object::name(csv);
            let copies = Copies::of(world, group.namespace(), name);
            let unexpected = copies.0.keys().any(|n| !offered.contains(n));
            let mut missing = offered.namespaces.iter().filter(|n| !copies.0.contains_key(n.as_str()));
            if unexpected || missing.any(|n| accepts_copy(world, n, name)) {
                wrong.push(Key::new(Controller::CopiedCsv, group.namespace(), name));
            }
        }
    }
    wrong
}
