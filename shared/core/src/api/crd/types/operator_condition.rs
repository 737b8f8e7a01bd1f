//! OperatorCondition: the conditions that an operator reports about itself, such as whether it may be upgraded now.

use schemars::JsonSchema;

use super::parts::Condition;

/// The conditions that an operator reports about itself, such as whether it may be upgraded now. Created by the controllers for each
/// ClusterServiceVersion, under its name.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorCondition {
    /// The conditions that the operator reports, who may report them, and what overrides them.
    pub spec: OperatorConditionSpec,
    /// The conditions that hold. Written by the controllers.
    pub status: OperatorConditionStatus,
}

/// The conditions that an operator reports, who may report them, and what overrides them.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorConditionSpec {
    /// The names of the ServiceAccounts that may update this object. Written by the controllers from the install strategy; a Role and a
    /// RoleBinding of the same name grant it.
    pub service_accounts: Vec<String>,
    /// The names of the operator's Deployments. Written by the controllers from the install strategy.
    pub deployments: Vec<String>,
    /// The conditions that an administrator sets in place of the operator's. One of type Upgradeable alone decides whether the operator
    /// may be upgraded.
    #[schemars(schema_with = "overrides")]
    pub overrides: Vec<Condition>,
    /// The conditions that the operator reports. Written by the operator; the controllers copy them to status.conditions.
    pub conditions: Vec<Condition>,
}

/// The conditions that hold.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct OperatorConditionStatus {
    /// The conditions that hold, with the metadata.generation in which they were reported. If Upgradeable is False or outdated, upgrades
    /// wait, unless spec.overrides states otherwise.
    pub conditions: Vec<Condition>,
}

/// The schema of overrides, in which lastTransitionTime is optional.
fn overrides(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = Vec::<Condition>::json_schema(generator);
    let required = schema.get_mut("items").and_then(|items| items.get_mut("required"));
    if let Some(required) = required.and_then(serde_json::Value::as_array_mut) {
        required.retain(|name| name != "lastTransitionTime");
    }
    schema
}

/// The conditions that an operator reports about itself, such as whether it may be upgraded now. In this older version the operator
/// writes status.conditions.
#[derive(JsonSchema)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorConditionV1 {
    /// The ServiceAccounts that may report conditions, and what overrides these.
    pub spec: OperatorConditionV1Spec,
    /// The conditions that hold. Written by the operator.
    pub status: OperatorConditionStatus,
}

/// The ServiceAccounts that may report conditions, and what overrides these.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("required" = null))]
pub struct OperatorConditionV1Spec {
    /// The names of the ServiceAccounts that may update this object. Written by the controllers from the install strategy; a Role and a
    /// RoleBinding of the same name grant it.
    pub service_accounts: Option<Vec<String>>,
    /// The names of the operator's Deployments. Written by the controllers from the install strategy.
    pub deployments: Option<Vec<String>>,
    /// The conditions that an administrator sets in place of the operator's. One of type Upgradeable alone decides whether the operator
    /// may be upgraded.
    #[schemars(schema_with = "overrides")]
    pub overrides: Option<Vec<Condition>>,
}
