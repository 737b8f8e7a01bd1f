//! `kubectl olm operator install`: subscribes to a package, and waits until its operator runs.
//!
//! ```text
//!   catalogs --olm_core selection--> catalog, channel, version
//!   namespace, install mode --group--> OperatorGroup, existing or compiled
//!     objects --> explanation on a copy of the cluster --prompt--> created --> plan approved --> Succeeded
//! ```
//!
//! *Guarantees*: nothing is created before the installation was resolved and shown. Only the plan that was shown is
//! approved. A repeated command continues where an earlier one ended.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use olm_core::api::catalog_source::CatalogSource;
use olm_core::api::object;
pub use olm_core::api::subscription::Approval;
use olm_core::api::subscription::Subscription;
use olm_core::api::{cluster_service_version::Csv, kinds};
use olm_core::catalog::ephemeral;
use olm_core::explain::{Explanation, Subject};
use olm_core::subscription::selection::{self, Request, Selection};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::controllers;
use super::creation::{label, send};
use super::group::{self, RequestedMode};
use super::publication::Publication;
use super::settle::{self, Target};
use super::subscription_config;
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags, SourceFlags};
use crate::cli::output::Output;
use crate::cli::prompt::confirm_with;
use crate::cli::source::read_catalogs;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::held_outside;
use crate::image;
use crate::installplan::explain::{self, differences, overview};
use crate::installplan::policy::{Refusal, Terms};
use crate::observe::{ClusterState, ReadScope};
use crate::operatorgroup::create::is_absent;
use crate::operatorgroup::operator::content;
use crate::registry::local::CatalogDirectory;

/// Annotation of a ClusterServiceVersion: the namespace that its author suggests.
const SUGGESTED_NAMESPACE: &str = "operatorframework.io/suggested-namespace";

/// `--catalog`: the catalog to install from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogSelection {
    /// A CatalogSource: `[NAMESPACE/]NAME`.
    Source {
        /// Its namespace, if given.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
    /// A directory that is served under the name of a CatalogSource: `NAME[.NAMESPACE]=DIR`.
    Directory(CatalogDirectory),
}

impl FromStr for CatalogSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('=') {
            return text.parse().map(Self::Directory);
        }
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace.as_deref() == Some("") {
            return Err("expected NAME, NAMESPACE/NAME or NAME[.NAMESPACE]=DIR".to_owned());
        }
        Ok(Self::Source { namespace, name: name.to_owned() })
    }
}

/// What to install, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// `PACKAGE` or `PACKAGE@RANGE`.
    pub package: String,
    /// The catalog; `None` to select it by rank.
    pub catalog: Option<CatalogSelection>,
    /// The channel; `None` for the default channel.
    pub channel: Option<String>,
    /// How later upgrades are approved; `None` for manually, or as an existing Subscription defines it.
    pub approval: Option<Approval>,
    /// Whether exactly the selected version is installed and kept.
    pub pin: bool,
    /// The namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// Whether to install into the namespace that the operator suggests.
    pub suggested_namespace: bool,
    /// Whether the namespace is created if it does not exist.
    pub create_namespace: bool,
    /// The install mode; `None` to use the existing OperatorGroup, or to derive one.
    pub mode: Option<RequestedMode>,
    /// The ServiceAccount with whose permissions operators of the namespace are installed.
    pub service_account: Option<String>,
    /// A file with the `spec.config` of the Subscription.
    pub config: Option<PathBuf>,
    /// The conditions that the plan must meet.
    pub terms: Terms,
    /// Whether to wait until the operator runs.
    pub wait: bool,
    /// How long to wait; `None` for as long as it can still succeed.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format.
    pub output: Output,
    /// Files instead of a cluster, for a dry run.
    pub from: Vec<PathBuf>,
    /// The cluster.
    pub cluster: ClusterFlags,
    /// How images are pulled.
    pub images: image::Options,
}

