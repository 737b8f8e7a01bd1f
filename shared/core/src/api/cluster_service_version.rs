//! ClusterServiceVersion: one version of an operator, with its APIs, requirements and installation.

use serde_json::Value;

use super::labels;
use super::object::{self, Gvk};
use super::view::{object_view, view};
use super::words::words;

/// The fields that a webhook of a configuration has in common with its description in a ClusterServiceVersion.
pub(crate) const WEBHOOK_FIELDS: [&str; 8] = [
    "rules",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
];
/// The group priority of every APIService of OLM: the groups of Kubernetes have precedence.
pub(crate) const GROUP_PRIORITY: i64 = 2000;
/// The priority of its version (olm-behaviour/csv.md#apiservices).
pub(crate) const VERSION_PRIORITY: i64 = 15;
/// Where OLM mounts the certificate of a Deployment that serves an APIService.
pub(crate) const API_SERVICE_CERTIFICATE: &str = "/apiserver.local.config/certificates";
/// Where OLM mounts the certificate of a Deployment that serves webhooks.
pub(crate) const WEBHOOK_CERTIFICATE: &str = "/tmp/k8s-webhook-server/serving-certs";

/// Returns what OLM rejects in a rule of a webhook's description, in its words (olm-behaviour/csv.md#webhooks).
pub(crate) fn invalid_webhook_rule(rule: &Value) -> Option<&'static str> {
    const CONFIGURATIONS: [&str; 3] = ["*", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let has = |field: &str, value: &str| object::list(rule, &[field]).iter().any(|v| v == value);
    if has("apiGroups", "*") {
        Some("webhook rules cannot include all groups")
    } else if has("apiGroups", "operators.coreos.com") {
        Some("webhook rules cannot include the OLM group")
    } else if has("apiGroups", "admissionregistration.k8s.io") && CONFIGURATIONS.iter().any(|c| has("resources", c)) {
        Some("webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources")
    } else {
        None
    }
}

words! {
    /// The phase of the installation of an operator.
    Phase {
        /// Not set yet: the ClusterServiceVersion is new.
        None = "",
        /// Set when requirements are checked, and while some are not met.
        Pending = "Pending",
        /// Set when all requirements are met, and when a Deployment must be updated.
        InstallReady = "InstallReady",
        /// Set when Deployments are written, until they are available.
        Installing = "Installing",
        /// Set when everything is available.
        Succeeded = "Succeeded",
        /// Set when the installation, or later the operator, fails; the reason states the cause.
        Failed = "Failed",
        /// Never set.
        Unknown = "Unknown",
        /// Set when another ClusterServiceVersion that replaces this one exists.
        Replacing = "Replacing",
        /// Set when the replacement has succeeded; the ClusterServiceVersion is deleted next.
        Deleting = "Deleting",
    }
}

words! {
    /// The state of a requirement in the status, or of a dependent of one (olm-behaviour/csv.md#requirements).
    RequirementStatus {
        /// The required object does not exist.
        NotPresent = "NotPresent",
        /// The required object exists.
        Present = "Present",
        /// The required object exists, but not in the required version or state, or it lacks permissions.
        PresentNotSatisfied = "PresentNotSatisfied",
        /// The required CustomResourceDefinition exists and is not established.
        PresentNotAvailable = "PresentNotAvailable",
        /// The permission of a dependent is granted.
        Satisfied = "Satisfied",
        /// The permission of a dependent is not granted.
        NotSatisfied = "NotSatisfied",
    }
}

impl Phase {
    /// Returns whether the installation has succeeded. A ClusterServiceVersion that is being replaced has succeeded before.
    pub fn has_succeeded(self) -> bool {
        matches!(self, Self::Succeeded | Self::Replacing | Self::Deleting)
    }
}

/// An install mode: the namespaces that an operator can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstallMode {
    /// The operator's own namespace.
    OwnNamespace,
    /// One other namespace.
    SingleNamespace,
    /// Several namespaces.
    MultiNamespace,
    /// All namespaces.
    AllNamespaces,
}

