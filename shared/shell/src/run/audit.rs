//! The output of `run --audit`: with `-o json` an [`AuditEvent`] per line, with `-o yaml` one per document.

use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::plan::{Action, Key, Reason, Severity, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::report::Cause;
use crate::cli::flags::DataFormat;
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, Printer};

/// An action that the controllers would take, or a reason why they take none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `kubectl-olm/v1`
    pub api_version: String,
    /// `AuditEvent`
    pub kind: String,
    /// The type of event.
    pub r#type: AuditType,
    /// The controller that would act, and its object: `CONTROLLER NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The verb of the request, for example `create`, `update`, `patch` or `delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The object of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<AuditObject>,
    /// The patch that would be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// Why no further action is taken: the field `reason` names the kind, the other fields depend on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Map<String, Value>>,
    /// The reason as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How to resolve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuditType {
    /// A write that would be sent.
    Action,
    /// The controllers are blocked until a user acts.
    Blocked,
    /// An operation is in progress.
    Waiting,
    /// Information; no action is needed.
    Note,
}

/// An object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditObject {
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object; empty if it is cluster-scoped.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl AuditObject {
    fn target(&self) -> ObjectRef {
        let gvk = Gvk::from_api_version(&self.api_version, &self.kind);
        ObjectRef { gvk, namespace: self.namespace.clone(), name: self.name.clone() }
    }
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
            // The content of Secrets is never printed.
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

    /// Returns the event of a reason why no further action is taken.
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

    /// Returns the event of a cause, with what it blocks.
    pub(super) fn of_cause(cause: &Cause) -> Self {
        Self { message: Some(cause.message.clone()), ..Self::reason(&cause.reason) }
    }

    /// Returns the verb and the object of a write.
    pub(super) fn write(&self) -> Option<(Verb, ObjectRef)> {
        Some((Verb::parse(self.verb.as_deref()?)?, self.object.as_ref()?.target()))
    }

    /// Returns namespace and name of the catalog, if the reason is that it cannot be read.
    pub(super) fn unavailable_catalog(&self) -> Option<(String, String)> {
        let reason = self.reason.as_ref()?;
        let text = |field: &str| reason.get(field).and_then(Value::as_str).map(str::to_owned);
        let is_of_catalog = text("reason").is_some_and(|name| name == "CatalogUnavailable");
        Some((text("namespace")?, text("name")?)).filter(|_| is_of_catalog)
    }

    /// Returns the write as a line, as the audit prints it.
    pub(super) fn line(&self) -> String {
        let verb = self.verb.as_deref().unwrap_or_default();
        let object = self.object.as_ref().map(|object| object.target().to_string()).unwrap_or_default();
        let subject = self.subject.as_deref().unwrap_or_default();
        format!("would {verb} {object}  (for {subject})")
    }

    /// Prints the event.
    ///
    /// # Errors
    /// The output is closed.
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
