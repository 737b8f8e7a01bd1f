//! OLMConfig: the settings of OLM itself; there is one, named `cluster`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::parts::Condition;
use super::resource::View;

/// The settings of OLM itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata"]))]
pub struct OlmConfig {
    /// The settings.
    pub spec: OlmConfigSpec,
    /// What came of them.
    pub status: OlmConfigStatus,
}

impl View for OlmConfig {
    const KIND: &'static str = "OLMConfig";
}

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OlmConfigSpec {
    /// What can be turned off.
    pub features: Features,
}

/// What can be turned off.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Features {
    /// Should global operators not be copied into every namespace?
    #[serde(rename = "disableCopiedCSVs")]
    pub disable_copied_csvs: bool,
    /// How often the packages are read anew, a Go duration.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"))]
    pub package_server_sync_interval: String,
}

/// What came of the settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OlmConfigStatus {
    /// Conditions.
    pub conditions: Vec<Condition>,
}
