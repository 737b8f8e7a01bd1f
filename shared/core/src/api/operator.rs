//! Operator: everything that belongs to one package, in one place.

use schemars::JsonSchema;
use serde::Deserialize;

use super::parts::{LabelSelector, Time};
use super::raw::Carried;
use super::resource::View;

/// Everything that belongs to one package.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Operator {
    /// Always empty.
    pub spec: Carried<OperatorSpec>,
    /// What belongs to it.
    pub status: OperatorStatus,
}

impl View for Operator {
    const KIND: &'static str = "Operator";
}

/// Always empty.
#[derive(JsonSchema)]
pub struct OperatorSpec {}

/// What belongs to a package.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OperatorStatus {
    /// The objects.
    pub components: Option<Components>,
}

/// The objects of a package.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["labelSelector"]))]
pub struct Components {
    /// What selects them.
    pub label_selector: LabelSelector,
    /// The objects.
    pub refs: Vec<Component>,
}

/// An object of a package, and how it does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Component {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty when cluster-scoped.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// The resourceVersion.
    pub resource_version: String,
    /// A part of the object; never used.
    pub field_path: String,
    /// How it does.
    pub conditions: Vec<ComponentCondition>,
}

/// A condition of an object of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct ComponentCondition {
    /// What is asked.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// When it was last written.
    pub last_update_time: Time,
    /// When the status last changed.
    pub last_transition_time: Time,
}
