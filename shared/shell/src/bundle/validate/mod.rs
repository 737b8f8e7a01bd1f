//! `kubectl olm bundle validate`: checks bundles before they are published.
//!
//! ```text
//!   REF --read--> files ─┐
//!   surroundings --against--> the previous version ─┴─ olm_core::validate --> findings --cli/baseline--> cli/findings
//!                --image--> platforms of images
//! ```
//!
//! *Guarantees*: nothing is written except the baseline on request. A bundle that cannot be read is a finding, and the others are
//! validated. The output does not depend on the number of threads.

mod against;
mod read;
mod surroundings;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use olm_core::bundle::File;
use olm_core::finding::{Finding, Severity};
use olm_core::lint::Fingerprint;
pub use olm_core::validate::Selection;
use olm_core::validate::{self, Identity, RULES, Validated, Validator};
use olm_core::version::{self, Version};
use olm_core::yaml;
use serde_json::{Value, json};

use self::against::Against;
use self::surroundings::Surroundings;
use crate::catalog::Ref;
use crate::cli::baseline::{self, Baseline};
use crate::cli::findings::{About, FailOn, Format, Report};
use crate::cli::output::API_VERSION;
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::image;

/// The kind of a baseline.
const BASELINE: &str = "BundleBaseline";
/// Maximum number of worker threads.
const MOST_WORKERS: usize = 16;
/// How many errors of a bundle a command prints that uses it.
const PRINTED: usize = 20;
/// Maximum size of a Dockerfile or of a file with categories, in bytes.
const SMALL: u64 = 1 << 20;
/// The environment variable with the path of a file with categories, as in operator-sdk.
const CATEGORIES: &str = "OPERATOR_BUNDLE_CATEGORIES";

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bundles, and directories of bundles.
    pub refs: Vec<Ref>,
    /// A bundle or a catalog with the previous version.
    pub against: Option<Ref>,
    /// What to check.
    pub selection: Selection,
    /// The Kubernetes version for which removed API versions are errors.
    pub kubernetes: Option<Version>,
    /// The Dockerfile of the bundle.
    pub index_path: Option<PathBuf>,
    /// The file of known findings.
    pub baseline: Option<PathBuf>,
    /// Whether to write the findings to this file instead.
    pub create_baseline: bool,
    /// The lowest severity for a negative outcome.
    pub fail_on: FailOn,
    /// The output format.
    pub format: Format,
    /// How images are pulled.
    pub images: image::Options,
}

/// A validated bundle.
#[derive(Default)]
struct Bundle {
    /// Its path in messages.
    path: String,
    validated: Validated,
    /// Why it was not compared with the previous version.
    uncompared: Option<String>,
}

/// Validates bundles. The outcome is negative if there are findings of the severity of `fail_on`.
///
/// # Errors
/// A directory, a baseline, or the version to compare with cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if options.create_baseline && options.baseline.is_none() {
        return Err(CliError::usage("--create-baseline requires --baseline FILE"));
    }
    let known = match &options.baseline {
        Some(file) if !options.create_baseline => Baseline::read(file, BASELINE)?,
        _ => Baseline::default(),
    };
    let core = validate::Options {
        selection: options.selection.clone(),
        kubernetes: options.kubernetes.clone(),
        dockerfile: options.index_path.as_deref().map(small_file).transpose()?,
        categories: std::env::var_os(CATEGORIES).filter(|path| !path.is_empty()).map(categories).transpose()?,
    };
    let against = match &options.against {
        Some(named) => Some(Against::read(named, &options.images, printer)?),
        None => None,
    };
    let refs = read::bundles(&options.refs)?;
    let progress = printer.progress("validating");
    let bundles = validated(&refs, &core, against.as_ref(), &options.images.watched(progress.watch()));
    drop(progress);
    for bundle in &bundles {
        if let Some(why) = &bundle.uncompared {
            printer.warn(format_args!("{} was not compared: {why}", named(&bundle.path)));
        }
    }
    finish(options, known, bundles, printer)
}

