//! Reads the directory of a bundle, and checks that an image can be built from it.
//!
//! Only the files that belong to the bundle are read: those of the directories that `metadata/annotations.yaml` names.

use std::collections::BTreeMap;
use std::fs::{self, File as Disk};
use std::io::{self, Read as _};
use std::path::Path;

use olm_core::budget::BUNDLE_BYTES;
use olm_core::bundle::folder::{self, are_apart, is_portable};
use olm_core::bundle::synthesis::{MEDIA_TYPE, OLM_YAML};
use olm_core::bundle::{Bundle, File};
use olm_core::yaml;
use serde_json::Value;

use crate::cli::CliError;
use crate::image::{BUNDLE_LABEL, MANIFESTS_LABEL, MEDIA_TYPE_LABEL, METADATA_LABEL, TESTS_LABEL};

/// The directory of the metadata, where opm and operator-sdk expect it.
const METADATA: &str = "metadata";
/// The media type of bundles with a ClusterServiceVersion.
pub(super) const REGISTRY_V1: &str = "registry+v1";
/// Most files of a bundle. The largest public bundles have a few hundred.
const MOST_FILES: usize = 10_000;
/// Most nested directories of tests.
const DEEPEST: usize = 16;

/// The files of a bundle.
#[derive(Debug, Default)]
pub(super) struct BundleDirectory {
    /// Contents by path in the bundle, with `/` as separator.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The annotations of the metadata, which are the labels of the image.
    pub(super) annotations: BTreeMap<String, String>,
    /// What is not part of the image, with the reason.
    pub(super) warnings: Vec<String>,
    left: u64,
}

/// Reads and checks a bundle.
///
/// # Errors
/// A file cannot be read, is a link or a device, or the bundle is incomplete: its metadata is missing or names other directories, there
/// is no ClusterServiceVersion, or none can be created from the manifests.
pub(super) fn read(directory: &Path) -> Result<BundleDirectory, CliError> {
    let mut found = BundleDirectory { left: BUNDLE_BYTES, ..BundleDirectory::default() };
    if !directory.metadata().map_err(|e| CliError::from(e).at(directory.display()))?.is_dir() {
        return Err(CliError::usage("this is not a directory")
            .at(directory.display())
            .hint("name the directory that contains manifests/ and metadata/"));
    }
    if !directory.join(METADATA).is_dir() {
        return Err(CliError::input("the bundle has no directory metadata").at(directory.display()).hint(
            "name the directory that contains manifests/ and metadata/; kubectl olm bundle synthesize creates both",
        ));
    }
    found.add(directory, METADATA, 0)?;
    let metadata = directory.join(METADATA);
    found.annotations = annotations(&found.files, directory)?;
    let named = |label: &str| found.annotations.get(label).map(String::as_str).filter(|value| !value.is_empty());
    let required = |label: &str| {
        named(label).map(str::to_owned).ok_or_else(|| {
            CliError::input(format!("the annotation {label} is missing"))
                .at(metadata.display())
                .hint("add it to metadata/annotations.yaml, under annotations")
        })
    };
    let media_type = required(MEDIA_TYPE_LABEL)?;
    required(BUNDLE_LABEL)?;
    let manifests = folder(&required(MANIFESTS_LABEL)?, MANIFESTS_LABEL, &metadata)?;
    if folder(&required(METADATA_LABEL)?, METADATA_LABEL, &metadata)? != METADATA {
        let error = CliError::input(format!("the annotation {METADATA_LABEL} names another directory than metadata/"));
        return Err(error.at(metadata.display()).hint("correct the annotation"));
    }
    let tests = named(TESTS_LABEL).map(|value| folder(value, TESTS_LABEL, &metadata)).transpose()?;
    if ![REGISTRY_V1, MEDIA_TYPE].contains(&media_type.as_str()) {
        let error = CliError::input(format!("the media type {media_type:?} is not supported")).at(metadata.display());
        return Err(error.hint(format!("bundles have the media type {REGISTRY_V1} or {MEDIA_TYPE}")));
    }
    if !are_apart(&manifests, METADATA) {
        let error = CliError::input("the manifests and the metadata must be in different directories");
        return Err(error.at(metadata.display()).hint(format!("correct the annotation {MANIFESTS_LABEL}")));
    }
    if !directory.join(&manifests).is_dir() {
        return Err(CliError::input(format!("the bundle has no directory {manifests}")).at(directory.display()).hint(
            format!("the annotation {MANIFESTS_LABEL} names it: correct the annotation, or create the directory"),
        ));
    }
    found.add(directory, &manifests, 0)?;
    match tests {
        Some(tests) if !are_apart(&tests, METADATA) || !are_apart(&tests, &manifests) => {
            let error = CliError::input("the tests must be in a directory of their own").at(metadata.display());
            return Err(error.hint(format!("correct the annotation {TESTS_LABEL}")));
        }
        Some(tests) if directory.join(&tests).is_dir() => found.add(directory, &tests, DEEPEST)?,
        Some(tests) => found
            .warnings
            .push(format!("{}: the annotation {TESTS_LABEL} names {tests}/, which does not exist", metadata.display())),
        None => {}
    }
    found.check(directory, &manifests, &media_type)?;
    Ok(found)
}

