//! ClusterServiceVersion: one version of an operator: what it provides, needs, and how it is run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::catalog_source::Icon;
use super::crd::kubernetes::{DeploymentSpec, IntOrString, RuleWithOperations};
use super::labels;
use super::object::{self, Gvk};
use super::parts::{LabelSelector, PolicyRule, Time, texts};
use super::raw::{Carried, Raw};
use super::resource::View;

/// Reason of the phase `Failed` when a Deployment may not be written: nothing is tried again before rights change
/// (reference/olm-operator.md §1.7).
pub const NO_RETRY: &str = "InstallComponentFailedNoRetry";

/// The finalizer on every ClusterServiceVersion that is not a copy (reference/olm-operator.md §7.3).
pub const FINALIZER: &str = "operators.coreos.com/csv-cleanup";

/// Is it a copy of a ClusterServiceVersion of another namespace? The label says so, or, when somebody took that away, the status. The
/// rights that go with copies have the label, too.
///
/// For OLM one whose annotation `olm.operatorNamespace` names another namespace is a copy as well, and it deletes that for want of an
/// original. Every copy has the label: what has the annotation alone was edited by hand, and gets its own namespace's name again.
pub fn is_copy(csv: &Value) -> bool {
    object::label(csv, labels::COPIED_FROM).is_some() || object::text(csv, &["status", "reason"]) == COPIED
}

/// The reason in the status of a copy.
pub const COPIED: &str = "Copied";

/// What people need to know who are about to run this command; nothing when it deletes no ClusterServiceVersion. Only controllers take
/// [`FINALIZER`] away.
pub fn deletion_note(command: &str) -> Option<&'static str> {
    let deletes = command.contains("kubectl delete ") && command.contains("clusterserviceversion");
    deletes.then_some(
        "a ClusterServiceVersion is gone when controllers have cleaned up after it; where none run, kubectl olm run --release-finalizers does that",
    )
}

/// One version of an operator: what it provides, what it needs, and how it is run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct ClusterServiceVersion {
    /// The operator.
    pub spec: ClusterServiceVersionSpec,
    /// How far its installation is.
    pub status: ClusterServiceVersionStatus,
}

impl View for ClusterServiceVersion {
    const KIND: &'static str = "ClusterServiceVersion";
}

/// An operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["displayName", "install"]))]
pub struct ClusterServiceVersionSpec {
    /// How it is run.
    pub install: InstallStrategy,
    /// Its version, as semver.
    pub version: String,
    /// Tells builds of one version apart: identifiers with dots between them.
    #[schemars(extend("maxLength" = 20, "x-kubernetes-validations" = [
        {
            "rule": "self.matches('^[0-9A-Za-z-]+(\\\\.[0-9A-Za-z-]+)*$')",
            "message": "release version must be composed of dot-separated identifiers containing only alphanumerics and hyphens",
        },
        {
            "rule": "!self.split('.').exists(x, x.matches('^0[0-9]+$'))",
            "message": "numeric identifiers in release version must not have leading zeros",
        },
    ]))]
    pub release: String,
    /// How mature it is, in a word.
    pub maturity: Carried<String>,
    /// The CRDs it provides and needs.
    pub customresourcedefinitions: CustomResourceDefinitions,
    /// The API services it provides and needs.
    pub apiservicedefinitions: ApiServiceDefinitions,
    /// Its webhooks.
    pub webhookdefinitions: Vec<WebhookDescription>,
    /// Kinds that the cluster has to serve.
    #[serde(rename = "nativeAPIs")]
    pub native_apis: Vec<NativeApi>,
    /// The oldest Kubernetes it runs on.
    pub min_kube_version: String,
    /// Its name for people.
    pub display_name: String,
    /// What it does, in Markdown.
    pub description: Carried<String>,
    /// Words to find it by.
    pub keywords: Carried<Vec<String>>,
    /// Who maintains it.
    pub maintainers: Carried<Vec<Maintainer>>,
    /// Who provides it.
    pub provider: Carried<AppLink>,
    /// Where to read more.
    pub links: Carried<Vec<AppLink>>,
    /// Pictures.
    pub icon: Carried<Vec<Icon>>,
    /// Which sets of namespaces it can watch.
    pub install_modes: Vec<InstallMode>,
    /// The ClusterServiceVersion that it replaces.
    pub replaces: String,
    /// Labels for people and consoles.
    pub labels: Carried<BTreeMap<String, String>>,
    /// Annotations for people and consoles.
    pub annotations: Carried<BTreeMap<String, String>>,
    /// Selects objects that belong to it.
    pub selector: Carried<LabelSelector>,
    /// Should its custom resources go with it? Has no effect.
    pub cleanup: Carried<Cleanup>,
    /// ClusterServiceVersions that it replaces as well.
    pub skips: Vec<String>,
    /// Images that it uses.
    pub related_images: Carried<Vec<RelatedImage>>,
}

