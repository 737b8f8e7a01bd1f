//! The folders of an image that are stored: a model in memory while layers are applied, and files on disk at the end.
//!
//! Contents are written to numbered files, and renamed after all layers were applied. Paths in a layer are never used
//! unnormalized as paths on disk.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::layer::Entry;
use super::manifest::Folder;
use super::{Error, Excess, Limits};

/// The prefix of the name of an entry that a layer deletes.
const WHITEOUT: &str = ".wh.";
/// The marker in a folder that hides all content of lower layers.
const OPAQUE: &str = ".wh..wh..opq";
/// Most links that are followed for one file.
const HOPS: usize = 40;
/// Most path components that are resolved for all links of an image.
const LINK_STEPS: usize = 1_000_000;
/// Greatest depth of nested folders. Code that walks the folders recursively relies on it.
const DEEPEST: usize = 64;
/// Most warnings about an image.
const WARNINGS: usize = 100;

/// The folders of an image that are stored, with their names in the image and in the content.
pub(super) struct Tree {
    staging: PathBuf,
    folders: Vec<Stored>,
    /// Whether links, devices, absolute paths and duplicate paths are refused.
    is_strict: bool,
    /// The source of the names, for messages.
    named_by: &'static str,
    nodes: Nodes,
    next_file: u64,
    /// Most bytes that are stored, and the number that is left.
    kept: u64,
    kept_left: u64,
    entries: usize,
    entries_left: usize,
    /// Counted folders that have no entry of their own.
    implied: HashSet<String>,
    warnings: Vec<String>,
    /// Number of paths that whiteouts have visited.
    #[cfg(test)]
    looked: usize,
}

/// A folder of an image that is stored.
#[derive(Clone)]
struct Stored {
    /// Its normalized path in the image.
    path: String,
    /// Its path in the content.
    name: String,
    is_optional: bool,
}

enum Node {
    /// A file, with the number of its content.
    File(u64),
    Folder,
    Link(String),
}

/// The nodes by path. Nodes of lower layers are separate, because a whiteout affects only these and should visit no others.
#[derive(Default)]
struct Nodes {
    lower: BTreeMap<String, Node>,
    layer: BTreeMap<String, Node>,
}

impl Nodes {
    fn next_layer(&mut self) {
        self.lower.extend(std::mem::take(&mut self.layer));
    }

    fn get(&self, path: &str) -> Option<&Node> {
        self.layer.get(path).or_else(|| self.lower.get(path))
    }

    fn remove(&mut self, path: &str) -> Option<Node> {
        self.layer.remove(path).or_else(|| self.lower.remove(path))
    }

    /// Returns all paths below a folder.
    fn below(&self, folder: &str) -> impl Iterator<Item = &String> {
        below(&self.lower, folder).chain(below(&self.layer, folder))
    }
}

fn below<'n>(nodes: &'n BTreeMap<String, Node>, folder: &str) -> impl Iterator<Item = &'n String> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let paths = nodes.range(prefix.clone()..).map(|(path, _)| path);
    paths.take_while(move |path| path.starts_with(&prefix))
}

impl Tree {
    /// Returns an empty tree. `staging` receives the numbered files.
    pub(super) fn new(
        staging: PathBuf,
        folders: &[Folder],
        named_by: &'static str,
        limits: &Limits,
    ) -> Result<Self, Error> {
        fs::create_dir_all(&staging).map_err(|source| Error::File { path: staging.clone(), source })?;
        let folders = folders
            .iter()
            .map(|folder| {
                let outside = || Error::FolderOutside { named_by, folder: folder.path.clone() };
                let path = normal(&folder.path).ok_or_else(outside)?;
                let name = folder.name.map_or_else(|| path.clone(), str::to_owned);
                Ok(Stored { path, name, is_optional: folder.is_optional })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            staging,
            folders,
            is_strict: false,
            named_by,
            nodes: Nodes::default(),
            next_file: 0,
            kept: limits.kept,
            kept_left: limits.kept,
            entries: limits.entries,
            entries_left: limits.entries,
            implied: HashSet::new(),
            warnings: Vec::new(),
            #[cfg(test)]
            looked: 0,
        })
    }

    /// Returns the tree such that entries with links, devices, absolute paths and duplicate paths are refused.
    pub(super) fn strict(self, is_strict: bool) -> Self {
        Self { is_strict, ..self }
    }

    /// Starts the next layer.
    pub(super) fn next_layer(&mut self) {
        self.nodes.next_layer();
    }