impl Options {
    fn source(&self, extra: Extra<'_>) -> SourceFlags {
        let mut catalogs = match &self.catalog {
            Some(CatalogSelection::Directory(directory)) => vec![directory.clone()],
            _ => Vec::new(),
        };
        catalogs.extend_from_slice(extra.catalogs);
        SourceFlags { from: self.from.clone(), catalogs, cluster: self.cluster.clone(), ..SourceFlags::default() }
    }
}

/// What is going to be installed.
struct Installation {
    namespace: String,
    /// The objects that do not exist yet, in the order of creation.
    new: Vec<Value>,
    /// The name of the Subscription.
    subscription: String,
    csv: String,
}

/// Installs an operator. The outcome is negative if the user declines.
///
/// # Errors
/// Nothing can be selected, the plan would fail or does not meet the terms, the server refuses a request, or the
/// operator does not become healthy.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if !options.from.is_empty() && options.dry_run != DryRun::Client {
        return Err(CliError::usage("with --from nothing can be installed")
            .hint("use --dry-run=client to print what would be done"));
    }
    if options.suggested_namespace && options.namespace.is_some() {
        return Err(CliError::usage("--suggested-namespace and -n are mutually exclusive"));
    }
    block_on(install(options, Extra::default(), printer))
}

/// What `operator run` adds to an installation.
#[derive(Clone, Copy, Default)]
pub(super) struct Extra<'e> {
    /// The catalog to create first.
    pub(super) publication: Option<&'e Publication>,
    /// Catalogs in directories, for dependencies.
    pub(super) catalogs: &'e [CatalogDirectory],
    /// The OperatorGroup that the user supplies.
    pub(super) group: Option<&'e Value>,
    /// The Subscription that the user supplies.
    pub(super) subscription: Option<&'e Value>,
}

impl Extra<'_> {
    /// Marks an object that is created with an ephemeral catalog.
    fn mark(self, object: &mut Value) {
        if let Some(publication) = self.publication {
            object::set_label(object, ephemeral::LABEL, publication.name());
        }
    }
}

/// Installs an operator, with what `operator run` adds.
pub(super) async fn install(options: &Options, extra: Extra<'_>, printer: &mut Printer) -> Result<Outcome, CliError> {
    let terms = options.terms.understood()?;
    let config = options.config.as_deref().map(subscription_config::read).transpose()?;
    let namespaces = NamespaceFlags { namespace: options.namespace.clone(), all_namespaces: false };
    let mut state = options.source(extra).read(&namespaces, &[], ReadScope::Planning, printer).await?;
    if let Some(vital) = state.read_failures.iter().find(|f| f.is_of("subscriptions") || f.is_of("operatorgroups")) {
        return Err(CliError::from(vital));
    }
    let mut installation = prepare(options, extra, &mut state, config, printer).await?;
    if options.suggested_namespace && state.namespace.as_deref() != Some(installation.namespace.as_str()) {
        let namespaces = NamespaceFlags { namespace: Some(installation.namespace.clone()), all_namespaces: false };
        state = options.source(extra).read(&namespaces, &[], ReadScope::Planning, printer).await?;
        let config = options.config.as_deref().map(subscription_config::read).transpose()?;
        installation = prepare(options, extra, &mut state, config, printer).await?;
    }
    let Some(explanation) = explained(options, &mut state, &installation, printer).await? else {
        // The Subscription exists, and nothing waits for approval.
        if let (Some(publication), Some(api), DryRun::None) = (extra.publication, state.api(), options.dry_run) {
            publication.send(api, false, None).await?;
        }
        return Box::pin(finish(options, &state, &installation, Vec::new(), None, printer)).await;
    };
    printer.talk(format_args!("Install {} in namespace {}:", installation.csv, installation.namespace));
    overview(&explanation).lines().for_each(|line| printer.talk(format_args!("  {line}")));
    if let Some(Refusal { why, hint }) = terms.refusal_in_advance(&explanation)? {
        let error = CliError::new(ErrorKind::Api, format!("nothing was installed: {why}"));
        return Err(if hint.is_empty() { error } else { error.hint(hint) });
    }
    if options.dry_run == DryRun::None {
        if let Some(api) = state.api() {
            controllers::warn_if_none(api, printer).await;
        }
        let question = format!("Install {} in namespace {}?", installation.csv, installation.namespace);
        if !confirm_with(printer, &question, options.yes, |paint| differences(&explanation, paint))? {
            printer.talk("Nothing was installed");
            return Ok(Outcome::Negative);
        }
    }
    let created = create(options, extra, &state, &installation.new, printer).await?;
    Box::pin(finish(options, &state, &installation, created, Some(&explanation.hash), printer)).await
}

