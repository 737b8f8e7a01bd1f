//! `kubectl olm bundle synthesize`: a ClusterServiceVersion, or the files of a bundle, from plain manifests.
//!
//! *Guarantees*: with errors nothing is printed or written. A file that was written before is replaced only if it was not changed
//! since: its first line carries the digest of its content.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use olm_core::api::hash;
use olm_core::api::object;
use olm_core::budget;
use olm_core::bundle::File;
use olm_core::bundle::synthesis::{self, MEDIA_TYPE, Metadata, OLM_YAML, Synthesis};
use olm_core::finding::{Finding, Severity};
use serde_json::{Value, json};

use crate::cli::data::yaml;
use crate::cli::flags::DataFormat;
use crate::cli::output::API_VERSION;
use crate::cli::replace::{self, Replacement};
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};

/// The prefix of the keys in `metadata/annotations.yaml`.
const ANNOTATIONS: &str = "operators.operatorframework.io.bundle.";
/// What the first line of a written file begins with.
const HEADER: &str = "# Written by kubectl olm bundle synthesize; not overwritten once it is changed. sha256:";
/// The name of standard input.
const STDIN: &str = "-";

/// What to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// The ClusterServiceVersion alone
    #[default]
    Csv,
    /// A bundle that every OLM installs
    #[value(name = "registry+v1")]
    RegistryV1,
    /// A bundle of plain manifests
    #[value(name = "k8s+v1")]
    PlainV1,
}

/// The metadata of a bundle that has no olm.yaml.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The package.
    pub package: String,
    /// The operator's version.
    pub version: String,
}

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files, directories, or `-`.
    pub paths: Vec<PathBuf>,
    /// The file with the metadata; if `None`, `metadata/olm.yaml` of a directory.
    pub metadata: Option<PathBuf>,
    /// The metadata if there is no such file.
    pub proposal: Option<Proposal>,
    /// The package; if `None`, taken from the name of the ClusterServiceVersion.
    pub package: Option<String>,
    /// The channels.
    pub channels: Vec<String>,
    /// The default channel.
    pub default_channel: Option<String>,
    /// What to create.
    pub target: Target,
    /// The directory to write to; if `None`, the ClusterServiceVersion is printed.
    pub output_dir: Option<PathBuf>,
    /// Whether to print where each object went.
    pub account: bool,
    /// The output format.
    pub format: DataFormat,
}

/// Creates the ClusterServiceVersion or the bundle. The outcome is negative if there are errors among the findings.
///
/// # Errors
/// A file cannot be read or written, or files to write were changed.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let files = read_files(&options.paths)?;
    let (metadata_file, manifest_files) = split(options, files)?;
    let (manifests, mut findings) = synthesis::read_manifests(&manifest_files);
    let metadata_file = metadata_file.or_else(|| {
        let proposal = options.proposal.as_ref()?;
        let text = synthesis::propose(&manifests, &proposal.package, &proposal.version);
        Some(File::new(OLM_YAML, text.into_bytes()))
    });
    let metadata = Metadata::read(metadata_file.as_ref());
    let synthesis = synthesis::synthesize(&manifests, &metadata, &());
    findings.extend(synthesis.findings.iter().cloned());
    let has_errors = findings.iter().any(|finding| finding.severity == Severity::Error);
    for finding in &findings {
        printer.warn(finding);
    }
    if options.account {
        account(&synthesis, &findings, options.format, printer)?;
    } else if !has_errors {
        match &options.output_dir {
            Some(directory) => {
                let written = bundle_files(options, &synthesis, &manifests, metadata_file.as_ref())?;
                write(directory, written, printer)?;
            }
            None if options.target == Target::Csv => match options.format {
                DataFormat::Json => printer.json(&synthesis.csv)?,
                DataFormat::Yaml => printer.yaml(&synthesis.csv)?,
            },
            None => return Err(CliError::usage("a bundle consists of several files").hint("pass --output-dir DIR")),
        }
    }
    Ok(if has_errors { Outcome::Negative } else { Outcome::Done })
}

