//! Reads a catalog in a local directory.
//!
//! All files below the directory are read, except those that `.indexignore` excludes. A folder with `manifests/` and `metadata/` is
//! a bundle. `bundles.txt` in the directory itself lists further bundle directories, one in each line. In a directory that the user
//! names, they are relative to it or to any of its ancestors; in other directories, they are relative to it and must be below it.
//!
//! *Guarantees.* Links that lead out of the directory, or out of a listed bundle, are not followed. The size of ignore files and
//! lists and the depth of folders are limited.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use olm_core::catalog::{CatalogIndex, Loaded, Parsed};
use olm_core::finding::Finding;

use super::Error;
use super::read::{self, Item};
use super::share::Share;
use crate::image::Content;

const IGNORE_FILE: &str = ".indexignore";
const BUNDLE_LIST: &str = "bundles.txt";

/// Largest ignore file or list of bundles, in bytes.
const LONGEST_LIST: u64 = 256 << 10;
/// Most patterns of all ignore files of a catalog. A pattern may take 10 kB of memory; public catalogs have fewer than ten patterns.
const MOST_PATTERNS: usize = 1000;
/// Longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1024;
/// Greatest depth of nested folders. Public catalogs have a depth of three.
const DEEPEST: usize = 64;

/// The origin of a directory, which determines the allowed entries of its list of bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The user.
    User,
    /// An image, an archive or a must-gather. Nothing outside of the directory is read.
    Content,
}

/// Reads a catalog directory that the user names. Invalid files, bundles and packages are reported as findings.
pub fn load(directory: &Path) -> Result<Loaded, Error> {
    Ok(index(directory)?.load())
}

/// Reads a catalog directory of an image or a must-gather. Nothing outside of the directory is read.
pub fn load_content(directory: &Path) -> Result<Loaded, Error> {
    Ok(read::index(content_items(directory, directory)?)?.load())
}

/// Does the same for a catalog whose memory is limited by a share.
pub(super) fn load_sharing(directory: &Path, memory: &mut Share) -> Result<Loaded, Error> {
    Ok(read::index_sharing(content_items(directory, directory)?, memory)?.load())
}

/// Reads the catalog of an image. The image is not deleted as long as its files may be read again.
pub fn load_image(image: Content) -> Result<Loaded, Error> {
    let items = content_items(&image.root, &image.root)?;
    Ok(read::index_of(items, Some(Arc::new(image)))?.load())
}

/// Reads a catalog directory that the user names, without validating its packages.
pub fn index(directory: &Path) -> Result<CatalogIndex, Error> {
    read::index(items(directory)?)
}

/// Returns the items of a catalog directory or bundle directory that the user names.
pub(crate) fn items(directory: &Path) -> Result<Vec<Item>, Error> {
    walk(directory, directory, Origin::User)
}

/// Returns the items of a directory of other origin, which has the name `shown` in messages.
pub(crate) fn content_items(directory: &Path, shown: &Path) -> Result<Vec<Item>, Error> {
    walk(directory, shown, Origin::Content)
}

fn walk(directory: &Path, shown: &Path, origin: Origin) -> Result<Vec<Item>, Error> {
    let refused = |source| Error::Unreadable { path: shown.to_owned(), source };
    let root = directory.canonicalize().map_err(refused)?;
    std::fs::read_dir(&root).map_err(refused)?;
    let mut walker = Walker {
        shown: shown.to_owned(),
        root,
        origin,
        ignores: Vec::new(),
        patterns_left: MOST_PATTERNS,
        depth: 0,
        bundle: None,
        items: Vec::new(),
    };
    if is_bundle(&walker.root) {
        walker.bundle(Path::new(""));
    } else {
        walker.walk(Path::new(""));
        walker.listed_bundles();
    }
    Ok(walker.items)
}

