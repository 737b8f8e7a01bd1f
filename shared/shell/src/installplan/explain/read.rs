//! Reads the objects that an explanation needs, and explains.
//!
//! The objects that a plan touches are known only after it was executed on a copy. So it is executed repeatedly: after
//! each attempt the objects that it requested are read (existing objects that it would create, custom resources to
//! validate, the content of bundles), until it requests nothing new.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clap::ValueEnum;
use olm_core::api::install_plan::{InstallPlan, Phase};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::subscription::Subscription;
use olm_core::api::{catalog_source, kinds};
use olm_core::bundle::{Unpacked, reference};
use olm_core::catalog::Snapshot;
use olm_core::explain::{Asks, Bundle, Change, Cluster, Error, Explainer, Explanation, Subject, UnreadableResource};
use olm_core::structural::{SchemaCheck, SchemaCheckResult};
use olm_core::world::{Reader, kind};

use super::super::lookup;
use super::dry_run;
use crate::cli::source::read_catalogs;
use crate::cli::{CliError, ErrorKind, Printer, errors};
use crate::cluster::pull_secrets::PullSecrets;
use crate::cluster::schema_check;
use crate::observe::{ClusterState, ReadFailure, STALE, scope};
use crate::{image, registry};

/// The maximum number of attempts: objects, then custom resources and bundles, then what these add.
const TRIES: usize = 4;

/// The maximum number of unreadable objects of a kind to name.
const NAMED: usize = 3;

/// Whether the objects are sent to the API server as a dry run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// As far as your permissions allow.
    #[default]
    Server,
    /// Only read requests are sent.
    None,
}

/// Explains one subject on the state that was read, and reads more of the cluster where needed.
///
/// # Errors
/// The subject does not exist, or no known catalog offers it.
pub async fn explain(
    state: &mut ClusterState,
    subject: &Subject,
    images: &image::Options,
    dry_run: DryRun,
    printer: &mut Printer,
) -> Result<Explanation, CliError> {
    let (_, mut explanation, asks) = tried_out(state, subject, images, printer).await?;
    if dry_run == DryRun::Server {
        let progress = printer.progress("sending the objects to the API server as a dry run");
        let (results, missing) = dry_run::send(state, asks.writes).await;
        drop(progress);
        explanation.add_results(results, missing, state.settings.optional_manifests);
    }
    Ok(explanation)
}

