use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::testing;

/// Rules with a different expected result than in OLM's library, and why. Except for the first two the verdict is the same.
const DEVIATIONS: &[(&str, &str)] = &[
    ("duration(\"1h\") > duration(\"30m\")", "durations are rejected when the rule is compiled"),
    ("timestamp(\"2024-01-01T00:00:00Z\") < timestamp(\"2025-01-01T00:00:00Z\")", "timestamps are rejected as well"),
    (
        "properties.exists(p, p.value.missing == \"x\")",
        "a field of a string is a missing overload instead of a missing key",
    ),
    ("properties.all(p, p.value.missing == \"x\")", "the same"),
    ("int(\"x\") == 7", "the error message of the number parser differs"),
    ("\"abc\".matches(\"(\")", "the error message of the regular expression parser differs"),
    ("", "the end of an empty rule is at column 1 instead of 0"),
];

#[derive(Deserialize)]
struct Recorded {
    sets: std::collections::BTreeMap<String, Vec<Property>>,
    rules: Vec<RecordedRule>,
}

#[derive(Deserialize)]
struct RecordedRule {
    rule: String,
    compile_error: Option<String>,
    results: Option<Vec<RecordedResult>>,
}

#[derive(Deserialize)]
struct RecordedResult {
    set: String,
    #[serde(default)]
    result: bool,
    error: Option<String>,
}

#[test]
fn rules_as_recorded() {
    let Some(recorded) = testing::recorded("cel/cel.json") else { return };
    let Recorded { sets, rules } = serde_json::from_value(recorded).unwrap();
    let mut checked = testing::Checked::default();
    for RecordedRule { rule, compile_error, results } in &rules {
        let compiled = Rule::compile(rule);
        let refusal = compiled.as_ref().err().map(ToString::to_string);
        let may_differ = DEVIATIONS.iter().any(|(deviating, _)| deviating == rule);
        if !may_differ {
            checked.same(rule, &refusal, compile_error);
        }
        let (Ok(compiled), Some(results)) = (&compiled, results) else { continue };
        for RecordedResult { set, result, error } in results {
            let ours = compiled.evaluate(&sets[set]);
            let said = ours.as_ref().err().map(ToString::to_string);
            let case = format!("{rule} of {set}");
            checked.same(&case, &ours.unwrap_or_default(), result);
            if !may_differ {
                checked.same(&case, &said, error);
            }
        }
    }
    checked.end();
}

