//! Common behaviour of all commands: completion, flags, and servers that do not respond.

#![expect(clippy::unwrap_used, reason = "a test fails at the first unexpected error")]

mod completion;
mod documented;
mod lists;
mod refusals;
mod registry_pod;
mod silence;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use olm_tests::plugin;
use serde_json::json;
use tempfile::TempDir;

/// The programs of a release.
pub(crate) const PROGRAMS: [&str; 7] = [
    "kubectl-olm",
    "kubectl-olm-bundle",
    "kubectl-olm-catalog",
    "kubectl-olm-install_plan",
    "kubectl-olm-operator",
    "kubectl-olm-operatorgroup",
    "kubectl-olm-run",
];

/// A folder with all programs, as in an unpacked release, without anything else from this machine.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in PROGRAMS {
            fs::hard_link(plugin::binary(name).unwrap(), folder.path().join(name)).unwrap();
        }
        Self(folder)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    /// Returns a program of the folder, or of the machine if the path is absolute.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(self.path("").join(program));
        command.env_clear().env("HOME", self.0.path()).env("PATH", self.0.path());
        command
    }
}

/// Returns exit code, stdout and stderr.
pub(crate) fn captured(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Checks that Ctrl-C ended it: with 130, or by the signal itself, which a shell reports as 130.
pub(crate) fn interrupted(status: ExitStatus) {
    assert!(status.code() == Some(130) || status.signal() == Some(2), "{status}");
}

/// Returns a kubeconfig with only a server.
pub(crate) fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": server.starts_with("https")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    })
    .to_string()
}
