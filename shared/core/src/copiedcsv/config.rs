//! OLMConfig/cluster: whether members of global OperatorGroups are copied, and a condition that reports whether this is the
//! case (olm-behaviour/operatorgroup.md#disabled-copies).

use std::rc::Rc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Copies, Offered, accepts_copy, in_order, offering_group};
use crate::api::conditions::{self, Condition, Conditions, FALSE, TRUE};
use crate::api::object;
use crate::membership::{self, Group};
use crate::plan::{Action, Controller, Key, Plan};
use crate::settings::Settings;
use crate::world::{IndexKey, Reader, kind};

/// The name of the only OLMConfig that is read.
pub const NAME: &str = "cluster";
const TYPE: &str = "DisabledCopiedCSVs";

/// Returns whether copies of global operators are disabled.
pub fn disables_copies(world: &Reader<'_>) -> bool {
    world.json(&kind::OLM_CONFIG, "", NAME).is_some_and(disables)
}

fn disables(config: &Value) -> bool {
    object::at(config, &["spec", "features", "disableCopiedCSVs"]).as_bool().unwrap_or_default()
}

/// Plans the status of an OLMConfig. While copies are being written the status is not: it is written when copies are as
/// desired, or when the API server rejects them.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let Some(config) = world.json(&kind::OLM_CONFIG, "", &key.name).filter(|_| key.name == NAME) else {
        return Plan::nothing();
    };
    let mut conditions = Conditions::new(config).json().to_vec();
    let old = Conditions::new(config).find(TYPE);
    let says = |wanted: &Value| old.is_some_and(|old| object::covers(old.json, wanted));
    let good = condition(config, true);
    let mut refused = Vec::new();
    let mut others = Vec::new();
    for member in members(settings, world) {
        let is_refused = !world.refusals(&member.key()).is_empty();
        if is_refused { refused.push(member) } else { others.push(member) }
    }
    let wanted = if refused.iter().any(|member| member.is_wrong(world)) {
        condition(config, false)
    } else if says(&good) || others.iter().any(|member| member.is_wrong(world)) {
        // Without refusals the copies converge: they are not read here while they change.
        return Plan::nothing();
    } else {
        good
    };
    if says(&wanted) {
        return Plan::nothing();
    }
    let since = conditions::transition_time(&conditions, TYPE, Condition::new(&wanted).status(), now);
    let mut wanted = wanted;
    object::map_mut(&mut wanted, &[]).insert("lastTransitionTime".to_owned(), since);
    conditions::set(&mut conditions, wanted);
    let mut new = config.clone();
    object::map_mut(&mut new, &["status"]).insert("conditions".to_owned(), conditions.into());
    Plan::act(vec![Action::UpdateStatus(new)])
}

/// Returns the condition that reports whether copies are as desired, without its time.
fn condition(config: &Value, good: bool) -> Value {
    let (status, reason, message) = match (disables(config), good) {
        (false, true) => (FALSE, "CopiedCSVsEnabled", "Copied CSVs are enabled and present across the cluster"),
        (false, false) => {
            (FALSE, "CopiedCSVsEnabled", "Copied CSVs are enabled and at least one copied CSVs is missing")
        }
        (true, false) => (
            FALSE,
            "CopiedCSVsDisabled",
            "Copied CSVs are disabled and at least one unexpected copied CSV was found for an operator installed in AllNamespace mode",
        ),
        (true, true) => (
            TRUE,
            "CopiedCSVsDisabled",
            "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
        ),
    };
    json!({ "type": TYPE, "status": status, "reason": reason, "message": message })
}

/// A member of a global OperatorGroup.
struct Member<'w> {
    namespace: &'w str,
    name: &'w str,
    offered: Rc<Offered<'w>>,
}

/// Returns the members of global OperatorGroups that are offered elsewhere.
fn members<'w>(settings: &Settings, world: &Reader<'w>) -> Vec<Member<'w>> {
    let mut members = Vec::new();
    for group in world.indexed(IndexKey::Target(String::new())) {
        let group = Group::new(group.json());
        let offered = Rc::new(Offered::new(settings, world, group));
        let csvs = membership::originals(world, group.namespace());
        let csvs = csvs.filter(|csv| offering_group(world, csv) == Some(group));
        members.extend(csvs.map(|csv| Member {
            namespace: object::namespace(csv),
            name: object::name(csv),
            offered: offered.clone(),
        }));
    }
    members
}

impl Member<'_> {
    /// Returns the key that plans its copies.
    fn key(&self) -> Key {
        Key::new(Controller::CopiedCsv, self.namespace, self.name)
    }

    /// Returns whether it lacks a copy, or has a superfluous one.
    fn is_wrong(&self, world: &Reader<'_>) -> bool {
        let copies = Copies::find(world, self.namespace, self.name);
        let mut is_offered = in_order(self.offered.namespaces.iter().map(|namespace| (*namespace, ())));
        let mut copy_in = in_order(copies.0.iter().copied());
        let unexpected = copies.0.iter().any(|(namespace, _)| is_offered(namespace).is_none());
        let mut missing = self.offered.namespaces.iter().filter(|namespace| copy_in(namespace).is_none());
        unexpected || missing.any(|namespace| accepts_copy(world, namespace, self.name))
    }
}
