//! The krew manifests: one per plugin, generated from a template.

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::generated::Generated;
use super::{manifests, sources};

/// Platforms of a release, with Go's names and the suffix of their executables.
const PLATFORMS: [(&str, &str, &str); 5] = [
    ("linux", "amd64", ""),
    ("linux", "arm64", ""),
    ("darwin", "amd64", ""),
    ("darwin", "arm64", ""),
    ("windows", "amd64", ".exe"),
];

/// Generates `krew/PLUGIN.yaml` for every plugin. `krew/package` sets the checksums.
pub fn manifests() -> Result<Vec<Generated>> {
    let root: Table = sources::text("Cargo.toml".as_ref())?.unwrap_or_default().parse()?;
    let said = |key: &str| {
        let package = root.get("workspace").and_then(|workspace| workspace.get("package"));
        package
            .and_then(|package| package.get(key))
            .and_then(Value::as_str)
            .with_context(|| format!("Cargo.toml: no {key}"))
    };
    let (version, repository) = (said("version")?, said("repository")?);
    let plugins = manifests::members()?.into_iter().filter(|member| member.file.starts_with("plugins"));
    plugins
        .map(|member| {
            let about = member.package("description").context("a plugin without a description")?;
            Ok(manifest(&member.name, about, version, repository))
        })
        .collect()
}

fn manifest(package: &str, about: &str, version: &str, repository: &str) -> Generated {
    // krew's names of plugins have no kubectl- prefix and only dashes.
    let name = package.trim_start_matches("kubectl-").replace('_', "-");
    // "kubectl olm run: description"
    let (_, short) = about.split_once(": ").unwrap_or(("", about));
    let more = match name.split_once('-') {
        Some((_, word)) => {
            format!("krew links it as `kubectl {name}`; with the plugin olm it is also `kubectl olm {word}`.")
        }
        None => {
            "It hands every other word to the plugin of that name: `kubectl olm run` is the plugin olm-run.".to_owned()
        }
    };
    let head = format!(
        "# Written by tests/src/house/krew.rs; krew/package fills the check sums in.\n\
         apiVersion: krew.googlecontainertools.github.com/v1alpha2\n\
         kind: Plugin\n\
         metadata:\n  name: {name}\n\
         spec:\n  version: v{version}\n  homepage: {repository}\n  shortDescription: {short}\n  \
         description: |\n    {more}\n  \
         platforms:\n",
    );
    let platforms = PLATFORMS.map(|(os, arch, exe)| {
        let archive = format!("{package}_v{version}_{os}_{arch}.tar.gz");
        format!(
            "  - selector:\n      matchLabels:\n        os: {os}\n        arch: {arch}\n    \
             uri: {repository}/releases/download/v{version}/{archive}\n    \
             sha256: \"<sha256 of {archive}>\"\n    bin: {package}{exe}\n",
        )
    });
    let text = head + &platforms.concat();
    Generated { file: format!("krew/{name}.yaml").into(), text }
}
