//! The baseline: a file of known findings to omit.

use std::collections::BTreeSet;
use std::path::Path;

use olm_core::lint::{Fingerprint, Problem};
use olm_core::yaml;
use serde::{Deserialize, Serialize};

use crate::cli::data;
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, ErrorKind};

const KIND: &str = "LintBaseline";

/// The known findings.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline(BTreeSet<Fingerprint>);

/// The result of applying a baseline.
pub(super) struct Known {
    /// The number of omitted findings.
    pub(super) left_out: usize,
    /// Known findings that no longer occur.
    pub(super) gone: Vec<Fingerprint>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    findings: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    code: String,
    object: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also: Vec<String>,
}

impl Baseline {
    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let bytes = std::fs::read(file).map_err(|e| {
            CliError::new(ErrorKind::Io, format!("cannot read: {e}"))
                .at(file.display())
                .hint("create it with --create-baseline")
        })?;
        let wrong =
            |message: String| CliError::input(message).at(file.display()).hint("recreate it with --create-baseline");
        let documents = yaml::documents(&bytes).map_err(|e| wrong(e.message))?;
        let [document] = &documents[..] else { return Err(wrong("this is not a baseline".to_owned())) };
        let value = document.value().map_err(|e| wrong(e.message))?;
        let File { api_version, kind, findings } =
            serde_json::from_value(value).map_err(|e| wrong(format!("this is not a baseline: {e}")))?;
        if (api_version.as_str(), kind.as_str()) != (API_VERSION, KIND) {
            return Err(wrong(format!(
                "expected kind {KIND} of apiVersion {API_VERSION}, found {kind} of {api_version}"
            )));
        }
        let known = findings.into_iter().map(|Entry { code, object, also }| Fingerprint { code, object, also });
        Ok(Self(known.collect()))
    }

    /// Removes known findings.
    pub(super) fn take_out(self, problems: &mut Vec<Problem>) -> Known {
        let before = problems.len();
        let found: BTreeSet<Fingerprint> = problems.iter().map(Problem::fingerprint).collect();
        problems.retain(|problem| !self.0.contains(&problem.fingerprint()));
        Known { left_out: before - problems.len(), gone: self.0.difference(&found).cloned().collect() }
    }
}

/// Writes the findings as a baseline.
pub(super) fn write(file: &Path, problems: &[Problem]) -> Result<(), CliError> {
    let found: BTreeSet<Fingerprint> = problems.iter().map(Problem::fingerprint).collect();
    let entry = |Fingerprint { code, object, also }| Entry { code, object, also };
    let findings = found.into_iter().map(entry).collect();
    let text = data::yaml(&File { api_version: API_VERSION.to_owned(), kind: KIND.to_owned(), findings })?;
    std::fs::write(file, text)
        .map_err(|e| CliError::new(ErrorKind::Io, format!("cannot write: {e}")).at(file.display()))
}
