//! The schemas of Kubernetes' own types, as OLM's CRDs embed them: those of `kubernetes.json`, which tests/go-types makes.
//!
//! Kubernetes' published OpenAPI (and so k8s-openapi) lacks what a CRD's schema says: list and map types, defaults, patterns.

use std::sync::LazyLock;

use schemars::Schema;
use serde_json::{Map, Value};

static SCHEMAS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("kubernetes.json")).unwrap_or_default());

/// The schema of a type by its name in Kubernetes (`io.k8s.api.core.v1.Affinity`), complete in itself. Defaults are `x-default`.
pub(crate) fn schema(name: &str) -> Schema {
    SCHEMAS.get(name).and_then(|schema| expand(schema).try_into().ok()).unwrap_or_default()
}

/// Gives a type the schema of one of Kubernetes' own.
macro_rules! type_of_kubernetes {
    ($name:ty = $kubernetes:literal) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                $kubernetes.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::api::crd::kubernetes::schema($kubernetes)
            }
        }
    };
}

pub(crate) use type_of_kubernetes;

/// Makes types that only stand for a schema.
macro_rules! types {
    ($($name:ident = $kubernetes:literal,)+) => {
        $(
            #[doc = concat!("Stands for the schema of `", $kubernetes, "`.")]
            pub enum $name {}

            type_of_kubernetes!($name = $kubernetes);
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
    RuleWithOperations = "io.k8s.api.admissionregistration.v1.RuleWithOperations",
    Toleration = "io.k8s.api.core.v1.Toleration",
    Volume = "io.k8s.api.core.v1.Volume",
    VolumeMount = "io.k8s.api.core.v1.VolumeMount",
}

/// Replaces references by what they refer to.
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

/// Adds a schema to one: properties and required names are joined, all else is overwritten.
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
