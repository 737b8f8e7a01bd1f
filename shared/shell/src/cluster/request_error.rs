//! A request of a command that the API server refused or did not answer.

use std::fmt;

use olm_core::api::status::Status;

use super::api::Resource;

/// What was asked of the API server, and how it answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RequestError {
    /// The verb, as RBAC names it.
    pub verb: &'static str,
    /// The plural with its group, as in `installplans.operators.coreos.com`; or a path, as in `/version`.
    pub resource: String,
    /// Where.
    pub place: Place,
    /// The answer; code 0 when there was none.
    #[source]
    pub status: Status,
}

/// Where objects are that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In no namespace.
    Cluster,
    /// In all namespaces.
    AllNamespaces,
    /// In one namespace.
    Namespace(String),
}

impl RequestError {
    /// About objects in a namespace, or in all when it is empty.
    pub fn new(verb: &'static str, resource: impl Into<String>, namespace: &str, status: Status) -> Self {
        let place = match namespace {
            "" => Place::AllNamespaces,
            one => Place::Namespace(one.to_owned()),
        };
        Self { verb, resource: resource.into(), place, status }
    }

    /// About a resource: in a namespace, or in all when it is empty, if its objects are in namespaces.
    pub(crate) fn about(verb: &'static str, resource: &Resource, namespace: &str, status: Status) -> Self {
        let error = Self::new(verb, resource.qualified(), namespace, status);
        if resource.namespaced { error } else { Self { place: Place::Cluster, ..error } }
    }

    /// About what is in no namespace: an object of the cluster, or a path.
    pub fn of_cluster(verb: &'static str, resource: impl Into<String>, status: Status) -> Self {
        Self { place: Place::Cluster, ..Self::new(verb, resource, "", status) }
    }

    /// Is it that the kind is not served? Requests about single objects answer otherwise that there is no such object.
    pub fn is_not_served(&self) -> bool {
        self.status.code == 404 && matches!(self.verb, "get" | "list" | "watch")
    }

    /// Is it that the namespace is being deleted?
    pub fn is_of_terminating_namespace(&self) -> bool {
        is_terminating(&self.status)
    }
}

/// Does the API server refuse to create something because its namespace is being deleted? These are its words in every version.
pub(crate) fn is_terminating(status: &Status) -> bool {
    status.message.contains("because it is being terminated")
}

impl fmt::Display for RequestError {
    /// `not allowed to list secrets in namespace garden: …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, resource, place, status } = self;
        let place = match place {
            Place::Cluster => String::new(),
            Place::AllNamespaces => " in all namespaces".to_owned(),
            Place::Namespace(name) => format!(" in namespace {name}"),
        };
        match status.code {
            0 => write!(f, "no answer from the server: {status}"),
            401 => write!(f, "the server does not accept the credentials: {status}"),
            _ if self.is_not_served() => write!(f, "the cluster does not serve {resource}"),
            403 if !self.is_of_terminating_namespace() => {
                write!(f, "not allowed to {verb} {resource}{place}: {status}")
            }
            _ => write!(f, "the server refused to {verb} {resource}{place}: {status}"),
        }
    }
}
