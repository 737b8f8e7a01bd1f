//! Reads the files of bundles: from directories, OCI layouts, archives of them, and images.
//!
//! *Guarantees*: of a directory, no file outside of it is read, and nothing but regular files; the size of all files is limited.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use olm_core::budget::BUNDLE_BYTES;
use olm_core::bundle::File;
use olm_core::finding::Finding;
use olm_core::validate::{manifests_folder, unreadable_bundle, unreadable_file};

use crate::catalog::Ref;
use crate::cli::CliError;
use crate::image::{self, Location, Requested};
use crate::registry::image::{files as files_of_image, left_out};

/// Maximum number of files of a bundle. The largest published ones have two hundred.
const MOST_FILES: usize = 5_000;
/// How deep directories are searched for bundles.
const DEPTH: usize = 6;
/// Maximum number of entries of directories that are searched for bundles.
const MOST_ENTRIES: usize = 200_000;

/// The content of a bundle.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// The files, as `PATH/metadata/NAME` and `PATH/manifests/NAME`; of a directory, the manifests are where its annotations name them.
    pub(super) files: Vec<File>,
    /// What could not be read.
    pub(super) findings: Vec<Finding>,
}

/// Returns the references of bundles: a directory without `manifests` and `metadata` stands for the bundles below it.
///
/// # Errors
/// A directory cannot be read.
pub(super) fn bundles(refs: &[Ref]) -> Result<Vec<Ref>, CliError> {
    let mut found = Vec::new();
    for named in refs {
        match named {
            Ref::Directory(path) if !is_bundle(path) => {
                let mut left = MOST_ENTRIES;
                let before = found.len();
                below(path, DEPTH, &mut left, &mut found)?;
                if found.len() == before {
                    // It is reported as a bundle without manifests.
                    found.push(named.clone());
                }
            }
            Ref::Directory(_) | Ref::Layout(_) | Ref::File(_) | Ref::Image(_) => found.push(named.clone()),
            Ref::Stdin | Ref::CatalogSource(_) | Ref::Address(_) => {
                return Err(CliError::usage(format!("{named} is not a bundle"))
                    .hint("specify a directory with manifests/ and metadata/, or an image"));
            }
        }
    }
    Ok(found)
}

pub(super) fn is_bundle(path: &Path) -> bool {
    ["manifests", "metadata"].iter().any(|folder| path.join(folder).is_dir())
}

