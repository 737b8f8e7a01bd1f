//! The plugins as processes, as users run them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::data::repository;

/// Returns the binary of a plugin (`kubectl-olm-run`), of the same profile as this test. Cargo builds it if it is not fresh.
///
/// # Errors
/// The plugin does not exist or cannot be built.
pub fn binary(plugin: &str) -> Result<PathBuf> {
    static BINARIES: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    let built = BINARIES.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    let built = built.as_ref().map_err(|error| anyhow::Error::msg(error.clone()))?;
    built.get(plugin).cloned().with_context(|| format!("cargo does not build {plugin}"))
}

/// Returns what is on a terminal on which the prompts of a plugin are answered; `None` if this machine has no program `script`.
///
/// # Errors
/// The plugin cannot be built or started.
pub fn answered(plugin: &str, arguments: &str, kubeconfig: &Path, answers: &str) -> Result<Option<String>> {
    let line = format!("{} {arguments}", binary(plugin)?.display());
    let mut command = Command::new("timeout");
    command.args(["--foreground", "180", "script", "-qec", &line, "/dev/null"]).current_dir(repository());
    command.env("KUBECONFIG", kubeconfig).env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start timeout")?;
    child.stdin.take().context("no stdin")?.write_all(answers.as_bytes())?;
    let output = child.wait_with_output()?;
    // 127: there is no program script.
    Ok((output.status.code() != Some(127)).then(|| String::from_utf8_lossy(&output.stdout).replace('\r', "")))
}

fn build() -> Result<BTreeMap<String, PathBuf>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Building the plugins' own tests builds their binaries with the unified features of all tests. `cargo build` would build
    // half of the dependencies again.
    cargo.current_dir(repository()).args(["test", "--no-run", "--workspace", "--test", "it"]);
    cargo.arg("--message-format=json-render-diagnostics");
    // The variables that cargo sets for a test would change the environment of build scripts, and rebuild their crates.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_"].iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let out = cargo.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(out.status.success(), "cargo cannot build the plugins");
    let messages =
        out.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let plugins = messages.filter(|message| message["target"]["kind"][0] == "bin").filter_map(|message| {
        Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(message["executable"].as_str()?)))
    });
    Ok(plugins.collect())
}