/// How an operator is run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["strategy"]))]
pub struct InstallStrategy {
    /// Always deployment.
    pub strategy: String,
    /// The Deployments, and what they may do.
    pub spec: StrategyDetailsDeployment,
}

/// Deployments and what they may do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["deployments"]))]
pub struct StrategyDetailsDeployment {
    /// The Deployments.
    pub deployments: Vec<StrategyDeployment>,
    /// Permissions in the namespaces it watches.
    pub permissions: Vec<Permission>,
    /// Permissions in the whole cluster.
    pub cluster_permissions: Vec<Permission>,
}

/// A Deployment of an operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "spec"]))]
pub struct StrategyDeployment {
    /// Name.
    pub name: String,
    /// Its spec.
    #[schemars(schema_with = "deployment_spec")]
    pub spec: Raw<DeploymentSpec>,
    /// Its labels.
    pub label: BTreeMap<String, String>,
}

/// As OLM has it: the labels and annotations of a pod template are kept, and a host alias without address is let in.
fn deployment_spec(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = Raw::<DeploymentSpec>::json_schema(generator);
    let template = "/properties/template/properties";
    if let Some(metadata) = schema.pointer_mut(&format!("{template}/metadata")) {
        metadata["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if let Some(ip) = schema.pointer_mut(&format!("{template}/spec/properties/hostAliases/items/properties/ip")) {
        ip["x-default"] = "".into();
    }
    schema
}

/// What a ServiceAccount may do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["rules", "serviceAccountName"]))]
pub struct Permission {
    /// The ServiceAccount.
    pub service_account_name: String,
    /// What it may do.
    pub rules: Vec<PolicyRule>,
}

/// The CRDs that an operator provides and needs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CustomResourceDefinitions {
    /// Provided.
    pub owned: Vec<CrdDescription>,
    /// Needed.
    pub required: Vec<CrdDescription>,
}

/// A version of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["kind", "name", "version"]))]
pub struct CrdDescription {
    /// Name of the CRD, plural.group.
    pub name: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Its name for people.
    pub display_name: String,
    /// What it is for.
    pub description: Carried<String>,
    /// Kinds that it makes.
    pub resources: Carried<Vec<ApiResource>>,
    /// Fields of status, for consoles.
    pub status_descriptors: Carried<Vec<Descriptor>>,
    /// Fields of spec, for consoles.
    pub spec_descriptors: Carried<Vec<Descriptor>>,
    /// Actions, for consoles.
    pub action_descriptors: Carried<Vec<Descriptor>>,
}

impl CrdDescription {
    /// The API that it describes; the group is the part of the CRD's name after the first dot.
    pub fn gvk(&self) -> Gvk {
        let group = self.name.split_once('.').map_or("", |(_, group)| group);
        Gvk::new(group, &self.version, &self.kind)
    }
}

