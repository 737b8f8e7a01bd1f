//! `kubectl olm operator rollback`: undoes an upgrade as far as possible.
//!
//! ```text
//!   state --olm_core rollback--> pending: nothing to undo
//!                                the old version --> explanation on a copy of the cluster without the new one --prompt--> backup
//!   stored in the Operator object: what an interrupted rollback continues
//!     Subscription and ClusterServiceVersions are deleted as by uninstall; definitions and custom resources are retained
//!     Subscription of the old version, with manual approval --> settle: approve, wait for Succeeded
//! ```
//!
//! *Guarantees*: nothing is deleted before the installation of the old version was resolved and shown, with the checks of an InstallPlan:
//! the versions and schemas of definitions, and the existing custom resources.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use olm_core::api::cluster_service_version::Csv;
use olm_core::api::kinds;
use olm_core::api::object;
use olm_core::api::object::ObjectRef;
use olm_core::api::subscription::Subscription;
use olm_core::catalog::{Entry, Snapshot};
use olm_core::explain::{Explanation, Subject};
use olm_core::listing::{count, listed, shortened};
use olm_core::removal::rollback::{self, ANNOTATION, Judgement, NotPossible, Rollback};
use olm_core::removal::{self, Request};
pub use olm_core::version::Range;
use olm_core::version::{self, compare};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::deletion::refused;
use super::left::left;
use super::operands::{self, Operands};
use super::settle::{Target, settle};
use super::steps::Steps;
use super::uninstall::{reference, targets};
use super::{backup, controllers, lookup};
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::prompt::{confirm, confirm_with};
use crate::cli::source::read_catalogs;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::image;
use crate::installplan::explain::{self, differences, overview};
use crate::installplan::policy::{Refusal, Terms};
use crate::observe::ClusterState;
use crate::operatorgroup::operator::content;
use crate::registry::local::CatalogDirectory;

/// What to undo, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// Catalogs in directories.
    pub catalogs: Vec<CatalogDirectory>,
    /// The namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// The operator.
    pub name: String,
    /// The versions to return to; `None` for the one that the installed version replaces.
    pub to: Option<Range>,
    /// The directory for a backup of the custom resources.
    pub backup: Option<PathBuf>,
    /// The conditions that the plan must meet.
    pub terms: Terms,
    /// How long to wait for the old version; `None` for as long as it can still succeed.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format.
    pub output: Output,
    /// How images are pulled.
    pub images: image::Options,
}

/// Undoes an upgrade. The outcome is negative if there is nothing to undo, or the user declines.
///
/// # Errors
/// The operator does not exist, the old version is not in the catalog or could not be installed, the server refuses a request, or the old
/// version does not become healthy.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(roll_back(options, printer))
}

