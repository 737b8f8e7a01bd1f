//! The API server's audit log: who asked it to write what, and when that began and ended. No client can write it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use olm_core::api::object;
use serde_json::Value;

pub(super) const POLICY_FILE: &str = "audit-policy.yaml";
pub(super) const LOG_FILE: &str = "audit.log";

/// Writes, each when it arrives and when it is answered. Of Leases also what became of them.
pub(super) const POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources: [{ group: coordination.k8s.io, resources: [leases] }]
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
";

/// A write begins, or it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The same for begin and end of one write.
    pub id: String,
    /// Who asks. Whoever acts as another is meant, not the other.
    pub user: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The plural of the kind, with `/` and the subresource if it is about one.
    pub resource: String,
    /// Empty when there is none.
    pub namespace: String,
    /// Empty when the API server is to make one up.
    pub name: String,
    /// The HTTP status of the answer; `None`: it begins.
    pub code: Option<u16>,
    /// The Lease as it is then; of other kinds nothing.
    pub object: Option<Value>,
}

impl Entry {
    fn read(event: &Value) -> Self {
        let text = |path: &[&str]| object::text(event, path).to_owned();
        let (resource, part) = (text(&["objectRef", "resource"]), text(&["objectRef", "subresource"]));
        let code = object::at(event, &["responseStatus", "code"]).as_u64().and_then(|code| code.try_into().ok());
        Self {
            id: text(&["auditID"]),
            user: text(&["user", "username"]),
            verb: text(&["verb"]),
            resource: if part.is_empty() { resource } else { format!("{resource}/{part}") },
            namespace: text(&["objectRef", "namespace"]),
            name: text(&["objectRef", "name"]),
            code: code.filter(|_| text(&["stage"]) != "RequestReceived"),
            object: event.get("responseObject").cloned(),
        }
    }
}

/// What is written down so far.
pub(super) fn read(log: &Path) -> Result<Vec<Entry>> {
    let text = match fs::read_to_string(log) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("the audit log"),
    };
    // The last line may still be on its way.
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    let events = complete.lines().map(|line| serde_json::from_str::<Value>(line).context("the audit log"));
    events.map(|event| Ok(Entry::read(&event?))).collect()
}
