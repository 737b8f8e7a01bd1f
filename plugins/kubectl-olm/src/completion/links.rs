//! Creates the links by which kubectl finds the completion of its plugins.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::completion::PREFIX;

use crate::plugins;

/// Creates the links, and leaves those that exist.
pub(super) fn make(folder: Option<PathBuf>, printer: &mut Printer) -> Result<Outcome, CliError> {
    let program = program()?;
    let beside = program.parent().map(Path::to_owned).unwrap_or_default();
    let folder = match folder {
        Some(folder) => std::path::absolute(folder)?,
        None => beside.clone(),
    };
    // A link in the program's own folder is relative, so that the folder can be moved.
    let target = match program.file_name() {
        Some(file) if folder == beside => PathBuf::from(file),
        _ => program,
    };
    for name in names() {
        let link = folder.join(&name);
        let done = place(&link, &target).map_err(|error| explained(error, &link))?;
        printer.line(format_args!("{} {done}", link.display()))?;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    if !env::split_paths(&path).any(|on_path| on_path == folder) {
        printer.warn(format_args!("{} is not on PATH: kubectl does not find the links", folder.display()));
    }
    Ok(Outcome::Done)
}

/// Returns the path by which this program was called. A link of krew keeps its path when krew upgrades the program
/// behind it.
fn program() -> Result<PathBuf, CliError> {
    let called = env::args_os().next().map(PathBuf::from).filter(|called| called.components().count() > 1);
    match called.filter(|called| called.is_file()) {
        Some(called) => Ok(std::path::absolute(called)?),
        None => Ok(env::current_exe()?),
    }
}

/// Returns the names of the links: one for `kubectl olm`, and two for each plugin, which kubectl also finds on PATH
/// itself, as `kubectl olm run` or, when installed by krew, as `kubectl olm-run`.
fn names() -> Vec<String> {
    let plugins = plugins::ours().flat_map(|word| {
        let word = word.replace('-', "_");
        [format!("{PREFIX}olm-{word}"), format!("{PREFIX}olm_{word}")]
    });
    std::iter::once(format!("{PREFIX}olm")).chain(plugins).collect()
}

/// Creates one link. Replaces existing links only if they point to kubectl-olm.
fn place(link: &Path, target: &Path) -> io::Result<&'static str> {
    match fs::read_link(link) {
        Ok(there) if there == target => return Ok("unchanged"),
        Ok(there) if there.file_name() == Some("kubectl-olm".as_ref()) => fs::remove_file(link)?,
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => {}
    }
    symlink(target, link)?;
    Ok("created")
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    fs::hard_link(link.parent().unwrap_or(link).join(target), link)
}

fn explained(error: io::Error, link: &Path) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "the file is not a link of kubectl-olm: remove it, or choose another folder with --dir"
        }
        _ => "choose a writable folder on PATH with --dir",
    };
    CliError::from(error).at(link.display()).hint(hint)
}
