//! Compares the findings with the recorded output of `operator-sdk bundle validate`, for each bundle and choice of validators.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;
use crate::api::object::{list, text};
use crate::finding::Severity;
use crate::testing;

/// The differences, with their reasons.
const DIFFERENCES: &str = include_str!("recorded.tsv");

/// A permitted difference.
struct Difference {
    bundle: String,
    suite: String,
    ours: bool,
    text: String,
}

impl Difference {
    fn read() -> Vec<Self> {
        let lines = DIFFERENCES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let read = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [bundle, suite, whose, text, why] = fields[..] else { panic!("not five fields: {line}") };
            assert!(!why.is_empty(), "without a reason: {line}");
            let ours = match whose {
                "ours" => true,
                "theirs" => false,
                other => panic!("{other} is neither ours nor theirs"),
            };
            Self { bundle: bundle.to_owned(), suite: suite.to_owned(), ours, text: text.to_owned() }
        };
        lines.map(read).collect()
    }

    /// Returns whether it permits a message that only one side has. `*` stands for any end of a bundle or suite; the text is a part of the message.
    fn permits(&self, bundle: &str, suite: &str, ours: bool, message: &str) -> bool {
        let is = |pattern: &str, text: &str| match pattern.strip_suffix('*') {
            Some(start) => text.starts_with(start),
            None => pattern == text,
        };
        self.ours == ours && is(&self.bundle, bundle) && is(&self.suite, suite) && message.contains(&self.text)
    }
}

fn validators(suite: &str) -> BTreeSet<Validator> {
    let mut validators = BTreeSet::from([Validator::Default]);
    match suite {
        "default" => {}
        "operatorframework" => validators.extend(Validator::OPERATOR_FRAMEWORK),
        name => {
            let name = name.strip_prefix("name=").unwrap();
            validators.extend(Validator::ALL.into_iter().filter(|validator| validator.name() == name));
            assert_eq!(validators.len(), 2, "{name} is unknown");
        }
    }
    validators
}

/// Returns the messages of a recorded output in our form: without level and value; a value that the message does not contain precedes
/// it, unless it is the name of the ClusterServiceVersion.
fn normalised(csv: &str, bundle: &str, output: &Value) -> Vec<(Severity, String)> {
    let severity = if text(output, &["type"]) == "error" { Severity::Error } else { Severity::Warning };
    let message = text(output, &["message"]);
    if let Some(format) =
        message.strip_prefix(&format!("error validating format in {bundle}: Bundle validation errors: "))
    {
        let separated = format.replace(",Missing ", "\nMissing ").replace(",Expecting ", "\nExpecting ");
        return separated.lines().map(|line| (severity, line.to_owned())).collect();
    }
    let rest = message.strip_prefix("Error: ").or_else(|| message.strip_prefix("Warning: ")).unwrap_or(message);
    let (field, rest) = match rest.strip_prefix("Field ").and_then(|rest| rest.split_once(", Value ")) {
        Some((field, rest)) => (field, rest),
        None => ("", rest.strip_prefix("Value ").unwrap_or(rest)),
    };
    let detail = if field.is_empty() {
        match rest.split_once(": ") {
            Some((value, detail)) if value.is_empty() || value == csv || detail.contains(value) => detail.to_owned(),
            _ => rest.to_owned(),
        }
    } else {
        match rest.split_once(&format!(": {field}: ")) {
            Some((_, detail)) => format!("{field}: {detail}"),
            None => format!("{field}: {}", rest.split_once(": ").unwrap().1),
        }
    };
    let detail = detail.strip_prefix(&format!("({csv}) ")).unwrap_or(&detail).to_owned();
    vec![(severity, comparable(&detail))]
}

/// Sorts the lists that the operator-framework prints in random order, and removes values in Go's notation.
fn comparable(message: &str) -> String {
    let message = message.replace("must be no more than 63 characters", "must be no more than 63 bytes");
    if let Some((start, list)) = message.split_once("Migrate the API(s) for ") {
        let (list, end) = list.rfind("])").map_or((list, ""), |at| list.split_at(at + 2));
        let mut items: Vec<&str> = list.split_inclusive("])").map(|item| item.trim_start_matches(',')).collect();
        items.sort_unstable();
        return format!("{start}Migrate the API(s) for {}{}", items.join(","), end.strip_prefix(',').unwrap_or(end));
    }
    match (message.find("Invalid value: "), message.rfind(": must have exactly one")) {
        (Some(start), Some(end)) => format!("{}…{}", &message[..start], &message[end..]),
        _ => message,
    }
}

