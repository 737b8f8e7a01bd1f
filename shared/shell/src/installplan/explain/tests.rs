//! Tests of argument parsing and of reports about unreadable objects.

use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::explain::{
    Bundle, Crd, Csv, Deprecation, DryRunGap, DryRunRefusal, Irreversible, Next, Object, Optional, Permission,
    UnreadableResource, Unserved, VerdictReason, Webhook,
};
use olm_core::version;
use olm_core::visible::is_harmful;
use proptest::prelude::*;

use super::read::unreadable;
use super::*;

#[test]
fn a_package_may_have_a_range_or_a_version() {
    let of = |text: &str| package(text).map(|(package, range)| (package, range.map(|range| range.to_string())));
    assert_eq!(of("rose"), Ok(("rose".to_owned(), None)));
    let within = |text: &str, version: &str| {
        let (_, range) = package(text).unwrap();
        range.unwrap().contains(&version::parse_tolerant(version).unwrap())
    };
    assert!(within("rose@>=1.2.0 <2.0.0", "1.9.0") && !within("rose@>=1.2.0 <2.0.0", "2.0.0"));
    assert!(within("rose@1.2.0", "1.2.0") && !within("rose@1.2.0", "1.2.1"));
    assert!(package("rose@newest").unwrap_err().hints.join("; ").contains(">=1.2.0 <2.0.0"));
}

#[test]
fn single_objects_of_a_kind_are_one_matter() {
    let refusal = Status::new(403, "Forbidden", "no");
    let get = |kind: &str, name: &str| {
        let gvk = Gvk::new("", "v1", kind);
        ReadFailure::get(&ObjectRef { gvk, namespace: "garden".to_owned(), name: name.to_owned() }, &refusal)
    };
    let failures =
        [get("Secret", "a"), get("Service", "a"), get("Secret", "b"), get("Secret", "c"), get("Secret", "d")];
    let messages: Vec<String> = unreadable(&failures).into_iter().map(|unreadable| unreadable.message).collect();
    assert_eq!(
        messages,
        [
            "not allowed to get Secret a, b, c and 1 more in namespace garden",
            "not allowed to get Service a in namespace garden"
        ]
    );
}

#[test]
fn a_plan_that_cannot_be_determined_is_reported_as_unknown() {
    let mut explanation = Explanation { namespace: "garden".to_owned(), ..Explanation::default() };
    let first = |explanation: &Explanation| {
        let text = report::text(explanation, &[], false, crate::cli::paint::Paint::default());
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first(&explanation), "No InstallPlan would be created in namespace garden");
    explanation.verdict.result = olm_core::explain::VerdictResult::Unknown;
    assert_eq!(first(&explanation), "Cannot determine whether an InstallPlan would be created in namespace garden");
}

/// Returns an explanation with every kind of entry, and the text in every field that other users can write.
fn filled(text: &str) -> (Explanation, Vec<PolicyResult>) {
    let mut explanation = Explanation::default();
    explanation.plan.exists = true;
    explanation.plan.approval = "Manual".to_owned();
    explanation.plan.subscriptions.push(String::new());
    explanation.plan.service_account = Some(String::new());
    explanation.verdict.reasons.push(VerdictReason::default());
    explanation.dry_run.sent = true;
    explanation.dry_run.refused.push(DryRunRefusal::default());
    explanation.dry_run.not_sent.push(DryRunGap::default());
    let (replaces, from, to) = (Some(String::new()), Some(String::new()), Some(String::new()));
    let words = vec![String::new(), String::new()];
    let csv = Csv { replaces, from, to, subscriptions: words.clone(), reasons: words.clone(), ..Csv::default() };
    explanation.csvs = vec![csv.clone(), Csv { change: olm_core::explain::CsvChange::Remove, ..csv }];
    let objects = json!({ "metadata": { "name": "", "annotations": { "a": "" } } });
    for change in
        [olm_core::explain::Change::Create, olm_core::explain::Change::Refused, olm_core::explain::Change::Update]
    {
        let after = objects.clone();
        explanation.objects.push(Object { change, after, ..Object::default() });
    }
    let permission = Permission {
        verbs: words.clone(),
        resources: words.clone(),
        api_groups: words.clone(),
        ..Permission::default()
    };
    explanation.rbac.gained = vec![
        permission.clone(),
        Permission { escalations: vec![olm_core::explain::Escalation::Secrets], ..permission },
    ];
    explanation.rbac.lost.push(Permission {
        non_resource_urls: words.clone(),
        resource_names: words.clone(),
        ..Permission::default()
    });
    explanation.rbac.aggregated.clone_from(&words);
    let crd = Crd {
        added_versions: words.clone(),
        removed_versions: words.clone(),
        invalid: words.clone(),
        ..Crd::default()
    };
    explanation.crds.push(Crd { storage: Some((String::new(), String::new())), ..crd });
    explanation.unserved.push(Unserved { served: words.clone(), ..Unserved::default() });
    explanation.images.added.clone_from(&words);
    explanation.images.removed.clone_from(&words);
    explanation.webhooks.push(Webhook {
        rules: words.clone(),
        change: olm_core::explain::Change::Create,
        ..Webhook::default()
    });
    explanation.optional.push(Optional { skipped: true, ..Optional::default() });
    explanation.bundles.push(Bundle::default());
    explanation.deprecations.push(Deprecation::default());
    explanation.irreversible = vec![Irreversible::default(), Irreversible::default()];
    explanation.afterwards.push(Next { csvs: words, ..Next::default() });
    explanation.unreadable.push(UnreadableResource::default());
    let mut document = serde_json::to_value(&explanation).unwrap();
    fill(&mut document, text);
    let tried =
        PolicyResult { policy: text.to_owned(), holds: None, failing: text.to_owned(), message: text.to_owned() };
    (serde_json::from_value(document).unwrap(), vec![tried])
}

