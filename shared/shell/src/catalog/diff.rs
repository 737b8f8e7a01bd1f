//! `kubectl olm catalog diff`: compares two catalogs, and reports stranded versions.

use std::collections::BTreeSet;

use olm_core::catalog::diff::{Change, Diff, Installed, PackageChange};
use olm_core::catalog::graph::{Graph, Grid};
use olm_core::catalog::{Entry, Snapshot};
use serde_json::{Value, json};

use super::installed::{self, InstalledFrom};
use super::page::{self, Changed};
use super::source::{OpenCatalog, Ref};
use crate::cli::output::{API_VERSION, Output, PageOutput};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// The current catalog.
    pub old: Ref,
    /// The catalog that would replace it.
    pub new: Ref,
    /// The source of installed objects; without one, all versions that can be installed count.
    pub installed_from: InstalledFrom,
    /// Restricts installed objects to this namespace.
    pub namespace: Option<String>,
    /// Restricts Subscriptions to this CatalogSource: `NAME`, or `NAMESPACE/NAME`.
    pub source: Option<String>,
    /// How images are pulled.
    pub images: image::Options,
    /// The output format.
    pub output: PageOutput,
}

/// Compares two catalogs. The outcome is negative if a version would be stranded.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let installed = match &options.installed_from {
        InstalledFrom::Nothing => None,
        there => Some(installed::versions(
            there,
            options.namespace.as_deref(),
            options.source.as_deref(),
            "no version can be stranded",
            printer,
        )?),
    };
    let [old, new] = [&options.old, &options.new]
        .map(|named| OpenCatalog::read(std::slice::from_ref(named), &options.images, printer));
    let (old, new) = (old?, new?);
    // A package that cannot be read must not count as removed.
    let broken: BTreeSet<&String> =
        new.load.invalid_packages.iter().filter(|p| old.load.snapshot.package(p).is_some()).collect();
    if let Some(first) = broken.first() {
        let refused =
            CliError::input(format!("package {first:?} is invalid in the new catalog and cannot be compared"));
        return Err(refused.at(&options.new).hint("for the findings, run kubectl olm catalog validate"));
    }
    let progress = printer.progress("comparing");
    let diff = Diff::new(&old.load.snapshot, &new.load.snapshot, installed.as_deref());
    drop(progress);
    let output = match &options.output {
        PageOutput::Output(output) => output,
        PageOutput::Html => {
            let (old, new) = (&old.load.snapshot, &new.load.snapshot);
            let title = format!("Catalog {} compared with {}", options.new, options.old);
            let installed = installed.as_deref();
            printer.data(page::diff(
                &title,
                &summary(&diff, installed),
                &diff,
                &changed(&diff, old, new, installed),
            ))?;
            return Ok(outcome(&diff));
        }
    };
    match output {
        Output::Table | Output::Wide => {
            printer.data(&diff)?;
            printer.talk(summary(&diff, installed.as_deref()));
        }
        Output::Name => names(&diff.packages).iter().try_for_each(|name| printer.line(name))?,
        output => {
            let mut document = json!({ "apiVersion": API_VERSION, "kind": "CatalogDiff" });
            if let (Some(document), Ok(Value::Object(diff))) = (document.as_object_mut(), serde_json::to_value(&diff)) {
                document.extend(diff);
            }
            output.object(printer, &document, || Table::new([]))?;
        }
    }
    Ok(outcome(&diff))
}

fn outcome(diff: &Diff) -> Outcome {
    if diff.stranded.is_empty() { Outcome::Done } else { Outcome::Negative }
}

/// Returns the packages that differ, with the versions of those that the new catalog contains and of their old entries.
fn changed<'d>(diff: &'d Diff, old: &Snapshot, new: &Snapshot, installed: Option<&[Installed]>) -> Vec<Changed<'d>> {
    let one = |change: &'d PackageChange| {
        let grid = new.package(&change.name).filter(|_| change.change == Change::Changed).map(|package| {
            let graphs: Vec<Graph<'_>> = package.channels.iter().map(Graph::new).collect();
            let entries = old.package(&change.name).into_iter().flat_map(|package| &package.channels);
            let entries: Vec<&Entry> = entries.flat_map(|channel| &channel.entries).collect();
            Grid::new(package, &graphs, |_| true, installed.unwrap_or_default(), &entries)
        });
        Changed { change, grid }
    };
    diff.packages.iter().map(one).collect()
}

fn summary(diff: &Diff, installed: Option<&[Installed]>) -> String {
    let count = |change| diff.packages.iter().filter(|p| p.change == change).count();
    let [added, removed, changed] = [Change::Added, Change::Removed, Change::Changed].map(count);
    let whom = match installed {
        None => "versions that can be installed".to_owned(),
        Some([_]) => "1 Subscription's installed version".to_owned(),
        Some(installed) => format!("the installed versions of {} Subscriptions", installed.len()),
    };
    let stranded = match diff.stranded.len() {
        0 => "nothing".to_owned(),
        n => n.to_string(),
    };
    format!("packages: {added} added, {removed} removed, {changed} changed; of {whom} {stranded} would be stranded")
}

/// Returns the names of everything that differs.
fn names(packages: &[PackageChange]) -> Vec<String> {
    let mut names = Vec::new();
    for PackageChange { name, change, fields, channels, bundles } in packages {
        if *change != Change::Changed || !fields.is_empty() {
            names.push(format!("package/{name}"));
        }
        names.extend(channels.iter().map(|channel| format!("channel/{name}/{}", channel.name)));
        names.extend(bundles.iter().map(|bundle| format!("bundle/{}", bundle.name)));
    }
    names
}
