//! Finds edits of an InstallPlan's spec that OLM ignores. Only its steps, and setting `spec.approved` to true, have an effect
//! (olm-behaviour/installplan.md#phases).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::install_plan::{InstallPlan, Phase, Step, is_approved, is_generated};
use crate::api::subscription::Approval;

/// Returns the parts of the spec that are ignored: sentences about the plan, without a full stop.
pub fn ignored_edits(plan: &Value) -> Vec<String> {
    let (view, mut ignored) = (InstallPlan::new(plan), Vec::new());
    match view.phase() {
        Phase::RequiresApproval if !is_approved(plan) && view.approval() == Approval::Automatic => {
            ignored.push("spec.approval is Automatic, but it still waits for spec.approved: true".to_owned());
        }
        Phase::Installing if !is_approved(plan) => {
            ignored.push("spec.approved is false, but an execution that has started is completed".to_owned());
        }
        _ => {}
    }
    let (named, brought) = (named(plan), brought(plan));
    // The spec of a plan that was created by hand need not name dependencies.
    if is_generated(plan) && !brought.is_empty() && named.iter().collect::<BTreeSet<_>>() != brought.iter().collect() {
        let named = if named.is_empty() { "nothing".to_owned() } else { named.join(", ") };
        let brought = brought.join(", ");
        ignored.push(format!(
            "spec.clusterServiceVersionNames names {named}, which is ignored: the steps install {brought}"
        ));
    }
    ignored
}

/// Returns the ClusterServiceVersions that a plan installs: those of its steps, in the spec's order if the spec names the same ones; before
/// it has steps, those that the spec names.
pub(super) fn csvs(plan: &Value) -> Vec<&str> {
    let (named, brought) = (named(plan), brought(plan));
    let is_same = named.iter().collect::<BTreeSet<_>>() == brought.iter().collect();
    if brought.is_empty() || is_same { named } else { brought }
}

fn named(plan: &Value) -> Vec<&str> {
    InstallPlan::new(plan).csv_names().collect()
}

fn brought(plan: &Value) -> Vec<&str> {
    let steps = InstallPlan::new(plan).steps_json().iter();
    let csvs = steps.filter(|step| Step::new(step).is_csv());
    csvs.map(|step| Step::new(step).name()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(approval: &str, approved: bool, phase: &str, names: &[&str]) -> Value {
        let step = |kind: &str, name: &str| json!({ "resolving": "rose", "resource": { "kind": kind, "name": name } });
        json!({
            "metadata": { "ownerReferences": [{ "kind": "Subscription", "name": "rose" }] },
            "spec": { "approval": approval, "approved": approved, "clusterServiceVersionNames": names },
            "status": { "phase": phase, "plan": [
                step("ClusterServiceVersion", "pot"), step("Role", "x"), step("ClusterServiceVersion", "rose"),
            ] },
        })
    }

    #[test]
    fn only_ignored_fields_are_reported() {
        let names = ["rose", "pot"];
        for (approval, approved, phase) in [
            ("Manual", false, "RequiresApproval"),
            ("Manual", true, "RequiresApproval"),
            ("Automatic", true, "Installing"),
            ("Manual", false, "Complete"),
        ] {
            let plan = plan(approval, approved, phase, &names);
            assert_eq!(
                (ignored_edits(&plan), csvs(&plan)),
                (Vec::new(), vec!["rose", "pot"]),
                "{approval} {approved} {phase}"
            );
        }
        let messages = |approval, phase| ignored_edits(&plan(approval, false, phase, &names)).join("; ");
        assert!(
            messages("Automatic", "RequiresApproval").starts_with("spec.approval is Automatic, but it still waits for")
        );
        assert!(messages("Manual", "Installing").starts_with("spec.approved is false, but an execution"));
    }

    #[test]
    fn steps_have_precedence_over_the_names_in_the_spec() {
        let edited = plan("Manual", false, "RequiresApproval", &["tulip"]);
        assert_eq!(csvs(&edited), ["pot", "rose"]);
        let [message] = &ignored_edits(&edited)[..] else { panic!("nothing is reported") };
        assert!(message.contains("names tulip, which is ignored: the steps install pot, rose"), "{message}");
        let mut by_hand = plan("Manual", false, "RequiresApproval", &["rose"]);
        by_hand["metadata"] = json!({});
        assert_eq!((csvs(&by_hand), ignored_edits(&by_hand)), (vec!["pot", "rose"], Vec::new()));
        let bare = json!({ "spec": { "clusterServiceVersionNames": ["tulip"] } });
        assert_eq!((csvs(&bare), ignored_edits(&bare)), (vec!["tulip"], Vec::new()));
    }
}