fn fill(value: &mut Value, text: &str) {
    match value {
        Value::String(leaf) => text.clone_into(leaf),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, text)),
        Value::Object(map) => {
            let ours = ["hash", "change", "by", "result", "escalations", "approval", "phase"];
            map.iter_mut().filter(|(key, _)| !ours.contains(&key.as_str())).for_each(|(_, value)| fill(value, text));
        }
        _ => {}
    }
}

/// Returns the number of headings, quotes and lists, and the number of lines, of a Markdown text.
fn structure(markdown: &str) -> (usize, usize) {
    let bare = |line: &str| line.trim_start_matches(['-', '+', '*', ' ']).to_owned();
    (markdown.lines().filter(|line| bare(line).starts_with(['#', '>', '='])).count(), markdown.lines().count())
}

#[test]
fn a_heading_cannot_be_forged() {
    let heading = "x\n## Verdict Safe\n\u{1b}[8m";
    let (explanation, tried) = filled(heading);
    let markdown = report::markdown(&explanation, &tried, true);
    assert!(markdown.contains(r"x\\u{a}## Verdict Safe\\u{a}\\u{1b}\[8m"), "{markdown}");
    assert!(!markdown.lines().any(|line| line.starts_with("## Verdict")), "{markdown}");
}

#[test]
fn a_diff_cannot_end_its_fence() {
    let (mut explanation, tried) = filled("x");
    explanation.objects[0].after = json!({ "data": "a\n````\n# Safe\n" });
    let markdown = report::markdown(&explanation, &tried, true);
    assert!(markdown.contains("\n  `````diff\n"), "{markdown}");
}

/// Returns the number of tags of a page, without those of spans: a diff has one for each run of lines.
fn elements(page: &str) -> usize {
    page.matches('<').count() - 2 * page.matches("<span").count()
}

#[test]
fn no_element_of_a_page_can_be_forged() {
    let of = |text: &str| page::html(&[filled(text)]);
    let plain = of("x");
    for text in
        ["</style></title></script><script>alert(1)</script>", "\"><img src=x onerror='alert(1)'>", "]]>-->&lt;b&gt;"]
    {
        let page = of(text);
        assert_eq!(elements(&page), elements(&plain), "{text}");
        assert!(!page.contains("<script") && !page.contains("<img"), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_others_forges_an_explanation(words in "[#>=\\-+*`|0-9.) a\\n\\r\\t\\x1b\\x07\u{9b}\u{202e}\u{2066}\u{2028}\\[]{1,12}") {
        let text = format!("x{words}");
        let (explanation, tried) = filled(&text);
        let (plain, same) = filled("x");
        let is_harmless = |shown: &str| !shown.contains(|c| is_harmful(c) && c != '\n');
        let paint = crate::cli::paint::Paint::default();
        let shown = report::text(&explanation, &tried, false, paint);
        prop_assert!(is_harmless(&shown), "{shown:?}");
        prop_assert_eq!(shown.lines().count(), report::text(&plain, &same, false, paint).lines().count());
        let shown = report::markdown(&explanation, &tried, false);
        prop_assert!(is_harmless(&shown), "{shown:?}");
        prop_assert_eq!(structure(&shown), structure(&report::markdown(&plain, &same, false)));
        for shown in [report::text(&explanation, &tried, true, paint), report::markdown(&explanation, &tried, true)] {
            prop_assert!(!shown.contains(|c| is_harmful(c) && !matches!(c, '\n' | '\t')), "{shown:?}");
        }
        let shown = page::html(&[(explanation.clone(), tried)]);
        prop_assert!(!shown.contains(|c| is_harmful(c) && !matches!(c, '\n' | '\t')), "{shown:?}");
        prop_assert_eq!(elements(&shown), elements(&page::html(&[(plain.clone(), same)])));
        prop_assert_eq!(summary(&explanation).lines().count(), summary(&plain).lines().count());
    }
}
