//! What is told of an InstallPlan before it is executed: a document for programs and people. Its fields are a contract: policies
//! are written over them. As JSON every field is always there; what does not apply is `null`, empty or false.

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
    /// The plan, as it is or as it would be made.
    pub plan: Plan,
    /// Does all go well, as far as anybody can tell?
    pub verdict: Verdict,
    /// What [`Explanation::hash`] says of the rest: the same as long as the plan would do the same.
    pub hash: String,
    /// What the API server says of the objects, asked whether it would take them (`dryRun=All`): nothing is kept of that.
    pub dry_run: DryRun,
    /// The operators that come, go or change, by name.
    pub csvs: Vec<Csv>,
    /// Every object that a step is for, and every other one that would be written or deleted on the way: in the order of the steps,
    /// the others after them by kind and name. OLM's own bookkeeping (Subscriptions, InstallPlans, copies of
    /// ClusterServiceVersions, Operators) and what Kubernetes does by itself (ReplicaSets, Pods, Events) are left out.
    pub objects: Vec<Object>,
    /// What ServiceAccounts may do afterwards and might not before, and the other way round.
    pub rbac: Rbac,
    /// The CustomResourceDefinitions that would be created or changed, by name.
    pub crds: Vec<Crd>,
    /// Kinds of the plan's objects that this cluster does not serve.
    pub unserved: Vec<Unserved>,
    /// Images that run afterwards and did not before, and the other way round.
    pub images: Images,
    /// Webhooks that come, go or change.
    pub webhooks: Vec<Webhook>,
    /// Objects that the plan may go on without.
    pub optional: Vec<Optional>,
    /// Where the bundles' manifests are, by the name of their ClusterServiceVersion.
    pub bundles: Vec<Bundle>,
    /// What catalogs say is deprecated of what is chosen.
    pub deprecations: Vec<Deprecation>,
    /// What deleting the operator again would not undo.
    pub irreversible: Vec<Irreversible>,
    /// What would come next: InstallPlans that are made when this one is complete.
    pub afterwards: Vec<Next>,
    /// What could not be read, so that something may be missing here.
    pub unread: Vec<Unread>,
    /// What is not shown.
    #[serde(skip)]
    pub unshown: Unshown,
}

/// What an explanation does not show and goes by all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unshown {
    /// What OLM generates, and where.
    pub(super) generated: Generated,
    /// Digests of the manifests of Secrets in the plan. They go into the digest of the explanation only.
    pub(super) secrets: Vec<String>,
}

/// Something that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unread {
    /// What: `secrets`, `roles.rbac.authorization.k8s.io`; or in words, when it is no resource.
    pub resource: String,
    /// Where; empty: in all namespaces, or in none.
    pub namespace: String,
    /// What was refused and why, a sentence without a full stop.
    pub message: String,
}

/// What the API server says of the objects of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRun {
    /// Was it asked about any?
    pub asked: bool,
    /// How many it would take.
    pub taken: u64,
    /// What it would not take, in the order of the objects.
    pub refused: Vec<DryRunRefusal>,
    /// What it was not asked about, or could not say anything about, in the order of the objects.
    pub not_asked: Vec<DryRunGap>,
    /// Why it was not asked about more, when rights are missing: a sentence without a full stop; empty otherwise.
    pub message: String,
}

/// An object that the API server would not take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunRefusal {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace, empty when it has none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// HTTP status code; 0 when there was no answer.
    pub code: u16,
    /// Kubernetes' word for it: `Invalid`, `Forbidden`, …
    pub reason: String,
    /// Its sentence.
    pub message: String,
    /// May another attempt go better, with nothing changed: is it busy, or a webhook silent?
    pub may_pass: bool,
    /// Would the plan go on without the object?
    pub optional: bool,
}

/// An object that the API server was not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunGap {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace, empty when it has none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Why not.
    pub message: String,
}

/// The InstallPlan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Its name; empty when it does not exist yet.
    pub name: String,
    /// Is it in the cluster?
    pub exists: bool,
    /// Its phase; empty when it does not exist yet.
    pub phase: String,
    /// `Automatic` or `Manual`. A plan that is to come and is `Automatic` would not wait for anybody.
    pub approval: String,
    /// Has somebody approved it, or will nobody be asked?
    pub approved: bool,
    /// Is there a newer plan in the namespace, so that nobody should approve this one?
    pub superseded: bool,
    /// The Subscriptions whose operators it installs or upgrades.
    pub subscriptions: Vec<String>,
    /// The ServiceAccount whose rights it is executed with, `namespace/name`; `null`: OLM's own.
    pub service_account: Option<String>,
}

