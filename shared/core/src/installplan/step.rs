//! A single step: the desired object, and the action that creates or updates it (olm-behaviour/installplan.md#execution).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::api::conditions::{Conditions, ESTABLISHED};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::install_plan::{Step, StepStatus};
use crate::api::kinds::{self, Kind};
use crate::api::labels;
use crate::api::metadata::Metadata;
use crate::api::object::{self, Gvk};
use crate::api::operator_group::OperatorGroup;
use crate::bundle::optional::may_be_optional;
use crate::plan::{Action, Question, Verb};
use crate::world::{GroupKind, IndexKey, Reader, Refusal, kind};

/// The outcome of a step.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// The step is done, with that status.
    Done(StepStatus),
    /// The step is done, with status `after`, when the action has succeeded.
    Act {
        action: Action,
        after: StepStatus,
        /// Whether it is unknown if the action changes anything.
        blind: bool,
        /// The warning to emit when it is done.
        warning: Option<String>,
    },
    /// An external fact is needed first.
    Ask(Question),
    /// The step has that status and waits for something.
    Wait(StepStatus, String),
    /// The step needs the uid of a ClusterServiceVersion that an earlier step is about to create.
    NeedsOwner(String),
    /// The step fails. It is checked again at that time, if the fix of the cause would not be observed.
    Fail(String, Option<Timestamp>),
    /// The step fails, but the plan never times out because of it.
    Denied(String, Option<Timestamp>),
    /// InstallPlans do not support the step.
    Unsupported,
}

impl Outcome {
    fn create(object: Value) -> Self {
        Self::act(Action::Create(object), StepStatus::Created, false)
    }

    pub(super) fn act(action: Action, after: StepStatus, blind: bool) -> Self {
        Self::Act { action, after, blind, warning: None }
    }

    fn fail(message: impl Into<String>) -> Self {
        Self::Fail(message.into(), None)
    }
}

/// The type of Secrets in which Kubernetes stores a ServiceAccount's token.
const TOKEN: &str = "kubernetes.io/service-account-token";

/// Reports whether the object of an action refers to other objects that the same bundle may contain. A binding to a missing role is refused,
/// and the token of a missing ServiceAccount is deleted.
pub(super) fn refers(action: &Action) -> bool {
    match action {
        Action::As(_, action) => refers(action),
        Action::Create(object) | Action::Update(object) => {
            let is_binding = matches!(object::kind(object), "RoleBinding" | "ClusterRoleBinding");
            is_binding || object::text(object, &["type"]) == TOKEN
        }
        _ => false,
    }
}

/// The owner of the object of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    /// None.
    No,
    /// The ClusterServiceVersion, if the manifest names it.
    AsSaid,
    /// The ClusterServiceVersion.
    ByCsv,
    /// The ClusterServiceVersion, by labels, because it cannot own cluster-scoped objects.
    ByLabels,
}

/// Returns how a kind is handled: whether it is namespaced, its owner, and whether OLM has no type for it and copies it as it is.
fn handling(kind: &str) -> Option<(bool, Owned, bool)> {
    Some(match kind {
        "ClusterServiceVersion" | "Subscription" => (true, Owned::No, false),
        "ServiceAccount" | "Role" | "RoleBinding" => (true, Owned::AsSaid, false),
        "BundleSecret" | "Service" | "ConfigMap" => (true, Owned::ByCsv, false),
        "ClusterRole" | "ClusterRoleBinding" => (false, Owned::No, false),
        "PrometheusRule" | "ServiceMonitor" | "PodDisruptionBudget" | "VerticalPodAutoscaler" | "NetworkPolicy" => {
            (true, Owned::ByCsv, true)
        }
        "PriorityClass" | "ConsoleYAMLSample" | "ConsoleQuickStart" | "ConsoleCLIDownload" | "ConsoleLink"
        | "ConsolePlugin" => (false, Owned::ByLabels, true),
        _ => return None,
    })
}

