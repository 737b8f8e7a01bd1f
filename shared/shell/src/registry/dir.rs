//! A catalog in a local directory.
//!
//! Every file below the directory counts, `.indexignore` and links considered. A folder with `manifests/` and `metadata/` is a
//! bundle. `bundles.txt` in the directory itself names further bundle directories, one a line, relative to any of the
//! directory's ancestors.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use olm_core::catalog::{Catalog, Load, Parsed};
use olm_core::finding::Finding;

use super::read::{self, Item};
use crate::cli::{CliError, ErrorKind};

const IGNORE_FILE: &str = ".indexignore";
const BUNDLE_LIST: &str = "bundles.txt";

/// Reads a catalog directory. What is wrong with single files, bundles and packages is among the findings.
pub fn load(directory: &Path) -> Result<Load, CliError> {
    Ok(index(directory)?.load())
}

/// Reads a catalog directory, without asking yet whether its packages are sound.
pub fn index(directory: &Path) -> Result<Catalog, CliError> {
    Ok(read::index(items(directory)?))
}

/// What there is to read of a catalog directory, or of a bundle's.
pub(crate) fn items(directory: &Path) -> Result<Vec<Item>, CliError> {
    items_shown_as(directory, directory)
}

/// The same, of a directory that people know by another name.
pub(crate) fn items_shown_as(directory: &Path, shown: &Path) -> Result<Vec<Item>, CliError> {
    let refused = |e: io::Error| CliError::new(ErrorKind::Io, format!("cannot read: {e}")).at(shown.display());
    let root = directory.canonicalize().map_err(refused)?;
    std::fs::read_dir(&root).map_err(refused)?;
    let mut walker = Walker { shown: shown.to_owned(), root, ignores: Vec::new(), bundle: None, items: Vec::new() };
    if is_bundle(&walker.root) {
        walker.bundle(Path::new(""));
    } else {
        walker.walk(Path::new(""));
        walker.listed_bundles();
    }
    Ok(walker.items)
}

struct Walker {
    /// The directory as people named it, which begins the paths in messages.
    shown: PathBuf,
    /// The same without links.
    root: PathBuf,
    /// The ignore files of the directories being walked, outermost first.
    ignores: Vec<Gitignore>,
    /// The files of the bundle directory being walked.
    bundle: Option<Vec<(String, PathBuf)>>,
    items: Vec<Item>,
}

impl Walker {
    /// Takes in all files below a folder of the root.
    fn walk(&mut self, folder: &Path) {
        let path = self.root.join(folder);
        let depth = self.ignores.len();
        let ignore_file = path.join(IGNORE_FILE);
        if ignore_file.is_file() {
            let mut builder = GitignoreBuilder::new(&path);
            if let Some(e) = builder.add(&ignore_file) {
                self.report(&folder.join(IGNORE_FILE), "unreadable-file", e.to_string(), "");
            }
            match builder.build() {
                Ok(ignore) => self.ignores.push(ignore),
                Err(e) => self.report(&folder.join(IGNORE_FILE), "unreadable-file", e.to_string(), ""),
            }
        }
        match sorted_entries(&path) {
            Ok(names) => names.iter().for_each(|name| self.entry(&folder.join(name))),
            Err(e) => self.report(folder, "unreadable-file", e.to_string(), ""),
        }
        self.ignores.truncate(depth);
    }

