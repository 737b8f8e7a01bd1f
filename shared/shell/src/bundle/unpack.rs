//! `kubectl olm bundle unpack`: the files of a bundle image.
//!
//! *Guarantee.* The directory appears complete, by a rename, or not at all. A directory that is not empty is never changed.
//!
//! *Caveat.* The current directory and mount points cannot be replaced: their subdirectories appear one after the other.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use olm_core::budget::BUNDLE_BYTES;

use crate::cli::flags::RegistryFlags;
use crate::cli::{CliError, Outcome, Printer, registries};
use crate::delivery::interruptible;
use crate::image::{self, Content, Limits, Location, Requested};

/// Most files and directories of a bundle.
const MOST_ENTRIES: usize = 20_000;
/// Most bytes of all layers, decompressed. A bundle image can have been built on another image.
const MOST_UNPACKED: u64 = 2 << 30;
/// The prefix of the directory that is being written.
const STAGED: &str = "..kubectl-olm-";

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The image, as given by the user: a reference, a layout or an archive.
    pub source: String,
    /// The directory to create.
    pub output_dir: PathBuf,
    /// How the registry is accessed.
    pub registries: RegistryFlags,
}

/// Writes the manifests, metadata and tests of a bundle image to a directory, and prints the digest of the image.
///
/// # Errors
/// The image cannot be pulled or is refused, or the directory has other content.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let location = location(&options.source)?;
    let content = interruptible(async {
        let mut pull = registries::options(&options.registries, printer).await?;
        pull.limits = Limits { kept: BUNDLE_BYTES, entries: MOST_ENTRIES, unpacked: MOST_UNPACKED, ..pull.limits };
        let progress = printer.progress(format!("pulling {location}"));
        let pull = pull.watched(progress.watch());
        Ok(image::pull(&location, Requested::BundleFiles, &pull).await?)
    })?;
    let Some(content) = content else { return Ok(Outcome::Interrupted) };
    let files = files(&content.root).map_err(|e| CliError::from(e).at(content.root.display()))?;
    let directory = &options.output_dir;
    if is_vacant(directory).map_err(|e| CliError::from(e).at(directory.display()))? {
        write(directory, &files).map_err(|e| CliError::from(e).while_doing("cannot write").at(directory.display()))?;
        printer.talk(format_args!("{} files written to {}", files.len(), directory.display()));
    } else if has_only(directory, &files).map_err(|e| CliError::from(e).at(directory.display()))? {
        printer.talk(format_args!("{} has the files of the image already", directory.display()));
    } else {
        return Err(CliError::input("the directory exists, and has other files than the image")
            .at(directory.display())
            .hint("name an empty or a new directory with --output-dir"));
    }
    print_digest(&content, printer)?;
    Ok(Outcome::Done)
}

fn print_digest(content: &Content, printer: &mut Printer) -> Result<(), CliError> {
    for warning in &content.warnings {
        printer.warn(warning);
    }
    printer.line(&content.digest)
}

/// Parses a location. A path that exists is a layout or an archive, also without a prefix.
///
/// # Errors
/// The text is neither a path that exists nor a reference.
pub(super) fn location(text: &str) -> Result<Location, CliError> {
    let path = Path::new(text);
    let is_path = text.starts_with(['.', '/']) || path.is_file() || image::is_layout(path);
    if is_path {
        return Ok(format!("oci:{text}").parse()?);
    }
    Ok(text.parse()?)
}

/// Returns the files of the image by their paths.
fn files(root: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                found.insert(path, fs::read(entry.path())?);
            }
        }
    }
    Ok(found)
}

/// Returns whether there is no such directory, or an empty one.
fn is_vacant(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
    }
}

/// Returns whether a directory has exactly these files.
fn has_only(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<bool> {
    let mut count = 0;
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(directory.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(expected) = files.get(&path).filter(|_| kind.is_file()) else { return Ok(false) };
            let mut bytes = Vec::new();
            fs::File::open(entry.path())?.take(expected.len() as u64 + 1).read_to_end(&mut bytes)?;
            if bytes != *expected {
                return Ok(false);
            }
            count += 1;
        }
    }
    Ok(count == files.len())
}

/// Writes the files beside the directory, and renames them to it; those of a directory that cannot be replaced into it.
fn write(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    if let Ok(existing) = directory.canonicalize() {
        let is_current = std::env::current_dir().is_ok_and(|current| current == existing);
        if is_current || rename_staged(&existing, files).is_err() {
            return fill(&existing, files);
        }
        return Ok(());
    }
    rename_staged(directory, files)
}

/// Writes the files beside the directory, and renames them to it. It must be missing or empty.
fn rename_staged(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(parent)?;
    let staging = tempfile::Builder::new().prefix(STAGED).tempdir_in(parent)?;
    fs::rename(stage(staging.path(), files)?, directory)
}

/// Writes the files into an empty directory: complete, or none of them.
fn fill(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    let staging = tempfile::Builder::new().prefix(STAGED).tempdir_in(directory)?;
    let content = stage(staging.path(), files)?;
    let mut moved = Vec::new();
    for entry in fs::read_dir(&content)? {
        let name = entry?.file_name();
        if let Err(e) = fs::rename(content.join(&name), directory.join(&name)) {
            for name in &moved {
                drop(fs::remove_dir_all(directory.join(name)));
            }
            return Err(e);
        }
        moved.push(name);
    }
    Ok(())
}

/// Writes the files to a new directory in `staging`, and returns it.
fn stage(staging: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<PathBuf> {
    // The temporary directory is private; this one has the usual permissions.
    let content = staging.join("content");
    fs::create_dir(&content)?;
    for (path, bytes) in files {
        let path = content.join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)?;
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_replaced_is_filled() {
        let folder = tempfile::tempdir().unwrap();
        let files = BTreeMap::from([(PathBuf::from("manifests/rose.yaml"), b"a: 1\n".to_vec())]);
        fill(folder.path(), &files).unwrap();
        assert!(has_only(folder.path(), &files).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        let new = folder.path().join("a/b");
        write(&new, &files).unwrap();
        assert!(has_only(&new, &files).unwrap());
        fs::create_dir(folder.path().join("empty")).unwrap();
        write(&folder.path().join("empty"), &files).unwrap();
        assert!(has_only(&folder.path().join("empty"), &files).unwrap());
    }
}
