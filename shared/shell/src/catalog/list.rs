//! `kubectl olm catalog list`: packages, channels and versions to choose from.

use olm_core::catalog::{Channel, Entry, Load, Package, graph};
use serde_json::{Value, json};

use super::source::{Loaded, Ref};
use crate::cli::output::{API_VERSION, Output};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// What to list.
#[derive(Clone, Debug)]
pub struct Options {
    /// Catalogs, taken together as one.
    pub refs: Vec<Ref>,
    /// Packages whose channels are listed; none for all packages.
    pub packages: Vec<String>,
    /// Every version instead of packages or channels?
    pub versions: bool,
    /// The form of the answer.
    pub output: Output,
}

/// Lists. The answer is no when a package that was asked for is not there.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let loaded = Loaded::read(&options.refs, &image::Options::of_user(), printer)?;
    let load = &loaded.load;
    let mut found = Vec::new();
    let mut outcome = Outcome::Done;
    for name in &options.packages {
        match loaded.package(name, printer) {
            Some(package) => found.push(package),
            None => outcome = Outcome::Negative,
        }
    }
    if options.packages.is_empty() {
        found.extend(load.snapshot.packages().values());
    }
    let is_wide = options.output.is_wide();
    match &options.output {
        Output::Table | Output::Wide if options.versions => printer.data(versions(&found, is_wide))?,
        Output::Table | Output::Wide if options.packages.is_empty() => printer.data(packages(&found, is_wide))?,
        Output::Table | Output::Wide => printer.data(channels(&found, is_wide))?,
        Output::Name if options.versions => {
            let entries = found.iter().flat_map(|p| p.entries());
            let names: std::collections::BTreeSet<&str> = entries.map(|e| e.name.as_str()).collect();
            names.iter().try_for_each(|name| printer.line(format_args!("bundle/{name}")))?;
        }
        Output::Name => found.iter().try_for_each(|p| printer.line(format_args!("package/{}", p.name)))?,
        Output::Json | Output::Yaml | Output::JsonPath(_) => {
            let document = match (&options.packages[..], &found[..]) {
                ([_], [package]) => with_kind(package_document(package)),
                ([_], _) => return Ok(outcome),
                _ => list_document(load, &found),
            };
            options.output.object(printer, &document, || Table::new([]))?;
        }
    }
    Ok(outcome)
}

fn head<'a>(package: &'a Package, channel: &str) -> Option<&'a Entry> {
    let channel = package.channel(channel)?;
    channel.entry(&channel.head)
}

fn some(deprecation: Option<&String>) -> &str {
    deprecation.map_or("", String::as_str)
}

fn packages(packages: &[&Package], is_wide: bool) -> Table {
    let narrow = ["NAME", "DEFAULT CHANNEL", "VERSION", "CHANNELS"];
    let mut table =
        Table::new(narrow.into_iter().chain(is_wide.then_some(["BUNDLES", "DEPRECATED"]).into_iter().flatten()));
    for package in packages {
        let version = head(package, &package.default_channel).map_or("", |e| &e.version_text);
        let mut row = vec![
            package.name.clone(),
            package.default_channel.clone(),
            version.to_owned(),
            package.channels.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(","),
        ];
        if is_wide {
            let bundles: std::collections::BTreeSet<&str> = package.entries().map(|e| e.name.as_str()).collect();
            row.extend([bundles.len().to_string(), some(package.deprecation.as_ref()).to_owned()]);
        }
        table.row(row);
    }
    table
}

fn channels(packages: &[&Package], is_wide: bool) -> Table {
    let narrow = ["PACKAGE", "CHANNEL", "HEAD", "VERSION", "ENTRIES"];
    let mut table =
        Table::new(narrow.into_iter().chain(is_wide.then_some(["DEFAULT", "DEPRECATED"]).into_iter().flatten()));
    for package in packages {
        for channel in &package.channels {
            let version = channel.entry(&channel.head).map_or("", |e| &e.version_text);
            let mut row = vec![
                package.name.clone(),
                channel.name.clone(),
                channel.head.clone(),
                version.to_owned(),
                channel.entries.len().to_string(),
            ];
            if is_wide {
                let is_default = channel.name == package.default_channel;
                row.extend([
                    if is_default { "yes" } else { "" }.to_owned(),
                    some(channel.deprecation.as_ref()).to_owned(),
                ]);
            }
            table.row(row);
        }
    }
    table
}

/// Entries, the newest first; those without a version last.
fn newest_first(channel: &Channel) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = channel.entries.iter().collect();
    entries.sort_by(|a, b| graph::newest_first(a, b));
    entries
}

fn versions(packages: &[&Package], is_wide: bool) -> Table {
    let narrow = ["PACKAGE", "CHANNEL", "VERSION", "BUNDLE", "REPLACES"];
    let more = ["SKIPS", "SKIP RANGE", "IMAGE", "DEPRECATED"];
    let mut table = Table::new(narrow.into_iter().chain(is_wide.then_some(more).into_iter().flatten()));
    for channel in packages.iter().flat_map(|p| &p.channels) {
        for entry in newest_first(channel) {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let mut row = vec![
                entry.package.clone(),
                entry.channel.clone(),
                entry.version_text.clone(),
                entry.name.clone(),
                text(&entry.replaces),
            ];
            if is_wide {
                let image = entry.bundle_path.clone();
                row.extend([entry.skips.join(","), text(&entry.skip_range), image, text(&entry.deprecation)]);
            }
            table.row(row);
        }
    }
    table
}

/// A package as data, with everything that there is of it.
fn package_document(package: &Package) -> Value {
    let entry = |e: &Entry| {
        without_empty(json!({
            "name": e.name, "version": e.version_text, "replaces": e.replaces, "skips": e.skips,
            "skipRange": e.skip_range, "image": e.bundle_path, "deprecation": e.deprecation,
        }))
    };
    let channel = |c: &Channel| {
        let entries: Vec<Value> = newest_first(c).into_iter().map(entry).collect();
        without_empty(json!({"name": c.name, "head": c.head, "deprecation": c.deprecation, "entries": entries}))
    };
    let channels: Vec<Value> = package.channels.iter().map(channel).collect();
    without_empty(json!({
        "name": package.name, "defaultChannel": package.default_channel, "deprecation": package.deprecation,
        "channels": channels,
    }))
}

/// A package that was named is a document of its own.
fn with_kind(package: Value) -> Value {
    let mut document = json!({ "apiVersion": API_VERSION, "kind": "Package" });
    if let (Some(document), Value::Object(package)) = (document.as_object_mut(), package) {
        document.extend(package);
    }
    document
}

fn list_document(load: &Load, packages: &[&Package]) -> Value {
    let items: Vec<Value> = packages.iter().map(|package| package_document(package)).collect();
    json!({"apiVersion": API_VERSION, "kind": "PackageList", "setAside": load.set_aside, "items": items})
}

fn without_empty(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, v| !(v.is_null() || v == "" || v.as_array().is_some_and(Vec::is_empty)));
    }
    value
}
