//! ClusterServiceVersion: one version of an operator, with its APIs, requirements and installation.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::super::kubernetes::{DeploymentSpec, IntOrString, RuleWithOperations};
use super::carried::Carried;
use super::catalog_source::Icon;
use super::parts::{LabelSelector, PolicyRule, Time};

/// One version of an operator: its APIs, its requirements and its install strategy. Usually created by an InstallPlan from a bundle.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct ClusterServiceVersion {
    /// The operator as its bundle describes it. Written by the author of the bundle; the InstallPlan sets replaces.
    pub spec: ClusterServiceVersionSpec,
    /// The state of the installation. Written by the controllers.
    pub status: ClusterServiceVersionStatus,
}

/// The operator as its bundle describes it.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["displayName", "install"]))]
pub struct ClusterServiceVersionSpec {
    /// The install strategy: the Deployments of the operator and their permissions.
    pub install: InstallStrategy,
    /// The semantic version of the operator, such as 1.4.2. Version ranges of dependencies and of skipRange are matched against it.
    pub version: String,
    /// The release of the version, which distinguishes builds of it: dot-separated identifiers of alphanumerics and hyphens, such as 1 or
    /// 2.rc1. Optional.
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
    /// The maturity of the version as free text, such as alpha or stable. Informational.
    pub maturity: Carried<String>,
    /// The custom resource definitions that the operator provides (owned) and needs (required).
    pub customresourcedefinitions: CustomResourceDefinitions,
    /// The aggregated APIs that the operator provides (owned) and needs (required).
    pub apiservicedefinitions: ApiServiceDefinitions,
    /// The webhooks of the operator. The controllers create their Services, certificates and configurations. If they are invalid, the
    /// phase is Failed with reason InvalidWebhookDescription.
    pub webhookdefinitions: Vec<WebhookDescription>,
    /// The kinds that the API server must serve before the operator is installed, whichever component provides them.
    #[serde(rename = "nativeAPIs")]
    pub native_apis: Vec<NativeApi>,
    /// The minimum version of Kubernetes as a semantic version, such as 1.29.0. On an older cluster the phase stays Pending with reason
    /// RequirementsNotMet.
    pub min_kube_version: String,
    /// The name of the operator in listings and consoles.
    pub display_name: String,
    /// The description of the operator in Markdown, for consoles. Informational.
    pub description: Carried<String>,
    /// The keywords by which consoles find the operator. Informational.
    pub keywords: Carried<Vec<String>>,
    /// The maintainers of the operator. Informational.
    pub maintainers: Carried<Vec<Maintainer>>,
    /// The publisher of the operator. Informational.
    pub provider: Carried<AppLink>,
    /// The links to further documentation. Informational.
    pub links: Carried<Vec<AppLink>>,
    /// The icons of the operator for consoles, usually one. Informational.
    pub icon: Carried<Vec<Icon>>,
    /// The sets of namespaces that the operator can watch. If they do not allow the target namespaces of the OperatorGroup, the phase is
    /// Failed with reason UnsupportedOperatorGroup.
    pub install_modes: Vec<InstallMode>,
    /// The name of the ClusterServiceVersion in the same namespace that this one replaces. The replaced one is deleted once this one has
    /// succeeded.
    pub replaces: String,
    /// The labels of the operator for consoles. The controllers do not use them.
    pub labels: Carried<BTreeMap<String, String>>,
    /// The annotations of the operator for consoles. The controllers do not use them.
    pub annotations: Carried<BTreeMap<String, String>>,
    /// The label selector of objects that belong to the operator. The controllers do not use it.
    pub selector: Carried<LabelSelector>,
    /// The deletion of custom resources together with the operator. It has no effect: custom resources stay.
    pub cleanup: Carried<Cleanup>,
    /// The names of ClusterServiceVersions that can be upgraded to this one besides the one in replaces. Used in catalogs; it has no
    /// effect on an operator that is installed.
    pub skips: Vec<String>,
    /// The images that the operator uses, for mirroring and for kubectl olm install-plan explain. It does not change what runs.
    pub related_images: Carried<Vec<RelatedImage>>,
}

