//! The document that describes an InstallPlan before it is executed. Its fields are a stable interface: policies (`--if EXPR`) refer to
//! them. In JSON every field is always present; a field that does not apply is `null`, empty or false.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::object::Gvk;
use crate::csv::Generated;

/// What an InstallPlan would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Namespace of the plan.
    pub namespace: String,
    /// The InstallPlan as it exists, or as it would be created.
    pub plan: Plan,
    /// The verdict on the plan, as far as it can be determined.
    pub verdict: Verdict,
    /// Digest of what the plan does (`sha256:…`). It stays the same as long as the plan would do the same to the same objects.
    pub hash: String,
    /// Results of sending the objects to the API server as a dry run (`dryRun=All`), which persists nothing.
    pub dry_run: DryRun,
    /// The operators that are installed, upgraded or removed, by name.
    pub csvs: Vec<Csv>,
    /// Every object of a step, in the order of the steps, followed by every other object that would be written or deleted as a
    /// consequence, by kind and name. Objects that OLM maintains for itself (Subscriptions, InstallPlans, copied
    /// ClusterServiceVersions, Operators) and objects that Kubernetes creates by itself (ReplicaSets, Pods, Events) are omitted.
    pub objects: Vec<Object>,
    /// Numbers of objects and permissions.
    #[serde(default)]
    pub totals: Totals,
    /// Permissions that accounts gain and lose.
    pub rbac: Rbac,
    /// The CustomResourceDefinitions that would be created or changed, by name.
    pub crds: Vec<Crd>,
    /// Kinds of the plan's objects that this cluster does not serve.
    pub unserved: Vec<Unserved>,
    /// Container images that operators start or stop using.
    pub images: Images,
    /// Webhooks of the operators that are created, changed or deleted.
    pub webhooks: Vec<Webhook>,
    /// Objects that the plan may skip.
    pub optional: Vec<Optional>,
    /// The bundles of the plan and where their manifests are, by the name of their ClusterServiceVersion.
    pub bundles: Vec<Bundle>,
    /// Chosen packages, channels and bundles that a catalog marks as deprecated.
    pub deprecations: Vec<Deprecation>,
    /// Effects that deleting the operator does not undo.
    pub irreversible: Vec<Irreversible>,
    /// InstallPlans that would be created after this one is complete.
    pub afterwards: Vec<Next>,
    /// Resources that could not be read. The explanation may be incomplete because of them.
    pub unreadable: Vec<UnreadableResource>,
    /// Data that affects the digest but is not shown.
    #[serde(skip)]
    pub unshown: Unshown,
}

/// Data of an explanation that affects its digest but is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unshown {
    /// The fields whose values OLM generates.
    pub(super) generated: Generated,
    /// Digests of the manifests of Secrets in the plan, used only in the digest of the explanation.
    pub(super) secrets: Vec<String>,
}

/// A resource that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnreadableResource {
    /// The resource, such as `secrets` or `roles.rbac.authorization.k8s.io`; a description if it is not an API resource.
    pub resource: String,
    /// The namespace; empty for all namespaces and for cluster-scoped resources.
    pub namespace: String,
    /// What was refused and why: a sentence without a full stop.
    pub message: String,
}

/// Results of the API server's dry run of the objects of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// Whether at least one object was sent.
    pub sent: bool,
    /// Number of objects that the API server would accept.
    pub accepted: u64,
    /// Objects that the API server would reject, in the order of `objects`.
    pub refused: Vec<DryRunRefusal>,
    /// Objects that were not sent, or for which the response was inconclusive, in the order of `objects`.
    pub not_sent: Vec<DryRunGap>,
    /// The permissions that were missing to send more objects: a sentence without a full stop; empty if none were missing.
    pub message: String,
}

/// An object that the API server would reject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunRefusal {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// HTTP status code; 0 if there was no response.
    pub code: u16,
    /// Reason of the status: `Invalid`, `Forbidden` or another one of the API server.
    pub reason: String,
    /// Message of the status.
    pub message: String,
    /// Whether the failure may be temporary: the API server is overloaded, or a webhook does not respond.
    pub may_pass: bool,
    /// Whether the plan would skip the object and continue.
    pub optional: bool,
}