impl InstallMode {
    /// All install modes.
    pub const ALL: [Self; 4] = [Self::OwnNamespace, Self::SingleNamespace, Self::MultiNamespace, Self::AllNamespaces];

    /// Returns the mode as ClusterServiceVersions spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
            Self::MultiNamespace => "MultiNamespace",
            Self::AllNamespaces => "AllNamespaces",
        }
    }
}

impl std::fmt::Display for InstallMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for InstallMode {
    type Err = String;

    /// Parses a mode, case-insensitively.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| "expected OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces".to_owned())
    }
}

/// The finalizer on every ClusterServiceVersion that is not a copy (olm-behaviour/csv.md#deletion).
pub const FINALIZER: &str = "operators.coreos.com/csv-cleanup";

/// The reasons in the status (olm-behaviour/csv.md#transitions).
pub mod reason {
    macro_rules! reasons {
        ($($(#[$doc:meta])* $name:ident = $reason:literal;)*) => {
            $(#[doc = concat!("`", $reason, "`")] $(#[$doc])* pub const $name: &str = $reason;)*
        };
    }

    reasons! {
        ALL_REQUIREMENTS_MET = "AllRequirementsMet";
        API_SERVICE_RESOURCES_NEED_REINSTALL = "APIServiceResourcesNeedReinstall";
        API_SERVICE_RESOURCE_ISSUE = "APIServiceResourceIssue";
        BEING_REPLACED = "BeingReplaced";
        COMPONENT_UNHEALTHY = "ComponentUnhealthy";
        /// : another OperatorGroup provides the same APIs.
        CONFLICT = "InterOperatorGroupOwnerConflict";
        /// : the ClusterServiceVersion is a copy.
        COPIED = "Copied";
        /// : in the phase `Pending`, when permissions have changed. It has no Event (olm-behaviour/processes.md#permissions-changed).
        DETECTED_CHANGE = "DetectedClusterChange";
        INSTALL_CHECK_FAILED = "InstallCheckFailed";
        INSTALL_COMPONENT_FAILED = "InstallComponentFailed";
        INSTALL_SUCCEEDED = "InstallSucceeded";
        INSTALL_WAITING = "InstallWaiting";
        INVALID_INSTALL_STRATEGY = "InvalidInstallStrategy";
        INVALID_WEBHOOK_DESCRIPTION = "InvalidWebhookDescription";
        NEEDS_CERT_ROTATION = "NeedsCertRotation";
        NEEDS_REINSTALL = "NeedsReinstall";
        NO_OPERATOR_GROUP = "NoOperatorGroup";
        /// : in the phase `Failed`, when a Deployment may not be written. There is no retry until permissions change
        /// (olm-behaviour/csv.md#strategy-errors).
        NO_RETRY = "InstallComponentFailedNoRetry";
        NO_TARGET_NAMESPACES = "NoTargetNamespaces";
        OPERATOR_CONDITION_NOT_UPGRADEABLE = "OperatorConditionNotUpgradeable";
        OWNER_CONFLICT = "OwnerConflict";
        REPLACED = "Replaced";
        REQUIREMENTS_NOT_MET = "RequirementsNotMet";
        REQUIREMENTS_UNKNOWN = "RequirementsUnknown";
        STATIC_PROVIDED_APIS = "CannotModifyStaticOperatorGroupProvidedAPIs";
        TOO_MANY_OPERATOR_GROUPS = "TooManyOperatorGroups";
        UNSUPPORTED_OPERATOR_GROUP = "UnsupportedOperatorGroup";
    }
}

object_view! {
    /// A view of a ClusterServiceVersion.
    Csv
}

view! {
    /// A view of an entry of `status.requirementStatus`, or of one of its dependents.
    Requirement
}

impl<'a> Requirement<'a> {
    /// `kind`
    pub fn kind(self) -> &'a str {
        object::kind(self.json)
    }

    /// `name`
    pub fn name(self) -> &'a str {
        object::text(self.json, &["name"])
    }

    /// Group, version and kind of the required object.
    pub fn gvk(self) -> Gvk {
        Gvk::new(object::text(self.json, &["group"]), object::text(self.json, &["version"]), self.kind())
    }

    /// `status`
    pub fn status(self) -> RequirementStatus {
        RequirementStatus::from(object::text(self.json, &["status"]))
    }

    /// `message`
    pub fn message(self) -> &'a str {
        object::text(self.json, &["message"])
    }

