//! OperatorGroup: which namespaces the operators of a namespace watch.

use schemars::JsonSchema;

use super::parts::{Condition, LabelSelector, ObjectReference, Time};

/// The namespaces that the operators of a namespace watch. A namespace with operators needs exactly one.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorGroup {
    /// The target namespaces and the permissions for installing operators. Written by users.
    #[schemars(extend("x-default" = {"upgradeStrategy": "Default"}))]
    pub spec: OperatorGroupSpec,
    /// The target namespaces as last determined. Written by the controllers.
    pub status: OperatorGroupStatus,
}

/// The target namespaces and the permissions for installing operators.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorGroupSpec {
    /// The label selector of the target namespaces. Ignored if targetNamespaces is not empty. If both are empty, the group targets all
    /// namespaces.
    pub selector: Option<LabelSelector>,
    /// The names of the target namespaces, which the operators of the group's namespace watch. They need not exist. Takes precedence over
    /// selector.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub target_namespaces: Vec<String>,
    /// The name of a ServiceAccount, in the namespace of the group, with whose permissions operators are installed. Defaults to the
    /// controllers' own permissions. If the ServiceAccount does not exist, nothing is installed.
    pub service_account_name: String,
    /// Whether the annotation olm.providedAPIs of the group is maintained by users. Defaults to false: the controllers maintain it. If
    /// true, a ClusterServiceVersion that provides other APIs fails.
    #[serde(rename = "staticProvidedAPIs")]
    pub static_provided_apis: bool,
    /// The strategy for upgrades: Default upgrades operators that have succeeded only; TechPreviewUnsafeFailForward also upgrades
    /// operators whose ClusterServiceVersion or InstallPlan has failed. Defaults to Default.
    #[schemars(extend("enum" = ["Default", "TechPreviewUnsafeFailForward"], "x-default" = "Default"))]
    pub upgrade_strategy: String,
}

/// The target namespaces as last determined.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastUpdated"]))]
pub struct OperatorGroupStatus {
    /// The target namespaces; one empty string stands for all namespaces. Not set if there is none.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
    /// The ServiceAccount of spec.serviceAccountName, once it was found.
    pub service_account_ref: Option<ObjectReference>,
    /// The time at which the status was last written.
    pub last_updated: Time,
    /// The conditions of the group, present only while they are True: MultipleOperatorGroup (the namespace has more than one group) and
    /// OperatorGroupServiceAccount (the ServiceAccount was not found).
    pub conditions: Vec<Condition>,
}

/// The namespaces that the operators of a namespace watch. This version lacks upgradeStrategy and conditions; use v1.
#[derive(JsonSchema)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorGroupV1Alpha2 {
    /// The target namespaces and the permissions for installing operators. Written by users.
    pub spec: OperatorGroupV1Alpha2Spec,
    /// The target namespaces as last determined. Written by the controllers.
    pub status: OperatorGroupV1Alpha2Status,
}

/// The target namespaces and the permissions for installing operators.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OperatorGroupV1Alpha2Spec {
    /// The label selector of the target namespaces. Ignored if targetNamespaces is not empty. If both are empty, the group targets all
    /// namespaces.
    pub selector: Option<LabelSelector>,
    /// The names of the target namespaces, which the operators of the group's namespace watch. They need not exist. Takes precedence over
    /// selector.
    pub target_namespaces: Option<Vec<String>>,
    /// The name of a ServiceAccount, in the namespace of the group, with whose permissions operators are installed. Defaults to the
    /// controllers' own permissions. If the ServiceAccount does not exist, nothing is installed.
    pub service_account_name: Option<String>,
    /// Whether the annotation olm.providedAPIs of the group is maintained by users. Defaults to false: the controllers maintain it. If
    /// true, a ClusterServiceVersion that provides other APIs fails.
    #[schemars(rename = "staticProvidedAPIs")]
    pub static_provided_apis: Option<bool>,
}

/// The target namespaces as last determined.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OperatorGroupV1Alpha2Status {
    /// The target namespaces; one empty string stands for all namespaces. Not set if there is none.
    pub namespaces: Option<Vec<String>>,
    /// The ServiceAccount of spec.serviceAccountName, once it was found.
    pub service_account_ref: Option<ObjectReference>,
    /// The time at which the status was last written.
    pub last_updated: Time,
}
