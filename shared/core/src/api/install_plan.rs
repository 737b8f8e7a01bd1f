//! InstallPlan: the objects that a resolution calls for, and how far they are made.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::object;
use super::parts::{ObjectReference, Time, texts};
use super::resource::View;
use super::subscription::Approval;

/// Annotation of an approved plan: the digests of the content of its bundles that were explained, by their ClusterServiceVersions, as JSON.
/// What an image's tag leads to may be something else by the time the plan is executed.
pub const APPROVED_CONTENT: &str = "kubectl-olm/approved-content";

/// Was that content of a bundle approved, as far as the plan says? The error is what was approved instead; empty when that cannot be read.
pub fn is_approved_content(plan: &Value, csv: &str, digest: &str) -> Result<(), String> {
    let Some(text) = object::annotation(plan, APPROVED_CONTENT) else { return Ok(()) };
    let approved: Value = serde_json::from_str(text).map_err(|_| String::new())?;
    match approved.as_object().map(|approved| approved.get(csv)) {
        Some(Some(Value::String(known))) if known == digest => Ok(()),
        // A bundle whose manifests were in the plan is approved with the plan.
        Some(None) => Ok(()),
        Some(Some(Value::String(other))) => Err(other.clone()),
        _ => Err(String::new()),
    }
}

/// Was it made for a Subscription? Others are made by people, or by other programs.
pub fn is_generated(plan: &Value) -> bool {
    let owners = object::list(plan, &["metadata", "ownerReferences"]);
    owners.iter().any(|owner| object::text(owner, &["kind"]) == "Subscription")
}

/// May it be executed? Of a plan that was made for a Subscription `spec.approved` alone says so, as in OLM. One that people or other
/// programs made may also ask for automatic approval.
pub fn is_approved(plan: &Value) -> bool {
    let asks_for_it = object::text(plan, &["spec", "approval"]) == Approval::Automatic.as_str();
    object::at(plan, &["spec", "approved"]) == &Value::Bool(true) || asks_for_it && !is_generated(plan)
}

/// The objects that a resolution calls for, and how far they are made.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct InstallPlan {
    /// What is to be installed.
    pub spec: InstallPlanSpec,
    /// The steps, and how far they are.
    pub status: InstallPlanStatus,
}

impl View for InstallPlan {
    const KIND: &'static str = "InstallPlan";
}

/// What is to be installed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["approval", "approved", "clusterServiceVersionNames"]))]
pub struct InstallPlanSpec {
    /// A CatalogSource's name; not used.
    pub source: String,
    /// A CatalogSource's namespace; not used.
    pub source_namespace: String,
    /// The ClusterServiceVersions that are installed.
    pub cluster_service_version_names: Vec<String>,
    /// Who approves it.
    pub approval: Approval,
    /// Is it approved?
    pub approved: bool,
    /// Counts the plans of a namespace.
    #[schemars(extend("format" = null))]
    pub generation: i64,
}

texts! {
    /// How far an InstallPlan is.
    InstallPlanPhase {
        /// Just made.
        None = "",
        /// Steps are being collected.
        Planning = "Planning",
        /// Waits for approval.
        RequiresApproval = "RequiresApproval",
        /// Steps are being carried out.
        Installing = "Installing",
        /// All steps are done.
        Complete = "Complete",
        /// Given up.
        Failed = "Failed",
    }
}

/// The steps of an InstallPlan, and how far they are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogSources", "phase"]))]
pub struct InstallPlanStatus {
    /// How far it is.
    pub phase: InstallPlanPhase,
    /// Conditions.
    pub conditions: Vec<InstallPlanCondition>,
    /// Names of the CatalogSources that were used.
    pub catalog_sources: Vec<String>,
    /// The objects to make, in order.
    pub plan: Vec<Step>,
    /// Bundles that are still being unpacked.
    pub bundle_lookups: Vec<BundleLookup>,
    /// The ServiceAccount with whose rights steps are carried out.
    pub attenuated_service_account_ref: Option<ObjectReference>,
    /// When carrying out began.
    pub start_time: Time,
    /// What goes wrong, for people.
    pub message: String,
}

/// A condition of an InstallPlan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct InstallPlanCondition {
    /// What is asked.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// When it was last written.
    pub last_update_time: Time,
    /// When the status last changed.
    pub last_transition_time: Time,
    /// Why, one word.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

texts! {
    /// What became of a step.
    StepStatus {
        /// Not looked at yet.
        Unknown = "Unknown",
        /// The object is not there.
        NotPresent = "NotPresent",
        /// The object was there already.
        Present = "Present",
        /// The object was made.
        Created = "Created",
        /// Not made, and not needed.
        NotCreated = "NotCreated",
        /// The API server does not know the kind yet.
        WaitingForApi = "WaitingForApi",
        /// Not possible: the API server does not know the kind.
        UnsupportedResource = "UnsupportedResource",
    }
}

/// An object to make.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["resolving", "resource", "status"]))]
pub struct Step {
    /// The ClusterServiceVersion it belongs to.
    pub resolving: String,
    /// The object.
    pub resource: StepResource,
    /// May it be left out when its kind is not served?
    pub optional: bool,
    /// What became of it.
    pub status: StepStatus,
}

/// The object of a step.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["group", "kind", "name", "sourceName", "sourceNamespace", "version"]))]
pub struct StepResource {
    /// Name of the CatalogSource it comes from.
    pub source_name: String,
    /// Namespace of the CatalogSource it comes from.
    pub source_namespace: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind; BundleSecret for a Secret of a bundle.
    pub kind: String,
    /// Name.
    pub name: String,
    /// The object as JSON, or a reference to the ConfigMap that holds it.
    pub manifest: String,
}

/// A bundle that is being unpacked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogSourceRef", "identifier", "path", "replaces"]))]
pub struct BundleLookup {
    /// The bundle's image.
    pub path: String,
    /// The bundle's ClusterServiceVersion.
    pub identifier: String,
    /// The ClusterServiceVersion it replaces.
    pub replaces: String,
    /// The catalog it comes from.
    pub catalog_source_ref: Option<ObjectReference>,
    /// Conditions.
    pub conditions: Vec<BundleLookupCondition>,
    /// The bundle's properties as JSON.
    pub properties: String,
}

/// A condition of the unpacking of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["status", "type"]))]
pub struct BundleLookupCondition {
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
