//! The content of one catalog at one point in time, as the resolver and the registry server read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::stored::Span;
use super::{BundleContent, Content, Property};
use crate::api::object::Gvk;
use crate::bundle::property;
use crate::version::{self, Range, Version};

/// The content of one catalog. Immutable, cheap to clone.
///
/// Two snapshots are equal when a registry client cannot distinguish them: the packages, channels and entries are equal,
/// and so are the objects of bundles that are inline. Objects of a bundle with an image are not compared, because the image
/// is authoritative.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    packages: BTreeMap<String, Package>,
    /// By package and bundle.
    contents: BTreeMap<(String, String), Content>,
    /// Blobs of schemas that OLM does not know.
    others: Vec<Span>,
}

/// A package of a catalog.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Channel that OLM prefers for a Subscription without a channel.
    pub default_channel: String,
    /// Channels, sorted by name.
    pub channels: Vec<Channel>,
    /// Deprecation message, if the package is deprecated.
    pub deprecation: Option<String>,
}

/// A channel of a package.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Name.
    pub name: String,
    /// Name of the head entry.
    pub head: String,
    /// Deprecation message, if the channel is deprecated.
    pub deprecation: Option<String>,
    /// Entries, sorted by name. For the order in which the resolver prefers them see [`super::channel::order`].
    pub entries: Vec<Entry>,
}

/// A bundle in a channel, with what the resolver derives from the registry's message (olm-behaviour/subscription.md#catalog-snapshot).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Name of the bundle, which is the name of its CSV.
    pub name: String,
    /// Package.
    pub package: String,
    /// Channel.
    pub channel: String,
    /// Whether the channel is the package's default channel.
    pub is_default_channel: bool,
    /// Version, parsed tolerantly; `None` when it is invalid.
    pub version: Option<Version>,
    /// Version as in the catalog.
    pub version_text: String,
    /// Entry that this one replaces. The channel need not contain it.
    pub replaces: Option<String>,
    /// Entries that this one skips.
    pub skips: Vec<String>,
    /// Range of versions that this one skips, as in the catalog; see [`Entry::skips_version`].
    pub skip_range: Option<String>,
    /// Image of the bundle; empty when the catalog contains its objects.
    pub bundle_path: String,
    /// Properties as the resolver reads them: those of the bundle (derived from its provided APIs when it has none), then
    /// its requirements, then `olm.package` if missing. A requirement that the bundle declares both ways occurs twice, as
    /// in OLM.
    pub properties: Arc<[Property]>,
    /// Properties as in the registry's message.
    pub bundle_properties: Arc<[Property]>,
    /// Dependencies as in the registry's message.
    pub dependencies: Arc<[Property]>,
    /// APIs that the bundle provides.
    pub provided_apis: Arc<[Gvk]>,
    /// APIs that the bundle requires.
    pub required_apis: Arc<[Gvk]>,
    /// Deprecation message, if the bundle is deprecated.
    pub deprecation: Option<String>,
}

impl Entry {
    /// Returns whether the skip range contains the version. An invalid range contains none.
    pub fn skips_version(&self, version: &Version) -> bool {
        self.skip_range.as_deref().and_then(|r| Range::parse(r).ok()).is_some_and(|r| r.contains(version))
    }
}

impl Snapshot {
    /// Returns the packages by name.
    pub fn packages(&self) -> &BTreeMap<String, Package> {
        &self.inner.packages
    }

