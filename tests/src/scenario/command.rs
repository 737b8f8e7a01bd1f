//! Commands that a scenario's user runs: the built plugin as a process, with only a kubeconfig.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::format::CommandSpec;
use crate::plugin::binary;

impl CommandSpec {
    /// Runs the command in a folder. Returns how its result differs from the expected one.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(&self, folder: &Path, kubeconfig: &Path) -> Result<Option<String>> {
        let mut words = self.command.split_whitespace();
        // kubectl replaces - by _.
        let plugin = format!("kubectl-olm-{}", words.next().unwrap_or_default().replace('-', "_"));
        let mut command = Command::new(binary(&plugin)?);
        command.args(words).current_dir(folder).stdin(Stdio::null()).env_clear().env("KUBECONFIG", kubeconfig);
        let output = command.output().with_context(|| format!("cannot start {plugin}"))?;
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let ended = self.judge(output.status.code(), &format!("{out}{err}"));
        Ok(ended.map(|how| format!("kubectl olm {}: {how}\n{out}{err}", self.command)))
    }

    /// Returns what differs from the expected exit code and output.
    fn judge(&self, code: Option<i32>, said: &str) -> Option<String> {
        if code != Some(self.exit) {
            let code = code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            return Some(format!("{code}, not {}", self.exit));
        }
        let missing = self.says.iter().find(|words| !said.contains(*words))?;
        Some(format!("does not print {missing:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_judged_by_its_exit_code_and_output() {
        let spec = CommandSpec { command: "tea pour".to_owned(), exit: 1, says: vec!["no cup".to_owned()] };
        assert_eq!(spec.judge(Some(1), "hint: no cups are left"), None);
        assert_eq!(spec.judge(Some(0), "no cup"), Some("exit code 0, not 1".to_owned()));
        assert_eq!(spec.judge(None, "no cup"), Some("no exit code, not 1".to_owned()));
        assert_eq!(spec.judge(Some(1), "a cup"), Some("does not print \"no cup\"".to_owned()));
    }
}
