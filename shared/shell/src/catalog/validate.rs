//! `kubectl olm catalog validate`: checks a catalog for errors.

use olm_core::catalog::refused_by_opm;
use olm_core::finding::{Finding, Severity};
use olm_core::listing::count;
use serde_json::json;

use super::source::{Ref, Source};
use crate::cli::findings::{Format, Report};
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// Catalogs, merged into one.
    pub refs: Vec<Ref>,
    /// How images are pulled.
    pub images: image::Options,
    /// Whether to fail whenever opm would reject the catalog.
    pub strict: bool,
    /// The output format.
    pub format: Format,
}

/// Checks catalogs. The outcome is negative if a package is invalid or a file cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let progress = printer.progress("reading the catalog");
    let source = Source::read(&options.refs, &options.images.watched(progress.watch()))?;
    let directories = if options.strict { source.catalog.bundle_directories() } else { Vec::new() };
    let mut load = source.catalog.load();
    drop(progress);
    load.findings.extend(directories);
    let is_refused = |f: &Finding| {
        if options.strict { refused_by_opm(f.code) } else { f.severity == Severity::Error }
    };
    let passed = !load.findings.iter().any(is_refused);
    let served = load.snapshot.packages().len();
    let bundles = load.snapshot.bundle_count();
    if served == 0 && load.invalid_packages.is_empty() && load.findings.is_empty() {
        printer.warn("no package found; templates are rendered with: kubectl olm catalog render");
    }
    if options.format == Format::Text {
        Report { findings: &load.findings, about: &[], checked: &[] }.text(printer)?;
        let invalid_packages = load.invalid_packages.iter().filter(|p| !p.is_empty()).count();
        printer.talk(summary(served, bundles, invalid_packages, load.findings.len(), passed));
    } else {
        let about = json!({
            "apiVersion": API_VERSION,
            "kind": "CatalogValidation",
            "passed": passed,
            "strict": options.strict,
            "packages": served,
            "bundles": bundles,
            "invalidPackages": load.invalid_packages,
        });
        Report { findings: &load.findings, about: &[], checked: &[] }.data(options.format, about, printer)?;
    }
    Ok(if passed { Outcome::Done } else { Outcome::Negative })
}

fn summary(packages: usize, bundles: usize, invalid_packages: usize, findings: usize, passed: bool) -> String {
    let bundles = count(bundles, "bundle");
    let what = match invalid_packages {
        0 => format!("{} with {bundles}", count(packages, "package")),
        n => format!("{} with {bundles}, {}", count(packages, "valid package"), count(n, "invalid package")),
    };
    match (findings, passed) {
        (0, _) => format!("{what}: no findings"),
        (n, true) => format!("{what}: valid, {}", count(n, "finding")),
        (n, false) => format!("{what}: {}", count(n, "finding")),
    }
}