/// Prints where each object went.
fn account(
    synthesis: &Synthesis,
    findings: &[Finding],
    format: DataFormat,
    printer: &mut Printer,
) -> Result<(), CliError> {
    if format == DataFormat::Json {
        let document = json!({ "apiVersion": API_VERSION, "kind": "BundleAccount", "objects": synthesis.account, "findings": findings });
        return printer.json(&document);
    }
    let mut table = Table::new(["OBJECT", "FILE", "DESTINATION"]);
    for entry in &synthesis.account {
        let destinations: Vec<String> = entry.destinations.iter().map(ToString::to_string).collect();
        let destinations = if destinations.is_empty() { "<none>".to_owned() } else { destinations.join(", ") };
        table.row([entry.object.clone(), format!("{}:{}", entry.file, entry.line), destinations]);
    }
    printer.data(table)
}

/// Reads all manifest files: those that are named, and those with an extension of manifests in directories.
fn read_files(paths: &[PathBuf]) -> Result<Vec<File>, CliError> {
    let mut files = Vec::new();
    let mut left = budget::BUNDLE_BYTES;
    for path in paths {
        if path == Path::new(STDIN) {
            let mut bytes = Vec::new();
            io::stdin().lock().take(left + 1).read_to_end(&mut bytes)?;
            add(&mut files, &mut left, STDIN.to_owned(), bytes)?;
            continue;
        }
        for file in files_in(path)? {
            let named = |e: io::Error| CliError::from(e).at(file.display());
            let mut bytes = Vec::new();
            fs::File::open(&file).and_then(|f| f.take(left + 1).read_to_end(&mut bytes)).map_err(named)?;
            add(&mut files, &mut left, file.display().to_string(), bytes)?;
        }
    }
    Ok(files)
}

fn add(files: &mut Vec<File>, left: &mut u64, path: String, bytes: Vec<u8>) -> Result<(), CliError> {
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        CliError::input(format!(
            "the manifests are larger than {} MiB, the limit of a bundle",
            budget::BUNDLE_BYTES >> 20
        ))
        .at(&path)
    })?;
    files.push(File::new(path, bytes));
    Ok(())
}

