//! The kinds behind the resources of rules: those that a cluster serves, and those that the bundles of catalogs provide.

use std::collections::BTreeSet;

use olm_core::api::kinds;
use olm_core::api::names::guess_plural;
use olm_core::api::object::{Gvk, at, list, text};
use olm_core::bundle::BundleContent;
use olm_core::bundle::synthesis::{KnownApis, Manifest};
use olm_core::catalog::Snapshot;
use serde_json::Value;

use super::options::Options;
use crate::blocking::block_on;
use crate::catalog::source::OpenCatalog;
use crate::cli::connect::connect;
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, Printer};
use crate::cluster::api::{Api, ListQuery};
use crate::cluster::request_error::RequestError;
use crate::image;

/// Reads the APIs of the cluster, if a flag selects one, and of the catalogs, as far as the rules of the manifests name their groups.
pub(super) fn read(
    options: &Options,
    images: &image::Options,
    manifests: &[Manifest],
    printer: &mut Printer,
) -> Result<KnownApis, CliError> {
    let mut known = KnownApis::default();
    if !options.catalogs.is_empty() {
        let catalog = OpenCatalog::read(&options.catalogs, images, printer)?;
        of_catalog(&catalog.load.snapshot, &groups(manifests), &mut known, printer);
    }
    if options.cluster.is_given() {
        of_cluster(&options.cluster, &mut known, printer)?;
    }
    Ok(known)
}

/// Returns the API groups that rules name.
fn groups(manifests: &[Manifest]) -> BTreeSet<&str> {
    let rules = manifests.iter().flat_map(|manifest| list(&manifest.object, &["rules"]));
    rules.flat_map(|rule| list(rule, &["apiGroups"])).filter_map(Value::as_str).collect()
}

/// Adds the APIs that bundles provide. Their plurals are in the ClusterServiceVersions and CustomResourceDefinitions; each API is read
/// from the first bundle that provides it.
fn of_catalog(snapshot: &Snapshot, groups: &BTreeSet<&str>, known: &mut KnownApis, printer: &mut Printer) {
    let mut found: BTreeSet<&Gvk> = BTreeSet::new();
    for entry in snapshot.entries() {
        let is_new = |gvk: &&Gvk| groups.contains(gvk.group.as_str()) && !found.contains(gvk);
        let new: Vec<&Gvk> = entry.provided_apis.iter().filter(is_new).collect();
        if new.is_empty() {
            continue;
        }
        let content = snapshot.read_bundle(&entry.package, &entry.channel, &entry.name);
        let content = content.unwrap_or_else(|problem| {
            printer.warn(format_args!("the objects of {} cannot be read: {problem}", entry.name));
            None
        });
        let csv = content.as_ref().and_then(|content| serde_json::from_str(&content.csv_json).ok());
        for gvk in new {
            let stated = content.as_ref().and_then(|content| plural(csv.as_ref(), content, gvk));
            let (plural, is_aggregated) = stated.unwrap_or_else(|| (guess_plural(&gvk.kind), false));
            known.add(gvk.clone(), &plural);
            if is_aggregated {
                known.add_aggregated(&gvk.group, &gvk.version);
            }
            found.insert(gvk);
        }
    }
}

/// Returns the plural of an API that a bundle provides, and whether an APIService provides it.
fn plural(csv: Option<&Value>, content: &BundleContent, gvk: &Gvk) -> Option<(String, bool)> {
    let is_it = |description: &&Value| {
        text(description, &["version"]) == gvk.version && text(description, &["kind"]) == gvk.kind
    };
    if let Some(csv) = csv {
        let services = list(csv, &["spec", "apiservicedefinitions", "owned"]).iter();
        let mut services = services.filter(is_it).filter(|service| text(service, &["group"]) == gvk.group);
        if let Some(service) = services.next() {
            return Some((text(service, &["name"]).to_owned(), true)).filter(|(plural, _)| !plural.is_empty());
        }
        let definitions = list(csv, &["spec", "customresourcedefinitions", "owned"]).iter().filter(is_it);
        let mut plurals = definitions.filter_map(|definition| text(definition, &["name"]).split_once('.'));
        if let Some((plural, _)) = plurals.find(|(_, group)| *group == gvk.group) {
            return Some((plural.to_owned(), false));
        }
    }
    // A definition may be missing among the owned ones.
    let mut definitions = content
        .objects
        .iter()
        .filter(|object| object.contains("CustomResourceDefinition"))
        .filter_map(|object| serde_json::from_str::<Value>(object).ok());
    let definition = definitions.find(|definition| {
        let [group, kind] =
            [["spec", "group"].as_slice(), &["spec", "names", "kind"]].map(|path| text(definition, path));
        (group, kind) == (gvk.group.as_str(), gvk.kind.as_str())
    })?;
    Some((text(&definition, &["spec", "names", "plural"]).to_owned(), false)).filter(|(plural, _)| !plural.is_empty())
}

/// Adds the APIs that a cluster serves.
fn of_cluster(cluster: &ClusterFlags, known: &mut KnownApis, printer: &mut Printer) -> Result<(), CliError> {
    let ((resources, stale), services) = block_on::<_, CliError>(async {
        let connection = connect(cluster).await?;
        let found = connection.api.discover().await;
        let found = found.map_err(|status| RequestError::of_cluster("get", "/apis", status))?;
        Ok((found, aggregated(&connection.api).await))
    })?;
    for (group, version) in stale {
        printer.warn(format_args!("the API server does not currently know the kinds of {group}/{version}"));
    }
    for resource in resources {
        known.add(resource.gvk, &resource.plural);
    }
    match services {
        Ok(services) => services.iter().for_each(|(group, version)| known.add_aggregated(group, version)),
        // Most required APIs are of CustomResourceDefinitions.
        Err(error) => {
            let words = "required APIs of APIServices count as those of CustomResourceDefinitions";
            printer.warn(format_args!("{error}; {words}: mark them with aggregated: true in requiredAPIs"));
        }
    }
    Ok(())
}

/// Returns the API groups and versions that API servers of extensions serve.
async fn aggregated(api: &Api) -> Result<Vec<(String, String)>, RequestError> {
    let refused = |status| RequestError::of_cluster("list", "apiservices", status);
    let resource = api.resource(&kinds::API_SERVICE.gvk()).await.map_err(refused)?;
    let listed = api.list(&ListQuery::all(&resource)).await.map_err(refused)?;
    let services = listed.objects.iter().filter(|service| !at(service, &["spec", "service"]).is_null());
    Ok(services
        .map(|service| {
            let [group, version] = ["group", "version"].map(|field| text(service, &["spec", field]).to_owned());
            (group, version)
        })
        .collect())
}