    /// Returns the package of that name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.inner.packages.get(name)
    }

    /// Returns the channel of that name.
    pub fn channel(&self, package: &str, channel: &str) -> Option<&Channel> {
        self.package(package)?.channel(channel)
    }

    /// Returns the entry of that name.
    pub fn entry(&self, package: &str, channel: &str, name: &str) -> Option<&Entry> {
        self.channel(package, channel)?.entry(name)
    }

    /// Returns all entries, by package, channel and name. A bundle occurs once for each of its channels.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.inner.packages.values().flat_map(Package::entries)
    }

    /// Returns the number of bundles; a bundle in several channels counts once.
    pub fn bundle_count(&self) -> usize {
        let bundles = |package: &Package| package.entries().map(|e| e.name.as_str()).collect::<BTreeSet<_>>().len();
        self.inner.packages.values().map(bundles).sum()
    }

    /// Decodes the objects of a bundle. Returns `None` when the catalog has no such entry or does not contain its objects.
    pub fn bundle(&self, package: &str, channel: &str, name: &str) -> Option<BundleContent> {
        self.read_bundle(package, channel, name).ok().flatten()
    }

    /// Like [`Self::bundle`], with errors.
    ///
    /// # Errors
    /// The objects cannot be read or decoded, for example because the file has changed.
    pub fn read_bundle(&self, package: &str, channel: &str, name: &str) -> Result<Option<BundleContent>, String> {
        let Some(content) = self.entry(package, channel, name).and_then(|_| self.content(package, name)) else {
            return Ok(None);
        };
        content.read().map(|content| Some(content).filter(|content| !content.is_empty()))
    }

    /// Returns whether both contain the same objects of a bundle. Inline objects are decoded for the comparison.
    pub fn has_same_objects(&self, other: &Self, package: &str, name: &str) -> bool {
        match (self.content(package, name), other.content(package, name)) {
            (Some(ours), Some(theirs)) => ours.is_same(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }

    /// Returns the blobs of schemas that OLM does not know, which are read on demand.
    pub fn others(&self) -> &[Span] {
        &self.inner.others
    }

    fn content(&self, package: &str, name: &str) -> Option<&Content> {
        self.inner.contents.get(&(package.to_owned(), name.to_owned()))
    }
}

impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        let same_objects =
            |entry: &Entry| !entry.bundle_path.is_empty() || self.has_same_objects(other, &entry.package, &entry.name);
        Arc::ptr_eq(&self.inner, &other.inner)
            || self.inner.packages == other.inner.packages && self.entries().all(same_objects)
    }
}

impl Package {
    /// Returns the channel of that name.
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        let found = self.channels.binary_search_by(|c| c.name.as_str().cmp(name));
        found.ok().map(|at| &self.channels[at])
    }

    /// Returns the entries of all channels, by channel and name.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.channels.iter().flat_map(|c| &c.entries)
    }
}

impl Channel {
    /// Returns the entry of that name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let found = self.entries.binary_search_by(|e| e.name.as_str().cmp(name));
        found.ok().map(|at| &self.entries[at])
    }
}

/// A bundle in a channel as the registry protocol describes it: `api.Bundle` (olm-behaviour/opm.md#registry-protocol).
/// Empty strings are absent fields.
#[derive(Clone, Debug, Default)]
pub struct BundleMessage {
    /// Name of the CSV.
    pub csv_name: String,
    /// Package.
    pub package: String,
    /// Channel.
    pub channel: String,
    /// Version.
    pub version: String,
    /// Range of versions that the bundle skips.
    pub skip_range: String,
    /// Entry that it replaces.
    pub replaces: String,
    /// Entries that it skips.
    pub skips: Vec<String>,
    /// Image.
    pub bundle_path: String,
    /// APIs that it provides.
    pub provided_apis: Vec<Gvk>,
    /// APIs that it requires.
    pub required_apis: Vec<Gvk>,
    /// Dependencies.
    pub dependencies: Vec<Property>,
    /// Properties.
    pub properties: Vec<Property>,
    /// Deprecation message, if the bundle is deprecated.
    pub deprecation: Option<String>,
    /// Its objects, if the message carries them.
    pub content: Option<Content>,
}

/// Builds a [`Snapshot`] from a registry's packages and bundles, in any order.
#[derive(Debug, Default)]
pub struct Builder {
    packages: BTreeMap<String, Package>,
    entries: BTreeMap<(String, String, String), Entry>,
    contents: BTreeMap<(String, String), Content>,
    /// The first entry of each bundle, which shares its lists with the other entries.
    first: BTreeMap<(String, String), (String, String, String)>,
    others: Vec<Span>,
}

impl Builder {
    /// Adds a package with its channels; [`Builder::bundle`] adds their entries.
    pub fn package(&mut self, package: Package) {
        self.packages.insert(package.name.clone(), package);
    }

    /// Adds a blob of an unknown schema.
    pub fn other(&mut self, blob: Span) {
        self.others.push(blob);
    }

