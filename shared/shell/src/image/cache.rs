//! The cache of pulled images, by digest, in a folder that several processes share.
//!
//! An entry is complete when it appears, because it is created by a rename. A process that uses an entry holds a shared lock on its
//! description. When an entry is added, entries that were unused for a month are deleted; while entries take more than
//! [`MOST_BYTES`], the least recently used are deleted as well. Entries in use stay. Only the owner can access the folder, because
//! pulled images may be private.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use olm_core::api::hash::sha256_hex;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{Content, Error, Kind};

/// An entry that was unused for this long is deleted.
const UNUSED: Duration = Duration::from_hours(30 * 24);
/// Most bytes of all entries; beyond, entries that are not in use are deleted. The limit is necessary because a tenant can have any
/// number of images pulled.
const MOST_BYTES: u64 = 8 << 30;
/// Temporary folders of killed processes are deleted after this time.
const ABANDONED: Duration = Duration::from_hours(24);
/// The mode of the folder: access for the owner only.
#[cfg(unix)]
const PRIVATE: u32 = 0o700;
const FRESH: &str = ".new-";
const DESCRIPTION: &str = "image.json";
const CONTENT: &str = "content";

/// Returns the folder for cached images of the user: `kubectl-olm/images` in `XDG_CACHE_HOME` or `~/.cache`. Returns nothing if
/// neither variable, `XDG_CACHE_HOME` or `HOME`, has an absolute path.
pub fn default_cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    caches.is_absolute().then(|| caches.join("kubectl-olm").join("images"))
}

/// Metadata of an entry.
#[derive(Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) kind: Kind,
    pub(super) digest: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
    /// Number and bytes of the files and folders, to detect that some are missing.
    #[serde(default)]
    files: (u64, u64),
}

impl Description {
    pub(super) fn new(kind: Kind, digest: &str, labels: BTreeMap<String, String>, warnings: Vec<String>) -> Self {
        Self { kind, digest: digest.to_owned(), labels, warnings, files: (0, 0) }
    }

    fn content(self, root: PathBuf, held: Held) -> Content {
        let Self { kind, digest, labels, warnings, files: (_, bytes) } = self;
        Content { root, kind, digest, labels, bytes, warnings, _held: held }
    }
}

/// Protects the folder of a content from deletion until it is dropped.
#[derive(Debug)]
pub(super) enum Held {
    /// A folder that is deleted when this value is dropped.
    Temporary { _folder: TempDir },
    /// The description of an entry of the cache, with a shared lock; none if the file system does not support locks.
    Entry { _lock: Option<File> },
}

/// Locks the description of an entry: shared for use, exclusive for deletion. If the file system does not support locks, the
/// attempt counts as successful.
fn lock(description: &Path, shared: bool) -> io::Result<Locked> {
    let file = File::open(description)?;
    let locked = if shared { file.try_lock_shared() } else { file.try_lock() };
    match locked {
        Ok(()) => Ok(Locked::Held(file)),
        Err(TryLockError::WouldBlock) => Ok(Locked::ByOthers),
        Err(TryLockError::Error(_)) => Ok(Locked::Unsupported),
    }
}

/// The result of an attempt to lock an entry.
enum Locked {
    /// The entry is locked until this value is dropped.
    Held(File),
    /// Another process or value holds a conflicting lock.
    ByOthers,
    /// The file system does not support locks.
    Unsupported,
}

fn entry(cache: &Path, kind: Kind, digest: &str) -> PathBuf {
    let kind = match kind {
        Kind::Catalog => "catalog",
        Kind::Bundle => "bundle",
    };
    cache.join(format!("{kind}-{}", digest.replace(':', "-")))
}

/// Returns the cache key of the content of one folder of an image.
pub(super) fn in_folder(digest: &str, folder: &str) -> String {
    let folder = sha256_hex(folder);
    format!("{digest}-{folder}")
}

