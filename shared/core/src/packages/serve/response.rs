//! A response: code, headers and the parts of the body.

use std::sync::Arc;

use serde_json::Value;

use crate::api::hash::sha256_hex;
use crate::packages::Icon;

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status code.
    pub code: u16,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// The parts of the body.
    pub body: Vec<Arc<[u8]>>,
}

pub(super) const JSON: &str = "application/json";

impl Response {
    pub(super) fn text(text: &str) -> Self {
        Self { code: 200, headers: vec![("content-type", "text/plain".to_owned())], body: vec![text.as_bytes().into()] }
    }

    pub(super) fn json(code: u16, body: &Value) -> Self {
        Self::of_parts(code, vec![body.to_string().into_bytes().into()])
    }

    pub(super) fn of_parts(code: u16, body: Vec<Arc<[u8]>>) -> Self {
        let headers = vec![("content-type", JSON.to_owned()), ("cache-control", "no-cache, private".to_owned())];
        Self { code, headers, body }
    }

    /// Returns a document with its entity tag.
    pub(super) fn document(media_type: String, etag: String, body: Arc<[u8]>) -> Self {
        let headers = vec![
            ("content-type", media_type),
            ("etag", etag),
            ("vary", "Accept".to_owned()),
            ("cache-control", "no-cache, private".to_owned()),
        ];
        Self { code: 200, headers, body: vec![body] }
    }

    /// Returns the response with an icon; with a generic image if the package has none. The catalog decides the content, so that
    /// browsers are instructed not to execute it.
    pub fn icon(icon: Option<Icon>) -> Self {
        let icon = icon.unwrap_or_else(|| Icon {
            media_type: "image/svg+xml".to_owned(),
            data: GENERIC_ICON.as_bytes().to_vec(),
            etag: "\"generic\"".to_owned(),
        });
        let is_image = |text: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            text.strip_prefix("image/").is_some_and(|kind| !kind.is_empty() && kind.chars().all(is_part))
        };
        let media_type =
            if is_image(&icon.media_type) { icon.media_type } else { "application/octet-stream".to_owned() };
        // Names of channels may contain characters that a header may not.
        let etag: String = icon.etag.chars().filter(char::is_ascii_graphic).collect();
        let headers = vec![
            ("content-type", media_type),
            ("etag", etag),
            ("cache-control", "no-cache, private".to_owned()),
            ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
        ];
        Self { code: 200, headers, body: vec![icon.data.into()] }
    }

    /// Returns the response without its content if it has one of these entity tags (`If-None-Match`): the client knows the content.
    #[must_use]
    pub fn unless_known(mut self, if_none_match: &str) -> Self {
        let etag = self.headers.iter().find(|(name, _)| *name == "etag").map(|(_, etag)| etag.as_str());
        let mut tags = if_none_match.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
        if self.code == 200 && etag.is_some_and(|etag| tags.any(|tag| tag == etag || tag == "*")) {
            self.code = 304;
            self.headers.retain(|(name, _)| *name != "content-type");
            self.body.clear();
        }
        self
    }
}

/// The icon of packages without one: a box.
const GENERIC_ICON: &str = concat!(
    r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#6a6e73" stroke-width="1.5">"##,
    r#"<path d="M3 8l9-5 9 5v8l-9 5-9-5z"/><path d="M3 8l9 5 9-5M12 13v8"/></svg>"#,
);

/// Returns the entity tag of a content.
pub(super) fn etag(content: &[u8]) -> String {
    format!("\"{}\"", sha256_hex(content))
}