/// Returns how an optional kind is handled, which may be any kind. Its scope is discovered, not guessed, because a cluster-scoped object with
/// an owner in a namespace is garbage-collected at once.
fn handling_of_any(world: &Reader<'_>, gvk: &Gvk) -> Result<(bool, Owned, bool), Box<Outcome>> {
    let Gvk { group, version, kind } = gvk;
    let definitions = world.indexed(IndexKey::Definition(group.clone(), kind.clone()));
    let defined = definitions.first().map(|d| CustomResourceDefinition::new(d.json()).is_namespaced());
    let asked = || {
        let Some(discovery) = world.discovery(group, version) else {
            let question = Question::Discover { group: group.clone(), version: version.clone() };
            return Err(Box::new(Outcome::Ask(question)));
        };
        match (discovery.is_namespaced(kind), &discovery.error) {
            (Some(namespaced), _) => Ok(namespaced),
            (None, Some(error)) if discovery.kinds.is_none() => {
                let message = format!("{UNKNOWN_SCOPE} {kind} ({}): {error}", gvk.api_version());
                Err(Box::new(Outcome::fail(message)))
            }
            // The API server does not serve the kind, and is going to refuse the object.
            (None, _) => Ok(true),
        }
    };
    let namespaced = defined.map_or_else(asked, Ok)?;
    Ok(if namespaced { (true, Owned::ByCsv, true) } else { (false, Owned::ByLabels, true) })
}

/// Prefix of the message if the scope of a kind cannot be determined.
pub(super) const UNKNOWN_SCOPE: &str = "cannot find out whether objects of this kind are in namespaces:";

/// Groups of steps that are independent of each other. All other steps are executed in order, as in OLM: steps after a refusal are not
/// started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParallelGroup {
    /// Steps that define APIs.
    Definitions,
    /// Steps that need at most a ClusterServiceVersion, and APIs that are served.
    Objects,
}

/// Returns the group of steps that may be executed concurrently with this one.
pub(super) fn parallel_group(world: &Reader<'_>, step: &Value, optional: bool) -> Option<ParallelGroup> {
    let gvk = gvk(step);
    match gvk.kind.as_str() {
        "ClusterServiceVersion" | "Subscription" => None,
        CRD => (gvk.version == "v1").then_some(ParallelGroup::Definitions),
        _ if optional => Some(ParallelGroup::Objects),
        // A bundle may contain versions that the cluster does not serve.
        "PodDisruptionBudget" | "NetworkPolicy" | "PriorityClass" => {
            (gvk.version == "v1").then_some(ParallelGroup::Objects)
        }
        _ if handling(&gvk.kind).is_some_and(|(_, _, carried)| carried) => {
            served_since(world, step).map(|_| ParallelGroup::Objects)
        }
        _ => Some(ParallelGroup::Objects),
    }
}

/// Returns the time since when the API of the step has been served, if a CustomResourceDefinition defines it.
pub(super) fn served_since(world: &Reader<'_>, step: &Value) -> Option<Timestamp> {
    let gvk = gvk(step);
    let definitions = world.indexed(IndexKey::Definition(gvk.group.clone(), gvk.kind.clone()));
    let serves = |crd: &&Value| {
        let crd = CustomResourceDefinition::new(crd);
        crd.is_established() && crd.served().any(|version| version.name() == gvk.version)
    };
    let definition = definitions.iter().map(|d| d.json()).find(serves)?;
    Conditions::new(definition).find(ESTABLISHED)?.last_transition()
}

/// Returns the kind of a step's object. For kinds that OLM has types for, OLM writes its own type, whatever group and version the step names;
/// the only exception are optional objects of another group.
pub fn gvk(step: &Value) -> Gvk {
    let declared = declared_gvk(step);
    if Step::new(step).is_optional() && may_be_optional(&declared) {
        return declared;
    }
    match own_type(&declared.kind) {
        Some((group, version)) => Gvk::new(group, version, &declared.kind),
        None => declared,
    }
}

/// Returns group and version of the type that OLM has for a kind.
fn own_type(kind: &str) -> Option<(&'static str, &'static str)> {
    const OWN: [Kind; 10] = [
        kinds::CLUSTER_SERVICE_VERSION,
        kinds::SUBSCRIPTION,
        kinds::CONFIG_MAP,
        kinds::SECRET,
        kinds::SERVICE,
        kinds::SERVICE_ACCOUNT,
        kinds::CLUSTER_ROLE,
        kinds::CLUSTER_ROLE_BINDING,
        kinds::ROLE,
        kinds::ROLE_BINDING,
    ];
    OWN.iter().find(|own| own.kind == kind).map(|own| (own.group, own.version))
}

/// The kind of steps that define APIs.
pub(super) const CRD: &str = "CustomResourceDefinition";

/// The kind in a manifest.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TypeMeta {
    api_version: String,
    kind: String,
}

