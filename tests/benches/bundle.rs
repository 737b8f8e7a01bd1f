//! Time to validate all published bundles in one run, and one bundle in a process of its own, as other tools do; and to build an image.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use olm_shell::cli::Printer;
use olm_tests::bench::{Times, release, watch};
use olm_tests::data::{NO_DATA, data};

const RUNS: usize = 5;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let bundles = data().context(NO_DATA)?.join("bundles");
    let plugin = release("kubectl-olm-bundle")?;
    let all = all(&bundles)?;
    let validate = |path: &Path| -> Result<u64> {
        let mut command = Command::new(&plugin);
        command.arg("validate").arg(path).args(["--fail-on", "never"]).stdout(Stdio::null()).stderr(Stdio::null());
        let (succeeded, peak) = watch(command.spawn()?)?;
        ensure!(succeeded, "validate {} failed", path.display());
        Ok(peak)
    };
    let mut peak = 0;
    let together = Times::new(RUNS, || {
        peak = validate(&bundles)?;
        Ok(())
    })?;
    printer.line(format_args!("validate, {} bundles in one run: {together}, {peak} MB", all.len()))?;
    let apart = Times::new(1, || all.iter().try_for_each(|bundle| validate(bundle).map(drop)))?;
    let ratio = apart.median().as_secs_f64() / together.median().as_secs_f64();
    printer.line(format_args!("the same with a process each: {apart}, {ratio:.1} times as long"))?;
    let build = Times::new(RUNS, || {
        let mut command = Command::new(&plugin);
        command.arg("build").arg(&all[0]).args(["-t", "rose:1"]).stdout(Stdio::null()).stderr(Stdio::null());
        ensure!(command.status()?.success(), "build {} failed", all[0].display());
        Ok(())
    })?;
    printer.line(format_args!("build of one image: {build}"))?;
    Ok(())
}

/// Returns the directories of the bundles.
fn all(bundles: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for package in std::fs::read_dir(bundles)? {
        let package = package?.path();
        if package.is_dir() {
            for version in std::fs::read_dir(package)? {
                let version = version?.path();
                if version.join("manifests").is_dir() {
                    found.push(version);
                }
            }
        }
    }
    found.sort();
    ensure!(!found.is_empty(), "no bundles in {}", bundles.display());
    Ok(found)
}
