//! The cache: what was pulled, by digest, in a folder that any number of processes share.
//!
//! An entry appears whole, by a rename, or not at all. What was not used for a month is deleted when something new comes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{Content, Kind};
use crate::cli::CliError;

const UNUSED: Duration = Duration::from_hours(30 * 24);
/// What a killed process left behind is deleted after this.
const ABANDONED: Duration = Duration::from_hours(24);
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
    /// Number and bytes of the files, to notice when some are gone.
    #[serde(default)]
    files: (u64, u64),
}

impl Description {
    pub(super) fn new(kind: Kind, digest: &str, labels: BTreeMap<String, String>, warnings: Vec<String>) -> Self {
        Self { kind, digest: digest.to_owned(), labels, warnings, files: (0, 0) }
    }

    fn content(self, root: PathBuf, temporary: Option<TempDir>) -> Content {
        let Self { kind, digest, labels, warnings, files: _ } = self;
        Content { root, kind, digest, labels, warnings, _temporary: temporary }
    }
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
    let folder = Sha256::digest(folder).iter().map(|b| format!("{b:02x}")).collect::<String>();
    format!("{digest}-{folder}")
}

/// What the cache has of a digest, if it is whole.
pub(super) fn find(cache: &Path, kind: Kind, digest: &str) -> Option<Content> {
    let entry = entry(cache, kind, digest);
    let path = entry.join(DESCRIPTION);
    let description: Description = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let root = entry.join(CONTENT);
    if description.digest != digest || count(&root).ok()? != description.files {
        tracing::warn!("the cached image {} is damaged: it is pulled again", entry.display());
        let _ = fs::remove_dir_all(&entry);
        return None;
    }
    // It was used today; a cache that cannot be written still can be read.
    if let Ok(file) = fs::File::options().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(description.content(root, None))
}

/// A folder for an entry that is being made. Dropped, it is deleted.
pub(super) struct Staging(TempDir);

impl Staging {
    /// In the cache, or in the system's folder for temporary files.
    pub(super) fn new(cache: Option<&Path>) -> Result<Self, CliError> {
        let at = |path: &Path| {
            let place = path.display().to_string();
            move |e: io::Error| CliError::from(e).at(place)
        };
        let made = match cache {
            Some(cache) => {
                fs::create_dir_all(cache).map_err(at(cache))?;
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
    pub(super) fn keep(self, cache: Option<&Path>, mut description: Description) -> Result<Content, CliError> {
        let root = self.content();
        fs::remove_dir_all(self.files())?;
        let Some(cache) = cache else { return Ok(description.content(root, Some(self.0))) };
        description.files = count(&root)?;
        let text = serde_json::to_vec(&description).map_err(io::Error::from)?;
        fs::write(self.0.path().join(DESCRIPTION), text)?;
        let entry = entry(cache, description.kind, &description.digest);
        if let Err(e) = fs::rename(self.0.path(), &entry) {
            return match find(cache, description.kind, &description.digest) {
                Some(content) => Ok(content),
                None => Err(CliError::from(e).at(entry.display())),
            };
        }
        prune(cache);
        Ok(description.content(entry.join(CONTENT), None))
    }
}

fn count(folder: &Path) -> io::Result<(u64, u64)> {
    let mut sum = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let (files, bytes) = if kind.is_dir() { count(&entry.path())? } else { (1, entry.metadata()?.len()) };
        sum = (sum.0 + files, sum.1 + bytes);
    }
    Ok(sum)
}

/// Deletes what nobody used for long. That it cannot be deleted is no reason to fail.
fn prune(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    let older = |path: &Path, age: Duration| {
        let modified = fs::metadata(path).and_then(|m| m.modified()).ok();
        modified.and_then(|m| m.elapsed().ok()).is_some_and(|elapsed| elapsed > age)
    };
    for path in entries.flatten().map(|e| e.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_old = if name.starts_with(FRESH) {
            older(&path, ABANDONED)
        } else {
            (name.starts_with("catalog-") || name.starts_with("bundle-")) && older(&path.join(DESCRIPTION), UNUSED)
        };
        if is_old {
            let _ = fs::remove_dir_all(&path);
        }
    }
}