/// The API services that an operator provides and needs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApiServiceDefinitions {
    /// Provided.
    pub owned: Vec<ApiServiceDescription>,
    /// Needed.
    pub required: Vec<ApiServiceDescription>,
}

/// A kind of an API service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["group", "kind", "name", "version"]))]
pub struct ApiServiceDescription {
    /// Plural of the resource.
    pub name: String,
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// The Deployment that serves it.
    pub deployment_name: String,
    /// The port it is served at.
    pub container_port: i32,
    /// Its name for people.
    pub display_name: String,
    /// What it is for.
    pub description: Carried<String>,
    /// Kinds that it makes.
    pub resources: Carried<Vec<ApiResource>>,
    /// Fields of status, for consoles.
    pub status_descriptors: Carried<Vec<Descriptor>>,
    /// Fields of spec, for consoles.
    pub spec_descriptors: Carried<Vec<Descriptor>>,
    /// Actions, for consoles.
    pub action_descriptors: Carried<Vec<Descriptor>>,
}

impl ApiServiceDescription {
    /// The API that it describes.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// A kind that a custom resource makes.
#[derive(JsonSchema)]
pub struct ApiResource {
    /// Name, often empty.
    pub name: String,
    /// Kind.
    pub kind: String,
    /// Version.
    pub version: String,
}

/// A field or an action, for consoles.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct Descriptor {
    /// The field's path.
    pub path: String,
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// How consoles show it.
    #[schemars(rename = "x-descriptors")]
    pub x_descriptors: Option<Vec<String>>,
    /// A value that is always the same.
    #[schemars(extend("format" = "byte"))]
    pub value: Option<String>,
}

texts! {
    /// Which webhook.
    WebhookType {
        /// Not said.
        None = "",
        /// Judges objects.
        Validating = "ValidatingAdmissionWebhook",
        /// Changes objects.
        Mutating = "MutatingAdmissionWebhook",
        /// Converts objects between versions.
        Conversion = "ConversionWebhook",
    }
}

/// A webhook of an operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["admissionReviewVersions", "generateName", "sideEffects", "type"]))]
pub struct WebhookDescription {
    /// Its name, and that of its configuration before a random end.
    pub generate_name: String,
    /// Which webhook.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"]))]
    pub type_: WebhookType,
    /// The Deployment that serves it.
    pub deployment_name: String,
    /// The port of its Service.
    #[schemars(range(min = 1, max = 65535), extend("x-default" = 443))]
    pub container_port: i32,
    /// The port of its pods.
    pub target_port: Option<Raw<IntOrString>>,
    /// Which requests it is asked about.
    pub rules: Vec<Raw<RuleWithOperations>>,
    /// Fail or Ignore.
    pub failure_policy: Option<String>,
    /// Exact or Equivalent.
    pub match_policy: Option<String>,
    /// Which objects it is asked about.
    pub object_selector: Option<Raw<LabelSelector>>,
    /// None or NoneOnDryRun.
    pub side_effects: Option<String>,
    /// How long it may take.
    pub timeout_seconds: Option<i32>,
    /// Versions of AdmissionReview or ConversionReview that it understands.
    pub admission_review_versions: Vec<String>,
    /// Never or IfNeeded.
    pub reinvocation_policy: Option<String>,
    /// The path of its URL.
    pub webhook_path: Option<String>,
    /// For conversion: the CRDs.
    #[serde(rename = "conversionCRDs")]
    pub conversion_crds: Vec<String>,
}

