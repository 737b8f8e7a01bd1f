//! Writes files into a directory in which files of earlier runs were changed by hand.
//!
//! *Guarantee*: what was changed by hand, comments included, stays as it is: changes of both sides are joined by a three-way merge,
//! and where both changed the same lines nothing is written. The common ancestor of the merge is what the earlier run wrote; it is
//! in [`STATE`], which is part of no bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize as _;
use similar::TextMerge;

use super::files::Files;
use crate::cli::replace::{self, Replacement};
use crate::cli::{CliError, Printer};
use crate::observe::files::files_in;

/// The subdirectory with the files as they were written before they were changed by hand.
pub(super) const STATE: &str = ".kubectl-olm/synthesized";
/// The labels of the three sides in a conflict.
const SIDES: [&str; 3] = ["last run", "changed by hand", "this run"];

/// Maximum number of lines of a conflict in a message.
const EXCERPT: usize = 30;

/// Files to write.
pub(super) struct Merge {
    /// The files of the bundle that change, with their path for messages.
    pub(super) files: Vec<(String, Replacement)>,
    /// What the next run merges with.
    state: Vec<Replacement>,
    /// Files of an earlier run that are no longer generated, with their path for messages, and the files of [`STATE`] for them.
    stale: Vec<(String, Replacement, PathBuf)>,
}

impl Merge {
    /// Joins the files with those of the directory, except for the `edited` ones, which replace them. Files of earlier runs below `scope`
    /// that are not among them are removed.
    ///
    /// # Errors
    /// Files cannot be read, or were changed by hand where this run changes or removes them.
    pub(super) fn new(
        directory: &Path,
        files: Files,
        edited: &BTreeSet<String>,
        scope: &str,
    ) -> Result<Self, CliError> {
        let mut merge = Self { files: Vec::new(), state: Vec::new(), stale: Vec::new() };
        refuse_links(directory, Path::new(STATE))?;
        let mut conflicts = BTreeMap::new();
        merge.find_stale(directory, &files, scope)?;
        for (name, new) in files {
            if Path::new(&name).components().any(|part| !matches!(part, Component::Normal(_))) {
                return Err(CliError::input("the name of a generated file leads out of the directory").at(name));
            }
            refuse_links(directory, Path::new(&name))?;
            refuse_links(directory, &Path::new(STATE).join(&name))?;
            let path = directory.join(&name);
            let shown = path.display().to_string();
            let state = directory.join(STATE).join(&name);
            let read = |path: &Path| replace::read(path).map_err(|e| CliError::from(e).at(path.display()));
            let (before, base) = (read(&path)?, read(&state)?);
            let text = |bytes: &Option<Vec<u8>>| {
                let text = bytes.clone().map(String::from_utf8).transpose();
                text.map_err(|_| CliError::input("the file is not UTF-8; nothing was written").at(&shown))
            };
            let after = match text(&before)? {
                None => new.clone(),
                Some(_) if edited.contains(&name) => new.clone(),
                Some(ours) => match merged(&text(&base)?.unwrap_or_default(), &ours, &new) {
                    Ok(after) => after,
                    Err(conflict) => {
                        conflicts.insert(shown, conflict);
                        continue;
                    }
                },
            };
            if before.as_deref() != Some(after.as_bytes()) {
                merge.files.push((shown, Replacement { path, before, after: after.into_bytes() }));
            }
            if base.as_deref() != Some(new.as_bytes()) {
                merge.state.push(Replacement { path: state, before: base, after: new.into_bytes() });
            }
        }
        if conflicts.is_empty() {
            return Ok(merge);
        }
        if !directory.join(STATE).is_dir() {
            let error = CliError::input(
                "the directory has files that an earlier run or another author wrote; nothing was written",
            );
            return Err(error.at(directory.display()).hint(format!(
                "restore {STATE}, which distinguishes generated content from changes by hand, or write to a new directory"
            )));
        }
        Err(refuse(&conflicts))
    }

