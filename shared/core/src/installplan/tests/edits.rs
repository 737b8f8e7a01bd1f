//! Tests of edits of the spec while a plan waits or is executed.

use super::*;

fn edited(approval: &str, approved: bool, phase: &str, names: &[&str]) -> Value {
    let mut json = install_plan(phase, &[csv_step()]);
    json["metadata"]["ownerReferences"] = json!([{ "kind": "Subscription", "name": "rose" }]);
    json["spec"] = json!({ "approval": approval, "approved": approved, "clusterServiceVersionNames": names });
    json
}

fn planned(json: Value) -> Plan {
    plan(&world(&[json]), at(0))
}

#[test]
fn only_spec_approved_starts_a_plan() {
    let waits = planned(edited("Automatic", false, "RequiresApproval", &["rose.v2.0.0"]));
    assert!(waits.actions.is_empty());
    assert!(
        matches!(&waits.reasons[..], [Reason::ApprovalNeeded { .. }, Reason::Ignored { .. }]),
        "{:?}",
        waits.reasons
    );
    let begins = planned(edited("Manual", true, "RequiresApproval", &["rose.v2.0.0"]));
    assert!(!begins.actions.is_empty() && begins.reasons.is_empty(), "{:?}", begins.reasons);
}

#[test]
fn a_started_plan_continues_when_its_approval_is_revoked() {
    let names = ["rose.v2.0.0"];
    let (approved, taken_back) =
        (edited("Manual", true, "Installing", &names), edited("Manual", false, "Installing", &names));
    let (goes_on, told) = (planned(approved), planned(taken_back));
    let verbs = |plan: &Plan| plan.actions.iter().map(|a| (a.verb(), a.target())).collect::<Vec<_>>();
    assert!(verbs(&goes_on).iter().any(|(verb, _)| *verb == Verb::Create));
    assert_eq!(verbs(&goes_on), verbs(&told));
    assert!(matches!(told.reasons.last(), Some(Reason::Ignored { message, .. }) if message.contains("is completed")));
}

#[test]
fn the_steps_are_installed_and_not_the_names_in_the_spec() {
    let waits = planned(edited("Manual", false, "RequiresApproval", &["tulip.v1.0.0"]));
    let [Reason::ApprovalNeeded { csvs, .. }, Reason::Ignored { message, .. }] = &waits.reasons[..] else {
        panic!("{:?}", waits.reasons)
    };
    assert_eq!(csvs, &["rose.v2.0.0"]);
    assert!(message.contains("tulip.v1.0.0"), "{message}");
    let goes_on = planned(edited("Automatic", true, "Installing", &["tulip.v1.0.0"]));
    assert!(goes_on.actions.iter().any(|a| a.target().name == "rose.v2.0.0"), "{:?}", goes_on.actions);
}
