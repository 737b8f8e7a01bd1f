//! Image layers: tar archives, compressed or not, with whiteouts and links, and the extracted content.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use olm_shell::image::{self, Content, Limits, Location, Options, Requested};
use tar::EntryType;

use super::parts::{below, folder, parts};
use super::shown::render_error;
use crate::images::{Compression, Image, Layer, compress};

/// The folders that the labels name.
const LABELS: [(&str, &str); 3] = [
    ("operators.operatorframework.io.bundle.package.v1", "rose"),
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
];
/// Limits that small inputs exceed.
const LIMITS: [(u64, usize); 2] = [(4096, 12), (1 << 20, 1000)];

/// Pulls a bundle image. Without parts the input is its layer, as it is and compressed. Otherwise each part is an entry:
/// `PATH`, `PATH/`, `PATH -> TARGET` for a symbolic link, `PATH => TARGET` for a hard link, and `---` starts the next layer.
///
/// # Panics
/// A file is written outside of the target folder, a link is left, a limit is exceeded, or an image that is unpacked strictly has other
/// files.
pub(super) fn run(bytes: &[u8]) {
    let (head, parts) = parts(bytes);
    if parts.is_empty() {
        for layer in [head.to_vec(), compress(head, Compression::Gzip), compress(head, Compression::Zstd)] {
            pulled(&Image::new(&LABELS, vec![layer]));
        }
        return;
    }
    let (mut layers, mut layer) = (Vec::new(), Layer::default());
    let mut model = Model::default();
    for part in parts {
        if part.name == "---" {
            layers.push(std::mem::take(&mut layer).finish(Compression::Gzip));
            model.next_layer();
            continue;
        }
        model.entry(part.name, part.bytes);
        layer = match part.name.split_once(" -> ").map(|link| (EntryType::Symlink, link)) {
            Some((kind, (name, target))) => layer.member(name, kind, target, &[]),
            None => match part.name.split_once(" => ") {
                Some((name, target)) => layer.member(name, EntryType::Link, target, &[]),
                None if part.name.ends_with('/') => layer.folder(part.name),
                None => layer.file(part.name, part.bytes),
            },
        };
    }
    layers.push(layer.finish(Compression::Zstd));
    model.next_layer();
    let content = pulled(&Image::new(&LABELS, layers));
    if let (Some(content), true) = (content, model.is_plain) {
        model.is(&content.root);
    }
}

/// Pulls an image within small and within larger limits.
fn pulled(image: &Image) -> Option<Content> {
    let folder = folder();
    assert!(image.write_layout(folder.path()).is_ok());
    let location = Location::Layout { path: folder.path().to_owned(), name: None };
    let mut last = None;
    for (kept, entries) in LIMITS {
        let limits = Limits { kept, entries, unpacked: 8 << 20, ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        let before = below(folder.path());
        match image::pull_blocking(&location, Requested::Bundle, &options) {
            Ok(content) => {
                fits(&content, kept, entries);
                last = Some(content);
            }
            Err(error) => {
                render_error(error);
                last = None;
            }
        }
        match image::pull_blocking(&location, Requested::BundleFiles, &options) {
            Ok(content) => {
                fits(&content, kept, entries);
                assert!(content.warnings.is_empty(), "{:?}", content.warnings);
                assert_eq!(Some(contents(&content.root)), last.as_ref().map(|last| contents(&last.root)));
            }
            Err(error) => render_error(error),
        }
        assert_eq!(before, below(folder.path()), "the layout has changed");
    }
    last
}

/// Returns the files of a folder by path.
fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = below(root).into_iter();
    files
        .filter_map(|(path, _)| Some((path.strip_prefix(root).ok()?.to_str()?.to_owned(), fs::read(&path).ok()?)))
        .collect()
}

/// Checks that the content is within its limits and contains only regular files.
pub(super) fn fits(content: &Content, kept: u64, entries: usize) {
    let files = below(&content.root);
    let other = files.iter().find(|(_, is_file)| !is_file);
    assert!(other.is_none(), "{other:?}");
    assert!(files.len() <= entries, "{} files", files.len());
    let bytes: u64 = files.iter().filter_map(|(path, _)| path.metadata().ok()).map(|m| m.len()).sum();
    assert!(bytes <= kept, "{bytes} bytes");
    content.warnings.iter().for_each(|warning| assert!(warning.len() < 20_000, "{} bytes", warning.len()));
    let folders = fs::read_dir(&content.root).map(|entries| entries.flatten().map(|e| e.file_name()).collect());
    let folders: Vec<_> = folders.unwrap_or_default();
    assert!(folders.iter().all(|name| name == "manifests" || name == "metadata"), "{folders:?}");
}

/// The expected content of simple layers, computed from a list of paths.
#[derive(Default)]
struct Model {
    /// By path: the bytes of a file, or none for a folder, and whether the current layer contains it.
    nodes: BTreeMap<String, (Option<Vec<u8>>, bool)>,
    /// Whether there were only files, folders and whiteouts with plain names.
    is_plain: bool,
    is_begun: bool,
}

impl Model {
    fn next_layer(&mut self) {
        self.nodes.values_mut().for_each(|(_, is_new)| *is_new = false);
    }

    fn entry(&mut self, name: &str, bytes: &[u8]) {
        if !self.is_begun {
            (self.is_plain, self.is_begun) = (true, true);
        }
        let path = name.strip_suffix('/').unwrap_or(name);
        let is_plain =
            |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if !path.split('/').all(|part| is_plain(part) && part != "." && part != "..") || path.len() > 90 {
            self.is_plain = false;
            return;
        }
        let (folder, last) = path.rsplit_once('/').unwrap_or(("", path));
        let within = |folder: &str, path: &str| folder.is_empty() || path.starts_with(&format!("{folder}/"));
        if last == ".wh..wh..opq" {
            self.nodes.retain(|path, (_, is_new)| *is_new || !within(folder, path));
        } else if let Some(gone) = last.strip_prefix(".wh.") {
            let gone = if folder.is_empty() { gone.to_owned() } else { format!("{folder}/{gone}") };
            // Whiteouts of whiteouts are not plain.
            self.is_plain &= !gone.is_empty() && !gone.contains(".wh.") && !gone.ends_with('/');
            self.nodes.retain(|path, (_, is_new)| *is_new || *path != gone && !within(&gone, path));
        } else {
            let mut above = path;
            while let Some((parent, _)) = above.rsplit_once('/') {
                // A file cannot have entries below it.
                if self.nodes.get(parent).is_some_and(|(file, _)| file.is_some()) {
                    self.nodes.remove(parent);
                }
                above = parent;
            }
            if name.ends_with('/') {
                if !matches!(self.nodes.get(path), Some((None, _))) {
                    self.nodes.insert(path.to_owned(), (None, true));
                }
            } else {
                self.nodes.retain(|known, _| !within(path, known));
                self.nodes.insert(path.to_owned(), (Some(bytes.to_vec()), true));
            }
        }
    }

    /// Checks that these are the files.
    fn is(&self, root: &Path) {
        let files = self.nodes.iter().filter_map(|(path, (file, _))| Some((path.as_str(), file.as_deref()?)));
        let wanted: BTreeMap<&str, &[u8]> =
            files.filter(|(path, _)| path.starts_with("manifests/") || path.starts_with("metadata/")).collect();
        let found = contents(root);
        let found: BTreeMap<&str, &[u8]> = found.iter().map(|(path, bytes)| (path.as_str(), &bytes[..])).collect();
        assert_eq!(found, wanted);
    }
}