    /// Returns whether it is met.
    pub fn is_met(self) -> bool {
        matches!(self.status(), RequirementStatus::Present | RequirementStatus::Satisfied)
    }

    /// `dependents`: the permissions that a required ServiceAccount must have.
    pub fn dependents(self) -> impl Iterator<Item = Self> {
        object::list(self.json, &["dependents"]).iter().map(Self::new)
    }
}

/// A CustomResourceDefinition that a ClusterServiceVersion owns or requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrdDescription<'a> {
    /// Its name, `PLURAL.GROUP`.
    pub name: &'a str,
    /// The version that is owned or required.
    pub version: &'a str,
    /// Whether it is owned.
    pub owned: bool,
}

/// Returns whether it is a copy of a ClusterServiceVersion of another namespace; see [`Csv::is_copy`].
pub fn is_copy(csv: &Value) -> bool {
    Csv::new(csv).is_copy()
}

impl<'a> Csv<'a> {
    /// `status.phase`
    pub fn phase(self) -> Phase {
        Phase::from(self.phase_text())
    }

    /// `status.phase` as text.
    pub fn phase_text(self) -> &'a str {
        object::text(self.json, &["status", "phase"])
    }

    /// `status.reason`
    pub fn reason(self) -> &'a str {
        object::text(self.json, &["status", "reason"])
    }

    /// `status.message`
    pub fn message(self) -> &'a str {
        object::text(self.json, &["status", "message"])
    }

    /// `spec.replaces`: the ClusterServiceVersion that it replaces.
    pub fn replaces(self) -> &'a str {
        object::text(self.json, &["spec", "replaces"])
    }

    /// `spec.install.strategy`
    pub fn strategy(self) -> &'a str {
        object::text(self.json, &["spec", "install", "strategy"])
    }

    /// The Deployments of the install strategy: `{name, label, spec}`.
    pub fn deployments(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "deployments"])
    }

    /// Permissions in the operator's namespace: `{serviceAccountName, rules}`.
    pub fn permissions(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "permissions"])
    }

    /// Cluster-wide permissions.
    pub fn cluster_permissions(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "clusterPermissions"])
    }

    /// `spec.webhookdefinitions`
    pub fn webhooks(self) -> &'a [Value] {
        object::list(self.json, &["spec", "webhookdefinitions"])
    }

    /// `spec.apiservicedefinitions.owned`
    pub fn owned_api_services(self) -> &'a [Value] {
        object::list(self.json, &["spec", "apiservicedefinitions", "owned"])
    }

    /// `spec.apiservicedefinitions.required`
    pub fn required_api_services(self) -> &'a [Value] {
        object::list(self.json, &["spec", "apiservicedefinitions", "required"])
    }

    /// Returns owned and required CustomResourceDefinitions by name; one that is both is returned as owned.
    pub fn crds(self) -> Vec<CrdDescription<'a>> {
        let read =
            |part: &str, owned| {
                object::list(self.json, &["spec", "customresourcedefinitions", part]).iter().map(move |d| {
                    CrdDescription { name: object::text(d, &["name"]), version: object::text(d, &["version"]), owned }
                })
            };
        let mut crds: Vec<CrdDescription<'_>> = read("owned", true).chain(read("required", false)).collect();
        crds.sort_by_key(|d| (d.name, !d.owned));
        crds.dedup_by_key(|d| d.name);
        crds
    }

    /// The names of the CustomResourceDefinitions that it owns.
    pub fn owned_crd_names(self) -> impl Iterator<Item = &'a str> {
        self.owned_crds().iter().map(|d| object::text(d, &["name"]))
    }

    /// `spec.nativeAPIs`
    pub fn native_apis(self) -> impl Iterator<Item = Gvk> + use<'a> {
        object::list(self.json, &["spec", "nativeAPIs"])
            .iter()
            .map(|a| Gvk::new(object::text(a, &["group"]), object::text(a, &["version"]), object::text(a, &["kind"])))
    }

    /// The time of the last phase change.
    pub fn last_transition(self) -> Option<jiff::Timestamp> {
        object::parse_time(object::text(self.json, &["status", "lastTransitionTime"]))
    }

    /// `status.requirementStatus`: the requirements that were checked last.
    pub fn requirements(self) -> impl Iterator<Item = Requirement<'a>> {
        object::list(self.json, &["status", "requirementStatus"]).iter().map(Requirement::new)
    }

    /// `spec.version`
    pub fn version(self) -> &'a str {
        object::text(self.json, &["spec", "version"])
    }

    /// `spec.displayName`
    pub fn display_name(self) -> &'a str {
        object::text(self.json, &["spec", "displayName"])
    }

    /// The CustomResourceDefinitions that it owns: `{name, version, kind}`.
    pub fn owned_crds(self) -> &'a [Value] {
        object::list(self.json, &["spec", "customresourcedefinitions", "owned"])
    }

    /// The CustomResourceDefinitions that it requires.
    pub fn required_crds(self) -> &'a [Value] {
        object::list(self.json, &["spec", "customresourcedefinitions", "required"])
    }

    /// The sets of namespaces that it can watch: `{type, supported}`.
    pub fn install_modes(self) -> &'a [Value] {
        object::list(self.json, &["spec", "installModes"])
    }

    /// The images that it declares to use: `{name, image}`.
    pub fn related_images(self) -> &'a [Value] {
        object::list(self.json, &["spec", "relatedImages"])
    }

    /// The namespace of the original, according to the label of copies. The World and the watches only check the label;
    /// decisions use [`Csv::is_copy`].
    pub fn copied_from(self) -> Option<&'a str> {
        object::label(self.json, labels::COPIED_FROM)
    }

    /// Returns whether it is a copy of a ClusterServiceVersion of another namespace, according to the label, or, if that
    /// was removed, to the status. The RBAC objects of copies have the label, too.
    ///
    /// OLM also treats a CSV whose annotation `olm.operatorNamespace` names another namespace as a copy, and deletes it
    /// because there is no original. Every copy has the label: a CSV with the annotation alone was edited by hand, and its
    /// annotation is restored.
    pub fn is_copy(self) -> bool {
        self.copied_from().is_some() || self.reason() == reason::COPIED
    }
}

