//! Generates the CustomResourceDefinitions of OLM's kinds from [`types`](super::types).
//!
//! The schemas are structural, as `apiextensions.k8s.io/v1` requires: self-contained, without `$ref` and type unions.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::types::catalog_source::CatalogSource;
use super::types::cluster_service_version::ClusterServiceVersion;
use super::types::install_plan::InstallPlan;
use super::types::olm_config::OlmConfig;
use super::types::operator::Operator;
use super::types::operator_condition::{OperatorCondition, OperatorConditionV1};
use super::types::operator_group::{OperatorGroup, OperatorGroupV1Alpha2};
use super::types::subscription::Subscription;
use crate::api::kinds::OLM_GROUP;

/// Returns all eight, by kind, generated from the types. They are stored in `crds.json`, which [`all`](super::all) reads.
pub fn generate() -> Vec<Value> {
    DEFINITIONS.iter().map(Definition::crd).collect()
}

struct Definition {
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    versions: &'static [Version],
}

struct Version {
    name: &'static str,
    stored: bool,
    schema: fn() -> Value,
    /// Name, type, path, and description.
    columns: &'static [[&'static str; 4]],
}

const DEFINITIONS: [Definition; 8] = [
    Definition {
        kind: "CatalogSource",
        plural: "catalogsources",
        short_names: &["catsrc"],
        namespaced: true,
        versions: &[Version {
            name: "v1alpha1",
            stored: true,
            schema: schema::<CatalogSource>,
            columns: &[
                ["Display", "string", ".spec.displayName", "The name of the catalog."],
                [
                    "Type",
                    "string",
                    ".spec.sourceType",
                    "The type of the catalog's source: grpc, configmap or internal.",
                ],
                ["Publisher", "string", ".spec.publisher", "The publisher of the catalog."],
                ["Age", "date", ".metadata.creationTimestamp", "The time since the catalog was created."],
            ],
        }],
    },
    Definition {
        kind: "ClusterServiceVersion",
        plural: "clusterserviceversions",
        short_names: &["csv", "csvs"],
        namespaced: true,
        versions: &[Version {
            name: "v1alpha1",
            stored: true,
            schema: schema::<ClusterServiceVersion>,
            columns: &[
                ["Display", "string", ".spec.displayName", "The name of the operator."],
                ["Version", "string", ".spec.version", "The version of the operator."],
                ["Release", "string", ".spec.release", "The release of the version, if its builds are distinguished."],
                [
                    "Replaces",
                    "string",
                    ".spec.replaces",
                    "The name of the ClusterServiceVersion that this one replaces.",
                ],
                ["Phase", "string", ".status.phase", "The phase of the installation."],
            ],
        }],
    },
    Definition {
        kind: "InstallPlan",
        plural: "installplans",
        short_names: &["ip"],
        namespaced: true,
        versions: &[Version {
            name: "v1alpha1",
            stored: true,
            schema: schema::<InstallPlan>,
            columns: &[
                [
                    "CSV",
                    "string",
                    ".spec.clusterServiceVersionNames[0]",
                    "The name of the first ClusterServiceVersion to install.",
                ],
                ["Approval", "string", ".spec.approval", "The approval mode: Automatic or Manual."],
                ["Approved", "boolean", ".spec.approved", "Whether the steps may be executed."],
            ],
        }],
    },
    Definition {
        kind: "OLMConfig",
        plural: "olmconfigs",
        short_names: &[],
        namespaced: false,
        versions: &[Version { name: "v1", stored: true, schema: schema::<OlmConfig>, columns: &[] }],
    },
    Definition {
        kind: "OperatorCondition",
        plural: "operatorconditions",
        short_names: &["condition"],
        namespaced: true,
        versions: &[
            Version { name: "v1", stored: false, schema: schema::<OperatorConditionV1>, columns: &[] },
            Version { name: "v2", stored: true, schema: schema::<OperatorCondition>, columns: &[] },
        ],
    },
    Definition {
        kind: "OperatorGroup",
        plural: "operatorgroups",
        short_names: &["og"],
        namespaced: true,
        versions: &[
            Version { name: "v1", stored: true, schema: schema::<OperatorGroup>, columns: &[] },
            Version { name: "v1alpha2", stored: false, schema: schema::<OperatorGroupV1Alpha2>, columns: &[] },
        ],
    },
    Definition {
        kind: "Operator",
        plural: "operators",
        short_names: &[],
        namespaced: false,
        versions: &[Version { name: "v1", stored: true, schema: schema::<Operator>, columns: &[] }],
    },
    Definition {
        kind: "Subscription",
        plural: "subscriptions",
        short_names: &["sub", "subs"],
        namespaced: true,
        versions: &[Version {
            name: "v1alpha1",
            stored: true,
            schema: schema::<Subscription>,
            columns: &[
                ["Package", "string", ".spec.name", "The name of the package."],
                ["Source", "string", ".spec.source", "The name of the CatalogSource that contains the package."],
                ["Channel", "string", ".spec.channel", "The channel that upgrades come from."],
            ],
        }],
    },
];