/// Adds the bundles below a directory, sorted by path. Hidden directories and links are not followed.
fn below(path: &Path, depth: usize, left: &mut usize, found: &mut Vec<Ref>) -> Result<(), CliError> {
    let named = |e: io::Error| CliError::from(e).at(path.display());
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(named)? {
        let entry = entry.map_err(named)?;
        *left = left.checked_sub(1).ok_or_else(|| {
            CliError::input(format!("has more than {MOST_ENTRIES} files and directories"))
                .at(path.display())
                .hint("name the directories of the bundles")
        })?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden && entry.file_type().map_err(named)?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    for folder in folders {
        if is_bundle(&folder) {
            found.push(Ref::Directory(folder));
        } else if depth > 1 {
            below(&folder, depth - 1, left, found)?;
        }
    }
    Ok(())
}

/// Returns the path of a bundle in messages.
pub(super) fn shown(named: &Ref) -> String {
    let shown = named.to_string();
    let shown = shown.strip_prefix("./").unwrap_or(&shown).trim_end_matches('/');
    if shown == "." { String::new() } else { shown.to_owned() }
}

/// Reads a bundle. What cannot be read is a finding, so that other bundles are validated nevertheless.
pub(super) fn read(named: &Ref, images: &image::Options) -> Read {
    let shown = shown(named);
    let failed = |error: &CliError| {
        let finding = unreadable_bundle(error.to_string()).at(&shown, 0);
        Read { findings: vec![finding.hint(error.hints.join("; "))], ..Read::default() }
    };
    let location = match named {
        Ref::Directory(path) => return of_directory(path, &shown),
        Ref::Image(reference) => match reference.parse::<Location>() {
            Ok(location) => location,
            Err(error) => return failed(&error.into()),
        },
        Ref::Layout(path) | Ref::File(path) => Location::Layout { path: path.clone(), name: None },
        Ref::Stdin | Ref::CatalogSource(_) | Ref::Address(_) => return Read::default(),
    };
    let limits = image::Limits { kept: images.limits.kept.min(BUNDLE_BYTES), ..images.limits };
    match image::pull_blocking(&location, Requested::Bundle, &image::Options { limits, ..images.clone() }) {
        Ok(content) => {
            let mut read = Read { findings: left_out(&location, &content).collect(), ..Read::default() };
            match files_of_image(&content.root) {
                Ok(files) => {
                    let named = |file: File| File::new(format!("{shown}/{}", file.path), file.bytes);
                    read.files = files.into_iter().map(named).collect();
                }
                Err(error) => return failed(&error.into()),
            }
            read
        }
        Err(error) => failed(&error.into()),
    }
}

/// The state of reading a directory.
struct Reader {
    /// The directory, without links.
    root: PathBuf,
    left: u64,
    read: Read,
}

fn of_directory(path: &Path, shown: &str) -> Read {
    let mut reader = Reader {
        root: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        left: BUNDLE_BYTES,
        read: Read::default(),
    };
    let within = |folder: &str| if shown.is_empty() { folder.to_owned() } else { format!("{shown}/{folder}") };
    reader.folder(&path.join("metadata"), &within("metadata"));
    let manifests = manifests_folder(shown, &reader.read.files);
    reader.folder(&path.join(&manifests), &within(&manifests));
    reader.read
}

impl Reader {
    fn refuse(&mut self, shown: &str, message: impl Into<String>) {
        self.read.findings.push(unreadable_file(message).at(shown, 0));
    }

    /// Returns whether a link leads out of the bundle.
    fn leaves(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|target| !target.starts_with(&self.root))
    }

    fn folder(&mut self, path: &Path, shown: &str) {
        if !path.exists() {
            return;
        }
        if self.leaves(path) {
            return self.refuse(shown, "the directory is a link to a place outside of the bundle, and is not read");
        }
        let entries = fs::read_dir(path).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.refuse(shown, format!("cannot be read: {error}")),
        };
        entries.sort();
        for entry in entries {
            if self.read.files.len() >= MOST_FILES {
                return self.refuse(shown, format!("the bundle has more than {MOST_FILES} files"));
            }
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = format!("{shown}/{name}");
            if self.leaves(&entry) {
                self.refuse(&file, "the file is a link to a place outside of the bundle, and is not read");
                continue;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => {
                    // The core reports it.
                    self.read.files.push(File::new(format!("{file}/"), Vec::new()));
                }
                Ok(metadata) if metadata.is_file() => self.file(&entry, file),
                Ok(_) => self.refuse(&file, "this is not a regular file"),
                Err(error) => self.refuse(&file, format!("cannot be read: {error}")),
            }
        }
    }

    fn file(&mut self, path: &Path, shown: String) {
        let mut bytes = Vec::new();
        match fs::File::open(path).and_then(|file| file.take(self.left + 1).read_to_end(&mut bytes)) {
            Ok(size) if size as u64 > self.left => {
                let most = BUNDLE_BYTES >> 20;
                self.refuse(&shown, format!("the files of the bundle have more than {most} MiB"));
            }
            Ok(size) => {
                self.left -= size as u64;
                self.read.files.push(File::new(shown, bytes));
            }
            Err(error) => self.refuse(&shown, format!("cannot be read: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_that_the_annotations_name_is_read_if_it_is_in_the_bundle() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        for (path, text) in [("bundle/manifests/a.yaml", "a: 1"), ("bundle/deploy/olm/b.yaml", "b: 1"), ("c.yaml", "")]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir(bundle.join("metadata")).unwrap();
        let files = |manifests: &str| {
            let key = "operators.operatorframework.io.bundle.manifests.v1";
            fs::write(bundle.join("metadata/annotations.yaml"), format!("annotations: {{{key}: {manifests}}}"))
                .unwrap();
            let read = of_directory(&bundle, "shown");
            assert_eq!(read.findings, []);
            read.files.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        let annotations = "shown/metadata/annotations.yaml";
        assert_eq!(files("deploy/olm/"), [annotations, "shown/deploy/olm/b.yaml"]);
        for manifests in ["manifests/", "..", "../", "/../", "metadata/", "''"] {
            assert_eq!(files(manifests), [annotations, "shown/manifests/a.yaml"], "{manifests}");
        }
    }
}
