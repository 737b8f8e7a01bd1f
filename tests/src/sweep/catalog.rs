//! The bundles of a folder as catalogs: packages, channels and edges as the bundles define them.
//!
//! A channel whose bundles leave several heads is sorted by the names of the bundles, as in the catalog of the recording. For
//! upgrades there is a catalog per package in which every bundle has its own channel, so that a Subscription follows only one
//! edge.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use olm_core::api::object::{self, text};
use olm_core::bundle;
use olm_core::catalog::{File, Loaded, Snapshot};
use olm_core::finding::{Finding, Severity};
use olm_core::version::{Range, Version, parse_tolerant};
use olm_shell::registry::dir;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::case::{ALONE, CATALOG, Case, Target};
use super::each;
use crate::data::files;

/// Folders of small bundles from OLM's own tests, whose packages share names with real ones.
const FIXTURES: &str = "fixtures-";

/// The metadata of a bundle.
pub struct Bundle {
    /// Package.
    pub package: String,
    /// Name of its CSV.
    pub name: String,
    version: Option<Version>,
    replaces: String,
    skips: Vec<String>,
    skip_range: String,
    channels: Vec<String>,
    default_channel: String,
    /// The install modes that it supports.
    modes: BTreeSet<String>,
    /// Its `olm.bundle` blob.
    blob: Value,
}

/// The targets of an OperatorGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Its own namespace.
    Own,
    /// One other namespace.
    Other,
    /// All namespaces.
    All,
}

/// The field by which one version upgrades another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// `spec.replaces`.
    Replaces,
    /// `spec.skips`.
    Skips,
    /// The annotation `olm.skipRange`.
    SkipRange,
}

impl By {
    /// Returns its name in bundles.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replaces => "replaces",
            Self::Skips => "skips",
            Self::SkipRange => "skipRange",
        }
    }
}

/// The head of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The bundle.
    pub bundle: usize,
    /// The first of its channels by name, with the default channel before all others.
    pub channel: &'a str,
}

/// An upgrade from one bundle to another of the package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The older bundle.
    pub from: usize,
    /// The newer one.
    pub to: usize,
    /// The field that defines it.
    pub by: By,
}

/// The bundles of a folder, by package and name.
pub struct Bundles {
    all: Vec<Bundle>,
    /// Why some bundles cannot be in a catalog.
    pub left_out: Vec<String>,
}

