//! Replaces the contents of several files together, or of none.
//!
//! *Guarantee.* At every moment each file has either its complete old or its complete new content, and keeps its
//! permissions. *Caveat.* If the process is killed between two files, the first is new and the second is not: file
//! systems do not replace two files at once.
//!
//! The folders are locked meanwhile. Staged files that a killed process has left in them are deleted.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use olm_core::budget::CATALOG_BYTES;
use similar::TextDiff;
use tempfile::{Builder, NamedTempFile};

use super::{CliError, ErrorKind};

/// The prefix of staged files, which readers of catalogs and of mounted folders ignore.
const STAGED: &str = "..kubectl-olm-";

/// A file that changes.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) path: PathBuf,
    /// The content when it was read; `None` if the file did not exist.
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Vec<u8>,
}

impl Replacement {
    /// Returns the change in the format of `diff -u`; `shown` is the name of the file in it.
    pub(crate) fn diff(&self, shown: &str) -> String {
        let before = String::from_utf8_lossy(self.before.as_deref().unwrap_or_default());
        let after = String::from_utf8_lossy(&self.after);
        let old = if self.before.is_some() { shown } else { "/dev/null" };
        let new = if self.after.is_empty() { "/dev/null" } else { shown };
        TextDiff::from_lines(&*before, &*after).unified_diff().header(old, new).to_string()
    }
}

/// Writes all files. Missing folders are created.
///
/// # Errors
/// A file cannot be written, or has changed since it was read; the error states what happened to the other files.
pub(crate) fn replace(files: &[Replacement]) -> Result<(), CliError> {
    let (mut folders, mut locks) = (Vec::new(), BTreeMap::new());
    let written = stage(files, &mut folders, &mut locks).and_then(|staged| swap(files, staged));
    if written.is_err() {
        // Folders that are not empty are in use by another process.
        folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    written
}

/// Locked folders.
type Locks = BTreeMap<PathBuf, Option<File>>;

/// Locks a folder unless it is locked by this process, and deletes what a killed process has staged in it. Without support for
/// locks of folders, nothing is deleted.
fn lock(folder: &Path, locks: &mut Locks) -> Result<(), CliError> {
    if locks.contains_key(folder) {
        return Ok(());
    }
    let lock = match File::open(folder) {
        Ok(opened) => match opened.try_lock() {
            Ok(()) => Some(opened),
            Err(TryLockError::WouldBlock) => {
                return Err(CliError::new(ErrorKind::Io, "another process is writing to the folder")
                    .at(folder.display())
                    .hint("no file was changed; run the command again"));
            }
            Err(TryLockError::Error(_)) => None,
        },
        Err(_) => None,
    };
    if lock.is_some() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(STAGED)) {
            // It is only in the way.
            let _ = fs::remove_file(entry.path());
        }
    }
    locks.insert(folder.to_owned(), lock);
    Ok(())
}

fn stage(files: &[Replacement], folders: &mut Vec<PathBuf>, locks: &mut Locks) -> Result<Vec<NamedTempFile>, CliError> {
    let mut staged = Vec::new();
    for file in files {
        let refused = |e: io::Error| cannot_write(&file.path, &e).hint("no file was changed");
        make_folder(folder(&file.path), folders).map_err(refused)?;
        lock(folder(&file.path), locks)?;
        let new = write_beside(&file.path, &file.after).map_err(refused)?;
        staged.push(new);
    }
    for file in files {
        if read(&file.path).map_err(|e| cannot_write(&file.path, &e))? != file.before {
            let error = CliError::input("the file has changed since it was read").at(file.path.display());
            return Err(error.hint("no file was changed; run the command again"));
        }
    }
    Ok(staged)
}

fn swap(files: &[Replacement], staged: Vec<NamedTempFile>) -> Result<(), CliError> {
    for (at, (file, new)) in files.iter().zip(staged).enumerate() {
        if let Err(e) = new.persist(&file.path) {
            let error = cannot_write(&file.path, &e.error);
            let kept: Vec<String> = files[..at].iter().filter_map(|f| put_back(f).err()).collect();
            return Err(match &kept[..] {
                [] => error.hint("the other files are unchanged"),
                kept => error
                    .hint(format!("these files have the new content and could not be restored: {}", kept.join(", "))),
            });
        }
    }
    for file in files {
        // A folder that cannot be synced still has the new names.
        let _ = File::open(folder(&file.path)).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// Restores a file. The error names it.
fn put_back(file: &Replacement) -> Result<(), String> {
    let restored = match &file.before {
        Some(bytes) => write_beside(&file.path, bytes).and_then(|old| Ok(old.persist(&file.path).map(drop)?)),
        None => fs::remove_file(&file.path),
    };
    restored.map_err(|e| format!("{} ({e})", file.path.display()))
}

/// Creates a synced file in the same folder, with the same permissions or those of a new file.
fn write_beside(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(STAGED);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut new = builder.tempfile_in(folder(path))?;
    if let Ok(known) = path.metadata() {
        new.as_file().set_permissions(known.permissions())?;
    }
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    Ok(new)
}

fn make_folder(folder: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists()).collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder)?;
        made.push(folder.to_owned());
    }
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Reads a file; `None` if it does not exist.
///
/// # Errors
/// The file cannot be read, is not a regular file (a device or a pipe can be endless), or is larger than a catalog can be.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = target(path)?;
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    if file.take(CATALOG_BYTES + 1).read_to_end(&mut bytes)? as u64 > CATALOG_BYTES {
        return Err(io::Error::other(format!("the file is larger than {} GiB", CATALOG_BYTES >> 30)));
    }
    Ok(Some(bytes))
}

