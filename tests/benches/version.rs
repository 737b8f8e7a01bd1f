//! Response time of the `kubectl olm` plugin, and the size of all plugins.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use olm_shell::cli::Printer;
use olm_tests::bench::{Times, release};
use olm_tests::control_plane::{self, ControlPlane, Options};
use olm_tests::house::manifests;

/// Enough runs to hide a single slow one.
const RUNS: usize = 10;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let plugins: Vec<_> =
        manifests::members()?.into_iter().filter(|member| member.file.starts_with("plugins")).collect();
    for plugin in &plugins {
        let file = release(&plugin.name)?;
        printer.line(format_args!("{}: {:.1} MB", plugin.name, size(&file)?))?;
    }
    let front_door = release("kubectl-olm")?;
    for words in [&["version", "--client"][..], &["version"], &["--help"]] {
        let times = Times::new(RUNS, || run(&front_door, words, None))?;
        printer.line(format_args!("kubectl-olm {}, no cluster: {times}", words.join(" ")))?;
    }
    if !control_plane::skipped() {
        let plane = ControlPlane::start_with(Options { scheduler: false, kwok: false, ..Options::default() })?;
        let times = Times::new(RUNS, || run(&front_door, &["version"], Some(plane.kubeconfig())))?;
        printer.line(format_args!("kubectl-olm version, with a server: {times}"))?;
    }
    Ok(())
}

/// Returns the size in millions of bytes.
fn size(file: &Path) -> Result<f64> {
    let bytes = u32::try_from(file.metadata()?.len())?;
    Ok(f64::from(bytes) / 1e6)
}

/// Runs a program with this cluster or none.
fn run(program: &Path, words: &[&str], kubeconfig: Option<&Path>) -> Result<()> {
    // A missing file is an empty kubeconfig, regardless of the one in the home folder.
    let kubeconfig = kubeconfig.unwrap_or_else(|| "/nowhere".as_ref());
    let mut command = Command::new(program);
    command.args(words).env_clear().env("KUBECONFIG", kubeconfig).stdout(Stdio::null()).stderr(Stdio::null());
    ensure!(command.status()?.success(), "{} {words:?} failed", program.display());
    Ok(())
}