/// Returns the kind that a step names. As in OLM, group and version are those of the manifest, because other programs write incomplete steps.
fn declared_gvk(step: &Value) -> Gvk {
    let [group, version, kind] = ["group", "version", "kind"].map(|key| object::text(step, &["resource", key]));
    let manifest: TypeMeta = serde_json::from_str(Step::new(step).manifest()).unwrap_or_default();
    let in_manifest = Gvk::from_api_version(&manifest.api_version, &manifest.kind);
    let is_whole = in_manifest.kind == kind && !in_manifest.version.is_empty();
    match kind {
        "BundleSecret" => Gvk::new(group, version, "Secret"),
        CRD => {
            let version = if is_whole { in_manifest.version.as_str() } else { version };
            Gvk::new(&kind::CUSTOM_RESOURCE_DEFINITION.group, version, CRD)
        }
        _ if is_whole => in_manifest,
        // The step only references its manifest.
        _ => Gvk::new(group, version, kind),
    }
}

/// Returns the object in a step's manifest, with the kind of the step.
pub(super) fn manifest(step: &Value) -> Result<Value, String> {
    let text = Step::new(step).manifest();
    let mut object: Value =
        serde_json::from_str(text).map_err(|e| format!("the manifest of step {} cannot be read: {e}", name(step)))?;
    let gvk = gvk(step);
    object::map_mut(&mut object, &[]).insert("apiVersion".to_owned(), gvk.api_version().into());
    object::map_mut(&mut object, &[]).insert("kind".to_owned(), gvk.kind.into());
    object::set_label(&mut object, labels::MANAGED, "true");
    Ok(object)
}

fn name(step: &Value) -> &str {
    Step::new(step).name()
}

/// Reports whether the object was created after the InstallPlan and its ClusterServiceVersion, whose step always comes first. Such an object
/// counts as created by the plan, because after a crash there is no other evidence.
pub(super) fn is_made_by(world: &Reader<'_>, plan: &Value, step: &Value, object: &Value) -> bool {
    let created = |o: &Value| object::parse_time(Metadata::new(o).created());
    let resolving = Step::new(step).resolving();
    let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, object::namespace(plan), resolving).and_then(created);
    created(object).is_some_and(|object| Some(object) >= created(plan) && Some(object) >= csv)
}

/// Returns the outcome of a step for any kind except CustomResourceDefinition. `to_come` are the ClusterServiceVersions that are created
/// before it; `optional` states whether the plan may skip it.
pub(super) fn outcome(world: &Reader<'_>, plan: &Value, step: &Value, to_come: &[String], optional: bool) -> Outcome {
    let gvk = gvk(step);
    // A kind of the same name in another group is not one of OLM's kinds.
    let is_own = own_type(&gvk.kind).is_none_or(|(group, _)| group == gvk.group);
    let step_kind = if is_own { Step::new(step).kind() } else { "" };
    let (namespaced, owned, carried) = match handling(step_kind) {
        Some(handling) => handling,
        None if optional => match handling_of_any(world, &gvk) {
            Ok(handling) => handling,
            Err(outcome) => return *outcome,
        },
        None => return Outcome::Unsupported,
    };
    let mut desired = match manifest(step) {
        Ok(desired) => desired,
        Err(message) => return Outcome::fail(message),
    };
    let namespace = if namespaced { object::namespace(plan) } else { "" };
    if namespaced {
        object::map_mut(&mut desired, &["metadata"]).insert("namespace".to_owned(), namespace.into());
    } else {
        object::map_mut(&mut desired, &["metadata"]).remove("namespace");
    }
    if let Some(outcome) = own(world, object::namespace(plan), step, owned, &mut desired, to_come) {
        return outcome;
    }
    let gk = GroupKind::new(&gvk.group, &gvk.kind);
    let Some(live) = world.json(&gk, namespace, object::name(&desired)) else {
        match step_kind {
            "ClusterServiceVersion" => {
                object::map_mut(&mut desired, &[]).remove("status");
            }
            "Subscription" => {
                object::map_mut(&mut desired, &[]).remove("status");
                object::set_annotation(&mut desired, "olm.generated-by", object::name(plan));
            }
            _ => {}
        }
        return Outcome::create(desired);
    };
    let status = if is_made_by(world, plan, step, live) { StepStatus::Created } else { StepStatus::Present };
    if matches!(step_kind, "ClusterServiceVersion" | "Subscription") {
        return Outcome::Done(status);
    }
    let wanted = match step_kind {
        "ServiceAccount" => account(live, &desired),
        _ if carried => replaced(live, &desired),
        "ClusterRole" | "ClusterRoleBinding" if status == StepStatus::Present || merged(live, &desired) != *live => {
            object::set_label(&mut desired, labels::OWNER, Step::new(step).resolving());
            merged(live, &desired)
        }
        _ => merged(live, &desired),
    };
    if carried && status == StepStatus::Created && object::covers(live, &desired) || wanted == *live {
        return Outcome::Done(status);
    }
    Outcome::act(Action::Update(wanted), StepStatus::Present, carried)
}