impl Bundles {
    /// Reads all bundles below a folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let annotations = files(folder).into_iter().filter(|file| file.ends_with("metadata/annotations.yaml"));
        let folders: Vec<_> = annotations.filter_map(|file| Some(file.ancestors().nth(2)?.to_owned())).collect();
        let is_fixture = |path: &Path| {
            let within = path.strip_prefix(folder).unwrap_or(path);
            within.to_string_lossy().starts_with(FIXTURES)
        };
        let folders: Vec<_> = folders.into_iter().filter(|path| !is_fixture(path)).collect();
        let mut bundles = Self { all: vec![], left_out: vec![] };
        for (path, read) in folders.iter().zip(each(&folders, |path| Bundle::read(path))) {
            match read? {
                Ok(bundle) => bundles.all.push(bundle),
                Err(why) => bundles.left_out.push(format!("{}: {why}", path.strip_prefix(folder)?.display())),
            }
        }
        bundles.all.sort_by(|a, b| (&a.package, &a.name).cmp(&(&b.package, &b.name)));
        Ok(bundles)
    }

    /// Returns a bundle by its index.
    pub fn get(&self, bundle: usize) -> &Bundle {
        &self.all[bundle]
    }

    /// Returns the heads of all channels, by package and name.
    pub fn heads(&self) -> Vec<Head<'_>> {
        let mut heads: BTreeMap<usize, (bool, &str)> = BTreeMap::new();
        for package in self.packages() {
            let default = self.default_channel(package);
            for channel in self.channels(package) {
                if let Some(&head) = self.members(package, channel).0.last() {
                    let best = heads.entry(head).or_insert((channel != default, channel));
                    *best = (*best).min((channel != default, channel));
                }
            }
        }
        heads.into_iter().map(|(bundle, (_, channel))| Head { bundle, channel }).collect()
    }

    /// Returns the upgrades that bundles define, by package and name.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, old) in self.all.iter().enumerate() {
            let newer = self.all.iter().enumerate().filter(|(to, new)| *to != from && new.package == old.package);
            edges.extend(newer.filter_map(|(to, new)| Some(Edge { from, to, by: new.upgrades(old)? })));
        }
        edges
    }

    /// Returns the scope of the OperatorGroup for that bundle: its own namespace if supported, else one other, else all.
    pub fn scope(&self, bundle: usize) -> Scope {
        let has = |mode: &str| self.all[bundle].modes.contains(mode);
        match (has("OwnNamespace"), has("SingleNamespace")) {
            (true, _) => Scope::Own,
            (false, true) => Scope::Other,
            (false, false) => Scope::All,
        }
    }

    /// Returns the install of the head with that name.
    pub fn install(&self, package: &str, head: &str) -> Option<Case> {
        let heads = self.heads();
        let is_it = |head_of: &&Head<'_>| {
            (&*self.get(head_of.bundle).package, &*self.get(head_of.bundle).name) == (package, head)
        };
        heads.iter().find(is_it).map(|head| self.head(head))
    }

    /// Returns the install of a head.
    pub fn head(&self, head: &Head<'_>) -> Case {
        self.case(head.bundle, head.channel)
    }

    /// Returns the upgrade along an edge, from one channel of [`Bundles::alone`] to another.
    pub fn upgrade(&self, edge: Edge) -> Case {
        let to = self.all[edge.to].name.clone();
        let upgrade = Some(Target { channel: to.clone(), csv: to });
        Case { upgrade, catalog: ALONE, ..self.case(edge.from, &self.all[edge.from].name) }
    }

    fn case(&self, bundle: usize, channel: &str) -> Case {
        let Bundle { package, name, .. } = &self.all[bundle];
        Case {
            namespace: "swept".to_owned(),
            package: package.clone(),
            scope: self.scope(bundle),
            install: Target { channel: channel.to_owned(), csv: name.clone() },
            upgrade: None,
            catalog: CATALOG,
        }
    }

    /// Returns the catalog of a directory.
    pub fn served(folder: &Path) -> Result<Served> {
        let blobs: Vec<String> = files(folder).iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
        Served::of_files(&blobs, "yaml", "\n---\n")
    }

    /// Returns the catalog of all packages.
    pub fn catalog(&self) -> Result<Served> {
        let mut blobs: Vec<String> = self.all.iter().map(|bundle| bundle.blob.to_string()).collect();
        for package in self.packages() {
            blobs.push(self.package_blob(package));
            for channel in self.channels(package) {
                blobs.push(channel_blob(package, channel, self.channel_entries(package, channel)));
            }
        }
        Served::start(&blobs)
    }

    /// Returns the catalog of one package in which every bundle has its own channel with its name.
    pub fn alone(&self, package: &str) -> Result<Served> {
        let mut blobs = vec![json!({"schema": "olm.package", "name": package}).to_string()];
        for (_, bundle) in self.bundles_of(package) {
            blobs.push(bundle.blob.to_string());
            blobs.push(channel_blob(package, &bundle.name, vec![bundle.entry()]));
            // Any of them would do.
            blobs[0] = json!({"schema": "olm.package", "name": package, "defaultChannel": bundle.name}).to_string();
        }
        Served::start(&blobs)
    }

    fn package_blob(&self, package: &str) -> String {
        let default = self.default_channel(package);
        json!({"schema": "olm.package", "name": package, "defaultChannel": default}).to_string()
    }

    fn packages(&self) -> BTreeSet<&str> {
        self.all.iter().map(|bundle| bundle.package.as_str()).collect()
    }

    /// Returns the bundles of a package, with their indices.
    fn bundles_of(&self, package: &str) -> impl Iterator<Item = (usize, &Bundle)> {
        self.all.iter().enumerate().filter(move |(_, bundle)| bundle.package == package)
    }

    fn channels(&self, package: &str) -> BTreeSet<&str> {
        self.bundles_of(package).flat_map(|(_, bundle)| &bundle.channels).map(String::as_str).collect()
    }

    /// Returns the default channel of the newest bundle that names one, if that channel exists.
    fn default_channel(&self, package: &str) -> &str {
        let channels = self.channels(package);
        let named = self.bundles_of(package).filter(|(_, bundle)| channels.contains(bundle.default_channel.as_str()));
        let newest = named.max_by(|(_, a), (_, b)| (&a.version, &a.name).cmp(&(&b.version, &b.name)));
        let named = newest.map(|(_, bundle)| bundle.default_channel.as_str());
        named.or_else(|| channels.first().copied()).unwrap_or_default()
    }

    /// Returns the bundles of a channel by name, the head last.
    fn members(&self, package: &str, channel: &str) -> (Vec<usize>, bool) {
        let within = |bundle: &Bundle| bundle.channels.iter().any(|name| name == channel);
        let members: Vec<usize> =
            self.bundles_of(package).filter(|(_, b)| within(b)).map(|(number, _)| number).collect();
        let is_replaced = |name: &str| members.iter().any(|&other| self.all[other].names(name));
        let heads: Vec<usize> = members.iter().copied().filter(|&n| !is_replaced(&self.all[n].name)).collect();
        match heads[..] {
            [head] => (members.iter().copied().filter(|&n| n != head).chain([head]).collect(), false),
            _ => (members, true),
        }
    }

    fn channel_entries(&self, package: &str, channel: &str) -> Vec<Value> {
        let (members, in_order) = self.members(package, channel);
        let mut before = None;
        let entry = |&number: &usize| {
            let bundle = &self.all[number];
            let mut entry = bundle.entry();
            if in_order {
                entry["replaces"] = json!(before.replace(&bundle.name));
                entry["skips"] = json!([]);
            }
            entry
        };
        members.iter().map(entry).collect()
    }
}