struct Walker {
    /// The directory as the user named it, for the paths in messages.
    shown: PathBuf,
    /// The canonical path of the directory.
    root: PathBuf,
    origin: Origin,
    /// Number of patterns that further ignore files may have.
    patterns_left: usize,
    /// Depth of the folder being walked.
    depth: usize,
    /// The ignore files of the directories being walked, outermost first.
    ignores: Vec<Gitignore>,
    /// The files of the bundle directory being walked.
    bundle: Option<Vec<(String, PathBuf)>>,
    items: Vec<Item>,
}

impl Walker {
    /// Adds all files below a folder of the root.
    fn walk(&mut self, folder: &Path) {
        let path = self.root.join(folder);
        if self.depth >= DEEPEST {
            let message = format!("the folder is more than {DEEPEST} folders deep and is left out");
            return self.report(folder, "unreadable-file", message, "put its files into a folder above it");
        }
        let ignores = self.ignores.len();
        self.ignore_file(&path, &folder.join(IGNORE_FILE));
        self.depth += 1;
        match sorted_entries(&path) {
            Ok(names) => names.iter().for_each(|name| self.entry(&folder.join(name))),
            Err(e) => self.report(folder, "unreadable-file", e.to_string(), ""),
        }
        self.depth -= 1;
        self.ignores.truncate(ignores);
    }

    /// Adds the patterns of a folder's ignore file, if it has one.
    fn ignore_file(&mut self, folder: &Path, entry: &Path) {
        let read = read_list(&folder.join(IGNORE_FILE), &self.root);
        let ignore = read.and_then(|text| text.map(|text| ignores(folder, &text, &mut self.patterns_left)).transpose());
        match ignore {
            Ok(None) => {}
            Ok(Some((ignore, wrong))) => {
                self.ignores.push(ignore);
                for (line, message) in wrong {
                    let finding = Finding::new("unreadable-file", message).at(&self.shown(entry), line);
                    self.items.push(Item::Parsed(Parsed::finding(finding)));
                }
            }
            Err(message) => self.report(entry, "unreadable-file", message, ""),
        }
    }

    fn entry(&mut self, entry: &Path) {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        // In mounted ConfigMaps and Secrets, names with two dots are internal folders of the kubelet; links lead to their files.
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

    /// Adds the bundle directories of the list.
    fn listed_bundles(&mut self) {
        let list = match read_list(&self.root.join(BUNDLE_LIST), &self.root) {
            Ok(Some(list)) => list,
            Ok(None) => return,
            Err(message) => return self.report(Path::new(BUNDLE_LIST), "unreadable-file", message, ""),
        };
        let mut seen = BTreeSet::new();
        for (index, line) in list.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match self.listed(line) {
                // A directory can be listed under several names.
                Ok(bundle) if seen.insert(bundle.clone()) => self.listed_bundle(&bundle, line),
                Ok(_) => {}
                Err(finding) => {
                    let finding = finding.at(&self.shown(Path::new(BUNDLE_LIST)), index + 1);
                    self.items.push(Item::Parsed(Parsed::finding(finding)));
                }
            }
        }
    }

    /// Returns the canonical path of the directory that a line of the list names.
    fn listed(&self, line: &str) -> Result<PathBuf, Finding> {
        let outside = |why: &str| {
            Finding::new("bundle-outside", format!("the bundle directory {line} {why} and is left out"))
                .hint("name a directory of the catalog by its path relative to the catalog")
        };
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(line).components().all(is_plain) {
            return Err(outside("is an absolute path or contains \"..\""));
        }
        let bases = self.root.ancestors().take(if self.origin == Origin::User { usize::MAX } else { 1 });
        let found = bases.map(|base| base.join(line)).find(|path| path.is_dir());
        let found = found.and_then(|path| path.canonicalize().ok()).ok_or_else(|| {
            let from = if self.origin == Origin::User {
                "this catalog's directory or to one above it"
            } else {
                "the catalog's"
            };
            Finding::new("missing-bundle", format!("no bundle directory {line}"))
                .hint(format!("name a directory relative to {from}"))
        })?;
        if self.origin == Origin::Content && !found.starts_with(&self.root) {
            return Err(outside("is a link that leads out of the catalog"));
        }
        Ok(found)
    }