/// Sets the ClusterServiceVersion of the step as the owner, as the kind requires, and fills in the uids of all ClusterServiceVersions that
/// the manifest names as owners. Returns an outcome if that is not possible now. A step without a ClusterServiceVersion gets no owner.
fn own(
    world: &Reader<'_>,
    namespace: &str,
    step: &Value,
    owned: Owned,
    desired: &mut Value,
    to_come: &[String],
) -> Option<Outcome> {
    const CSV: &str = "ClusterServiceVersion";
    let resolving = Step::new(step).resolving();
    let owner = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": CSV,
        "metadata": { "name": resolving, "namespace": namespace },
    });
    match owned {
        Owned::No => return None,
        Owned::ByLabels if resolving.is_empty() => return None,
        Owned::ByLabels => {
            labels::set_owner(desired, &owner);
            return None;
        }
        Owned::AsSaid | Owned::ByCsv => {}
    }
    let mut owners = Metadata::new(desired).owner_references().to_vec();
    let is_csv = |o: &Value| object::kind(o) == CSV;
    let is_said = owners.iter().any(|o| is_csv(o) && object::text(o, &["name"]) == resolving);
    if owned == Owned::ByCsv && !resolving.is_empty() && !is_said {
        owners.push(object::owner_reference(&owner, false));
    }
    for reference in owners.iter_mut().filter(|o| is_csv(o)) {
        let name = object::text(reference, &["name"]).to_owned();
        let Some(csv) = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, &name) else {
            let what = owned_object(step, desired);
            return Some(if to_come.contains(&name) {
                Outcome::NeedsOwner(format!("{what} waits for ClusterServiceVersion {name}"))
            } else {
                let missing = format!("clusterserviceversions.operators.coreos.com {name:?} not found");
                Outcome::fail(format!("error generating ownerrefs for {what}: {missing}"))
            });
        };
        object::map_mut(reference, &[]).insert("uid".to_owned(), object::uid(csv).into());
    }
    if !owners.is_empty() {
        object::map_mut(desired, &["metadata"]).insert("ownerReferences".to_owned(), owners.into());
    }
    None
}

/// Returns OLM's description of an object whose owners it looks up.
fn owned_object(step: &Value, object: &Value) -> String {
    let name = object::name(object);
    match Step::new(step).kind() {
        "BundleSecret" => format!("secret {name}"),
        kind @ ("Role" | "RoleBinding") => format!("{} {name}", kind.to_lowercase()),
        "ServiceAccount" => format!("service account: {name}"),
        kind @ ("Service" | "ConfigMap") => format!("{}: {name}", kind.to_lowercase()),
        _ => format!("unstructured object: {name}"),
    }
}

/// Applies the metadata of a manifest: labels are replaced, except component labels; annotations are added.
fn with_metadata(live: &Value, desired: &Value) -> Value {
    let mut new = live.clone();
    let mut labels: Map<String, Value> = object::entries(live, &["metadata", "labels"])
        .filter(|(key, _)| key.starts_with(labels::COMPONENT))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    labels.extend(Metadata::new(desired).labels().as_object().cloned().unwrap_or_default());
    object::map_mut(&mut new, &["metadata"]).insert("labels".to_owned(), labels.into());
    for (key, value) in object::entries(desired, &["metadata", "annotations"]) {
        object::set_annotation(&mut new, key, value);
    }
    let owners = object::at(desired, &["metadata", "ownerReferences"]);
    if !owners.is_null() {
        object::map_mut(&mut new, &["metadata"]).insert("ownerReferences".to_owned(), owners.clone());
    }
    new
}

/// Returns the ServiceAccount with the owners and annotations of both, the labels of the manifest, and its existing secrets. A ServiceAccount
/// that contains everything that the manifest contains is not changed.
fn account(live: &Value, desired: &Value) -> Value {
    let mut owners = Metadata::new(live).owner_references().to_vec();
    let known = owners.len();
    for owner in Metadata::new(desired).owner_references() {
        if !owners.iter().any(|o| o["uid"] == owner["uid"]) {
            owners.push(owner.clone());
        }
    }
    let says = |path: &[&str]| object::covers(object::at(live, path), object::at(desired, path));
    let has = |path: &[&str]| object::at(desired, path).is_null() || says(path);
    let fields = fields(desired).filter(|(key, _)| *key != "secrets");
    if owners.len() == known
        && has(&["metadata", "labels"])
        && has(&["metadata", "annotations"])
        && fields.clone().all(|(key, _)| says(&[key]))
    {
        return live.clone();
    }
    let mut new = with_metadata(live, desired);
    if !owners.is_empty() {
        object::map_mut(&mut new, &["metadata"]).insert("ownerReferences".to_owned(), owners.into());
    }
    fields.for_each(|(key, value)| settle(&mut new[key], value));
    new
}

