//! Data that could not be read, with the reason.

use std::fmt;

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::world::Unreadable;
use serde::Serialize;

use crate::cluster::request_error::{Place, RequestError};

/// Replaces the message of the API server for a kind that is not served.
const NOT_SERVED: &str = "the cluster does not serve it";

/// The verb of objects that exist and cannot be decoded.
const UNREADABLE: &str = "read";

/// Why the kinds of a group version are unknown.
pub(crate) const STALE: &str = "the aggregated API does not answer";

/// Returns whether a refusal is caused by missing permissions, and not by a failure of the API server.
pub(super) fn is_forbidden(refusal: &Status) -> bool {
    matches!(refusal.code, 401 | 403)
}

/// Data that could not be read and is therefore unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFailure {
    /// `list`, `get` or `read`.
    pub verb: &'static str,
    /// `secrets`, `installplans.operators.coreos.com`; or the kind of a single object.
    pub resource: String,
    /// The namespace; empty for all namespaces or a cluster-scoped resource.
    pub namespace: String,
    /// The name of a single object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether permissions are missing; otherwise there is another error.
    pub forbidden: bool,
    /// The message of the API server.
    pub message: String,
    /// The HTTP status code; 0 if there was no response.
    #[serde(skip)]
    pub code: u16,
    /// Whether the resource is namespaced.
    #[serde(skip)]
    pub is_namespaced: bool,
}

impl ReadFailure {
    /// Returns the read failure of a list.
    pub(super) fn list(kind: &Kind, namespace: &str, refusal: &Status) -> Self {
        Self {
            verb: "list",
            resource: kind.resource(),
            namespace: if kind.namespaced { namespace.to_owned() } else { String::new() },
            name: String::new(),
            forbidden: is_forbidden(refusal),
            message: if refusal.is_not_found() { NOT_SERVED.to_owned() } else { refusal.message.clone() },
            code: refusal.code,
            is_namespaced: kind.namespaced,
        }
    }

    /// Returns the read failure of an object that exists and cannot be decoded.
    pub(super) fn unreadable(kind: &Kind, object: &Unreadable) -> Self {
        Self {
            verb: UNREADABLE,
            resource: kind.resource(),
            namespace: object::namespace(&object.stub).to_owned(),
            name: object::name(&object.stub).to_owned(),
            forbidden: false,
            message: object.why.clone(),
            code: 0,
            is_namespaced: kind.namespaced,
        }
    }

    /// Returns whether it is an object of an OLM kind, by its plural, that exists and cannot be decoded.
    pub(crate) fn is_unreadable_of(&self, plural: &str) -> bool {
        self.verb == UNREADABLE && self.is_of_kind(plural)
    }

    /// Returns whether it is a list of CatalogSources.
    pub(crate) fn is_of_catalogs(&self) -> bool {
        self.verb == "list" && self.resource == kinds::CATALOG_SOURCE.resource()
    }

    /// Returns whether it is a list of an OLM kind, by its plural.
    pub(crate) fn is_of(&self, plural: &str) -> bool {
        self.verb == "list" && self.is_of_kind(plural)
    }

    /// Returns whether objects of the kind are unknown because of it: a list that was refused, or a single object.
    pub(crate) fn hides(&self, kind: &Kind) -> bool {
        let Gvk { group, kind: name, .. } = kind.gvk();
        match self.verb {
            "list" => self.resource == kind.resource(),
            "get" => self.resource == if group.is_empty() { name } else { format!("{name}.{group}") },
            _ => false,
        }
    }

    fn is_of_kind(&self, plural: &str) -> bool {
        let group = self.resource.strip_prefix(plural).and_then(|rest| rest.strip_prefix('.'));
        group == Some(kinds::OLM_GROUP)
    }

    /// Returns whether it includes the namespace.
    pub(crate) fn covers(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || self.namespace == namespace
    }

    /// Returns whether it is an object that exists and cannot be decoded.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.verb == UNREADABLE
    }

    /// Returns the refused request, if it was a list.
    pub(crate) fn request_error(&self) -> Option<RequestError> {
        let Self { verb, resource, namespace, message, code, is_namespaced, .. } = self;
        let status = Status::new(*code, "", message.clone());
        let error = RequestError::new("list", resource.clone(), namespace, status);
        let place = if *is_namespaced { error.place.clone() } else { Place::Cluster };
        (*verb == "list" && !resource.contains(' ')).then_some(RequestError { place, ..error })
    }

    /// Returns the read failure of a single object.
    pub(crate) fn get(target: &ObjectRef, refusal: &Status) -> Self {
        let ObjectRef { gvk, namespace, name } = target;
        let resource = if gvk.group.is_empty() { gvk.kind.clone() } else { format!("{}.{}", gvk.kind, gvk.group) };
        Self {
            verb: "get",
            resource,
            namespace: namespace.clone(),
            name: name.clone(),
            forbidden: is_forbidden(refusal),
            message: refusal.message.clone(),
            code: refusal.code,
            is_namespaced: !namespace.is_empty(),
        }
    }

    /// Returns the read failure of discovery.
    pub(super) fn discovery(refusal: &Status) -> Self {
        Self {
            verb: "list",
            resource: "the kinds that the API server serves".to_owned(),
            namespace: String::new(),
            name: String::new(),
            forbidden: is_forbidden(refusal),
            message: refusal.message.clone(),
            code: refusal.code,
            is_namespaced: false,
        }
    }

    /// Returns the read failure of the kinds of a group version.
    pub(super) fn stale(group: &str, version: &str) -> Self {
        Self {
            verb: "list",
            resource: format!("the kinds of {}", Gvk::new(group, version, "").api_version()),
            namespace: String::new(),
            name: String::new(),
            forbidden: false,
            message: STALE.to_owned(),
            code: 0,
            is_namespaced: false,
        }
    }

    /// Returns the read failure of the content of a catalog.
    pub(super) fn catalog(namespace: &str, name: &str, message: String) -> Self {
        Self {
            verb: "get",
            resource: "the content of catalogsources.operators.coreos.com".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            forbidden: false,
            message,
            code: 0,
            is_namespaced: true,
        }
    }
}

impl fmt::Display for ReadFailure {
    /// `not allowed to list secrets in namespace garden`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, namespace, name, forbidden, message, .. } = self;
        f.write_str(if *forbidden { "not allowed to" } else { "cannot" })?;
        write!(f, " {verb} {resource}")?;
        if !name.is_empty() {
            write!(f, " {name}")?;
        }
        if !namespace.is_empty() {
            write!(f, " in namespace {namespace}")?;
        }
        if *forbidden { Ok(()) } else { write!(f, ": {message}") }
    }
}
