//! Filters a catalog by package, channel and version. The result is a valid catalog: edges and default channels are adapted
//! to the remaining bundles, and dependencies can be included.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::blob::{self, BundleBlob, ChannelBlob, ChannelEntry};
use super::channel::{self, Node};
use super::index::{CatalogIndex, Located, PackageBlobs};
use super::property;
use crate::api::object::{Gvk, text};
use crate::finding::Finding;
use crate::go_format::quote;
use crate::version::{self, Range, Version};

/// The part of a catalog to select. An empty list selects everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Packages.
    pub packages: Vec<String>,
    /// Channels, in every package that has a channel of that name.
    pub channels: Vec<String>,
    /// Versions.
    pub versions: Option<Range>,
    /// Whether to include whole packages that the selected bundles depend on.
    pub closure: bool,
}

/// The selected part of a package.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    default_channel: String,
    /// Entries of the selected channels.
    channels: BTreeMap<String, Vec<ChannelEntry>>,
    bundles: BTreeSet<String>,
}

impl Filter {
    /// Returns whether the filter selects everything.
    pub fn is_all(&self) -> bool {
        self.packages.is_empty() && self.channels.is_empty() && self.versions.is_none()
    }
}

impl CatalogIndex {
    /// Reduces the catalog to what the filter selects. Returns findings for what does not exist and for what had to change
    /// to keep the catalog valid.
    pub fn filter(&mut self, filter: &Filter) -> Vec<Finding> {
        let mut findings = Vec::new();
        if filter.is_all() {
            return findings;
        }
        for name in filter.packages.iter().filter(|name| !self.packages.contains_key(*name)) {
            let known = self.packages.keys().filter(|k| !k.is_empty()).take(10).cloned().collect::<Vec<_>>().join(", ");
            let finding = Finding::new("unknown-package", format!("the catalog has no package {}", quote(name)));
            findings.push(finding.hint(format!("known packages: {known}")));
        }
        let mut chosen: BTreeMap<String, Option<Chosen>> = BTreeMap::new();
        for (name, blobs) in &self.packages {
            if name.is_empty() || !(filter.packages.is_empty() || filter.packages.contains(name)) {
                continue;
            }
            if let Some(part) = blobs.choose(filter, &mut findings) {
                chosen.insert(name.clone(), Some(part));
            } else if !filter.packages.is_empty() {
                let message = "no bundle of the package matches the selected channels and versions";
                findings.push(Finding::new("nothing-left", message).about(format!("package {}", quote(name))));
            }
        }
        if filter.closure {
            self.close(&mut chosen, &mut findings);
        }
        self.packages.retain(|name, _| chosen.contains_key(name));
        for (name, part) in chosen {
            if let (Some(blobs), Some(part)) = (self.packages.get_mut(&name), part) {
                blobs.reduce(part);
            }
        }
        findings
    }

    /// Adds the whole packages that the selected bundles depend on, transitively.
    fn close(&self, chosen: &mut BTreeMap<String, Option<Chosen>>, findings: &mut Vec<Finding>) {
        let mut todo: Vec<String> = chosen.keys().cloned().collect();
        let mut missing = BTreeSet::new();
        while let Some(name) = todo.pop() {
            let Some(blobs) = self.packages.get(&name) else { continue };
            let part = chosen.get(&name).and_then(Option::as_ref);
            let is_chosen = |of: &&Located<BundleBlob>| part.is_none_or(|p| p.bundles.contains(&of.blob.name));
            let requirements: BTreeSet<Need> =
                blobs.bundles.iter().filter(is_chosen).flat_map(|of| needs(&of.blob)).collect();
            for need in requirements {
                let found = self.providers(&need);
                if found.is_empty() && missing.insert(need.clone()) {
                    let finding = Finding::new("missing-dependency", format!("nothing in the catalog provides {need}"));
                    findings.push(finding.warning().about(format!("package {}", quote(&name))));
                }
                for provider in found {
                    if !chosen.contains_key(&provider) {
                        chosen.insert(provider.clone(), None);
                        todo.push(provider);
                    }
                }
            }
        }
    }

    /// Returns the packages that satisfy a dependency.
    fn providers(&self, need: &Need) -> Vec<String> {
        match need {
            Need::Package(name) => {
                self.packages.get_key_value(name).map(|(name, _)| name.clone()).into_iter().collect()
            }
            Need::Api(api) => {
                let provides =
                    |of: &Located<BundleBlob>| property::apis(&of.blob.properties, property::GVK).contains(api);
                let of = self.packages.iter().filter(|(_, blobs)| blobs.bundles.iter().any(provides));
                of.map(|(name, _)| name.clone()).collect()
            }
        }
    }
}

