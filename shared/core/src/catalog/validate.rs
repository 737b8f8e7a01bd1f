//! Is a package of a catalog sound? All that is wrong with it, in opm's words (reference: bundles and catalogs §2.3).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Property;
use super::blob::{BundleBlob, ChannelBlob, ChannelEntry, DeprecationsBlob, Place};
use super::channel::{self, Node};
use super::load::Blobs;
use crate::api::object::text;
use crate::bundle::property;
use crate::finding::Finding;
use crate::go::quote;
use crate::version::{self, Range};

impl<'a> From<&'a ChannelEntry> for Node<'a> {
    fn from(entry: &'a ChannelEntry) -> Self {
        Self { name: &entry.name, replaces: &entry.replaces, skips: &entry.skips }
    }
}

/// Everything wrong with a package's blobs; nothing when it can be served.
pub(super) fn package(name: &str, blobs: &Blobs) -> Vec<Finding> {
    let mut check = Check { package: quote(name), findings: Vec::new() };
    match &blobs.packages[..] {
        [] => {
            check.orphans(blobs);
            return check.findings;
        }
        [(place, package)] => {
            if name.is_empty() {
                check.add(place, "no-name", "config contains package with no name".to_owned(), "give it a name");
            } else if let Some(why) = bad_label(name) {
                check.add(place, "bad-name", format!("invalid package name {}: {why}", quote(name)), "");
            }
            let default = &package.default_channel;
            if default.is_empty() {
                check.add(place, "no-default-channel", "default channel must be set".to_owned(), "set defaultChannel");
            } else if !blobs.channels.iter().any(|(_, c)| c.name == *default) {
                let known: Vec<String> = blobs.channels.iter().map(|(_, c)| quote(&c.name)).collect();
                let message = format!("default channel {} not found in channels list", quote(default));
                check.add(place, "unknown-default-channel", message, &format!("channels: {}", known.join(", ")));
            }
            if blobs.channels.is_empty() {
                let message = "package must contain at least one channel".to_owned();
                check.add(place, "no-channel", message, "add an olm.channel blob that names the package");
            }
        }
        [(first, _), rest @ ..] => {
            for (place, _) in rest {
                let message = format!("duplicate package {}", quote(name));
                check.add(place, "duplicate-package", message, &format!("the other one is at {}", first.describe()));
            }
        }
    }
    let bundles = check.bundles(name, &blobs.bundles);
    check.channels(&blobs.channels, &bundles);
    let in_channels: BTreeSet<&str> =
        blobs.channels.iter().flat_map(|(_, c)| &c.entries).map(|e| e.name.as_str()).collect();
    for (place, bundle) in &blobs.bundles {
        if !in_channels.contains(bundle.name.as_str()) {
            let message = format!("bundle {} not found in any channel entries", quote(&bundle.name));
            check.add(place, "bundle-in-no-channel", message, "add it to the entries of a channel, or remove it");
        }
    }
    check.deprecations(blobs, &bundles);
    check.findings
}

struct Check {
    package: String,
    findings: Vec<Finding>,
}

impl Check {
    fn add(&mut self, place: &Place, code: &'static str, message: String, hint: &str) {
        let about = format!("package {}", self.package);
        self.findings.push(Finding::new(code, message).at(&place.file, place.line).about(about).hint(hint));
    }

    /// Blobs of a package that has no `olm.package`.
    fn orphans(&mut self, blobs: &Blobs) {
        let hint = "add an olm.package blob for it, or correct the package's name";
        for (place, channel) in &blobs.channels {
            let message = format!("unknown package {} for channel {}", self.package, quote(&channel.name));
            self.add(place, "unknown-package", message, hint);
        }
        for (place, bundle) in &blobs.bundles {
            let message = match bundle.package.as_str() {
                "" => format!("package name must be set for bundle {}", quote(&bundle.name)),
                _ => format!("unknown package {} for bundle {}", self.package, quote(&bundle.name)),
            };
            self.add(place, "unknown-package", message, hint);
        }
        for (place, deprecations) in &blobs.deprecations {
            let message = match deprecations.package.as_str() {
                "" => "package name must be set for deprecation item".to_owned(),
                _ => format!("cannot apply deprecations to an unknown package {}", self.package),
            };
            self.add(place, "unknown-package", message, hint);
        }
    }

