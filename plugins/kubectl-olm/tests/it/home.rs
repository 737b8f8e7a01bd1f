//! A folder of executables, and commands with an isolated environment.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// A folder with `kubectl-olm` and the plugins that a test puts beside it.
pub(crate) struct Home {
    folder: TempDir,
}

impl Home {
    /// Returns a folder with only `kubectl-olm`.
    pub(crate) fn new() -> Self {
        let home = Self { folder: TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        // A hard link, because a symbolic one would lead to the build folder with its other executables.
        fs::hard_link(env!("CARGO_BIN_EXE_kubectl-olm"), home.path("kubectl-olm")).unwrap();
        home
    }

    /// Adds a plugin under this file name, as a link to one of the scripts in `plugins/`. A link, because a script that
    /// was just written cannot always be executed.
    pub(crate) fn with(self, file: &str, script: &str) -> Self {
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/plugins");
        symlink(plugins.join(script), self.path(file)).unwrap();
        self
    }

    /// Returns a path in this folder.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Returns a command for a program of this folder or of the system, with a clean environment, this folder first on PATH, and no cluster.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(self.path("").join(program));
        command.env_clear().env("HOME", self.folder.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().display()));
        command
    }

    /// Returns `kubectl-olm` with these arguments.
    pub(crate) fn olm(&self, words: &[&str]) -> Command {
        let mut command = self.command("kubectl-olm");
        command.args(words);
        command
    }
}