/// What a bundle requires of other packages: a dependency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Package(String),
    Api(Gvk),
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Package(name) => write!(f, "the package {}", quote(name)),
            Self::Api(Gvk { group, version, kind }) => write!(f, "{kind} of {group}/{version}"),
        }
    }
}

fn needs(bundle: &BundleBlob) -> Vec<Need> {
    let packages = bundle.properties.iter().filter(|p| p.type_ == property::PACKAGE_REQUIRED);
    let packages = packages.map(|p| Need::Package(text(&p.value, &["packageName"]).to_owned()));
    packages.chain(property::apis(&bundle.properties, property::GVK_REQUIRED).into_iter().map(Need::Api)).collect()
}

impl PackageBlobs {
    fn choose(&self, filter: &Filter, findings: &mut Vec<Finding>) -> Option<Chosen> {
        let package = &self.packages.first()?.blob;
        let versions: BTreeMap<&str, Version> = self
            .bundles
            .iter()
            .filter_map(|of| {
                Some((of.blob.name.as_str(), version::parse_tolerant(blob::version(&of.blob.properties)).ok()?))
            })
            .collect();
        let is_wanted = |name: &str| match &filter.versions {
            Some(range) => versions.get(name).is_some_and(|version| range.contains(version)),
            None => true,
        };
        let mut chosen = Chosen { default_channel: package.default_channel.clone(), ..Chosen::default() };
        for Located { blob: channel, .. } in &self.channels {
            if !(filter.channels.is_empty() || filter.channels.contains(&channel.name)) {
                continue;
            }
            let entries = bridge(&channel.entries, is_wanted);
            if entries.is_empty() {
                continue;
            }
            let nodes: Vec<Node<'_>> = entries.iter().map(Node::from).collect();
            if let Err(message) = channel::check(&nodes) {
                let subject = format!("channel {} of package {}", quote(&channel.name), quote(&package.name));
                let hint = "widen the range of versions";
                findings.push(
                    Finding::new("bad-graph", format!("the filtered channel is invalid: {message}"))
                        .about(subject)
                        .hint(hint),
                );
            }
            chosen.bundles.extend(entries.iter().map(|e| e.name.clone()));
            chosen.channels.insert(channel.name.clone(), entries);
        }
        if !chosen.channels.contains_key(&chosen.default_channel) {
            let newest = |entries: &Vec<ChannelEntry>| {
                entries.iter().filter_map(|e| versions.get(e.name.as_str())).max().cloned()
            };
            let (best, _) = chosen.channels.iter().max_by_key(|(_, entries)| newest(entries))?;
            let message = format!(
                "the default channel {} is filtered out; the default channel is now {}",
                quote(&chosen.default_channel),
                quote(best)
            );
            let subject = format!("package {}", quote(&package.name));
            findings.push(Finding::new("other-default-channel", message).warning().about(subject));
            chosen.default_channel = best.clone();
        }
        Some(chosen)
    }

    /// Removes everything that was not selected.
    fn reduce(&mut self, chosen: Chosen) {
        let Chosen { default_channel, mut channels, bundles } = chosen;
        for of in &mut self.packages {
            of.blob.default_channel.clone_from(&default_channel);
        }
        self.channels.retain(|of| channels.contains_key(&of.blob.name));
        for of in &mut self.channels {
            of.blob.entries = channels.remove(&of.blob.name).unwrap_or_default();
        }
        self.bundles.retain(|of| bundles.contains(&of.blob.name));
        let names: BTreeSet<&str> = self.channels.iter().map(|of| of.blob.name.as_str()).collect();
        for of in &mut self.deprecations {
            of.blob.entries.retain(|entry| match entry.reference.schema.as_str() {
                "olm.channel" => names.contains(entry.reference.name.as_str()),
                "olm.bundle" => bundles.contains(&entry.reference.name),
                _ => true,
            });
        }
        self.is_reduced = true;
    }
}

/// Returns the selected entries. An entry that replaced a removed entry replaces what the removed entry replaced, and skips
/// the removed entry, so that an installed version still has an update.
fn bridge(entries: &[ChannelEntry], is_wanted: impl Fn(&str) -> bool) -> Vec<ChannelEntry> {
    let by_name: BTreeMap<&str, &ChannelEntry> = entries.iter().map(|e| (e.name.as_str(), e)).collect();
    let mut kept = Vec::new();
    for entry in entries.iter().filter(|e| is_wanted(&e.name)) {
        let mut entry = entry.clone();
        let mut seen = BTreeSet::new();
        while let Some(unwanted) = by_name.get(entry.replaces.as_str()).filter(|e| !is_wanted(&e.name)) {
            if !seen.insert(unwanted.name.as_str()) {
                break;
            }
            if !entry.skips.contains(&unwanted.name) {
                entry.skips.push(unwanted.name.clone());
            }
            entry.replaces.clone_from(&unwanted.replaces);
        }
        kept.push(entry);
    }
    kept
}