/// The strategy that installs an operator.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["strategy"]))]
pub struct InstallStrategy {
    /// The name of the strategy, which must be deployment. With any other name the phase is Failed with reason InvalidInstallStrategy.
    pub strategy: String,
    /// The Deployments of the operator and the permissions of their ServiceAccounts.
    pub spec: StrategyDetailsDeployment,
}

/// The Deployments of an operator and the permissions of their ServiceAccounts.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["deployments"]))]
pub struct StrategyDetailsDeployment {
    /// The Deployments to create in the namespace of the ClusterServiceVersion. One that is removed from the list is deleted.
    pub deployments: Vec<StrategyDeployment>,
    /// The permissions in the operator's own namespace and in the target namespaces of its OperatorGroup. The InstallPlan creates a Role
    /// and a RoleBinding for each entry; the controllers copy these to other target namespaces, or grant them in the whole cluster if the
    /// group targets all.
    pub permissions: Vec<Permission>,
    /// The permissions in the whole cluster. The InstallPlan creates a ClusterRole and a ClusterRoleBinding for each entry.
    pub cluster_permissions: Vec<Permission>,
}

/// A Deployment of an operator.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "spec"]))]
pub struct StrategyDeployment {
    /// The name of the Deployment.
    pub name: String,
    /// The spec of the Deployment. The field spec.config of the Subscription changes parts of its pod template.
    #[schemars(schema_with = "deployment_spec")]
    pub spec: Carried<DeploymentSpec>,
    /// The labels of the Deployment itself. Labels of its pods belong in spec.template.metadata.labels.
    pub label: BTreeMap<String, String>,
}

/// The schema as in OLM: it preserves labels and annotations of a pod template, and accepts a host alias without address.
fn deployment_spec(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = Carried::<DeploymentSpec>::json_schema(generator);
    let template = "/properties/template/properties";
    if let Some(metadata) = schema.pointer_mut(&format!("{template}/metadata")) {
        metadata["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    if let Some(ip) = schema.pointer_mut(&format!("{template}/spec/properties/hostAliases/items/properties/ip")) {
        ip["x-default"] = "".into();
    }
    schema
}

/// The permissions of a ServiceAccount.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["rules", "serviceAccountName"]))]
pub struct Permission {
    /// The name of the ServiceAccount in the namespace of the ClusterServiceVersion. The InstallPlan creates it unless it is default.
    pub service_account_name: String,
    /// The rules that the ServiceAccount is granted.
    pub rules: Vec<PolicyRule>,
}

/// The custom resource definitions that an operator provides and needs.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct CustomResourceDefinitions {
    /// The CRDs that the operator provides. If another operator provides one of them for the same namespaces, the phase is Failed with
    /// reason OwnerConflict or InterOperatorGroupOwnerConflict.
    pub owned: Vec<CrdDescription>,
    /// The CRDs that must be served before the operator is installed. Resolution installs operators that provide them.
    pub required: Vec<CrdDescription>,
}

/// A version of a custom resource definition.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["kind", "name", "version"]))]
pub struct CrdDescription {
    /// The name of the CustomResourceDefinition in the form PLURAL.GROUP.
    pub name: String,
    /// The API version, such as v1. The CustomResourceDefinition must serve it.
    pub version: String,
    /// The kind of the custom resource.
    pub kind: String,
    /// The name of the API in consoles. Informational.
    pub display_name: String,
    /// The purpose of the API, for consoles. Informational.
    pub description: Carried<String>,
    /// The kinds of objects that a custom resource leads to, for consoles. Informational.
    pub resources: Carried<Vec<ApiResource>>,
    /// The hints to consoles about fields of status. Informational.
    pub status_descriptors: Carried<Vec<Descriptor>>,
    /// The hints to consoles about fields of spec. Informational.
    pub spec_descriptors: Carried<Vec<Descriptor>>,
    /// The hints to consoles about actions on the custom resource. Informational.
    pub action_descriptors: Carried<Vec<Descriptor>>,
}

