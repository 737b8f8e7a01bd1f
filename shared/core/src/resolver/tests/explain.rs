//! Explanations, compared as text.

use super::*;
use crate::resolver::explain::{Explanation, explain};

fn told(catalogs: &[Given], there: &[&str], subscriptions: &[&str]) -> String {
    with_inputs(catalogs, there, subscriptions, |inputs| {
        let explanation = explain(inputs, None);
        assert_eq!(explanation.is_resolved(), resolve(inputs).is_ok());
        if let Explanation::Failed { message, repairs, .. } = &explanation {
            assert_eq!(*message, resolve(inputs).unwrap_err().to_string());
            assert!(!repairs.is_empty(), "deleting Subscriptions always helps here");
        }
        assert!(serde_json::to_value(&explanation).unwrap()["result"].is_string());
        explanation.to_string()
    })
}

/// A case: its description, catalogs, installed CSVs, Subscriptions.
type Case = (&'static str, &'static [Given], Lines, Lines);

const MAIN: Lines = &[
    "rose.v1.0.0 stable default",
    "rose.v1.1.0 stable replaces=rose.v1.0.0 needs=Pot",
    "rose.v2.0.0 stable replaces=rose.v1.1.0",
    "rose.v3.0.0 fast replaces=rose.v2.0.0",
    "pot.v1.0.0 stable api=Pot",
    "pot.v2.0.0 fast api=Pot",
    "pot.v3.0.0 fast api=Pot replaces=pot.v2.0.0",
    "tulip.v1.0.0 stable wants=pot:<2.0.0",
    "daisy.v1.0.0 stable wants=pot:>=2.0.0",
    "lily.v1.0.0 stable needs=Vase",
    "lily.v0.9.0 old",
    "moss.v1.0.0 stable deprecated replaces=moss.v0.9.0",
    "moss.v0.9.0 stable",
];
const OTHER: Lines = &["rose.v2.0.0 stable", "pot.v1.5.0 stable api=Pot"];
const ONE: &[Given] = &[("main", "olm", 0, MAIN)];
const TWO: &[Given] = &[("main", "olm", 0, MAIN), ("other", "olm", 10, OTHER)];

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("the head of a channel", TWO, &[], &["rose rose stable"]),
    ("an update, and a dependency from its own catalog", TWO, &["rose.v1.0.0 x"], &["rose rose stable at=rose.v1.0.0"]),
    ("a head that is deprecated", ONE, &[], &["moss moss stable"]),
    ("a dependency that another one narrows", ONE, &[], &["rose rose stable starting=rose.v1.1.0", "daisy daisy stable"]),
    ("nothing to do", ONE, &["rose.v2.0.0 x"], &["rose rose stable at=rose.v2.0.0"]),
    ("ranges that exclude each other", ONE, &[], &["tulip tulip stable", "daisy daisy stable"]),
    ("nothing provides an API", ONE, &[], &["lily lily stable"]),
    ("a misspelled package", ONE, &[], &["lily lilly stable"]),
    ("no such channel", ONE, &[], &["pot pot slow"]),
    ("no such startingCSV", ONE, &[], &["pot pot fast starting=pot.v1.0.0"]),
    ("no such catalog", TWO, &[], &["rose rose stable from=mane"]),
    ("an unmanaged operator is in the way", ONE, &["pot.v1.0.0 x api=Pot"], &["daisy daisy stable"]),
];

/// The expected text is in a file next to this one, so that it can be read as a whole.
#[test]
fn explanations_as_text() {
    let mut all = String::new();
    for (title, catalogs, there, subscriptions) in CASES {
        all += &format!("# {title}\n{}\n", told(catalogs, there, subscriptions));
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/resolver/tests/explanations.txt");
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    assert!(all == expected, "explanations.txt should be:\n{all}");
}
