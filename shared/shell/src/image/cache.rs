//! The cache: what was pulled, by digest, in a folder that any number of processes share.
//!
//! An entry appears whole, by a rename, or not at all. Whoever uses an entry holds a shared lock on its description. What was not used
//! for a month, and is not in use, is deleted when something new comes; when entries take more than [`MOST_BYTES`], those that were not
//! used for longest. The folder is for its owner only: pulled images may be private.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use olm_core::api::hash::sha256_hex;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::{Content, Error, Kind};

const UNUSED: Duration = Duration::from_hours(30 * 24);
/// Bytes of entries beyond which those that are not in use are deleted: a tenant may have any number of images pulled, one after the other.
const MOST_BYTES: u64 = 8 << 30;
/// What a killed process left behind is deleted after this.
const ABANDONED: Duration = Duration::from_hours(24);
/// Nobody but the owner.
#[cfg(unix)]
const PRIVATE: u32 = 0o700;
const FRESH: &str = ".new-";
const DESCRIPTION: &str = "image.json";
const CONTENT: &str = "content";

/// The folder for cached images of the user: `kubectl-olm/images` in `XDG_CACHE_HOME` or `~/.cache`. Nothing, if there is no home.
pub fn default_cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    caches.is_absolute().then(|| caches.join("kubectl-olm").join("images"))
}

/// What is known of an entry besides its files.
#[derive(Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) kind: Kind,
    pub(super) digest: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) warnings: Vec<String>,
    /// Number and bytes of the files and folders, to notice when some are gone.
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

/// Keeps the folder of a content for as long as it lives.
#[derive(Debug)]
pub(super) enum Held {
    /// A folder that is deleted with this value.
    Temporary { _folder: TempDir },
    /// The description of an entry of the cache, with a shared lock; none where files cannot be locked.
    Entry { _lock: Option<File> },
}

/// Locks the description of an entry: shared for those who use it, else for the one who deletes it. Where files cannot be locked
/// everybody may have it.
fn lock(description: &Path, shared: bool) -> io::Result<Locked> {
    let file = File::open(description)?;
    let locked = if shared { file.try_lock_shared() } else { file.try_lock() };
    match locked {
        Ok(()) => Ok(Locked::Held(file)),
        Err(TryLockError::WouldBlock) => Ok(Locked::ByOthers),
        Err(TryLockError::Error(_)) => Ok(Locked::Unsupported),
    }
}

/// What came of an attempt to lock an entry.
enum Locked {
    /// It is locked as long as this lives.
    Held(File),
    /// Others have a lock that excludes it.
    ByOthers,
    /// Files cannot be locked there.
    Unsupported,
}

fn entry(cache: &Path, kind: Kind, digest: &str) -> PathBuf {
    let kind = match kind {
        Kind::Catalog => "catalog",
        Kind::Bundle => "bundle",
    };
    cache.join(format!("{kind}-{}", digest.replace(':', "-")))
}

/// The key of what lies in one folder of an image.
pub(super) fn in_folder(digest: &str, folder: &str) -> String {
    let folder = sha256_hex(folder);
    format!("{digest}-{folder}")
}

/// What the cache has of a digest, if it is whole.
pub(super) fn find(cache: &Path, kind: Kind, digest: &str) -> Option<Content> {
    let entry = entry(cache, kind, digest);
    let path = entry.join(DESCRIPTION);
    // Somebody who deletes it has the lock; what is read after it was taken stays.
    let held = match lock(&path, true).ok()? {
        Locked::Held(file) => Held::Entry { _lock: Some(file) },
        Locked::Unsupported => Held::Entry { _lock: None },
        Locked::ByOthers => return None,
    };
    let description: Option<Description> = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let root = entry.join(CONTENT);
    let is_whole = |d: &Description| d.digest == digest && count(&root).is_ok_and(|files| files == d.files);
    let Some(description) = description.filter(is_whole) else {
        tracing::warn!("the cached image {} is damaged: it is pulled again", entry.display());
        drop(held);
        discard(cache, &entry);
        return None;
    };
    // It was used today; a cache that cannot be written still can be read.
    if let Ok(file) = File::options().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(description.content(root, held))
}

/// Deletes an entry. It is moved away first, so that another one can take its place at once.
fn discard(cache: &Path, entry: &Path) {
    let Ok(aside) = tempfile::Builder::new().prefix(FRESH).tempdir_in(cache) else { return };
    let _ = fs::rename(entry, aside.path().join("discarded"));
}

/// Makes the folder of the cache, for its owner only. One that others could look into is corrected.
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

/// A folder for an entry that is being made. Dropped, it is deleted.
pub(super) struct Staging(TempDir);

impl Staging {
    /// In the cache, or in the system's folder for temporary files.
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

    /// For contents without names.
    pub(super) fn files(&self) -> PathBuf {
        self.0.path().join("files")
    }

    /// For contents with names.
    pub(super) fn content(&self) -> PathBuf {
        self.0.path().join(CONTENT)
    }

    /// Makes it an entry, unless somebody else was faster.
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
        // The lock goes with the file when its folder gets another name.
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

/// The files and folders in a folder, and the bytes that they take on a disk, where each has at least a block.
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

/// Deletes what was not used for long, and more of it while all entries take more than so many bytes. That something cannot be
/// deleted is no reason to fail.
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
        // What is in use stays; whoever comes meanwhile does not get it.
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
    fn what_is_in_use_is_not_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("images");
        let first = make(&cache, DIGEST);
        let again = find(&cache, Kind::Catalog, DIGEST).unwrap();
        age(&first);
        let other = make(&cache, "sha256:0b");
        assert!(first.root.join("catalog.yaml").is_file(), "the one who made it uses it");
        drop(first);
        prune(&cache, MOST_BYTES);
        assert!(again.root.join("catalog.yaml").is_file(), "the one who found it uses it");
        let root = again.root.clone();
        drop(again);
        prune(&cache, MOST_BYTES);
        assert!(!root.exists());
        assert!(find(&cache, Kind::Catalog, DIGEST).is_none() && find(&cache, Kind::Catalog, "sha256:0b").is_some());
        drop(other);
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn the_cache_does_not_grow_without_end() {
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
        let is_there = |n: usize| find(&cache, Kind::Catalog, &format!("sha256:{n}")).is_some();
        assert_eq!([0, 1, 2, 3].map(is_there), [true, false, true, true], "the one that was not used for longest goes");
        prune(&cache, 0);
        assert_eq!([0, 2, 3].map(is_there), [true, false, false], "what is in use stays");
    }

    #[test]
    fn what_is_being_deleted_is_not_found() {
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
