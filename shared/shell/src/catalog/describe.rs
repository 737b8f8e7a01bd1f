//! `kubectl olm catalog describe`: packages as PackageManifests.

use std::fmt::Write as _;

use olm_core::api::object::{at, list, text};
use olm_core::packages::{self, AppLink, CatalogInfo, Channel, PackageManifest};
use serde_json::Value;

use super::catalog_sources;
use super::source::{OpenCatalog, Ref};
use crate::cli::flags::OutputFlags;
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// What to describe.
#[derive(Clone, Debug)]
pub struct Options {
    /// Catalogs, merged into one.
    pub refs: Vec<Ref>,
    /// Packages; empty describes all.
    pub packages: Vec<String>,
    /// How images are pulled.
    pub images: image::Options,
    /// The output format; a table stands for text.
    pub output: OutputFlags,
}

/// Prints the packages. The outcome is negative if a named package does not exist.
///
/// # Errors
/// A catalog cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let info = match &options.refs[..] {
        [Ref::CatalogSource(named)] => catalog_sources::info(named)?,
        _ => CatalogInfo::default(),
    };
    let loaded = OpenCatalog::read(&options.refs, &options.images, printer)?;
    let snapshot = &loaded.load.snapshot;
    let (mut found, mut outcome) = (Vec::new(), Outcome::Done);
    for name in &options.packages {
        match loaded.package(name, printer) {
            Some(package) => found.push(package),
            None => outcome = Outcome::Negative,
        }
    }
    if options.packages.is_empty() {
        found.extend(snapshot.packages().values());
    }
    let mut manifests = Vec::new();
    for package in found {
        let (manifest, problems) = packages::manifest(&info, snapshot, package);
        for problem in problems {
            printer.warn(problem);
        }
        manifests.push(manifest);
    }
    let output = &options.output.output;
    match (output, &manifests[..]) {
        (Output::Table | Output::Wide, _) => {
            let texts: Vec<String> = manifests.iter().map(describe).collect();
            printer.data(texts.join("\n"))?;
        }
        (_, [manifest]) if !options.packages.is_empty() => {
            output.object(printer, &manifest.to_json(), || Table::new([]))?;
        }
        (_, []) if outcome == Outcome::Negative => {}
        (Output::Name | Output::CustomColumns(_), _) => {
            let objects: Vec<Value> = manifests.iter().map(PackageManifest::to_json).collect();
            output.objects(printer, &objects, || Table::new([]))?;
        }
        _ => {
            let objects: Vec<Value> = manifests.iter().map(PackageManifest::to_json).collect();
            output.object(printer, &PackageManifest::list(&objects), || Table::new([]))?;
        }
    }
    Ok(outcome)
}

/// Returns the description of a package as text: of its channels, and of the head of its default channel.
fn describe(manifest: &PackageManifest) -> String {
    let status = &manifest.status;
    let mut fields = vec![("Package", status.package_name.clone())];
    if !status.catalog_source.is_empty() {
        let name = format!("{}/{}", status.catalog_source_namespace, status.catalog_source);
        fields.push(("Catalog", with_note(&name, &status.catalog_source_display_name)));
    }
    fields.extend([
        ("Provider", link(&status.provider)),
        ("Deprecated", status.deprecation.as_ref().map(|d| d.message.clone()).unwrap_or_default()),
        ("Default channel", status.default_channel.clone()),
    ]);
    let mut table = Table::new(["CHANNEL", "HEAD", "VERSION", "ENTRIES", "DEPRECATED"]);
    for channel in &status.channels {
        table.row([
            channel.name.clone(),
            channel.current_csv.clone(),
            channel.current_csv_desc.version.clone(),
            channel.entries.len().to_string(),
            channel.deprecation.as_ref().map(|d| d.message.clone()).unwrap_or_default(),
        ]);
    }
    let is_default = |channel: &&Channel| channel.name == status.default_channel;
    let head = status.channels.iter().find(is_default).or_else(|| status.channels.first());
    let of_head = head.map(fields_of_head).unwrap_or_default();
    let mut text = aligned(&fields);
    write!(text, "\n{table}").ok();
    if let Some(head) = head {
        write!(text, "\n{}, the head of channel {}:\n{}", head.current_csv, head.name, aligned(&of_head)).ok();
    }
    text
}

fn fields_of_head(channel: &Channel) -> Vec<(&'static str, String)> {
    let head = &channel.current_csv_desc;
    let apis = |field: &str| {
        let of = |definitions: &Value| {
            let named = |one: &Value| {
                let (name, group) = (text(one, &["name"]), text(one, &["group"]));
                let name = if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") };
                format!("{} ({name}/{})", text(one, &["kind"]), text(one, &["version"]))
            };
            list(definitions, &[field]).iter().map(named).collect::<Vec<String>>()
        };
        [of(&head.customresourcedefinitions), of(&head.apiservicedefinitions)].concat().join("\n")
    };
    let modes = head.install_modes.iter().filter(|mode| at(mode, &["supported"]) == &Value::Bool(true));
    vec![
        ("Name", head.display_name.clone()),
        ("Version", head.version.clone()),
        ("Maturity", head.maturity.clone()),
        (
            "Kubernetes",
            if head.min_kube_version.is_empty() { String::new() } else { format!(">={}", head.min_kube_version) },
        ),
        ("Install modes", modes.map(|mode| text(mode, &["type"])).collect::<Vec<_>>().join(", ")),
        ("Provides", apis("owned")),
        ("Requires", apis("required")),
        ("Images", head.related_images.join("\n")),
        ("Keywords", head.keywords.join(", ")),
        ("Links", head.links.iter().map(link).collect::<Vec<_>>().join("\n")),
        ("Maintainers", head.maintainers.iter().map(|m| with_note(&m.name, &m.email)).collect::<Vec<_>>().join("\n")),
        ("Description", head.description.trim().to_owned()),
    ]
}

fn link(link: &AppLink) -> String {
    with_note(&link.name, &link.url)
}

/// `name (note)`
fn with_note(name: &str, note: &str) -> String {
    match (name, note) {
        (name, "") => name.to_owned(),
        ("", note) => note.to_owned(),
        (name, note) => format!("{name} ({note})"),
    }
}

/// Returns the fields that are not empty, with their values in one column.
fn aligned(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(title, _)| title.len()).max().unwrap_or_default() + 1;
    let mut text = String::new();
    for (title, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        let mut title = format!("{title}:");
        for line in value.lines() {
            writeln!(text, "{}", format_args!("{title:width$}   {line}").to_string().trim_end()).ok();
            title.clear();
        }
    }
    text
}