    /// Applies one entry.
    pub(super) fn apply(&mut self, entry: &Entry<'_>, content: &mut dyn Read) -> Result<(), Error> {
        let (Entry::File { path, .. }
        | Entry::Folder { path }
        | Entry::Link { path, .. }
        | Entry::HardLink { path, .. }
        | Entry::Special { path }) = entry;
        let shown = *path;
        let Some(path) = normal(path) else {
            return Err(Error::LeadsOut(shown.to_owned()));
        };
        if self.is_strict {
            self.refuse(entry, shown, &path)?;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if name == OPAQUE {
            self.remove_below(folder);
            return Ok(());
        }
        if let Some(deleted) = name.strip_prefix(WHITEOUT) {
            let deleted = join(folder, deleted);
            self.remove_below(&deleted);
            self.remove_lower(&deleted);
            return Ok(());
        }
        if !self.is_kept(&path) {
            return Ok(());
        }
        if path.split('/').count() > DEEPEST {
            return Err(Error::TooMuch(Excess::Depth(DEEPEST)));
        }
        match entry {
            Entry::File { path: shown, size } => self.file(&path, shown, *size, content),
            Entry::Folder { .. } => {
                if !matches!(self.nodes.get(&path), Some(Node::Folder)) {
                    self.put(path, Node::Folder)?;
                }
                Ok(())
            }
            Entry::Link { target, .. } => self.put(path, Node::Link((*target).to_owned())),
            Entry::HardLink { target, .. } => {
                let number = normal(target).and_then(|target| match self.nodes.get(&target)? {
                    Node::File(number) => Some(*number),
                    _ => None,
                });
                match number {
                    Some(number) => {
                        self.charge(self.stored(number).metadata().map_or(0, |m| m.len()))?;
                        let copy = self.number();
                        fs::copy(self.stored(number), self.stored(copy))?;
                        self.put(path, Node::File(copy))
                    }
                    None => {
                        self.warn(format!(
                            "{path}: left out, because it is a hard link to {target}, which is not stored"
                        ));
                        Ok(())
                    }
                }
            }
            Entry::Special { .. } => {
                self.warn(format!("{path}: left out, because it is a device or a pipe"));
                Ok(())
            }
        }
    }

    /// Refuses what no image of a bundle needs.
    fn refuse(&self, entry: &Entry<'_>, shown: &str, path: &str) -> Result<(), Error> {
        let hostile = |what| Err(Error::Hostile { what, path: shown.to_owned() });
        if shown.starts_with('/') {
            return hostile("an absolute path");
        }
        if shown.split('/').any(|part| part == "..") {
            return hostile("a path with \"..\"");
        }
        if !self.is_kept(path) {
            // Links and devices elsewhere in an image are not stored.
            return Ok(());
        }
        if path.chars().any(char::is_control) || path.contains('\\') {
            return hostile("a path with control characters or backslashes");
        }
        let is_file = |folder: &str| matches!(self.nodes.layer.get(folder), Some(Node::File(_)));
        if path.match_indices('/').any(|(end, _)| is_file(&path[..end])) {
            return hostile("a path below a file");
        }
        match entry {
            Entry::Link { .. } => hostile("a symbolic link"),
            Entry::HardLink { .. } => hostile("a hard link"),
            Entry::Special { .. } => hostile("a device or a pipe"),
            // Folders may be repeated.
            Entry::Folder { .. } if matches!(self.nodes.layer.get(path), None | Some(Node::Folder)) => Ok(()),
            Entry::File { .. }
                if !self.nodes.layer.contains_key(path) && below(&self.nodes.layer, path).next().is_none() =>
            {
                Ok(())
            }
            Entry::File { .. } | Entry::Folder { .. } => hostile("several entries of one path in a layer"),
        }
    }

    fn file(&mut self, path: &str, shown: &str, size: u64, content: &mut dyn Read) -> Result<(), Error> {
        if size > self.kept_left {
            return Err(Error::TooMuch(Excess::File { path: shown.to_owned(), size, most: self.kept }));
        }
        self.charge(size)?;
        let number = self.number();
        let mut file = File::create_new(self.stored(number))?;
        let got = io::copy(content, &mut file)?;
        if got != size {
            return Err(Error::ShortFile { path: shown.to_owned(), got, size });
        }
        self.put(path.to_owned(), Node::File(number))
    }

    fn number(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file
    }

    fn stored(&self, number: u64) -> PathBuf {
        self.staging.join(number.to_string())
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Error> {
        self.kept_left = self.kept_left.checked_sub(bytes).ok_or(Error::TooMuch(Excess::Bytes(self.kept)))?;
        Ok(())
    }

    fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        }
    }