async fn roll_back(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let name = bare(&options.name, "subscription")?.to_owned();
    let terms = options.terms.understood()?;
    let (mut state, namespace) =
        lookup::read(&options.cluster, &options.catalogs, options.namespace.as_deref(), printer).await?;
    let mut result = Rolled { options, namespace: namespace.clone(), name: name.clone(), ..Rolled::new(options) };
    if let Some(begun) = rollback::interrupted(&Reader::new(&state.world), &namespace, &name) {
        printer.talk(format_args!("Continue the rollback from {} to {} that was interrupted", begun.from, begun.to));
        result.take(&begun);
        if options.dry_run != DryRun::None {
            return result.print("Planned", printer);
        }
        read_catalogs(&mut state, &namespace, &options.images, printer).await;
        let explanation = if options.yes {
            None
        } else {
            // The version may be installed already; other failures are reported when the rollback continues.
            explained(options, &mut state, &begun, printer).await.ok()
        };
        let question = format!("Install {} in namespace {namespace}?", begun.to);
        if !agreed(printer, &question, options.yes, explanation.as_ref())? {
            return result.decline("Nothing was changed", printer);
        }
        return Box::pin(finish(options, &begun, result, printer)).await;
    }
    let judgement = rollback::judge(&Reader::new(&state.world), &namespace, &name)
        .map_err(|why| not_possible(why, &name, &namespace))?;
    let (from, installed, replaces) = match &judgement {
        Judgement::Pending { plan, next } if options.to.is_none() => {
            printer.talk(format_args!("nothing to undo: InstallPlan {plan}, which installs {next}, is not approved"));
            printer.talk(format_args!(
                "hint: it has no effect until it is approved; to return to an older version than the installed one, state it with --to"
            ));
            result.to.clone_from(next);
            return result.print("NothingToUndo", printer);
        }
        Judgement::Pending { .. } => installed_of(&state, &namespace, &name)
            .ok_or_else(|| not_possible(NotPossible::NotInstalled, &name, &namespace))?,
        Judgement::Installed { csv, version, replaces, .. } => (csv.clone(), version.clone(), replaces.clone()),
    };
    read_catalogs(&mut state, &namespace, &options.images, printer).await;
    let (snapshot, entry) = target(options, &state, &namespace, &name, (&from, &installed, &replaces))?;
    if entry.name == from {
        printer.talk(format_args!("nothing to undo: {from} is installed"));
        result.to.clone_from(&from);
        return result.print("NothingToUndo", printer);
    }
    let content = content(&snapshot, &entry, &options.images).await?;
    let old: Value = serde_json::from_str(&content.csv_json)
        .map_err(|error| CliError::input(format!("{} in the catalog: {error}", entry.name)))?;
    let world = Reader::new(&state.world);
    let asked = Request { namespace: &namespace, name: &name, delete_crds: false, knows_all: true };
    let dependents = removal::plan(&world, asked).dependents;
    let Some(begun) = rollback::begin(&world, &namespace, &name, &from, &entry.name) else {
        return Err(not_possible(NotPossible::NoSubscription, &name, &namespace));
    };
    result.take(&begun);
    result.not_undone = rollback::not_undone(&world, &begun, Csv::new(&old));
    let removal = rollback::removal(&world, &begun);
    let Some(api) = state.api().cloned() else { return Ok(Outcome::Done) };
    let crd_of = |name: &str| world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name).cloned();
    let operands = operands::read(&api, &removal, &targets(&world, &namespace), true, crd_of).await?;
    let explanation = explained(options, &mut state, &begun, printer).await?;
    plan(&begun, &judgement, &explanation, &operands, &result, printer);
    if !dependents.is_empty() {
        printer.warn(format_args!("{} requires its APIs, which nothing processes meanwhile", listed(&dependents)));
    }
    if let Some(Refusal { why, hint }) = terms.refusal_in_advance(&explanation)? {
        let message = format!("nothing was rolled back: the plan that installs {}: {why}", begun.to);
        let error = CliError::new(ErrorKind::Api, message);
        return Err(if hint.is_empty() { error } else { error.hint(hint) });
    }
    let losses: u64 = explanation.crds.iter().map(|crd| crd.loss_count).sum();
    if losses > 0 && options.yes && options.backup.is_none() && options.terms.policies.is_empty() {
        let message = format!(
            "nothing was rolled back: fields that {} does not define would be lost, of {}",
            begun.to,
            count(usize::try_from(losses).unwrap_or(usize::MAX), "custom resource")
        );
        return Err(CliError::new(ErrorKind::Api, message)
            .hint("pass --backup DIR, or state with --if what is acceptable; without --yes the command prompts"));
    }
    if options.dry_run != DryRun::None {
        return result.print("Planned", printer);
    }
    controllers::warn_if_none(&api, printer).await;
    let question = format!("Roll back {name} from {from} to {}?", begun.to);
    if !agreed(printer, &question, options.yes, Some(&explanation))? {
        return result.decline("Nothing was changed", printer);
    }
    if let Some(folder) = &options.backup {
        let files = backup::write(folder, &format!("{namespace}/{name}"), &operands)?;
        printer.talk(format_args!("backed up {files} objects in {}", folder.display()));
    }
    store(&api, &begun).await?;
    Box::pin(finish(options, &begun, result, printer)).await
}

/// Prompts with a question, to which `d` prints the differences.
fn agreed(
    printer: &mut Printer,
    question: &str,
    yes: bool,
    explanation: Option<&Explanation>,
) -> Result<bool, CliError> {
    match explanation {
        Some(explanation) => confirm_with(printer, question, yes, |paint| differences(explanation, paint)),
        None => confirm(printer, question, yes),
    }
}

fn not_possible(why: NotPossible, name: &str, namespace: &str) -> CliError {
    let error = CliError::new(ErrorKind::Api, format!("{name} of namespace {namespace} cannot be rolled back: {why}"));
    error.hint(format!("kubectl olm operator describe {name} -n {namespace} shows its state"))
}

