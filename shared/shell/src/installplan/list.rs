//! `kubectl olm install-plan list`: the state of plans, and what each waits for.

use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::install_plan::{InstallPlan, Phase};
use olm_core::api::object;
use olm_core::installplan::summary::{self, PlanSummary};
use olm_core::listing::clause;
use olm_core::plan::{BlockingBundle, Reason};
use olm_core::visible::word;
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::lookup;
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::list::{Column, Entry, ListFlags, Listing, Watched};
use crate::cli::name::bare;
use crate::cli::output::{self, API_VERSION};
use crate::cli::source::warn_of_gaps;
use crate::cli::{CliError, ErrorKind, Outcome, Printer, table};
use crate::cluster::backoff::Backoff;
use crate::observe::{ClusterState, ReadFailure, ReadScope};

/// The maximum length, in characters, of a reason in a table that is not wide.
const SHORT: usize = 100;

/// Which plans to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of the objects.
    pub source: SourceFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// Their names; empty means all.
    pub names: Vec<String>,
    /// Whether to list only plans that wait for approval.
    pub pending: bool,
    /// The selection and the output format.
    pub list: ListFlags,
}

/// A plan, and its state.
struct Listed<'w> {
    plan: &'w Value,
    summary: PlanSummary,
    subscriptions: Vec<&'w str>,
}

/// Lists plans. The outcome is negative if a named plan does not exist.
///
/// # Errors
/// The plans cannot be read, or one that was named; the others are printed.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if !options.source.from.is_empty() {
        options.list.refuse_to_watch("a file")?;
    }
    let names = options.names.iter().map(|text| Ok(bare(text, "installplan")?.to_owned()));
    let options = &Options { names: names.collect::<Result<_, CliError>>()?, ..options.clone() };
    if options.list.watch {
        return block_on(watch(options, printer));
    }
    let state = block_on(read_state(options, printer))?;
    warn_of_gaps(&state, printer);
    let listing = listing(&state, options).arranged(&options.list)?;
    let unreadable = unreadable(&state, options);
    if listing.entries.is_empty() && options.list.wants_table() && options.names.is_empty() && unreadable.is_empty() {
        printer.talk(none(&state, options.pending));
        return Ok(Outcome::Done);
    }
    if !listing.entries.is_empty() || !options.list.wants_table() {
        listing.print(&options.list, printer)?;
    }
    let missing = missing(&state, options);
    for error in &missing {
        printer.error(error);
    }
    if let Some(failure) = unreadable.first() {
        return Err(CliError::from(*failure));
    }
    Ok(if missing.is_empty() { Outcome::Done } else { Outcome::Negative })
}

async fn read_state(options: &Options, printer: &mut Printer) -> Result<ClusterState, CliError> {
    options.source.read(&options.namespaces, &[], ReadScope::Plans, printer).await
}

/// Lists plans, and prints changes until the process is stopped. An API server ends a watch after some minutes: then
/// the plans are listed again, and only differences are printed.
async fn watch(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let (mut watched, mut backoff) = (Watched::default(), Backoff::new());
    loop {
        let mut state = read_state(options, printer).await?;
        warn_of_gaps(&state, printer);
        watched.show(listing(&state, options), &options.list, printer)?;
        let mut failed = None;
        let followed = state
            .follow(Duration::MAX, |state| match watched.show(listing(state, options), &options.list, printer) {
                Ok(()) => false,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            })
            .await;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Err(refusal) = followed.as_ref()
            && matches!(refusal.code, 401 | 403)
        {
            return Err(lookup::refused(
                refusal,
                "watch",
                "installplans",
                state.namespace.as_deref().unwrap_or_default(),
            ));
        }
        backoff.pause().await;
    }
}

/// Returns the selected plans in their current state.
fn listing(state: &ClusterState, options: &Options) -> Listing {
    let world = Reader::new(&state.world);
    let mut listed = Vec::new();
    for plan in world.all(&kind::INSTALL_PLAN).map(|o| o.json()) {
        if !state.is_requested(plan) || !is_named(plan, &options.names) {
            continue;
        }
        let summary = lookup::summary_in(state, plan);
        if options.pending && !summary.is_pending() {
            continue;
        }
        let subscriptions = summary::subscriptions(&world, plan).into_iter().map(object::name).collect();
        listed.push(Listed { plan, summary, subscriptions });
    }
    listed.sort_by_key(|l| {
        let generation = InstallPlan::new(l.plan).generation();
        (object::namespace(l.plan), generation, object::name(l.plan))
    });
    let columns = COLUMNS.into_iter().filter(|column| state.namespace.is_none() || *column != NAMESPACE);
    Listing {
        columns: columns.collect(),
        entries: listed.iter().map(|listed| entry(listed, state, options.list.output.output.is_wide())).collect(),
        document: json!({ "apiVersion": API_VERSION, "kind": "InstallPlanList" }),
    }
}

fn is_named(plan: &Value, names: &[String]) -> bool {
    names.is_empty() || names.iter().any(|name| name == object::name(plan))
}

/// Returns the selected plans that exist but cannot be read.
fn unreadable<'s>(state: &'s ClusterState, options: &Options) -> Vec<&'s ReadFailure> {
    let is_asked = |failure: &&ReadFailure| options.names.is_empty() || options.names.contains(&failure.name);
    state.read_failures.iter().filter(|failure| failure.is_unreadable_of("installplans")).filter(is_asked).collect()
}

