//! `kubectl olm catalog render`: prints the blobs of catalogs and bundles as opm does, or a part of them.

use std::collections::BTreeMap;

use olm_core::api::object::{list, text};
use olm_core::catalog::Meta;
pub use olm_core::catalog::{Filter, MigrationLevel};
pub use olm_core::version::Range;
use serde_json::{Value, json};

use super::source::{Ref, Source, all_refused};
use crate::cli::flags::DataFormat;
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;

/// What to render, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Catalogs, bundles and templates, merged into one catalog.
    pub refs: Vec<Ref>,
    /// A stream of JSON objects, or YAML documents.
    pub format: DataFormat,
    /// The migrations to apply to older blobs.
    pub level: MigrationLevel,
    /// The part to print.
    pub filter: Filter,
    /// Whether to print only the references of all images.
    pub images: bool,
    /// How images among the refs, and those that templates name, are pulled.
    pub pull: image::Options,
}

/// Prints the blobs. Nothing is printed if some input cannot be read, or the filter matches nothing.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let progress = printer.progress("reading");
    let mut source = Source::read_whole(&options.refs, &options.pull.watched(progress.watch()))?;
    drop(progress);
    let told = source.catalog.filter(&options.filter);
    if let Some(error) = all_refused(&told) {
        return Err(error);
    }
    source.catalog.findings().iter().chain(&told).for_each(|finding| printer.warn(finding));
    let blobs = source.catalog.blobs(options.level).map(|blob| blob.map_err(|finding| CliError::from(&finding)));
    if options.images {
        return images(blobs, options.format, printer);
    }
    for blob in blobs {
        print(&blob?, options.format, printer)?;
    }
    Ok(Outcome::Done)
}

/// Prints a blob as opm does: JSON in the order of the schema, YAML with sorted keys.
fn print(blob: &Meta, format: DataFormat, printer: &mut Printer) -> Result<(), CliError> {
    match format {
        DataFormat::Json => printer.json(blob),
        DataFormat::Yaml => {
            let sorted = serde_json::to_value(blob).map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))?;
            printer.line("---")?;
            printer.yaml(&sorted)
        }
    }
}

/// Prints every image once; as YAML with the bundles that refer to it.
fn images(
    blobs: impl Iterator<Item = Result<Meta, CliError>>,
    format: DataFormat,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let mut images: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for blob in blobs {
        let blob = blob?;
        if blob.schema() != "olm.bundle" {
            continue;
        }
        let related = list(&blob.0, &["relatedImages"]).iter().map(|i| text(i, &["image"]));
        for image in related.chain([text(&blob.0, &["image"])]).filter(|image| !image.is_empty()) {
            let bundles = images.entry(image.to_owned()).or_default();
            if bundles.last().is_none_or(|last| last != blob.name()) {
                bundles.push(blob.name().to_owned());
            }
        }
    }
    if format == DataFormat::Json {
        images.keys().try_for_each(|image| printer.line(image))?;
    } else {
        let images: Vec<Value> = images.iter().map(|(i, bundles)| json!({"image": i, "bundles": bundles})).collect();
        printer.yaml(&json!({"apiVersion": API_VERSION, "kind": "ImageList", "images": images}))?;
    }
    Ok(Outcome::Done)
}