/// Whether all goes well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// In a word.
    pub result: Outcome,
    /// Why, the worst first. When all is safe these are notes.
    pub reasons: Vec<Because>,
}

/// In a word, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It would succeed, and nothing needs anybody's decision.
    #[default]
    Safe,
    /// It would succeed, but somebody should decide whether it may: rights are escalated, data may be lost, others ride along.
    NeedsDecision,
    /// Too little is known.
    Unknown,
    /// It would fail, or never come to an end.
    WouldFail,
}

/// A reason of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Because {
    /// What it leads to by itself.
    pub result: Outcome,
    /// What kind of reason, for programs: a word of [`REASONS`].
    pub reason: String,
    /// A sentence without a full stop.
    pub message: String,
    /// What a person could do; empty when nothing.
    pub hint: String,
}

/// The kinds of reasons that a verdict has, and what each says.
pub const REASONS: [(&str, &str); 23] = [
    ("approved", "the plan is approved, and not executed yet"),
    ("bystanders", "operators that do not need each other share the plan"),
    ("catalog", "the content of a catalog that counts is not known"),
    ("complete", "the plan is complete"),
    ("crd", "a CustomResourceDefinition loses a version, or custom resources do not fit it or could not be read"),
    ("csv", "a ClusterServiceVersion would not come to Succeeded"),
    ("deletion", "steps delete objects"),
    ("deprecated", "a catalog calls the package, channel or bundle deprecated"),
    ("discovery", "it is not known whether the cluster serves a kind that an operator needs"),
    ("downgrade", "an operator becomes older"),
    ("dryRun", "the API server would not take an object"),
    ("escalation", "a ServiceAccount gains rights that reach far, or an object does by what it is"),
    ("nothing", "what is wanted is there"),
    ("optional", "an optional object is left out"),
    ("plan", "the plan itself would fail or wait"),
    ("range", "the Subscription gets another version than those asked for"),
    ("removal", "an operator goes, and nothing takes its place"),
    ("resolution", "the Subscriptions of the namespace are not resolved"),
    ("superseded", "there is a newer InstallPlan in the namespace"),
    ("unheeded", "OLM does not go by a part of the plan's spec"),
    ("unpack", "the content of a bundle is not known"),
    ("unread", "something could not be read"),
    ("unserved", "the cluster does not serve a kind of the bundle"),
];

/// An operator that comes, goes or changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Csv {
    /// Name of the new ClusterServiceVersion; of the old one when it only goes.
    pub name: String,
    /// Its package; empty when nothing tells.
    pub package: String,
    /// Name of the ClusterServiceVersion whose place it takes; `null` when it is new.
    pub replaces: Option<String>,
    /// Version of that one; `null` when there is none.
    pub from: Option<String>,
    /// Its version; `null` when the operator only goes.
    pub to: Option<String>,
    /// What happens to it.
    pub change: CsvChange,
    /// The Subscriptions that get it.
    pub subscriptions: Vec<String>,
    /// Does it ride along: is it neither for the Subscription that was asked about nor something that this one needs?
    pub bystander: bool,
    /// Is it there only because other operators need it, or the API that it provides?
    pub dependency: bool,
    /// Why it was chosen, in sentences.
    pub because: Vec<String>,
    /// The phase that it comes to: `Succeeded` when it is well. Whether images can be pulled and run nobody can tell beforehand.
    pub phase: String,
    /// What it waits for or why it fails, if it does.
    pub message: String,
}

/// What happens to an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CsvChange {
    /// It is new.
    #[default]
    Install,
    /// It takes the place of an older version.
    Upgrade,
    /// It takes the place of a newer version.
    Downgrade,
    /// Nothing takes its place.
    Remove,
    /// It is there already.
    None,
}

/// An object, before and after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace, empty when it has none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What happens to it.
    pub change: Change,
    /// Who does it.
    pub by: By,
    /// The ClusterServiceVersion that it is for; empty when nothing tells.
    pub csv: String,
    /// Why it is refused or skipped; empty otherwise.
    pub message: String,
    /// Why it is more than an ordinary object, of what it was not before; empty when it is not. A ClusterServiceVersion is marked for the
    /// Pods of its Deployments.
    #[serde(default)]
    pub escalations: Vec<Escalation>,
    /// The object now, `null` when there is none: without status, without what the API server writes itself, and without the values
    /// in Secrets: `(hidden)` stands for each, and `(hidden, changed)` for one that is another one afterwards, or new.
    pub before: Value,
    /// The object afterwards, in the same form; as the API server would keep it, where that was asked.
    pub after: Value,
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It is new.
    Create,
    /// It is changed.
    Update,
    /// It goes.
    Delete,
    /// A step is for it, and it is as the step wants it.
    #[default]
    Unchanged,
    /// The API server, or OLM, refuses it.
    Refused,
    /// The plan goes on without it.
    Skipped,
    /// The plan fails before its turn comes.
    NotReached,
}

