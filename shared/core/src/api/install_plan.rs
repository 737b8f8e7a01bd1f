//! InstallPlan: the objects that a resolution requires, and the state of their creation.

use jiff::Timestamp;
use serde_json::Value;

use super::metadata::Metadata;
use super::subscription::Approval;
use super::view::{object_view, view};
use super::words::words;
use super::{kinds, object};

words! {
    /// The phase of an InstallPlan.
    Phase {
        /// Not set yet: the InstallPlan is new and has no steps.
        None = "",
        /// Set while an InstallPlan that a user created cannot be resolved.
        Planning = "Planning",
        /// Set when the steps are known and spec.approved is false.
        RequiresApproval = "RequiresApproval",
        /// Set when the steps are approved, until all are done.
        Installing = "Installing",
        /// Set when all steps are done.
        Complete = "Complete",
        /// Set when a step still fails after the retry timeout.
        Failed = "Failed",
    }
}

impl Phase {
    /// Returns whether the phase is final, so that no controller acts on the InstallPlan.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }

    /// Returns whether execution of the InstallPlan has begun.
    pub fn is_started(self) -> bool {
        self == Self::Installing || self.is_final()
    }
}

words! {
    /// The state of a step.
    StepStatus {
        /// Set when the step is created; it was not executed yet.
        Unknown = "Unknown",
        /// Never set; it is treated like Unknown.
        NotPresent = "NotPresent",
        /// Set when the object existed and was updated where necessary.
        Present = "Present",
        /// Set when the step created the object.
        Created = "Created",
        /// Set when the object is optional and the cluster refused it.
        NotCreated = "NotCreated",
        /// Set when a CustomResourceDefinition was created and is not established yet.
        WaitingForApi = "WaitingForApi",
        /// Set when InstallPlans cannot create objects of the kind; the InstallPlan fails.
        UnsupportedResource = "UnsupportedResource",
    }
}

/// The types of conditions.
pub mod condition {
    /// Whether all steps are done. False with the cause of a failure.
    pub const INSTALLED: &str = "Installed";
    /// False for an InstallPlan that cannot be resolved.
    pub const RESOLVED: &str = "Resolved";
}

/// The reasons of the condition [`condition::INSTALLED`].
pub mod reason {
    /// A precondition of the namespace for executing plans does not hold.
    pub const CHECK_FAILED: &str = "InstallCheckFailed";
    /// A step failed.
    pub const COMPONENT_FAILED: &str = "InstallComponentFailed";
}

object_view! {
    /// A view of an InstallPlan; of null when there is none.
    InstallPlan, conditions
}

impl<'a> InstallPlan<'a> {
    /// `status.phase`
    pub fn phase(self) -> Phase {
        Phase::from(self.phase_text())
    }

    /// `status.phase` as text.
    pub fn phase_text(self) -> &'a str {
        object::text(self.json, &["status", "phase"])
    }

    /// `status.message`
    pub fn message(self) -> &'a str {
        object::text(self.json, &["status", "message"])
    }

    /// `status.startTime`: the time at which execution first failed, or was complete.
    pub fn started(self) -> Option<Timestamp> {
        object::parse_time(object::text(self.json, &["status", "startTime"]))
    }

    /// `spec.approval`
    pub fn approval(self) -> Approval {
        Approval::from(self.approval_text())
    }

    /// `spec.approval` as text.
    pub fn approval_text(self) -> &'a str {
        object::text(self.json, &["spec", "approval"])
    }

    /// `spec.approved`. [`is_approved`] determines whether it may be executed.
    pub fn spec_approved(self) -> bool {
        object::at(self.json, &["spec", "approved"]) == &Value::Bool(true)
    }

    /// `spec.generation`: its sequence number in its namespace.
    pub fn generation(self) -> i64 {
        object::at(self.json, &["spec", "generation"]).as_i64().unwrap_or_default()
    }

    /// `spec.clusterServiceVersionNames`
    pub fn csv_names(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["spec", "clusterServiceVersionNames"]).iter().filter_map(Value::as_str)
    }

    /// The steps as JSON.
    pub fn steps_json(self) -> &'a [Value] {
        object::list(self.json, &["status", "plan"])
    }

    /// The steps.
    pub fn steps(self) -> impl DoubleEndedIterator<Item = Step<'a>> + ExactSizeIterator {
        self.steps_json().iter().map(Step::new)
    }

    /// The bundle images that steps were read from: `{path, identifier, …}`.
    pub fn bundle_lookups(self) -> &'a [Value] {
        object::list(self.json, &["status", "bundleLookups"])
    }

    /// `status.attenuatedServiceAccountRef`: the ServiceAccount with whose permissions steps are executed, or null.
    pub fn service_account(self) -> &'a Value {
        object::at(self.json, &["status", "attenuatedServiceAccountRef"])
    }
}