/// Returns a note for users who are about to run this command; `None` when it deletes no ClusterServiceVersion. Only
/// controllers remove [`FINALIZER`].
pub fn deletion_note(command: &str) -> Option<&'static str> {
    let deletes = command.contains("kubectl delete ") && command.contains("clusterserviceversion");
    deletes.then_some(
        "a deleted ClusterServiceVersion is removed once the controllers have cleaned up; if none are running, use kubectl olm run --release-finalizers",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_have_the_label_or_else_the_reason() {
        let csv =
            |labels: Value, reason: &str| json!({ "metadata": { "labels": labels }, "status": { "reason": reason } });
        let label = json!({ "olm.copiedFrom": "garden" });
        for (labels, reason, expected) in [
            (label.clone(), reason::COPIED, true),
            (label, "", true),
            (json!({ "olm.managed": "true" }), reason::COPIED, true),
            (json!(null), "InstallSucceeded", false),
        ] {
            let csv = csv(labels, reason);
            assert_eq!(is_copy(&csv), expected, "{csv}");
        }
        // A client set another namespace: the next plan restores its own.
        let annotated =
            json!({ "metadata": { "namespace": "field", "annotations": { "olm.operatorNamespace": "garden" } } });
        assert!(!is_copy(&annotated));
    }
}
