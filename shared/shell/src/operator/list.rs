//! `kubectl olm operator list`, which is also `kubectl olm status`: the state of operators, and what each waits for.

use jiff::Timestamp;
use olm_core::api::object;
use olm_core::health::{Health, Operator, Version};
use olm_core::listing::{CAUSE, clause};
use olm_core::plan::Reason;
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::cause::cause;
use super::lookup;
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::list::{Column, Entry, ListFlags, Listing};
use crate::cli::name::bare;
use crate::cli::output::API_VERSION;
use crate::cli::source::warn_of_gaps;
use crate::cli::table;
use crate::cli::{CliError, Outcome, Printer};
use crate::cluster::api::Api;
use crate::observe::{self, ClusterState, Overlay, ReadScope};

/// Which operators to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of the objects.
    pub source: SourceFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// Their names; empty means all.
    pub names: Vec<String>,
    /// Whether to list only operators for which a user has to act.
    pub blocked: bool,
    /// The selection and the output format.
    pub list: ListFlags,
}

/// Lists operators. The outcome is negative if a named one does not exist.
///
/// # Errors
/// Subscriptions and ClusterServiceVersions cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    options.list.refuse_to_watch("operators, which are derived from several objects")?;
    let names: Vec<String> =
        options.names.iter().map(|text| Ok(bare(text, "subscription")?.to_owned())).collect::<Result<_, CliError>>()?;
    let state = block_on(options.source.read(&options.namespaces, &[], ReadScope::Operators, printer))?;
    show(options, &names, &state, printer)
}

/// Reads the operators of a namespace, or of all namespaces.
///
/// # Errors
/// The cluster cannot be read.
pub(crate) async fn read(api: Api, namespace: Option<String>) -> Result<ClusterState, CliError> {
    let scope = ReadScope::Operators;
    Ok(observe::read_cluster(api, namespace, scope, &Overlay::default(), &mut |_| {}).await?)
}

/// Returns the operators.
///
/// # Errors
/// Subscriptions and ClusterServiceVersions cannot be read.
pub(crate) fn found(state: &ClusterState) -> Result<Vec<Operator>, CliError> {
    lookup::operators(state)
}

/// Returns the operators as data.
///
/// # Errors
/// Subscriptions and ClusterServiceVersions cannot be read.
pub(crate) fn documents(state: &ClusterState) -> Result<Vec<Value>, CliError> {
    let world = Reader::new(&state.world);
    let operators = lookup::operators(state)?;
    Ok(operators.iter().map(|operator| document(operator, object_of(operator, &world))).collect())
}

/// Prints the operators of a state; `names` are those of the options.
///
/// # Errors
/// Subscriptions and ClusterServiceVersions cannot be read.
pub(crate) fn show(
    options: &Options,
    names: &[String],
    state: &ClusterState,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    warn_of_gaps(state, printer);
    let world = Reader::new(&state.world);
    let mut operators = lookup::operators(state)?;
    let missing: Vec<&String> =
        names.iter().filter(|name| !operators.iter().any(|operator| operator.name == **name)).collect();
    operators.retain(|operator| names.is_empty() || names.contains(&operator.name));
    operators.retain(|operator| !options.blocked || operator.health == Health::Blocked);
    let columns = COLUMNS.into_iter().filter(|column| state.namespace.is_none() || *column != NAMESPACE);
    let is_wide = options.list.output.output.is_wide();
    let listing = Listing {
        columns: columns.collect(),
        entries: operators.iter().map(|operator| entry(operator, &world, state, is_wide)).collect(),
        document: json!({ "apiVersion": API_VERSION, "kind": "OperatorList" }),
    };
    let listing = listing.arranged(&options.list)?;
    if listing.entries.is_empty() && options.list.wants_table() && names.is_empty() {
        printer.talk(none(state, options.blocked));
        return Ok(Outcome::Done);
    }
    if !listing.entries.is_empty() || !options.list.wants_table() {
        listing.print(&options.list, printer)?;
    }
    for name in &missing {
        printer.error(&lookup::not_found(name, state.namespace.as_deref()));
    }
    Ok(if missing.is_empty() { Outcome::Done } else { Outcome::Negative })
}