/// Selects the bundle and the namespace, and prepares the objects that are missing.
async fn prepare(
    options: &Options,
    extra: Extra<'_>,
    state: &mut ClusterState,
    config: Option<Value>,
    printer: &mut Printer,
) -> Result<Installation, CliError> {
    let (package, range) = explain::package(&options.package)?;
    let asked = state.namespace.clone().unwrap_or_else(|| "default".to_owned());
    read_catalogs(state, &asked, &options.images, printer).await;
    let catalogs = explain::catalogs(state, &asked);
    let priority = |namespace: &str, name: &str| {
        let source = Reader::new(&state.world).json(&kind::CATALOG_SOURCE, namespace, name);
        source.map_or(0, |source| CatalogSource::new(source).priority())
    };
    let candidates = selection::candidates(&catalogs, &asked, priority);
    let catalog = options.catalog.as_ref().map(|catalog| match catalog {
        CatalogSelection::Source { namespace, name } => (namespace.as_deref(), name.as_str()),
        CatalogSelection::Directory(directory) => (directory.namespace.as_deref(), directory.name.as_str()),
    });
    let request = Request { package: &package, range: range.as_ref(), channel: options.channel.as_deref(), catalog };
    let selected = match selection::select(&candidates, request) {
        Ok(selected) => selected,
        Err(error) => {
            let unread = state.read_failures.iter().filter(|failure| failure.is_of_catalogs());
            let outside = match state.api().filter(|_| error.is_missing()) {
                Some(api) => held_outside(api).await,
                None => None,
            };
            let hints = std::iter::once(error.hint()).chain(unread.map(ToString::to_string));
            let hints = hints.chain(outside.map(|lease| lease.directories_hint()));
            return Err(hints.fold(CliError::input(error.to_string()), CliError::hint));
        }
    };
    warn_of_deprecation(&selected, printer);
    let content = content(selected.snapshot, selected.entry, &options.images).await?;
    let csv: Value = serde_json::from_str(&content.csv_json)
        .map_err(|error| CliError::input(format!("{} in the catalog: {error}", selected.entry.name)))?;
    let namespace = match object::annotation(&csv, SUGGESTED_NAMESPACE).filter(|_| options.suggested_namespace) {
        Some(suggested) => suggested.to_owned(),
        None if options.suggested_namespace => {
            return Err(CliError::usage(format!("{} suggests no namespace", selected.entry.name))
                .hint("specify a namespace with -n"));
        }
        None => asked.clone(),
    };
    let mut installation = Installation {
        namespace: namespace.clone(),
        new: Vec::new(),
        subscription: extra.subscription.map_or(package.as_str(), object::name).to_owned(),
        csv: selected.entry.name.clone(),
    };
    if namespace != asked {
        // The objects of that namespace are read next.
        return Ok(installation);
    }
    if let Some(existing) = existing(state, &namespace, &package, &installation.subscription)? {
        is_as_requested(options, existing, &selected, catalog.is_some(), config.as_ref())?;
        object::name(existing).clone_into(&mut installation.subscription);
        let existing = Subscription::new(existing);
        // An upgrade that waits for approval is not part of the installation.
        let known = [existing.installed_csv(), existing.current_csv()].into_iter().find(|csv| !csv.is_empty());
        known.unwrap_or(&installation.csv).to_owned().clone_into(&mut installation.csv);
    }
    state.read_objects([kinds::NAMESPACE.object("", &namespace)]).await;
    if is_absent(state, &namespace) {
        if !options.create_namespace && state.api().is_some() {
            return Err(CliError::new(ErrorKind::Api, format!("namespace {namespace} does not exist"))
                .hint("create it with --create-namespace, or specify another one with -n"));
        }
        if options.create_namespace {
            installation
                .new
                .push(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
        }
    }
    let asked = group::Request {
        namespace: &namespace,
        package: &package,
        mode: options.mode.as_ref(),
        service_account: options.service_account.as_deref(),
        csv: &csv,
    };
    let mut group = match extra.group {
        Some(group) => group::supplied(state, asked, group)?,
        None => group::missing(state, asked)?,
    };
    if let Some(group) = &mut group {
        extra.mark(group);
    }
    let existing_group = || {
        let world = Reader::new(&state.world);
        world.in_namespace(&kind::OPERATOR_GROUP, &namespace).next().map(|group| group.json().clone())
    };
    if !options.terms.allow_failing
        && state.api().is_some()
        && let Some(group) = group.clone().or_else(existing_group)
    {
        refuse_conflicts(options, extra, &group, asked, printer).await?;
    }
    installation.new.extend(group);
    if existing_name(state, &namespace, &installation.subscription).is_none() {
        let mut new = subscription(options, extra, &installation, &selected, range.is_some(), config);
        extra.mark(&mut new);
        installation.new.push(new);
    }
    Ok(installation)
}

/// Refuses an operator whose APIs another operator provides in the same namespaces: OLM would fail it.
async fn refuse_conflicts(
    options: &Options,
    extra: Extra<'_>,
    group: &Value,
    request: group::Request<'_>,
    printer: &mut Printer,
) -> Result<(), CliError> {
    let namespaces = NamespaceFlags { namespace: Some(request.namespace.to_owned()), all_namespaces: false };
    let all = options.source(extra).read(&namespaces, &[], ReadScope::Groups, printer).await?;
    if let Some(failure) = all.read_failures.first() {
        printer.warn(format_args!("{failure}; conflicts with operators of other namespaces are unknown"));
    }
    match &group::conflicts(&all, group, request)[..] {
        [] => Ok(()),
        [first, ..] => {
            let (what, how) = first.split_once("; to resolve this: ").unwrap_or((first, ""));
            Err(CliError::new(ErrorKind::Api, format!("{} would fail: {what}", object::name(request.csv)))
                .hint(how)
                .hint("to install it anyway, pass --allow-failing"))
        }
    }
}

fn warn_of_deprecation(selected: &Selection<'_>, printer: &mut Printer) {
    let messages =
        [&selected.package.deprecation, &selected.channel.deprecation, &selected.entry.deprecation].into_iter();
    for message in messages.flatten() {
        printer.warn(format_args!("deprecated in the catalog: {message}"));
    }
}

fn existing_name<'s>(state: &'s ClusterState, namespace: &str, name: &str) -> Option<&'s Value> {
    Reader::new(&state.world).json(&kind::SUBSCRIPTION, namespace, name)
}

