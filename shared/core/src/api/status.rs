//! Responses of the API server that refuse a request.

use serde::{Deserialize, Serialize};

use crate::visible;

/// Maximum length of a stored message of the API server, in bytes: some are written by webhooks and aggregated API servers
/// of others.
const LONGEST: usize = 16 << 10;

/// Replaces messages of an API server that may quote a Secret.
const NOT_SHOWN: &str = "the reason is not shown because it may quote the Secret";

/// A refusal of the API server: the parts of `metav1.Status` that are evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// HTTP status code, 0 when the request got no response.
    pub code: u16,
    /// Machine-readable reason as Kubernetes spells it: `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`, `Forbidden`, …
    pub reason: String,
    /// The API server's message.
    pub message: String,
}

impl Status {
    /// Creates a refusal with the given parts.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into() }
    }

    /// 404: `roles.rbac.authorization.k8s.io "x" not found`. `resource` is the plural with its group.
    pub fn not_found(resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found"))
    }

    /// 409: the object already exists.
    pub fn already_exists(resource: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {name:?} already exists"))
    }

    /// 409: a precondition (uid or resourceVersion) does not hold.
    pub fn conflict(resource: &str, name: &str, why: &str) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"))
    }

    /// Returns the refusal in a form that is safe to store and print, even from an untrusted server: truncated, and without
    /// control characters.
    #[must_use]
    pub fn sanitized(self) -> Self {
        let Self { code, reason, message } = self;
        let words = |text: &str| {
            let end = text.floor_char_boundary(LONGEST);
            let cut = if end < text.len() { "…" } else { "" };
            format!("{}{cut}", visible::lines(&text[..end]))
        };
        Self { code, reason: words(&reason), message: words(&message) }
    }

    /// Returns the refusal of a request about a Secret without the parts of the server's message that may quote the Secret:
    /// the text before the first colon contains only the object, or who refuses it.
    #[must_use]
    pub fn about_secret(self) -> Self {
        let Self { code, reason, message } = self;
        let by_policy = message.starts_with("admission webhook") || message.contains("ValidatingAdmissionPolicy");
        let is_plain = match reason.as_str() {
            "NotFound" | "AlreadyExists" | "Conflict" | "Unauthorized" => true,
            "Forbidden" => message.starts_with("secrets "),
            _ => code == 0,
        };
        if is_plain && !by_policy {
            return Self { code, reason, message };
        }
        let named = message.split_once(": ").map_or(reason.as_str(), |(named, _)| named);
        let message = format!("{named}: {NOT_SHOWN}");
        Self { code, reason, message }
    }

    /// Returns whether this is a 404.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Returns whether an existing object was to be created.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// Returns whether a precondition failed.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// Returns whether authorization refused the request.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_others_are_truncated_and_escaped() {
        let sanitized = |message: &str| Status::new(403, "Forbidden", message).sanitized().message;
        assert_eq!(sanitized("policy p:\n\n\tno \u{1b}]0;\u{202e}x"), "policy p:\n\n\tno \\u{1b}]0;\\u{202e}x");
        assert_eq!(sanitized(&"a".repeat(LONGEST)), "a".repeat(LONGEST));
        assert_eq!(sanitized(&"€".repeat(LONGEST)), format!("{}…", "€".repeat(LONGEST / 3)));
    }

    #[test]
    fn refusals_of_secrets_quote_nothing() {
        for (code, reason, message, kept) in [
            (
                422,
                "Invalid",
                "Secret \"seed\" is invalid: data[a]: Invalid value: \"thorns\": no",
                "Secret \"seed\" is invalid",
            ),
            (
                403,
                "Forbidden",
                "admission webhook \"w\" denied the request: it is thorns",
                "admission webhook \"w\" denied the request",
            ),
            (
                403,
                "Forbidden",
                "secrets \"seed\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: thorns",
                "secrets \"seed\" is forbidden",
            ),
            (400, "BadRequest", "thorns", "BadRequest"),
            (502, "", "thorns", ""),
        ] {
            let told = Status::new(code, reason, message).about_secret();
            assert_eq!(told, Status::new(code, reason, format!("{kept}: {NOT_SHOWN}")));
        }
        for plain in [
            Status::not_found("secrets", "seed"),
            Status::conflict("secrets", "seed", "it has changed"),
            Status::new(403, "Forbidden", "secrets is forbidden: User \"jane\" cannot list resource \"secrets\""),
            Status::new(0, "NoAnswer", "no answer within 60 s"),
        ] {
            assert_eq!(plain.clone().about_secret(), plain);
        }
    }
}
