//! Links by which kubectl finds the completion of its plugins.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::completion::PREFIX;

use crate::plugins;

/// Makes the links, or leaves them if they are there.
pub(super) fn make(folder: Option<PathBuf>, printer: &mut Printer) -> Result<Outcome, CliError> {
    let program = program()?;
    let beside = program.parent().map(Path::to_owned).unwrap_or_default();
    let folder = match folder {
        Some(folder) => std::path::absolute(folder)?,
        None => beside.clone(),
    };
    // A link beside the program moves with it.
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
        printer.warn(format_args!("{} is not on PATH: kubectl does not look there", folder.display()));
    }
    Ok(Outcome::Done)
}

/// How this program is called. A link of krew stays where it is when the program behind it is upgraded.
fn program() -> Result<PathBuf, CliError> {
    let called = env::args_os().next().map(PathBuf::from).filter(|called| called.components().count() > 1);
    match called.filter(|called| called.is_file()) {
        Some(called) => Ok(std::path::absolute(called)?),
        None => Ok(env::current_exe()?),
    }
}

/// One for `kubectl olm`, and two for each plugin, which kubectl knows by itself when it is on PATH: as `kubectl olm run`, or as `kubectl
/// olm-run` when krew has installed it.
fn names() -> Vec<String> {
    let plugins = plugins::ours().flat_map(|word| {
        let word = word.replace('-', "_");
        [format!("{PREFIX}olm-{word}"), format!("{PREFIX}olm_{word}")]
    });
    std::iter::once(format!("{PREFIX}olm")).chain(plugins).collect()
}

/// Makes one link. Only links to kubectl-olm are replaced.
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
        io::ErrorKind::AlreadyExists => "it is not ours: move it away, or choose another folder with --dir",
        _ => "choose a folder that you may write to, and that is on PATH, with --dir",
    };
    CliError::from(error).at(link.display()).hint(hint)
}
