//! The schemas of Kubernetes' own types, as OLM's CRDs embed them: those of `kubernetes.json`, which tests/go-types
//! generates.
//!
//! Kubernetes' published OpenAPI (and thus k8s-openapi) lacks parts of a CRD's schema: list and map types, defaults,
//! patterns.
//!
//! They have no descriptions. Types whose fields users of OLM's kinds need to know (conditions, references, selectors,
//! rules) are described by doc comments here and in [`parts`](super::types::parts); the others, mainly parts of pods, are
//! described in the Kubernetes documentation.

use std::sync::LazyLock;

use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

static SCHEMAS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("kubernetes.json")).unwrap_or_default());

/// Returns the self-contained schema of a type by its name in Kubernetes (`io.k8s.api.core.v1.Affinity`). Defaults are
/// `x-default`.
fn schema(name: &str) -> Schema {
    SCHEMAS.get(name).and_then(|schema| expand(schema).try_into().ok()).unwrap_or_default()
}

/// Replaces the schema of a type by that of one of Kubernetes' own types, preserving its descriptions.
pub(crate) fn of_kubernetes(name: &'static str) -> impl FnMut(&mut Schema) {
    move |own| {
        let mut kubernetes = schema(name).to_value();
        describe(&mut kubernetes, own.as_value());
        if let Ok(described) = kubernetes.try_into() {
            *own = described;
        }
    }
}

/// Copies the descriptions of one schema to the same paths of another.
fn describe(schema: &mut Value, own: &Value) {
    let Value::Object(schema) = schema else { return };
    if let Some(description) = own.get("description") {
        schema.insert("description".to_owned(), description.clone());
    }
    if let Some(items) = schema.get_mut("items") {
        describe(items, &own["items"]);
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        describe(property, &own["properties"][name]);
    }
}

/// Declares types that only represent a schema.
macro_rules! types {
    ($($name:ident = $kubernetes:literal,)+) => {
        $(
            #[doc = concat!("Stands for the schema of `", $kubernetes, "`.")]
            pub enum $name {}

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> std::borrow::Cow<'static, str> {
                    $kubernetes.into()
                }

                fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
                    schema($kubernetes)
                }
            }
        )+
    };
}

types! {
    Affinity = "io.k8s.api.core.v1.Affinity",
    DeploymentSpec = "io.k8s.api.apps.v1.DeploymentSpec",
    EnvFromSource = "io.k8s.api.core.v1.EnvFromSource",
    EnvVar = "io.k8s.api.core.v1.EnvVar",
    IntOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    Quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity",
    ResourceRequirements = "io.k8s.api.core.v1.ResourceRequirements",
    Toleration = "io.k8s.api.core.v1.Toleration",
    Volume = "io.k8s.api.core.v1.Volume",
    VolumeMount = "io.k8s.api.core.v1.VolumeMount",
}

/// The requests for which an admission webhook is called.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[schemars(transform = of_kubernetes("io.k8s.api.admissionregistration.v1.RuleWithOperations"))]
pub struct RuleWithOperations {
    /// The operations: CREATE, UPDATE, DELETE, CONNECT, or * for all.
    pub operations: Vec<String>,
    /// The API groups of the resources; an empty string for the core group.
    pub api_groups: Vec<String>,
    /// The API versions of the resources; * for all.
    pub api_versions: Vec<String>,
    /// The plural names of resources, or RESOURCE/SUBRESOURCE; * for all.
    pub resources: Vec<String>,
    /// The scope of the resources: Cluster, Namespaced, or * for both. Defaults to *.
    pub scope: String,
}

/// Replaces references by the referenced schemas.
fn expand(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut out = Map::new();
            let inherited = map.get("allOf").and_then(Value::as_array).into_iter().flatten();
            let referred = map.get("$ref").and_then(Value::as_str).and_then(|name| SCHEMAS.get(name));
            for parent in inherited.map(expand).chain(referred.map(expand)) {
                merge(&mut out, parent);
            }
            let own = map.iter().filter(|(key, _)| !matches!(key.as_str(), "$ref" | "allOf"));
            merge(&mut out, own.map(|(key, value)| (key.clone(), expand(value))).collect());
            if out.get("type").is_some_and(Value::is_string)
                && let Some(default) = out.remove("default")
            {
                out.insert("x-default".to_owned(), default);
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(expand).collect(),
        other => other.clone(),
    }
}

/// Merges a schema into another: properties and required names are joined, other keywords are overwritten.
fn merge(out: &mut Map<String, Value>, schema: Value) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map {
        match (out.get_mut(&key), value) {
            (Some(Value::Object(there)), Value::Object(more)) if key == "properties" => there.extend(more),
            (Some(Value::Array(there)), Value::Array(more)) if key == "required" => there.extend(more),
            (_, value) => {
                out.insert(key, value);
            }
        }
    }
}
