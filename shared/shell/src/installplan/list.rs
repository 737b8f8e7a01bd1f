//! `kubectl olm install-plan list`: where the plans stand, and what each waits for.

use olm_core::api::object;
use olm_core::installplan::standing::{self, Standing};
use olm_core::plan::{Culprit, Reason};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::named::{self, age};
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::output::{API_VERSION, Output, name};
use crate::cli::selector::LabelQuery;
use crate::cli::table::Table;
use crate::cli::wait::block_on;
use crate::cli::{CliError, Outcome, Printer};
use crate::observe::{self, Need, Seen};

/// So much of a reason is shown in a table that is not wide.
const SHORT: usize = 100;

/// Which plans to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where they are.
    pub source: SourceFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// Their labels.
    pub selector: Option<LabelQuery>,
    /// Only those that wait for approval?
    pub pending: bool,
    /// The form of the answer.
    pub output: Output,
}

/// A plan, and where it stands.
struct Listed<'w> {
    plan: &'w Value,
    standing: Standing,
    subscriptions: Vec<&'w str>,
}

/// Lists plans.
///
/// # Errors
/// They cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let Options { source, namespaces, selector, pending, output } = options;
    let seen = block_on(observe::look(source, namespaces, &[], Need::Plans, printer))?;
    seen.tell_gaps(printer);
    let world = Reader::new(&seen.world);
    let mut listed = Vec::new();
    for plan in world.all(&kind::INSTALL_PLAN).map(|o| o.json()) {
        if !seen.is_asked(plan) || selector.as_ref().is_some_and(|query| !query.selects(plan)) {
            continue;
        }
        let standing = named::standing_in(&seen, plan);
        if *pending && !standing.is_pending() {
            continue;
        }
        let subscriptions = standing::subscriptions(&world, plan).into_iter().map(object::name).collect();
        listed.push(Listed { plan, standing, subscriptions });
    }
    listed.sort_by_key(|l| {
        let generation = object::at(l.plan, &["spec", "generation"]).as_i64();
        (object::namespace(l.plan), generation, object::name(l.plan))
    });
    let is_table = matches!(output, Output::Table | Output::Wide);
    if listed.is_empty() && is_table {
        printer.talk(none(&seen, *pending));
        return Ok(Outcome::Done);
    }
    match output {
        Output::Table | Output::Wide => printer.data(table(&listed, &seen, output.is_wide()))?,
        Output::Name => {
            for Listed { plan, .. } in &listed {
                // Of several namespaces each line is what goes behind a command: xargs -L1 kubectl olm install-plan approve
                let place = seen.namespace.is_none().then(|| format!(" -n {}", object::namespace(plan)));
                printer.line(format_args!("{}{}", name(plan), place.unwrap_or_default()))?;
            }
        }
        Output::Json | Output::Yaml | Output::JsonPath(_) => {
            let items: Vec<Value> = listed.iter().map(document).collect();
            let list = json!({ "apiVersion": API_VERSION, "kind": "InstallPlanList", "items": items });
            output.object(printer, &list, || Table::new([]))?;
        }
    }
    Ok(Outcome::Done)
}

fn none(seen: &Seen, pending: bool) -> String {
    let what = if pending { "No InstallPlans that wait for approval" } else { "No InstallPlans" };
    match &seen.namespace {
        None => format!("{what} found"),
        Some(namespace) => format!("{what} found in {namespace} namespace: -A looks in all"),
    }
}

fn table(listed: &[Listed<'_>], seen: &Seen, is_wide: bool) -> Table {
    let narrow = ["NAME", "CSVS", "APPROVAL", "PHASE", "AGE"];
    let more = ["APPROVED", "STEPS", "STEP", "SUBSCRIPTIONS"];
    let headers = seen.namespace.is_none().then_some("NAMESPACE").into_iter().chain(narrow);
    let headers = headers.chain(is_wide.then_some(more).into_iter().flatten()).chain(["REASON"]);
    let mut table = Table::new(headers);
    for Listed { plan, standing, subscriptions } in listed {
        let mut row = Vec::new();
        if seen.namespace.is_none() {
            row.push(object::namespace(plan).to_owned());
        }
        let csvs: Vec<String> = standing.csvs.iter().map(ToString::to_string).collect();
        let phase = if standing.phase.is_empty() { "<none>" } else { &standing.phase };
        row.extend([
            object::name(plan).to_owned(),
            csvs.join(", "),
            standing.approval.clone(),
            phase.to_owned(),
            age(plan, seen.at),
        ]);
        if is_wide {
            let (done, all) = standing.steps;
            let step = standing.step.as_ref().map(|step| format!("{}/{}", step.kind, step.name));
            row.extend([
                standing.approved.to_string(),
                format!("{done}/{all}"),
                step.unwrap_or_default(),
                subscriptions.join(","),
            ]);
        }
        let why = why(standing);
        row.push(if is_wide { why } else { shortened(&why) });
        table.row(row);
    }
    table
}

/// What a plan waits for, beside its name.
fn why(standing: &Standing) -> String {
    let told = standing.reason.as_ref().map(|reason| match reason {
        Reason::ApprovalNeeded { .. } => "waits for approval".to_owned(),
        Reason::InstallPlanFailed { message, culprit, .. } => format!("{message}{}", blamed(culprit)),
        Reason::InstallPlanRetries { message, culprit, .. } => format!("tries again: {message}{}", blamed(culprit)),
        Reason::InstallPlanWaits { message, .. } | Reason::Invalid { message, .. } => message.clone(),
        other => other.to_string(),
    });
    let superseded = standing.superseded_by.as_ref().map(|newer| format!("superseded by {newer}"));
    superseded.into_iter().chain(told).chain(standing.unheeded.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// Whose step it is, when there are several.
fn blamed(culprit: &Culprit) -> String {
    if culprit.others.is_empty() { String::new() } else { format!(" ({})", culprit.csv) }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// A plan as data.
fn document(Listed { plan, standing, subscriptions }: &Listed<'_>) -> Value {
    let metadata = object::at(plan, &["metadata"]);
    let mut of_metadata = json!({ "namespace": object::namespace(plan), "name": object::name(plan) });
    for key in ["creationTimestamp", "labels", "annotations", "resourceVersion"] {
        if !metadata[key].is_null() {
            of_metadata[key] = metadata[key].clone();
        }
    }
    let mut document = serde_json::to_value(standing).unwrap_or_default();
    let message = standing.reason.as_ref().map(ToString::to_string);
    let hint = standing.reason.as_ref().and_then(Reason::hint);
    for (key, value) in [
        ("metadata", of_metadata),
        ("generation", object::at(plan, &["spec", "generation"]).clone()),
        ("subscriptions", json!(subscriptions)),
        ("message", json!(message)),
        ("hint", json!(hint)),
    ] {
        if !value.is_null() {
            document[key] = value;
        }
    }
    let (done, all) = standing.steps;
    document["steps"] = json!({ "done": done, "all": all });
    document
}