/// Returns the manifest files of a directory and its subdirectories, sorted; a file is itself. Symbolic links to directories and
/// files with a leading dot are not followed.
fn files_in(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let named = |e: io::Error| CliError::from(e).at(path.display());
    if !path.metadata().map_err(named)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path).map_err(named)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().map_err(named)?;
    entries.sort();
    for entry in entries {
        let is_hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_hidden {
            continue;
        }
        if entry.is_dir() && !entry.is_symlink() {
            found.extend(files_in(&entry)?);
        } else if entry
            .extension()
            .is_some_and(|e| ["yaml", "yml", "json"].iter().any(|known| e.eq_ignore_ascii_case(known)))
        {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Separates the file with the metadata from the manifests; files in a directory `metadata` are not manifests.
fn split(options: &Options, files: Vec<File>) -> Result<(Option<File>, Vec<File>), CliError> {
    let is_in_metadata = |path: &str| Path::new(path).parent().is_some_and(|parent| parent.ends_with("metadata"));
    let found = files.iter().find(|file| Path::new(&file.path).ends_with(OLM_YAML)).cloned();
    let metadata = match &options.metadata {
        Some(path) => {
            let bytes = fs::read(path).map_err(|e| CliError::from(e).at(path.display()))?;
            Some(File::new(path.display().to_string(), bytes))
        }
        None => found,
    };
    let is_metadata = |file: &File| metadata.as_ref().is_some_and(|metadata| metadata.path == file.path);
    let manifests = files.into_iter().filter(|file| !is_in_metadata(&file.path) && !is_metadata(file)).collect();
    Ok((metadata, manifests))
}

/// Returns the files of a bundle, by their path in it.
fn bundle_files(
    options: &Options,
    synthesis: &Synthesis,
    manifests: &[synthesis::Manifest],
    metadata: Option<&File>,
) -> Result<BTreeMap<String, String>, CliError> {
    let name = object::name(&synthesis.csv);
    let package = match &options.package {
        Some(package) => package.clone(),
        None => name.split(".v").next().unwrap_or(name).to_owned(),
    };
    let mut files = BTreeMap::new();
    let csv_file = format!("manifests/{name}.clusterserviceversion.yaml");
    match options.target {
        Target::Csv => {
            files.insert(csv_file, yaml(&synthesis.csv)?);
            return Ok(files);
        }
        Target::RegistryV1 => {
            files.insert(csv_file, yaml(&synthesis.csv)?);
            for object in &synthesis.objects {
                files.insert(file_name(object, &files), yaml(object)?);
            }
        }
        Target::PlainV1 => {
            for manifest in manifests {
                files.insert(file_name(&manifest.object, &files), yaml(&manifest.object)?);
            }
            let text = metadata.map(|file| String::from_utf8_lossy(&file.bytes).into_owned()).unwrap_or_default();
            files.insert(OLM_YAML.to_owned(), text);
        }
    }
    let media_type = if options.target == Target::PlainV1 { MEDIA_TYPE } else { "registry+v1" };
    let mut annotations = json!({
        "mediatype.v1": media_type, "manifests.v1": "manifests/", "metadata.v1": "metadata/", "package.v1": package,
        "channels.v1": options.channels.join(","),
    });
    if let Some(channel) = &options.default_channel {
        annotations["channel.default.v1"] = channel.as_str().into();
    }
    let keys: BTreeMap<String, &Value> = annotations
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (format!("{ANNOTATIONS}{key}"), value))
        .collect();
    files.insert("metadata/annotations.yaml".to_owned(), yaml(&json!({ "annotations": keys }))?);
    Ok(files)
}

/// Returns a file name for an object that no other object of the bundle has.
fn file_name(object: &Value, others: &BTreeMap<String, String>) -> String {
    let kind = object::kind(object).to_lowercase();
    let safe: String = object::name(object)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
        .collect();
    let first = format!("manifests/{safe}.{kind}.yaml");
    let numbered = (2..).map(|n| format!("manifests/{safe}-{n}.{kind}.yaml"));
    std::iter::once(first).chain(numbered).find(|name| !others.contains_key(name)).unwrap_or_default()
}

/// Writes the files together. Files that were changed since they were written are an error.
fn write(directory: &Path, files: BTreeMap<String, String>, printer: &mut Printer) -> Result<(), CliError> {
    let mut replacements = Vec::new();
    let mut changed = Vec::new();
    for (name, text) in files {
        let path = directory.join(&name);
        let before = replace::read(&path).map_err(|e| CliError::from(e).at(path.display()))?;
        let after = format!("{HEADER}{}\n{text}", hash::sha256_hex(text.as_bytes())).into_bytes();
        match &before {
            Some(old) if *old == after => continue,
            Some(old) if !is_unchanged(old) && *old != text.as_bytes() => changed.push(path.display().to_string()),
            _ => {}
        }
        replacements.push(Replacement { path, before, after });
    }
    if !changed.is_empty() {
        return Err(CliError::input(format!(
            "these files were changed by hand and are not overwritten: {}",
            changed.join(", ")
        ))
        .hint("write to another directory with --output-dir and compare, or delete the files"));
    }
    let count = replacements.len();
    replace::replace(&replacements)?;
    printer.talk(format!("{count} files written to {}", directory.display()));
    Ok(())
}

/// Returns whether a file is as this command wrote it.
fn is_unchanged(bytes: &[u8]) -> bool {
    let Some((first, rest)) = std::str::from_utf8(bytes).ok().and_then(|text| text.split_once('\n')) else {
        return false;
    };
    first.strip_prefix(HEADER).is_some_and(|digest| digest == hash::sha256_hex(rest.as_bytes()))
}
