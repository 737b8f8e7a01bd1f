//! Baselines: files of known findings to omit.

use std::collections::BTreeSet;
use std::path::Path;

use olm_core::lint::Fingerprint;
use olm_core::yaml;
use serde::{Deserialize, Serialize};

use super::output::API_VERSION;
use super::{CliError, ErrorKind, data};

/// The known findings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Baseline(BTreeSet<Fingerprint>);

/// The result of applying a baseline.
pub(crate) struct Known {
    /// The number of omitted findings.
    pub(crate) left_out: usize,
    /// Known findings that no longer occur.
    pub(crate) gone: Vec<Fingerprint>,
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
    /// Reads a baseline of that kind.
    pub(crate) fn read(file: &Path, wanted: &str) -> Result<Self, CliError> {
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
        if (api_version.as_str(), kind.as_str()) != (API_VERSION, wanted) {
            return Err(wrong(format!(
                "expected kind {wanted} of apiVersion {API_VERSION}, found {kind} of {api_version}"
            )));
        }
        let known = findings.into_iter().map(|Entry { code, object, also }| Fingerprint { code, object, also });
        Ok(Self(known.collect()))
    }

    /// Removes known findings.
    pub(crate) fn take_out<T>(self, problems: &mut Vec<T>, fingerprint: impl Fn(&T) -> Fingerprint) -> Known {
        let before = problems.len();
        let found: BTreeSet<Fingerprint> = problems.iter().map(&fingerprint).collect();
        problems.retain(|problem| !self.0.contains(&fingerprint(problem)));
        Known { left_out: before - problems.len(), gone: self.0.difference(&found).cloned().collect() }
    }
}

/// Writes findings as a baseline of that kind.
pub(crate) fn write(file: &Path, kind: &str, findings: BTreeSet<Fingerprint>) -> Result<(), CliError> {
    let entry = |Fingerprint { code, object, also }| Entry { code, object, also };
    let findings = findings.into_iter().map(entry).collect();
    let text = data::yaml(&File { api_version: API_VERSION.to_owned(), kind: kind.to_owned(), findings })?;
    std::fs::write(file, text)
        .map_err(|e| CliError::new(ErrorKind::Io, format!("cannot write: {e}")).at(file.display()))
}
