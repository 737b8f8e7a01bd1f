//! `kubectl olm catalog list`: the packages, channels and versions of a catalog.

use olm_core::catalog::{Channel, Entry as ChannelEntry, Loaded, Package, graph};
use serde_json::{Value, json};

use super::source::{OpenCatalog, Ref};
use crate::cli::list::{Column, Entry, ListFlags, Listing};
use crate::cli::output::API_VERSION;
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// What to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// Catalogs, merged into one.
    pub refs: Vec<Ref>,
    /// Packages whose channels are listed; empty lists all packages.
    pub packages: Vec<String>,
    /// How images are pulled.
    pub images: image::Options,
    /// Whether to list every version instead of packages or channels.
    pub versions: bool,
    /// The selection and the output format.
    pub list: ListFlags,
}

/// Prints the list. The outcome is negative if a named package does not exist.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    options.list.refuse_to_watch("the content of a catalog")?;
    let loaded = OpenCatalog::read(&options.refs, &options.images, printer)?;
    let load = &loaded.load;
    let mut found = Vec::new();
    let mut outcome = Outcome::Done;
    for name in &options.packages {
        match loaded.package(name, printer) {
            Some(package) => found.push(package),
            None => outcome = Outcome::Negative,
        }
    }
    if found.is_empty() && outcome == Outcome::Negative && options.list.wants_table() {
        return Ok(outcome);
    }
    if options.packages.is_empty() {
        found.extend(load.snapshot.packages().values());
    }
    if let ([_], false) = (&options.packages[..], options.list.wants_rows()) {
        for package in found {
            options.list.output.output.object(printer, &with_kind(document(package)), || Table::new([]))?;
        }
        return Ok(outcome);
    }
    let listing = if options.list.wants_rows() && options.versions {
        versions(&found)
    } else if options.list.wants_rows() && !options.packages.is_empty() && !options.list.wants_names() {
        channels(&found)
    } else {
        packages(load, &found)
    };
    let mut listing = listing.arranged(&options.list)?;
    if options.list.wants_names() && options.list.sort_by.is_none() {
        listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
    }
    listing.print(&options.list, printer)?;
    Ok(outcome)
}

fn head<'a>(package: &'a Package, channel: &str) -> Option<&'a ChannelEntry> {
    let channel = package.channel(channel)?;
    channel.entry(&channel.head)
}

fn some(deprecation: Option<&String>) -> &str {
    deprecation.map_or("", String::as_str)
}

fn packages(load: &Loaded, packages: &[&Package]) -> Listing {
    let narrow = ["NAME", "DEFAULT CHANNEL", "VERSION", "CHANNELS"].map(Column::new);
    let wide = ["BUNDLES", "DEPRECATED"].map(Column::wide);
    let entries = packages.iter().map(|package| {
        let version = head(package, &package.default_channel).map_or("", |e| &e.version_text);
        let bundles: std::collections::BTreeSet<&str> = package.entries().map(|e| e.name.as_str()).collect();
        let cells = vec![
            package.name.clone(),
            package.default_channel.clone(),
            version.to_owned(),
            package.channels.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(","),
            bundles.len().to_string(),
            some(package.deprecation.as_ref()).to_owned(),
        ];
        Entry { object: document(package), cells, name: format!("package/{}", package.name) }
    });
    Listing {
        columns: narrow.into_iter().chain(wide).collect(),
        entries: entries.collect(),
        document: json!({ "apiVersion": API_VERSION, "kind": "PackageList", "invalidPackages": load.invalid_packages }),
    }
}

/// Returns a listing of channels or versions. These are only in tables; data contains them in their packages.
fn rows(columns: Vec<Column>, entries: Vec<Entry>) -> Listing {
    Listing { columns, entries, document: json!({}) }
}

fn channels(packages: &[&Package]) -> Listing {
    let narrow = ["PACKAGE", "CHANNEL", "HEAD", "VERSION", "ENTRIES"].map(Column::new);
    let wide = ["DEFAULT", "DEPRECATED"].map(Column::wide);
    let mut entries = Vec::new();
    for package in packages {
        for channel in &package.channels {
            let version = channel.entry(&channel.head).map_or("", |e| &e.version_text);
            let is_default = channel.name == package.default_channel;
            let cells = vec![
                package.name.clone(),
                channel.name.clone(),
                channel.head.clone(),
                version.to_owned(),
                channel.entries.len().to_string(),
                if is_default { "yes" } else { "" }.to_owned(),
                some(channel.deprecation.as_ref()).to_owned(),
            ];
            let mut object = of_channel(channel);
            object["package"] = package.name.as_str().into();
            entries.push(Entry { object, cells, name: format!("package/{}", package.name) });
        }
    }
    rows(narrow.into_iter().chain(wide).collect(), entries)
}

/// Returns the entries, newest first, those without a version last.
fn newest_first(channel: &Channel) -> Vec<&ChannelEntry> {
    let mut entries: Vec<&ChannelEntry> = channel.entries.iter().collect();
    entries.sort_by(|a, b| graph::newest_first(a, b));
    entries
}

fn versions(packages: &[&Package]) -> Listing {
    let narrow = ["PACKAGE", "CHANNEL", "VERSION", "BUNDLE", "REPLACES"].map(Column::new);
    let wide = ["SKIPS", "SKIP RANGE", "IMAGE", "DEPRECATED"].map(Column::wide);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut entries = Vec::new();
    for entry in packages.iter().flat_map(|p| &p.channels).flat_map(newest_first) {
        let cells = vec![
            entry.package.clone(),
            entry.channel.clone(),
            entry.version_text.clone(),
            entry.name.clone(),
            text(&entry.replaces),
            entry.skips.join(","),
            text(&entry.skip_range),
            entry.bundle_path.clone(),
            text(&entry.deprecation),
        ];
        let mut object = of_entry(entry);
        object["package"] = entry.package.as_str().into();
        object["channel"] = entry.channel.as_str().into();
        entries.push(Entry { object, cells, name: format!("bundle/{}", entry.name) });
    }
    rows(narrow.into_iter().chain(wide).collect(), entries)
}

fn of_entry(e: &ChannelEntry) -> Value {
    without_empty(json!({
        "name": e.name, "version": e.version_text, "replaces": e.replaces, "skips": e.skips,
        "skipRange": e.skip_range, "image": e.bundle_path, "deprecation": e.deprecation,
    }))
}

fn of_channel(c: &Channel) -> Value {
    let entries: Vec<Value> = newest_first(c).into_iter().map(of_entry).collect();
    without_empty(json!({"name": c.name, "head": c.head, "deprecation": c.deprecation, "entries": entries}))
}

/// Returns a package as data.
fn document(p: &Package) -> Value {
    let channels: Vec<Value> = p.channels.iter().map(of_channel).collect();
    without_empty(json!({
        "name": p.name, "defaultChannel": p.default_channel, "deprecation": p.deprecation, "channels": channels,
    }))
}

/// Returns a named package as a document.
fn with_kind(package: Value) -> Value {
    let mut document = json!({ "apiVersion": API_VERSION, "kind": "Package" });
    if let (Some(document), Value::Object(package)) = (document.as_object_mut(), package) {
        document.extend(package);
    }
    document
}

fn without_empty(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, v| !(v.is_null() || v == "" || v.as_array().is_some_and(Vec::is_empty)));
    }
    value
}
