//! `kubectl olm bundle synthesize`: a ClusterServiceVersion, or the files of a bundle, from plain manifests.
//!
//! *Guarantees*: with errors nothing is printed or written. What was changed by hand in files of an earlier run stays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use olm_core::api::names::is_subdomain;
use olm_core::api::object;
use olm_core::bundle::File;
use olm_core::bundle::synthesis::{
    self, DEFAULT_MODE, Manifest, Metadata, OLM_YAML, Proposal, REQUIRED_FIELDS, Synthesis,
};
use olm_core::finding::{Finding, Severity};
use olm_core::validate;
use olm_core::version::Version;
use serde_json::{Map, Value, json};

use super::carried::Carried;
use super::files::{self, Files, Parts};
use super::input::Input;
use super::merge::Merge;
pub use super::options::{Options, Target};
use super::package_manifest::PackageManifest;
use super::{known_apis, questions};
use crate::cli::data::yaml;
use crate::cli::flags::DataFormat;
use crate::cli::output::API_VERSION;
use crate::cli::replace;
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};

/// The codes of findings that are printed if there is no Deployment.
const CAUSES: [&str; 9] = [
    "field-type",
    "field-value",
    "later-documents",
    "no-deployment",
    "no-object",
    "no-olm-yaml",
    "required-field",
    "too-many-objects",
    "unreadable-file",
];

/// Creates the ClusterServiceVersion or the bundle. The outcome is negative if there are errors among the findings.
///
/// # Errors
/// A file cannot be read or written, or files to write were changed by hand where they change now, too.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    check(options)?;
    let Input { metadata, carried, manifests } = Input::read(&options.paths, options.metadata.as_deref())?;
    let (manifests, mut findings) = synthesis::read_manifests(&manifests);
    let images = options.credentials.options(options.images.clone(), &options.cluster, None, printer)?;
    let known = known_apis::read(options, &images, &manifests, printer)?;
    let metadata_file = match metadata {
        Some(file) => Some(ask_missing(complete(file, options, printer)?, options, &manifests, printer)?),
        None => propose(options, &manifests, printer)?,
    };
    let metadata = Metadata::read(metadata_file.as_ref());
    let synthesis = synthesis::synthesize(&manifests, &metadata, &known, options.target.format());
    findings.extend(synthesis.findings.iter().cloned());
    let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    // Without a Deployment nothing is projected: the other findings follow from it.
    if findings.iter().any(|finding| finding.code == "no-deployment") {
        findings.retain(|finding| CAUSES.contains(&finding.code));
        if manifests.is_empty() {
            findings.retain(|finding| finding.code != "no-deployment");
            findings.push(Finding::new("no-manifests", "the input contains no Kubernetes objects"));
        }
    }
    for finding in &findings {
        match finding.severity {
            Severity::Error => printer.error(&finding.into()),
            _ => printer.warn(finding),
        }
    }
    if options.account {
        account(&synthesis, &findings, options.format, printer)?;
    } else if !has_errors {
        match &options.output_dir {
            Some(directory) => {
                let metadata_file = match metadata_file {
                    Some(file) if options.target == Target::PlainV1 => {
                        Some(with_required(file, &metadata, &synthesis)?)
                    }
                    other => other,
                };
                let package_manifest = |name: &str| package_manifest(&directory.join(name));
                let parts = Parts {
                    synthesis: &synthesis,
                    manifests: &manifests,
                    metadata: metadata_file.as_ref(),
                    carried: &carried,
                };
                let (files, edited) = files::of_bundle(options, parts, &package_manifest)?;
                report_left_out(options, &carried, printer);
                warn_of_refusals(&files, options, printer);
                let version = object::text(&synthesis.csv, &["spec", "version"]);
                // A directory of package manifests has other versions, too.
                let scope =
                    if options.target == Target::PackageManifests { format!("{version}/") } else { String::new() };
                let merge = Merge::new(directory, files, &edited, &scope)?;
                if options.dry_run { merge.print(printer)? } else { merge.write(printer)? }
            }
            None if options.target == Target::Csv => {
                options.format.unwrap_or(DataFormat::Yaml).print(printer, &synthesis.csv)?;
            }
            None => return Err(CliError::usage("a bundle consists of several files").hint("pass --output-dir DIR")),
        }
    }
    Ok(if has_errors { Outcome::Negative } else { Outcome::Done })
}

/// Warns about what OLM or the API server would reject when the bundle is installed.
fn warn_of_refusals(files: &Files, options: &Options, printer: &mut Printer) {
    if options.target == Target::PackageManifests {
        return;
    }
    let directory = options.output_dir.as_deref().unwrap_or_else(|| Path::new("")).display().to_string();
    let file = |(path, text): (&String, &String)| File::new(format!("{directory}/{path}"), text.as_bytes());
    let files: Vec<File> = files.iter().map(file).collect();
    let selection = validate::Selection::from(BTreeSet::from([validate::Validator::Olm]));
    let olm = validate::Options { selection, ..validate::Options::default() };
    for finding in validate::validate(&directory, &files, &olm, &mut ()).findings {
        let is_of_olm =
            validate::rule(finding.code).is_some_and(|rule| rule.validators.contains(&validate::Validator::Olm));
        if is_of_olm && finding.severity != Severity::Info {
            printer.warn(finding.warning());
        }
    }
}