/// Who changes an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// A step of the plan.
    #[default]
    Step,
    /// OLM, to bring a ClusterServiceVersion to life or to take it away: Deployments, webhooks, certificates, roles for its APIs.
    Olm,
    /// Kubernetes, because what it belongs to is gone.
    GarbageCollection,
}

/// Rights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rbac {
    /// Is a right gained that is marked as an escalation?
    pub escalates: bool,
    /// Rights of ServiceAccounts that they do not have now, and all of a ServiceAccount that an operator takes on, sorted. Of rights
    /// that people get through aggregated ClusterRoles only those that are escalations.
    pub gained: Vec<Right>,
    /// Rights of ServiceAccounts that they have now and will not have, sorted.
    pub lost: Vec<Right>,
    /// ClusterRoles that people are given their rights by and that change: those that are aggregated to `admin`, `edit` and `view`,
    /// and those of OperatorGroups.
    pub aggregated: Vec<String>,
}

/// What an account may do. One rule with several groups, resources or verbs is one right.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Right {
    /// Who: `garden/rose-sa`, or `User jane`, `Group friends`; `ClusterRole admin`: whoever is bound to that.
    pub account: String,
    /// In which namespace; `null`: in all, and on what has none.
    pub namespace: Option<String>,
    /// API groups, the core group is empty.
    pub api_groups: Vec<String>,
    /// Resources, such as `pods` or `pods/log`.
    pub resources: Vec<String>,
    /// Only objects of these names; empty: all.
    pub resource_names: Vec<String>,
    /// Paths that are no resources, such as `/metrics`.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
    /// What it may do to them; empty when the role is not known.
    pub verbs: Vec<String>,
    /// Why this is more than an ordinary right; empty when it is not.
    pub escalations: Vec<Escalation>,
    /// The Role or ClusterRole, `Kind name`.
    pub role: String,
}

/// Why a right is more than an ordinary one, or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Escalation {
    /// It is for every verb, resource, API group or path, or for all of some kind.
    Wildcard,
    /// It reads or writes Secrets.
    Secrets,
    /// With the verb `escalate` it can write roles that say more than it may itself.
    Escalate,
    /// With the verb `bind` it can give anybody any role.
    Bind,
    /// With the verb `impersonate` it can act as somebody else.
    Impersonate,
    /// It writes in the whole cluster.
    ClusterWide,
    /// It runs what it likes: it creates Pods in every namespace, or enters those of others, or asks for tokens of ServiceAccounts.
    Execution,
    /// It approves or signs certificates, which may be for anybody.
    Certificates,
    /// It writes webhooks or policies that see, change or refuse the requests of others. Of a ClusterServiceVersion: it has admission
    /// webhooks for resources that it does not bring itself, and the version before it had not.
    Admission,
    /// It is given to everybody, or to every ServiceAccount.
    Everyone,
    /// What it grants is not known: there is no such role, or it could not be read, or it has too many rules for too many.
    UnknownRole,
    /// Of an object: it has containers that are privileged, or processes of the node.
    Privileged,
    /// Of an object: it mounts paths of the node.
    HostPath,
    /// Of an object: it shares the network, processes or memory of the node, or takes ports of it.
    HostNamespaces,
    /// Of an object: its containers add capabilities that an ordinary one does not get, such as `SYS_ADMIN`.
    Capabilities,
    /// Of an object: its containers go without seccomp, AppArmor, SELinux or masks of `/proc`, or set parameters of the node's kernel.
    Unconfined,
    /// Of an object: it is a Secret that logs in as a ServiceAccount, or as a node that joins.
    Tokens,
    /// Of an object: it is the PriorityClass of all Pods that name none.
    Priority,
    /// Of an object: it is a Service that takes the traffic to addresses of its choice (`externalIPs`).
    ExternalAddresses,
}