/// Explains without a dry run, and also returns the copy of the cluster.
pub(crate) async fn explainer(
    state: &mut ClusterState,
    subject: &Subject,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<(Explainer, Explanation), CliError> {
    tried_out(state, subject, images, printer).await.map(|(explainer, explanation, _)| (explainer, explanation))
}

async fn tried_out(
    state: &mut ClusterState,
    subject: &Subject,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<(Explainer, Explanation, Asks), CliError> {
    if needs_catalogs(state, subject) {
        read_catalogs(state, subject.namespace(), images, printer).await;
    }
    let mut more = More::default();
    let mut tries = 0;
    loop {
        let explainer = Explainer::new(&state.settings, cluster(state, subject.namespace(), &more));
        let (explanation, asks) = explainer.explain_and_ask(subject).map_err(|error| unexplained(&error, state))?;
        tries += 1;
        if tries == TRIES || !more.read(state, &explanation, &asks.fits, images, printer).await? {
            return Ok((explainer, explanation, asks));
        }
    }
}

fn unexplained(error: &Error, state: &ClusterState) -> CliError {
    let unreadable: Vec<String> = state
        .read_failures
        .iter()
        .filter(|failure| failure.resource.contains("catalogsources"))
        .map(ToString::to_string)
        .collect();
    match error {
        Error::NotFound { kind, .. } => {
            CliError::new(ErrorKind::Input, error.to_string()).hint(lookup::whereabouts(kind))
        }
        Error::NotOffered { catalogs, .. } => {
            let unreadable = if unreadable.is_empty() { String::new() } else { format!("; {}", unreadable.join("; ")) };
            let refusal = CliError::new(ErrorKind::Input, format!("{error}{unreadable}"));
            if catalogs.is_empty() && state.api().is_none() {
                refusal.hint("specify a catalog with --catalog NAME[.NAMESPACE]=DIR")
            } else {
                refusal.hint("use --catalog NAME[.NAMESPACE]=DIR to add or replace a catalog")
            }
        }
    }
}

/// Returns whether the subject must be resolved. An existing plan contains all its steps.
fn needs_catalogs(state: &ClusterState, subject: &Subject) -> bool {
    let Subject::Subscription { namespace, name } = subject else {
        return !matches!(subject, Subject::Plan { .. });
    };
    let world = Reader::new(&state.world);
    let plan = world.json(&kind::SUBSCRIPTION, namespace, name);
    let plan = plan.map_or("", |json| Subscription::new(json).plan_name());
    let plan = world.json(&kind::INSTALL_PLAN, namespace, plan);
    !plan.is_some_and(|plan| {
        matches!(InstallPlan::new(plan).phase(), Phase::RequiresApproval | Phase::Installing | Phase::Failed)
    })
}

/// Returns the known content of the catalogs that a namespace can use.
pub(crate) fn catalogs(state: &ClusterState, namespace: &str) -> BTreeMap<(String, String), Arc<Snapshot>> {
    let world = Reader::new(&state.world);
    let global = state.settings.global_catalog_namespace.as_str();
    let mut catalogs = BTreeMap::new();
    for place in BTreeSet::from([namespace, global]) {
        let sources = world.in_namespace(&kind::CATALOG_SOURCE, place).map(|o| object::name(o.json()));
        let named = sources.filter_map(|name| Some((name, world.catalog(place, name)?)));
        for (name, fact) in named.chain(world.local_catalogs(place)) {
            if let Some(snapshot) = &fact.snapshot {
                catalogs.insert((place.to_owned(), name.to_owned()), snapshot.clone());
            }
        }
    }
    catalogs
}

/// Returns the input of the explainer.
fn cluster(state: &ClusterState, namespace: &str, more: &More) -> Cluster {
    let world = Reader::new(&state.world);
    let kinds = state.served.kinds().map(|gvk| (gvk.clone(), state.served.is_namespaced(gvk)));
    Cluster {
        objects: state.world.objects().map(|o| o.json().clone()).collect(),
        kinds: kinds.collect(),
        kinds_are_complete: state.served.is_complete(),
        undiscovered: state.served.hidden().iter().map(|version| (version.clone(), STALE.to_owned())).collect(),
        server_version: world.server_version().unwrap_or_default().to_owned(),
        catalogs: catalogs(state, namespace),
        bundles: more.bundles.clone(),
        fits: more.fits.iter().filter_map(|(key, found)| Some((key.clone(), found.clone()?))).collect(),
        unreadable: unreadable(&state.read_failures),
        now: state.at,
    }
}

/// Returns what could not be read. Single objects of a kind are combined.
pub(super) fn unreadable(failures: &[ReadFailure]) -> Vec<UnreadableResource> {
    let mut grouped: Vec<(&ReadFailure, Vec<&str>)> = Vec::new();
    let parts =
        |failure: &ReadFailure| (failure.verb, failure.resource.clone(), failure.namespace.clone(), failure.forbidden);
    for failure in failures {
        match grouped
            .iter_mut()
            .find(|(known, _)| failure.forbidden && !failure.name.is_empty() && parts(known) == parts(failure))
        {
            Some((_, names)) => names.push(&failure.name),
            None => grouped.push((failure, vec![&failure.name])),
        }
    }
    let named = |(failure, names): (&ReadFailure, Vec<&str>)| {
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let name = format!("{}{more}", names[..names.len().min(NAMED)].join(", "));
        let message = ReadFailure { name, ..failure.clone() }.to_string();
        UnreadableResource { resource: failure.resource.clone(), namespace: failure.namespace.clone(), message }
    };
    grouped.into_iter().map(named).collect()
}

/// What was read in addition, because an explanation requested it.
#[derive(Default)]
struct More {
    objects: BTreeSet<ObjectRef>,
    /// The results for custom resources, by the name of the CRD and the digest of the check; `None` if they could not
    /// be read.
    fits: BTreeMap<(String, String), Option<SchemaCheckResult>>,
    /// The content of bundles by their images.
    bundles: BTreeMap<String, Unpacked>,
}

impl More {
    /// Reads what the explanation requests and was not read before. Returns `false` if there is nothing.
    ///
    /// # Errors
    /// The API server failed, so that the explanation would be wrong.
    async fn read(
        &mut self,
        state: &mut ClusterState,
        explanation: &Explanation,
        fits: &[SchemaCheck],
        images: &image::Options,
        printer: &Printer,
    ) -> Result<bool, CliError> {
        let mut any = false;
        for bundle in explanation.bundles.iter().filter(|b| !b.unpacked && !b.image.is_empty()) {
            if !self.bundles.contains_key(&bundle.image) {
                let unpacked = unpack(state, bundle, images, printer).await;
                self.bundles.insert(bundle.image.clone(), unpacked);
                any = true;
            }
        }
        if state.api().is_none() {
            return Ok(any);
        }
        let is_listed = |gvk: &Gvk| scope::find(&gvk.group, &gvk.kind).is_some();
        let touched = explanation.objects.iter().filter(|o| o.change == Change::Create && !is_listed(&o.gvk));
        let new: Vec<ObjectRef> = touched
            .map(|o| ObjectRef { gvk: o.gvk.clone(), namespace: o.namespace.clone(), name: o.name.clone() })
            .filter(|target| self.objects.insert(target.clone()))
            .collect();
        any |= !new.is_empty();
        let known = state.read_failures.len();
        state.read_objects(new).await;
        if let Some(failure) = state.read_failures[known..].iter().find(|failure| !failure.forbidden) {
            return Err(CliError::from(failure));
        }
        for question in fits {
            if let Entry::Vacant(vacant) = self.fits.entry((question.crd.clone(), question.digest())) {
                vacant.insert(check_custom_resources(state, question, printer).await);
                any = true;
            }
        }
        Ok(any)
    }
}

/// Checks custom resources against a schema, page by page. Records what cannot be read as a read failure.
async fn check_custom_resources(
    state: &mut ClusterState,
    question: &SchemaCheck,
    printer: &Printer,
) -> Option<SchemaCheckResult> {
    let api = state.api().cloned()?;
    let progress = printer.progress(format!("reading every {}", question.kind));
    let (found, _) = schema_check::check(&api, question).await;
    drop(progress);
    let Some(refusal) = found.refusal.clone() else { return Some(found) };
    state.read_failures.push(ReadFailure {
        verb: "list",
        resource: question.crd.clone(),
        namespace: String::new(),
        name: String::new(),
        forbidden: refusal.is_forbidden(),
        message: refusal.message,
        code: refusal.code,
        is_namespaced: question.namespaced,
    });
    // Findings from pages before the error are still valid.
    (found.invalid > 0 || found.losses > 0).then_some(found)
}

/// Returns the content of a bundle: from the ConfigMap into which OLM unpacked it, else from its image.
async fn unpack(state: &ClusterState, bundle: &Bundle, images: &image::Options, printer: &Printer) -> Unpacked {
    if let (Some(api), Some((namespace, _))) = (state.api(), bundle.catalog.split_once('/')) {
        let target = kinds::CONFIG_MAP.object(namespace, &reference::config_map_name(&bundle.image));
        if let Ok(Some(config_map)) = api.get(&target).await
            && let Ok(content) = reference::content(&config_map)
        {
            return Unpacked::Content(content);
        }
    }
    let progress = printer.progress(format!("pulling bundle {}", bundle.csv));
    let unpacked = match PullSecrets::location(&bundle.image) {
        Ok(location) => {
            let (namespace, secrets) = secrets(state, bundle);
            let (options, unreadable) = match state.api() {
                Some(api) => PullSecrets::new(api.clone(), images).readable_options(namespace, &secrets).await,
                None => (images.for_others(), None),
            };
            let note = |why: String| match &unreadable {
                Some(unreadable) => format!("{why}; {unreadable}"),
                None => why,
            };
            match errors::unpacked(registry::image::unpack(&location, &options).await) {
                Unpacked::Later(why) => Unpacked::Later(note(why)),
                Unpacked::Refused(why) => Unpacked::Refused(note(why)),
                unpacked => unpacked,
            }
        }
        Err(error) => error.unpacked(errors::hint),
    };
    drop(progress);
    unpacked
}

/// Returns the pull secrets of the CatalogSource of a bundle, and their namespace.
fn secrets<'b>(state: &ClusterState, bundle: &'b Bundle) -> (&'b str, Vec<String>) {
    let Some((namespace, name)) = bundle.catalog.split_once('/') else { return ("", Vec::new()) };
    let world = Reader::new(&state.world);
    let source = world.json(&kind::CATALOG_SOURCE, namespace, name);
    (namespace, source.map(catalog_source::pull_secrets).unwrap_or_default())
}
