//! Parts of several of OLM's resources: times, references, conditions and selectors.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::super::kubernetes::of_kubernetes;

/// A point in time.
#[derive(Default)]
pub struct Time;

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// A reference to an object.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = of_kubernetes("io.k8s.api.core.v1.ObjectReference"))]
pub struct ObjectReference {
    /// The API version of the object, with its group unless that is the core group.
    pub api_version: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The UID that the object had when the reference was written.
    pub uid: String,
    /// The resourceVersion that the object had when the reference was written.
    pub resource_version: String,
    /// The path of a field of the object. Deprecated; never set.
    pub field_path: String,
}

/// A condition in the common form of Kubernetes.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = of_kubernetes("io.k8s.apimachinery.pkg.apis.meta.v1.Condition"))]
pub struct Condition {
    /// The type of the condition, unique in its list.
    #[serde(rename = "type")]
    pub type_: String,
    /// The status of the condition: True, False or Unknown.
    pub status: String,
    /// The machine-readable cause of the status, in CamelCase.
    pub reason: String,
    /// The human-readable explanation of the status.
    pub message: String,
    /// The metadata.generation of the object for which the condition was determined.
    pub observed_generation: i64,
    /// The time at which status last changed.
    pub last_transition_time: Time,
}

/// A selector of objects by their labels.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = of_kubernetes("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"))]
pub struct LabelSelector {
    /// The labels, by key, that an object must have with these values.
    pub match_labels: BTreeMap<String, String>,
    /// The expressions that the labels of an object must match. All of them, and all of matchLabels, must hold.
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// An expression over the labels of an object.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// The key of the label to compare.
    pub key: String,
    /// The relation of the label to values: In, NotIn, Exists or DoesNotExist.
    pub operator: String,
    /// The values to compare with. Required for In and NotIn, and empty for Exists and DoesNotExist.
    pub values: Vec<String>,
}

/// A rule of a Role or ClusterRole.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(transform = of_kubernetes("io.k8s.api.rbac.v1.PolicyRule"))]
pub struct PolicyRule {
    /// The verbs that are allowed, such as get or list; * for all.
    pub verbs: Vec<String>,
    /// The API groups of the resources: an empty string for the core group, * for all.
    pub api_groups: Vec<String>,
    /// The plural names of resources, or RESOURCE/SUBRESOURCE; * for all.
    pub resources: Vec<String>,
    /// The names of the objects that are allowed. Defaults to all names.
    pub resource_names: Vec<String>,
    /// The URL paths, outside of resources, that are allowed. For cluster permissions only; a rule has either these or resources.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}