/// A blob of a package or channel with the changes of a filter.
pub(super) trait Reduced {
    /// Applies the changes to the blob.
    fn apply(&self, blob: &mut Value);
}

impl Reduced for super::blob::PackageBlob {
    fn apply(&self, blob: &mut Value) {
        set(blob, "defaultChannel", self.default_channel.clone().into());
    }
}

impl Reduced for ChannelBlob {
    fn apply(&self, blob: &mut Value) {
        set(blob, "entries", self.entries.iter().map(ChannelEntry::to_value).collect());
    }
}

impl Reduced for super::blob::DeprecationsBlob {
    fn apply(&self, blob: &mut Value) {
        let entry = |entry: &super::blob::Deprecation| {
            let mut reference = serde_json::json!({"schema": entry.reference.schema});
            if !entry.reference.name.is_empty() {
                reference["name"] = entry.reference.name.as_str().into();
            }
            serde_json::json!({"reference": reference, "message": entry.message})
        };
        set(blob, "entries", self.entries.iter().map(entry).collect());
    }
}

/// Sets a field whose name may be written in another case.
fn set(blob: &mut Value, key: &str, value: Value) {
    if let Some(fields) = blob.as_object_mut() {
        fields.retain(|k, _| !k.eq_ignore_ascii_case(key));
        fields.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CATALOG, load_text};
    use super::super::{File, MigrationLevel, index_files};
    use super::*;

    fn entry(name: &str, replaces: &str, skips: &[&str]) -> ChannelEntry {
        let skips = skips.iter().map(|s| (*s).to_owned()).collect();
        ChannelEntry { name: name.to_owned(), replaces: replaces.to_owned(), skips, skip_range: String::new() }
    }

    #[test]
    fn an_entry_replaces_what_a_removed_entry_replaced() {
        let chain = [entry("a", "", &[]), entry("b", "a", &[]), entry("c", "b", &["x"]), entry("d", "c", &[])];
        let shown = |entries: Vec<ChannelEntry>| {
            entries.into_iter().map(|e| format!("{}>{} {}", e.name, e.replaces, e.skips.join(","))).collect::<Vec<_>>()
        };
        assert_eq!(shown(bridge(&chain, |n| n == "a" || n == "d")), ["a> ", "d>a c,b"]);
        assert_eq!(shown(bridge(&chain, |n| n == "c" || n == "d")), ["c> x,b,a", "d>c "]);
        let cycle = [entry("a", "b", &[]), entry("b", "c", &[]), entry("c", "b", &[])];
        assert_eq!(shown(bridge(&cycle, |n| n == "a")), ["a>b b,c"]);
    }

    fn filtered(filter: &Filter) -> (String, Vec<&'static str>) {
        let pot = "---\nschema: olm.package\nname: pot\ndefaultChannel: c\n---\n\
                   {schema: olm.channel, package: pot, name: c, entries: [{name: pot.v1}]}\n---\n\
                   {schema: olm.bundle, package: pot, name: pot.v1, image: i, properties: [\
                   {type: olm.package, value: {packageName: pot, version: 1.0.0}}, \
                   {type: olm.gvk, value: {group: garden.example.com, kind: Pot, version: v1}}]}\n";
        let mut catalog = index_files(&[File::new("c.yaml", format!("{CATALOG}{pot}").as_bytes())]);
        let findings = catalog.filter(filter);
        let blobs: Result<Vec<_>, _> = catalog.blobs(MigrationLevel::None).collect();
        let text = blobs.unwrap().iter().map(|m| serde_json::to_string(m).unwrap() + "\n").collect();
        (text, findings.iter().map(|f| f.code).collect())
    }

    #[test]
    fn a_filtered_catalog_is_a_catalog() {
        let fast = Filter { channels: vec!["fast".into()], packages: vec!["rose".into()], ..Filter::default() };
        let (text, told) = filtered(&fast);
        assert_eq!(told, ["other-default-channel"]);
        let load = load_text(&text);
        assert_eq!(load.findings, []);
        assert_eq!(load.snapshot.package("rose").unwrap().default_channel, "fast");
        assert!(!text.contains("thorns") && text.contains("too fast") && text.contains("note"), "{text}");

        let range = Some(Range::parse("<2.0.0").unwrap());
        let old = Filter {
            versions: range,
            packages: vec!["rose".into(), "lily".into()],
            closure: true,
            ..Filter::default()
        };
        let (text, told) = filtered(&old);
        assert_eq!(told, ["unknown-package"]);
        let load = load_text(&text);
        assert_eq!(load.findings, []);
        let names: Vec<_> = load.snapshot.entries().map(|e| format!("{} {}", e.channel, e.name)).collect();
        assert_eq!(names, ["c pot.v1", "stable rose.v1.0.0"]);
    }
}
