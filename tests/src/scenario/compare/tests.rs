use serde_json::json;

use super::*;

/// Returns the lines for one object that differs.
fn lines(golden: Value, found: Value) -> Vec<String> {
    let mut out = Vec::new();
    diff(&golden, &found, "", &mut out);
    out.iter().map(ToString::to_string).collect()
}

fn recording<const N: usize>(steps: [Step; N]) -> Recording {
    Recording { unstable: vec![], steps: steps.into() }
}

fn step(name: &str) -> Step {
    Step { name: name.to_owned(), ..Step::default() }
}

#[test]
fn equal_values_do_not_differ() {
    let rose = json!({"kind": "Rose", "list": [1, {"a": null}], "text": "red"});
    assert!(lines(rose.clone(), rose).is_empty());
}

#[test]
fn every_kind_of_difference_has_its_line() {
    let golden =
        json!({"kind": "Rose", "gone": 1, "same": {"deep": "a"}, "list": [1, 2], "longer": ["x"], "twice": ["y", "y"]});
    let found = json!({"kind": "Rose", "new": true, "same": {"deep": "b"}, "list": [1, 3], "longer": ["x", {"z": "ü"}], "twice": ["y"]});
    let expected = [
        "- .gone: 1",
        "! .list[1]: expected 2, found 3",
        "+ .longer[]: {\"z\": \"ü\"}",
        "+ .new: true",
        "! .same.deep: expected \"a\", found \"b\"",
        "! .twice: 2 entries expected, 1 found",
    ];
    assert_eq!(lines(golden, found), expected);
}

#[test]
fn long_values_are_truncated() {
    let line = &lines(json!({"a": "x".repeat(398)}), json!({}))[0];
    assert_eq!(line, &format!("- .a: \"{}\"…", "x".repeat(398)));
    let line = &lines(json!({"a": "x".repeat(397)}), json!({}))[0];
    assert_eq!(line, &format!("- .a: \"{}\"", "x".repeat(397)));
}

#[test]
fn unstable_matches_anything_and_nothing() {
    assert!(
        lines(json!({"a": UNSTABLE, "b": UNSTABLE, "c": {"d": UNSTABLE}}), json!({"b": [1], "c": {"d": {}}}))
            .is_empty()
    );
    // Entries that exist only sometimes; the others are identified by type, or by kind, namespace and name.
    let golden = json!([{"type": "A", "<unstable>": UNSTABLE}, {"type": "B", "status": "True"}, {"kind": "K", "name": "n", "x": 1}]);
    let b = json!({"type": "B", "status": "True"});
    let k = json!({"kind": "K", "name": "n", "x": 1});
    assert!(lines(golden.clone(), json!([k, b])).is_empty());
    assert!(lines(golden.clone(), json!([b, {"type": "A", "status": "False"}, k])).is_empty());
    let expected = [
        "! [B].status: expected \"True\", found \"False\"",
        "+ [C]: {\"type\": \"C\"}",
        "- [K//n]: {\"kind\": \"K\", \"name\": \"n\", \"x\": 1}",
    ];
    assert_eq!(lines(golden, json!([{"type": "B", "status": "False"}, {"type": "C"}])), expected);
}

#[test]
fn the_order_of_conditions_is_ignored() {
    let a = json!({"type": "A", "status": "True"});
    let b = json!({"type": "B", "status": "True"});
    assert!(lines(json!([a, b]), json!([b, a])).is_empty());
    let other = ["! [0].status: expected \"True\", found \"False\""];
    assert_eq!(lines(json!([a, b]), json!([b, {"type": "A", "status": "False"}])), other);
    // Two of the same type are a history.
    assert_eq!(lines(json!([a, a, b]), json!([a, b, a])).len(), 2);
    assert_eq!(lines(json!([a]), json!([b])), ["! [0].type: expected \"A\", found \"B\""]);
}

