//! Operator: a list of everything that belongs to one package.

use schemars::JsonSchema;

use super::carried::Carried;
use super::parts::{LabelSelector, Time};

/// The components of one installed package, collected by label. Created by the controllers, and created again when it is deleted while
/// components exist.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct Operator {
    /// The desired state of the package. It has no fields.
    pub spec: Carried<OperatorSpec>,
    /// The components of the package. Written by the controllers.
    pub status: OperatorStatus,
}

/// The desired state of the package. It has no fields.
#[derive(JsonSchema)]
pub struct OperatorSpec {}

/// The components of a package.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct OperatorStatus {
    /// The components of the package: all objects with its label.
    pub components: Option<Components>,
}

/// The components of a package and what selects them.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["labelSelector"]))]
pub struct Components {
    /// The selector of the components: the label operators.coreos.com/PACKAGE.NAMESPACE exists.
    pub label_selector: LabelSelector,
    /// The components in order of kind, apiVersion, namespace and name.
    pub refs: Vec<Component>,
}

/// A component of a package, and its conditions.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Component {
    /// The API version of the component, with its group.
    pub api_version: String,
    /// The kind of the component.
    pub kind: String,
    /// The namespace of the component; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the component.
    pub name: String,
    /// The UID of the component. Deprecated; never set.
    pub uid: String,
    /// The resourceVersion of the component. Deprecated; never set.
    pub resource_version: String,
    /// The path of a field of the component. Deprecated; never set.
    pub field_path: String,
    /// The conditions of the component as its own status has them. For a ClusterServiceVersion, one condition with the phase as its type.
    pub conditions: Vec<ComponentCondition>,
}

/// A condition of a component.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct ComponentCondition {
    /// The type of the condition, or the phase of a ClusterServiceVersion.
    #[serde(rename = "type")]
    pub type_: String,
    /// The status of the condition: True, False or Unknown.
    pub status: String,
    /// The machine-readable cause of the status, in CamelCase.
    pub reason: String,
    /// The human-readable explanation of reason.
    pub message: String,
    /// The time at which the condition was last written.
    pub last_update_time: Time,
    /// The time at which status last changed.
    pub last_transition_time: Time,
}
