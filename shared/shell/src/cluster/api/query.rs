//! The query of a list or a watch.

use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use olm_core::api::object::ObjectRef;

use super::Resource;

/// The number of objects per page of a list, as in kubectl.
pub(super) const PAGE: u32 = 500;

/// How much of each object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The whole object.
    Whole,
    /// Only `metadata`.
    Metadata,
}

/// Which objects of a resource are listed or watched, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The resource.
    pub resource: Resource,
    /// The namespace; empty for all.
    pub namespace: String,
    /// A label selector; empty for all objects.
    pub labels: String,
    /// A field selector; empty for all objects.
    pub fields: String,
    /// How much of each object is read.
    pub depth: Depth,
    /// The maximum number of objects per page.
    pub limit: u32,
}

impl ListQuery {
    /// Returns a query of all objects of a resource, whole, in all namespaces.
    pub fn all(resource: &Resource) -> Self {
        let resource = resource.clone();
        let (namespace, labels, fields) = (String::new(), String::new(), String::new());
        Self { resource, namespace, labels, fields, depth: Depth::Whole, limit: PAGE }
    }

    /// Returns a query of one object.
    pub fn one(resource: &Resource, target: &ObjectRef) -> Self {
        let fields = format!("metadata.name={}", target.name);
        Self { fields, ..Self::all(resource).within(&target.namespace) }
    }

    /// Sets the namespace; empty for all namespaces.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self }
    }

    /// Sets the label selector.
    #[must_use]
    pub fn labelled(self, labels: &str) -> Self {
        Self { labels: labels.to_owned(), ..self }
    }

    /// Sets how much of each object is read.
    #[must_use]
    pub fn depth(self, depth: Depth) -> Self {
        Self { depth, ..self }
    }

    /// Sets the maximum number of objects per page.
    #[must_use]
    pub fn limit(self, limit: u32) -> Self {
        Self { limit, ..self }
    }

    /// Returns the request of a page of at most `limit` objects.
    pub(super) fn list(&self, limit: u32, page: &str) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let mut params = ListParams::default().limit(limit);
        if !self.labels.is_empty() {
            params = params.labels(&self.labels);
        }
        if !self.fields.is_empty() {
            params = params.fields(&self.fields);
        }
        if !page.is_empty() {
            params = params.continue_token(page);
        }
        let request = Request::new(self.resource.path(&self.namespace));
        match self.depth {
            Depth::Whole => request.list(&params),
            Depth::Metadata => request.list_metadata(&params),
        }
    }

    /// Returns the request of a watch from a resourceVersion on.
    pub(super) fn watch(&self, from: &str) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let mut params = WatchParams::default();
        if !self.labels.is_empty() {
            params = params.labels(&self.labels);
        }
        if !self.fields.is_empty() {
            params = params.fields(&self.fields);
        }
        let request = Request::new(self.resource.path(&self.namespace));
        match self.depth {
            Depth::Whole => request.watch(&params, from),
            Depth::Metadata => request.watch_metadata(&params, from),
        }
    }
}