#[test]
fn a_history_may_have_further_entries_in_between() {
    let golden = json!({"conditions": {"<these in this order, others may be between>": ["a", "b", "c"]}});
    assert!(lines(golden.clone(), json!({"conditions": ["a", "x", "b", "c", "y"]})).is_empty());
    let missing = ["- .conditions[] in this order: \"b\"", "- .conditions[] in this order: \"c\""];
    assert_eq!(lines(golden, json!({"conditions": ["a", "c"]})), missing);
}

#[test]
fn objects_are_compared_step_by_step() {
    let with = |objects: &[(&str, Value)]| Step {
        objects: objects.iter().map(|(id, object)| ((*id).to_owned(), object.clone())).collect(),
        ..step("plant")
    };
    let golden =
        with(&[("Rose/a", json!({"x": 1})), ("Rose/b", json!({})), ("Rose/d", json!(UNSTABLE)), ("Rose/e", json!({}))]);
    let found =
        with(&[("Rose/a", json!({"x": 2})), ("Rose/c", json!({})), ("Rose/d", json!({"y": 1})), ("Rose/e", json!({}))]);
    let differences = compare(&recording([golden.clone()]), &recording([found]));
    let expected = [
        Difference::new("plant", "Rose/a", What::Other(".x".to_owned(), json!(1), json!(2))),
        Difference::new("plant", "Rose/b", What::ObjectMissing),
        Difference::new("plant", "Rose/c", What::ObjectExtra(json!({}))),
    ];
    assert_eq!(differences, expected);
    assert_eq!(tally(&recording([golden.clone()]), &differences), (1, 4));

    let short = compare(&recording([golden]), &recording([]));
    assert_eq!(short[0], Difference::new("-", "-", What::Step("1 steps expected, 0 found".to_owned())));
}

#[test]
fn events_may_occur_in_another_step_and_some_are_optional() {
    let event = |message: &str| json!({"object": "Rose/garden/red", "message": message});
    let with =
        |name: &str, messages: &[&str]| Step { events: messages.iter().map(|m| event(m)).collect(), ..step(name) };
    let mut golden = recording([with("1", &["a", "b"]), with("2", &["c"])]);
    golden.unstable.push("1: event {\"message\": \"loose\", \"object\": \"Rose/garden/red\"}".to_owned());
    assert!(compare(&golden, &recording([with("1", &["a", "loose"]), with("2", &["b", "c"])])).is_empty());
    let differences = compare(&golden, &recording([with("1", &["a", "d"]), with("2", &["b"])]));
    let expected = [What::EventMissing(event("c")), What::EventExtra(event("d"))];
    assert_eq!(differences, expected.map(|what| Difference::new("all steps", "events", what)));
}

#[test]
fn transitions_are_a_subsequence_of_the_observed_states() {
    let with = |states: &[&str]| Step {
        saw: [("Rose/red".to_owned(), states.iter().map(|state| json!([state])).collect())].into(),
        ..step("plant")
    };
    let golden = recording([with(&["Seed", "Bud", "Bloom"])]);
    assert!(compare(&golden, &recording([with(&["Seed", "Sprout", "Bud", "Bloom", "Bud"])])).is_empty());
    let differences = compare(&golden, &recording([with(&["Seed", "Bloom"])]));
    let missing =
        ["Bud", "Bloom"].map(|state| Difference::new("plant", "Rose/red", What::TransitionMissing(json!([state]))));
    assert_eq!(differences, missing);
    assert_eq!(differences[0].what.to_string(), "- transition [\"Bud\"] not seen in this order");
}

#[test]
fn faults_and_unsettled_steps_are_differences() {
    let restless = Step { unsettled: true, faults: vec!["not reached: Rose/red exists".to_owned()], ..step("plant") };
    let differences = compare(&recording([step("plant")]), &recording([restless.clone()]));
    assert_eq!(differences.len(), 2);
    assert_eq!(differences[0].what, What::Step("not reached: Rose/red exists".to_owned()));
    assert_eq!(differences[0].path(), "step");
    // If the golden did not settle, no more is expected of the recording.
    let golden = Step { unsettled: true, ..step("plant") };
    assert_eq!(compare(&recording([golden]), &recording([restless])).len(), 1);
}