/// Checks the flags.
fn check(options: &Options) -> Result<(), CliError> {
    if let Some(version) = &options.version {
        let hint = "write MAJOR.MINOR.PATCH, as in 1.0.0; build metadata (+…) cannot be in the name of an object";
        if version.parse::<Version>().is_err() || version.contains('+') {
            return Err(CliError::usage(format!("--version {version} cannot be the version of a bundle")).hint(hint));
        }
    }
    if let Some(package) = options.package.as_ref().filter(|package| !is_subdomain(package)) {
        let error = CliError::usage(format!("--package {package} cannot be the name of a package"));
        return Err(error.hint("use lower-case letters, digits, '-' and '.'"));
    }
    let is_odd = |channel: &&String| channel.is_empty() || channel.chars().any(|c| c.is_whitespace() || c.is_control());
    if let Some(channel) = options.channels.iter().find(is_odd) {
        return Err(CliError::usage(format!("{channel:?} cannot be the name of a channel")));
    }
    if let Some(name) = options.replaces.iter().chain(&options.skips).find(|name| !is_subdomain(name)) {
        let error = CliError::usage(format!("{name:?} cannot be the name of a ClusterServiceVersion"));
        return Err(error.hint("--replaces and --skips take names such as rose.v1.0.0"));
    }
    let directory = options.output_dir.as_ref().and_then(|directory| directory.canonicalize().ok());
    let is_input = |path: &PathBuf| path.canonicalize().ok().is_some_and(|path| directory.as_ref() == Some(&path));
    if options.paths.iter().any(is_input) {
        return Err(
            CliError::usage("--output-dir is the directory of the manifests").hint("write to another directory")
        );
    }
    Ok(())
}

/// Returns olm.yaml with the fields that it lacks, as far as flags state them.
fn complete(file: File, options: &Options, printer: &mut Printer) -> Result<File, CliError> {
    let fields = match olm_core::yaml::first(&file.bytes) {
        Ok(Value::Object(fields)) => fields,
        Ok(Value::Null) => Map::new(),
        // Reading the metadata reports it.
        _ => return Ok(file),
    };
    let skips = (!options.skips.is_empty()).then(|| json!(options.skips));
    let flags = [
        ("version", options.version.clone().map(Value::from)),
        ("replaces", options.replaces.clone().map(Value::from)),
        ("skips", skips),
    ];
    let flags = flags.into_iter().filter_map(|(field, value)| Some((field, value?)));
    let mut missing = Map::new();
    for (field, value) in flags {
        match fields.get(field) {
            Some(stated) if *stated != value => {
                let message = format!("--{field} {} contradicts {field} {} of the file", plain(&value), plain(stated));
                return Err(CliError::usage(message).at(&file.path));
            }
            None if field != "version" => drop(missing.insert(field.to_owned(), value)),
            _ => {}
        }
    }
    if let (Some(package), Some(version)) = (&options.package, &options.version)
        && let Value::Object(mut proposed) = Proposal::new(package, version).olm_yaml()
    {
        proposed.retain(|field, _| !fields.contains_key(field));
        report_assumptions(&proposed, printer);
        missing.extend(proposed);
    }
    if missing.is_empty() { Ok(file) } else { append(file, missing) }
}

/// Returns olm.yaml with the required fields that it lacks, from answers on the terminal, if there is one.
fn ask_missing(file: File, options: &Options, manifests: &[Manifest], printer: &mut Printer) -> Result<File, CliError> {
    let fields = match olm_core::yaml::first(&file.bytes) {
        Ok(Value::Object(fields)) if printer.is_interactive() => fields,
        _ => return Ok(file),
    };
    if !REQUIRED_FIELDS.iter().any(|field| questions::is_missing(&fields, field)) {
        return Ok(file);
    }
    let (package, version) = (options.package.as_deref(), options.version.as_deref());
    append(file, questions::ask(&fields, package, version, manifests, printer)?)
}

/// Formats a value of a flag for a message.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns olm.yaml with further fields at its end.
fn append(file: File, fields: Map<String, Value>) -> Result<File, CliError> {
    let mut text = String::from_utf8_lossy(&file.bytes).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += &yaml(&fields)?;
    // The file may end otherwise than with a line of its map.
    let is_added = olm_core::yaml::first(text.as_bytes())
        .is_ok_and(|olm_yaml| fields.iter().all(|(field, value)| olm_yaml.get(field) == Some(value)));
    if is_added {
        return Ok(File::new(file.path, text.into_bytes()));
    }
    let names: Vec<&str> = fields.keys().map(String::as_str).collect();
    let error = CliError::input(format!("{} cannot be added to the end of the file", names.join(", "))).at(&file.path);
    Err(error.hint("write it as one document of lines with FIELD: VALUE"))
}