    /// Adds a listed bundle. `bundle` is a canonical path.
    fn listed_bundle(&mut self, bundle: &Path, shown: &str) {
        let mut files = Vec::new();
        for folder in ["manifests", "metadata"] {
            let place = format!("{shown}/{folder}");
            let names = match sorted_entries(&bundle.join(folder)) {
                Ok(names) => names,
                Err(e) => {
                    self.items.push(Item::Parsed(Parsed::finding(
                        Finding::new("unreadable-file", e.to_string()).at(&place, 0),
                    )));
                    continue;
                }
            };
            for path in names.iter().map(|name| bundle.join(folder).join(name)).filter(|p| p.is_file()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if path.canonicalize().is_ok_and(|target| target.starts_with(bundle)) {
                    files.push((format!("{place}/{name}"), path));
                    continue;
                }
                let finding = Finding::new("link-leads-out", "the link leads out of the bundle's directory".to_owned());
                let finding = finding.at(&format!("{place}/{name}"), 0).hint("put the file itself into the bundle");
                self.items.push(Item::Parsed(Parsed::finding(finding)));
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

/// Returns whether the ignore files of a catalog directory exclude a file.
pub(crate) fn is_ignored(directory: &Path, file: &Path) -> bool {
    let Ok(root) = directory.canonicalize() else { return false };
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(directory));
    let mut patterns_left = MOST_PATTERNS;
    let matched = |folder: &Path| {
        let text = read_list(&folder.join(IGNORE_FILE), &root).ok().flatten();
        let ignore = text.and_then(|text| ignores(folder, &text, &mut patterns_left).ok());
        ignore.is_some_and(|(ignore, _)| ignore.matched_path_or_any_parents(file, false).is_ignore())
    };
    folders.into_iter().any(matched)
}

/// Problems of lines of a file, with the line numbers.
type Wrong = Vec<(usize, String)>;

/// Parses an ignore file. Returns the valid patterns, and the problems of the others.
///
/// # Errors
/// The catalog has too many patterns, or the patterns cannot be compiled.
fn ignores(folder: &Path, text: &str, left: &mut usize) -> Result<(Gitignore, Wrong), String> {
    let mut builder = GitignoreBuilder::new(folder);
    let mut wrong = Vec::new();
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        if line.len() > LONGEST_PATTERN {
            wrong.push((index + 1, format!("a pattern has more than {LONGEST_PATTERN} bytes and is left out")));
            continue;
        }
        *left = left.checked_sub(1).ok_or_else(|| {
            format!("the ignore files of a catalog may have {MOST_PATTERNS} patterns: this file is not used; name folders instead of files")
        })?;
        if let Err(e) = builder.add_line(None, line) {
            wrong.push((index + 1, e.to_string()));
        }
    }
    builder.build().map(|ignore| (ignore, wrong)).map_err(|e| e.to_string())
}

/// Reads the text of a file. Returns nothing if it does not exist.
///
/// # Errors
/// The file cannot be read, is too long, or is a link that leads out of `root`.
fn read_list(path: &Path, root: &Path) -> Result<Option<String>, String> {
    if !path.is_file() {
        return Ok(None);
    }
    let target = path.canonicalize().map_err(|e| e.to_string())?;
    if !target.starts_with(root) {
        return Err("the link leads out of the catalog; put the file itself into the catalog".to_owned());
    }
    let mut bytes = Vec::new();
    let file = File::open(target).map_err(|e| e.to_string())?;
    file.take(LONGEST_LIST + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > LONGEST_LIST {
        return Err(format!("the file has more than {LONGEST_LIST} bytes and is left out"));
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns whether a folder is a bundle, that is, has the folders `manifests` and `metadata`.
pub(crate) fn is_bundle(folder: &Path) -> bool {
    ["manifests", "metadata"].iter().all(|half| folder.join(half).is_dir())
}

fn sorted_entries(path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> =
        std::fs::read_dir(path)?.map(|entry| entry.map(|e| e.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}
