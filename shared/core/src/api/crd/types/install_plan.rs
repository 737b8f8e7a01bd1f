//! InstallPlan: the objects that a resolution requires, and the state of their creation.

use schemars::JsonSchema;

use super::parts::{ObjectReference, Time};

/// The objects to create for an installation or upgrade, and the state of their creation. Created by resolution for the Subscriptions of
/// a namespace, or by users who name ClusterServiceVersions.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct InstallPlan {
    /// The ClusterServiceVersions to install, and their approval.
    pub spec: InstallPlanSpec,
    /// The steps to execute, and the state of each. Written by the controllers.
    pub status: InstallPlanStatus,
}

/// The ClusterServiceVersions to install, and their approval.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["approval", "approved", "clusterServiceVersionNames"]))]
pub struct InstallPlanSpec {
    /// The name of the CatalogSource that contains the ClusterServiceVersions. Used only in InstallPlans that users create. Defaults to
    /// any catalog that the namespace can use.
    pub source: String,
    /// The namespace of the CatalogSource in source. Used only in InstallPlans that users create.
    pub source_namespace: String,
    /// The names of the ClusterServiceVersions to install. In an InstallPlan that users create, the controllers add the steps for these
    /// and for their dependencies.
    pub cluster_service_version_names: Vec<String>,
    /// The approval mode: Manual or Automatic. A Manual plan is executed once approved is true. Resolution creates a Manual plan if any
    /// Subscription of the namespace has installPlanApproval Manual, and otherwise an Automatic plan with approved already true. In a plan
    /// that users create, Automatic implies approved.
    pub approval: String,
    /// Whether the steps may be executed. Users approve a manual InstallPlan by setting it to true; the controllers set it in automatic
    /// ones.
    pub approved: bool,
    /// The sequence number of the InstallPlan in its namespace: each new one has a higher number. Written by the controllers.
    #[schemars(extend("format" = null))]
    pub generation: i64,
}

/// The steps of an InstallPlan, and the state of their execution.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogSources", "phase"]))]
pub struct InstallPlanStatus {
    /// The phase of the InstallPlan: empty (new), Planning (not resolved yet), RequiresApproval (waits for spec.approved), Installing
    /// (steps are executed), Complete or Failed. Written by the controllers.
    pub phase: String,
    /// The conditions of the InstallPlan: Installed, which is False with the cause of a failure, and Resolved, which is False for an
    /// InstallPlan that cannot be resolved.
    pub conditions: Vec<InstallPlanCondition>,
    /// The names of the CatalogSources that the steps come from.
    pub catalog_sources: Vec<String>,
    /// The steps to execute, each with the object to create. They do not change once they are written, except for their status.
    pub plan: Vec<Step>,
    /// The bundle images that the steps were read from.
    pub bundle_lookups: Vec<BundleLookup>,
    /// The ServiceAccount of the OperatorGroup with whose permissions the steps are executed, CRDs excepted. If not set, the controllers'
    /// own permissions are used.
    pub attenuated_service_account_ref: Option<ObjectReference>,
    /// The time of the first failed attempt, or of completion. Retries stop one minute (default) after it, except for missing permissions.
    pub start_time: Time,
    /// The error that is being retried, or that execution failed with. Empty if there is none.
    pub message: String,
}

/// A condition of an InstallPlan.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InstallPlanCondition {
    /// The type of the condition: Installed or Resolved.
    #[serde(rename = "type")]
    pub type_: String,
    /// The status of the condition: True, False or Unknown.
    pub status: String,
    /// The time at which the condition was last written.
    pub last_update_time: Time,
    /// The time at which status last changed.
    pub last_transition_time: Time,
    /// The machine-readable cause of the status, such as InstallCheckFailed or InstallComponentFailed.
    pub reason: String,
    /// The human-readable explanation of reason.
    pub message: String,
}

/// An object to create, and the state of its creation.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["resolving", "resource", "status"]))]
pub struct Step {
    /// The name of the ClusterServiceVersion that the step belongs to.
    pub resolving: String,
    /// The object to create, with its manifest.
    pub resource: StepResource,
    /// Whether the InstallPlan goes on if the cluster refuses the object. Set from the bundle property olm.manifests.optional if the
    /// feature gate OptionalManifests is on.
    pub optional: bool,
    /// The state of the step: Unknown (not executed yet), Created, Present (the object existed), WaitingForApi (the CRD is not
    /// established yet), NotCreated (optional, and refused by the cluster), NotPresent (treated like Unknown) or UnsupportedResource (the
    /// kind is not supported). Written by the controllers.
    pub status: String,
}

/// The object of a step.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["group", "kind", "name", "sourceName", "sourceNamespace", "version"]))]
pub struct StepResource {
    /// The name of the CatalogSource that the object comes from.
    pub source_name: String,
    /// The namespace of the CatalogSource that the object comes from.
    pub source_namespace: String,
    /// The API group of the object; empty for the core group.
    pub group: String,
    /// The API version of the object.
    pub version: String,
    /// The kind of the object. BundleSecret stands for a Secret of a bundle.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// The manifest of the object as JSON, or a JSON reference to the ConfigMap or bundle image that contains it.
    pub manifest: String,
}

/// A bundle image that steps were read from.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogSourceRef", "identifier", "path", "replaces"]))]
pub struct BundleLookup {
    /// The reference of the bundle image.
    pub path: String,
    /// The name of the bundle's ClusterServiceVersion.
    pub identifier: String,
    /// The name of the ClusterServiceVersion that this one replaces; empty if none.
    pub replaces: String,
    /// The CatalogSource that the bundle comes from.
    pub catalog_source_ref: Option<ObjectReference>,
    /// The conditions of unpacking: BundleLookupPending, BundleLookupNotPersisted and BundleLookupFailed. Written by OLM.
    /// kubectl-olm never sets them, because it unpacks bundles before it creates the InstallPlan.
    pub conditions: Vec<BundleLookupCondition>,
    /// The properties of the bundle as JSON.
    pub properties: String,
}

/// A condition of the unpacking of a bundle.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct BundleLookupCondition {
    /// The type of the condition: BundleLookupPending, BundleLookupNotPersisted or BundleLookupFailed.
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