fn missing(state: &ClusterState, options: &Options) -> Vec<CliError> {
    let world = Reader::new(&state.world);
    let plans: Vec<&Value> =
        world.all(&kind::INSTALL_PLAN).map(|o| o.json()).filter(|plan| state.is_requested(plan)).collect();
    let unreadable = unreadable(state, options);
    let is_there = |name: &String| {
        plans.iter().any(|plan| object::name(plan) == name) || unreadable.iter().any(|failure| failure.name == *name)
    };
    let missing = options.names.iter().filter(|name| !is_there(name));
    missing
        .map(|name| match &state.namespace {
            Some(namespace) => lookup::not_found("InstallPlan", name, namespace),
            None => CliError::new(ErrorKind::Api, format!("there is no InstallPlan {name:?} in any namespace")),
        })
        .collect()
}

const NAMESPACE: Column = Column::new("NAMESPACE");

const COLUMNS: [Column; 11] = [
    NAMESPACE,
    Column::new("NAME"),
    Column::new("CSVS"),
    Column::new("APPROVAL"),
    Column::new("PHASE"),
    Column::new("AGE"),
    Column::wide("APPROVED"),
    Column::wide("STEPS"),
    Column::wide("STEP"),
    Column::wide("SUBSCRIPTIONS"),
    Column::new("REASON"),
];

fn none(state: &ClusterState, pending: bool) -> String {
    let what = if pending { "No InstallPlans that wait for approval" } else { "No InstallPlans" };
    match &state.namespace {
        None => format!("{what} found"),
        Some(namespace) => format!("{what} found in {namespace} namespace; -A lists all namespaces"),
    }
}

/// Returns a plan as a row, and as data.
fn entry(listed: &Listed<'_>, state: &ClusterState, is_wide: bool) -> Entry {
    let Listed { plan, summary, subscriptions } = listed;
    let mut cells = Vec::new();
    if state.namespace.is_none() {
        cells.push(object::namespace(plan).to_owned());
    }
    let csvs: Vec<String> = summary.csvs.iter().map(ToString::to_string).collect();
    let phase = if summary.phase == Phase::None { "<none>" } else { summary.phase.as_str() };
    let (done, all) = summary.steps;
    let step = summary.step.as_ref().map(|step| format!("{}/{}", step.kind, step.name));
    let why = why(plan, summary);
    cells.extend([
        object::name(plan).to_owned(),
        csvs.join(", "),
        summary.approval.clone(),
        phase.to_owned(),
        table::object_age(plan, Timestamp::now()),
        summary.approved.to_string(),
        format!("{done}/{all}"),
        step.unwrap_or_default(),
        subscriptions.join(","),
        if is_wide { why } else { clause(&why, SHORT) },
    ]);
    // With all namespaces a line is an argument list: xargs -L1 kubectl olm install-plan approve
    let place = state.namespace.is_none().then(|| format!(" -n {}", object::namespace(plan)));
    Entry { object: document(listed), cells, name: format!("{}{}", output::name(plan), place.unwrap_or_default()) }
}

/// Returns what a plan waits for, without its name.
fn why(plan: &Value, summary: &PlanSummary) -> String {
    let reason = summary.reason.as_ref().map(|reason| match reason {
        Reason::ApprovalNeeded { .. } => "waits for approval".to_owned(),
        Reason::InstallPlanFailed { message, blocking_bundle, .. } => format!("{message}{}", blamed(blocking_bundle)),
        Reason::InstallPlanRetries { message, blocking_bundle, .. } => {
            format!("retries: {message}{}", blamed(blocking_bundle))
        }
        Reason::InstallPlanWaits { message, .. } | Reason::Invalid { message, .. } => message.clone(),
        other => other.to_string(),
    });
    let superseded = summary.superseded_by.as_ref().map(|newer| format!("superseded by {newer}"));
    let left_over = summary.left_over.then(|| {
        let (name, namespace) = (word(object::name(plan)), word(object::namespace(plan)));
        format!("left over; kubectl delete installplan {name} -n {namespace}")
    });
    left_over
        .into_iter()
        .chain(superseded)
        .chain(reason)
        .chain(summary.ignored_edits.iter().cloned())
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the bundle whose step it is, if the plan has several.
fn blamed(blocking_bundle: &BlockingBundle) -> String {
    if blocking_bundle.others.is_empty() { String::new() } else { format!(" ({})", blocking_bundle.csv) }
}

/// Returns a plan as data.
fn document(Listed { plan, summary, subscriptions }: &Listed<'_>) -> Value {
    let metadata = object::at(plan, &["metadata"]);
    let mut of_metadata = json!({ "namespace": object::namespace(plan), "name": object::name(plan) });
    for key in ["creationTimestamp", "labels", "annotations", "resourceVersion"] {
        if !metadata[key].is_null() {
            of_metadata[key] = metadata[key].clone();
        }
    }
    let mut document = serde_json::to_value(summary).unwrap_or_default();
    let message = summary.reason.as_ref().map(ToString::to_string);
    let hint = summary.reason.as_ref().and_then(Reason::hint);
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
    let (done, all) = summary.steps;
    document["steps"] = json!({ "done": done, "all": all });
    document
}
