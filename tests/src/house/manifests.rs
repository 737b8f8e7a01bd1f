//! Cargo.toml: settings common to all crates are defined once, in the root.

use std::path::PathBuf;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;
use super::sources::{self, Source};

/// A crate of the workspace.
pub struct Member {
    /// Name of the package.
    pub name: String,
    /// Its Cargo.toml, relative to the root of the repository.
    pub file: PathBuf,
    manifest: Table,
}

/// Returns every crate of the workspace.
pub fn members() -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for file in sources::files()?.into_iter().filter(|file| file.ends_with("Cargo.toml")) {
        let manifest: Table =
            sources::text(&file)?.unwrap_or_default().parse().with_context(|| file.display().to_string())?;
        let name = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
        // tests/fuzz is a workspace of its own, and not a crate of this one.
        if let Some(name) = name.filter(|_| !manifest.contains_key("workspace")).map(str::to_owned) {
            members.push(Member { name, file, manifest });
        }
    }
    Ok(members)
}

impl Member {
    /// Returns the value of this key of the package, if it is a string.
    pub fn package(&self, key: &str) -> Option<&str> {
        self.manifest.get("package")?.get(key)?.as_str()
    }

    /// Returns every dependency: its table, its name, and its specification.
    pub fn dependencies(&self) -> impl Iterator<Item = (String, &str, &Value)> {
        let targets = self.manifest.get("target").and_then(Value::as_table).into_iter().flatten();
        let targets = targets.filter_map(|(target, tables)| Some((format!("target.{target}."), tables.as_table()?)));
        let tables = std::iter::once((String::new(), &self.manifest)).chain(targets);
        tables.flat_map(|(prefix, tables)| {
            ["dependencies", "dev-dependencies", "build-dependencies"].into_iter().flat_map(move |kind| {
                let entries = tables.get(kind).and_then(Value::as_table).into_iter().flatten();
                let table = format!("{prefix}{kind}");
                entries.map(move |(name, said)| (table.clone(), name.as_str(), said))
            })
        })
    }
}

/// The keys that every package inherits from the root.
const SHARED: [&str; 6] = ["version", "edition", "rust-version", "license", "repository", "publish"];

/// Returns crates that set keys which they should inherit from the root.
pub fn said_outside_the_root() -> Result<Vec<Finding>> {
    let from_root = |said: Option<&Value>| said.and_then(|said| said.get("workspace")) == Some(&Value::Boolean(true));
    let mut findings = Vec::new();
    for member in members()? {
        let wrong = member.dependencies().filter(|(_, _, said)| {
            !from_root(Some(said)) || ["version", "path", "git"].iter().any(|key| said.get(key).is_some())
        });
        findings.extend(wrong.map(|(table, name, _)| {
            Finding::new(
                &member.file,
                0,
                format!("[{table}] {name}: write {name}.workspace = true, the version is the root's"),
            )
        }));
        let package = member.manifest.get("package");
        let missing = SHARED.into_iter().filter(|key| !from_root(package.and_then(|package| package.get(key))));
        findings.extend(missing.map(|key| Finding::new(&member.file, 0, format!("write {key}.workspace = true"))));
        if !from_root(member.manifest.get("lints")) {
            findings.push(Finding::new(&member.file, 0, "write [lints] workspace = true"));
        }
    }
    Ok(findings)
}

/// Returns dependencies whose name does not occur in any Rust file of the crate.
pub fn unused(sources: &[Source]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in members()? {
        let folder = member.file.parent().unwrap_or(&member.file);
        let texts: Vec<_> = sources.iter().filter(|source| source.file.starts_with(folder)).collect();
        let is_word = |text: &str, name: &str| {
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.any(|word| word == name)
        };
        for (table, name, _) in member.dependencies() {
            let in_code = name.replace('-', "_");
            if !texts.iter().any(|source| is_word(&source.text, &in_code)) {
                findings.push(Finding::new(&member.file, 0, format!("[{table}] {name} is not used")));
            }
        }
    }
    Ok(findings)
}