/// Prints the fields that have default values.
fn report_assumptions(fields: &Map<String, Value>, printer: &mut Printer) {
    let version =
        fields.get("minKubeVersion").and_then(Value::as_str).map(|version| format!("minKubeVersion {version}"));
    let modes = fields.contains_key("installModes").then(|| format!("install mode {DEFAULT_MODE}"));
    let assumed: Vec<String> = version.into_iter().chain(modes).collect();
    if !assumed.is_empty() {
        printer.talk(format_args!("assumed: {}; metadata/olm.yaml can state others", assumed.join(", ")));
    }
}

/// Returns olm.yaml for manifests that have none, from flags and answers on the terminal; `None` without both.
fn propose(options: &Options, manifests: &[Manifest], printer: &mut Printer) -> Result<Option<File>, CliError> {
    let answers = match (&options.package, &options.version) {
        (Some(_), Some(_)) => return complete(File::new(OLM_YAML, Vec::new()), options, printer).map(Some),
        (package, version) if printer.is_interactive() => {
            questions::ask(&Map::new(), package.as_deref(), version.as_deref(), manifests, printer)?
        }
        (None, None) => return Ok(None),
        (package, _) => {
            let other = if package.is_some() { "--version" } else { "--package" };
            return Err(CliError::usage("the manifests have no metadata/olm.yaml")
                .hint(format!("pass {other} as well, or a file with the metadata: --metadata FILE")));
        }
    };
    let file = File::new(OLM_YAML, yaml(&answers)?.into_bytes());
    complete(file, &Options { package: None, version: None, ..options.clone() }, printer).map(Some)
}

/// Returns olm.yaml with the required APIs that it does not state, because installing the bundle does not know them.
fn with_required(file: File, metadata: &Metadata, synthesis: &Synthesis) -> Result<File, CliError> {
    let missing = metadata.missing_required(&synthesis.csv);
    if missing.is_empty() {
        return Ok(file);
    }
    if metadata.lists_required() {
        return Err(CliError::input("requiredAPIs lacks APIs that the operator's rules name")
            .at(&file.path)
            .hint(format!("add these lines to requiredAPIs, indented as the others:\n{}", items(&missing))));
    }
    append(file, Map::from_iter([("requiredAPIs".to_owned(), missing.into())]))
}

/// Returns the items of a list in YAML, one in a line: they stay valid with the indentation of messages and of any list.
fn items(items: &[Value]) -> String {
    items.iter().map(|item| format!("- {item}\n")).collect()
}

/// Reports the metadata of the input that the target has no place for.
fn report_left_out(options: &Options, carried: &Carried, printer: &mut Printer) {
    if matches!(options.target, Target::Csv | Target::PackageManifests) {
        for path in carried.files.keys() {
            printer.warn(format_args!("{path} is left out: only bundles have dependencies and properties"));
        }
    } else {
        carried.warnings.iter().for_each(|warning| printer.warn(warning));
    }
}

/// Reads the package manifest of a directory.
fn package_manifest(path: &Path) -> Result<Option<PackageManifest>, CliError> {
    let bytes = replace::read(path).map_err(|e| CliError::from(e).at(path.display()))?;
    let parse = |bytes: Vec<u8>| {
        let content = olm_core::yaml::first(&bytes)
            .map_err(|e| CliError::input(e.message).at(format_args!("{}:{}", path.display(), e.line)))?;
        Ok(PackageManifest { text: String::from_utf8_lossy(&bytes).into_owned(), content })
    };
    bytes.map(parse).transpose()
}

/// Prints where each object went.
fn account(
    synthesis: &Synthesis,
    findings: &[Finding],
    format: Option<DataFormat>,
    printer: &mut Printer,
) -> Result<(), CliError> {
    if let Some(format) = format {
        let document = json!({ "apiVersion": API_VERSION, "kind": "BundleAccount", "objects": synthesis.account, "findings": findings });
        return format.print(printer, &document);
    }
    let mut table = Table::new(["OBJECT", "FILE", "DESTINATION"]);
    for entry in &synthesis.account {
        let destinations: Vec<String> = entry.destinations.iter().map(ToString::to_string).collect();
        let destinations = if destinations.is_empty() { "<none>".to_owned() } else { destinations.join(", ") };
        table.row([entry.object.clone(), format!("{}:{}", entry.file, entry.line), destinations]);
    }
    printer.data(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_apis_of_a_hint_can_be_pasted() {
        let api = |kind: &str| json!({ "group": "example.com", "version": "v1", "kind": kind, "resource": "x" });
        let missing = [api("Rose"), api("Thorn"), api("yes")];
        let error = CliError::input("missing").hint(format!("add:\n{}", items(&missing))).render();
        let pasted: Vec<&str> = error.lines().filter(|line| line.starts_with("  - ")).collect();
        let olm_yaml = format!("requiredAPIs:\n{}\n", pasted.join("\n"));
        assert_eq!(olm_core::yaml::first(olm_yaml.as_bytes()).unwrap(), json!({ "requiredAPIs": missing }));
    }
}
