//! A request of a command that the API server refused or did not respond to.

use std::fmt;

use olm_core::api::status::Status;

use super::api::Resource;

/// A failed request to the API server, with its response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RequestError {
    /// The RBAC verb.
    pub verb: &'static str,
    /// The plural with its group, as in `installplans.operators.coreos.com`, or a path, as in `/version`.
    pub resource: String,
    /// The namespaces of the request.
    pub place: Place,
    /// The response; code 0 if there was none.
    #[source]
    pub status: Status,
}

/// The namespaces that a request applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cluster scope.
    Cluster,
    /// All namespaces.
    AllNamespaces,
    /// One namespace.
    Namespace(String),
}

impl RequestError {
    /// Creates an error about objects in a namespace, or in all namespaces if it is empty.
    pub fn new(verb: &'static str, resource: impl Into<String>, namespace: &str, status: Status) -> Self {
        let place = match namespace {
            "" => Place::AllNamespaces,
            one => Place::Namespace(one.to_owned()),
        };
        Self { verb, resource: resource.into(), place, status }
    }

    /// Creates an error about a resource: in a namespace, in all namespaces if it is empty, or in the cluster scope.
    pub(crate) fn about(verb: &'static str, resource: &Resource, namespace: &str, status: Status) -> Self {
        let error = Self::new(verb, resource.qualified(), namespace, status);
        if resource.namespaced { error } else { Self { place: Place::Cluster, ..error } }
    }

    /// Creates an error about a cluster-scoped resource or a path.
    pub fn of_cluster(verb: &'static str, resource: impl Into<String>, status: Status) -> Self {
        Self { place: Place::Cluster, ..Self::new(verb, resource, "", status) }
    }

    /// Returns whether the kind is not served. For other verbs, 404 means that the object does not exist.
    pub fn is_not_served(&self) -> bool {
        self.status.code == 404 && matches!(self.verb, "get" | "list" | "watch")
    }

    /// Returns whether the namespace is being deleted.
    pub fn is_of_terminating_namespace(&self) -> bool {
        is_terminating(&self.status)
    }
}

/// Returns whether the API server refuses to create an object because its namespace is being deleted. The text is the same in every version
/// of Kubernetes.
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
