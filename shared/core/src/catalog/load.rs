//! Files become a [`Snapshot`]: blobs and bundle directories are gathered by package, packages are checked, and those that
//! are broken are set aside and reported while the rest serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::blob::{self, Blob, BundleBlob, ChannelBlob, DeprecationsBlob, Kind, PackageBlob, Place, Source};
use super::channel::{self, Node};
use super::{Builder, BundleMessage, Channel, Content, File, Package, Snapshot, validate};
use crate::api::object::text;
use crate::bundle::{Bundle, property};
use crate::finding::Finding;

/// A loaded catalog.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// What can be served.
    pub snapshot: Snapshot,
    /// What cannot, and why, in the order of packages.
    pub findings: Vec<Finding>,
    /// Packages that were set aside, because one of the findings is about them.
    pub set_aside: BTreeSet<String>,
}

/// All blobs of one package.
#[derive(Debug, Default)]
pub(super) struct Blobs {
    pub(super) packages: Vec<(Place, PackageBlob)>,
    pub(super) channels: Vec<(Place, ChannelBlob)>,
    pub(super) bundles: Vec<(Place, BundleBlob)>,
    pub(super) deprecations: Vec<(Place, DeprecationsBlob)>,
}

/// Gathers a catalog file by file, so that no more than one bundle need be in memory.
#[derive(Debug, Default)]
pub struct Loader {
    load: Load,
    builder: Builder,
    packages: BTreeMap<String, Blobs>,
}

impl Loader {
    /// Adds a bundle directory, whose path begins its files' paths.
    pub fn bundle(&mut self, directory: &str, files: &[File]) {
        match bundle_blob(directory, files) {
            Ok((place, bundle)) => {
                self.packages.entry(bundle.package.clone()).or_default().bundles.push((place, bundle));
            }
            Err(finding) => self.load.findings.push(finding),
        }
    }

    /// Adds a file of blobs.
    pub fn file(&mut self, file: &File) {
        for blob in blob::read(file) {
            match blob {
                Ok(blob) => self.blob(blob),
                Err(finding) => self.load.findings.push(finding),
            }
        }
    }

    /// Adds something else that is wrong with the catalog.
    pub fn finding(&mut self, finding: Finding) {
        self.load.findings.push(finding);
    }

    fn blob(&mut self, blob: Blob) {
        let package = blob.package().to_owned();
        let Blob { place, kind } = blob;
        let of_package = || self.packages.entry(package).or_default();
        match kind {
            Kind::Package(blob) => of_package().packages.push((place, blob)),
            Kind::Channel(blob) => of_package().channels.push((place, blob)),
            Kind::Bundle(blob) => of_package().bundles.push((place, blob)),
            Kind::Deprecations(blob) => of_package().deprecations.push((place, blob)),
            Kind::Other(blob) => self.builder.other(blob),
        }
    }

    /// Checks the packages: the sound ones make the snapshot, the others are set aside.
    pub fn finish(self) -> Load {
        let Self { mut load, mut builder, packages } = self;
        for (name, blobs) in packages {
            let findings = validate::package(&name, &blobs);
            if findings.is_empty() {
                add(&mut builder, blobs);
            } else {
                load.findings.extend(findings);
                load.set_aside.insert(name);
            }
        }
        load.snapshot = builder.build();
        load
    }
}

/// Loads a catalog from its files.
///
/// Files in a directory that has `manifests/` and `metadata/` are a bundle; of all others each is a list of blobs.
/// Files that are to be ignored (`.indexignore`) and lists of further bundle directories (`bundles.txt`) are the reader's
/// business: here every file counts.
pub fn load(files: &[File]) -> Load {
    let mut loader = Loader::default();
    let (bundles, blobs) = split(files);
    for (directory, files) in bundles {
        loader.bundle(directory, &files);
    }
    for file in blobs {
        loader.file(file);
    }
    loader.finish()
}

/// Bundle directories with their files, and all other files.
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

fn bundle_blob(directory: &str, files: &[File]) -> Result<(Place, BundleBlob), Finding> {
    let rendered = Bundle::read(directory, files)?.render()?;
    let bundle = BundleBlob {
        name: rendered.name,
        package: rendered.package,
        image: String::new(),
        properties: rendered.properties,
        has_objects: true,
        source: Source::Directory(Content::pack(&rendered.content)),
    };
    Ok((Place { file: directory.into(), line: 0 }, bundle))
}

/// Adds a package that was found sound.
fn add(builder: &mut Builder, blobs: Blobs) {
    let Some((_, package)) = blobs.packages.into_iter().next() else { return };
    let deprecations: BTreeMap<_, _> = blobs
        .deprecations
        .into_iter()
        .flat_map(|(_, blob)| blob.entries)
        .map(|d| ((d.reference.schema, d.reference.name), d.message))
        .collect();
    let deprecation = |schema: &str, name: &str| deprecations.get(&(schema.to_owned(), name.to_owned())).cloned();
    let bundles: BTreeMap<String, BundleMessage> = {
        let described = Arc::new(json!({"description": package.description, "icon": package.icon}));
        let messages = blobs.bundles.into_iter().map(|(_, bundle)| message(bundle, &described));
        messages.map(|m| (m.csv_name.clone(), m)).collect()
    };
    let mut channels = Vec::new();
    for (_, channel) in blobs.channels {
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

/// What the registry protocol says of a bundle, but for its place in a channel.
fn message(bundle: BundleBlob, described: &Arc<Value>) -> BundleMessage {
    let content = match bundle.source {
        Source::None => None,
        Source::Directory(content) => Some(content),
        Source::Blob { file, range } => Some(Content::Blob { file, range, package: described.clone() }),
    };
    let mut properties = bundle.properties;
    properties.retain(|p| p.type_ != property::CSV_METADATA);
    BundleMessage {
        csv_name: bundle.name,
        package: bundle.package,
        version: properties
            .iter()
            .find(|p| p.type_ == property::PACKAGE)
            .map_or("", |p| text(&p.value, &["version"]))
            .to_owned(),
        bundle_path: bundle.image,
        provided_apis: property::apis(&properties, property::GVK),
        required_apis: property::apis(&properties, property::GVK_REQUIRED),
        dependencies: property::dependencies(&properties),
        properties,
        content,
        ..BundleMessage::default()
    }
}
