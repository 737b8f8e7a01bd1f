//! What `run --audit` prints with `-o json`: an [`AuditEvent`] in each line; with `-o yaml` a document each.

use olm_core::api::object::ObjectRef;
use olm_core::plan::{Action, Key, Reason, Severity};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::report::Cause;
use crate::cli::flags::DataFormat;
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, Printer};

/// Something that the controllers would do, or that they cannot do.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `kubectl-olm/v1`
    pub api_version: String,
    /// `AuditEvent`
    pub kind: String,
    /// What it tells.
    pub r#type: AuditType,
    /// For whom it would be done, the controller and its object: `CONTROLLER NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What would be done: `create`, `update`, `patch`, `delete`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The object that it would be done to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<AuditObject>,
    /// The patch that would be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// Why nothing more is done: the field `reason` names the kind, the others depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Map<String, Value>>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What a person could do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuditType {
    /// A write that would be sent.
    Action,
    /// A person has to do something before more is done.
    Blocked,
    /// Something is under way.
    Waiting,
    /// Worth knowing, and nothing is wrong.
    Note,
}

/// An object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditObject {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty when it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl AuditEvent {
    fn new(r#type: AuditType) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "AuditEvent".to_owned(),
            r#type,
            subject: None,
            verb: None,
            object: None,
            patch: None,
            reason: None,
            message: None,
            hint: None,
        }
    }

    /// A write that would be sent.
    pub(super) fn action(key: &Key, action: &Action) -> Self {
        let ObjectRef { gvk, namespace, name } = action.target();
        let patch = match action {
            // No output shows what Secrets hold.
            Action::Patch { patch, .. } if gvk.kind != "Secret" => Some(patch.clone()),
            _ => None,
        };
        Self {
            subject: Some(key.to_string()),
            verb: Some(action.verb().as_str().to_owned()),
            object: Some(AuditObject { api_version: gvk.api_version(), kind: gvk.kind, namespace, name }),
            patch,
            ..Self::new(AuditType::Action)
        }
    }

    /// Why nothing more is done.
    pub(super) fn reason(reason: &Reason) -> Self {
        let r#type = match reason.severity() {
            Severity::Blocked => AuditType::Blocked,
            Severity::Waiting => AuditType::Waiting,
            Severity::Settled => AuditType::Note,
        };
        let fields = match serde_json::to_value(reason) {
            Ok(Value::Object(fields)) => Some(fields),
            _ => None,
        };
        Self { reason: fields, message: Some(reason.to_string()), hint: reason.hint(), ..Self::new(r#type) }
    }

    /// Why nothing more is done, and what that holds up.
    pub(super) fn of_cause(cause: &Cause) -> Self {
        Self { message: Some(cause.message.clone()), ..Self::reason(&cause.reason) }
    }

    /// Prints it.
    ///
    /// # Errors
    /// The reader has gone.
    pub(super) fn print(&self, format: DataFormat, printer: &mut Printer) -> Result<(), CliError> {
        match format {
            DataFormat::Json => printer.line(serde_json::json!(self))?,
            DataFormat::Yaml => {
                printer.line("---")?;
                printer.yaml(self)?;
            }
        }
        printer.flush()
    }
}