/// Returns the Subscription of the namespace to the package.
///
/// # Errors
/// The name is used by a Subscription to another package.
fn existing<'s>(
    state: &'s ClusterState,
    namespace: &str,
    package: &str,
    name: &str,
) -> Result<Option<&'s Value>, CliError> {
    let world = Reader::new(&state.world);
    let mut all = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|object| object.json());
    if let Some(found) = all.find(|subscription| Subscription::new(subscription).package() == package) {
        return Ok(Some(found));
    }
    match existing_name(state, namespace, name) {
        Some(other) => Err(CliError::new(
            ErrorKind::Api,
            format!(
                "Subscription {name} of namespace {namespace} is for another package, {}",
                Subscription::new(other).package()
            ),
        )
        .hint("install into another namespace with -n, or rename that Subscription")),
        None => Ok(None),
    }
}

/// Checks that an existing Subscription is what was requested.
fn is_as_requested(
    options: &Options,
    existing: &Value,
    selected: &Selection<'_>,
    is_catalog_given: bool,
    config: Option<&Value>,
) -> Result<(), CliError> {
    let subscription = Subscription::new(existing);
    let (namespace, name) = (object::namespace(existing), object::name(existing));
    let differs = |what: fmt::Arguments<'_>| {
        let error = CliError::new(ErrorKind::Api, format!("Subscription {namespace}/{name} exists, with {what}"));
        Err(error.hint(format!("kubectl olm operator upgrade {name} -n {namespace} upgrades it; kubectl edit subscription {name} -n {namespace} changes its spec")))
    };
    let catalog = (subscription.source_namespace(), subscription.source());
    if is_catalog_given && catalog != (selected.catalog.0.as_str(), selected.catalog.1.as_str()) {
        return differs(format_args!("catalog {}/{}", catalog.0, catalog.1));
    }
    let is_default = subscription.channel().is_empty() && selected.channel.name == selected.package.default_channel;
    if options.channel.is_some() && subscription.channel() != selected.channel.name && !is_default {
        return differs(format_args!("channel {:?}", subscription.channel()));
    }
    let approval = match subscription.approval_text() {
        "" => "Automatic",
        text => text,
    };
    let manual = options.pin.then_some(Approval::Manual);
    if let Some(wanted) = options.approval.or(manual).filter(|wanted| json!(wanted) != approval) {
        return differs(format_args!("approval {approval}, not {}", json!(wanted).as_str().unwrap_or_default()));
    }
    let starting = object::text(existing, &["spec", "startingCSV"]);
    if options.pin && starting != selected.entry.name {
        let has = if starting.is_empty() { "no startingCSV" } else { starting };
        return differs(format_args!("{has}, so it is not pinned to {}", selected.entry.name));
    }
    if config.is_some_and(|config| object::at(existing, &["spec", "config"]) != config) {
        return differs(format_args!("another spec.config"));
    }
    let installed = subscription.installed_csv();
    if options.package.contains('@') && !installed.is_empty() && installed != selected.entry.name {
        return differs(format_args!("{installed} installed"));
    }
    Ok(())
}