#[test]
fn errors_name_what_the_evaluator_was_given() {
    let properties = [
        Property::new("map", json!({ "a": 1 })),
        Property::new("list", json!([1, 2])),
        Property::new("null", json!(null)),
        Property::new("text", json!("x")),
    ];
    for (rule, error) in [
        ("string(properties[0].value) == ''", "no such overload: string(map)"),
        ("size(properties[2].value) == 1", "no such overload: size"),
        ("properties[1].value.a == 1", "unsupported index type 'string' in list"),
        ("properties[1].value['a'] == 1", "unsupported index type 'string' in list"),
        ("properties[1].value[0.5] == 1", "unsupported index value 0.5 in list"),
        ("properties[1].value[properties[2].value] == 1", "invalid qualifier type: types.Null"),
        ("properties[2].value < 1", "no such overload: _<_"),
        ("properties[3].value < 1", "no such overload"),
        ("int(properties[3].value) == 1", "type conversion error from 'string' to 'int'"),
        ("semver_compare('1.0.0', properties[2].value) == 0", "unable to parse 'NULL_VALUE' to semver format"),
        ("semver_compare('1.0.0', properties[0].value) == 0", "unable to parse 'map[a:1]' to semver format"),
    ] {
        let answer = Rule::compile(rule).unwrap().evaluate(&properties);
        assert_eq!(answer.map_err(|e| e.to_string()), Err(error.to_owned()), "{rule}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any rule is compiled, rejected or evaluated in bounded time, without panics.
    #[test]
    fn any_rule_is_bounded(words in prop::collection::vec(prop::sample::select(WORDS), 0..60), text in "\\PC{0,80}") {
        let properties = [
            Property::package("rose", "1.2.3"),
            Property::new("deep", json!({ "a": [1, "x", { "b": [true, null, 2.5] }], "text": "y".repeat(300) })),
            Property::new("list", json!(vec!["z"; 200])),
        ];
        for rule in [words.concat(), text, format!("properties.exists(p, {})", words.concat())] {
            if let Ok(rule) = Rule::compile(&rule) {
                drop(rule.evaluate(&properties));
            }
        }
    }
}

const WORDS: &[&str] = &[
    "properties",
    "p",
    "q",
    ".exists(p, ",
    ".all(q, ",
    ".map(p, ",
    ".filter(q, ",
    ".size()",
    ")",
    "(",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ".value",
    ".type",
    ".a",
    "[0]",
    " == ",
    " != ",
    " < ",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " && ",
    " || ",
    "!",
    "-",
    " ? ",
    " : ",
    " in ",
    "1",
    "0",
    "2u",
    "1.5",
    "'x'",
    "\"y\"",
    "b'z'",
    "r'\\d'",
    "true",
    "false",
    "null",
    "has(p.value)",
    "semver_compare(",
    "size(",
    "string(",
    "int(",
    "double(",
    "uint(",
    "type(",
    "dyn(",
    ".matches('^(a+)+$')",
    ".contains(",
    ".startsWith(",
    "9223372036854775807",
    "-9223372036854775808",
    "duration('1h')",
    "\n",
    "// c\n",
    "`",
    "?",
    "@",
    "\\",
];

/// Rules that are expensive to compile or to evaluate.
#[test]
fn hostile_rules() {
    let many = |part: &str, n: usize| part.repeat(n);
    let nested = format!("{}true{}", many("properties.all(p, ", 40), many(")", 40));
    let doubling = format!("['x']{}.exists(x, x == 'x')", many(".map(x, x + x)", 40));
    let properties: Vec<Property> = (0..100).map(|i| Property::package(&format!("p{i}"), "1.0.0")).collect();
    let too_much = [nested, doubling];
    for rule in too_much {
        let error = Rule::compile(&rule).unwrap().evaluate(&properties).unwrap_err();
        assert_eq!(error.to_string(), "the rule needs too much work", "{rule}");
    }
    let refused = [
        many("(", 2000),
        many("[", 2000) + &many("]", 2000),
        "1".to_owned() + &many(" + 1", 5000),
        many("!", 5000) + "true",
        many("-", 5000) + "1 == 1",
        "properties".to_owned() + &many(".a", 3000),
        "x".repeat(20_000),
    ];
    for rule in refused {
        assert!(Rule::compile(&rule).is_err());
    }
    // As deep as allowed.
    let deep = [
        many("(", 90) + "true" + &many(")", 90),
        "1".to_owned() + &many(" + 1", 550) + " > 0",
        many("!", 550) + "true",
        many("true && ", 1500) + "true",
        "properties[0].value".to_owned() + &many(".a", 550) + " == 1",
        many("true ? true : ", 250) + "true",
        many("-", 550) + "1 == 1",
    ];
    for rule in deep {
        if let Ok(rule) = Rule::compile(&rule) {
            drop(rule.evaluate(&properties));
        }
    }
    // Realistic rules are far from the limits.
    let honest = "properties.exists(p, p.type == 'olm.package' && properties.exists(q, q.value.packageName == p.value.packageName))";
    assert_eq!(Rule::compile(honest).unwrap().evaluate(&properties), Ok(true));
}

/// Regular expressions are bounded in size, compiled once if constant, and costed.
#[test]
fn hostile_regular_expressions() {
    let rule = |text: &str| Rule::compile(text).unwrap();
    let properties: Vec<Property> = (0..100).map(|n| Property::new("text", json!(format!("x{n}")))).collect();
    let large = rule("'x'.matches('(\\\\w{100}){100}')");
    let error = large.evaluate(&properties).unwrap_err().to_string();
    assert!(error.contains("takes more than 262144 bytes when it is compiled"), "{error}");
    let long = rule(&format!("'x'.matches('{}')", "a".repeat(5000)));
    assert!(long.evaluate(&properties).unwrap_err().to_string().contains("5000 bytes is too long: the limit is 4096"));
    // Inside a loop as outside, and two occurrences as one.
    let once = rule("'x'.matches('[a-z]+')").work();
    let looped = rule("properties.all(p, p.value.matches('[a-z]+')) && properties.all(q, q.value.matches('[a-z]+'))");
    assert_eq!(looped.evaluate(&properties), Ok(true));
    assert!(looped.work() < once + 2000, "{} {once}", looped.work());
    let (work, text) = (Work::default(), "properties.all(p, p.value.matches('(?:\\\\w[01]{7}){2}') || true)");
    assert_eq!(rule(text).evaluate_within(&properties, &work), Ok(true));
    assert!(work.spent() > 100 * 100, "{}", work.spent());
    // A pattern that is not constant is compiled each time.
    let unknown = rule("properties.all(p, 'x'.matches(p.type))");
    assert_eq!(unknown.evaluate(&properties[..3]), Ok(false));
    assert_eq!(unknown.evaluate(&properties).unwrap_err().to_string(), "the rule needs too much work");
    for (text, answer) in [
        ("properties[0].value.matches('^x0$') && matches(properties[1].value, 'x')", Ok(true)),
        ("properties[0].matches('x')", Err("found no matching overload")),
        ("dyn(1).matches('x')", Err("no such overload: matches")),
        ("'x'.matches(dyn(1))", Err("no such overload")),
        ("'x'.matches('(')", Err("'(' not a valid regex")),
    ] {
        let found = Rule::compile(text).and_then(|rule| rule.evaluate(&properties)).map_err(|e| e.to_string());
        match answer {
            Ok(answer) => assert_eq!(found, Ok(answer), "{text}"),
            Err(words) => assert!(found.clone().unwrap_err().contains(words), "{text}: {found:?}"),
        }
    }
}

/// The number and length of errors about a rule are bounded.
#[test]
fn errors_are_few_and_short() {
    let undeclared = format!("[{}] == []", vec!["ab"; 4000].join(","));
    let nested = format!("{}1{} + true == {}", "[".repeat(90), "]".repeat(90), "x".repeat(3000));
    let broken = vec!["1 +"; 3000].join(" ; ");
    let lines = vec!["[ab,"; 3000].join("\n");
    for text in [undeclared, nested, broken, lines] {
        let error = Rule::compile(&text).unwrap_err().to_string();
        assert!(error.len() < 10_000, "{} bytes of {}", error.len(), &text[..20]);
    }
    let error = Rule::compile(&format!("{} == a.b.c", "     ".repeat(200))).unwrap_err().to_string();
    assert!(error.contains("ERROR: <input>:1:"), "{error}");
}

/// All operators count, including those that are words. A test thread has a stack of two megabytes.
#[test]
fn operators_that_are_words_count() {
    for between in [" in ", "\tin\n", " in[1,2]in "] {
        let error = Rule::compile(&format!("1{}", format!("{between}1").repeat(1300))).unwrap_err().to_string();
        assert!(error.contains("too complex"), "{between:?}: {error}");
    }
    let deep = Rule::compile(&format!("1{}", " in [1]".repeat(290)));
    drop(deep.map(|rule| rule.evaluate(&[])));
    assert_eq!(Rule::compile("'in' in ['in', 'inner']").unwrap().evaluate(&[]), Ok(true));
}

/// The constraints of one resolution share a work budget, for compilation and evaluation.
#[test]
fn work_of_a_resolution_is_bounded() {
    let work = Work::default();
    let mut read = 0;
    let error = loop {
        let rule = format!("properties.all(p, 'x{read}'.matches('\\\\w{{30}}'))");
        match Constraint::of_within(&Property::new("olm.constraint", json!({ "cel": { "rule": rule } })), &work) {
            Ok(_) => read += 1,
            Err(error) => break error.to_string(),
        }
        assert!(read < 10_000);
        work.spend(Work::MOST / 20);
    };
    assert!(error.contains("more than 500000000 steps of work"), "{error}");
    let candidate = Candidate { package: "rose", ..Candidate::default() };
    assert!(
        Constraint::All(Vec::new()).is_met_by(&candidate)
            && !Constraint::All(Vec::new()).is_met_within(&candidate, &work)
    );
}

#[test]
fn constraints() {
    let rose = [
        Property::package("rose", "1.2.3"),
        Property::gvk("olm.gvk", &Gvk::new("g", "v1", "Rose")),
        Property::new("olm.label", json!({ "label": "red" })),
    ];
    let candidate = Candidate { package: "rose", version: None, properties: &rose };
    let api = |kind: &str| json!({ "gvk": { "group": "g", "version": "v1", "kind": kind } });
    let several = |key: &str, list: &[Value]| json!({ key: { "constraints": list } });
    let package = |range: &str| json!({ "package": { "packageName": "rose", "versionRange": range } });
    let rows = [
        (api("Rose"), Ok(true)),
        (api("Lily"), Ok(false)),
        (package(">=1.0.0"), Ok(true)),
        (package("<1.0.0"), Ok(false)),
        (
            package("one"),
            Err("convert olm.constraint to resolver predicate: Could not get version from string: \"one\""),
        ),
        (several("all", &[api("Rose"), package(">=1.0.0")]), Ok(true)),
        (several("all", &[api("Rose"), several("not", &[package("<2.0.0")])]), Ok(false)),
        (several("any", &[api("Lily"), package(">=1.0.0")]), Ok(true)),
        (several("any", &[]), Ok(false)),
        (several("all", &[]), Ok(true)),
        (json!({ "cel": { "rule": "properties.exists(p, p.type == 'olm.label')" } }), Ok(true)),
        (
            json!({ "cel": { "rule": "1" } }),
            Err("convert olm.constraint to resolver predicate: cel expressions must have type Bool"),
        ),
        (json!({}), Err("convert olm.constraint to resolver predicate: constraint is empty")),
        (json!({ "gkv": {} }), Err("parse olm.constraint: json: unknown field \"gkv\"")),
        (several("all", &[json!({ "x": 1 })]), Err("parse olm.constraint: json: unknown field \"x\"")),
        (
            json!({ "failureMessage": "x".repeat(140_000) }),
            Err("parse olm.constraint: olm.constraint value is greater than max constraint size 131072 bytes"),
        ),
    ];
    for (value, expected) in rows {
        let ours = Constraint::from_property(&Property::new("olm.constraint", value.clone()));
        let ours = ours.map(|c| c.unwrap().is_met_by(&candidate)).map_err(|e| e.to_string());
        assert_eq!(ours, expected.map_err(str::to_owned), "{value}");
    }
    let label =
        Constraint::from_property(&Property::new("olm.label.required", json!({ "label": "red" }))).unwrap().unwrap();
    assert!(label.is_met_by(&candidate));
    assert_eq!(label.to_string(), "with label: red");
    assert!(Constraint::from_property(&rose[0]).unwrap().is_none());
}