#[test]
fn findings_are_those_of_operator_sdk() {
    let Some(data) = testing::data() else { return };
    let differences = Difference::read();
    let mut used = vec![false; differences.len()];
    let mut checked = testing::Checked::default();
    for file in testing::entries("recorded/bundle-validate").unwrap() {
        let recorded: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let path = text(&recorded, &["bundle"]);
        let all = Options { selection: Selection::everything(), ..Options::default() };
        let ours = validate(path, &testing::files(&data, path), &all, &mut ());
        for (suite, found) in recorded["suites"].as_object().unwrap() {
            let selection = Selection::from(validators(suite));
            let is_of_suite = |finding: &&Finding| selection.reports(finding.code);
            let mut counts: BTreeMap<(Severity, String), (usize, usize)> = BTreeMap::new();
            for finding in ours.findings.iter().filter(is_of_suite) {
                counts.entry((finding.severity, comparable(&finding.message))).or_default().0 += 1;
            }
            let theirs =
                list(found, &["outputs"]).iter().flat_map(|output| normalised(&ours.identity.name, path, output));
            theirs.for_each(|line| counts.entry(line).or_default().1 += 1);
            let (mut faults, mut differs) = (Vec::new(), false);
            for ((severity, message), (ours, theirs)) in &counts {
                // A validator repeats what the default ones report.
                let is_same = if suite == "default" { ours == theirs } else { (*ours == 0) == (*theirs == 0) };
                if is_same {
                    continue;
                }
                let mut permitted = false;
                for (difference, used) in differences.iter().zip(&mut used) {
                    if difference.permits(path, suite, ours > theirs, message) {
                        (*used, permitted) = (true, true);
                    }
                }
                differs = true;
                if !permitted {
                    faults.push(format!("\n  {severity} ours {ours}, theirs {theirs}: {message}"));
                }
            }
            let fails = ours.findings.iter().filter(is_of_suite).any(|finding| finding.severity == Severity::Error);
            // Only a permitted difference explains another result.
            if fails == (found["exit"] == 0) && !differs {
                faults.push(format!("\n  fails: {fails}, theirs exits with {}", found["exit"]));
            }
            checked.add(format!("{path} {suite}"), (!faults.is_empty()).then(|| faults.concat()));
        }
    }
    checked.end();
    let unused: Vec<&str> = differences
        .iter()
        .zip(used)
        .filter(|(_, used)| !used)
        .map(|(difference, _)| difference.text.as_str())
        .collect();
    assert!(unused.is_empty(), "differences that do not occur: {unused:#?}");
}

#[test]
fn what_the_real_olm_installs_has_no_errors_of_olm() {
    let Some(data) = testing::data() else { return };
    let heads = std::fs::read_to_string(testing::existing("recorded/install-heads.tsv").unwrap()).unwrap();
    let mut succeeded: BTreeSet<&str> = heads
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|columns| columns[2] == "Succeeded")
        .map(|columns| columns[1])
        .collect();
    let mut checked = testing::Checked::default();
    let olm = Options { selection: BTreeSet::from([Validator::Olm]).into(), ..Options::default() };
    for file in testing::entries("recorded/bundle-validate").unwrap() {
        let recorded: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let path = text(&recorded, &["bundle"]);
        let found = validate(path, &testing::files(&data, path), &olm, &mut ());
        if !succeeded.remove(found.identity.name.as_str()) {
            continue;
        }
        let errors: Vec<String> =
            found.findings.iter().filter(|f| f.severity == Severity::Error).map(ToString::to_string).collect();
        checked.add(path, (!errors.is_empty()).then(|| errors.join("\n")));
    }
    checked.end();
    assert!(succeeded.is_empty(), "no bundle has these names: {succeeded:?}");
}
