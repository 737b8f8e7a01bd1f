//! Scenarios: recordings of the real OLM, step by step, and whether this implementation ends every step with the same objects.
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

/// Returns the folder with the scenarios recorded from OLM that are part of this repository.
pub fn checked_in() -> PathBuf {
    repository().join("tests/scenarios")
}

/// Returns the folder with the scenarios of features that OLM does not have, so that they could not be recorded. Their golden
/// is the reviewed result of this implementation.
pub fn own() -> PathBuf {
    checked_in().join("own")
}

/// Returns all scenarios by name: those of this repository, and, if the data folder exists, those that use its real bundles.
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

/// Returns the scenario folders within a folder.
pub fn folders(parent: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(parent).with_context(|| format!("cannot read {}", parent.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.join("scenario.yaml").exists()).collect())
}