pub(super) fn none(state: &ClusterState, blocked: bool) -> String {
    let what = if blocked { "No operators that need an action" } else { "No operators" };
    match &state.namespace {
        None => format!("{what} found"),
        Some(namespace) => format!("{what} found in {namespace} namespace; -A lists all namespaces"),
    }
}

const NAMESPACE: Column = Column::new("NAMESPACE");

const COLUMNS: [Column; 12] = [
    NAMESPACE,
    Column::new("NAME"),
    Column::new("INSTALLED"),
    Column::new("NEXT"),
    Column::new("APPROVAL"),
    Column::new("HEALTH"),
    Column::new("AGE"),
    Column::wide("PACKAGE"),
    Column::wide("CHANNEL"),
    Column::wide("CATALOG"),
    Column::new("CAUSE"),
    Column::new("COMMAND"),
];

/// Returns an operator as a row, and as data.
fn entry(operator: &Operator, world: &Reader<'_>, state: &ClusterState, is_wide: bool) -> Entry {
    let object = object_of(operator, world);
    let mut cells = Vec::new();
    if state.namespace.is_none() {
        cells.push(operator.namespace.clone());
    }
    let cause = operator.reason.as_ref().map(cause).unwrap_or_default();
    cells.extend([
        operator.name.clone(),
        operator.installed.as_ref().map(number).unwrap_or_default(),
        operator.next.as_ref().map(number).unwrap_or_default(),
        operator.approval.clone(),
        operator.health.as_str().to_owned(),
        object.map(|object| table::object_age(object, Timestamp::now())).unwrap_or_default(),
        operator.package.clone(),
        operator.channel.clone(),
        operator.catalog.clone(),
        if is_wide { cause } else { clause(&cause, CAUSE) },
        operator.command.clone().unwrap_or_default(),
    ]);
    let place = if state.namespace.is_none() { format!(" -n {}", operator.namespace) } else { String::new() };
    Entry { object: document(operator, object), cells, name: format!("operator/{}{place}", operator.name) }
}

pub(super) fn object_of<'w>(operator: &Operator, world: &Reader<'w>) -> Option<&'w Value> {
    let kind = if operator.subscribed { &kind::SUBSCRIPTION } else { &kind::CLUSTER_SERVICE_VERSION };
    world.json(kind, &operator.namespace, &operator.name)
}

/// Returns the version; of a ClusterServiceVersion that does not exist yet, the version in its name, or the name.
fn number(version: &Version) -> String {
    let in_name = || version.csv.split_once(".v").map(|(_, number)| number).filter(|number| is_version(number));
    let known = (!version.version.is_empty()).then_some(version.version.as_str());
    known.or_else(in_name).unwrap_or(&version.csv).to_owned()
}

fn is_version(text: &str) -> bool {
    text.parse::<olm_core::version::Version>().is_ok()
}

/// Returns an operator as data.
pub(super) fn document(operator: &Operator, object: Option<&Value>) -> Value {
    let mut metadata = json!({ "namespace": operator.namespace, "name": operator.name });
    for key in ["creationTimestamp", "labels"] {
        let value = object.map_or(&Value::Null, |object| object::at(object, &["metadata", key]));
        if !value.is_null() {
            metadata[key] = value.clone();
        }
    }
    let mut document = serde_json::to_value(operator).unwrap_or_default();
    if let Some(fields) = document.as_object_mut() {
        fields.remove("namespace");
        fields.remove("name");
        fields.insert("metadata".to_owned(), metadata);
        let message = operator.reason.as_ref().map(ToString::to_string);
        let hint = operator.reason.as_ref().and_then(Reason::hint);
        for (key, value) in [("message", message), ("hint", hint)] {
            fields.extend(value.map(|value| (key.to_owned(), value.into())));
        }
    }
    document
}