/// An object that was not sent to the API server, or without a conclusive response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunGap {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Why there is no result.
    pub message: String,
}

/// The InstallPlan and its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Name; empty if it does not exist yet.
    pub name: String,
    /// Whether it exists in the cluster.
    pub exists: bool,
    /// Phase; empty if it does not exist yet.
    pub phase: String,
    /// `Automatic` or `Manual`. A plan that does not exist yet and is `Automatic` would be executed without approval.
    pub approval: String,
    /// Whether it is approved, or needs no approval.
    pub approved: bool,
    /// Whether there is a newer InstallPlan in the namespace, so that this one should not be approved.
    pub superseded: bool,
    /// The Subscriptions whose operators it installs or upgrades.
    pub subscriptions: Vec<String>,
    /// The ServiceAccount that the plan is executed as, `namespace/name`; `null` if it is executed with OLM's own permissions.
    pub service_account: Option<String>,
}

/// The verdict on a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The worst result of the reasons; `safe` if there are none.
    pub result: VerdictResult,
    /// The reasons, the most severe first. Reasons with the result `safe` are notes.
    pub reasons: Vec<VerdictReason>,
}

/// Result of a verdict, in order of increasing severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VerdictResult {
    /// The plan would succeed, and no effect needs review.
    #[default]
    Safe,
    /// The plan would succeed, but needs review: it escalates permissions, may lose data, or installs unrelated operators.
    NeedsDecision,
    /// The result cannot be determined because required data is missing.
    Unknown,
    /// The plan would fail, or never complete.
    WouldFail,
}

/// A reason of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictReason {
    /// The result that this reason alone leads to.
    pub result: VerdictResult,
    /// Machine-readable kind of the reason. `install-plan-policies.md` lists the values.
    pub reason: String,
    /// A sentence without a full stop.
    pub message: String,
    /// A suggested next step; may be empty.
    pub hint: String,
}

/// The values of [`VerdictReason::reason`] and their meanings.
pub const REASONS: [(&str, &str); 23] = [
    ("approved", "the plan is approved, and not executed yet"),
    ("bystanders", "the plan also installs or upgrades unrelated operators"),
    ("catalog", "the content of a required catalog is not known"),
    ("complete", "the plan is complete"),
    (
        "crd",
        "a CustomResourceDefinition loses a version, or custom resources do not fit its new schema or could not be read",
    ),
    ("csv", "a ClusterServiceVersion would not reach phase Succeeded"),
    ("deletion", "steps delete objects"),
    ("deprecated", "a catalog marks the package, channel or bundle as deprecated"),
    ("discovery", "it is not known whether the cluster serves a kind that an operator needs"),
    ("downgrade", "an operator is replaced by an older version"),
    ("dryRun", "the API server would reject an object"),
    ("escalation", "an account gains privileged permissions, or an object has effects beyond its namespace"),
    ("ignoredEdit", "OLM ignores a part of the plan's spec"),
    ("nothingToInstall", "everything that was requested is installed"),
    ("optional", "an optional object is skipped"),
    ("plan", "the plan itself would fail or wait"),
    ("range", "the Subscription gets a version outside of the requested range"),
    ("removal", "an operator is removed without a replacement"),
    ("resolution", "the Subscriptions of the namespace are not resolved"),
    ("superseded", "there is a newer InstallPlan in the namespace"),
    ("unpack", "the content of a bundle is not known"),
    ("unreadable", "a resource could not be read"),
    ("unserved", "the cluster does not serve a kind that the bundle contains"),
];

