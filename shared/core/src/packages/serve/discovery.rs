//! Discovery: the groups and resources, also in the form that the API server aggregates.

use serde_json::{Value, json};

use super::request::accepted;
use super::response::JSON;
use crate::api::status::Status;
use crate::packages::{GROUP, KIND, PLURAL, SINGULAR, VERSION, api_version};

/// The versions of the aggregated form that API servers request, newest first; both have the same fields.
const AGGREGATED: [&str; 2] = ["v2", "v2beta1"];

/// What a client can do with objects, and with icons.
const VERBS: [&str; 3] = ["get", "list", "watch"];
const VERBS_OF_ICONS: [&str; 1] = ["get"];

/// The groups in one of their forms.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Groups {
    /// `APIGroupList`
    List,
    /// `APIGroupDiscoveryList` of this version.
    Aggregated(&'static str),
}

impl Groups {
    /// Returns the first form of an `Accept` header that is served.
    ///
    /// # Errors
    /// None is served: 406.
    pub(super) fn from_accept(accept: &str) -> Result<Self, Status> {
        accepted(accept, |range| match (range.get("as"), range.get("g")) {
            (None, _) => Some(Self::List),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io")) => {
                let version = range.get("v");
                AGGREGATED.into_iter().find(|known| Some(*known) == version).map(Self::Aggregated)
            }
            _ => None,
        })
    }

    /// Returns the document and its media type.
    pub(super) fn document(&self) -> (Value, String) {
        match self {
            Self::List => (json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group()] }), JSON.to_owned()),
            Self::Aggregated(version) => {
                let media_type = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
                (aggregated(version), media_type)
            }
        }
    }
}

/// Returns the group without its kind.
pub(super) fn group() -> Value {
    let version = json!({ "groupVersion": api_version(), "version": VERSION });
    json!({ "name": GROUP, "versions": [version], "preferredVersion": version })
}

/// Returns the resources of the version.
pub(super) fn resources() -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(),
        "resources": [
            { "name": PLURAL, "singularName": SINGULAR, "namespaced": true, "kind": KIND, "verbs": VERBS },
            { "name": format!("{PLURAL}/icon"), "singularName": "", "namespaced": true, "kind": KIND, "verbs": VERBS_OF_ICONS },
        ],
    })
}

/// Returns groups, versions and resources in one document.
fn aggregated(version: &str) -> Value {
    let kind = json!({ "group": GROUP, "version": VERSION, "kind": KIND });
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": [{
            "metadata": { "name": GROUP },
            "versions": [{
                "version": VERSION, "freshness": "Current",
                "resources": [{
                    "resource": PLURAL, "singularResource": SINGULAR, "responseKind": kind, "scope": "Namespaced", "verbs": VERBS,
                    "subresources": [{ "subresource": "icon", "responseKind": kind, "verbs": VERBS_OF_ICONS }],
                }],
            }],
        }],
    })
}