view! {
    /// A view of a step of an InstallPlan.
    Step
}

impl<'a> Step<'a> {
    /// `resource.kind`, which may differ from the kind of the created object: `BundleSecret` is a Secret.
    pub fn kind(self) -> &'a str {
        self.resource("kind")
    }

    /// `resource.group`
    pub fn group(self) -> &'a str {
        self.resource("group")
    }

    /// `resource.version`
    pub fn version(self) -> &'a str {
        self.resource("version")
    }

    /// `resource.name`
    pub fn name(self) -> &'a str {
        self.resource("name")
    }

    /// `resource.manifest`: the object as JSON, or a reference to its location.
    pub fn manifest(self) -> &'a str {
        self.resource("manifest")
    }

    /// `resource.sourceName`: the CatalogSource of the object.
    pub fn source(self) -> &'a str {
        self.resource("sourceName")
    }

    /// `resource.sourceNamespace`
    pub fn source_namespace(self) -> &'a str {
        self.resource("sourceNamespace")
    }

    fn resource(self, field: &str) -> &'a str {
        object::text(self.json, &["resource", field])
    }

    /// The ClusterServiceVersion that it belongs to.
    pub fn resolving(self) -> &'a str {
        object::text(self.json, &["resolving"])
    }

    /// `status`
    pub fn status(self) -> StepStatus {
        StepStatus::from(self.status_text())
    }

    /// `status` as text.
    pub fn status_text(self) -> &'a str {
        object::text(self.json, &["status"])
    }

    /// Returns whether the object was created or is present.
    pub fn is_done(self) -> bool {
        matches!(self.status(), StepStatus::Created | StepStatus::Present)
    }

    /// Returns whether the plan can continue without the object.
    pub fn is_optional(self) -> bool {
        object::at(self.json, &["optional"]) == &Value::Bool(true)
    }

    /// Returns whether it creates a ClusterServiceVersion.
    pub fn is_csv(self) -> bool {
        self.kind() == kinds::CLUSTER_SERVICE_VERSION.kind
    }

    /// Returns whether it creates a CustomResourceDefinition.
    pub fn is_crd(self) -> bool {
        self.kind() == kinds::CUSTOM_RESOURCE_DEFINITION.kind
    }
}

/// Annotation of an approved plan: the digests of the explained content of its bundles, by ClusterServiceVersion, as JSON.
/// The content of an image's tag may change before the plan is executed.
pub const APPROVED_CONTENT: &str = "kubectl-olm/approved-content";

/// Checks that the content of a bundle was approved, according to the plan.
///
/// # Errors
/// The approved content is another one: the error is its digest, which is empty if the annotation cannot be read.
pub fn is_approved_content(plan: &Value, csv: &str, digest: &str) -> Result<(), String> {
    let Some(text) = object::annotation(plan, APPROVED_CONTENT) else { return Ok(()) };
    let approved: Value = serde_json::from_str(text).map_err(|_| String::new())?;
    match approved.as_object().map(|approved| approved.get(csv)) {
        Some(Some(Value::String(known))) if known == digest => Ok(()),
        // A bundle whose manifests are in the plan is approved with the plan.
        Some(None) => Ok(()),
        Some(Some(Value::String(other))) => Err(other.clone()),
        _ => Err(String::new()),
    }
}

/// Returns whether it was created for a Subscription. Others are created by users, or by other programs.
pub fn is_generated(plan: &Value) -> bool {
    Metadata::new(plan).owners().any(|owner| owner.kind() == kinds::SUBSCRIPTION.kind)
}

/// Returns whether it may be executed. For a plan that was created for a Subscription only `spec.approved` decides, as in
/// OLM. A plan that a user or another program created may also request automatic approval.
pub fn is_approved(plan: &Value) -> bool {
    let view = InstallPlan::new(plan);
    view.spec_approved() || view.approval() == Approval::Automatic && !is_generated(plan)
}