/// An operator that is installed, upgraded or removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Csv {
    /// Name of the new ClusterServiceVersion, or of the old one if the operator is removed.
    pub name: String,
    /// Package; empty if unknown.
    pub package: String,
    /// Name of the ClusterServiceVersion that is replaced; `null` if none is.
    pub replaces: Option<String>,
    /// Version of the replaced or removed ClusterServiceVersion; `null` if there is none.
    pub from: Option<String>,
    /// Version of the new ClusterServiceVersion; `null` if the operator is removed.
    pub to: Option<String>,
    /// The change of the ClusterServiceVersion.
    pub change: CsvChange,
    /// The Subscriptions whose `currentCSV` it is.
    pub subscriptions: Vec<String>,
    /// Whether it is unrelated to the Subscription in question: neither chosen for that Subscription nor a dependency.
    pub bystander: bool,
    /// Whether it is installed only because other operators require it or an API that it provides.
    pub dependency: bool,
    /// Why it was chosen, in sentences.
    pub reasons: Vec<String>,
    /// The phase that it would reach: `Succeeded` if its installation succeeds. Whether its images can be pulled and started cannot be
    /// determined in advance.
    pub phase: String,
    /// What it waits for, or why it fails; empty otherwise.
    pub message: String,
}

/// The change of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CsvChange {
    /// Installed as a new operator.
    #[default]
    Install,
    /// Replaces an older version.
    Upgrade,
    /// Replaces a newer version.
    Downgrade,
    /// Removed without a replacement.
    Remove,
    /// Not changed: it is installed already.
    None,
}

/// An object before and after the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The change of the object.
    pub change: Change,
    /// What makes the change.
    pub by: By,
    /// The ClusterServiceVersion that it belongs to; empty if unknown.
    pub csv: String,
    /// For a created object: the name of the deleted object of the replaced version that it corresponds to, such as the Role of the
    /// same account under a new name; empty if there is none.
    #[serde(default)]
    pub replaces: String,
    /// For a deleted object: the name of the created object that corresponds to it; empty if there is none.
    #[serde(default)]
    pub replaced_by: String,
    /// Why it is refused or skipped; empty otherwise.
    pub message: String,
    /// Privileges that the object has and did not have before; empty if there are none. A ClusterServiceVersion is marked for the Pods of
    /// its Deployments and for its webhooks.
    #[serde(default)]
    pub escalations: Vec<Escalation>,
    /// The object before the plan; `null` if it does not exist. Its status and the fields that the API server sets are omitted. Values in
    /// Secrets are replaced by `(hidden)`, or by `(hidden, changed)` if the plan adds or changes them.
    pub before: Value,
    /// The object after the plan, in the same form; as the API server would persist it, if it was sent as a dry run.
    pub after: Value,
}

/// Numbers of objects and permissions. An object that takes the place of another one (`replaces`) counts as changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Number of objects that are created.
    pub add: u64,
    /// Number of objects that are changed, or replaced by an object with another name.
    pub change: u64,
    /// Number of objects that are deleted.
    pub destroy: u64,
    /// Number of permissions that accounts gain.
    pub gained: u64,
    /// Number of permissions that accounts lose.
    pub lost: u64,
}

/// The change of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Created by the plan.
    Create,
    /// Changed by the plan.
    Update,
    /// Deleted by the plan.
    Delete,
    /// No change: the object already matches the step.
    #[default]
    Unchanged,
    /// Refused by the API server or by OLM.
    Refused,
    /// Skipped: the plan continues without it.
    Skipped,
    /// Not reached: the plan fails before its step.
    NotReached,
}

/// What changes an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// A step of the plan.
    #[default]
    Step,
    /// OLM, which installs or removes a ClusterServiceVersion: Deployments, webhooks, certificates, roles for its APIs.
    Olm,
    /// Garbage collection by Kubernetes, because the owner was deleted.
    GarbageCollection,
}

/// The changes of permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rbac {
    /// Whether a gained permission is marked as an escalation.
    pub escalates: bool,
    /// Permissions that accounts gain, and all permissions of a ServiceAccount that an operator starts to use, sorted. Permissions that
    /// users gain through aggregated ClusterRoles are listed only if they are escalations.
    pub gained: Vec<Permission>,
    /// Permissions that accounts lose, sorted.
    pub lost: Vec<Permission>,
    /// ClusterRoles for users that change: those that are aggregated to `admin`, `edit` and `view`, and those of OperatorGroups.
    pub aggregated: Vec<String>,
}