/// A kind that the cluster has to serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["group", "kind", "version"]))]
pub struct NativeApi {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// A person.
#[derive(JsonSchema)]
pub struct Maintainer {
    /// Name.
    pub name: Option<String>,
    /// Address.
    pub email: Option<String>,
}

/// A page.
#[derive(JsonSchema)]
pub struct AppLink {
    /// Name.
    pub name: Option<String>,
    /// Address.
    pub url: Option<String>,
}

texts! {
    /// A set of namespaces that an operator can watch.
    InstallModeType {
        /// Not said.
        None = "",
        /// Its own namespace.
        OwnNamespace = "OwnNamespace",
        /// One other namespace.
        SingleNamespace = "SingleNamespace",
        /// Several namespaces.
        MultiNamespace = "MultiNamespace",
        /// All namespaces.
        AllNamespaces = "AllNamespaces",
    }
}

/// Can an operator watch this set of namespaces?
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["supported", "type"]))]
pub struct InstallMode {
    /// The set.
    #[serde(rename = "type")]
    pub type_: InstallModeType,
    /// Can it?
    pub supported: bool,
}

/// Should custom resources go with the operator?
#[derive(JsonSchema)]
pub struct Cleanup {
    /// Should they?
    pub enabled: bool,
}

/// An image that an operator uses.
#[derive(JsonSchema)]
pub struct RelatedImage {
    /// Name.
    pub name: String,
    /// Reference.
    pub image: String,
}

texts! {
    /// How far the installation of an operator is.
    Phase {
        /// Not looked at yet.
        None = "",
        /// Requirements are checked.
        Pending = "Pending",
        /// Requirements are met.
        InstallReady = "InstallReady",
        /// Deployments are there and become available.
        Installing = "Installing",
        /// It runs.
        Succeeded = "Succeeded",
        /// It does not.
        Failed = "Failed",
        /// Cannot be said.
        Unknown = "Unknown",
        /// Another ClusterServiceVersion replaces it.
        Replacing = "Replacing",
        /// It was replaced and goes.
        Deleting = "Deleting",
    }
}

/// How far the installation of an operator is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterServiceVersionStatus {
    /// How far.
    pub phase: Phase,
    /// Why, for people.
    pub message: String,
    /// Why, one word.
    pub reason: String,
    /// When this was written.
    pub last_update_time: Time,
    /// When the phase last changed.
    pub last_transition_time: Time,
    /// The phases so far, newest last.
    pub conditions: Vec<PhaseCondition>,
    /// What it needs, and whether that is there.
    pub requirement_status: Vec<RequirementStatus>,
    /// When its certificates were made.
    pub certs_last_updated: Time,
    /// When its certificates should be made anew.
    pub certs_rotate_at: Time,
    /// What is left to clean up. Never set.
    pub cleanup: Carried<CleanupStatus>,
}

/// A phase that a ClusterServiceVersion was in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PhaseCondition {
    /// The phase.
    pub phase: Phase,
    /// Why, for people.
    pub message: String,
    /// Why, one word.
    pub reason: String,
    /// When it was written.
    pub last_update_time: Time,
    /// When the phase began.
    pub last_transition_time: Time,
}

/// Something that an operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["group", "kind", "message", "name", "status", "version"]))]
pub struct RequirementStatus {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Is it there?
    pub status: String,
    /// Why, for people.
    pub message: String,
    /// Its uid.
    pub uuid: String,
    /// What it needs in turn: the rules of a ServiceAccount.
    pub dependents: Vec<DependentStatus>,
}

/// Something that a requirement needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["group", "kind", "status", "version"]))]
pub struct DependentStatus {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Is it satisfied?
    pub status: String,
    /// Its uid.
    pub uuid: String,
    /// The rule.
    pub message: String,
}

/// What is left to clean up.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct CleanupStatus {
    /// Objects that are being deleted.
    pub pending_deletion: Option<Vec<PendingDeletion>>,
}

/// Objects of a kind that are being deleted.
#[derive(JsonSchema)]
pub struct PendingDeletion {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The objects.
    pub instances: Vec<PendingInstance>,
}

/// An object that is being deleted.
#[derive(JsonSchema)]
pub struct PendingInstance {
    /// Name.
    pub name: String,
    /// Namespace, none when cluster-scoped.
    pub namespace: Option<String>,
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
            (label.clone(), COPIED, true),
            (label, "", true),
            (json!({ "olm.managed": "true" }), COPIED, true),
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
