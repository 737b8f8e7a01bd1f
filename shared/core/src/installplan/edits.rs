//! Edits of an InstallPlan's spec that nobody heeds. What counts are its steps, and that `spec.approved` becomes true
//! (olm-behaviour/installplan.md#phases): who expects more should be told.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::install_plan::{InstallPlan, Phase, Step, is_approved, is_generated};
use crate::api::subscription::Approval;

/// What the spec says, and nobody heeds: sentences whose subject is the plan, without a full stop.
pub fn unheeded(plan: &Value) -> Vec<String> {
    let (view, mut told) = (InstallPlan::of(plan), Vec::new());
    match view.phase() {
        Phase::RequiresApproval if !is_approved(plan) && view.approval() == Approval::Automatic => {
            told.push("spec.approval is Automatic, but it waits for spec.approved: true all the same".to_owned());
        }
        Phase::Installing if !is_approved(plan) => {
            told.push("spec.approved is false, but what has begun is carried out to the end".to_owned());
        }
        _ => {}
    }
    let (named, brought) = (named(plan), brought(plan));
    // Who makes a plan by hand names what it is for, and it brings what that needs as well.
    if is_generated(plan) && !brought.is_empty() && named.iter().collect::<BTreeSet<_>>() != brought.iter().collect() {
        let named = if named.is_empty() { "nothing".to_owned() } else { named.join(", ") };
        let brought = brought.join(", ");
        told.push(format!(
            "spec.clusterServiceVersionNames names {named}, but what counts are its steps, which bring {brought}"
        ));
    }
    told
}

/// The ClusterServiceVersions that a plan brings: those of its steps, in the spec's order where the spec names the same; before it has
/// steps, those that the spec names.
pub(super) fn csvs(plan: &Value) -> Vec<&str> {
    let (named, brought) = (named(plan), brought(plan));
    let is_same = named.iter().collect::<BTreeSet<_>>() == brought.iter().collect();
    if brought.is_empty() || is_same { named } else { brought }
}

fn named(plan: &Value) -> Vec<&str> {
    InstallPlan::of(plan).csv_names().collect()
}

fn brought(plan: &Value) -> Vec<&str> {
    let steps = InstallPlan::of(plan).steps_json().iter();
    let csvs = steps.filter(|step| Step::of(step).is_csv());
    csvs.map(|step| Step::of(step).name()).collect()
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
    fn only_what_is_not_heeded_is_told() {
        let names = ["rose", "pot"];
        for (approval, approved, phase) in [
            ("Manual", false, "RequiresApproval"),
            ("Manual", true, "RequiresApproval"),
            ("Automatic", true, "Installing"),
            ("Manual", false, "Complete"),
        ] {
            let plan = plan(approval, approved, phase, &names);
            assert_eq!(
                (unheeded(&plan), csvs(&plan)),
                (Vec::new(), vec!["rose", "pot"]),
                "{approval} {approved} {phase}"
            );
        }
        let told = |approval, phase| unheeded(&plan(approval, false, phase, &names)).join("; ");
        assert!(told("Automatic", "RequiresApproval").starts_with("spec.approval is Automatic, but it waits for"));
        assert!(told("Manual", "Installing").starts_with("spec.approved is false, but what has begun"));
    }

    #[test]
    fn steps_count_and_not_names() {
        let edited = plan("Manual", false, "RequiresApproval", &["tulip"]);
        assert_eq!(csvs(&edited), ["pot", "rose"]);
        let [told] = &unheeded(&edited)[..] else { panic!("nothing told") };
        assert!(told.contains("names tulip, but what counts are its steps, which bring pot, rose"), "{told}");
        let mut by_hand = plan("Manual", false, "RequiresApproval", &["rose"]);
        by_hand["metadata"] = json!({});
        assert_eq!((csvs(&by_hand), unheeded(&by_hand)), (vec!["pot", "rose"], Vec::new()));
        let bare = json!({ "spec": { "clusterServiceVersionNames": ["tulip"] } });
        assert_eq!((csvs(&bare), unheeded(&bare)), (vec!["tulip"], Vec::new()));
    }
}
