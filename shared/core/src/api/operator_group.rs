//! OperatorGroup: which namespaces the operators of a namespace watch.

use schemars::JsonSchema;
use serde::Deserialize;

use super::parts::{Condition, LabelSelector, ObjectReference, Time, texts};
use super::resource::View;

/// Which namespaces the operators of a namespace watch. Reads v1 and v1alpha2.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorGroup {
    /// What is asked for.
    #[schemars(extend("x-default" = {"upgradeStrategy": "Default"}))]
    pub spec: OperatorGroupSpec,
    /// What came of it.
    pub status: OperatorGroupStatus,
}

impl View for OperatorGroup {
    const KIND: &'static str = "OperatorGroup";
}

texts! {
    /// May a failed operator be upgraded?
    UpgradeStrategy {
        /// No.
        Default = "Default",
        /// Yes.
        FailForward = "TechPreviewUnsafeFailForward",
    }
}

/// What an OperatorGroup asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorGroupSpec {
    /// Selects the namespaces by label. Empty or absent selects all.
    pub selector: Option<LabelSelector>,
    /// Names the namespaces; goes before the selector.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub target_namespaces: Vec<String>,
    /// The ServiceAccount whose rights limit what is installed.
    pub service_account_name: String,
    /// Does the annotation with the provided APIs stay as it is?
    #[serde(rename = "staticProvidedAPIs")]
    pub static_provided_apis: bool,
    /// May a failed operator be upgraded?
    #[schemars(extend("enum" = ["Default", "TechPreviewUnsafeFailForward"], "x-default" = "Default"))]
    pub upgrade_strategy: UpgradeStrategy,
}

/// What came of an OperatorGroup.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastUpdated"]))]
pub struct OperatorGroupStatus {
    /// The namespaces; the empty text stands for all.
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
    /// The ServiceAccount, when it was found.
    pub service_account_ref: Option<ObjectReference>,
    /// When this was written.
    pub last_updated: Time,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

/// The older version, v1alpha2: only its schema is needed.
#[derive(JsonSchema)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OperatorGroupV1Alpha2 {
    /// What is asked for.
    pub spec: OperatorGroupV1Alpha2Spec,
    /// What came of it.
    pub status: OperatorGroupV1Alpha2Status,
}

/// What an OperatorGroup asks for.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OperatorGroupV1Alpha2Spec {
    /// Selects the namespaces by label. Empty or absent selects all.
    pub selector: Option<LabelSelector>,
    /// Names the namespaces; goes before the selector.
    pub target_namespaces: Option<Vec<String>>,
    /// The ServiceAccount whose rights limit what is installed.
    pub service_account_name: Option<String>,
    /// Does the annotation with the provided APIs stay as it is?
    #[schemars(rename = "staticProvidedAPIs")]
    pub static_provided_apis: Option<bool>,
}

/// What came of an OperatorGroup.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct OperatorGroupV1Alpha2Status {
    /// The namespaces; the empty text stands for all.
    pub namespaces: Option<Vec<String>>,
    /// The ServiceAccount, when it was found.
    pub service_account_ref: Option<ObjectReference>,
    /// When this was written.
    pub last_updated: Time,
}
