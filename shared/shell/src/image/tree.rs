//! The folders of an image that are kept: a model of them while layers are applied, and files on disk at the end.
//!
//! Contents are written to numbered files, and get their names only when all layers were applied: nothing that a layer says is
//! ever a path that is written to.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Limits;
use super::layer::{Entry, from_io, too_much};
use crate::cli::CliError;

/// Marks what a layer deletes.
const WHITEOUT: &str = ".wh.";
/// Marks a folder of which nothing from lower layers remains.
const OPAQUE: &str = ".wh..wh..opq";
/// Most links that are followed for one file.
const HOPS: usize = 40;
/// Most warnings that are kept of an image.
const WARNINGS: usize = 100;

/// The folders of an image that are kept, by the names that they have in it, and what becomes of them.
pub(super) struct Tree {
    staging: PathBuf,
    folders: Vec<(String, &'static str)>,
    /// What names them.
    named_by: &'static str,
    nodes: BTreeMap<String, Node>,
    layer: usize,
    next_file: u64,
    kept_left: u64,
    entries_left: usize,
    warnings: Vec<String>,
}

struct Node {
    layer: usize,
    kind: NodeKind,
}

enum NodeKind {
    /// The number of the file with the content.
    File(u64),
    Folder,
    Link(String),
}

impl Tree {
    /// `folders`: the image's folder and the folder that its content gets. Numbered files go to `staging`.
    pub(super) fn new(
        staging: PathBuf,
        folders: &[(String, &'static str)],
        named_by: &'static str,
        limits: &Limits,
    ) -> Result<Self, CliError> {
        fs::create_dir_all(&staging).map_err(|e| CliError::from(e).at(staging.display()))?;
        let folders = folders
            .iter()
            .map(|(folder, name)| {
                normal(folder).map(|folder| (folder, *name)).ok_or_else(|| {
                    CliError::input(format!("{named_by} names the folder {folder:?}, which is outside of it"))
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            staging,
            folders,
            named_by,
            nodes: BTreeMap::new(),
            layer: 0,
            next_file: 0,
            kept_left: limits.kept,
            entries_left: limits.entries,
            warnings: Vec::new(),
        })
    }

    /// What follows comes from the next layer.
    pub(super) fn next_layer(&mut self) {
        self.layer += 1;
    }

    /// Applies one entry.
    pub(super) fn apply(&mut self, entry: &Entry<'_>, content: &mut dyn Read) -> Result<(), CliError> {
        let (Entry::File { path, .. }
        | Entry::Folder { path }
        | Entry::Link { path, .. }
        | Entry::HardLink { path, .. }
        | Entry::Special { path }) = entry;
        let Some(path) = normal(path) else {
            return Err(CliError::input(format!("the image has an entry {path:?}, which leads out of the image"))
                .hint("do not use this image: it was made to write where it should not"));
        };
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if name == OPAQUE {
            self.remove_below(folder);
            return Ok(());
        }
        if let Some(gone) = name.strip_prefix(WHITEOUT) {
            let gone = join(folder, gone);
            self.remove_below(&gone);
            self.remove_lower(&gone);
            return Ok(());
        }
        if !self.is_kept(&path) {
            return Ok(());
        }
        match entry {
            Entry::File { path: shown, size } => self.file(&path, shown, *size, content),
            Entry::Folder { .. } => {
                if !matches!(self.nodes.get(&path), Some(Node { kind: NodeKind::Folder, .. })) {
                    self.put(path, NodeKind::Folder)?;
                }
                Ok(())
            }
            Entry::Link { target, .. } => self.put(path, NodeKind::Link((*target).to_owned())),
            Entry::HardLink { target, .. } => {
                let number = normal(target).and_then(|target| match self.nodes.get(&target)?.kind {
                    NodeKind::File(number) => Some(number),
                    _ => None,
                });
                match number {
                    Some(number) => {
                        self.charge(self.stored(number).metadata().map_or(0, |m| m.len()))?;
                        let copy = self.number();
                        fs::copy(self.stored(number), self.stored(copy))?;
                        self.put(path, NodeKind::File(copy))
                    }
                    None => {
                        self.warn(format!("{path}: left out, it is a hard link to {target}, which is not kept"));
                        Ok(())
                    }
                }
            }
            Entry::Special { .. } => {
                self.warn(format!("{path}: left out, it is a device or a pipe"));
                Ok(())
            }
        }
    }

    fn file(&mut self, path: &str, shown: &str, size: u64, content: &mut dyn Read) -> Result<(), CliError> {
        if size > self.kept_left {
            return Err(too_much(&format!("{shown} of {size} bytes, which is more than may be kept")));
        }
        self.charge(size)?;
        let number = self.number();
        let mut file = File::create_new(self.stored(number))?;
        let written = io::copy(content, &mut file).map_err(|e| from_io(&e))?;
        if written != size {
            return Err(CliError::input(format!("{shown} in a layer breaks off after {written} of {size} bytes")));
        }
        self.put(path.to_owned(), NodeKind::File(number))
    }

    fn number(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file
    }

    fn stored(&self, number: u64) -> PathBuf {
        self.staging.join(number.to_string())
    }

    fn charge(&mut self, bytes: u64) -> Result<(), CliError> {
        self.kept_left =
            self.kept_left.checked_sub(bytes).ok_or_else(|| too_much("more bytes in its catalog than may be kept"))?;
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        }
    }

    fn is_kept(&self, path: &str) -> bool {
        self.folders.iter().any(|(folder, _)| is_below(path, folder))
    }

    /// In place of what had the name, and of files that stand where it needs folders.
    fn put(&mut self, path: String, kind: NodeKind) -> Result<(), CliError> {
        self.entries_left = self.entries_left.checked_sub(1).ok_or_else(|| too_much("more files than may be kept"))?;
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            if self.nodes.get(parent).is_some_and(|n| !matches!(n.kind, NodeKind::Folder)) {
                self.remove(parent);
            }
            above = parent;
        }
        if !matches!(kind, NodeKind::Folder) {
            let below: Vec<String> = self.below(&path).collect();
            for path in &below {
                self.remove(path);
            }
        }
        self.remove(&path);
        self.nodes.insert(path, Node { layer: self.layer, kind });
        Ok(())
    }

    fn below(&self, folder: &str) -> impl Iterator<Item = String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let paths = self.nodes.range(prefix.clone()..).map(|(path, _)| path);
        paths.take_while(move |path| path.starts_with(&prefix)).cloned().collect::<Vec<_>>().into_iter()
    }

    /// Forgets what lower layers have below a folder.
    fn remove_below(&mut self, folder: &str) {
        let below: Vec<String> = self.below(folder).collect();
        for path in &below {
            self.remove_lower(path);
        }
    }

    fn remove_lower(&mut self, path: &str) {
        if self.nodes.get(path).is_some_and(|n| n.layer < self.layer) {
            self.remove(path);
        }
    }

    fn remove(&mut self, path: &str) {
        if let Some(Node { kind: NodeKind::File(number), .. }) = self.nodes.remove(path) {
            // A file that cannot be deleted goes with the whole folder.
            let _ = fs::remove_file(self.stored(number));
        }
    }

    /// Gives everything its name below `root`, and tells what was left out.
    pub(super) fn build(mut self, root: &Path) -> Result<Vec<String>, CliError> {
        let folders = self.folders.clone();
        for (folder, name) in &folders {
            if !self.below(folder).any(|_| true) && !self.nodes.contains_key(folder) {
                return Err(CliError::input(format!(
                    "{} names the folder /{folder}, which is not there",
                    self.named_by
                ))
                .hint("a folder that is a link in the image, or on a volume, is not followed"));
            }
            fs::create_dir_all(root.join(name))?;
        }
        // Links are copies of what they lead to, so they come before their targets are moved away.
        let links: Vec<(String, String)> = self
            .nodes
            .iter()
            .filter_map(|(path, node)| match &node.kind {
                NodeKind::Link(target) => Some((path.clone(), target.clone())),
                _ => None,
            })
            .collect();
        for (path, target) in links {
            match self.resolve(&path) {
                Some(Resolved::File(number)) => {
                    self.charge(self.stored(number).metadata().map_or(0, |m| m.len()))?;
                    for place in self.places(root, &path) {
                        make_parent(&place)?;
                        fs::copy(self.stored(number), place)?;
                    }
                }
                Some(Resolved::Folder) => {
                    self.warn(format!("{path}: left out, it is a link to a folder, {target}"));
                }
                None => self.warn(format!("{path}: left out, it is a link to {target}, which is not kept")),
            }
        }
        for (path, node) in &self.nodes {
            for (n, place) in self.places(root, path).into_iter().enumerate() {
                match node.kind {
                    NodeKind::Folder => fs::create_dir_all(place)?,
                    NodeKind::File(number) => {
                        make_parent(&place)?;
                        // Only overlapping labels give a file two places.
                        if n + 1 < self.places(root, path).len() {
                            fs::copy(self.stored(number), place)?;
                        } else {
                            fs::rename(self.stored(number), place)?;
                        }
                    }
                    NodeKind::Link(_) => {}
                }
            }
        }
        Ok(self.warnings)
    }

    /// Where a path of the image is to be found.
    fn places(&self, root: &Path, path: &str) -> Vec<PathBuf> {
        let inside = |(folder, name): &(String, &'static str)| {
            let rest = if folder.is_empty() { Some(path) } else { path.strip_prefix(folder.as_str()) }?;
            is_below(path, folder).then(|| root.join(name).join(rest.trim_start_matches('/')))
        };
        self.folders.iter().filter_map(inside).collect()
    }

    /// What a path stands for when links are followed, within what is kept.
    fn resolve(&self, path: &str) -> Option<Resolved> {
        let mut rest: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut at: Vec<String> = Vec::new();
        let mut hops = 0;
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    at.pop()?;
                    continue;
                }
                _ => at.push(part),
            }
            if let Some(Node { kind: NodeKind::Link(target), .. }) = self.nodes.get(&at.join("/")) {
                hops += 1;
                if hops > HOPS {
                    return None;
                }
                at.pop();
                if target.starts_with('/') {
                    at.clear();
                }
                rest.extend(target.rsplit('/').map(str::to_owned));
            }
        }
        let path = at.join("/");
        match self.nodes.get(&path).map(|n| &n.kind) {
            Some(NodeKind::File(number)) => Some(Resolved::File(*number)),
            Some(NodeKind::Folder) => Some(Resolved::Folder),
            Some(NodeKind::Link(_)) => None,
            None => self.below(&path).next().map(|_| Resolved::Folder),
        }
    }
}

enum Resolved {
    File(u64),
    Folder,
}

fn make_parent(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), fs::create_dir_all)
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A path in an image without its root and without `.` and `..`; nothing, when it leads out of the image.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