/// Returns the annotations of the first file that has any, as opm does.
fn annotations(files: &BTreeMap<String, Vec<u8>>, directory: &Path) -> Result<BTreeMap<String, String>, CliError> {
    for (path, bytes) in files.iter().filter(|(path, _)| path.as_str() != OLM_YAML) {
        let place = || directory.join(path);
        let metadata = yaml::first(bytes)
            .map_err(|e| CliError::input(e.message).at(format_args!("{}:{}", place().display(), e.line)))?;
        match metadata.get("annotations") {
            None | Some(Value::Null) => {}
            Some(Value::Object(annotations)) if annotations.is_empty() => {}
            Some(Value::Object(annotations)) => {
                return annotations
                    .iter()
                    .map(|(key, value)| match value {
                        Value::String(text) => Ok((key.clone(), text.clone())),
                        // Readers in Go accept these for strings. Other numbers lose digits.
                        Value::Bool(_) => Ok((key.clone(), value.to_string())),
                        Value::Number(number) if number.is_u64() => Ok((key.clone(), number.to_string())),
                        _ => Err(CliError::input(format!("the annotation {key} is not a string"))
                            .at(place().display())
                            .hint("write its value in quotes")),
                    })
                    .collect();
            }
            Some(_) => return Err(CliError::input("annotations is not a map").at(place().display())),
        }
    }
    Err(CliError::input("the bundle has no annotations")
        .at(directory.join(METADATA).display())
        .hint("add metadata/annotations.yaml with the package, the channels and the directories"))
}

/// Returns the directory that an annotation names, relative to the bundle.
fn folder(value: &str, label: &str, metadata: &Path) -> Result<String, CliError> {
    folder::folder(value).map(str::to_owned).ok_or_else(|| {
        CliError::input(format!("the annotation {label} names {value:?}, which is not a directory of the bundle"))
            .at(metadata.display())
            .hint("name it relative to the bundle, as in manifests/")
    })
}

