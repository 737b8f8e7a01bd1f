//! OperatorCondition: what an operator says about itself, above all whether it may be upgraded now.

use schemars::JsonSchema;
use serde::Deserialize;

use super::parts::Condition;
use super::resource::View;

/// What an operator says about itself. Reads v2 and v1.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorCondition {
    /// Who may speak, what is said, and what an administrator puts over it.
    pub spec: OperatorConditionSpec,
    /// What holds.
    pub status: OperatorConditionStatus,
}

impl View for OperatorCondition {
    const KIND: &'static str = "OperatorCondition";
}

/// Who may speak, what is said, and what an administrator puts over it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorConditionSpec {
    /// The ServiceAccounts that may write it.
    pub service_accounts: Vec<String>,
    /// The Deployments that may write it.
    pub deployments: Vec<String>,
    /// What an administrator says instead.
    #[schemars(schema_with = "overrides")]
    pub overrides: Vec<Condition>,
    /// What the operator says (v2).
    pub conditions: Vec<Condition>,
}

/// What holds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OperatorConditionStatus {
    /// The conditions that hold; in v1 what the operator says.
    pub conditions: Vec<Condition>,
}

/// An override need not say since when it holds.
fn overrides(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = Vec::<Condition>::json_schema(generator);
    let required = schema.get_mut("items").and_then(|items| items.get_mut("required"));
    if let Some(required) = required.and_then(serde_json::Value::as_array_mut) {
        required.retain(|name| name != "lastTransitionTime");
    }
    schema
}

/// The older version, v1: only its schema is needed.
#[derive(JsonSchema)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorConditionV1 {
    /// Who may speak, and what an administrator puts over it.
    pub spec: OperatorConditionV1Spec,
    /// What holds.
    pub status: OperatorConditionStatus,
}

/// Who may speak, and what an administrator puts over it.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("required" = null))]
pub struct OperatorConditionV1Spec {
    /// The ServiceAccounts that may write it.
    pub service_accounts: Option<Vec<String>>,
    /// The Deployments that may write it.
    pub deployments: Option<Vec<String>>,
    /// What an administrator says instead.
    #[schemars(schema_with = "overrides")]
    pub overrides: Option<Vec<Condition>>,
}
