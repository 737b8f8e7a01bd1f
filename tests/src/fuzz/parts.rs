//! Several files in one input: each begins with a line `>>> NAME`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use olm_core::catalog::File;
use tempfile::TempDir;

/// What begins a part.
const MARK: &[u8] = b">>> ";
/// More parts than this find nothing new, and take time.
const MOST: usize = 40;

/// A part of an input.
pub(super) struct Part<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// What follows the name's line.
    pub(super) bytes: &'a [u8],
}

/// What stands before the first part, and the parts. Of a name that is no text the part is left out.
pub(super) fn parts(bytes: &[u8]) -> (&[u8], Vec<Part<'_>>) {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(MARK) {
            starts.push((at, at + line.len()));
        }
        at += line.len();
    }
    let head = starts.first().map_or(bytes, |(start, _)| &bytes[..*start]);
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([bytes.len()]);
    let of = |((start, content), end): (&(usize, usize), usize)| {
        let name = std::str::from_utf8(&bytes[start + MARK.len()..*content]).ok()?;
        Some(Part { name: name.trim_end_matches(['\n', '\r']), bytes: &bytes[*content..end] })
    };
    (head, starts.iter().zip(ends).filter_map(of).take(MOST).collect())
}

/// The parts as files; all of the input as one when it has none.
pub(super) fn files(bytes: &[u8], alone: &str) -> Vec<File> {
    let (head, parts) = parts(bytes);
    if parts.is_empty() {
        return vec![File::new(alone, head)];
    }
    parts.iter().map(|part| File::new(part.name, part.bytes)).collect()
}

/// A temporary folder.
///
/// # Panics
/// There can be none.
pub(super) fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("fuzz-").tempdir();
    assert!(folder.is_ok(), "a temporary folder: {folder:?}");
    folder.unwrap_or_else(|_| unreachable!("it was asserted"))
}

/// Writes a part below a folder. One whose name leads elsewhere, or where something else stands, is left out.
pub(super) fn write(folder: &Path, name: &str, bytes: &[u8]) {
    if let Some(path) = place(folder, name) {
        let _ = fs::write(path, bytes);
    }
}

/// A symbolic link below a folder, to wherever.
#[cfg(unix)]
pub(super) fn link(folder: &Path, name: &str, target: &str) {
    if let Some(path) = place(folder, name) {
        let _ = std::os::unix::fs::symlink(target, path);
    }
}

/// Where a name is below a folder; its folders are made.
fn place(folder: &Path, name: &str) -> Option<PathBuf> {
    let inner = Path::new(name);
    let is_plain = |part| matches!(part, Component::Normal(_));
    let is_fine = !name.is_empty() && name.len() < 500 && inner.components().all(is_plain);
    // What is made so far may have links: nothing is written through them.
    let through_links =
        inner.ancestors().skip(1).any(|above| folder.join(above).is_symlink() && above != Path::new(""));
    let path = folder.join(inner);
    if !is_fine || through_links || path.is_symlink() {
        return None;
    }
    fs::create_dir_all(path.parent()?).ok()?;
    Some(path)
}

/// Everything below a folder that is not a folder, and whether it is a regular file.
pub(super) fn below(folder: &Path) -> Vec<(PathBuf, bool)> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => found.extend(below(&path)),
            metadata => found.push((path, metadata.is_ok_and(|m| m.is_file()))),
        }
    }
    found.sort();
    found
}
