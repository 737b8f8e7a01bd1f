//! Writes the status of a ClusterServiceVersion (olm-behaviour/csv.md#status).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Step;
use crate::api::cluster_service_version::{Csv, Phase, reason as reasons};
use crate::api::object;
use crate::plan::{Action, Emit};

/// Maximum number of entries in `status.conditions`.
const HISTORY: usize = 20;

/// The next phase, with its reason and message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transition {
    pub(super) phase: Phase,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Transition {
    pub(super) fn to(phase: Phase, reason: &'static str, message: impl Into<String>) -> Self {
        Self { phase, reason, message: message.into() }
    }
}

/// Returns the actions that record the result of a step. Empty when the status is up to date.
pub(super) fn record(csv: Csv<'_>, step: &Step, now: Timestamp) -> Vec<Action> {
    let mut new = csv.json.clone();
    let status = object::map_mut(&mut new, &["status"]);
    status.entry("cleanup").or_insert_with(|| json!({}));
    let mut changed = false;
    if let Some(requirements) = &step.requirements {
        let old = status.get("requirementStatus").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if !is_permutation(old, requirements) {
            changed = true;
            status.insert("requirementStatus".to_owned(), requirements.as_slice().into());
        }
    }
    if let Some((since, until)) = step.certificates {
        for (field, at) in [("certsLastUpdated", since), ("certsRotateAt", until)] {
            let time = Value::from(object::time(at));
            changed |= status.get(field) != Some(&time);
            status.insert(field.to_owned(), time);
        }
    }
    let mut actions = Vec::new();
    let moves = step.transition.as_ref().filter(|t| {
        (t.phase.as_str(), t.reason, t.message.as_str()) != (csv.phase_text(), csv.reason(), csv.message())
    });
    if let Some(Transition { phase, reason, message }) = moves {
        changed = true;
        let time = Value::from(object::time(now));
        status.insert("lastUpdateTime".to_owned(), time.clone());
        if phase.as_str() != csv.phase_text() || !status.contains_key("lastTransitionTime") {
            status.insert("lastTransitionTime".to_owned(), time.clone());
        }
        for (field, text) in [("phase", phase.as_str()), ("reason", *reason), ("message", message.as_str())] {
            status.insert(field.to_owned(), text.into());
        }
        let condition = json!({
            "phase": phase,
            "reason": reason,
            "message": message,
            "lastUpdateTime": time,
            "lastTransitionTime": status.get("lastTransitionTime"),
        });
        append(status, condition);
        if *reason != reasons::DETECTED_CHANGE {
            actions.push(Action::Emit(Emit {
                regarding: csv.json.clone(),
                warning: *phase == Phase::Failed,
                reason: (*reason).to_owned(),
                message: message.clone(),
            }));
        }
    }
    if changed {
        actions.insert(0, Action::UpdateStatus(new));
    }
    actions
}

/// Returns whether the requirements differ at most in their order. OLM checks the ServiceAccounts of a ClusterServiceVersion in the
/// random order of a Go map: its order is retained, so that a cluster changes hands without a write.
fn is_permutation(old: &[Value], new: &[Value]) -> bool {
    if old == new {
        return true;
    }
    let mut rest: Vec<&Value> = old.iter().collect();
    old.len() == new.len()
        && new.iter().all(|entry| {
            let found = rest.iter().position(|known| *known == entry);
            found.map(|index| rest.swap_remove(index)).is_some()
        })
}

/// Appends to the history unless the last entry has the same phase and reason.
fn append(status: &mut serde_json::Map<String, Value>, condition: Value) {
    let history = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(history) = history.as_array_mut() else { return };
    let same = |field| history.last().is_some_and(|l| object::text(l, &[field]) == object::text(&condition, &[field]));
    if same("phase") && same("reason") {
        return;
    }
    history.push(condition);
    let surplus = history.len().saturating_sub(HISTORY);
    history.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_requirements_is_retained_and_other_differences_are_not() {
        let account = |name: &str, met: &str| json!({ "kind": "ServiceAccount", "name": name, "status": met });
        let known = [account("a", "Present"), account("b", "Present"), account("b", "Present")];
        let [a, b, _] = known.clone();
        for permutation in [[b.clone(), a.clone(), b.clone()], [b.clone(), b.clone(), a.clone()]] {
            assert!(is_permutation(&known, &permutation));
        }
        assert!(!is_permutation(&known, &[a.clone(), a.clone(), b.clone()]), "other numbers of equal entries");
        assert!(!is_permutation(&known, &known[..2]));
        assert!(!is_permutation(&known, &[a, b, account("b", "NotPresent")]));
    }
}
