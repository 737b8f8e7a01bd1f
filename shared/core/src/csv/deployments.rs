//! The Deployments of an install strategy: their desired state, and whether they have it (olm-behaviour/csv.md#deployments,
//! olm-behaviour/csv.md#deployment-check).

use serde_json::{Value, json};

use super::config::{Config, merge};
use super::overlay;
use super::serving::{self, Server};
use crate::api::cluster_service_version::Csv;
use crate::api::conditions::{AVAILABLE, Conditions};
use crate::api::go_json::GoType;
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::api::{hash, labels};
use crate::plan::{Action, Propagation};
use crate::world::{IndexKey, Reader, kind};

/// Environment variable with the name of an operator's OperatorCondition.
const CONDITION_ENV: &str = "OPERATOR_CONDITION_NAME";

/// Why a Deployment is not as desired (olm-behaviour/csv.md#strategy-errors).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unhealthy {
    /// It has to be written again: missing, or with another spec.
    Changed(String),
    /// It does not exist.
    Missing(String),
    /// It is not available yet.
    Waiting(String),
    /// It exceeded its progress deadline.
    Timeout(String),
    /// The desired state is unknown: the serving certificate is missing.
    Unknown,
}

impl Unhealthy {
    pub(super) fn message(&self) -> &str {
        match self {
            Self::Changed(m) | Self::Missing(m) | Self::Waiting(m) | Self::Timeout(m) => m,
            Self::Unknown => "calculated deployment install is bad",
        }
    }
}

/// Returns the Deployment for an entry of the strategy; the ClusterServiceVersion is its only owner. `None` if its serving
/// certificate does not exist.
fn desired(world: &Reader<'_>, csv: Csv<'_>, entry: &Value) -> Option<Value> {
    let name = object::text(entry, &["name"]);
    let mut spec = object::at(entry, &["spec"]).clone();
    if let Some(server) = Server::from_deployment(csv, entry) {
        serving::mount(server, &server.pair(world)?, &mut spec);
    }
    let annotations = object::map_mut(&mut spec, &["template", "metadata", "annotations"]);
    for (key, value) in object::entries(csv.json, &["metadata", "annotations"]) {
        annotations.insert(key.to_owned(), value.into());
    }
    let config = Config::find(world, csv);
    if let Some(config) = config {
        config.inject(&mut spec);
    }
    if let Some(containers) = spec.pointer_mut("/template/spec/containers").and_then(Value::as_array_mut) {
        for container in containers {
            let env = json!({ "name": CONDITION_ENV, "value": csv.name() });
            merge(object::map_mut(container, &[]), "env", &[env], |a, b| a["name"] == b["name"]);
        }
    }
    object::map_mut(&mut spec, &[]).insert("revisionHistoryLimit".to_owned(), json!(1));
    let spec = GoType::DEPLOYMENT_SPEC.normalise(&spec);
    let mut deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": csv.namespace(),
            "ownerReferences": [object::owner_reference(csv.json, false)],
        },
    });
    for (key, value) in object::entries(entry, &["label"]) {
        object::set_label(&mut deployment, key, value);
    }
    for (key, value) in config.iter().flat_map(|config| config.annotations()) {
        object::set_annotation(&mut deployment, key, value);
    }
    object::set_label(&mut deployment, labels::MANAGED, "true");
    labels::set_owner(&mut deployment, csv.json);
    object::set_label(&mut deployment, labels::DEPLOYMENT_SPEC_HASH, &hash::deep_hash(GoType::DEPLOYMENT_SPEC, &spec));
    object::map_mut(&mut deployment, &[]).insert("spec".to_owned(), spec);
    Some(deployment)
}

/// Returns the writes that create or update the Deployments of the strategy, in its order, and delete those that it no
/// longer contains. Deployments whose certificate is missing are not changed.
pub(super) fn install(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut names = Vec::new();
    for entry in csv.deployments() {
        names.push(object::text(entry, &["name"]).to_owned());
        let Some(desired) = desired(world, csv, entry) else { continue };
        match world.json(&kind::DEPLOYMENT, csv.namespace(), object::name(&desired)) {
            None => actions.push(Action::Create(desired)),
            Some(live) => actions.extend(overwrite(live, &desired).map(Action::Update)),
        }
    }
    for object in world.indexed(IndexKey::Owner(csv.uid().to_owned())) {
        let json = object.json();
        let ours = labels::is_owner(json, csv.json);
        let surplus = object::gvk(json).kind == "Deployment" && ours && !names.iter().any(|n| n == object::name(json));
        if surplus && !object::is_deleting(json) {
            actions.push(Action::delete(json, Propagation::Foreground));
        }
    }
    actions
}

/// Returns the live Deployment with the desired spec, owner and labels; other metadata is preserved. `None` if nothing
/// changes.
fn overwrite(live: &Value, desired: &Value) -> Option<Value> {
    let mut new = live.clone();
    overlay::take_over(&mut new, desired);
    set_annotations(&mut new, live, desired);
    let (live_spec, spec) = (object::at(live, &["spec"]), object::at(desired, &["spec"]));
    if object::covers(live_spec, spec) && adds_only_defaults(live_spec, spec) && new == *live {
        return None;
    }
    object::map_mut(&mut new, &[]).insert("spec".to_owned(), spec.clone());
    Some(new)
}

/// Returns whether the fields of a Deployment's spec that are not desired are defaults of the API server. Otherwise it was
/// edited. If a default is mistaken for an edit, the Deployment is written once more without effect.
fn adds_only_defaults(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), _) => live.iter().all(|(key, value)| match desired.get(key) {
            Some(desired) if !desired.is_null() => adds_only_defaults(value, desired),
            _ => is_default(key, value),
        }),
        (Value::Array(live), Value::Array(desired)) => live.iter().zip(desired).all(|(l, d)| adds_only_defaults(l, d)),
        _ => true,
    }
}