/// Returns the Subscription to create.
fn subscription(
    options: &Options,
    extra: Extra<'_>,
    installation: &Installation,
    selected: &Selection<'_>,
    has_range: bool,
    config: Option<Value>,
) -> Value {
    let chosen = options.approval.filter(|_| !options.pin);
    let approval = chosen.unwrap_or(Approval::Manual);
    let mut spec = json!({
        "name": selected.package.name,
        "channel": selected.channel.name,
        "source": selected.catalog.1,
        "sourceNamespace": selected.catalog.0,
        "installPlanApproval": approval,
    });
    if has_range || options.pin {
        spec["startingCSV"] = selected.entry.name.as_str().into();
    }
    if let Some(config) = config {
        spec["config"] = config;
    }
    let mut object = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": { "name": installation.subscription, "namespace": installation.namespace },
        "spec": spec,
    });
    // What the user supplies takes precedence; it was checked to be about this bundle.
    if let Some(supplied) = extra.subscription {
        json_patch::merge(&mut object, supplied);
    }
    object
}

/// Explains the installation on a copy of the cluster that has the new objects. Returns `None` if nothing is left to do.
async fn explained(
    options: &Options,
    state: &mut ClusterState,
    installation: &Installation,
    printer: &mut Printer,
) -> Result<Option<Explanation>, CliError> {
    let Installation { namespace, new, subscription, .. } = installation;
    for object in new {
        state.world.apply(object.clone());
    }
    if new.is_empty() {
        let existing = existing_name(state, namespace, subscription).map(Subscription::new);
        let installed = existing.map_or("", Subscription::installed_csv);
        let csv = Reader::new(&state.world).json(&kind::CLUSTER_SERVICE_VERSION, namespace, installed).map(Csv::new);
        if csv.is_some() {
            return Ok(None);
        }
    }
    let subject = Subject::Subscription { namespace: namespace.clone(), name: subscription.clone() };
    let dry_run = if options.dry_run == DryRun::Client { explain::DryRun::None } else { explain::DryRun::Server };
    explain::explain(state, &subject, &options.images, dry_run, printer).await.map(Some)
}