/// Returns the cached content of a digest, if it is complete. Deletes a damaged entry.
pub(super) fn find(cache: &Path, kind: Kind, digest: &str) -> Option<Content> {
    let entry = entry(cache, kind, digest);
    let path = entry.join(DESCRIPTION);
    // A process that deletes the entry holds an exclusive lock. While this lock is held, the entry is not deleted.
    let held = match lock(&path, true).ok()? {
        Locked::Held(file) => Held::Entry { _lock: Some(file) },
        Locked::Unsupported => Held::Entry { _lock: None },
        Locked::ByOthers => return None,
    };
    let description: Option<Description> = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let root = entry.join(CONTENT);
    let is_whole = |d: &Description| d.digest == digest && count(&root).is_ok_and(|files| files == d.files);
    let Some(description) = description.filter(is_whole) else {
        tracing::warn!("the cached image {} is damaged and is pulled again", entry.display());
        drop(held);
        discard(cache, &entry);
        return None;
    };
    // Records the use. A failure is ignored, so that a read-only cache can be used.
    if let Ok(file) = File::options().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(description.content(root, held))
}

/// Deletes an entry. Moves it first, so that a new entry can take its place immediately.
fn discard(cache: &Path, entry: &Path) {
    let Ok(aside) = tempfile::Builder::new().prefix(FRESH).tempdir_in(cache) else { return };
    let _ = fs::rename(entry, aside.path().join("discarded"));
}

/// Creates the folder of the cache with access for its owner only. Corrects the mode of an existing folder.
fn make_private(cache: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(cache)?;
        let mode = fs::metadata(cache)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(cache, fs::Permissions::from_mode(PRIVATE))?;
        }
        Ok(())
    }
    #[cfg(not(unix))]
    fs::create_dir_all(cache)
}

/// A folder for an entry that is being created. It is deleted when dropped.
pub(super) struct Staging(TempDir);

impl Staging {
    /// Creates the folder in the cache, or without a cache in the system's folder for temporary files.
    pub(super) fn new(cache: Option<&Path>) -> Result<Self, Error> {
        let at = |path: &Path| {
            let path = path.to_owned();
            |source| Error::File { path, source }
        };
        let made = match cache {
            Some(cache) => {
                make_private(cache).map_err(at(cache))?;
                tempfile::Builder::new().prefix(FRESH).tempdir_in(cache).map_err(at(cache))?
            }
            None => {
                tempfile::Builder::new().prefix("kubectl-olm-image-").tempdir().map_err(at(&std::env::temp_dir()))?
            }
        };
        Ok(Self(made))
    }

    /// Returns the folder for numbered files.
    pub(super) fn files(&self) -> PathBuf {
        self.0.path().join("files")
    }

    /// Returns the folder for files under their names.
    pub(super) fn content(&self) -> PathBuf {
        self.0.path().join(CONTENT)
    }

    /// Turns the folder into an entry of the cache. If another process has created the entry meanwhile, uses that one.
    pub(super) fn keep(self, cache: Option<&Path>, mut description: Description) -> Result<Content, Error> {
        let root = self.content();
        fs::remove_dir_all(self.files())?;
        description.files = count(&root)?;
        let Some(cache) = cache else {
            return Ok(description.content(root, Held::Temporary { _folder: self.0 }));
        };
        let text = serde_json::to_vec(&description).map_err(io::Error::from)?;
        fs::write(self.0.path().join(DESCRIPTION), text)?;
        let entry = entry(cache, description.kind, &description.digest);
        // The lock stays with the file when its folder is renamed.
        let locked = match lock(&self.0.path().join(DESCRIPTION), true)? {
            Locked::Held(file) => Some(file),
            Locked::Unsupported | Locked::ByOthers => None,
        };
        if let Err(e) = fs::rename(self.0.path(), &entry) {
            return match find(cache, description.kind, &description.digest) {
                Some(content) => Ok(content),
                None => Err(Error::File { path: entry, source: e }),
            };
        }
        prune(cache, MOST_BYTES);
        Ok(description.content(entry.join(CONTENT), Held::Entry { _lock: locked }))
    }
}

/// Returns the number of files and folders in a folder, and the bytes that they take on disk, at least one block each.
fn count(folder: &Path) -> io::Result<(u64, u64)> {
    const BLOCK: u64 = 4096;
    let mut sum = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        let (files, bytes) = if is_folder { count(&entry.path())? } else { (0, entry.metadata()?.len()) };
        sum = (sum.0 + files + 1, sum.1 + bytes.next_multiple_of(BLOCK).max(BLOCK));
    }
    Ok(sum)
}