    /// Checks each bundle; the names of all.
    fn bundles<'a>(&mut self, package: &str, blobs: &'a [(Place, BundleBlob)]) -> BTreeSet<&'a str> {
        let mut names: BTreeMap<&str, &Place> = BTreeMap::new();
        let mut versions: BTreeMap<String, &str> = BTreeMap::new();
        for (place, bundle) in blobs {
            let name = quote(&bundle.name);
            if let Some(other) = names.insert(&bundle.name, place) {
                let hint = format!("the other one is at {}", other.describe());
                self.add(place, "duplicate-bundle", format!("duplicate bundle {name}"), &hint);
                continue;
            }
            if bundle.name.is_empty() {
                self.add(place, "no-name", "bundle name must be set".to_owned(), "give it the name of its CSV");
            }
            if bundle.image.is_empty() && !bundle.has_objects {
                let message = format!("bundle {name}: bundle image must be set");
                self.add(place, "no-image", message, "name its image, or add its objects as olm.bundle.object");
            }
            if let Some(message) = bundle.properties.iter().enumerate().find_map(bad_property) {
                self.add(place, "bad-property", format!("parse properties for bundle {name}: {message}"), "");
            }
            let of: Vec<&Value> =
                bundle.properties.iter().filter(|p| p.type_ == property::PACKAGE).map(|p| &p.value).collect();
            let [of] = of[..] else {
                let found = of.len();
                let message = format!("bundle {name} must have exactly 1 \"olm.package\" property, found {found}");
                self.add(place, "bundle-package", message, "");
                continue;
            };
            if text(of, &["packageName"]) != package {
                let other = quote(text(of, &["packageName"]));
                let message =
                    format!("bundle {name}: package {} does not match \"olm.package\" property {other}", self.package);
                self.add(place, "bundle-package", message, "");
            }
            let version = text(of, &["version"]);
            if let Err(e) = version::parse(version) {
                let message = format!("error parsing bundle {name} version {}: {e}", quote(version));
                self.add(place, "bad-version", message, "a version is major.minor.patch, without a leading v");
            }
            let release = text(of, &["release"]);
            let full = if release.is_empty() { version.to_owned() } else { format!("{version}-{release}") };
            if let Some(other) = versions.insert(full, &bundle.name) {
                let message =
                    format!("duplicate versions found in bundles: [{{{version}: [{other}, {}]}}]", bundle.name);
                self.add(place, "duplicate-version", message, "a version may differ by its build metadata");
            }
        }
        names.into_keys().collect()
    }

    fn channels(&mut self, blobs: &[(Place, ChannelBlob)], bundles: &BTreeSet<&str>) {
        let mut names = BTreeSet::new();
        for (place, channel) in blobs {
            let name = quote(&channel.name);
            if channel.name.is_empty() {
                self.add(place, "no-name", "package contains channel with no name".to_owned(), "give it a name");
            }
            if !names.insert(&channel.name) {
                self.add(place, "duplicate-channel", format!("duplicate channel {name}"), "join their entries");
                continue;
            }
            if channel.entries.is_empty() {
                let message = format!("channel {name} must contain at least one bundle");
                self.add(place, "empty-channel", message, "");
                continue;
            }
            let mut entries = BTreeSet::new();
            for entry in &channel.entries {
                if !entries.insert(&entry.name) {
                    let message = format!("channel {name}: duplicate entry {}", quote(&entry.name));
                    self.add(place, "duplicate-entry", message, "");
                }
                self.entry(place, &name, entry);
            }
            let missing: Vec<&str> =
                channel.entries.iter().map(|e| e.name.as_str()).filter(|n| !bundles.contains(n)).collect();
            if !missing.is_empty() {
                let message = format!(
                    "channel {name}: no olm.bundle blobs found for olm.channel entries [{}]",
                    missing.join(" ")
                );
                self.add(place, "missing-bundle", message, "add the bundles, or remove the entries");
            }
            let nodes: Vec<Node<'_>> = channel.entries.iter().map(Node::from).collect();
            if let Err(message) = channel::check(&nodes) {
                self.add(place, "bad-graph", format!("channel {name}: {message}"), "correct replaces and skips");
            }
        }
    }

    fn entry(&mut self, place: &Place, channel: &str, entry: &ChannelEntry) {
        let name = quote(&entry.name);
        if let Some(at) = entry.skips.iter().position(String::is_empty) {
            let message = format!("channel {channel}: entry {name}: skip[{at}] is empty");
            self.add(place, "bad-edge", message, "");
        }
        let range = &entry.skip_range;
        if let Some(e) = Range::parse(range).err().filter(|_| !range.is_empty()) {
            let message = format!("channel {channel}: entry {name}: invalid skipRange {}: {e}", quote(range));
            self.add(place, "bad-edge", message, "a range is written as \">=1.0.0 <1.2.0\"");
        }
    }

    fn deprecations(&mut self, blobs: &Blobs, bundles: &BTreeSet<&str>) {
        if let [(first, _), (place, _), ..] = &blobs.deprecations[..] {
            let message = format!("expected a maximum of one deprecation per package: {}", self.package);
            self.add(place, "duplicate-deprecations", message, &format!("the other one is at {}", first.describe()));
        }
        for (place, blob) in &blobs.deprecations {
            self.deprecation_entries(place, blob, &blobs.channels, bundles);
        }
    }

    fn deprecation_entries(
        &mut self,
        place: &Place,
        blob: &DeprecationsBlob,
        channels: &[(Place, ChannelBlob)],
        bundles: &BTreeSet<&str>,
    ) {
        let package = self.package.clone();
        let mut seen = BTreeSet::new();
        for (index, entry) in blob.entries.iter().enumerate() {
            let (schema, name) = (entry.reference.schema.as_str(), entry.reference.name.as_str());
            let message = match schema {
                "" => format!("schema must be set for deprecation entry [{index}] for package {package}"),
                _ if !seen.insert(&entry.reference) => {
                    format!("duplicate deprecation entry {schema} {} for package {package}", quote(name))
                }
                _ if entry.message.is_empty() => "invalid deprecation: message must be set".to_owned(),
                "olm.bundle" if !bundles.contains(name) => {
                    format!("cannot deprecate bundle {} for package {package}: bundle not found", quote(name))
                }
                "olm.channel" if !channels.iter().any(|(_, c)| c.name == name) => {
                    format!("cannot deprecate channel {} for package {package}: channel not found", quote(name))
                }
                "olm.package" if !name.is_empty() => {
                    format!("package name must be empty for deprecated package {package} (specified {})", quote(name))
                }
                "olm.bundle" | "olm.channel" | "olm.package" => continue,
                _ => format!("cannot deprecate {schema} {} for package {package}: object schema unknown", quote(name)),
            };
            self.add(place, "bad-deprecation", message, "");
        }
    }
}

