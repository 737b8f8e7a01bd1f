//! Objects that exist and cannot be read, which differ from missing objects.

use serde_json::{Map, Value};

use crate::api::object;

/// An object of the API server of which only the metadata could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// `apiVersion`, `kind` and the readable part of `metadata`.
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

    /// Returns whether it has a name. An object without a name cannot be stored.
    pub fn is_named(&self) -> bool {
        !object::name(&self.stub).is_empty()
    }

    /// Creates an object with only this metadata.
    pub fn new(api_version: &str, kind: &str, metadata: Map<String, Value>, why: String) -> Self {
        let stub = serde_json::json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        Self { stub, why }
    }
}
