//! Adds bundles to a file-based catalog: computes which documents to write where, without rewriting existing text.
//!
//! ```text
//!   CatalogIndex + bundles --CatalogIndex::add--> Addition { files, added, notes }      or findings
//!     graph   the entry of a bundle in a channel, and which versions would be stranded
//!     files   the file of each document
//!     edit    one document's text, changed in place
//! ```
//!
//! *Guarantees.* A valid package stays valid, and every version with an update path to the head keeps one. Nothing here
//! writes files: the caller applies each [`FileChange`] to the current text, and loads the result before it writes.

mod edit;
mod files;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use self::edit::Edit;
pub use self::files::FileChange;
pub use self::graph::Mode;
use self::graph::Versions;
use super::blob::{self, BundleBlob, ChannelEntry};
use super::index::{Located, PackageBlobs};
use super::{CatalogIndex, MigrationLevel, migrate, template, validate};
use crate::api::cluster_service_version::Csv;
use crate::api::object::{list, text};
use crate::bundle::property::CSV_METADATA;
use crate::finding::{Finding, Severity};
use crate::go_format::quote;
use crate::version;

/// How bundles are added.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The source of upgrade edges.
    pub mode: Mode,
    /// Channels to add to, instead of those in the bundles' annotations.
    pub channels: Vec<String>,
    /// Default channel of the package, instead of the one in the annotations; empty to use the annotations.
    pub default_channel: String,
    /// Image that a bundle directory is pushed to; empty to store its objects in the catalog.
    pub image: String,
    /// How far the bundles' blobs are migrated.
    pub level: MigrationLevel,
    /// The catalog's directory: the prefix of the paths of its files.
    pub root: String,
}

/// The result of adding bundles.
#[derive(Clone, Debug, Default)]
pub struct Addition {
    /// The files that change, by path.
    pub files: Vec<FileChange>,
    /// The bundles, in the order in which they were added.
    pub added: Vec<Added>,
    /// The packages of the bundles.
    pub packages: BTreeSet<String>,
    /// Warnings about the result.
    pub notes: Vec<Finding>,
}

/// A bundle that is added.
#[derive(Clone, Debug, Serialize)]
pub struct Added {
    /// Name.
    pub name: String,
    /// Package.
    pub package: String,
    /// Version.
    pub version: String,
    /// Image; empty when the catalog contains its objects.
    pub image: String,
    /// The channels that it is added to.
    pub channels: Vec<AddedTo>,
    /// File that it is written to.
    pub file: String,
}

/// A new entry of a channel.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedTo {
    /// Channel.
    pub name: String,
    /// Whether it is now the head of the channel.
    pub head: bool,
    /// The entry that it replaces.
    pub replaces: String,
    /// The entries that it skips.
    pub skips: Vec<String>,
    /// The range of versions that it skips.
    pub skip_range: String,
}

/// A bundle to add.
#[derive(Clone, Debug)]
struct New {
    /// The file or directory that it was read from.
    file: String,
    name: String,
    package: String,
    version: String,
    channels: Vec<String>,
    default_channel: String,
    /// Its entry, with the edges of its CSV.
    entry: ChannelEntry,
    /// The blob, before migration.
    blob: Value,
}

/// The changes of a package.
#[derive(Debug, Default)]
struct Package<'a> {
    name: String,
    blobs: Option<&'a PackageBlobs>,
    channels: BTreeMap<String, Channel<'a>>,
    versions: Versions,
    /// The new default channel; `None` when it does not change.
    default_channel: Option<String>,
    new: Vec<New>,
}

#[derive(Debug, Default)]
struct Channel<'a> {
    /// Location in the catalog; `None` when the channel is new.
    known: Option<&'a Located<blob::ChannelBlob>>,
    entries: Vec<ChannelEntry>,
    /// Edits of the channel's existing document.
    edits: Vec<Edit>,
    /// Names of the new entries.
    new: BTreeSet<String>,
}

