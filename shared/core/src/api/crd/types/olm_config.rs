//! OLMConfig: the configuration of OLM itself; only the object `cluster` has an effect.

use schemars::JsonSchema;

use super::parts::Condition;

/// The configuration of OLM. Only the object named cluster has an effect.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OlmConfig {
    /// The desired configuration. Written by cluster administrators.
    pub spec: OlmConfigSpec,
    /// The state of the configuration. Written by the controllers.
    pub status: OlmConfigStatus,
}

/// The desired configuration of OLM.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct OlmConfigSpec {
    /// The features that can be turned off or tuned.
    pub features: Features,
}

/// The features that can be turned off or tuned.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Features {
    /// Whether copies of ClusterServiceVersions of AllNamespaces OperatorGroups are disabled. Defaults to false.
    #[serde(rename = "disableCopiedCSVs")]
    pub disable_copied_csvs: bool,
    /// The interval at which OLM's package server reads the catalogs, as a duration in hours, minutes and seconds, such as 30m. It has no
    /// effect on these controllers, which run no package server.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"))]
    pub package_server_sync_interval: String,
}

/// The state of the configuration.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct OlmConfigStatus {
    /// The conditions of the configuration: DisabledCopiedCSVs is True if copies are disabled and no unexpected copy is left.
    pub conditions: Vec<Condition>,
}
