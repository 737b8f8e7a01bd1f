//! Objects that are there and cannot be read: unreadable is not absent.

use serde_json::{Map, Value};

use crate::api::object;

/// An object that the API server has, of which only the metadata could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// `apiVersion`, `kind` and what could be read of `metadata`.
    pub stub: Value,
    /// Why the rest cannot be read.
    pub why: String,
}

impl Unreadable {
    /// `Kind namespace/name`
    pub fn name(&self) -> String {
        let (namespace, name) = (object::namespace(&self.stub), object::name(&self.stub));
        let kind = object::kind(&self.stub);
        if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
    }

    /// Can it be told from other objects? What has no name cannot be kept.
    pub fn is_named(&self) -> bool {
        !object::name(&self.stub).is_empty()
    }

    /// With nothing but this of its metadata.
    pub fn of(api_version: &str, kind: &str, metadata: Map<String, Value>, why: String) -> Self {
        let stub = serde_json::json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        Self { stub, why }
    }
}
