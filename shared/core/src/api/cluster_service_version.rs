//! ClusterServiceVersion: one version of an operator: what it provides, needs, and how it is run.

use serde_json::Value;

use super::labels;
use super::object::{self, Gvk};
use super::words::words;

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
        /// Set when the installation, or later the operator, fails; the reason says how.
        Failed = "Failed",
        /// Never set.
        Unknown = "Unknown",
        /// Set when another ClusterServiceVersion that replaces this one exists.
        Replacing = "Replacing",
        /// Set when the replacement has succeeded; the ClusterServiceVersion is deleted next.
        Deleting = "Deleting",
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
        /// : it gives way to another OperatorGroup.
        CONFLICT = "InterOperatorGroupOwnerConflict";
        /// : of a copy.
        COPIED = "Copied";
        /// : of the phase `Pending` when rights were changed. It has no Event (olm-behaviour/processes.md#rights-changed).
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
        /// : of the phase `Failed` when a Deployment may not be written: nothing is tried again before rights change (olm-behaviour/csv.md#strategy-errors).
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

/// A ClusterServiceVersion, read where it lies in its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Csv<'a> {
    /// The whole.
    pub json: &'a Value,
}

/// A CustomResourceDefinition that a ClusterServiceVersion owns or requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrdDescription<'a> {
    /// Its name, `PLURAL.GROUP`.
    pub name: &'a str,
    /// The version that is owned or required.
    pub version: &'a str,
    /// Is it owned?
    pub owned: bool,
}

/// Is it a copy of a ClusterServiceVersion of another namespace, as [`Csv::is_copy`] says?
pub fn is_copy(csv: &Value) -> bool {
    Csv::of(csv).is_copy()
}

impl<'a> Csv<'a> {
    /// Reads it where it lies.
    pub const fn of(json: &'a Value) -> Self {
        Self { json }
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        object::name(self.json)
    }

    /// Its namespace.
    pub fn namespace(self) -> &'a str {
        object::namespace(self.json)
    }

    /// Its uid.
    pub fn uid(self) -> &'a str {
        object::uid(self.json)
    }

    /// `status.phase`
    pub fn phase(self) -> Phase {
        Phase::from(self.phase_text())
    }

    /// The same as it stands.
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

    /// The one that it replaces: `spec.replaces`.
    pub fn replaces(self) -> &'a str {
        object::text(self.json, &["spec", "replaces"])
    }

    /// `spec.install.strategy`
    pub fn strategy(self) -> &'a str {
        object::text(self.json, &["spec", "install", "strategy"])
    }

    /// The entries of the install strategy: `{name, label, spec}`.
    pub fn deployments(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "deployments"])
    }

    /// Permissions in the operator's namespace: `{serviceAccountName, rules}`.
    pub fn permissions(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "permissions"])
    }

    /// Permissions in the whole cluster.
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

    /// Owned and required CustomResourceDefinitions by name; one that is both counts as owned.
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

    /// When the phase last changed.
    pub fn last_transition(self) -> Option<jiff::Timestamp> {
        object::parse_time(object::text(self.json, &["status", "lastTransitionTime"]))
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

    /// The images that it names as what it may run: `{name, image}`.
    pub fn related_images(self) -> &'a [Value] {
        object::list(self.json, &["spec", "relatedImages"])
    }

    /// The namespace that it is a copy from, as its label says. The World and the watches tell copies from others by the label alone: what
    /// decides asks [`Csv::is_copy`].
    pub fn copied_from(self) -> Option<&'a str> {
        object::label(self.json, labels::COPIED_FROM)
    }

    /// Is it a copy of a ClusterServiceVersion of another namespace? The label says so, or, when somebody took that away, the status. The
    /// rights that go with copies have the label, too.
    ///
    /// For OLM one whose annotation `olm.operatorNamespace` names another namespace is a copy as well, and it deletes that for want of an
    /// original. Every copy has the label: what has the annotation alone was edited by hand, and gets its own namespace's name again.
    pub fn is_copy(self) -> bool {
        self.copied_from().is_some() || self.reason() == reason::COPIED
    }
}

/// What people need to know who are about to run this command; nothing when it deletes no ClusterServiceVersion. Only controllers take
/// [`FINALIZER`] away.
pub fn deletion_note(command: &str) -> Option<&'static str> {
    let deletes = command.contains("kubectl delete ") && command.contains("clusterserviceversion");
    deletes.then_some(
        "a ClusterServiceVersion is gone when controllers have cleaned up after it; where none run, kubectl olm run --release-finalizers does that",
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
        // Somebody named another namespace: the next plan names its own again.
        let annotated =
            json!({ "metadata": { "namespace": "field", "annotations": { "olm.operatorNamespace": "garden" } } });
        assert!(!is_copy(&annotated));
    }
}