impl Escalation {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Wildcard => "wildcards",
            Self::Secrets => "secrets",
            Self::Escalate => "escalate",
            Self::Bind => "bind",
            Self::Impersonate => "impersonate",
            Self::ClusterWide => "writing in the whole cluster",
            Self::Execution => "running what it likes",
            Self::Certificates => "approving certificates",
            Self::Admission => "deciding on the requests of others",
            Self::Everyone => "for everybody",
            Self::UnknownRole => "a role that is not known",
            Self::Privileged => "privileged containers",
            Self::HostPath => "paths of the node",
            Self::HostNamespaces => "network, processes or ports of the node",
            Self::Capabilities => "capabilities",
            Self::Unconfined => "containers without confinement",
            Self::Tokens => "a token that logs in",
            Self::Priority => "the priority of all Pods",
            Self::ExternalAddresses => "the traffic to other addresses",
        }
    }
}

/// A CustomResourceDefinition that comes or changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Crd {
    /// Its name.
    pub name: String,
    /// What happens to it.
    pub change: Change,
    /// Are all custom resources that exist safe: do they fit, keep all their fields, and can be read afterwards?
    pub safe: bool,
    /// Versions that are served afterwards and are not now.
    pub added_versions: Vec<String>,
    /// Versions that are served now and will not be.
    pub removed_versions: Vec<String>,
    /// The version that objects are stored in, when it changes: the old one and the new one.
    pub storage: Option<(String, String)>,
    /// How many custom resources of it there are; `null` when they could not be read.
    pub existing: Option<u64>,
    /// Those that do not fit the new schema, with their fields, the first few of them.
    pub misfits: Vec<String>,
    /// How many do not fit.
    pub misfit_count: u64,
    /// Those that fit and have fields that the new schema does not know, with these fields, the first few of them: the API server
    /// drops the fields.
    #[serde(default)]
    pub losses: Vec<String>,
    /// How many lose fields.
    #[serde(default)]
    pub loss_count: u64,
    /// Why it is not safe; empty when it is.
    pub message: String,
}

/// A kind that the cluster does not serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unserved {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// The versions of that kind which are served; empty when the kind is not known at all.
    pub served: Vec<String>,
    /// The ClusterServiceVersion whose bundle has it.
    pub csv: String,
    /// The Subscriptions that asked for that bundle: without them the others can be installed.
    pub subscriptions: Vec<String>,
    /// The ClusterServiceVersions of other bundles that it holds up.
    pub holds_up: Vec<String>,
    /// The objects of that kind.
    pub objects: Vec<String>,
    /// May the plan go on without them?
    pub optional: bool,
}

/// Images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Images {
    /// Those that run afterwards and do not now.
    pub added: Vec<String>,
    /// Those that run now and will not.
    pub removed: Vec<String>,
    /// Those added that are named by a tag, which may move, and not by a digest.
    pub by_tag: Vec<String>,
}

/// A webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Its name.
    pub name: String,
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`.
    pub r#type: String,
    /// What happens to it.
    pub change: Change,
    /// The ClusterServiceVersion that brings it.
    pub csv: String,
    /// The requests that it sees: `create, update deployments.apps`; for a conversion webhook the CustomResourceDefinitions.
    pub rules: Vec<String>,
    /// `Fail` or `Ignore`: what becomes of those requests when the operator does not answer.
    pub failure_policy: String,
}

/// An object that the plan may go on without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Optional {
    /// API group, version and kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Name.
    pub name: String,
    /// The ClusterServiceVersion whose bundle has it.
    pub csv: String,
    /// Would it be skipped on this cluster?
    pub skipped: bool,
    /// Why.
    pub message: String,
}

/// Where the manifests of a bundle are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// Its ClusterServiceVersion.
    pub csv: String,
    /// Its image; empty when the plan or the catalog holds its manifests.
    pub image: String,
    /// The catalog it is from, `namespace/name`.
    pub catalog: String,
    /// Digest of its content, when that is in the image and not in the plan: approval holds for that content only. `null`: the plan holds it,
    /// or it is not here.
    pub digest: Option<String>,
    /// Is its content here? Only what is here can be explained.
    pub unpacked: bool,
    /// Why not; empty when it is.
    pub message: String,
}

/// Something that a catalog calls deprecated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deprecation {
    /// `package`, `channel` or `bundle`.
    pub what: String,
    /// Its name.
    pub name: String,
    /// The Subscription that it is about.
    pub subscription: String,
    /// What the catalog says.
    pub message: String,
}

/// Something that does not come back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Irreversible {
    /// What it is about: `Kind name`.
    pub object: String,
    /// What becomes of it: a sentence whose subject is the object, without a full stop.
    pub message: String,
}

/// An InstallPlan that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Next {
    /// What it installs.
    pub csvs: Vec<String>,
    /// Does it wait for somebody's approval?
    pub needs_approval: bool,
}
