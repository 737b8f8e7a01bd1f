//! Validates a package of a catalog. Findings have opm's words (olm-behaviour/opm.md#catalog-validation).
//!
//! A finding's message is that of opm's rule, where opm has one; the subject names the object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::blob::{BundleBlob, ChannelBlob, ChannelEntry, Deprecation, Place, Reference};
use super::channel::{self, Node};
use super::index::{Located, PackageBlobs};
use crate::api::names::{LABEL_RULE, LONGEST_LABEL, is_label};
use crate::api::object::text;
use crate::bundle::property;
use crate::finding::Finding;
use crate::go_format::quote;
use crate::version::{self, Range};

/// Codes of findings about catalogs that opm accepts.
const OUR_OWN: [&str; 5] = ["bad-optional-manifests", "repeated-key", "not-a-text", "link-leads-out", "bundle-outside"];

/// Returns whether opm would reject the whole catalog because of a finding with that code.
pub fn refused_by_opm(code: &str) -> bool {
    !OUR_OWN.contains(&code)
}

impl<'a> From<&'a ChannelEntry> for Node<'a> {
    fn from(entry: &'a ChannelEntry) -> Self {
        Self { name: &entry.name, replaces: &entry.replaces, skips: &entry.skips }
    }
}

/// Returns all findings about a package's blobs. A package without findings of severity `Error` can be served.
pub(super) fn package(name: &str, blobs: &PackageBlobs) -> Vec<Finding> {
    let mut check = Check { name, package: quote(name), findings: Vec::new() };
    let [package, duplicates @ ..] = &blobs.packages[..] else {
        check.orphans(blobs);
        return check.findings;
    };
    let on_package = |place: &Place| at(place).about(format!("package {}", quote(name)));
    for other in duplicates {
        let finding =
            on_package(&other.place).finding("duplicate-package", format!("duplicate package {}", check.package));
        check.add(finding.hint(format!("the other package is at {}", package.place)));
    }
    let on_package = on_package(&package.place);
    if name.is_empty() {
        check.add(on_package.finding("no-name", "config contains package with no name").hint("give it a name"));
    } else if let Some(why) = bad_label(name) {
        check.add(on_package.finding("bad-name", format!("invalid package name {}: [{why}]", check.package)));
    }
    let default = &package.blob.default_channel;
    let known: Vec<String> = blobs.channels.iter().map(|c| quote(&c.blob.name)).collect();
    if default.is_empty() {
        let hint = format!("set defaultChannel to one of its channels: {}", known.join(", "));
        check.add(on_package.finding("no-default-channel", "default channel must be set").hint(hint));
    } else if !blobs.channels.iter().any(|c| c.blob.name == *default) {
        // opm creates the channel, which is then empty.
        let on_channel = at(&package.place).about(format!("channel {} of package {}", quote(default), check.package));
        let hint = format!("set defaultChannel to one of the existing channels: {}", known.join(", "));
        let message = "channel must contain at least one bundle";
        check.add(on_channel.finding("unknown-default-channel", message).hint(hint));
    }
    if blobs.channels.is_empty() {
        let finding = on_package.finding("no-channel", "package must contain at least one channel");
        check.add(finding.hint("add an olm.channel blob that names the package"));
    }
    let bundles = check.bundles(&blobs.bundles);
    check.channels(&blobs.channels, &bundles);
    let entries: BTreeSet<&str> =
        blobs.channels.iter().flat_map(|c| &c.blob.entries).map(|e| e.name.as_str()).collect();
    for bundle in blobs.bundles.iter().filter(|b| !entries.contains(b.blob.name.as_str())) {
        let message =
            format!("package {}, bundle {} not found in any channel entries", check.package, quote(&bundle.blob.name));
        let finding = check.on_bundle(bundle).finding("bundle-in-no-channel", message);
        check.add(finding.hint("add it to the entries of a channel, or remove it"));
    }
    check.deprecations(blobs, &bundles);
    check.findings
}