/// Returns the object with its fields replaced by the manifest's, for kinds that OLM has no types for.
fn replaced(live: &Value, desired: &Value) -> Value {
    let mut new = with_metadata(live, desired);
    for (key, value) in fields(desired) {
        new[key] = value.clone();
    }
    new
}

/// Returns the object with the manifest's fields merged into it, so that fields that the API server added are preserved.
fn merged(live: &Value, desired: &Value) -> Value {
    let mut new = with_metadata(live, desired);
    let mut desired = desired.clone();
    encode_secret(&mut desired);
    for (key, value) in fields(&desired) {
        match key {
            "data" | "binaryData" | "rules" | "subjects" => new[key] = value.clone(),
            _ => settle(&mut new[key], value),
        }
    }
    let selector = OperatorGroup::new(&desired).selector();
    if object::kind(&desired) == "Service" && !selector.is_null() {
        new["spec"]["selector"] = selector.clone();
    }
    // Kubernetes adds the token of a ServiceAccount.
    let is_token = object::text(&desired, &["type"]) == TOKEN;
    for key in ["data", "binaryData"] {
        if desired.get(key).is_none() && !is_token {
            object::map_mut(&mut new, &[]).remove(key);
        }
    }
    new
}

fn fields(object: &Value) -> impl Iterator<Item = (&str, &Value)> + Clone {
    let all = object.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value));
    all.filter(|(key, value)| !matches!(*key, "apiVersion" | "kind" | "metadata" | "status") && !value.is_null())
}

/// Changes `live` where it differs from `desired`.
fn settle(live: &mut Value, desired: &Value) {
    if object::covers(live, desired) {
        return;
    }
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            for (key, value) in desired {
                settle(live.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (live, desired) => *live = desired.clone(),
    }
}

/// Moves a Secret's `stringData` to `data`, as the API server does.
fn encode_secret(secret: &mut Value) {
    if object::kind(secret) != "Secret" {
        return;
    }
    let texts: Vec<(String, String)> =
        object::entries(secret, &["stringData"]).map(|(k, v)| (k.to_owned(), STANDARD.encode(v))).collect();
    for (key, value) in texts {
        object::map_mut(secret, &["data"]).insert(key, value.into());
    }
    object::map_mut(secret, &[]).remove("stringData");
}

/// Returns the refusal of an action, if there is one.
pub(super) fn refusal_of<'r>(action: &Action, refusals: &'r [Refusal]) -> Option<&'r Refusal> {
    let (verb, target) = (action.verb(), action.target());
    refusals.iter().find(|r| r.verb == verb && r.target == target)
}

/// Returns OLM's message for the refusal of a step's action.
pub(super) fn refusal(step: &Value, refusal: &Refusal) -> String {
    let (gvk, name, message) = (declared_gvk(step), name(step), &refusal.status.message);
    let kind = Step::new(step).kind();
    let no_namespace = message.starts_with("namespaces ");
    let unknown_kind = refusal.status.is_not_found() && refusal.verb == Verb::Create && !no_namespace;
    if unknown_kind || refusal.status.is_not_found() && gvk.version == "v1beta1" {
        return format!(
            "api-server resource not found installing {kind} {name}: GroupVersionKind {}, Kind={} not found on the \
             cluster. This API may have been deprecated and removed, see \
             https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
            gvk.api_version(),
            gvk.kind
        );
    }
    let did = if refusal.verb == Verb::Create { "creating" } else { "updating" };
    let what = match kind {
        "CustomResourceDefinition" => return message.clone(),
        "ClusterServiceVersion" => format!("error {did} csv {name}"),
        "Service" => format!("error updating service: {name}"),
        "ConfigMap" => format!("error updating configmap: {name}"),
        "ServiceAccount" => format!("error {did} service account: {name}"),
        "BundleSecret" => format!("error {did} secret: {name}"),
        "Subscription" | "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => {
            format!("error {did} {} {name}", kind.to_lowercase())
        }
        _ => format!("error {did} unstructured object {name}"),
    };
    format!("{what}: {message}")
}
