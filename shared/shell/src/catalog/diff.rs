//! `kubectl olm catalog diff`: compares two catalogs, and reports stranded versions.

use std::collections::BTreeSet;

use olm_core::api::cluster_service_version::Csv;
use olm_core::api::{object, subscription};
use olm_core::catalog::diff::{Change, Diff, Installed, PackageChange, Subscription};
use olm_core::version;
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::installed::InstalledFrom;
use super::source::{OpenCatalog, Ref};
use crate::cli::output::{API_VERSION, Output};
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
    pub output: Output,
}

/// Compares two catalogs. The outcome is negative if a version would be stranded.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let installed = match &options.installed_from {
        InstalledFrom::Nothing => None,
        there => Some(installed(there, options, printer)?),
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
    match &options.output {
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
    Ok(if diff.stranded.is_empty() { Outcome::Done } else { Outcome::Negative })
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

/// Returns the installed version of each Subscription.
fn installed(there: &InstalledFrom, options: &Options, printer: &mut Printer) -> Result<Vec<Installed>, CliError> {
    let read = there.of_all(options.namespace.as_deref(), printer)?;
    let world = Reader::new(&read.world);
    let is_asked = |subscription: &Value| {
        let own = |key| object::text(subscription, &["spec", key]);
        let in_namespace = options.namespace.as_deref().is_none_or(|n| n == object::namespace(subscription));
        let of_source = options.source.as_deref().is_none_or(|source| match source.split_once('/') {
            Some(source) => source == (own("sourceNamespace"), own("source")),
            None => source == own("source"),
        });
        in_namespace && of_source
    };
    let mut installed = Vec::new();
    let mut seen = 0;
    for subscription in world.all(&kind::SUBSCRIPTION).map(|o| o.json()).filter(|s| is_asked(s)) {
        seen += 1;
        let name = subscription::Subscription::new(subscription).installed_csv();
        if name.is_empty() {
            continue;
        }
        let namespace = object::namespace(subscription);
        let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
        let version = csv.and_then(|csv| version::parse_tolerant(Csv::new(csv).version()).ok());
        let spec = |key| object::text(subscription, &["spec", key]).to_owned();
        installed.push(Installed {
            subscription: Subscription { namespace: namespace.to_owned(), name: object::name(subscription).to_owned() },
            package: spec("name"),
            channel: spec("channel"),
            name: name.to_owned(),
            version,
        });
    }
    if installed.is_empty() {
        let why = if seen == 0 { "no matching Subscriptions" } else { "no Subscription has an installed version" };
        printer.warn(format_args!("{why}: no version can be stranded"));
    }
    Ok(installed)
}