/// A permission of an account: one rule, which may name several groups, resources and verbs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The account: `garden/rose-sa` is a ServiceAccount; others are `User jane`, `Group friends`, or `ClusterRole admin` for all subjects
    /// that are bound to that ClusterRole.
    pub account: String,
    /// The namespace in which the permission holds; `null` for all namespaces and cluster-scoped objects.
    pub namespace: Option<String>,
    /// API groups; the core group is the empty string.
    pub api_groups: Vec<String>,
    /// Resources, such as `pods` or `pods/log`.
    pub resources: Vec<String>,
    /// Names of the objects; empty for all.
    pub resource_names: Vec<String>,
    /// Non-resource URLs, such as `/metrics`.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
    /// Verbs; empty if the role is unknown.
    pub verbs: Vec<String>,
    /// Why the permission is privileged; empty if it is not.
    pub escalations: Vec<Escalation>,
    /// The Role or ClusterRole, `Kind name`.
    pub role: String,
}

/// Why a permission or an object is privileged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Escalation {
    /// The permission contains a wildcard in its verbs, resources, API groups or URLs.
    Wildcard,
    /// The permission reads or writes Secrets.
    Secrets,
    /// The permission has the verb `escalate` on roles, which permits writing roles that exceed the account's own permissions.
    Escalate,
    /// The permission has the verb `bind` on roles, which permits granting any role to any subject.
    Bind,
    /// The permission has the verb `impersonate`, which permits acting as another user.
    Impersonate,
    /// The permission writes in the whole cluster.
    ClusterWide,
    /// The permission executes arbitrary code: it creates Pods in every namespace, enters running Pods, or requests tokens of
    /// ServiceAccounts.
    Execution,
    /// The permission approves or signs certificates, which may be valid for any user.
    Certificates,
    /// The permission writes webhooks or policies that see, change or refuse API requests. A ClusterServiceVersion has this mark if it has
    /// admission webhooks for resources that it does not provide, and the version before it had none for them.
    Admission,
    /// The permission is granted to all users, or to all ServiceAccounts.
    Everyone,
    /// The rules of the role are unknown: the role does not exist, could not be read, or has too many rules and subjects to evaluate.
    UnknownRole,
    /// The object has privileged containers, or containers that run as processes of the node.
    Privileged,
    /// The object mounts paths of the node.
    HostPath,
    /// The object shares the network, PID or IPC namespace of the node, or uses ports of the node.
    HostNamespaces,
    /// The containers of the object add capabilities beyond the Pod Security Standard *baseline*, such as `SYS_ADMIN`.
    Capabilities,
    /// The containers of the object disable seccomp, AppArmor, SELinux or the masks of `/proc`, or set unsafe sysctls.
    Unconfined,
    /// The object is a Secret that contains a token of a ServiceAccount, or a bootstrap token.
    Tokens,
    /// The object is the default PriorityClass of the cluster (`globalDefault`).
    Priority,
    /// The object is a Service with `externalIPs`.
    ExternalAddresses,
}

impl Escalation {
    /// Returns a short description for messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::Wildcard => "wildcards",
            Self::Secrets => "secrets",
            Self::Escalate => "escalate",
            Self::Bind => "bind",
            Self::Impersonate => "impersonate",
            Self::ClusterWide => "cluster-wide writes",
            Self::Execution => "code execution",
            Self::Certificates => "certificate approval",
            Self::Admission => "admission control",
            Self::Everyone => "all users",
            Self::UnknownRole => "unknown role",
            Self::Privileged => "privileged containers",
            Self::HostPath => "host paths",
            Self::HostNamespaces => "host network, processes or ports",
            Self::Capabilities => "added capabilities",
            Self::Unconfined => "unconfined containers",
            Self::Tokens => "authentication tokens",
            Self::Priority => "default priority of all Pods",
            Self::ExternalAddresses => "external IPs",
        }
    }
}