/// What is wrong with the value of a property of a known type.
fn bad_property((index, property): (usize, &Property)) -> Option<String> {
    let fields: &[&str] = match property.type_.as_str() {
        property::PACKAGE => &["packageName", "version"],
        property::PACKAGE_REQUIRED => &["packageName", "versionRange"],
        property::GVK | property::GVK_REQUIRED => &["group", "kind", "version"],
        _ => return None,
    };
    let wrong = |why: String| Some(format!("parse property[{index}] of type {}: {why}", quote(&property.type_)));
    let Some(value) = property.value.as_object() else { return wrong("the value is not an object".to_owned()) };
    let not_text = |field: &&&str| value.get(**field).is_some_and(|v| !v.is_string() && !v.is_null());
    fields.iter().find(not_text).and_then(|field| wrong(format!("{field} is not a string")))
}

/// Why a name is not a DNS label.
fn bad_label(name: &str) -> Option<&'static str> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let ends = |b: Option<u8>| b.is_some_and(|b| b != b'-' && inner(b));
    if name.len() > 63 {
        Some("must be no more than 63 characters")
    } else if !name.bytes().all(inner) || !ends(name.bytes().next()) || !ends(name.bytes().last()) {
        Some(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character",
        )
    } else {
        None
    }
}

impl Place {
    fn describe(&self) -> String {
        if self.line == 0 { self.file.to_string() } else { format!("{}:{}", self.file, self.line) }
    }
}