/// The aggregated APIs that an operator provides and needs.
#[derive(Default, JsonSchema)]
#[serde(default)]
pub struct ApiServiceDefinitions {
    /// The APIs that the operator provides. The controllers create an APIService VERSION.GROUP and its certificate for each.
    pub owned: Vec<ApiServiceDescription>,
    /// The APIs that must be available before the operator is installed. Resolution installs operators that provide them.
    pub required: Vec<ApiServiceDescription>,
}

/// A kind of an aggregated API.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["group", "kind", "name", "version"]))]
pub struct ApiServiceDescription {
    /// The plural name of the resource.
    pub name: String,
    /// The API group of the kind.
    pub group: String,
    /// The API version of the kind, such as v1.
    pub version: String,
    /// The kind that the API serves.
    pub kind: String,
    /// The name of the Deployment in the install strategy that serves the API. Required for owned APIs.
    pub deployment_name: String,
    /// The port of the Service and of the pods that serve the API. Defaults to 443.
    pub container_port: i32,
    /// The name of the API in consoles. Informational.
    pub display_name: String,
    /// The purpose of the API, for consoles. Informational.
    pub description: Carried<String>,
    /// The kinds of objects that an object of this kind leads to, for consoles. Informational.
    pub resources: Carried<Vec<ApiResource>>,
    /// The hints to consoles about fields of status. Informational.
    pub status_descriptors: Carried<Vec<Descriptor>>,
    /// The hints to consoles about fields of spec. Informational.
    pub spec_descriptors: Carried<Vec<Descriptor>>,
    /// The hints to consoles about actions on the object. Informational.
    pub action_descriptors: Carried<Vec<Descriptor>>,
}

/// A kind of object that a custom resource leads to.
#[derive(JsonSchema)]
pub struct ApiResource {
    /// The name of the CustomResourceDefinition; empty for a kind of Kubernetes.
    pub name: String,
    /// The kind of the object.
    pub kind: String,
    /// The API version of the object.
    pub version: String,
}

/// A hint to consoles about a field or an action.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct Descriptor {
    /// The path of the field below spec or status, with dots between names.
    pub path: String,
    /// The name of the field or action in consoles.
    pub display_name: Option<String>,
    /// The explanation of the field or action in consoles.
    pub description: Option<String>,
    /// The identifiers of the widgets with which consoles show the field, such as urn:alm:descriptor:com.tectonic.ui:podCount.
    #[schemars(rename = "x-descriptors")]
    pub x_descriptors: Option<Vec<String>>,
    /// The fixed value of the field or action, encoded in base64.
    #[schemars(extend("format" = "byte"))]
    pub value: Option<String>,
}