fn named(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// Applies the baseline, and prints the findings.
fn finish(
    options: &Options,
    known: Baseline,
    bundles: Vec<Bundle>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let names: Vec<(String, String)> =
        bundles.iter().map(|bundle| (bundle.path.clone(), bundle.validated.identity.name.clone())).collect();
    let mut found: Vec<(usize, Finding)> = Vec::new();
    let mut identities = Vec::new();
    for (n, bundle) in bundles.into_iter().enumerate() {
        found.extend(bundle.validated.findings.into_iter().map(|finding| (n, finding)));
        identities.push((bundle.path, bundle.validated.identity));
    }
    let fingerprint = |(n, finding): &(usize, Finding)| fingerprint(&identities[*n].1, &names[*n].0, finding);
    if let Some(file) = options.baseline.as_ref().filter(|_| options.create_baseline) {
        baseline::write(file, BASELINE, found.iter().map(fingerprint).collect())?;
        printer.talk(format_args!("wrote {} to {}", count(found.len(), "finding"), file.display()));
        return Ok(Outcome::Done);
    }
    let known = known.take_out(&mut found, fingerprint);
    for gone in &known.gone {
        printer.talk(format_args!("obsolete in the baseline: {} {}", gone.code, gone.object));
    }
    let fails = found.iter().any(|(_, finding)| options.fail_on.counts(finding.severity));
    let passed: Vec<Value> = identities
        .iter()
        .enumerate()
        .map(|(n, (path, identity))| {
            let of = |severity| found.iter().filter(|(of, f)| *of == n && f.severity == severity).count();
            let [errors, warnings] = [Severity::Error, Severity::Warning].map(of);
            json!({
                "path": named(path), "name": identity.name, "package": identity.package,
                "errors": errors, "warnings": warnings,
            })
        })
        .collect();
    let findings: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
    let help: Vec<String> = RULES.iter().map(|rule| help(rule)).collect();
    let about: Vec<About<'_>> = RULES
        .iter()
        .zip(&help)
        .map(|(rule, help)| About { code: rule.code, name: rule.name, summary: rule.summary, help })
        .collect();
    let checked: Vec<String> = identities.into_iter().map(|(path, _)| path).collect();
    let report = Report { findings: &findings, about: &about, checked: &checked };
    if options.format == Format::Text {
        report.text(printer)?;
        printer.talk(summary(checked.len(), &findings, known.left_out));
    } else {
        let document = json!({
            "apiVersion": API_VERSION, "kind": "BundleValidation",
            "passed": !fails, "bundles": passed, "inBaseline": known.left_out,
        });
        report.data(options.format, document, printer)?;
    }
    Ok(if fails { Outcome::Negative } else { Outcome::Done })
}

fn help(rule: &validate::Rule) -> String {
    let validators: Vec<&str> = rule.validators.iter().map(|validator| validator.name()).collect();
    let hint = if rule.hint.is_empty() { String::new() } else { format!(" Hint: {}.", rule.hint) };
    format!("{}.{hint} Validators: {}.", rule.summary, validators.join(", "))
}

/// Returns the identity of a finding, which is the same for the next version of the bundle.
fn fingerprint(identity: &Identity, path: &str, finding: &Finding) -> Fingerprint {
    let of = |text: &str| match identity.name.as_str() {
        "" => text.to_owned(),
        name => text.replace(name, "NAME"),
    };
    let bundle = if identity.package.is_empty() { named(path) } else { &identity.package };
    Fingerprint {
        code: finding.code.to_owned(),
        object: format!("{bundle}/{}", of(&finding.subject)),
        also: vec![of(&finding.message)],
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn summary(bundles: usize, findings: &[Finding], known: usize) -> String {
    let of = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let counts = [(of(Severity::Error), "error"), (of(Severity::Warning), "warning"), (of(Severity::Info), "note")];
    let mut parts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(*n, what)).collect();
    if parts.is_empty() {
        parts.push("no findings".to_owned());
    }
    if known > 0 {
        parts.push(format!("{known} in the baseline"));
    }
    format!("{}: {}", count(bundles, "bundle"), parts.join(", "))
}

/// Validates bundles on all processors, and returns them in the order of the references.
fn validated(
    refs: &[Ref],
    options: &validate::Options,
    against: Option<&Against>,
    images: &image::Options,
) -> Vec<Bundle> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS).min(refs.len());
    let next = AtomicUsize::new(0);
    let inspected = Mutex::default();
    let done: Mutex<Vec<(usize, Bundle)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((n, named)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, refs.get(n)?)))
                {
                    let surroundings = Surroundings { against, images, inspected: &inspected, uncompared: None };
                    let bundle = one(named, options, surroundings);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((n, bundle));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, bundle)| bundle).collect()
}

