//! Several files in one input: each begins with a line `>>> NAME`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use olm_core::catalog::File;
use tempfile::TempDir;

/// The beginning of a part.
const MARK: &[u8] = b">>> ";
/// Maximum number of parts: more of them take time and find nothing new.
const MOST: usize = 40;

/// A part of an input.
pub(super) struct Part<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The bytes after the line of the name.
    pub(super) bytes: &'a [u8],
}

/// Returns the bytes before the first part, and the parts. A part whose name is not UTF-8 is ignored.
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

/// Returns the parts as files; an input without parts is a single file.
pub(super) fn files(bytes: &[u8], alone: &str) -> Vec<File> {
    let (head, parts) = parts(bytes);
    if parts.is_empty() {
        return vec![File::new(alone, head)];
    }
    parts.iter().map(|part| File::new(part.name, part.bytes)).collect()
}

/// Creates a temporary folder.
///
/// # Panics
/// It cannot be created.
pub(super) fn folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("fuzz-").tempdir();
    assert!(folder.is_ok(), "a temporary folder: {folder:?}");
    folder.unwrap_or_else(|_| unreachable!("it was asserted"))
}

/// Writes a part below a folder, unless its name leads outside or the path exists.
pub(super) fn write(folder: &Path, name: &str, bytes: &[u8]) {
    if let Some(path) = place(folder, name) {
        let _ = fs::write(path, bytes);
    }
}

/// Creates a symbolic link below a folder, to any target.
#[cfg(unix)]
pub(super) fn link(folder: &Path, name: &str, target: &str) {
    if let Some(path) = place(folder, name) {
        let _ = std::os::unix::fs::symlink(target, path);
    }
}

/// Resolves a name below a folder, and creates its parent folders.
fn place(folder: &Path, name: &str) -> Option<PathBuf> {
    let inner = Path::new(name);
    let is_plain = |part| matches!(part, Component::Normal(_));
    let is_fine = !name.is_empty() && name.len() < 500 && inner.components().all(is_plain);
    // The existing content may include links: files are not written through them.
    let through_links =
        inner.ancestors().skip(1).any(|above| folder.join(above).is_symlink() && above != Path::new(""));
    let path = folder.join(inner);
    if !is_fine || through_links || path.is_symlink() {
        return None;
    }
    fs::create_dir_all(path.parent()?).ok()?;
    Some(path)
}

/// Returns everything below a folder except folders, with whether it is a regular file.
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
