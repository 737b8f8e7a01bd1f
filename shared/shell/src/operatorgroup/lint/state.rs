//! Reads the state that rules are checked against, and determines what may be concluded from it.

use std::collections::BTreeSet;

use olm_core::api::object;
use olm_core::lint::matrix::{Matrix, Offer, matrices as matrices_of};
use olm_core::lint::{Known, Linted, namespaces_of_accounts, namespaces_of_plans};
use olm_core::world::{CatalogFact, Reader, kind};

use super::Options;
use crate::cli::source::read_catalogs;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::observe::{ClusterState, ReadFailure, ReadScope};

/// Why nothing can be concluded from objects that are missing in files.
const FILES: &str = "the files may not contain all objects of the cluster (--complete states that they do)";

/// Reads all objects that rules are checked against.
pub(super) async fn read(options: &Options, printer: &mut Printer) -> Result<ClusterState, CliError> {
    let Options { source, namespaces, on_top, .. } = options;
    let need = if options.package.is_some() { ReadScope::Offers } else { ReadScope::Tenancy };
    let mut state = source.read(namespaces, on_top, need, printer).await?;
    let with_plans = namespaces_of_plans(&state.world);
    let with_account = namespaces_of_accounts(&Reader::new(&state.world));
    let plans = with_plans.iter().map(|namespace| (kind::INSTALL_PLAN, namespace.as_str()));
    let deployments = with_account.iter().map(|namespace| (kind::DEPLOYMENT, namespace.as_str()));
    let definitions = (!with_account.is_empty()).then_some((kind::CUSTOM_RESOURCE_DEFINITION, ""));
    state.read_kinds(plans.chain(deployments).chain(definitions)).await;
    Ok(state)
}

/// Returns which objects are known not to exist if they are missing from the state.
pub(super) fn known(state: &ClusterState, options: &Options) -> Known {
    if state.api().is_none() {
        let known = if options.complete { Known::everything() } else { Known::of_files(&state.world, FILES) };
        return known.about(state.namespace.as_deref());
    }
    state.known()
}

/// Returns whether the namespace is known not to exist, nor any object in it.
pub(super) fn is_missing(state: &ClusterState, options: &Options, namespace: &str) -> bool {
    let world = Reader::new(&state.world);
    let kinds = [kind::OPERATOR_GROUP, kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION];
    known(state, options).has_none(&state.world, &kind::NAMESPACE, "", namespace)
        && kinds.iter().all(|gk| world.in_namespace(gk, namespace).next().is_none())
}

/// Checks a package of every catalog against the groups whose namespaces can use it. Returns the matrices with the names of the catalogs.
pub(super) async fn matrices(
    state: &mut ClusterState,
    options: &Options,
    package: &str,
    linted: &mut Linted,
    printer: &mut Printer,
) -> Result<Vec<(String, Matrix)>, CliError> {
    let global = state.settings.global_catalog_namespace.clone();
    let namespaces = asking(state);
    for namespace in &namespaces {
        read_catalogs(state, namespace, &options.images, printer).await;
    }
    let places: BTreeSet<&str> = namespaces.iter().map(String::as_str).chain([global.as_str()]).collect();
    // A failure to list all namespaces does not matter if the relevant ones could be listed.
    let counts = |failure: &&ReadFailure| state.namespace.is_none() || !failure.namespace.is_empty();
    let failures =
        state.read_failures.iter().filter(|failure| failure.verb == "get" || failure.is_of_catalogs()).filter(counts);
    failures.for_each(|failure| printer.warn(format_args!("{failure}")));
    let known = known(state, options);
    let world = Reader::new(&state.world);
    let mut names: BTreeSet<(&str, &str)> = BTreeSet::new();
    for namespace in places {
        names.extend(world.in_namespace(&kind::CATALOG_SOURCE, namespace).map(|o| (namespace, object::name(o.json()))));
        names.extend(world.local_catalogs(namespace).into_iter().map(|(name, _)| (namespace, name)));
    }
    let offers: Vec<Offer<'_>> = names
        .iter()
        .filter_map(|(namespace, name)| {
            let fact: &CatalogFact = world.catalog(namespace, name)?;
            Some(Offer { namespace, name, is_global: *namespace == global, snapshot: fact.snapshot.as_deref()? })
        })
        .collect();
    let (found, problems) = matrices_of(&state.world, &known, &offers, package, state.namespace.as_deref());
    if found.is_empty() {
        let catalogs: Vec<String> = names.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
        let known = if catalogs.is_empty() { "there are no catalogs".to_owned() } else { catalogs.join(", ") };
        let whose = match &state.namespace {
            Some(asked) => format!("that namespace {asked} can use"),
            None => "that namespaces with OperatorGroups can use".to_owned(),
        };
        let message = format!("no catalog {whose} has package {package} ({known})");
        return Err(CliError::new(ErrorKind::Input, message)
            .hint("specify a catalog with --catalog NAME[.NAMESPACE]=DIR; without a namespace it is global"));
    }
    linted.problems.extend(problems);
    Ok(found
        .into_iter()
        .map(|(Offer { namespace, name, .. }, matrix)| (format!("{namespace}/{name}"), matrix))
        .collect())
}

/// Returns the namespaces whose catalogs are relevant: the selected one, or all with a group or a Subscription.
fn asking(state: &ClusterState) -> BTreeSet<String> {
    match &state.namespace {
        Some(asked) => BTreeSet::from([asked.clone()]),
        None => {
            let world = Reader::new(&state.world);
            let kinds = [kind::OPERATOR_GROUP, kind::SUBSCRIPTION];
            let all = kinds.iter().flat_map(|gk| world.all(gk));
            all.map(|o| object::namespace(o.json()).to_owned()).collect()
        }
    }
}
