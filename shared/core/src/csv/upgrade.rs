//! Decides whether a ClusterServiceVersion may be replaced now (olm-behaviour/csv.md#upgrades).

use super::siblings;
use crate::api::cluster_service_version::Csv;
use crate::api::conditions::{Condition, Conditions, FALSE, UPGRADEABLE};
use crate::api::object;
use crate::world::{Reader, kind};

/// Returns why the operator of `old` must not be upgraded now, according to the OperatorCondition of its name; `None` when
/// it may be.
pub(super) fn objection(world: &Reader<'_>, old: Csv<'_>) -> Option<String> {
    let condition = world.json(&kind::OPERATOR_CONDITION, old.namespace(), old.name())?;
    let refusal = |c: Condition<'_>| Some(format!("the operator is not upgradeable: {}", c.message()));
    let overrides = Conditions::from_list(object::list(condition, &["spec", "overrides"]));
    if let Some(forced) = overrides.find(UPGRADEABLE) {
        return if forced.is_true() { None } else { refusal(forced) };
    }
    let reported = Conditions::new(condition).find(UPGRADEABLE)?;
    let status = reported.status();
    if reported.observed_generation() != Some(object::generation(condition)) {
        return Some(format!("the operatorcondition status \"Upgradeable\"=\"{status}\" is outdated"));
    }
    if status == FALSE { refusal(reported) } else { None }
}

/// Returns the newest of the chain of replacements that starts at `csv`, unless the chain is a cycle.
pub(super) fn newest<'w>(world: &Reader<'w>, csv: Csv<'_>) -> Option<Csv<'w>> {
    let mut seen = vec![csv.name().to_owned()];
    let mut newest: Option<Csv<'w>> = None;
    loop {
        let next = newest
            .map_or_else(|| siblings::replacements(world, csv), |n| siblings::replacements(world, n))
            .into_iter()
            .next();
        let Some(next) = next else { return newest };
        if seen.iter().any(|name| name == next.name()) {
            return None;
        }
        seen.push(next.name().to_owned());
        newest = Some(next);
    }
}
