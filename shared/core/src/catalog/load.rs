//! Loads files into a [`Snapshot`]: blobs and bundle directories are grouped by package, and packages are checked. Invalid
//! packages are set aside and reported; the others are served.

use std::collections::{BTreeMap, BTreeSet};

use super::blob::{self, Blob, BundleBlob, Kind, Source};
use super::channel::{self, Node};
use super::chunk::Parsed;
use super::index::{CatalogIndex, Located, PackageBlobs};
use super::stored::Span;
use super::{Builder, BundleMessage, Channel, Content, File, Package, Snapshot, validate};
use crate::budget::CATALOG_FINDINGS;
use crate::bundle::property;
use crate::finding::{Finding, Severity};

/// A loaded catalog.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The valid packages.
    pub snapshot: Snapshot,
    /// Findings: first about files, then about packages, in order.
    pub findings: Vec<Finding>,
    /// Packages that were set aside because of a finding.
    pub invalid_packages: BTreeSet<String>,
}

impl CatalogIndex {
    /// Checks the packages: valid ones become the snapshot, the others are set aside.
    pub fn load(self) -> Loaded {
        let Self { packages, mut findings } = self;
        let mut builder = Builder::default();
        let mut invalid_packages = BTreeSet::new();
        for (name, mut blobs) in packages {
            let others = std::mem::take(&mut blobs.others);
            others.into_iter().filter_map(|other| other.source.span()).for_each(|span| builder.other(span));
            let found = validate::package(&name, &blobs);
            if found.iter().any(|f| f.severity == Severity::Error) {
                invalid_packages.insert(name);
            } else {
                add(&mut builder, blobs);
            }
            findings.extend(found);
        }
        Loaded { snapshot: builder.build(), findings, invalid_packages }
    }
}

/// Builds a catalog from [`Parsed`] chunks, so that only one of them need be in memory. Packages of several roots are
/// merged.
#[derive(Debug, Default)]
pub struct Loader {
    catalog: CatalogIndex,
    /// Number of findings beyond the limit.
    untold: usize,
}

impl Loader {
    /// Adds the result of parsing a file or a bundle directory. The order of blobs is preserved where it matters.
    pub fn add(&mut self, parsed: Parsed) {
        for finding in parsed.findings {
            if self.catalog.findings.len() < CATALOG_FINDINGS {
                self.catalog.findings.push(finding);
            } else {
                self.untold += 1;
            }
        }
        parsed.blobs.into_iter().for_each(|blob| self.blob(blob));
    }

    fn blob(&mut self, blob: Blob) {
        let package = blob.package().to_owned();
        let Blob { place, source, kind } = blob;
        let of_package = self.catalog.packages.entry(package).or_default();
        match kind {
            Kind::Package(blob) => of_package.packages.push(Located { place, source, blob }),
            Kind::Channel(blob) => of_package.channels.push(Located { place, source, blob }),
            Kind::Bundle(blob) => of_package.bundles.push(Located { place, source, blob }),
            Kind::Deprecations(blob) => of_package.deprecations.push(Located { place, source, blob }),
            Kind::Other(blob) => of_package.others.push(Located { place, source, blob }),
        }
    }

    /// Returns the index.
    pub fn finish(mut self) -> CatalogIndex {
        if self.untold > 0 {
            let message = format!("{} more findings are not shown", self.untold);
            self.catalog.findings.push(Finding::new("too-many-findings", message).hint("fix the reported ones first"));
        }
        self.catalog
    }
}

/// Loads a catalog from its files.
///
/// Files in a directory that has `manifests/` and `metadata/` are a bundle; each other file is a list of blobs. The caller
/// handles ignored files (`.indexignore`) and lists of further bundle directories (`bundles.txt`): here every file is read.
pub fn load(files: &[File]) -> Loaded {
    index_files(files).load()
}

/// Builds the index that [`load`] checks.
pub fn index_files(files: &[File]) -> CatalogIndex {
    let mut loader = Loader::default();
    let (bundles, blobs) = split(files);
    for (directory, files) in bundles {
        loader.add(Parsed::bundle(directory, &files));
    }
    for file in blobs {
        loader.add(Parsed::file(file));
    }
    loader.finish()
}

/// Splits files into bundle directories with their files, and all other files.
fn split(files: &[File]) -> (BTreeMap<&str, Vec<File>>, Vec<&File>) {
    let mut halves: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
    for file in files {
        for (half, name) in ["/manifests/", "/metadata/"].iter().enumerate() {
            if let Some(at) = file.path.find(name) {
                halves.entry(&file.path[..at]).or_default()[half] = true;
            }
        }
    }
    let mut bundles: BTreeMap<&str, Vec<File>> = BTreeMap::new();
    let mut blobs = Vec::new();
    for file in files {
        let is_bundle = |directory: &&str| halves.get(directory) == Some(&[true, true]);
        match file.path.match_indices('/').map(|(at, _)| &file.path[..at]).find(is_bundle) {
            Some(directory) => bundles.entry(directory).or_default().push(file.clone()),
            None => blobs.push(file),
        }
    }
    (bundles, blobs)
}

/// Adds a valid package.
fn add(builder: &mut Builder, blobs: PackageBlobs) {
    let Some(Located { source, blob: package, .. }) = blobs.packages.into_iter().next() else { return };
    let described = source.span();
    let deprecations: BTreeMap<_, _> = blobs
        .deprecations
        .into_iter()
        .flat_map(|of| of.blob.entries)
        .map(|d| ((d.reference.schema, d.reference.name), d.message))
        .collect();
    let deprecation = |schema: &str, name: &str| deprecations.get(&(schema.to_owned(), name.to_owned())).cloned();
    let bundles = blobs.bundles.into_iter().map(|bundle| message(bundle, described.as_ref()));
    let bundles: BTreeMap<String, BundleMessage> = bundles.map(|m| (m.csv_name.clone(), m)).collect();
    let mut channels = Vec::new();
    for Located { blob: channel, .. } in blobs.channels {
        for entry in &channel.entries {
            let Some(bundle) = bundles.get(&entry.name) else { continue };
            builder.bundle(BundleMessage {
                channel: channel.name.clone(),
                replaces: entry.replaces.clone(),
                skips: entry.skips.clone(),
                skip_range: entry.skip_range.clone(),
                deprecation: deprecation("olm.bundle", &entry.name),
                ..bundle.clone()
            });
        }
        let nodes: Vec<Node<'_>> = channel.entries.iter().map(Node::from).collect();
        channels.push(Channel {
            head: channel::head(&nodes).unwrap_or_default().to_owned(),
            deprecation: deprecation("olm.channel", &channel.name),
            name: channel.name,
            entries: Vec::new(),
        });
    }
    builder.package(Package {
        name: package.name,
        default_channel: package.default_channel,
        channels,
        deprecation: deprecation("olm.package", ""),
    });
}

/// Returns a bundle as the registry protocol describes it, without its position in a channel.
fn message(bundle: Located<BundleBlob>, described: Option<&Span>) -> BundleMessage {
    let content = match bundle.source {
        Source::Directory(content) => content,
        Source::Blob(bundle) => Content::Blob { bundle, package: described.cloned() },
    };
    let BundleBlob { name, package, image, properties, .. } = bundle.blob;
    BundleMessage {
        csv_name: name,
        package,
        version: blob::version(&properties).to_owned(),
        bundle_path: image,
        provided_apis: property::apis(&properties, property::GVK),
        required_apis: property::apis(&properties, property::GVK_REQUIRED),
        dependencies: property::dependencies(&properties),
        properties,
        content: Some(content),
        ..BundleMessage::default()
    }
}
