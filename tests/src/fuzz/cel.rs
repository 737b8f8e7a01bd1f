//! Rules in the Common Expression Language: parsed, checked, and evaluated within their cost limit.

use olm_core::bundle::Property;
use olm_core::constraint::{Candidate, Constraint, Policy, Rule, Work};
use olm_core::explain::Explanation;
use serde_json::{Value, json};

use super::parts::parts;

/// Maximum length of an error message. A rule has at most twenty thousand bytes.
const LONGEST: usize = 64 << 10;

/// Evaluates a rule; after `>>> properties` a JSON list of properties to evaluate it on, after `>>> constraint` a constraint in
/// JSON.
///
/// # Panics
/// The result is not deterministic, or exceeds the cost limit.
pub(super) fn run(bytes: &[u8]) {
    let (head, parts) = parts(bytes);
    let text = String::from_utf8_lossy(head);
    let part = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.bytes);
    let properties: Option<Vec<Property>> = part("properties").and_then(|json| serde_json::from_slice(json).ok());
    let properties = properties.unwrap_or_else(some_properties);
    match Rule::compile(&text) {
        Ok(rule) => {
            assert_eq!(rule.text(), text);
            let answer = rule.evaluate(&properties);
            assert_eq!(rule.evaluate(&properties), answer);
            short(answer.err());
        }
        Err(error) => short(Some(error)),
    }
    constraint(&json!({ "failureMessage": "no", "cel": { "rule": text } }), &properties);
    if let Some(value) = part("constraint").and_then(|json| serde_json::from_slice(json).ok()) {
        constraint(&value, &properties);
    }
    policy(&text);
}

fn short(error: Option<impl ToString>) {
    let told = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(told.len() <= LONGEST, "an error message of {} bytes", told.len());
}

fn some_properties() -> Vec<Property> {
    let package = json!({ "packageName": "rose", "version": "1.2.0" });
    let api = json!({ "group": "garden.example.com", "version": "v1", "kind": "Rose" });
    vec![
        Property::new("olm.package", package),
        Property::new("olm.gvk", api),
        Property::new("note", json!([1, 2.5, null, true, "x", { "a": [[]] }])),
    ]
}

fn constraint(value: &Value, properties: &[Property]) {
    let work = Work::default();
    let property = Property::new("olm.constraint", value.clone());
    match Constraint::of_within(&property, &work) {
        Ok(Some(constraint)) => {
            let candidate = Candidate { package: "rose", version: None, properties };
            let met = constraint.is_met_within(&candidate, &work);
            assert_eq!(constraint.is_met_by(&candidate), met || work.is_spent() && constraint.is_met_by(&candidate));
            let _ = constraint.to_string();
            // After enough requests the budget is spent, and then the result is no.
            if work.is_spent() {
                assert!(!constraint.is_met_within(&candidate, &work));
            }
        }
        Ok(None) => {}
        Err(error) => short(Some(error)),
    }
}

/// Evaluates the same text as a policy on explanations.
fn policy(text: &str) {
    let document = serde_json::to_value(Explanation::default()).unwrap_or_default();
    match Policy::compile(text, &document) {
        Ok(policy) => match (policy.holds(&document), policy.failing(&document)) {
            (Ok(holds), Ok(failing)) => assert_eq!(holds, failing.is_none()),
            (Err(a), Err(b)) => {
                assert_eq!(a, b);
                short(Some(a));
            }
            (holds, failing) => assert!(holds.is_err() == failing.is_err(), "{holds:?}, {failing:?}"),
        },
        Err(error) => short(Some(error)),
    }
}