impl CatalogIndex {
    /// Plans to add all bundles of another catalog.
    ///
    /// # Errors
    /// All reasons why that would make the catalog invalid, or strand an installed version.
    pub fn add(&self, bundles: &Self, request: &Request) -> Result<Addition, Vec<Finding>> {
        let mut by_package: BTreeMap<String, Vec<New>> = BTreeMap::new();
        for new in bundles.new_bundles(request)? {
            by_package.entry(new.package.clone()).or_default().push(new);
        }
        let mut refused = Vec::new();
        let mut addition = Addition { packages: by_package.keys().cloned().collect(), ..Addition::default() };
        let mut packages = Vec::new();
        for (name, new) in by_package {
            match self.add_to(&name, new, request, &mut addition.notes) {
                Ok(package) => packages.push(package),
                Err(findings) => refused.extend(findings),
            }
        }
        if refused.is_empty() {
            addition.files = self.file_changes(&packages, request).map_err(|finding| vec![finding])?;
            addition.list_added(&packages);
            Ok(addition)
        } else {
            Err(refused)
        }
    }

    /// Returns the bundles of a catalog that was made from bundles only.
    fn new_bundles(&self, request: &Request) -> Result<Vec<New>, Vec<Finding>> {
        let (mut found, mut refused) = (Vec::new(), Vec::new());
        for (package, blobs) in &self.packages {
            let of = blobs.packages.iter().map(|of| &of.place).chain(blobs.channels.iter().map(|of| &of.place)).next();
            if let Some(place) = of {
                let finding =
                    Finding::new("not-a-bundle", "expected a bundle, found a catalog").at(&place.file, place.line);
                refused.push(finding.hint("specify bundle directories, or files that contain only olm.bundle blobs"));
                continue;
            }
            for of in &blobs.bundles {
                match new(of, package, request) {
                    Ok(new) => found.push(new),
                    Err(finding) => refused.push(finding),
                }
            }
        }
        if found.is_empty() && refused.is_empty() {
            refused.push(Finding::new("not-a-bundle", "no bundle to add"));
        }
        if refused.is_empty() { Ok(found) } else { Err(refused) }
    }

    /// Adds new bundles of one package to its channels.
    fn add_to(
        &self,
        name: &str,
        new: Vec<New>,
        request: &Request,
        notes: &mut Vec<Finding>,
    ) -> Result<Package<'_>, Vec<Finding>> {
        let mut package = self.package_of(name).map_err(|finding| vec![finding])?;
        let mut refused = Vec::new();
        for new in in_order(new, request.mode) {
            match package.add(new, request, notes) {
                Ok(()) => {}
                Err(finding) => refused.push(finding),
            }
        }
        if refused.is_empty() {
            refused.extend(package.check());
        }
        if refused.is_empty()
            && let Err(finding) = package.choose_default(request, notes)
        {
            refused.push(finding);
        }
        if refused.is_empty() { Ok(package) } else { Err(refused) }
    }

    /// Returns the package as it is, if it is valid.
    fn package_of(&self, name: &str) -> Result<Package<'_>, Finding> {
        let mut package = Package { name: name.to_owned(), ..Package::default() };
        let Some(blobs) = self.packages.get(name) else { return Ok(package) };
        if let Some(broken) = validate::package(name, blobs).into_iter().find(|f| f.severity == Severity::Error) {
            let message = format!("the package is already invalid: {}", broken.message);
            return Err(Finding { message, ..broken });
        }
        for of in &blobs.bundles {
            if let Ok(version) = version::parse_tolerant(blob::version(&of.blob.properties)) {
                package.versions.insert(of.blob.name.clone(), version);
            }
        }
        for of in &blobs.channels {
            let channel = Channel { known: Some(of), entries: of.blob.entries.clone(), ..Channel::default() };
            package.channels.insert(of.blob.name.clone(), channel);
        }
        package.blobs = Some(blobs);
        Ok(package)
    }
}

