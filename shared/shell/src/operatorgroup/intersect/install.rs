//! Resolves the given Subscriptions that are not installed yet: the operators that they would install count as members.
//!
//! ```text
//!   Subscription --its CatalogSource--> catalogs --the controllers' resolver--> bundles --content--> ClusterServiceVersions
//! ```

use std::collections::BTreeSet;

use olm_core::api::catalog_source::CatalogSource;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::subscription::Subscription;
use olm_core::resolver::explain::{self, Bundle, Explanation};
use olm_core::resolver::{Catalog, Inputs};
use olm_core::subscription::NamespaceState;
use olm_core::world::{Reader, kind};
use serde_json::Value;

use super::super::operator;
use crate::cli::source::read_catalogs;
use crate::cli::{CliError, Printer};
use crate::image;
use crate::observe::ClusterState;

/// Adds the ClusterServiceVersions to the state, and warns about unknown ones. Returns `false` if there are any.
pub(super) async fn add(
    state: &mut ClusterState,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<bool, CliError> {
    let mut namespaces: BTreeSet<String> = BTreeSet::new();
    let mut sources: BTreeSet<ObjectRef> = BTreeSet::new();
    for subscription in given(state) {
        namespaces.insert(object::namespace(subscription).to_owned());
        let [namespace, name] = ["sourceNamespace", "source"].map(|key| object::text(subscription, &["spec", key]));
        sources.insert(kinds::CATALOG_SOURCE.object(namespace, name));
    }
    let known = state.read_failures.len();
    let places: BTreeSet<String> = sources.iter().map(|source| source.namespace.clone()).collect();
    state.read_objects(sources).await;
    for place in &places {
        read_catalogs(state, place, images, printer).await;
    }
    state.read_failures[known..].iter().for_each(|failure| printer.warn(failure));
    let mut is_complete = true;
    for namespace in &namespaces {
        match resolved(state, namespace, images).await {
            Ok(csvs) => csvs.into_iter().for_each(|csv| {
                state.world.apply(csv);
            }),
            Err(why) => {
                is_complete = false;
                printer.warn(format_args!(
                    "the Subscriptions of namespace {namespace} could not be resolved and are ignored: {why}"
                ));
            }
        }
    }
    Ok(is_complete)
}

/// Returns the given Subscriptions without an installed ClusterServiceVersion.
fn given(state: &ClusterState) -> Vec<&Value> {
    let world = Reader::new(&state.world);
    let is_subscription = |target: &&ObjectRef| target.gvk.kind == "Subscription";
    let given = state.on_top.iter().filter(is_subscription);
    let given = given.filter_map(|target| world.json(&kind::SUBSCRIPTION, &target.namespace, &target.name));
    given.filter(|subscription| Subscription::new(subscription).installed_csv().is_empty()).collect()
}

/// Returns the ClusterServiceVersions that the Subscriptions of a namespace would install now.
async fn resolved(state: &ClusterState, namespace: &str, images: &image::Options) -> Result<Vec<Value>, String> {
    let world = Reader::new(&state.world);
    let there = NamespaceState::read(&world, namespace).map_err(|failure| failure.to_string())?;
    let global = state.settings.global_catalog_namespace.as_str();
    let subscriptions = there.requested();
    let wanted = subscriptions.iter().map(|wanted| wanted.source_namespace);
    let places: BTreeSet<&str> = wanted.chain([namespace, global]).collect();
    let mut names: BTreeSet<(&str, &str)> = BTreeSet::new();
    for place in places {
        names.extend(world.in_namespace(&kind::CATALOG_SOURCE, place).map(|o| (place, object::name(o.json()))));
        names.extend(world.local_catalogs(place).into_iter().map(|(name, _)| (place, name)));
    }
    let catalogs = names.iter().filter_map(|(namespace, name)| {
        let source = world.json(&kind::CATALOG_SOURCE, namespace, name);
        let priority = source.map_or(0, |source| CatalogSource::new(source).priority());
        let snapshot = world.catalog(namespace, name)?.snapshot.as_deref()?;
        Some(Catalog { name, namespace, priority, snapshot })
    });
    let catalogs: Vec<Catalog<'_>> = catalogs.collect();
    let is_known = |place: &str, name: &str| catalogs.iter().any(|c| (c.namespace, c.name) == (place, name));
    if let Some(wanted) = subscriptions.iter().find(|wanted| !is_known(wanted.source_namespace, wanted.source)) {
        let (place, name) = (wanted.source_namespace, wanted.source);
        return Err(format!(
            "the content of catalog {place}/{name} is unknown; specify it with --catalog {name}.{place}=DIR"
        ));
    }
    let inputs = Inputs { namespace, subscriptions, catalogs, broken: Vec::new(), installed: there.installed.clone() };
    let chosen = match explain::explain(&inputs, there.targets.as_deref()) {
        Explanation::Resolved { bundles, .. } => bundles,
        Explanation::Failed { message, .. } => return Err(message),
    };
    let mut csvs = Vec::new();
    for chosen in chosen {
        csvs.push(csv(&inputs, &chosen.bundle, images).await.map_err(|error| error.to_string())?);
    }
    Ok(csvs)
}

/// Returns the ClusterServiceVersion of a bundle, with the namespace.
async fn csv(inputs: &Inputs<'_>, bundle: &Bundle, images: &image::Options) -> Result<Value, CliError> {
    let is_of =
        |catalog: &&Catalog<'_>| (catalog.namespace, catalog.name) == (&*bundle.catalog_namespace, &*bundle.catalog);
    let catalog = inputs.catalogs.iter().find(is_of);
    let entry = catalog.and_then(|catalog| {
        Some((
            catalog.snapshot,
            catalog.snapshot.package(&bundle.package)?.channel(&bundle.channel)?.entry(&bundle.name)?,
        ))
    });
    let Some((snapshot, entry)) = entry else {
        return Err(CliError::input(format!("no known catalog contains bundle {}", bundle.name)));
    };
    let content = operator::content(snapshot, entry, images).await?;
    let mut csv: Value = serde_json::from_str(&content.csv_json)
        .map_err(|error| CliError::input(format!("{} in the catalog: {error}", bundle.name)))?;
    object::map_mut(&mut csv, &["metadata"]).insert("namespace".to_owned(), inputs.namespace.into());
    Ok(csv)
}