    /// Finds the files that are no longer generated.
    fn find_stale(&mut self, directory: &Path, files: &Files, scope: &str) -> Result<(), CliError> {
        let root = directory.join(STATE);
        if !root.is_dir() {
            return Ok(());
        }
        for state in files_in(&root, "")? {
            let name = state.strip_prefix(&root).unwrap_or(&state).to_string_lossy().into_owned();
            if files.contains_key(&name) || !name.starts_with(scope) {
                continue;
            }
            refuse_links(directory, Path::new(&name))?;
            refuse_links(directory, &Path::new(STATE).join(&name))?;
            let path = directory.join(&name);
            let shown = path.display().to_string();
            let read = |path: &Path| replace::read(path).map_err(|e| CliError::from(e).at(path.display()));
            let (before, base) = (read(&path)?, read(&state)?);
            if before.is_some() && before != base {
                let error =
                    CliError::input("the file is no longer generated, but was changed by hand; nothing was written");
                return Err(error.at(shown).hint("delete it, or undo the change in it"));
            }
            self.stale.push((shown, Replacement { path, before, after: Vec::new() }, state));
        }
        Ok(())
    }

    /// Writes the files together, or none of them.
    pub(super) fn write(self, printer: &mut Printer) -> Result<(), CliError> {
        let (shown, mut replacements): (Vec<String>, Vec<Replacement>) = self.files.into_iter().unzip();
        replacements.extend(self.state);
        replace::replace(&replacements)?;
        for (shown, file) in shown.iter().zip(&replacements) {
            let what = if file.before.is_some() { "changed" } else { "new" };
            printer.talk(format_args!("{what}: {shown}"));
        }
        let is_current = shown.is_empty() && self.stale.is_empty();
        for (shown, file, state) in self.stale {
            if file.before.is_some() {
                fs::remove_file(&file.path).map_err(|e| CliError::from(e).at(&shown))?;
                printer.talk(format_args!("removed: {shown}"));
            }
            fs::remove_file(&state).map_err(|e| CliError::from(e).at(state.display()))?;
        }
        if is_current {
            printer.talk("all files are up to date");
        }
        Ok(())
    }

    /// Prints the changes in the format of `diff -u`.
    pub(super) fn print(&self, printer: &mut Printer) -> Result<(), CliError> {
        let paint = printer.paint();
        let stale = self.stale.iter().map(|(shown, file, _)| (shown, file));
        let changes = self.files.iter().map(|(shown, file)| (shown, file)).chain(stale);
        changes.into_iter().try_for_each(|(shown, file)| printer.data(paint.diff(&file.diff(shown))))
    }
}

/// Refuses symbolic links on the way to a file of the directory: it would be written elsewhere, or the link replaced.
fn refuse_links(directory: &Path, name: &Path) -> Result<(), CliError> {
    let mut path = directory.to_owned();
    for part in name.components() {
        path.push(part);
        if path.is_symlink() {
            let error = CliError::input("this is a symbolic link; nothing was written").at(path.display());
            return Err(
                error.hint("replace it by the file or directory that it refers to, or write to another directory")
            );
        }
    }
    Ok(())
}

/// Joins the changes from `base` to both texts; the error is the joined text with its conflicts marked.
fn merged(base: &str, ours: &str, new: &str) -> Result<String, String> {
    // A file of another origin that has the same content.
    if ours == new || base == new {
        return Ok(ours.to_owned());
    }
    let mut merge = TextMerge::from_lines(base, ours, new);
    let [ancestor, by_hand, this_run] = SIDES;
    merge.labels(ancestor, by_hand, this_run);
    let text = merge.to_string();
    // Lines that both sides add to the same map can repeat a key.
    let is_valid = |text: &str| {
        serde_yaml::Deserializer::from_str(text).all(|document| serde_yaml::Value::deserialize(document).is_ok())
    };
    let is_broken = !is_valid(&text) && is_valid(ours);
    if merge.is_conflicted() || base.is_empty() || is_broken { Err(text) } else { Ok(text) }
}

/// Returns the error for files that were changed by hand where this run changes them, too, with the first conflict.
fn refuse(conflicts: &BTreeMap<String, String>) -> CliError {
    let names: Vec<&str> = conflicts.keys().map(String::as_str).collect();
    let marked = conflicts.iter().next().map(|(name, text)| excerpt(name, text)).unwrap_or_default();
    CliError::input(format!(
        "these files were changed by hand in lines that change now, too; nothing was written: {}{marked}",
        names.join(", ")
    ))
    .hint("change the manifests or olm.yaml instead, or undo the change in the file")
    .hint("to compare, write to another directory with --output-dir; to discard the change, delete the file")
}

