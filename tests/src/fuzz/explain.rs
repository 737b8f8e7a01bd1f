//! Explanations of InstallPlans in every output format.

use std::collections::BTreeMap;

use olm_core::api::object;
use olm_core::explain::{Cluster, Explainer, Explanation, Subject, VerdictResult};
use olm_core::settings::Settings;
use olm_shell::cli::output::Output;
use olm_shell::installplan::explain::{self, Form};
use olm_shell::visible::is_plain;

use super::controllers::{Given, beginning};
use super::shown::{Data, harmless, shown, value};
use crate::well_formed::is_well_formed;

/// How many subjects of an input are explained.
const SUBJECTS: usize = 3;

/// Explains an explanation in JSON, or the objects of a cluster with the files of a catalog.
///
/// # Panics
/// The output contains terminal control characters, a forged heading, or invalid data.
pub(super) fn run(bytes: &[u8]) {
    if let Ok(explanation) = serde_json::from_slice::<Explanation>(bytes) {
        // The digest never contains text of other writers.
        return render_all(&Explanation { hash: "0".to_owned(), ..explanation });
    }
    let Given { objects, catalog } = Given::read(bytes);
    let of_kind = |kind: &str| {
        let of_kind = objects.iter().filter(|o| object::text(o, &["kind"]) == kind);
        of_kind.map(|o| (object::namespace(o).to_owned(), object::name(o).to_owned())).collect::<Vec<_>>()
    };
    let plans = of_kind("InstallPlan").into_iter().map(|(namespace, name)| Subject::Plan { namespace, name });
    let subscriptions =
        of_kind("Subscription").into_iter().map(|(namespace, name)| Subject::Subscription { namespace, name });
    let packages = catalog.packages().keys().map(|package| Subject::Package {
        namespace: "garden".to_owned(),
        package: package.clone(),
        range: None,
    });
    let subjects: Vec<Subject> = plans.chain(subscriptions).chain(packages).take(SUBJECTS).collect();
    let catalogs = BTreeMap::from([(("olm".to_owned(), "garden".to_owned()), catalog.clone())]);
    let cluster = Cluster { objects: objects.clone(), catalogs, now: beginning(), ..Cluster::default() };
    if subjects.is_empty() {
        return;
    }
    let explainer = Explainer::new(&Settings::default(), cluster);
    for subject in &subjects {
        match explainer.explain(subject) {
            Ok(explanation) => {
                render_all(&explanation);
                let again = explainer.explain(subject);
                assert_eq!(again.ok().map(|again| again.hash), Some(explanation.hash));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn render_all(explanation: &Explanation) {
    let told = [(explanation.clone(), Vec::new())];
    harmless(&explain::summary(explanation));
    for details in [false, true] {
        for form in ["", "markdown", "html", "json", "yaml", "jsonpath={.objects[*].name}"] {
            let Ok(form) = form.parse::<Form>() else { continue };
            let (printed, shown) = shown(|printer| explain::print(&told, false, &form, details, printer));
            assert!(printed.is_ok(), "{printed:?}");
            match &form {
                Form::Text => assert!(details || is_plain(&shown.out), "{}", shown.out),
                Form::Html => assert_eq!(is_well_formed(&shown.out), Ok(())),
                Form::Markdown => {
                    let verdicts = headings(&shown.out);
                    assert!(
                        verdicts <= usize::from(explanation.verdict.result == VerdictResult::Safe),
                        "{}",
                        shown.out
                    );
                }
                Form::Document(Output::Json) => {
                    let document = value(&shown, Data::Json);
                    assert_eq!(document["hash"], explanation.hash.as_str());
                }
                Form::Document(Output::Yaml) => drop(value(&shown, Data::Yaml)),
                Form::Document(_) => {}
            }
        }
    }
}

/// Counts the headings outside of fences that state that the plan is safe.
fn headings(markdown: &str) -> usize {
    let mut safe = 0;
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        let ticks: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if line.trim() == open => fence = None,
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => {
                let title = line.trim_start_matches('#').trim_start();
                safe += usize::from(line.starts_with('#') && title.starts_with("Safe"));
            }
            Some(_) => {}
        }
    }
    assert!(fence.is_none(), "a fence is left open in {markdown}");
    safe
}