impl BundleDirectory {
    /// Adds the files of a directory, and of `depth` levels of directories below it.
    fn add(&mut self, root: &Path, folder: &str, depth: usize) -> Result<(), CliError> {
        let path = root.join(folder);
        let at = |e: io::Error| CliError::from(e).at(path.display());
        if !is_without_links(root, folder).map_err(at)? {
            return Err(link(&path));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(at)? {
            names.push(entry.map_err(at)?.file_name());
        }
        names.sort();
        for name in names {
            let path = path.join(&name);
            let at = |e: io::Error| CliError::from(e).at(path.display());
            let Some(name) = name.to_str().filter(|name| is_portable(name.trim_start_matches('.'))) else {
                return Err(
                    CliError::input("the name has characters that not every system supports").at(path.display())
                );
            };
            let metadata = path.symlink_metadata().map_err(at)?;
            if metadata.is_symlink() {
                return Err(link(&path));
            }
            if name.starts_with('.') {
                self.warnings.push(format!("{}: hidden, and not part of the bundle", path.display()));
                continue;
            }
            let within = format!("{folder}/{name}");
            if metadata.is_dir() {
                let Some(depth) = depth.checked_sub(1) else {
                    return Err(CliError::input("OLM does not read files of this directory")
                        .at(path.display())
                        .hint(format!("move them to {}", root.join(folder).display())));
                };
                self.add(root, &within, depth)?;
            } else if metadata.is_file() {
                let bytes = self.read_file(&path)?;
                self.files.insert(within, bytes);
                if self.files.len() > MOST_FILES {
                    return Err(
                        CliError::input(format!("the bundle has more than {MOST_FILES} files")).at(root.display())
                    );
                }
            } else {
                return Err(CliError::input("this is not a regular file").at(path.display()));
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let read = Disk::open(path).and_then(|file| file.take(self.left + 1).read_to_end(&mut bytes));
        read.map_err(|e| CliError::from(e).at(path.display()))?;
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            CliError::input(format!("the bundle is larger than {} MiB", BUNDLE_BYTES >> 20)).at(path.display())
        })?;
        Ok(bytes)
    }

    /// Checks what every reader of the bundle requires.
    fn check(&self, directory: &Path, manifests: &str, media_type: &str) -> Result<(), CliError> {
        let shown = directory.display().to_string();
        let is_manifest = |path: &str| path.strip_prefix(manifests).and_then(|rest| rest.strip_prefix('/')).is_some();
        let has_csv = |(path, bytes): &(&String, &Vec<u8>)| {
            is_manifest(path) && yaml::first(bytes).is_ok_and(|object| object["kind"] == "ClusterServiceVersion")
        };
        let csvs: Vec<&String> = self.files.iter().filter(has_csv).map(|(path, _)| path).collect();
        let place = |path: &String| directory.join(path).display().to_string();
        let mut paths = BTreeMap::new();
        for path in self.files.keys() {
            if let Some(other) = paths.insert(path.to_lowercase(), path) {
                let name = other.rsplit('/').next().unwrap_or_default();
                return Err(CliError::input(format!(
                    "the name differs from that of {name} in upper and lower case only"
                ))
                .at(place(path))
                .hint("rename one of them: file systems that ignore case keep only one"));
            }
        }
        match (media_type, &csvs[..]) {
            (MEDIA_TYPE, [csv, ..]) => {
                let error =
                    CliError::input(format!("a bundle of the media type {MEDIA_TYPE} has no ClusterServiceVersion"));
                return Err(error.at(place(csv)).hint(format!("remove it, or set {MEDIA_TYPE_LABEL}: {REGISTRY_V1}")));
            }
            (_, [_, second, ..]) => {
                return Err(CliError::input("the bundle has several ClusterServiceVersions").at(place(second)));
            }
            _ => {}
        }
        let files: Vec<File> = self
            .files
            .iter()
            .filter(|(path, _)| media_type == MEDIA_TYPE || path.as_str() != OLM_YAML)
            .map(|(path, bytes)| {
                let path = path.strip_prefix(manifests).map_or_else(|| path.clone(), |rest| format!("manifests{rest}"));
                File::new(format!("{shown}/{path}"), bytes.clone())
            })
            .collect();
        match Bundle::read_whole(&shown, &files) {
            Ok(_) => Ok(()),
            Err(findings) => CliError::all(findings.iter().map(CliError::from)).map_or(Ok(()), Err),
        }
    }
}

/// Returns whether no part of a path below a directory is a symbolic link.
fn is_without_links(root: &Path, folder: &str) -> io::Result<bool> {
    let mut path = root.to_owned();
    for part in folder.split('/') {
        path.push(part);
        if path.symlink_metadata()?.is_symlink() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn link(path: &Path) -> CliError {
    CliError::input("this is a symbolic link, which an image must not contain")
        .at(path.display())
        .hint("replace it by the file or directory that it refers to")
}