/// Deletes entries that were unused for [`UNUSED`], and the least recently used entries while all take more than `most` bytes.
/// Ignores entries that cannot be deleted.
fn prune(cache: &Path, most: u64) {
    let Ok(folders) = fs::read_dir(cache) else { return };
    let age = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok().and_then(|m| m.elapsed().ok());
    let mut entries = Vec::new();
    for path in folders.flatten().map(|e| e.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(FRESH) {
            if age(&path).is_some_and(|age| age > ABANDONED) {
                let _ = fs::remove_dir_all(&path);
            }
        } else if name.starts_with("catalog-") || name.starts_with("bundle-") {
            let description = path.join(DESCRIPTION);
            let text = fs::read(&description).unwrap_or_default();
            let bytes = serde_json::from_slice(&text).map_or(0, |d: Description| d.files.1);
            entries.push((age(&description), bytes, path));
        }
    }
    let mut sum: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    entries.sort_by_key(|(age, ..)| std::cmp::Reverse(*age));
    for (age, bytes, entry) in entries {
        if sum <= most && age.is_none_or(|age| age <= UNUSED) {
            continue;
        }
        // An entry in use cannot be locked and stays. While the lock is held, `find` does not return the entry.
        if let Ok(_lock @ (Locked::Held(_) | Locked::Unsupported)) = lock(&entry.join(DESCRIPTION), false) {
            discard(cache, &entry);
            sum -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0a";

    fn make(cache: &Path, digest: &str) -> Content {
        let staging = Staging::new(Some(cache)).unwrap();
        fs::create_dir_all(staging.files()).unwrap();
        fs::create_dir_all(staging.content()).unwrap();
        fs::write(staging.content().join("catalog.yaml"), "a").unwrap();
        staging.keep(Some(cache), Description::new(Kind::Catalog, digest, BTreeMap::new(), Vec::new())).unwrap()
    }

    fn age(content: &Content) {
        let description = content.root.parent().unwrap().join(DESCRIPTION);
        let file = File::options().append(true).open(description).unwrap();
        file.set_modified(SystemTime::now() - 2 * UNUSED).unwrap();
    }

    #[test]
    fn entries_in_use_are_not_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("images");
        let first = make(&cache, DIGEST);
        let again = find(&cache, Kind::Catalog, DIGEST).unwrap();
        age(&first);
        let other = make(&cache, "sha256:0b");
        assert!(first.root.join("catalog.yaml").is_file(), "in use by its creator");
        drop(first);
        prune(&cache, MOST_BYTES);
        assert!(again.root.join("catalog.yaml").is_file(), "in use by a second reader");
        let root = again.root.clone();
        drop(again);
        prune(&cache, MOST_BYTES);
        assert!(!root.exists());
        assert!(find(&cache, Kind::Catalog, DIGEST).is_none() && find(&cache, Kind::Catalog, "sha256:0b").is_some());
        drop(other);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn the_least_recently_used_entries_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("images");
        let made: Vec<Content> = (0..4).map(|n| make(&cache, &format!("sha256:{n}"))).collect();
        let mut made = made.into_iter();
        let (_in_use, oldest) = (made.next(), made.next().unwrap());
        let description = oldest.root.parent().unwrap().join(DESCRIPTION);
        let hour = SystemTime::now() - Duration::from_hours(1);
        File::options().append(true).open(description).unwrap().set_modified(hour).unwrap();
        drop((oldest, made));
        prune(&cache, 3 * 4096);
        let exists = |n: usize| find(&cache, Kind::Catalog, &format!("sha256:{n}")).is_some();
        assert_eq!([0, 1, 2, 3].map(exists), [true, false, true, true], "the least recently used entry is deleted");
        prune(&cache, 0);
        assert_eq!([0, 2, 3].map(exists), [true, false, false], "entries in use stay");
    }

    #[test]
    fn an_entry_that_is_being_deleted_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("images");
        let description = make(&cache, DIGEST).root.parent().unwrap().join(DESCRIPTION);
        let deleting = lock(&description, false).unwrap();
        assert!(matches!(deleting, Locked::Held(_)));
        assert!(find(&cache, Kind::Catalog, DIGEST).is_none());
        drop(deleting);
        assert!(find(&cache, Kind::Catalog, DIGEST).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn the_cache_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("kubectl-olm/images");
        let mode = || fs::metadata(&cache).unwrap().permissions().mode() & 0o777;
        drop(Staging::new(Some(&cache)).unwrap());
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o755)).unwrap();
        drop(Staging::new(Some(&cache)).unwrap());
        assert_eq!(mode(), 0o700, "it is corrected");
    }
}