/// Returns the lines of the first conflict of a file.
fn excerpt(name: &str, text: &str) -> String {
    let begin = text.lines().position(|line| line.starts_with("<<<<<<<"));
    let Some(begin) = begin else { return String::new() };
    let mut lines = Vec::new();
    for line in text.lines().skip(begin) {
        if lines.len() == EXCERPT {
            lines.push("| …".to_owned());
            break;
        }
        lines.push(format!("| {line}"));
        if line.starts_with(">>>>>>>") {
            break;
        }
    }
    format!("\nthe first conflict, in {name}:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Files {
        Files::from([("manifests/rose.yaml".to_owned(), text.to_owned())])
    }

    fn write(directory: &Path, text: &str) -> Result<String, CliError> {
        let mut printer = Printer::to(Vec::new(), Vec::new());
        Merge::new(directory, files(text), &BTreeSet::new(), "")?.write(&mut printer)?;
        Ok(fs::read_to_string(directory.join("manifests/rose.yaml")).unwrap())
    }

    #[test]
    fn changes_by_hand_and_comments_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifests/rose.yaml");
        assert_eq!(write(directory.path(), "a: 1\nb: 1\nc: 1\nd: 1\n").unwrap(), "a: 1\nb: 1\nc: 1\nd: 1\n");
        fs::write(&path, "# by hand\na: 2\nb: 1\nc: 1\nd: 1\n").unwrap();
        assert_eq!(write(directory.path(), "a: 1\nb: 1\nc: 1\nd: 5\n").unwrap(), "# by hand\na: 2\nb: 1\nc: 1\nd: 5\n");
        // Also when nothing new is generated, and again.
        assert_eq!(write(directory.path(), "a: 1\nb: 1\nc: 1\nd: 5\n").unwrap(), "# by hand\na: 2\nb: 1\nc: 1\nd: 5\n");
        assert_eq!(write(directory.path(), "a: 1\nb: 1\nc: 1\nd: 6\n").unwrap(), "# by hand\na: 2\nb: 1\nc: 1\nd: 6\n");
    }

    #[test]
    fn files_that_are_no_longer_generated_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let both = Files::from(["a.yaml", "b.yaml"].map(|name| (format!("manifests/{name}"), "a: 1\n".to_owned())));
        let one = Files::from([("manifests/a.yaml".to_owned(), "a: 1\n".to_owned())]);
        let mut printer = Printer::to(Vec::new(), Vec::new());
        let stale = directory.path().join("manifests/b.yaml");
        Merge::new(directory.path(), both.clone(), &BTreeSet::new(), "").unwrap().write(&mut printer).unwrap();
        Merge::new(directory.path(), one.clone(), &BTreeSet::new(), "").unwrap().write(&mut printer).unwrap();
        assert!(!stale.exists());
        Merge::new(directory.path(), both, &BTreeSet::new(), "").unwrap().write(&mut printer).unwrap();
        Merge::new(directory.path(), one.clone(), &BTreeSet::new(), "other/").unwrap().write(&mut printer).unwrap();
        assert!(stale.exists(), "out of scope");
        fs::write(&stale, "a: 2\n").unwrap();
        let refused = Merge::new(directory.path(), one, &BTreeSet::new(), "").map(|_| ()).unwrap_err();
        assert!(refused.message.contains("no longer generated"), "{refused}");
        assert!(stale.exists());
    }

    #[cfg(unix)]
    #[test]
    fn files_are_not_written_through_symbolic_links() {
        use std::os::unix::fs::symlink;
        for link in [".kubectl-olm", ".kubectl-olm/synthesized", "manifests", "manifests/rose.yaml"] {
            let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let path = directory.path().join(link);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(elsewhere.path(), &path).unwrap();
            let refused = write(directory.path(), "a: 1\n").unwrap_err();
            assert!(refused.message.contains("symbolic link"), "{link}: {refused}");
            assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{link}");
        }
    }

    #[test]
    fn a_conflict_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifests/rose.yaml");
        write(directory.path(), "a: 1\nb: 1\n").unwrap();
        fs::write(&path, "a: 2\nb: 1\n").unwrap();
        let refused = write(directory.path(), "a: 3\nb: 1\n").unwrap_err();
        assert!(refused.message.contains("| <<<<<<< changed by hand\n| a: 2\n"), "{}", refused.message);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a: 2\nb: 1\n");
        // What both sides add would be a map with the same key twice.
        fs::write(&path, "c: 1\na: 1\nb: 1\n").unwrap();
        assert!(write(directory.path(), "a: 1\nb: 1\nc: 1\n").is_err());
        // A file of another origin.
        let other = tempfile::tempdir().unwrap();
        fs::create_dir_all(other.path().join("manifests")).unwrap();
        fs::write(other.path().join("manifests/rose.yaml"), "x: 1\n").unwrap();
        assert!(write(other.path(), "a: 1\n").is_err());
    }
}