/// A webhook of an operator.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["admissionReviewVersions", "generateName", "sideEffects", "type"]))]
pub struct WebhookDescription {
    /// The name of the webhook and the prefix of the name of its configuration. It must be unique in the ClusterServiceVersion.
    pub generate_name: String,
    /// The type of the webhook: ValidatingAdmissionWebhook accepts or refuses requests, MutatingAdmissionWebhook changes objects,
    /// ConversionWebhook converts custom resources between API versions.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook", "ConversionWebhook"]))]
    pub type_: String,
    /// The name of the Deployment in the install strategy that serves the webhook.
    pub deployment_name: String,
    /// The port of the Service of the webhook. Defaults to 443.
    #[schemars(range(min = 1, max = 65535), extend("x-default" = 443))]
    pub container_port: i32,
    /// The port of the pods, as number or name, that serves the webhook. Defaults to containerPort.
    pub target_port: Option<Carried<IntOrString>>,
    /// The requests for which an admission webhook is called. The API group *, the group operators.coreos.com and webhook configurations
    /// are not allowed.
    pub rules: Vec<Carried<RuleWithOperations>>,
    /// The handling of a request when the webhook cannot be called: Fail or Ignore. Defaults to Fail.
    pub failure_policy: Option<String>,
    /// The handling of requests that match a rule in another API version only: Exact ignores them, Equivalent converts them. Defaults to
    /// Equivalent.
    pub match_policy: Option<String>,
    /// The selector of objects, by their labels, for which the webhook is called. Defaults to all objects.
    pub object_selector: Option<Carried<LabelSelector>>,
    /// The side effects of a call: None, or NoneOnDryRun if a dry run has none.
    pub side_effects: Option<String>,
    /// The timeout of a call in seconds, from 1 to 30. Defaults to 10.
    pub timeout_seconds: Option<i32>,
    /// The versions of AdmissionReview, or of ConversionReview, that the webhook understands, in order of preference.
    pub admission_review_versions: Vec<String>,
    /// The policy for calling a mutating webhook again after others have changed the object: Never or IfNeeded. Defaults to Never.
    pub reinvocation_policy: Option<String>,
    /// The path of the webhook's URL. Defaults to the root.
    pub webhook_path: Option<String>,
    /// The names of the owned CRDs whose resources a conversion webhook converts. It needs at least one, and AllNamespaces as the only
    /// supported install mode.
    #[serde(rename = "conversionCRDs")]
    pub conversion_crds: Vec<String>,
}

/// A kind that the API server must serve.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["group", "kind", "version"]))]
pub struct NativeApi {
    /// The API group of the kind; empty for the core group.
    pub group: String,
    /// The API version of the kind, such as v1.
    pub version: String,
    /// The kind that must be served.
    pub kind: String,
}

/// A maintainer of an operator.
#[derive(JsonSchema)]
pub struct Maintainer {
    /// The name of the maintainer.
    pub name: Option<String>,
    /// The email address of the maintainer.
    pub email: Option<String>,
}

/// A link with its name.
#[derive(JsonSchema)]
pub struct AppLink {
    /// The name of the publisher or page.
    pub name: Option<String>,
    /// The URL of the publisher or page.
    pub url: Option<String>,
}

/// The support of an operator for a set of namespaces.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["supported", "type"]))]
pub struct InstallMode {
    /// The set of namespaces to watch: OwnNamespace (the operator's own), SingleNamespace (one other), MultiNamespace (several) or
    /// AllNamespaces. A type that is listed twice is an error.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the operator supports the mode. A mode that is not listed is unsupported; MultiNamespace implies SingleNamespace, and
    /// SingleNamespace implies OwnNamespace (kubectl-olm only).
    pub supported: bool,
}

/// The deletion of custom resources together with an operator.
#[derive(JsonSchema)]
pub struct Cleanup {
    /// Whether custom resources are to be deleted with the operator. It has no effect.
    pub enabled: bool,
}

/// An image that an operator uses.
#[derive(JsonSchema)]
pub struct RelatedImage {
    /// The name of the image in the list.
    pub name: String,
    /// The reference of the image, by tag or digest.
    pub image: String,
}