/// A catalog that can be served.
pub struct Served {
    /// Its content.
    pub snapshot: Snapshot,
    /// Why packages are excluded.
    pub left_out: Vec<String>,
    /// The folder from which its bundles' objects are read again.
    _folder: TempDir,
}

impl Served {
    fn start(blobs: &[String]) -> Result<Self> {
        Self::of_files(blobs, "json", "\n")
    }

    fn of_files(blobs: &[String], extension: &str, separator: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join(format!("catalog.{extension}")), blobs.join(separator))?;
        let Loaded { snapshot, findings, .. } = dir::load(folder.path()).map_err(|error| anyhow!("{error:?}"))?;
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        Ok(Self { snapshot, left_out: errors.map(ToString::to_string).collect(), _folder: folder })
    }
}

fn channel_blob(package: &str, channel: &str, entries: Vec<Value>) -> String {
    json!({"schema": "olm.channel", "package": package, "name": channel, "entries": entries}).to_string()
}

impl Bundle {
    /// Reads a bundle's folder. The inner error explains why no catalog can contain it.
    fn read(folder: &Path) -> Result<Result<Self, Finding>> {
        let shown = folder.to_string_lossy();
        let mut contents = Vec::new();
        for path in ["manifests", "metadata"].iter().flat_map(|half| files(&folder.join(half))) {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            contents.push(File::new(path.to_string_lossy(), bytes));
        }
        let read = bundle::Bundle::read(&shown, &contents);
        Ok(read.and_then(|bundle| Ok(Self::from_bundle(&bundle, bundle.render()?.blob("")))))
    }

    fn from_bundle(bundle: &bundle::Bundle, blob: Value) -> Self {
        let spec = |field: &str| object::list(&bundle.csv, &["spec", field]);
        let supported = spec("installModes").iter().filter(|mode| mode["supported"] == true);
        Self {
            package: bundle.package().to_owned(),
            name: bundle.name().to_owned(),
            version: parse_tolerant(bundle.version()).ok(),
            replaces: text(&bundle.csv, &["spec", "replaces"]).to_owned(),
            skips: spec("skips").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            // opm accepts no catalog with an invalid range.
            skip_range: Some(bundle.skip_range())
                .filter(|range| Range::parse(range).is_ok())
                .unwrap_or_default()
                .to_owned(),
            channels: bundle.channels().into_iter().map(str::to_owned).collect(),
            default_channel: bundle.default_channel().to_owned(),
            modes: supported.map(|mode| text(mode, &["type"]).to_owned()).collect(),
            blob,
        }
    }

    /// Returns its channel entry.
    fn entry(&self) -> Value {
        let mut entry = json!({"name": self.name, "skips": self.skips});
        for (field, value) in [("replaces", &self.replaces), ("skipRange", &self.skip_range)] {
            if !value.is_empty() {
                entry[field] = json!(value);
            }
        }
        entry
    }

    /// Returns whether it replaces or skips the bundle with that name.
    fn names(&self, other: &str) -> bool {
        self.replaces == other || self.skips.iter().any(|skipped| skipped == other)
    }

    /// Returns how it upgrades another bundle, if it does.
    fn upgrades(&self, old: &Self) -> Option<By> {
        let in_range = |version| Range::parse(&self.skip_range).is_ok_and(|range| range.contains(version));
        if self.replaces == old.name {
            Some(By::Replaces)
        } else if self.skips.contains(&old.name) {
            Some(By::Skips)
        } else {
            old.version.as_ref().is_some_and(in_range).then_some(By::SkipRange)
        }
    }
}
