//! Cargo.toml: what is the same for all crates is said once, in the root.

use std::path::PathBuf;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::Finding;
use super::sources::{self, Source};

/// A crate of the workspace.
pub struct Member {
    /// Name of the package.
    pub name: String,
    /// Its Cargo.toml, from the root of the repository.
    pub file: PathBuf,
    manifest: Table,
}

/// Every crate of the workspace.
pub fn members() -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for file in sources::files()?.into_iter().filter(|file| file.ends_with("Cargo.toml")) {
        let manifest: Table =
            sources::text(&file)?.unwrap_or_default().parse().with_context(|| file.display().to_string())?;
        let name = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
        // What is a workspace of its own is no crate of this one: tests/fuzz.
        if let Some(name) = name.filter(|_| !manifest.contains_key("workspace")).map(str::to_owned) {
            members.push(Member { name, file, manifest });
        }
    }
    Ok(members)
}

impl Member {
    /// What the package says about itself under this key, when it is a string.
    pub fn package(&self, key: &str) -> Option<&str> {
        self.manifest.get("package")?.get(key)?.as_str()
    }

    /// Every dependency: the table it is in, its name, and what is said about it.
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

/// What every package takes from the root.
const SHARED: [&str; 6] = ["version", "edition", "rust-version", "license", "repository", "publish"];

/// Crates that say for themselves what the root says for all.
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

/// Dependencies whose name no Rust file of the crate says.
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
