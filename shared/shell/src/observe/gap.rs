//! What could not be read, and how to see why.

use std::fmt;

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, Gvk, ObjectRef};
use olm_core::api::status::Status;
use olm_core::world::Unreadable;
use serde::Serialize;

use crate::cluster::request_error::{Place, RequestError};

/// Instead of the API server's word for it.
const NOT_SERVED: &str = "the cluster does not serve it";

/// The verb of what is there and cannot be read.
const UNREADABLE: &str = "read";

/// Why the kinds of a version of a group are not known.
pub(crate) const STALE: &str = "the aggregated API does not answer";

/// A refusal that says that somebody may not, as opposed to the API server being in trouble.
pub(super) fn is_lack_of_rights(refusal: &Status) -> bool {
    matches!(refusal.code, 401 | 403)
}

/// Something that could not be read, so that nothing is known of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// `list`, `get` or `read`.
    pub verb: &'static str,
    /// `secrets`, `installplans.operators.coreos.com`; or the kind of a single object.
    pub resource: String,
    /// The namespace; empty for all, or for none.
    pub namespace: String,
    /// The name of a single object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Is it that the rights are missing? Else something is wrong.
    pub forbidden: bool,
    /// What the API server said.
    pub message: String,
    /// The HTTP status code; 0 when there was no answer.
    #[serde(skip)]
    pub code: u16,
    /// Are objects of the resource in namespaces?
    #[serde(skip)]
    pub is_namespaced: bool,
}

impl Gap {
    /// A list.
    pub(super) fn list(kind: &Kind, namespace: &str, refusal: &Status) -> Self {
        Self {
            verb: "list",
            resource: kind.resource(),
            namespace: if kind.namespaced { namespace.to_owned() } else { String::new() },
            name: String::new(),
            forbidden: is_lack_of_rights(refusal),
            message: if refusal.code == 404 { NOT_SERVED.to_owned() } else { refusal.message.clone() },
            code: refusal.code,
            is_namespaced: kind.namespaced,
        }
    }

    /// An object that is there and cannot be read.
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

    /// Is it that an object of that kind of OLM's, by its plural, is there and cannot be read?
    pub(crate) fn is_unreadable_of(&self, plural: &str) -> bool {
        self.verb == UNREADABLE && self.is_of_kind(plural)
    }

    /// Is it about which CatalogSources there are?
    pub(crate) fn is_of_catalogs(&self) -> bool {
        self.verb == "list" && self.resource == kinds::CATALOG_SOURCE.resource()
    }

    /// Is it about a list of that kind of OLM's, by its plural?
    pub(crate) fn is_of(&self, plural: &str) -> bool {
        self.verb == "list" && self.is_of_kind(plural)
    }

    fn is_of_kind(&self, plural: &str) -> bool {
        let group = self.resource.strip_prefix(plural).and_then(|rest| rest.strip_prefix('.'));
        group == Some(kinds::OLM)
    }

    /// Does it hide what is in that namespace?
    pub(crate) fn covers(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || self.namespace == namespace
    }

    /// Is it an object that is there and cannot be read?
    pub(crate) fn is_unreadable(&self) -> bool {
        self.verb == UNREADABLE
    }

    /// The request that was refused, if it was a list.
    pub(crate) fn request_error(&self) -> Option<RequestError> {
        let Self { verb, resource, namespace, message, code, is_namespaced, .. } = self;
        let status = Status::new(*code, "", message.clone());
        let error = RequestError::new("list", resource.clone(), namespace, status);
        let place = if *is_namespaced { error.place.clone() } else { Place::Cluster };
        (*verb == "list" && !resource.contains(' ')).then_some(RequestError { place, ..error })
    }

    /// A single object.
    pub(crate) fn get(target: &ObjectRef, refusal: &Status) -> Self {
        let ObjectRef { gvk, namespace, name } = target;
        let resource = if gvk.group.is_empty() { gvk.kind.clone() } else { format!("{}.{}", gvk.kind, gvk.group) };
        Self {
            verb: "get",
            resource,
            namespace: namespace.clone(),
            name: name.clone(),
            forbidden: is_lack_of_rights(refusal),
            message: refusal.message.clone(),
            code: refusal.code,
            is_namespaced: !namespace.is_empty(),
        }
    }

    /// Which kinds there are.
    pub(super) fn discovery(refusal: &Status) -> Self {
        Self {
            verb: "list",
            resource: "the kinds that the API server serves".to_owned(),
            namespace: String::new(),
            name: String::new(),
            forbidden: is_lack_of_rights(refusal),
            message: refusal.message.clone(),
            code: refusal.code,
            is_namespaced: false,
        }
    }

    /// Which kinds a version of a group has.
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

    /// A catalog.
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

impl fmt::Display for Gap {
    /// `not allowed to list secrets in namespace garden`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, namespace, name, forbidden, message, .. } = self;
        f.write_str(if *forbidden { "not allowed" } else { "not possible" })?;
        write!(f, " to {verb} {resource}")?;
        if !name.is_empty() {
            write!(f, " {name}")?;
        }
        if !namespace.is_empty() {
            write!(f, " in namespace {namespace}")?;
        }
        if *forbidden { Ok(()) } else { write!(f, ": {message}") }
    }
}