fn is_default(field: &str, value: &Value) -> bool {
    let default = match field {
        // Derived from other fields.
        "serviceAccount" | "imagePullPolicy" | "hostPort" | "requests" => return true,
        "replicas" | "timeoutSeconds" | "successThreshold" => json!(1),
        "failureThreshold" => json!(3),
        "periodSeconds" => json!(10),
        "terminationGracePeriodSeconds" => json!(30),
        "defaultMode" => json!(0o644),
        "progressDeadlineSeconds" => json!(600),
        "maxSurge" | "maxUnavailable" => json!("25%"),
        "type" => return value == "RollingUpdate" || value == "",
        "restartPolicy" => json!("Always"),
        "dnsPolicy" => json!("ClusterFirst"),
        "schedulerName" => json!("default-scheduler"),
        "terminationMessagePath" => json!("/dev/termination-log"),
        "terminationMessagePolicy" => json!("File"),
        "protocol" => json!("TCP"),
        "scheme" => json!("HTTP"),
        "apiVersion" => json!("v1"),
        "divisor" => json!("0"),
        _ => Value::Null,
    };
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.iter().all(|(field, value)| is_default(field, value)),
        _ => !default.is_null() && *value == default,
    }
}

/// Sets the annotations of a Subscription's config, instead of those that a previous config set on the Deployment and its
/// pods.
fn set_annotations(new: &mut Value, live: &Value, desired: &Value) {
    let wanted = Metadata::new(desired).annotations();
    for (key, value) in object::entries(live, &["metadata", "annotations"]) {
        let in_pods = object::text(live, &["spec", "template", "metadata", "annotations", key]) == value;
        if in_pods && wanted.get(key).is_none() {
            object::map_mut(new, &["metadata", "annotations"]).remove(key);
        }
    }
    for (key, value) in object::entries(desired, &["metadata", "annotations"]) {
        object::set_annotation(new, key, value);
    }
}

/// Checks that all Deployments of the strategy exist, are as desired, and available. The error is that of the first one
/// that is not.
///
/// Unlike OLM this compares a Deployment with its desired state before it checks its availability: an unavailable
/// Deployment whose ClusterServiceVersion was fixed is written again instead of being waited for.
pub(super) fn check(world: &Reader<'_>, csv: Csv<'_>) -> Result<(), Unhealthy> {
    for entry in csv.deployments() {
        let desired = desired(world, csv, entry).ok_or(Unhealthy::Unknown)?;
        let name = object::name(&desired);
        let live = world
            .json(&kind::DEPLOYMENT, csv.namespace(), name)
            .filter(|live| labels::is_owner(live, csv.json))
            .ok_or_else(|| Unhealthy::Missing(format!("missing deployment with name={name}")))?;
        unchanged(csv, live, &desired)?;
        available(live, name)?;
    }
    Ok(())
}

fn unchanged(csv: Csv<'_>, live: &Value, desired: &Value) -> Result<(), Unhealthy> {
    let name = object::name(desired);
    let template = object::at(live, &["spec", "template", "metadata", "annotations"]);
    for (key, expected) in object::entries(csv.json, &["metadata", "annotations"]) {
        if template.as_object().is_none_or(serde_json::Map::is_empty) {
            return Err(Unhealthy::Changed("no annotations found on deployment".to_owned()));
        }
        match template.get(key).and_then(Value::as_str) {
            None => {
                let message = format!("annotations on deployment does not contain expected key: {key}");
                return Err(Unhealthy::Changed(message));
            }
            Some(found) if found != expected => {
                let message =
                    format!("unexpected annotation on deployment. Expected {key}:{expected}, found {key}:{found}");
                return Err(Unhealthy::Changed(message));
            }
            Some(_) => {}
        }
    }
    let new = object::label(desired, labels::DEPLOYMENT_SPEC_HASH).unwrap_or_default();
    match object::label(live, labels::DEPLOYMENT_SPEC_HASH) {
        None => Err(Unhealthy::Changed(format!("deployment {name} doesn't have a spec hash, update it"))),
        Some(old) if old != new => {
            Err(Unhealthy::Changed(format!("deployment changed old hash={old}, new hash={new}")))
        }
        Some(_) => Ok(()),
    }
}

fn available(live: &Value, name: &str) -> Result<(), Unhealthy> {
    let number = |path: &[&str]| object::at(live, path).as_i64().unwrap_or_default();
    let conditions = Conditions::new(live);
    let waiting =
        |why: String| Err(Unhealthy::Waiting(format!("waiting for deployment {name} to become ready: {why}")));
    if object::generation(live) > number(&["status", "observedGeneration"]) {
        return waiting(format!("waiting for spec update of deployment \"{name}\" to be observed..."));
    }
    if conditions.find("Progressing").is_some_and(|c| c.reason() == "ProgressDeadlineExceeded") {
        return Err(Unhealthy::Timeout(format!(
            "deployment {name} not ready before timeout: deployment \"{name}\" exceeded its progress deadline"
        )));
    }
    let outdated = number(&["status", "replicas"]) - number(&["status", "updatedReplicas"]);
    if outdated > 0 {
        return waiting(format!("deployment \"{name}\" waiting for {outdated} outdated replica(s) to be terminated"));
    }
    match conditions.find(AVAILABLE) {
        Some(c) if c.is_true() => Ok(()),
        Some(c) => waiting(format!("deployment \"{name}\" not available: {}", c.message())),
        None => waiting(format!("deployment \"{name}\" not available: missing condition \"Available\"")),
    }
}
