//! What all commands have in common, as people and programs meet it: completion, flags, and a server that does not answer.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod completion;
mod documented;
mod lists;
mod silence;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use olm_tests::plugin;
use serde_json::json;
use tempfile::TempDir;

/// The programs of a release.
pub(crate) const PROGRAMS: [&str; 5] =
    ["kubectl-olm", "kubectl-olm-catalog", "kubectl-olm-install_plan", "kubectl-olm-operatorgroup", "kubectl-olm-run"];

/// A folder with all programs, as they are unpacked beside each other, and nothing else of this machine.
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

    /// A program of the folder, or of the machine when it is named by its whole path.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(self.path("").join(program));
        command.env_clear().env("HOME", self.0.path()).env("PATH", self.0.path());
        command
    }
}

/// Exit code, stdout and stderr.
pub(crate) fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Ctrl-C has ended it: with 130, or by the signal itself, which a shell tells as 130.
pub(crate) fn interrupted(status: ExitStatus) {
    assert!(status.code() == Some(130) || status.signal() == Some(2), "{status}");
}

/// A kubeconfig with a server and nothing else.
pub(crate) fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": server.starts_with("https")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    })
    .to_string()
}
