//! The API server's audit log: the user, the start and the end of every write. Clients cannot write it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use olm_core::api::object;
use serde_json::Value;

pub(super) const POLICY_FILE: &str = "audit-policy.yaml";
pub(super) const LOG_FILE: &str = "audit.log";

/// Logs writes at their arrival and at their response. For Leases also the resulting object.
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

/// The beginning or the end of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Equal for begin and end of one write.
    pub id: String,
    /// The user of the request. With impersonation, the impersonating user.
    pub user: String,
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The plural of the kind, with `/` and the subresource if there is one.
    pub resource: String,
    /// Empty if there is none.
    pub namespace: String,
    /// Empty if the API server generates the name.
    pub name: String,
    /// The HTTP status of the response; `None` at the beginning.
    pub code: Option<u16>,
    /// The Lease at that time; `None` for other kinds.
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

/// Returns the entries so far.
pub(super) fn read(log: &Path) -> Result<Vec<Entry>> {
    let text = match fs::read_to_string(log) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("the audit log"),
    };
    // The last line may be incomplete.
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    let events = complete.lines().map(|line| serde_json::from_str::<Value>(line).context("the audit log"));
    events.map(|event| Ok(Entry::read(&event?))).collect()
}