    fn is_kept(&self, path: &str) -> bool {
        self.folders.iter().any(|folder| is_below(path, &folder.path))
    }

    /// Inserts a node. Replaces the node with the same path, and files where its parent folders are needed.
    fn put(&mut self, path: String, kind: Node) -> Result<(), Error> {
        self.count()?;
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/') {
            // A folder without an entry of its own counts like one with an entry.
            if self.nodes.get(parent).is_none() && self.implied.insert(parent.to_owned()) {
                self.count()?;
            }
            if self.nodes.get(parent).is_some_and(|node| !matches!(node, Node::Folder)) {
                self.remove(parent);
            }
            above = parent;
        }
        if !matches!(kind, Node::Folder) {
            let below: Vec<String> = self.nodes.below(&path).cloned().collect();
            for path in &below {
                self.remove(path);
            }
        }
        self.remove(&path);
        self.nodes.layer.insert(path, kind);
        Ok(())
    }

    /// Counts one more file, folder or link.
    fn count(&mut self) -> Result<(), Error> {
        self.entries_left = self.entries_left.checked_sub(1).ok_or(Error::TooMuch(Excess::Files(self.entries)))?;
        Ok(())
    }

    /// Removes the nodes of lower layers below a folder.
    fn remove_below(&mut self, folder: &str) {
        let below: Vec<String> = below(&self.nodes.lower, folder).cloned().collect();
        for path in &below {
            self.remove_lower(path);
        }
    }

    fn remove_lower(&mut self, path: &str) {
        #[cfg(test)]
        {
            self.looked += 1;
        }
        if let Some(Node::File(number)) = self.nodes.lower.remove(path) {
            let _ = fs::remove_file(self.stored(number));
        }
    }

    fn remove(&mut self, path: &str) {
        if let Some(Node::File(number)) = self.nodes.remove(path) {
            // A failure is ignored: the staging folder is deleted later.
            let _ = fs::remove_file(self.stored(number));
        }
    }

    /// Creates the files and folders below `root`. Returns a warning for each entry that was left out.
    pub(super) fn build(mut self, root: &Path) -> Result<Vec<String>, Error> {
        self.nodes.next_layer();
        let folders = self.folders.clone();
        for Stored { path, name, is_optional } in &folders {
            let is_file = matches!(self.nodes.get(path), Some(Node::File(_)));
            if is_file || self.nodes.below(path).next().is_none() && self.nodes.get(path).is_none() {
                if *is_optional && !is_file {
                    continue;
                }
                return Err(Error::NoFolder { named_by: self.named_by, folder: path.clone() });
            }
            fs::create_dir_all(root.join(name))?;
        }
        // Links become copies of their targets, which must be made before the targets are moved.
        let links: Vec<(String, String)> = self
            .nodes
            .lower
            .iter()
            .filter_map(|(path, node)| match node {
                Node::Link(target) => Some((path.clone(), target.clone())),
                _ => None,
            })
            .collect();
        let mut steps = LINK_STEPS;
        for (path, target) in links {
            match self.resolve(&path, &mut steps) {
                Some(Resolved::File(number)) => {
                    self.charge(self.stored(number).metadata().map_or(0, |m| m.len()))?;
                    for place in self.places(root, &path) {
                        make_parent(&place)?;
                        fs::copy(self.stored(number), place)?;
                    }
                }
                Some(Resolved::Folder) => {
                    self.warn(format!("{path}: left out, because it is a link to the folder {target}"));
                }
                None => self.warn(format!("{path}: left out, because it is a link to {target}, which is not stored")),
            }
        }
        for (path, node) in &self.nodes.lower {
            for (n, place) in self.places(root, path).into_iter().enumerate() {
                match node {
                    Node::Folder => fs::create_dir_all(place)?,
                    Node::File(number) => {
                        make_parent(&place)?;
                        // A file has several places only if the labels overlap.
                        if n + 1 < self.places(root, path).len() {
                            fs::copy(self.stored(*number), place)?;
                        } else {
                            fs::rename(self.stored(*number), place)?;
                        }
                    }
                    Node::Link(_) => {}
                }
            }
        }
        Ok(self.warnings)
    }

    /// Returns the places of a path of the image in the content.
    fn places(&self, root: &Path, path: &str) -> Vec<PathBuf> {
        let inside = |Stored { path: folder, name, .. }: &Stored| {
            let rest = if folder.is_empty() { Some(path) } else { path.strip_prefix(folder.as_str()) }?;
            is_below(path, folder).then(|| root.join(name).join(rest.trim_start_matches('/')))
        };
        self.folders.iter().filter_map(inside).collect()
    }

    /// Follows links within the stored folders. Each path component takes one of the `steps`.
    fn resolve(&self, path: &str, steps: &mut usize) -> Option<Resolved> {
        let mut rest: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
        let mut at: Vec<String> = Vec::new();
        let mut hops = 0;
        while let Some(part) = rest.pop() {
            *steps = steps.checked_sub(1)?;
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    at.pop()?;
                    continue;
                }
                _ => at.push(part),
            }
            if let Some(Node::Link(target)) = self.nodes.get(&at.join("/")) {
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
        match self.nodes.get(&path) {
            Some(Node::File(number)) => Some(Resolved::File(*number)),
            Some(Node::Folder) => Some(Resolved::Folder),
            Some(Node::Link(_)) => None,
            None => self.nodes.below(&path).next().map(|_| Resolved::Folder),
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

/// Normalizes a path in an image: without its root, `.` and `..`. Returns nothing if it leads out of the image.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folder: &Path) -> Tree {
        let folders = [Folder::new("configs", Some(""))];
        Tree::new(folder.join("files"), &folders, "a label", &Limits::default()).unwrap()
    }

    fn apply(tree: &mut Tree, path: &str) -> Result<(), Error> {
        let entry = Entry::File { path, size: 1 };
        if path.ends_with('/') {
            tree.apply(&Entry::Folder { path }, &mut io::empty())
        } else {
            tree.apply(&entry, &mut &b"x"[..])
        }
    }

    /// A single entry can create thousands of folders.
    #[test]
    fn folders_without_an_entry_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { entries: 20, ..Limits::default() };
        let folders = [Folder::new("configs", Some(""))];
        let mut tree = Tree::new(folder.path().join("files"), &folders, "a label", &limits).unwrap();
        tree.next_layer();
        let deep = |n: usize| format!("configs/{n}/{}c.yaml", "a/".repeat(5));
        apply(&mut tree, &deep(0)).unwrap();
        apply(&mut tree, &deep(1)).unwrap();
        let error = apply(&mut tree, &deep(2)).unwrap_err();
        assert!(matches!(error, Error::TooMuch(Excess::Files(20))), "{error:?}");
    }

    /// Whiteouts visit only paths of lower layers, and each of them once.
    #[test]
    fn whiteouts_take_linear_time() {
        const MANY: usize = 5000;
        let folder = tempfile::tempdir().unwrap();
        let mut tree = tree(folder.path());
        tree.next_layer();
        apply(&mut tree, "configs/old").unwrap();
        tree.next_layer();
        for n in 0..MANY {
            apply(&mut tree, &format!("configs/{n}/")).unwrap();
        }
        for n in 0..MANY {
            apply(&mut tree, "configs/.wh..wh..opq").unwrap();
            apply(&mut tree, &format!("configs/.wh.{n}")).unwrap();
        }
        apply(&mut tree, "configs/.wh.old").unwrap();
        assert!(tree.looked <= 2 * MANY, "{}", tree.looked);
        let root = folder.path().join("content");
        fs::create_dir_all(&root).unwrap();
        tree.build(&root).unwrap();
        assert_eq!(fs::read_dir(&root).unwrap().count(), MANY);
        assert!(!root.join("old").exists());
    }

    #[test]
    fn depth_and_links_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = tree(folder.path());
        let deep = |parts: usize| format!("configs/{}x", "d/".repeat(parts));
        assert!(apply(&mut tree, &deep(DEEPEST - 2)).is_ok());
        let error = apply(&mut tree, &deep(DEEPEST - 1)).unwrap_err();
        assert!(matches!(error, Error::TooMuch(Excess::Depth(64))), "{error:?}");
        // A link that needs too many steps is left out, and so are those after it.
        let around = "d/../".repeat(600) + "x";
        for n in 0..LINK_STEPS / 1000 {
            let path = format!("configs/{n}");
            tree.apply(&Entry::Link { path: &path, target: &around }, &mut io::empty()).unwrap();
        }
        apply(&mut tree, "configs/x").unwrap();
        let root = folder.path().join("content");
        fs::create_dir_all(&root).unwrap();
        let warnings = tree.build(&root).unwrap();
        assert_eq!(warnings.len(), WARNINGS);
        assert!(root.join("0").is_file() && root.join("x").is_file());
    }
}