/// Reads a bundle that is to be added.
fn new(of: &Located<BundleBlob>, package: &str, request: &Request) -> Result<New, Finding> {
    let mut blob = of.bundle()?.0;
    let refuse = |code, message: String| {
        let on = Finding::new(code, message).at(&of.place.file, of.place.line);
        on.about(format!("bundle {}", quote(&of.blob.name)))
    };
    let name = of.blob.name.clone();
    let channels = if request.channels.is_empty() { of.blob.channels.clone() } else { request.channels.clone() };
    for (what, is_empty) in [("name", name.is_empty()), ("package", package.is_empty())] {
        if is_empty {
            let hint = "set a name in its CSV, and the package in metadata/annotations.yaml";
            return Err(refuse("not-a-bundle", format!("the bundle has no {what}")).hint(hint));
        }
    }
    if channels.is_empty() {
        let hint = "set the channels in metadata/annotations.yaml, or use --channel NAME";
        return Err(refuse("no-channel", "no channels are specified for the bundle".to_owned()).hint(hint));
    }
    if !request.image.is_empty() {
        set_image(&mut blob, &request.image);
    }
    let properties = list(&blob, &["properties"]);
    let csv = migrate::csv(properties).unwrap_or_default();
    let metadata = properties.iter().find(|p| text(p, &["type"]) == CSV_METADATA);
    let skip_range = match text(&csv, &["metadata", "annotations", "olm.skipRange"]) {
        "" => metadata.map_or("", |m| text(m, &["value", "annotations", "olm.skipRange"])),
        range => range,
    };
    let skips = list(&csv, &["spec", "skips"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let entry = ChannelEntry {
        name: name.clone(),
        replaces: Csv::new(&csv).replaces().to_owned(),
        skips,
        skip_range: skip_range.to_owned(),
    };
    let version = blob::version(&of.blob.properties).to_owned();
    if let Err(e) = version::parse(&version) {
        let message = format!("invalid version {}: {e}", quote(&version));
        return Err(refuse("bad-version", message).hint("set spec.version of the CSV to major.minor.patch"));
    }
    Ok(New {
        file: of.place.file.to_string(),
        name,
        package: package.to_owned(),
        version,
        channels,
        default_channel: of.blob.default_channel.clone(),
        entry,
        blob,
    })
}

/// Sets the image of a bundle, which is also one of its related images.
fn set_image(blob: &mut Value, image: &str) {
    blob["image"] = image.into();
    let mut images = list(blob, &["relatedImages"]).to_vec();
    if !images.iter().any(|i| text(i, &["image"]) == image) {
        images.push(serde_json::json!({"name": "", "image": image}));
    }
    images.sort_by(|a, b| text(a, &["image"]).cmp(text(b, &["image"])));
    blob["relatedImages"] = images.into();
}

/// Sorts bundles: a bundle before those that replace or skip it, and lower versions before higher ones.
fn in_order(mut new: Vec<New>, mode: Mode) -> Vec<New> {
    new.sort_by(|a, b| match (version::parse(&a.version), version::parse(&b.version)) {
        (Ok(x), Ok(y)) => version::compare(&x, &y).then_with(|| a.name.cmp(&b.name)),
        _ => a.name.cmp(&b.name),
    });
    if mode != Mode::Replaces {
        return new;
    }
    let mut ordered: Vec<New> = Vec::new();
    while !new.is_empty() {
        let follows = |a: &New, b: &New| a.entry.replaces == b.name || a.entry.skips.contains(&b.name);
        // A cycle has no first bundle: the lowest version is taken.
        let first = (0..new.len()).find(|at| !new.iter().any(|other| follows(&new[*at], other))).unwrap_or(0);
        ordered.push(new.remove(first));
    }
    ordered
}

impl Package<'_> {
    fn add(&mut self, new: New, request: &Request, notes: &mut Vec<Finding>) -> Result<(), Finding> {
        let on = |finding: Finding| {
            let place = if finding.file.is_empty() { finding.at(&new.file, 0) } else { finding };
            place.about(format!("bundle {} of package {}", quote(&new.name), quote(&new.package)))
        };
        let known = self.blobs.map(|b| &b.bundles[..]).unwrap_or_default();
        if let Some(of) = known.iter().find(|of| of.blob.name == new.name) {
            let message = format!("the catalog already contains it, at {}", of.place);
            return Err(
                on(Finding::new("bundle-exists", message).hint("give the new bundle another name and version")),
            );
        }
        if self.new.iter().any(|other| other.name == new.name) {
            return Err(on(Finding::new("bundle-exists", "it is specified twice")));
        }
        if new.entry.replaces == new.name || new.entry.skips.contains(&new.name) {
            let finding = Finding::new("cycle", "it replaces or skips itself");
            return Err(on(finding.hint("correct spec.replaces and spec.skips of the CSV")));
        }
        let of_version = known.iter().map(|of| (&of.blob.name, blob::version(&of.blob.properties)));
        let of_version = of_version.chain(self.new.iter().map(|n| (&n.name, n.version.as_str())));
        if let Some((other, _)) = of_version.into_iter().find(|(_, version)| *version == new.version) {
            let message = format!("version {} already exists, in {other}", new.version);
            return Err(on(Finding::new("duplicate-version", message).hint("give the bundle another version")));
        }
        if let Ok(version) = version::parse(&new.version) {
            self.versions.insert(new.name.clone(), version);
        }
        for channel in &new.channels {
            let in_channel = |f: Finding| {
                let message = format!("channel {}: {}", quote(channel), f.message);
                on(Finding { message, ..f })
            };
            let is_new = !self.channels.contains_key(channel);
            let of = self.channels.entry(channel.clone()).or_default();
            let before = of.entries.clone();
            let edits =
                graph::place(request.mode, &mut of.entries, new.entry.clone(), &self.versions).map_err(in_channel)?;
            for edit in &edits {
                if let Edit::Replaces(name, _) = edit {
                    notes.push(changed(&self.name, channel, name, &before, &new.name));
                }
            }
            of.edits.extend(edits);
            of.new.insert(new.name.clone());
            let placed = of.entries.iter().find(|e| e.name == new.name);
            let replaces = placed.map_or("", |e| e.replaces.as_str());
            if is_new && !replaces.is_empty() {
                let message = format!("it replaces {replaces}, which channel {} does not contain", quote(channel));
                let note = Finding::new("dangling-replaces", message).warning();
                notes.push(on(
                    note.hint("clusters that have it installed can upgrade, but it cannot be newly installed")
                ));
            }
        }
        self.new.push(new);
        Ok(())
    }

    /// Returns a finding for everything that would be invalid.
    fn check(&self) -> Vec<Finding> {
        let mut refused = Vec::new();
        for (name, channel) in self.channels.iter().filter(|(_, channel)| !channel.new.is_empty()) {
            let subject = format!("channel {} of package {}", quote(name), quote(&self.name));
            let place = channel.known.map(|of| &of.place);
            let on = |f: Finding| {
                let f = f.about(subject.clone());
                place.map_or_else(|| f.clone(), |p| f.clone().at(&p.file, p.line))
            };
            if let Err(finding) = graph::check(&channel.entries, &channel.new) {
                refused.push(on(finding));
                continue;
            }
            let before = channel.known.map(|of| &of.blob.entries[..]).unwrap_or_default();
            let stranded = graph::stranded(before, &channel.entries, &self.versions);
            if !stranded.is_empty() {
                let names = stranded.join(", ");
                let message = format!("installed versions {names} would no longer have an update path to the head");
                let nodes: Vec<_> = channel.entries.iter().map(super::channel::Node::from).collect();
                let head = super::channel::head(&nodes).unwrap_or_default();
                refused.push(on(Finding::new("stranded", message).hint(format!("make {head} also skip {names}"))));
            }
        }
        refused
    }

    /// Determines the default channel.
    fn choose_default(&mut self, request: &Request, notes: &mut Vec<Finding>) -> Result<(), Finding> {
        let subject = format!("package {}", quote(&self.name));
        let version = |name: &str| self.versions.get(name);
        let newest = self.new.iter().max_by(|a, b| version(&a.name).cmp(&version(&b.name)));
        let is_newest = newest.is_some_and(|n| self.versions.values().all(|v| Some(v) <= version(&n.name)));
        let said = match request.default_channel.as_str() {
            "" => newest.map_or("", |n| n.default_channel.as_str()),
            asked => asked,
        };
        let current = self.blobs.and_then(|b| b.packages.first()).map(|of| of.blob.default_channel.as_str());
        let wanted = match (current, said) {
            (Some(_), "") => return Ok(()),
            // An older bundle does not know the package's current default channel.
            (Some(current), said) if said == current || request.default_channel.is_empty() && !is_newest => {
                return Ok(());
            }
            (None, "") => match self.channels.keys().next() {
                Some(only) if self.channels.len() == 1 => only,
                _ => {
                    let hint = "use --default-channel NAME, or set it in metadata/annotations.yaml";
                    let finding = Finding::new("no-default-channel", "no default channel is specified");
                    return Err(finding.about(subject).hint(hint));
                }
            },
            (_, said) => said,
        };
        if !self.channels.contains_key(wanted) {
            let known: Vec<&str> = self.channels.keys().map(String::as_str).collect();
            let message = format!("the default channel {} is not a channel of the package", quote(wanted));
            let hint = format!("the package has {}: also add to {wanted}, or use --default-channel", known.join(", "));
            return Err(Finding::new("no-default-channel", message).about(subject).hint(hint));
        }
        if let Some(current) = current {
            let message = format!("the default channel changes to {} from {}", quote(wanted), quote(current));
            notes.push(Finding::new("other-default-channel", message).warning().about(subject));
        }
        self.default_channel = Some(wanted.to_owned());
        Ok(())
    }
}

/// Reports that an existing entry gets another `replaces`.
fn changed(package: &str, channel: &str, name: &str, before: &[ChannelEntry], new: &str) -> Finding {
    let old = before.iter().find(|e| e.name == name).map_or("", |e| e.replaces.as_str());
    let instead = if old.is_empty() { String::new() } else { format!(" instead of {old}") };
    Finding::new("other-replaces", format!("{name} now replaces {new}{instead}")).warning().about(format!(
        "channel {} of package {}",
        quote(channel),
        quote(package)
    ))
}

impl Addition {
    /// Lists what is added, in order.
    fn list_added(&mut self, packages: &[Package<'_>]) {
        for package in packages {
            for new in &package.new {
                let to = |(name, channel): (&String, &Channel<'_>)| {
                    let entry = channel.entries.iter().find(|e| channel.new.contains(&e.name) && e.name == new.name)?;
                    let nodes: Vec<_> = channel.entries.iter().map(super::channel::Node::from).collect();
                    let head = super::channel::head(&nodes) == Ok(new.name.as_str());
                    let ChannelEntry { replaces, skips, skip_range, .. } = entry.clone();
                    Some(AddedTo { name: name.clone(), head, replaces, skips, skip_range })
                };
                let file = self.files.iter().find(|f| f.has(&new.package, &new.name)).map(|f| f.path.clone());
                self.added.push(Added {
                    name: new.name.clone(),
                    package: new.package.clone(),
                    version: new.version.clone(),
                    image: text(&new.blob, &["image"]).to_owned(),
                    channels: package.channels.iter().filter_map(to).collect(),
                    file: file.unwrap_or_default(),
                });
            }
        }
    }
}

/// Returns the blob of a new package.
fn package_blob(package: &Package<'_>) -> Value {
    let default = package.default_channel.as_deref().unwrap_or_default();
    let entries = package.channels.get(default).map(|c| &c.entries[..]).unwrap_or_default();
    let nodes: Vec<_> = entries.iter().map(super::channel::Node::from).collect();
    let head = super::channel::head(&nodes).ok();
    let described = package.new.iter().find(|n| Some(n.name.as_str()) == head).map(|n| &n.blob);
    template::package_blob(&package.name, default, described)
}