/// A finding with a location but without a message.
struct On(Finding);

fn at(place: &Place) -> On {
    On(Finding::default().at(&place.file, place.line))
}

impl On {
    fn about(self, subject: String) -> Self {
        Self(self.0.about(subject))
    }

    fn finding(&self, code: &'static str, message: impl Into<String>) -> Finding {
        Finding { code, message: message.into(), ..self.0.clone() }
    }
}

struct Check<'a> {
    name: &'a str,
    /// The package's name in quotes.
    package: String,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn on_bundle(&self, of: &Located<BundleBlob>) -> On {
        at(&of.place).about(format!("bundle {} of package {}", quote(&of.blob.name), self.package))
    }

    fn on_channel(&self, of: &Located<ChannelBlob>) -> On {
        at(&of.place).about(format!("channel {} of package {}", quote(&of.blob.name), self.package))
    }

    /// Reports the blobs of a package that has no `olm.package`.
    fn orphans(&mut self, blobs: &PackageBlobs) {
        const HINT: &str = "add an olm.package blob for it, or correct the package's name";
        for of in &blobs.channels {
            let message = format!("unknown package {} for channel {}", self.package, quote(&of.blob.name));
            self.add(self.on_channel(of).finding("unknown-package", message).hint(HINT));
        }
        for of in &blobs.bundles {
            let message = match self.name {
                "" => format!("package name must be set for bundle {}", quote(&of.blob.name)),
                _ => format!("unknown package {} for bundle {}", self.package, quote(&of.blob.name)),
            };
            self.add(self.on_bundle(of).finding("unknown-package", message).hint(HINT));
        }
        for of in &blobs.deprecations {
            let message = match self.name {
                "" => "package name must be set for deprecation item".to_owned(),
                _ => format!("cannot apply deprecations to an unknown package {}", self.package),
            };
            self.add(at(&of.place).finding("unknown-package", message).hint(HINT));
        }
    }

    /// Checks each bundle. Returns the names of all.
    fn bundles<'b>(&mut self, bundles: &'b [Located<BundleBlob>]) -> BTreeSet<&'b str> {
        let mut names: BTreeMap<&str, &Place> = BTreeMap::new();
        let mut versions: BTreeMap<String, Vec<&Located<BundleBlob>>> = BTreeMap::new();
        for of in bundles {
            if let Some(other) = names.insert(&of.blob.name, &of.place) {
                let message = format!("package {} has duplicate bundle {}", self.package, quote(&of.blob.name));
                let finding = self.on_bundle(of).finding("duplicate-bundle", message);
                self.add(finding.hint(format!("the other bundle is at {other}")));
                continue;
            }
            if let Some(version) = self.bundle(of) {
                versions.entry(version).or_default().push(of);
            }
        }
        for (version, of) in versions {
            let [.., last] = &of[..] else { continue };
            if of.len() > 1 {
                let mut names: Vec<&str> = of.iter().map(|of| of.blob.name.as_str()).collect();
                names.sort_unstable();
                let message = format!("duplicate versions found in bundles: [{{{version}: [{}]}}]", names.join(", "));
                let finding = self.on_bundle(last).finding("duplicate-version", message);
                self.add(finding.hint("give each bundle a version that differs in more than build metadata"));
            }
        }
        names.into_keys().collect()
    }

    /// Checks a bundle. Returns its version with its release, if it has a version.
    fn bundle(&mut self, of: &Located<BundleBlob>) -> Option<String> {
        let (on, name, bundle) = (self.on_bundle(of), quote(&of.blob.name), &of.blob);
        if bundle.name.is_empty() {
            self.add(on.finding("no-name", "name must be set").hint("give it the name of its CSV"));
        }
        if bundle.image.is_empty() && !bundle.has_objects {
            let finding = on.finding("no-image", "bundle image must be set");
            self.add(finding.hint("set its image, or add its objects as olm.bundle.object properties"));
        }
        for (code, message) in &bundle.problems {
            let finding = on.finding(code, message);
            // Only tools that mirror images read the related images.
            self.add(if matches!(*code, "bad-optional-manifests" | "bad-related-image") {
                finding.warning()
            } else {
                finding
            });
        }
        let of: Vec<&Value> =
            bundle.properties.iter().filter(|p| p.type_ == property::PACKAGE).map(|p| &p.value).collect();
        let [of] = of[..] else {
            let found = of.len();
            let package = &self.package;
            let message =
                format!("package {package} bundle {name} must have exactly 1 \"olm.package\" property, found {found}");
            self.add(on.finding("bundle-package", message));
            return None;
        };
        if text(of, &["packageName"]) != self.name {
            let other = quote(text(of, &["packageName"]));
            let message = format!("package {} does not match \"olm.package\" property {other}", self.package);
            self.add(on.finding("bundle-package", message));
        }
        let (version, release) = (text(of, &["version"]), text(of, &["release"]));
        let parsed = match version::parse(version) {
            Ok(parsed) => parsed,
            Err(e) => {
                let message = format!("error parsing bundle {name} version {}: {e}", quote(version));
                let finding = on.finding("bad-version", message);
                self.add(finding.hint("use major.minor.patch, without a leading v"));
                return None;
            }
        };
        if release.is_empty() {
            return Some(version.to_owned());
        }
        if let Err(why) = check_release(release) {
            let message = format!("error parsing bundle {name} release version {}: {why}", quote(release));
            self.add(on.finding("bad-release", message));
        }
        if !parsed.build.is_empty() {
            self.add(on.finding("bad-release", "cannot use build metadata in version with a release version"));
        }
        let normal = format!("{}-v{version}-{release}", self.name);
        if bundle.name != normal {
            let message = format!("name {name} does not match normalized name {}", quote(&normal));
            self.add(on.finding("bad-release", message).hint("rename the bundle, or remove its release"));
        }
        Some(format!("{version}-{release}"))
    }

    fn channels(&mut self, channels: &[Located<ChannelBlob>], bundles: &BTreeSet<&str>) {
        let mut names: BTreeMap<&str, &Place> = BTreeMap::new();
        for of in channels {
            let (on, channel) = (self.on_channel(of), &of.blob);
            let name = quote(&channel.name);
            if channel.name.is_empty() {
                let message = format!("package {} contains channel with no name", self.package);
                self.add(on.finding("no-name", message).hint("give it a name"));
            }
            if let Some(other) = names.insert(&channel.name, &of.place) {
                let message = format!("package {} has duplicate channel {name}", self.package);
                let hint = format!("merge its entries with those at {other}");
                self.add(on.finding("duplicate-channel", message).hint(hint));
                continue;
            }
            if channel.entries.is_empty() {
                let finding = on.finding("empty-channel", "channel must contain at least one bundle");
                self.add(finding.hint("add entries, or remove the channel"));
                continue;
            }
            let mut entries = BTreeSet::new();
            for entry in &channel.entries {
                if !entries.insert(&entry.name) {
                    let (package, entry) = (&self.package, quote(&entry.name));
                    let message = format!("invalid package {package}, channel {name}: duplicate entry {entry}");
                    self.add(on.finding("duplicate-entry", message).hint("merge the two entries"));
                }
                self.entry(&on, entry);
            }
            let missing: BTreeSet<&str> =
                channel.entries.iter().map(|e| e.name.as_str()).filter(|n| !bundles.contains(n)).collect();
            if !missing.is_empty() {
                let missing: Vec<&str> = missing.into_iter().collect();
                let message = format!(
                    "no olm.bundle blobs found in package {} for olm.channel entries [{}]",
                    self.package,
                    missing.join(" ")
                );
                let finding = on.finding("missing-bundle", message);
                self.add(finding.hint("add the bundles, or remove the entries"));
            }
            let nodes: Vec<Node<'_>> = channel.entries.iter().map(Node::from).collect();
            if let Err(message) = channel::check(&nodes) {
                self.add(on.finding("bad-graph", message).hint("correct replaces and skips of the entries"));
            }
        }
    }

    fn entry(&mut self, on: &On, entry: &ChannelEntry) {
        let name = quote(&entry.name);
        if let Some(at) = entry.skips.iter().position(String::is_empty) {
            self.add(on.finding("bad-edge", format!("invalid bundle {name}: skip[{at}] is empty")));
        }
        let range = &entry.skip_range;
        if let Some(e) = Range::parse(range).err().filter(|_| !range.is_empty()) {
            let message = format!("invalid bundle {name}: invalid skipRange {}: {e}", quote(range));
            self.add(on.finding("bad-edge", message).hint("write a range as \">=1.0.0 <1.2.0\""));
        }
    }

    fn deprecations(&mut self, blobs: &PackageBlobs, bundles: &BTreeSet<&str>) {
        if let [first, second, ..] = &blobs.deprecations[..] {
            let message = format!("expected a maximum of one deprecation per package: {}", self.package);
            let finding = at(&second.place).finding("duplicate-deprecations", message);
            self.add(finding.hint(format!("the other deprecation is at {}", first.place)));
        }
        let channels: BTreeSet<&str> = blobs.channels.iter().map(|c| c.blob.name.as_str()).collect();
        for of in &blobs.deprecations {
            let on = at(&of.place).about(format!("deprecations of package {}", self.package));
            let mut seen = BTreeSet::new();
            for (index, entry) in of.blob.entries.iter().enumerate() {
                let is_new = seen.insert(&entry.reference);
                if let Some(message) = self.deprecation(index, entry, is_new, &channels, bundles) {
                    self.add(on.finding("bad-deprecation", message));
                }
            }
        }
    }

    fn deprecation(
        &self,
        index: usize,
        entry: &Deprecation,
        is_new: bool,
        channels: &BTreeSet<&str>,
        bundles: &BTreeSet<&str>,
    ) -> Option<String> {
        let (package, Reference { schema, name }) = (&self.package, &entry.reference);
        let shown = || format!("declcfg.PackageScopedReference{{Schema:{}, Name:{}}}", quote(schema), quote(name));
        Some(match schema.as_str() {
            "" => format!("schema must be set for deprecation entry [{index}] for package {package}"),
            _ if !is_new => format!("duplicate deprecation entry {} for package {package}", shown()),
            "olm.bundle" if !bundles.contains(name.as_str()) => {
                format!("cannot deprecate bundle {} for package {package}: bundle not found", quote(name))
            }
            "olm.channel" if !channels.contains(name.as_str()) => {
                format!("cannot deprecate channel {} for package {package}: channel not found", quote(name))
            }
            "olm.package" if !name.is_empty() => {
                format!("package name must be empty for deprecated package {package} (specified {})", quote(name))
            }
            "olm.bundle" | "olm.channel" | "olm.package" if entry.message.is_empty() => {
                "invalid deprecation: message must be set".to_owned()
            }
            "olm.bundle" | "olm.channel" | "olm.package" => return None,
            _ => format!(
                "cannot deprecate object {} referenced by entry {{{{{schema} {name}}} {}}} for package {package}: object schema unknown",
                shown(),
                entry.message
            ),
        })
    }
}

/// Checks a release: a pre-release of at most 20 characters.
fn check_release(release: &str) -> Result<(), String> {
    const LONGEST: usize = 20;
    if release.len() > LONGEST {
        return Err(format!("invalid release {}: exceeds max length {LONGEST}", quote(release)));
    }
    version::parse(&format!("0.0.0-{release}")).map(drop).map_err(|e| e.to_string())
}

/// Returns why a name is not a DNS label.
fn bad_label(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST_LABEL {
        Some("must be no more than 63 characters")
    } else if !is_label(name) {
        Some(LABEL_RULE)
    } else {
        None
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 { f.write_str(&self.file) } else { write!(f, "{}:{}", self.file, self.line) }
    }
}