fn one(named: &Ref, options: &validate::Options, mut surroundings: Surroundings<'_>) -> Bundle {
    let path = read::shown(named);
    let read::Read { files, findings } = read::read(named, surroundings.images);
    if files.is_empty() && !findings.is_empty() {
        return Bundle { path, validated: Validated { findings, ..Validated::default() }, uncompared: None };
    }
    let mut validated = validate::validate(&path, &files, options, &mut surroundings);
    let unread = findings.into_iter().filter(|finding| options.selection.reports(finding.code));
    validated.findings.splice(0..0, unread);
    Bundle { path, validated, uncompared: surroundings.uncompared }
}

/// Reads and validates one bundle, for commands that use it. Also returns what is not an error.
///
/// # Errors
/// It is not a bundle, or it has errors: all of them.
pub(crate) fn checked(
    named: &Ref,
    images: &image::Options,
) -> Result<(olm_core::bundle::Bundle, Vec<Finding>), CliError> {
    if let Ref::Directory(path) = named
        && !read::is_bundle(path)
    {
        return Err(CliError::input("this is not a bundle: it has neither manifests/ nor metadata/")
            .at(path.display())
            .hint("kubectl olm bundle synthesize creates a bundle from manifests"));
    }
    read::bundles(std::slice::from_ref(named))?;
    let path = read::shown(named);
    let read::Read { files, mut findings } = read::read(named, images);
    if !files.is_empty() {
        findings.extend(validate::validate(&path, &files, &validate::Options::default(), &mut ()).findings);
    }
    let (errors, others): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| finding.severity == Severity::Error);
    if let Some(error) = CliError::all(errors.iter().take(PRINTED).map(CliError::from)) {
        let hint = format!("kubectl olm bundle validate {named} prints all findings");
        return Err(if errors.len() > PRINTED { error.hint(hint) } else { error });
    }
    let bundle = olm_core::bundle::Bundle::read_whole(&path, &files);
    let bundle = bundle.map_err(|errors| {
        let all = CliError::all(errors.iter().take(PRINTED).map(CliError::from));
        all.unwrap_or_else(|| CliError::input("the bundle cannot be read").at(&path))
    })?;
    Ok((bundle, others))
}

/// Parses a Kubernetes version as operator-sdk does: `1.25`, `v1.25.3`.
///
/// # Errors
/// It is not a version.
pub fn kubernetes(text: &str) -> Result<Version, CliError> {
    version::parse_tolerant(text)
        .map_err(|error| CliError::usage(format!("invalid value informed via the k8s key option : {text}: {error}")))
}

/// Reads a small text file.
fn small_file(path: &Path) -> Result<File, CliError> {
    let mut bytes = Vec::new();
    let named = |e: std::io::Error| CliError::from(e).at(path.display());
    fs::File::open(path).map_err(named)?.take(SMALL).read_to_end(&mut bytes).map_err(named)?;
    Ok(File::new(path.display().to_string(), bytes))
}

/// Reads a file with categories.
fn categories(path: std::ffi::OsString) -> Result<Vec<String>, CliError> {
    let file = small_file(Path::new(&path))?;
    let value = yaml::first(&file.bytes).map_err(|e| CliError::input(e.message).at(&file.path))?;
    validate::custom_categories(&value).ok_or_else(|| {
        CliError::input(format!("the file of {CATEGORIES} has no list of categories"))
            .at(&file.path)
            .hint("expected {\"categories\": [\"NAME\", ...]}")
    })
}

/// Prints the validators.
///
/// # Errors
/// Standard output cannot be written.
pub fn list(printer: &mut Printer) -> Result<Outcome, CliError> {
    let mut table = Table::new(["NAME", "SUITE", "BY DEFAULT", "CHECKS"]);
    let by_default = Selection::default();
    for validator in Validator::ALL {
        let suite = if Validator::OPERATOR_FRAMEWORK.contains(&validator) { "operatorframework" } else { "" };
        let is_default = by_default.contains(validator);
        table.row([validator.name(), suite, if is_default { "yes" } else { "no" }, validator.summary()]);
    }
    printer.data(table)?;
    Ok(Outcome::Done)
}
