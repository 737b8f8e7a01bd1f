//! The versions that bundles are compared with: a bundle, or those of a catalog.

use std::collections::BTreeSet;

use olm_core::bundle::{BundleContent, Unpacked};
use olm_core::catalog::{Entry, Package};
use olm_core::validate::{Identity, Previous};
use olm_core::version;
use serde_json::Value;

use super::read;
use crate::blocking::block_on;
use crate::catalog::Ref;
use crate::catalog::source::OpenCatalog;
use crate::cli::{CliError, Printer};
use crate::image::{self, Kind, Location, Requested};
use crate::registry;

/// What bundles are compared with.
pub(super) enum Against {
    /// One version.
    Bundle(Box<Previous>),
    /// The versions of a catalog.
    Catalog(Box<OpenCatalog>, String),
}

impl Against {
    /// Reads what is to be compared with.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(named: &Ref, images: &image::Options, printer: &mut Printer) -> Result<Self, CliError> {
        if is_bundle(named, images) {
            let found = read::read(named, images);
            let shown = read::shown(named);
            if let Some(finding) = found.findings.first() {
                return Err(CliError::input(finding.message.clone()).at(&finding.file));
            }
            let previous = Previous::read(&shown, &found.files);
            return previous
                .map(|previous| Self::Bundle(Box::new(previous)))
                .ok_or_else(|| CliError::input("the bundle to compare with has no ClusterServiceVersion").at(named));
        }
        let catalog = OpenCatalog::read(std::slice::from_ref(named), images, printer)?;
        Ok(Self::Catalog(Box::new(catalog), named.to_string()))
    }

    /// Returns the version to compare a bundle with, or why there is none. In a catalog it is the one that the bundle replaces, otherwise
    /// the highest version below that of the bundle.
    ///
    /// # Errors
    /// The version of the catalog cannot be read.
    pub(super) fn previous(
        &self,
        bundle: &Identity,
        images: &image::Options,
    ) -> Result<Result<Previous, String>, CliError> {
        let (catalog, named) = match self {
            Self::Bundle(previous) => return Ok(Ok((**previous).clone())),
            Self::Catalog(catalog, named) => (catalog, named),
        };
        let Some(package) = catalog.load.snapshot.package(&bundle.package) else {
            return Ok(Err(format!("{named} has no package {:?}", bundle.package)));
        };
        let Some(entry) = chosen(package, bundle) else {
            return Ok(Err(format!("{named} has no version of package {} below {}", package.name, bundle.version)));
        };
        let refused = |message: String| CliError::input(message).at(named);
        let found = catalog.load.snapshot.read_bundle(&package.name, &entry.channel, &entry.name);
        let mut content = found.map_err(refused)?.unwrap_or_default();
        if content.objects.is_empty() && !entry.bundle_path.is_empty() {
            content = pulled(&entry.bundle_path, images)?;
        }
        let objects: Result<Vec<Value>, _> = content.objects.iter().map(|json| serde_json::from_str(json)).collect();
        let objects = objects.map_err(|e| refused(format!("the objects of {} cannot be read: {e}", entry.name)))?;
        let previous = Previous::of_objects(named, &package.name, &package.default_channel, objects);
        let mut previous =
            previous.ok_or_else(|| refused(format!("{} has no ClusterServiceVersion in the catalog", entry.name)))?;
        let names = package.channels.iter().flat_map(|channel| channel.entries.iter()).map(|entry| entry.name.clone());
        previous.siblings = Some(names.collect::<BTreeSet<String>>());
        Ok(Ok(previous))
    }
}

/// Returns whether it is a bundle, and not a catalog. What cannot be read is treated as a catalog.
fn is_bundle(named: &Ref, images: &image::Options) -> bool {
    let location = match named {
        Ref::Directory(path) => {
            return path.join("manifests").is_dir() || path.join("metadata/annotations.yaml").is_file();
        }
        Ref::Image(reference) => reference.parse().ok(),
        Ref::Layout(path) => Some(Location::Layout { path: path.clone(), name: None }),
        Ref::File(_) | Ref::Stdin | Ref::CatalogSource(_) | Ref::Address(_) => None,
    };
    let content = location.and_then(|location| image::pull_blocking(&location, Requested::Any, images).ok());
    content.is_some_and(|content| content.kind == Kind::Bundle)
}

/// Returns the version of a package that a bundle is compared with.
fn chosen<'p>(package: &'p Package, bundle: &Identity) -> Option<&'p Entry> {
    let entries = || package.channels.iter().flat_map(|channel| channel.entries.iter());
    if let Some(replaced) = entries().find(|entry| entry.name == bundle.replaces) {
        return Some(replaced);
    }
    let own = version::parse_tolerant(&bundle.version).ok()?;
    let is_lower = |entry: &&Entry| entry.version.as_ref().is_some_and(|v| version::compare(v, &own).is_lt());
    let highest = |a: &&Entry, b: &&Entry| match (&a.version, &b.version) {
        (Some(a), Some(b)) => version::compare(a, b),
        _ => a.name.cmp(&b.name),
    };
    entries().filter(is_lower).max_by(highest)
}

/// Returns the objects of a bundle image that a catalog names.
fn pulled(reference: &str, images: &image::Options) -> Result<BundleContent, CliError> {
    let location: Location = reference.parse().map_err(|e: image::Error| CliError::from(e))?;
    let unpacked =
        block_on::<_, CliError>(async { Ok(registry::image::unpack(&location, &images.for_others()).await?) })?;
    match unpacked {
        Unpacked::Content(content) => Ok(content),
        other => Err(CliError::input(format!("the image is not a usable bundle: {other:?}")).at(reference)),
    }
}