/// Returns name, version and predecessor of the installed ClusterServiceVersion.
fn installed_of(state: &ClusterState, namespace: &str, name: &str) -> Option<(String, String, String)> {
    let world = Reader::new(&state.world);
    let operators = lookup::operators(state).ok()?;
    let operator = operators.into_iter().find(|operator| lookup::is_named(operator, name))?;
    let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, &operator.installed?.csv).map(Csv::new)?;
    Some((csv.name().to_owned(), csv.version().to_owned(), csv.replaces().to_owned()))
}

/// Returns the bundle to return to, with the catalog that has it.
///
/// # Errors
/// The catalog cannot be read, or its channel does not have it.
fn target(
    options: &Options,
    state: &ClusterState,
    namespace: &str,
    name: &str,
    (from, installed, replaces): (&str, &str, &str),
) -> Result<(Arc<Snapshot>, Entry), CliError> {
    let world = Reader::new(&state.world);
    let operators = lookup::operators(state)?;
    let operator = operators.iter().find(|operator| lookup::is_named(operator, name));
    let subscription = operator.and_then(|operator| world.json(&kind::SUBSCRIPTION, namespace, &operator.name));
    let subscription = subscription
        .map(Subscription::new)
        .ok_or_else(|| not_possible(NotPossible::NoSubscription, name, namespace))?;
    let source = (subscription.source_namespace().to_owned(), subscription.source().to_owned());
    let refuse = |message: String| CliError::new(ErrorKind::Api, format!("nothing was rolled back: {message}"));
    let catalogs = explain::catalogs(state, namespace);
    let Some(snapshot) = catalogs.get(&source) else {
        return Err(refuse(format!("catalog {}/{} cannot be read", source.0, source.1))
            .hint("without it the old version cannot be installed; --catalog NAME=DIR uses a directory"));
    };
    let package = snapshot.package(subscription.package());
    let channel = package.and_then(|package| match subscription.channel() {
        "" => package.channel(&package.default_channel),
        channel => package.channel(channel),
    });
    let Some((package, channel)) = package.zip(channel) else {
        let of = format!("channel {:?} of package {}", subscription.channel(), subscription.package());
        return Err(refuse(format!("catalog {}/{} does not have {of}", source.0, source.1)));
    };
    let newest = |range: &Range| {
        let fitting = channel.entries.iter().filter(|entry| entry.version.as_ref().is_some_and(|v| range.contains(v)));
        fitting.max_by(|a, b| match (&a.version, &b.version) {
            (Some(a), Some(b)) => compare(a, b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
    };
    let found = match &options.to {
        Some(range) => newest(range),
        None if replaces.is_empty() => {
            return Err(refuse(format!("{from} replaces no other version")).hint("state the version with --to"));
        }
        None => channel.entries.iter().find(|entry| entry.name == replaces),
    };
    let Some(entry) = found else {
        let asked = options.to.as_ref().map_or_else(|| replaces.to_owned(), |range| format!("a version {range}"));
        let versions = shortened(channel.entries.iter().map(|entry| entry.version_text.as_str()));
        let others = package.channels.iter().filter(|other| other.name != channel.name);
        let others = others.filter(|other| other.entries.iter().any(|entry| entry.name == asked));
        let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        let message = format!(
            "channel {} of catalog {}/{} does not have {asked}; versions: {versions}",
            channel.name, source.0, source.1
        );
        let error = refuse(message).hint("without the old bundle it cannot be installed");
        return Err(if others.is_empty() {
            error
        } else {
            error.hint(format!("it is in channel {}", listed(&others)))
        });
    };
    let is_newer = match (&entry.version, version::parse(installed)) {
        (Some(to), Ok(installed)) => compare(to, &installed).is_gt(),
        _ => false,
    };
    if is_newer {
        return Err(refuse(format!("{} is newer than {from}", entry.name))
            .hint(format!("kubectl olm operator upgrade {name} -n {namespace} upgrades it")));
    }
    Ok((snapshot.clone(), entry.clone()))
}

/// Explains the installation of the old version on a copy of the cluster from which the new one was removed.
///
/// # Errors
/// The catalogs do not lead to that version.
async fn explained(
    options: &Options,
    state: &mut ClusterState,
    begun: &Rollback,
    printer: &mut Printer,
) -> Result<Explanation, CliError> {
    for csv in begun.csvs.keys() {
        let name = (begun.namespace.clone(), csv.clone());
        state.world.delete(&kind::CLUSTER_SERVICE_VERSION, &name, "", 0);
    }
    let mut subscription = begun.subscription.clone();
    let old = Reader::new(&state.world).json(&kind::SUBSCRIPTION, &begun.namespace, &begun.name);
    // An older version would be ignored.
    subscription["metadata"]["resourceVersion"] = old.map_or("", object::resource_version).into();
    state.world.apply(subscription);
    let subject = Subject::Subscription { namespace: begun.namespace.clone(), name: begun.name.clone() };
    let explanation = explain::explain(state, &subject, &options.images, explain::DryRun::None, printer).await?;
    if explanation.csvs.iter().any(|csv| csv.name == begun.to && csv.to.is_some()) {
        return Ok(explanation);
    }
    let others: Vec<&str> = explanation.csvs.iter().map(|csv| csv.name.as_str()).collect();
    let message = format!("nothing was rolled back: the catalogs lead to {} instead of {}", listed(&others), begun.to);
    Err(CliError::new(ErrorKind::Api, message).hint("other Subscriptions of the namespace may require another version"))
}

/// Prints what is done, and what is not undone.
fn plan(
    begun: &Rollback,
    judgement: &Judgement,
    explanation: &Explanation,
    operands: &[Operands],
    result: &Rolled<'_>,
    printer: &mut Printer,
) {
    let Rollback { namespace, name, from, to, .. } = begun;
    let failed = if judgement.has_failed() { ", which does not work," } else { "" };
    printer.talk(format_args!("Roll back {from}{failed} to {to} in namespace {namespace}:"));
    printer.talk(format_args!(
        "  delete Subscription {name} and {}: the operator does not run until {to} is installed",
        shortened(begun.csvs.keys().map(|csv| format!("ClusterServiceVersion {csv}")))
    ));
    for Operands { crd, objects, kept, .. } in operands {
        let number = count(objects.len() + kept, "custom resource");
        printer.talk(format_args!("  keep CustomResourceDefinition {crd} with {number}"));
    }
    printer.talk(format_args!(
        "  create Subscription {name} with startingCSV {to} and manual approval, and approve its InstallPlan:"
    ));
    overview(explanation).lines().for_each(|line| printer.talk(format_args!("    {line}")));
    printer.talk("This does not undo:");
    result.not_undone.iter().for_each(|line| printer.talk(format_args!("  {line}")));
    if result.options.backup.is_none() && operands.iter().any(|operands| !operands.objects.is_empty()) {
        printer.talk("hint: the old version may change custom resources; --backup DIR writes them to files first");
    }
}

/// Stores the rollback in the Operator object, so that it can be continued.
///
/// # Errors
/// The server refuses that: nothing else states what to continue.
async fn store(api: &Api, begun: &Rollback) -> Result<(), CliError> {
    let text = serde_json::to_string(begun).map_err(|error| CliError::new(ErrorKind::Internal, error.to_string()))?;
    let target = operator(begun);
    let annotations = json!({ ANNOTATION: text });
    let answer = match api.merge(&target, &json!({ "metadata": { "annotations": annotations } })).await {
        Err(refusal) if refusal.is_not_found() => {
            let mut created = target.to_object();
            created["metadata"]["annotations"] = annotations;
            created["spec"] = json!({});
            api.create(&created).await
        }
        answer => answer,
    };
    match answer {
        Ok(_) => Ok(()),
        Err(refusal) => Err(refused("patch", &target, refusal)
            .hint("nothing was changed: an interrupted rollback could not be continued without this object")),
    }
}

/// Returns the Operator object.
fn operator(begun: &Rollback) -> ObjectRef {
    kinds::OPERATOR.object("", &olm_core::operator::component(&begun.package, &begun.namespace))
}

/// Deletes what remains of the new version, and installs the old one. Can be repeated after any interruption.
async fn finish(
    options: &Options,
    begun: &Rollback,
    mut result: Rolled<'_>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let (mut state, namespace) =
        lookup::read(&options.cluster, &options.catalogs, options.namespace.as_deref(), printer).await?;
    let Some(api) = state.api().cloned() else { return Ok(Outcome::Done) };
    if !rollback::is_subscribed(&Reader::new(&state.world), begun) {
        let removal = rollback::removal(&Reader::new(&state.world), begun);
        let mut steps = Steps { api: &api, state: &state, removal: &removal, deleted: Vec::new() };
        steps.delete_subscription(printer).await?;
        steps.delete_csvs(printer).await?;
        steps.delete_definitions(None, printer).await?;
        let left = left(&steps, printer).await?;
        result.deleted = std::mem::take(&mut steps.deleted);
        if !left.is_empty() {
            let message = format!(
                "{} is not installed, because these objects of {} still exist: {}",
                begun.to,
                begun.from,
                listed(&left)
            );
            return Err(
                CliError::new(ErrorKind::Api, message).hint("remove what holds them, and run the command again")
            );
        }
        api.create(&begun.subscription).await.map_err(|refusal| {
            refused("create", &ObjectRef::from_object(&begun.subscription), refusal)
                .hint("run the command again to continue")
        })?;
        printer.talk(format_args!("created Subscription {namespace}/{}", begun.name));
        state = lookup::read(&options.cluster, &options.catalogs, options.namespace.as_deref(), printer).await?.0;
    }
    let world = Reader::new(&state.world);
    let found = world.json(&kind::SUBSCRIPTION, &namespace, &begun.name).map(Subscription::new);
    if let Some(other) = found.filter(|found| found.starting_csv() != begun.to) {
        let message = format!(
            "Subscription {namespace}/{} was changed by another client: its startingCSV is {:?}",
            begun.name,
            other.starting_csv()
        );
        return Err(CliError::new(ErrorKind::Api, message).hint(format!(
            "to forget the rollback: kubectl annotate operator {} {ANNOTATION}-",
            operator(begun).name
        )));
    }
    let installed = world.json(&kind::CLUSTER_SERVICE_VERSION, &namespace, &begun.to);
    let hash = if installed.is_some() {
        String::new()
    } else {
        read_catalogs(&mut state, &namespace, &options.images, printer).await;
        let subject = Subject::Subscription { namespace: namespace.clone(), name: begun.name.clone() };
        explain::explain(&mut state, &subject, &options.images, explain::DryRun::None, printer).await?.hash
    };
    let target = Target {
        cluster: &options.cluster,
        namespace: &namespace,
        name: &begun.name,
        csv: Some(&begun.to),
        is_checked: true,
        terms: &options.terms,
        images: &options.images,
        wait: true,
        timeout: options.timeout,
        yes: options.yes,
    };
    if settle(&api, target, &hash, printer).await?.is_none() {
        return result.decline("Run the command again to continue", printer);
    }
    let target = operator(begun);
    match api.merge(&target, &json!({ "metadata": { "annotations": { ANNOTATION: null } } })).await {
        Err(refusal) if !refusal.is_not_found() => return Err(refused("patch", &target, refusal)),
        _ => {}
    }
    result.print("RolledBack", printer)
}

/// The result of a rollback.
struct Rolled<'o> {
    options: &'o Options,
    namespace: String,
    name: String,
    package: String,
    from: String,
    to: String,
    deleted: Vec<ObjectRef>,
    not_undone: Vec<String>,
}

impl<'o> Rolled<'o> {
    fn new(options: &'o Options) -> Self {
        let text = String::new;
        let (deleted, not_undone) = (Vec::new(), Vec::new());
        Self {
            options,
            namespace: text(),
            name: text(),
            package: text(),
            from: text(),
            to: text(),
            deleted,
            not_undone,
        }
    }

    fn take(&mut self, begun: &Rollback) {
        self.package.clone_from(&begun.package);
        self.from.clone_from(&begun.from);
        self.to.clone_from(&begun.to);
    }

    fn decline(&self, effect: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
        printer.talk(effect);
        self.print("Declined", printer)
    }

    /// Prints the result. The outcome is negative if nothing was or would be done.
    fn print(&self, result: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
        let Self { options, namespace, name, package, from, to, deleted, not_undone } = self;
        let is_done = matches!(result, "Planned" | "RolledBack");
        match &options.output {
            Output::Table | Output::Wide if is_done => {
                printer.line(format_args!("operator/{name} rolled back to {to}{}", options.dry_run.note()))?;
            }
            Output::Table | Output::Wide => {}
            Output::Name => printer.line(format_args!("operator/{name}"))?,
            output => {
                let document = json!({
                    "apiVersion": API_VERSION, "kind": "OperatorRollback",
                    "namespace": namespace, "name": name, "package": package, "from": from, "to": to,
                    "dryRun": options.dry_run != DryRun::None, "result": result,
                    "deleted": deleted.iter().map(reference).collect::<Vec<_>>(),
                    "notUndone": not_undone,
                    "backup": options.backup.as_ref().map(|folder| folder.display().to_string()),
                });
                output.object(printer, &document, || Table::new([]))?;
            }
        }
        Ok(if is_done { Outcome::Done } else { Outcome::Negative })
    }
}