/// Creates the objects, or sends them as a dry run. Returns them as the server stored them.
async fn create(
    options: &Options,
    extra: Extra<'_>,
    state: &ClusterState,
    new: &[Value],
    printer: &mut Printer,
) -> Result<Vec<Value>, CliError> {
    // The catalog is in the namespace, and the Subscription needs it.
    let first = new.iter().take_while(|object| object::kind(object) == "Namespace").count();
    let (namespaces, others) = new.split_at(first);
    let (DryRun::None | DryRun::Server, Some(api)) = (options.dry_run, state.api()) else {
        let catalog = extra.publication.map(Publication::objects).unwrap_or_default();
        return Ok([namespaces, &catalog, others].concat());
    };
    let mut created = create_each(options, api, namespaces, false, printer).await?;
    let is_in_new = options.dry_run == DryRun::Server && !created.is_empty();
    if let Some(publication) = extra.publication {
        if is_in_new {
            created.extend(publication.objects());
        } else {
            let lines = (options.output == Output::Table && options.dry_run == DryRun::None).then_some(&mut *printer);
            created.extend(publication.send(api, options.dry_run == DryRun::Server, lines).await?);
        }
    }
    created.extend(create_each(options, api, others, is_in_new, printer).await?);
    Ok(created)
}

/// Creates objects. `is_in_new`: the namespace is one that a dry run does not create, so that the server refuses them.
async fn create_each(
    options: &Options,
    api: &Api,
    new: &[Value],
    is_in_new: bool,
    printer: &mut Printer,
) -> Result<Vec<Value>, CliError> {
    let mut created: Vec<Value> = Vec::new();
    for object in new {
        if options.dry_run == DryRun::Server {
            created.push(if is_in_new { object.clone() } else { send(api, object, true).await? });
            continue;
        }
        let stored = send(api, object, false).await?;
        if options.output == Output::Table {
            printer.line(format_args!("{} created", label(&stored)))?;
            printer.flush()?;
        }
        created.push(stored);
    }
    Ok(created)
}

/// Approves the plan, waits for the operator, and prints the result.
async fn finish(
    options: &Options,
    state: &ClusterState,
    installation: &Installation,
    mut objects: Vec<Value>,
    hash: Option<&str>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let Installation { namespace, subscription, csv, .. } = installation;
    let is_text = matches!(options.output, Output::Table | Output::Wide);
    let mut outcome = Outcome::Done;
    if options.dry_run == DryRun::None
        && let Some(api) = state.api()
    {
        let target = Target {
            cluster: &options.cluster,
            namespace,
            name: subscription,
            csv: Some(csv),
            is_checked: hash.is_some(),
            terms: &options.terms,
            images: &options.images,
            wait: options.wait,
            timeout: options.timeout,
            yes: options.yes,
        };
        match Box::pin(settle::settle(api, target, hash.unwrap_or_default(), printer)).await? {
            Some(operator) => {
                let installed = operator.installed.or(operator.next);
                let version = installed.map_or_else(|| csv.clone(), |version| version.csv);
                if is_text {
                    let done = if options.wait { "installed" } else { "approved" };
                    printer.line(format_args!("operator/{subscription} {done}: {version}"))?;
                }
            }
            None => outcome = Outcome::Negative,
        }
        let latest = api.get(&kinds::SUBSCRIPTION.object(namespace, subscription)).await.ok().flatten();
        objects.retain(|object| object::kind(object) != "Subscription");
        objects.extend(latest);
    }
    if is_text {
        let note = options.dry_run.note();
        for object in objects.iter().filter(|_| !note.is_empty()) {
            printer.line(format_args!("{} created{note}", label(object)))?;
        }
        let is_new = objects.iter().any(|object| object::kind(object) == "Subscription");
        if let Some(existing) = existing_name(state, namespace, subscription).filter(|_| !note.is_empty() && !is_new) {
            printer.line(format_args!("{} unchanged{note}", label(existing)))?;
        }
        return Ok(outcome);
    }
    for object in &mut objects {
        object::map_mut(object, &["metadata"]).remove("managedFields");
    }
    options.output.objects(printer, &objects, || Table::new([]))?;
    Ok(outcome)
}
