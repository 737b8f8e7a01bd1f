//! Decides whether a ClusterServiceVersion may be replaced now (olm-behaviour/csv.md#upgrades).

use serde_json::Value;

use super::siblings;
use crate::api::cluster_service_version::Csv;
use crate::api::object;
use crate::world::{Reader, kind};

/// Returns why the operator of `old` must not be upgraded now, according to the OperatorCondition of its name; `None` when
/// it may be.
pub(super) fn objection(world: &Reader<'_>, old: Csv<'_>) -> Option<String> {
    let condition = world.json(&kind::OPERATOR_CONDITION, old.namespace(), old.name())?;
    let upgradeable = |path: &[&str]| -> Option<&Value> {
        object::list(condition, path).iter().find(|c| object::text(c, &["type"]) == "Upgradeable")
    };
    let refusal = |c: &Value| Some(format!("the operator is not upgradeable: {}", object::text(c, &["message"])));
    if let Some(forced) = upgradeable(&["spec", "overrides"]) {
        return if object::text(forced, &["status"]) == "True" { None } else { refusal(forced) };
    }
    let reported = upgradeable(&["status", "conditions"])?;
    let status = object::text(reported, &["status"]);
    if object::at(reported, &["observedGeneration"]).as_i64() != Some(object::generation(condition)) {
        return Some(format!("the operatorcondition status \"Upgradeable\"=\"{status}\" is outdated"));
    }
    if status == "False" { refusal(reported) } else { None }
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