impl Definition {
    fn crd(&self) -> Value {
        let mut names = json!({
            "categories": ["olm"],
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.kind.to_lowercase(),
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{OLM_GROUP}", self.plural)},
            "spec": {
                "group": OLM_GROUP,
                "names": names,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": self.versions.iter().map(Version::json).collect::<Vec<_>>(),
            },
        })
    }
}

impl Version {
    fn json(&self) -> Value {
        let mut version = json!({
            "name": self.name,
            "schema": {"openAPIV3Schema": (self.schema)()},
            "served": true,
            "storage": self.stored,
            "subresources": {"status": {}},
        });
        if !self.columns.is_empty() {
            let columns = self.columns.iter().map(|[name, type_, path, description]| {
                json!({"description": description, "jsonPath": path, "name": name, "type": type_})
            });
            version["additionalPrinterColumns"] = columns.collect();
        }
        version
    }
}

/// Returns the structural schema of a type, with the fields of every object.
fn schema<T: JsonSchema>() -> Value {
    let mut schema = of_settings::<T>(SchemaSettings::openapi3());
    for (name, type_) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][name] = json!({"type": type_});
    }
    schema
}

/// Returns the structural schema of a type as it is written: fields that are always written are required.
pub(crate) fn serialized<T: JsonSchema>() -> Value {
    of_settings::<T>(SchemaSettings::openapi3().for_serialize())
}

fn of_settings<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let generator = settings.with(|s| s.inline_subschemas = true).into_generator();
    structural(generator.into_root_schema_for::<T>().to_value())
}

/// Converts a schema to a structural one.
///
/// Defaults of the Rust types are dropped; `x-default` is the default that the API server sets; a null removes a keyword.
fn structural(schema: Value) -> Value {
    let Value::Object(map) = schema else { return schema };
    let map = without_null_type(map);
    let mut out = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            "$schema" | "title" | "default" | "nullable" | "components" => continue,
            "x-default" => {
                out.insert("default".to_owned(), value);
                continue;
            }
            // The line breaks of a doc comment are those of the source file.
            "description" => value.as_str().map(|text| text.replace('\n', " ").into()).unwrap_or_default(),
            "properties" => match value {
                Value::Object(properties) => properties.into_iter().map(|(k, v)| (k, structural(v))).collect(),
                other => other,
            },
            "items" | "additionalProperties" => structural(value),
            _ => value,
        };
        if !value.is_null() {
            out.insert(key, value);
        }
    }
    Value::Object(out)
}

/// Converts `type: [T, null]` to T, and `anyOf: [S, {type: null}]` to S: an optional field is left out instead of null.
fn without_null_type(mut map: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(types)) = map.get("type") {
        let type_ = types.iter().find(|t| *t != "null").cloned();
        map.insert("type".to_owned(), type_.unwrap_or_default());
    }
    let Some(Value::Array(choices)) = map.get("anyOf") else { return map };
    let some: Vec<_> = choices.iter().filter(|c| c["type"] != "null" && c["enum"] != json!([null])).cloned().collect();
    if let (true, [Value::Object(only)]) = (some.len() < choices.len(), some.as_slice()) {
        map.remove("anyOf");
        for (key, value) in only.clone() {
            map.entry(key).or_insert(value);
        }
        return without_null_type(map);
    }
    map
}
