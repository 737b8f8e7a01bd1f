//! Parts of several documents.

use schemars::JsonSchema;
use serde_json::{Map, Value};

forms! {
    /// The printed fields of an object's metadata.
    Metadata {
        /// Namespace of the object.
        namespace: String,
        /// Name of the object.
        name: String,
        /// When the API server created the object, in RFC 3339.
        creation_timestamp: Option<String>,
        /// Labels of the object, by key.
        labels: Option<Map<String, Value>>,
        /// Annotations of the object, by key.
        annotations: Option<Map<String, Value>>,
        /// The version at which the API server returned the object.
        resource_version: Option<String>,
    }
    /// A reference to an object of the cluster.
    Reference {
        /// Group and version of the object.
        api_version: String,
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// Namespace of the object; absent if it is cluster-scoped.
        namespace: Option<String>,
    }
    /// A problem in a file or an object.
    Finding {
        /// Path of the file, relative to the directory or image that was read.
        file: String,
        /// The line, from 1; 0 if unknown.
        line: u64,
        /// How serious it is.
        severity: Severity,
        /// Stable identifier of the rule, for filters and baselines.
        code: String,
        /// The object, package or bundle that it is about; empty if it is about the file.
        subject: String,
        /// What is wrong, as a sentence without a full stop.
        message: String,
        /// How to correct it; empty if there is no advice.
        hint: String,
    }
}

/// How serious a finding is.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) enum Severity {
    /// The input is invalid, or OLM refuses it.
    Error,
    /// The input is valid, and probably has an unintended effect.
    Warning,
    /// Information; no change is needed.
    Info,
}