/// A CustomResourceDefinition that is created or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Crd {
    /// Name of the CustomResourceDefinition.
    pub name: String,
    /// The change of the CustomResourceDefinition.
    pub change: Change,
    /// Whether all existing custom resources are valid under the new schema, keep all their fields, and stay readable.
    pub safe: bool,
    /// Versions that the plan starts to serve.
    pub added_versions: Vec<String>,
    /// Versions that the plan stops serving.
    pub removed_versions: Vec<String>,
    /// The old and the new storage version; `null` if it does not change.
    pub storage: Option<(String, String)>,
    /// Number of existing custom resources; `null` if they could not be read.
    pub existing: Option<u64>,
    /// The first custom resources that are invalid under the new schema, with their fields.
    pub invalid: Vec<String>,
    /// Number of custom resources that are invalid under the new schema.
    pub invalid_count: u64,
    /// The first custom resources that are valid but have fields that the new schema does not define, with these fields. The API server
    /// drops such fields.
    #[serde(default)]
    pub losses: Vec<String>,
    /// Number of custom resources that lose fields.
    #[serde(default)]
    pub loss_count: u64,
    /// Why it is not safe; empty if it is.
    pub message: String,
}

/// A kind that the cluster does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unserved {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// The versions of the kind that are served; empty if no version is.
    pub served: Vec<String>,
    /// The ClusterServiceVersion whose bundle contains the objects.
    pub csv: String,
    /// The Subscriptions that request the bundle. Without them the other bundles can be installed.
    pub subscriptions: Vec<String>,
    /// The ClusterServiceVersions of other bundles in the plan that are blocked.
    pub blocks: Vec<String>,
    /// Names of the objects of the kind.
    pub objects: Vec<String>,
    /// Whether the plan may skip the objects.
    pub optional: bool,
}

/// Changes of container images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// Images that operators start to use.
    pub added: Vec<String>,
    /// Images that operators stop using.
    pub removed: Vec<String>,
    /// Added images that are referenced by a tag, which can be moved, instead of a digest.
    pub by_tag: Vec<String>,
}

/// A webhook of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Name of the webhook.
    pub name: String,
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`.
    pub r#type: String,
    /// The change of the webhook.
    pub change: Change,
    /// The ClusterServiceVersion that defines it.
    pub csv: String,
    /// The requests that it is called for, such as `create, update deployments.apps`; for a conversion webhook the
    /// CustomResourceDefinitions.
    pub rules: Vec<String>,
    /// `Fail` or `Ignore`: whether those requests fail if the webhook does not respond.
    pub failure_policy: String,
}

/// An object that the plan may skip.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Optional {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Name of the object.
    pub name: String,
    /// The ClusterServiceVersion whose bundle contains it.
    pub csv: String,
    /// Whether it would be skipped on this cluster.
    pub skipped: bool,
    /// Why it would be skipped; empty otherwise.
    pub message: String,
}

/// A bundle and where its manifests are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// Name of the ClusterServiceVersion.
    pub csv: String,
    /// Image; empty if the plan or the catalog contains the manifests.
    pub image: String,
    /// The catalog that offers it, `namespace/name`.
    pub catalog: String,
    /// Digest of the content if it is in the image; approval is limited to that content. `null` if the plan contains the manifests or the
    /// content is unavailable.
    pub digest: Option<String>,
    /// Whether the content is available. Only available content can be explained.
    pub unpacked: bool,
    /// Why the content is unavailable; empty otherwise.
    pub message: String,
}

/// A package, channel or bundle that a catalog marks as deprecated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deprecation {
    /// `package`, `channel` or `bundle`.
    pub what: String,
    /// Name of the package, channel or bundle.
    pub name: String,
    /// The Subscription that uses it.
    pub subscription: String,
    /// The catalog's deprecation message.
    pub message: String,
}

/// An effect that cannot be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Irreversible {
    /// The object, `Kind name`.
    pub object: String,
    /// The effect: a sentence without its subject, which is the object, and without a full stop.
    pub message: String,
}

/// An InstallPlan that would follow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Next {
    /// The ClusterServiceVersions that it installs.
    pub csvs: Vec<String>,
    /// Whether it waits for approval.
    pub needs_approval: bool,
}