/// The state of the installation of an operator.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterServiceVersionStatus {
    /// The phase of the installation: empty (new), Pending (requirements are not met yet), InstallReady (requirements are met),
    /// Installing (Deployments are not available yet), Succeeded, Failed (see reason), Replacing (an upgrade is being installed) or
    /// Deleting (the upgrade has succeeded). Written by the controllers.
    pub phase: String,
    /// The human-readable explanation of reason.
    pub message: String,
    /// The machine-readable cause of the phase, such as RequirementsNotMet, InstallComponentFailed or NoOperatorGroup. Copied marks the
    /// copy of a ClusterServiceVersion of another namespace.
    pub reason: String,
    /// The time at which phase, reason or message last changed.
    pub last_update_time: Time,
    /// The time at which phase last changed. An installation fails five minutes after it entered the phase Installing.
    pub last_transition_time: Time,
    /// The history of the phase, oldest first, with at most 20 entries. One is added when phase or reason changes. The last entry may
    /// have an older message than the status.
    pub conditions: Vec<PhaseCondition>,
    /// The requirements of the operator, each with the result of its last check. Those that are not met explain the reason
    /// RequirementsNotMet.
    pub requirement_status: Vec<RequirementStatus>,
    /// The time at which the serving certificates of webhooks and API services were issued.
    pub certs_last_updated: Time,
    /// The time at which the serving certificates will be replaced, 24 hours before they expire.
    pub certs_rotate_at: Time,
    /// The custom resources that are being deleted with the operator. Always empty, since spec.cleanup has no effect.
    pub cleanup: Carried<CleanupStatus>,
}

/// An entry in the history of a ClusterServiceVersion's phase.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PhaseCondition {
    /// The phase at that time, one of the values of status.phase.
    pub phase: String,
    /// The human-readable explanation of reason.
    pub message: String,
    /// The machine-readable cause of the phase.
    pub reason: String,
    /// The time at which the entry was written.
    pub last_update_time: Time,
    /// The time at which the phase was entered.
    pub last_transition_time: Time,
}

/// A requirement of an operator and the result of its check.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["group", "kind", "message", "name", "status", "version"]))]
pub struct RequirementStatus {
    /// The API group of the required object; empty for the core group.
    pub group: String,
    /// The API version of the required object.
    pub version: String,
    /// The kind of the required object, such as CustomResourceDefinition, APIService or ServiceAccount. ClusterServiceVersion stands for
    /// minKubeVersion.
    pub kind: String,
    /// The name of the required object; of a native API VERSION.GROUP.
    pub name: String,
    /// The result of the check: Present or DeploymentFound if the requirement is met, else NotPresent, PresentNotSatisfied,
    /// PresentNotAvailable or DeploymentNotFound.
    pub status: String,
    /// The human-readable explanation of status.
    pub message: String,
    /// The UID of the required object. Set only for CRDs and APIServices that are present.
    pub uuid: String,
    /// The permission rules that a required ServiceAccount needs.
    pub dependents: Vec<DependentStatus>,
}

/// A permission rule that a required ServiceAccount needs.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["group", "kind", "status", "version"]))]
pub struct DependentStatus {
    /// The API group of the rule. Always rbac.authorization.k8s.io.
    pub group: String,
    /// The API version of the rule. Always v1.
    pub version: String,
    /// The kind of the rule. Always PolicyRule.
    pub kind: String,
    /// Whether the ServiceAccount has the permission: Satisfied or NotSatisfied.
    pub status: String,
    /// The UID of the dependent object. Deprecated; never set.
    pub uuid: String,
    /// The rule as JSON after its scope: namespaced rule or cluster rule.
    pub message: String,
}

/// The custom resources that are being deleted with an operator.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct CleanupStatus {
    /// The custom resources that still exist, by kind. Deprecated; never set.
    pub pending_deletion: Option<Vec<PendingDeletion>>,
}

/// The custom resources of a kind that are being deleted.
#[derive(JsonSchema)]
pub struct PendingDeletion {
    /// The API group of the kind.
    pub group: String,
    /// The kind of the custom resources.
    pub kind: String,
    /// The custom resources that still exist.
    pub instances: Vec<PendingInstance>,
}

/// A custom resource that is being deleted.
#[derive(JsonSchema)]
pub struct PendingInstance {
    /// The name of the custom resource.
    pub name: String,
    /// The namespace of the custom resource; empty for cluster-scoped kinds.
    pub namespace: Option<String>,
}
