//! What the API server answers when it refuses a request.

use serde::{Deserialize, Serialize};

/// A refusal of the API server: the parts of `metav1.Status` that decide what happens next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// HTTP status code, 0 when the request never got an answer.
    pub code: u16,
    /// Machine-readable reason as Kubernetes spells it: `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`, `Forbidden`, …
    pub reason: String,
    /// The sentence for people, as the API server words it.
    pub message: String,
}

impl Status {
    /// A refusal with the given parts.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into() }
    }

    /// 404: `roles.rbac.authorization.k8s.io "x" not found`. `resource` is the plural with its group.
    pub fn not_found(resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found"))
    }

    /// 409: the object is there already.
    pub fn already_exists(resource: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {name:?} already exists"))
    }

    /// 409: a precondition (uid or resourceVersion) does not hold.
    pub fn conflict(resource: &str, name: &str, why: &str) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"))
    }

    /// Is this a 404?
    pub fn is_not_found(&self) -> bool {
        self.reason == "NotFound"
    }

    /// Is this a create of something that exists?
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Did a precondition fail?
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// Did authorization refuse the request?
    pub fn is_forbidden(&self) -> bool {
        self.reason == "Forbidden"
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}
