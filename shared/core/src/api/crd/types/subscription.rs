//! Subscription: a request to install a package and to follow one of its channels.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::super::kubernetes::{
    Affinity, EnvFromSource, EnvVar, ResourceRequirements, Toleration, Volume, VolumeMount,
};
use super::carried::Carried;
use super::parts::{LabelSelector, ObjectReference, Time};

/// The request to install a package from a catalog, and to upgrade it along a channel.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct Subscription {
    /// The package, its catalog and channel, and the configuration of its operator. Written by users.
    pub spec: SubscriptionSpec,
    /// The state of the installation and of its upgrades. Written by the controllers.
    pub status: SubscriptionStatus,
}

/// The package to install and upgrade.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "source", "sourceNamespace"]))]
pub struct SubscriptionSpec {
    /// The name of the CatalogSource that contains the package. If it does not exist, the condition ResolutionFailed is set.
    pub source: String,
    /// The namespace of the CatalogSource: that of the Subscription, or the global catalog namespace.
    pub source_namespace: String,
    /// The name of the package in the catalog.
    #[serde(rename = "name")]
    pub package: String,
    /// The name of the channel of the package. Defaults to the package's default channel.
    pub channel: String,
    /// The name of the ClusterServiceVersion to install first; upgrades continue from it. Defaults to the head of the channel. Has no
    /// effect once something is installed.
    #[serde(rename = "startingCSV")]
    pub starting_csv: String,
    /// The approval mode of InstallPlans: Automatic or Manual. Defaults to Automatic. One Subscription with Manual makes all InstallPlans
    /// of its namespace manual.
    pub install_plan_approval: String,
    /// The changes to make in the Deployments of the operator.
    pub config: Option<SubscriptionConfig>,
}

/// The changes to make in the Deployments of an operator. Containers are changed, init containers are not.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionConfig {
    /// The label selector of pods to change. It has no effect.
    pub selector: Option<LabelSelector>,
    /// The node selector of the pods. It replaces the one in the bundle.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// The tolerations to add to those of the pods.
    pub tolerations: Vec<Carried<Toleration>>,
    /// The resource requests and limits of each container. They replace those in the bundle.
    pub resources: Option<Carried<ResourceRequirements>>,
    /// The sources of environment variables to add to each container.
    pub env_from: Vec<Carried<EnvFromSource>>,
    /// The environment variables of each container. They replace variables of the same name, and are added otherwise.
    pub env: Vec<Carried<EnvVar>>,
    /// The volumes of the pods. They replace volumes of the same name, and are added otherwise.
    pub volumes: Vec<Carried<Volume>>,
    /// The volume mounts of each container. They replace mounts of the same name, and are added otherwise.
    pub volume_mounts: Vec<Carried<VolumeMount>>,
    /// The affinity of the pods. Each of nodeAffinity, podAffinity and podAntiAffinity that is given replaces that of the bundle, and an
    /// empty object removes it.
    pub affinity: Option<Carried<Affinity>>,
    /// The annotations to add to Deployments, their pods and APIServices. Annotations that exist are not changed.
    pub annotations: BTreeMap<String, String>,
}

/// The state of the installation of a package, and of its upgrades.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastUpdated"]))]
pub struct SubscriptionStatus {
    /// The name of the ClusterServiceVersion that resolution chose last. An installation or upgrade is in progress while it differs from
    /// installedCSV.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// The name of the ClusterServiceVersion that is installed. See its status for whether the operator runs.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// The InstallPlan of currentCSV, in an older form. Use installPlanRef instead.
    pub installplan: Option<InstallPlanReference>,
    /// The state of the Subscription: empty (nothing was resolved yet), UpgradePending (the InstallPlan has not created currentCSV yet),
    /// AtLatestKnown (currentCSV exists, in whatever phase) or UpgradeFailed (the InstallPlan failed, and the OperatorGroup allows failed
    /// operators to be upgraded). UpgradeAvailable is never set. Written by the controllers.
    pub state: String,
    /// The machine-readable cause of the state. Deprecated; never set. See conditions instead.
    pub reason: String,
    /// The spec.generation of the InstallPlan in installPlanRef.
    #[schemars(extend("format" = null))]
    pub install_plan_generation: i64,
    /// The InstallPlan that installs currentCSV. If it is deleted while state is UpgradePending, the Subscription is resolved again.
    pub install_plan_ref: Option<ObjectReference>,
    /// The health of each CatalogSource of the Subscription's namespace and of the global catalog namespace.
    pub catalog_health: Vec<CatalogHealth>,
    /// The conditions of the Subscription: CatalogSourcesUnhealthy, ResolutionFailed, BundleUnpacking, BundleUnpackFailed,
    /// InstallPlanPending, InstallPlanFailed, InstallPlanMissing, CatalogDirectory, and PackageDeprecated, ChannelDeprecated,
    /// BundleDeprecated and Deprecated. They are absent, or False, when they do not hold.
    pub conditions: Vec<SubscriptionCondition>,
    /// The time at which the status was last written.
    pub last_updated: Time,
}

/// A reference to an InstallPlan, in an older form.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["apiVersion", "kind", "name", "uuid"]))]
pub struct InstallPlanReference {
    /// The API version of the InstallPlan, with its group.
    pub api_version: String,
    /// The kind of the object. Always InstallPlan.
    pub kind: String,
    /// The name of the InstallPlan.
    pub name: String,
    /// The UID of the InstallPlan.
    pub uuid: String,
}

/// The health of a CatalogSource.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogSourceRef", "healthy", "lastUpdated"]))]
pub struct CatalogHealth {
    /// The CatalogSource that is described.
    pub catalog_source_ref: ObjectReference,
    /// The time at which healthy last changed.
    pub last_updated: Time,
    /// Whether the CatalogSource is valid and its content can be read. While it is false, Subscriptions of the namespace may not be
    /// resolved.
    pub healthy: bool,
}

/// A condition of a Subscription.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct SubscriptionCondition {
    /// The type of the condition, such as ResolutionFailed or CatalogSourcesUnhealthy.
    #[serde(rename = "type")]
    pub type_: String,
    /// The status of the condition: True, False or Unknown.
    pub status: String,
    /// The machine-readable cause of the status, such as ConstraintsNotSatisfiable.
    pub reason: String,
    /// The human-readable explanation of reason.
    pub message: String,
    /// The time at which the condition was last confirmed. Deprecated; never set.
    pub last_heartbeat_time: Time,
    /// The time at which status, reason or message last changed. Not set for conditions about resolution and unpacking.
    pub last_transition_time: Time,
}
