//! Subscription: the wish to have a package, and to follow a channel of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::crd::kubernetes::{Affinity, EnvFromSource, EnvVar, ResourceRequirements, Toleration, Volume, VolumeMount};
use super::parts::{LabelSelector, ObjectReference, Time, texts};
use super::raw::Raw;
use super::resource::View;

/// The wish to have a package in a namespace and to follow a channel of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct Subscription {
    /// What is asked for.
    pub spec: SubscriptionSpec,
    /// What was observed.
    pub status: SubscriptionStatus,
}

impl View for Subscription {
    const KIND: &'static str = "Subscription";
}

texts! {
    /// Who approves an InstallPlan. Not said is automatic.
    Approval {
        /// Not said.
        None = "",
        /// Approved as it is made.
        Automatic = "Automatic",
        /// Somebody has to approve it.
        Manual = "Manual",
    }
}

/// What a Subscription asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "source", "sourceNamespace"]))]
pub struct SubscriptionSpec {
    /// The CatalogSource's name.
    pub source: String,
    /// The CatalogSource's namespace.
    pub source_namespace: String,
    /// The package. The field is called name.
    #[serde(rename = "name")]
    pub package: String,
    /// The channel; none means the package's default channel.
    pub channel: String,
    /// The ClusterServiceVersion to begin with; none means the channel's head.
    #[serde(rename = "startingCSV")]
    pub starting_csv: String,
    /// Who approves its InstallPlans.
    pub install_plan_approval: Approval,
    /// What is changed in the operator's Deployments.
    pub config: Option<SubscriptionConfig>,
}

/// What is changed in the Deployments of a subscribed operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionConfig {
    /// Meant to choose pods; has no effect.
    pub selector: Option<LabelSelector>,
    /// Replaces the pods' node selector.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Added to the pods' tolerations.
    pub tolerations: Vec<Raw<Toleration>>,
    /// Replaces the resources of every container.
    pub resources: Option<Raw<ResourceRequirements>>,
    /// Added to every container.
    pub env_from: Vec<Raw<EnvFromSource>>,
    /// Set in every container.
    pub env: Vec<Raw<EnvVar>>,
    /// Added to the pods.
    pub volumes: Vec<Raw<Volume>>,
    /// Added to every container.
    pub volume_mounts: Vec<Raw<VolumeMount>>,
    /// Overrides the pods' affinity, part by part.
    pub affinity: Option<Raw<Affinity>>,
    /// Added to Deployments, pods and APIServices.
    pub annotations: BTreeMap<String, String>,
}

texts! {
    /// Where a Subscription stands.
    SubscriptionState {
        /// Nothing happened yet.
        None = "",
        /// An upgrade is on its way or waits for approval.
        UpgradePending = "UpgradePending",
        /// An upgrade is there.
        UpgradeAvailable = "UpgradeAvailable",
        /// Nothing newer is known.
        AtLatestKnown = "AtLatestKnown",
        /// Something failed.
        Failed = "UpgradeFailed",
    }
}

/// What was observed of a Subscription.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastUpdated"]))]
pub struct SubscriptionStatus {
    /// The ClusterServiceVersion that was last chosen.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// The ClusterServiceVersion that is installed.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// The newest InstallPlan, in the older form.
    pub installplan: Option<InstallPlanReference>,
    /// Where it stands.
    pub state: SubscriptionState,
    /// Why, in one word.
    pub reason: String,
    /// The generation of its newest InstallPlan.
    #[schemars(extend("format" = null))]
    pub install_plan_generation: i64,
    /// The newest InstallPlan.
    pub install_plan_ref: Option<ObjectReference>,
    /// The catalogs it depends on.
    pub catalog_health: Vec<CatalogHealth>,
    /// Conditions.
    pub conditions: Vec<SubscriptionCondition>,
    /// When this was written.
    pub last_updated: Time,
}

/// A reference to an InstallPlan, in the older form.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "name", "uuid"]))]
pub struct InstallPlanReference {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// The uid.
    pub uuid: String,
}

/// How a catalog does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogSourceRef", "healthy", "lastUpdated"]))]
pub struct CatalogHealth {
    /// The catalog.
    pub catalog_source_ref: ObjectReference,
    /// When that was found.
    pub last_updated: Time,
    /// Is it well?
    pub healthy: bool,
}

/// A condition of a Subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct SubscriptionCondition {
    /// What is asked.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// When it was last looked at.
    pub last_heartbeat_time: Time,
    /// When the status last changed.
    pub last_transition_time: Time,
}