    fn entry(&mut self, entry: &Path) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        // What begins with two dots is how Kubernetes lays out mounted ConfigMaps and Secrets; the links beside it lead there.
        if name.starts_with("..") || name == IGNORE_FILE || entry == Path::new(BUNDLE_LIST) {
            return;
        }
        let path = self.root.join(entry);
        let Ok(kind) = path.symlink_metadata().map(|m| m.file_type()) else { return };
        if self.is_ignored(&path, kind.is_dir()) {
            return;
        }
        if kind.is_dir() {
            return self.folder(&path, entry);
        }
        if kind.is_symlink() {
            match path.canonicalize() {
                Ok(target) if !target.starts_with(&self.root) => {
                    let message = format!("the link leads out of the catalog, to {}", target.display());
                    return self.report(entry, "link-leads-out", message, "put the file itself into the catalog");
                }
                Ok(target) if target.is_dir() => {
                    let hint = "put the files themselves into the catalog";
                    return self.report(
                        entry,
                        "link-to-directory",
                        "links to directories are not followed".into(),
                        hint,
                    );
                }
                Ok(_) => {}
                Err(e) => return self.report(entry, "unreadable-file", format!("the link is broken: {e}"), ""),
            }
        }
        self.take(path, entry);
    }

    fn folder(&mut self, path: &Path, entry: &Path) {
        if self.bundle.is_some() || !is_bundle(path) {
            return self.walk(entry);
        }
        self.bundle(entry);
    }

    fn bundle(&mut self, entry: &Path) {
        self.bundle = Some(Vec::new());
        self.walk(entry);
        let files = self.bundle.take().unwrap_or_default();
        self.items.push(Item::Bundle(self.shown(entry), files));
    }

    fn is_ignored(&self, path: &Path, is_directory: bool) -> bool {
        self.ignores.iter().any(|i| i.matched_path_or_any_parents(path, is_directory).is_ignore())
    }

    fn take(&mut self, path: PathBuf, entry: &Path) {
        if !path.is_file() {
            return self.report(entry, "unreadable-file", "not a regular file".into(), "");
        }
        let shown = self.shown(entry);
        match &mut self.bundle {
            Some(files) => files.push((shown, path)),
            None => self.items.push(Item::File(shown, path)),
        }
    }

    /// Takes in the bundle directories that the list names.
    fn listed_bundles(&mut self) {
        let Ok(list) = std::fs::read_to_string(self.root.join(BUNDLE_LIST)) else { return };
        let mut seen = BTreeSet::new();
        for (index, line) in list.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || !seen.insert(line) {
                continue;
            }
            match self.root.ancestors().map(|a| a.join(line)).find(|p| p.is_dir()) {
                Some(bundle) => self.listed_bundle(&bundle, line),
                None => self.items.push(Item::Parsed(Parsed::finding(
                    Finding::new("missing-bundle", format!("no bundle directory {line}"))
                        .at(&self.shown(Path::new(BUNDLE_LIST)), index + 1)
                        .hint("name a directory relative to this catalog's directory or to one above it"),
                ))),
            }
        }
    }

    fn listed_bundle(&mut self, bundle: &Path, shown: &str) {
        let mut files = Vec::new();
        for folder in ["manifests", "metadata"] {
            let names = match sorted_entries(&bundle.join(folder)) {
                Ok(names) => names,
                Err(e) => {
                    let place = format!("{shown}/{folder}");
                    self.items.push(Item::Parsed(Parsed::finding(
                        Finding::new("unreadable-file", e.to_string()).at(&place, 0),
                    )));
                    continue;
                }
            };
            for path in names.iter().map(|name| bundle.join(folder).join(name)).filter(|p| p.is_file()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                files.push((format!("{shown}/{folder}/{name}"), path));
            }
        }
        self.items.push(Item::Bundle(shown.to_owned(), files));
    }

    fn shown(&self, entry: &Path) -> String {
        let shown = if entry.as_os_str().is_empty() { self.shown.clone() } else { self.shown.join(entry) };
        shown.to_string_lossy().into_owned()
    }

    fn report(&mut self, entry: &Path, code: &'static str, message: String, hint: &str) {
        let finding = Finding::new(code, message).at(&self.shown(entry), 0).hint(hint);
        self.items.push(Item::Parsed(Parsed::finding(finding)));
    }
}

/// Would a file of a catalog directory be passed over?
pub(crate) fn is_ignored(directory: &Path, file: &Path) -> bool {
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(directory));
    let matched = |folder: &Path| {
        let (ignore, _) = Gitignore::new(folder.join(IGNORE_FILE));
        ignore.matched_path_or_any_parents(file, false).is_ignore()
    };
    folders.into_iter().any(matched)
}

/// A folder with manifests and metadata is a bundle.
pub(crate) fn is_bundle(folder: &Path) -> bool {
    ["manifests", "metadata"].iter().all(|half| folder.join(half).is_dir())
}

fn sorted_entries(path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> =
        std::fs::read_dir(path)?.map(|entry| entry.map(|e| e.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}