/// Returns the path to replace when a file is written: a symbolic link stays, and the file that it refers to is replaced.
///
/// # Errors
/// There is something else than a regular file, or the link leads to none.
pub(crate) fn target(path: &Path) -> io::Result<PathBuf> {
    let irregular = || io::Error::other("this is not a regular file");
    match path.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(e) => Err(e),
        Ok(known) if known.is_file() => Ok(path.to_owned()),
        Ok(known) if known.is_symlink() => match path.canonicalize() {
            Ok(target) if target.metadata()?.is_file() => Ok(target),
            Ok(_) => Err(irregular()),
            Err(e) => Err(io::Error::other(format!("this is a symbolic link that leads to no file: {e}"))),
        },
        Ok(_) => Err(irregular()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> CliError {
    CliError::new(ErrorKind::Io, format!("cannot write: {error}")).at(path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replacement(path: PathBuf, before: Option<&str>, after: &str) -> Replacement {
        Replacement { path, before: before.map(|b| b.as_bytes().to_vec()), after: after.as_bytes().to_vec() }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_staged_is_deleted_and_a_process_that_writes_is_not_disturbed() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(format!("{STAGED}abc"));
        fs::write(&left, "1").unwrap();
        let file = folder.path().join("new");
        let writer = File::open(folder.path()).unwrap();
        writer.lock().unwrap();
        let refused = replace(&[replacement(file.clone(), None, "2")]).unwrap_err();
        assert!(refused.message.contains("another process is writing to the folder"), "{}", refused.message);
        assert!(left.exists() && !file.exists());
        drop(writer);
        replace(&[replacement(file, None, "2")]).unwrap();
        assert_eq!(names(folder.path()), ["new"]);
    }

    #[test]
    fn all_files_are_written_and_keep_their_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("a/b/new"));
        fs::write(&old, "1").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        replace(&[replacement(old.clone(), Some("1"), "2"), replacement(new.clone(), None, "3")]).unwrap();
        assert_eq!((fs::read_to_string(&old).unwrap(), fs::read_to_string(&new).unwrap()), ("2".into(), "3".into()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&old), mode(&new) & 0o600), (0o640, 0o600));
        }
        assert_eq!(names(folder.path()), ["a", "old"]);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_all_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new, blocked] = ["old", "made/new", "blocked"].map(|name| folder.path().join(name));
        fs::write(&old, "1").unwrap();
        let files = [
            replacement(old.clone(), Some("1"), "2"),
            replacement(new, None, "3"),
            replacement(blocked.clone(), None, "4"),
        ];
        let mut folders = Vec::new();
        let staged = stage(&files, &mut folders, &mut Locks::new()).unwrap();
        // Another process creates a folder of that name.
        fs::create_dir(&blocked).unwrap();
        let error = swap(&files, staged).unwrap_err();
        assert_eq!(error.hints.first().map(String::as_str), Some("the other files are unchanged"));
        assert_eq!(fs::read_to_string(&old).unwrap(), "1");
        assert_eq!(
            (names(folder.path()), names(&folder.path().join("made"))),
            (vec!["blocked".into(), "made".into(), "old".into()], vec![])
        );
    }

    #[test]
    fn a_file_that_has_changed_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rose");
        fs::write(&path, "theirs").unwrap();
        let made = folder.path().join("made/new");
        let error =
            replace(&[replacement(made, None, "3"), replacement(path.clone(), Some("old"), "ours")]).unwrap_err();
        assert!(error.message.contains("has changed"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["rose"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_read_and_replaced() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let [file, link, dangling, to_device, looped] =
            ["file", "link", "dangling", "device", "loop"].map(|name| folder.path().join(name));
        fs::write(&file, "1").unwrap();
        for (to, link) in [("file", &link), ("missing", &dangling), ("/dev/zero", &to_device), ("loop", &looped)] {
            symlink(to, link).unwrap();
        }
        let _listener = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        assert_eq!(target(&link).unwrap(), file.canonicalize().unwrap());
        assert_eq!(read(&link).unwrap(), Some(b"1".to_vec()));
        assert_eq!(read(&folder.path().join("missing")).unwrap(), None);
        let others =
            [dangling, to_device, looped, folder.path().join("socket"), "/dev/null".into(), "/dev/zero".into()];
        for path in others.iter().map(PathBuf::as_path).chain([folder.path()]) {
            assert!(target(path).is_err() && read(path).is_err(), "{}", path.display());
        }
    }
}