    /// Adds a bundle in a channel. Of several messages for one bundle and channel the last one is used.
    pub fn bundle(&mut self, message: BundleMessage) {
        let BundleMessage { csv_name, package, channel, content, .. } = &message;
        let bundle = (package.clone(), csv_name.clone());
        let key = (package.clone(), channel.clone(), csv_name.clone());
        if let Some(content) = content {
            self.contents.entry(bundle.clone()).or_insert_with(|| content.clone());
        }
        let known = self.first.get(&bundle).and_then(|k| self.entries.get(k));
        let entry = message.into_entry(known);
        self.first.entry(bundle).or_insert_with(|| key.clone());
        self.entries.insert(key, entry);
    }

    /// Builds the snapshot. Bundles of a missing package or channel are left out, as OLM leaves out those whose package it
    /// cannot get.
    pub fn build(self) -> Snapshot {
        let Self { mut packages, entries, mut contents, others, .. } = self;
        for package in packages.values_mut() {
            package.channels.sort_by(|a, b| a.name.cmp(&b.name));
        }
        for ((package, channel, _), mut entry) in entries {
            let Some(package) = packages.get_mut(&package) else { continue };
            entry.is_default_channel = package.default_channel == channel;
            let Ok(at) = package.channels.binary_search_by(|c| c.name.cmp(&channel)) else { continue };
            package.channels[at].entries.push(entry);
        }
        contents.retain(|(package, _), _| packages.contains_key(package));
        Snapshot { inner: Arc::new(Inner { packages, contents, others }) }
    }
}

impl BundleMessage {
    /// Derives what OLM's resolver derives. Lists that equal those of `known`, the same bundle in another channel, are
    /// shared.
    fn into_entry(self, known: Option<&Entry>) -> Entry {
        fn share<T: PartialEq>(list: Vec<T>, known: Option<&Arc<[T]>>) -> Arc<[T]> {
            match known {
                Some(known) if **known == list[..] => known.clone(),
                _ => list.into(),
            }
        }
        let properties = self.resolver_properties();
        let bundle_properties = share(self.properties, known.map(|k| &k.bundle_properties));
        let properties = match share(properties, known.map(|k| &k.properties)) {
            same if same == bundle_properties => bundle_properties.clone(),
            more => more,
        };
        let some = |text: String| Some(text).filter(|t| !t.is_empty());
        Entry {
            version: version::parse_tolerant(&self.version).ok(),
            version_text: self.version,
            name: self.csv_name,
            package: self.package,
            channel: self.channel,
            is_default_channel: false,
            replaces: some(self.replaces),
            skips: self.skips,
            skip_range: some(self.skip_range),
            bundle_path: self.bundle_path,
            properties,
            bundle_properties,
            dependencies: share(self.dependencies, known.map(|k| &k.dependencies)),
            provided_apis: share(self.provided_apis, known.map(|k| &k.provided_apis)),
            required_apis: share(self.required_apis, known.map(|k| &k.required_apis)),
            deprecation: self.deprecation,
        }
    }

    fn resolver_properties(&self) -> Vec<Property> {
        let apis = |apis: &[Gvk], type_: &str| {
            let mut apis: Vec<&Gvk> = apis.iter().collect();
            apis.sort();
            apis.into_iter().map(|api| Property::gvk(type_, api)).collect::<Vec<_>>()
        };
        let mut properties =
            if self.properties.is_empty() { apis(&self.provided_apis, property::GVK) } else { self.properties.clone() };
        if self.dependencies.is_empty() {
            properties.extend(apis(&self.required_apis, property::GVK_REQUIRED));
        } else {
            properties.extend(self.dependencies.iter().filter_map(requirement));
        }
        if !properties.iter().any(|p| p.type_ == property::PACKAGE) {
            properties.push(Property::package(&self.package, &self.version));
        }
        properties
    }
}

/// Returns a dependency of a message as the property that the resolver reads; `None` for an unknown type.
fn requirement(dependency: &Property) -> Option<Property> {
    let type_ = match dependency.type_.as_str() {
        property::LABEL => property::LABEL_REQUIRED,
        property::GVK | property::PACKAGE | property::CONSTRAINT => return Some(dependency.required()),
        _ => return None,
    };
    Some(Property::new(type_, dependency.value.clone()))
}
