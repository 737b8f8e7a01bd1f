//! Finds, lists and executes the plugins of `kubectl olm`.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use olm_shell::cli::{CliError, name};
use olm_shell::completion::PREFIX;

/// The plugins of this release, and their descriptions in the help, those for everyday use first.
const KNOWN: [(&str, &str); 6] = [
    ("operator", "Install, upgrade, uninstall and show operators"),
    ("catalog", "List, validate, compare, serve and edit operator catalogs"),
    ("install-plan", "List, explain, approve and wait for InstallPlans"),
    ("operatorgroup", "Check, compare, generate, create and delete OperatorGroups"),
    ("run", "Run OLM's controllers on a cluster, as a read-only audit, or as a simulation on files"),
    ("bundle", "Create, validate, build, push and unpack bundles"),
];

/// The largest edit distance at which another command is suggested for an unknown one.
const SLIPS: usize = 2;

/// Replaces this process with the plugin that the first word names and passes on the other words, so that exit code and
/// signals are the plugin's. Returns only on failure.
pub(crate) fn hand_over(words: &[OsString]) -> Result<ExitCode, CliError> {
    let Some((word, arguments)) = words.split_first() else { return Ok(ExitCode::SUCCESS) };
    let Some(file) = word.to_str().and_then(find) else { return Err(unknown(&word.to_string_lossy())) };
    let mut plugin = std::process::Command::new(&file);
    plugin.args(arguments);
    become_the(plugin, word).map_err(|error| CliError::from(error).at(file.display()))
}

#[cfg(unix)]
fn become_the(mut plugin: std::process::Command, word: &std::ffi::OsStr) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    // The usage text of the plugin shows the name as typed, whichever link it was found by.
    if let Some(file) = name::plugin_files(&word.to_string_lossy()).first() {
        let typed = Path::new(plugin.get_program()).with_file_name(file);
        plugin.arg0(typed);
    }
    Err(plugin.exec())
}

#[cfg(not(unix))]
fn become_the(mut plugin: std::process::Command, _word: &std::ffi::OsStr) -> std::io::Result<ExitCode> {
    let code = plugin.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(u8::MAX)))
}

/// Returns the command with every plugin as a subcommand, for help.
pub(crate) fn listed_in(command: clap::Command) -> clap::Command {
    let mut found = found();
    let known = KNOWN.map(|(word, about)| match found.remove(word) {
        Some(_) => clap::Command::new(word).about(about),
        None => clap::Command::new(word).about(format!("{about} (not installed)")),
    });
    let others = found.into_iter().map(|(word, file)| clap::Command::new(word).about(file.display().to_string()));
    let others: Vec<_> = others.filter(|other| command.find_subcommand(other.get_name()).is_none()).collect();
    command.subcommands(known).subcommands(others)
}

/// Returns the command with the installed plugins as subcommands, for completion.
pub(crate) fn installed_in(command: clap::Command) -> clap::Command {
    let others = found().into_keys().filter(|word| command.find_subcommand(word).is_none());
    let others: Vec<_> = others
        .map(|word| {
            let about = KNOWN.iter().find(|(known, _)| *known == word).map_or("A plugin", |(_, about)| about);
            clap::Command::new(word).about(about)
        })
        .collect();
    command.subcommands(others)
}

/// Returns the names of the plugins of this release.
pub(crate) fn ours() -> impl Iterator<Item = &'static str> {
    KNOWN.into_iter().map(|(word, _)| word)
}

/// Returns whether the plugin is one of this release.
pub(crate) fn is_ours(word: &str) -> bool {
    ours().any(|known| known == word)
}

/// Returns whether kubectl itself finds the plugin as a command of `kubectl olm`, by the name of a file on PATH.
pub(crate) fn is_kubectls(word: &str) -> bool {
    let file = format!("kubectl-olm-{}{}", word.replace('-', "_"), env::consts::EXE_SUFFIX);
    on_path().any(|folder| folder.join(&file).is_file())
}

/// Returns the executable that completes the arguments of a third-party plugin, by kubectl's naming rule.
pub(crate) fn completer(word: &str) -> Option<PathBuf> {
    let file = format!("{PREFIX}olm-{}{}", word.replace('-', "_"), env::consts::EXE_SUFFIX);
    let is_name = !word.contains(std::path::is_separator);
    on_path().map(|folder| folder.join(&file)).find(|file| is_name && is_executable(file))
}

/// Returns the folders to search: that of this executable, then those of PATH.
fn folders() -> impl Iterator<Item = PathBuf> {
    let beside = env::current_exe().ok().and_then(|file| file.parent().map(Path::to_owned));
    beside.into_iter().chain(on_path())
}

fn on_path() -> impl Iterator<Item = PathBuf> {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>().into_iter()
}

pub(crate) fn find(word: &str) -> Option<PathBuf> {
    if word.contains(std::path::is_separator) {
        return None;
    }
    let files = name::plugin_files(word);
    folders()
        .flat_map(|folder| files.iter().map(move |file| folder.join(file)).collect::<Vec<_>>())
        .find(|file| is_executable(file))
}

/// Returns every plugin by name. The first folder takes precedence, as in [`find`].
fn found() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for entry in folders().filter_map(|folder| folder.read_dir().ok()).flatten().flatten() {
        if let Some(word) = entry.file_name().to_str().and_then(name::plugin_word)
            && is_executable(&entry.path())
        {
            found.entry(word).or_insert_with(|| entry.path());
        }
    }
    found
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

fn unknown(word: &str) -> CliError {
    if KNOWN.iter().any(|(known, _)| *known == word) {
        return CliError::usage(format!("the plugin {word:?} is not installed"))
            .hint(format!("put kubectl-olm-{word} beside kubectl-olm or on PATH"));
    }
    let known = KNOWN.map(|(word, _)| word.to_owned());
    let nearest = super::own_words()
        .into_iter()
        .chain(known)
        .chain(found().into_keys())
        .map(|other| (strsim::damerau_levenshtein(word, &other), other))
        .filter(|(slips, other)| *slips <= SLIPS && *slips < other.len())
        .min();
    let hint = match nearest {
        Some((_, word)) => format!("did you mean {word:?}?"),
        None => "kubectl olm --help lists the commands".to_owned(),
    };
    CliError::usage(format!("unknown command {word:?}")).hint(hint)
}
