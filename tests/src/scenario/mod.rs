//! Scenarios: what the real OLM did, step by step, and whether ours ends every step with the same objects.
//!
//! ```text
//!   format ── scenario ──▶ runner ── drives ──▶ engine (cluster, or the simulation)
//!                            │  ◀── changes ──── store, condition
//!                            ▼ normalise
//!   format ── golden ──▶ compare ◀── recording
//!                            ▼
//!   differences.yaml ──▶ judge ◀── passing.yaml
//! ```

pub mod catalog;
pub mod cluster;
pub mod command;
pub mod compare;
pub mod condition;
pub mod differences;
pub mod engine;
pub mod format;
pub mod judge;
pub mod normalise;
pub mod python;
pub mod recording;
pub mod runner;
pub mod sim;
pub mod store;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::data::{data, repository};

/// The folder with the scenarios that are part of this repository.
pub fn checked_in() -> PathBuf {
    repository().join("tests/scenarios")
}

/// The folder with the scenarios of our own: what OLM does not do, so that nothing of it could be recorded. Their golden is what ours
/// did when somebody looked whether it is right.
pub fn own() -> PathBuf {
    checked_in().join("own")
}

/// All scenarios by name: those of this repository, and those of the data folder that name real bundles, when it is there.
pub fn all() -> Result<BTreeMap<String, format::Scenario>> {
    let mut scenarios = BTreeMap::new();
    let recorded = data().map(|data| data.join("scenarios"));
    for folder in recorded.iter().map(PathBuf::as_path).chain([checked_in().as_path(), own().as_path()]) {
        for folder in folders(folder)? {
            let scenario = format::Scenario::read(&folder)?;
            scenarios.insert(scenario.name.clone(), scenario);
        }
    }
    Ok(scenarios)
}

/// The scenario folders within a folder.
pub fn folders(parent: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(parent).with_context(|| format!("cannot read {}", parent.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.join("scenario.yaml").exists()).collect())
}
