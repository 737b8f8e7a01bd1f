//! Steps that create or update CustomResourceDefinitions (olm-behaviour/installplan.md#crds).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::existing_resources::{self, Existing};
use super::step::{self, Outcome};
use crate::api::cluster_service_version::{Csv, is_copy};
use crate::api::custom_resource_definition::{CrdVersion, CustomResourceDefinition};
use crate::api::hash::fnv64a;
use crate::api::install_plan::{InstallPlan, Step, StepStatus};
use crate::api::labels::{self, INSTALLED_ALONGSIDE};
use crate::api::metadata::Metadata;
use crate::api::object::{self, ObjectRef};
use crate::membership;
use crate::plan::{Action, Question};
use crate::world::{Reader, kind};

/// Returns the message while the step waits for that.
pub(super) fn waiting(step: &Value) -> String {
    format!("CustomResourceDefinition {} is not established yet", Step::new(step).name())
}

/// Returns the outcome of the step of a CustomResourceDefinition. The World contains definitions without their schemas, so it is unknown
/// whether an existing one has to be changed.
pub(super) fn outcome(world: &Reader<'_>, plan: &Value, step: &Value, now: Timestamp) -> Outcome {
    let mut desired = match step::manifest(step) {
        Ok(desired) => desired,
        Err(message) => return Outcome::Fail(message, None),
    };
    let version = step::gvk(step).version;
    if !matches!(version.as_str(), "v1" | "v1beta1") {
        return Outcome::Fail(format!("CRD APIVersion from manifest not supported: {version}"), None);
    }
    let name = object::name(&desired).to_owned();
    let resolving = Step::new(step).resolving();
    let csv = format!("{}/{resolving}", object::namespace(plan));
    // A step without a ClusterServiceVersion sets no annotation.
    let mark = (!resolving.is_empty()).then(|| format!("{INSTALLED_ALONGSIDE}{}", fnv64a(&csv)));
    let note = |definition: &mut Value| {
        if let Some(mark) = &mark {
            object::set_annotation(definition, mark, &csv);
        }
    };
    let Some(live) = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", &name) else {
        note(&mut desired);
        return Outcome::act(Action::Create(desired), StepStatus::WaitingForApi, false);
    };
    let alongside =
        || object::entries(live, &["metadata", "annotations"]).filter(|(key, _)| key.starts_with(INSTALLED_ALONGSIDE));
    let is_ours = step::is_made_by(world, plan, step, live)
        && (mark.is_some() || object::label(live, labels::MANAGED) == Some("true"))
        && alongside().map(|(key, _)| key).eq(mark.as_deref());
    if is_ours || Step::new(step).status() == StepStatus::WaitingForApi {
        return if CustomResourceDefinition::new(live).is_established() {
            Outcome::Done(StepStatus::Created)
        } else {
            Outcome::Wait(StepStatus::WaitingForApi, waiting(step))
        };
    }
    if let Some(gone) = lost_version(live, &desired) {
        let message = format!(
            "risk of data loss updating {name:?}: new CRD removes version {gone} that is listed as a stored version on the \
             existing CRD"
        );
        return Outcome::Fail(message, None);
    }
    let mut warning = None;
    match existing_resources::existing(world, plan, live, &desired, now) {
        Existing::Valid => {}
        Existing::Unknown(question) => return Outcome::Ask(Question::CheckSchema(question)),
        Existing::Unreadable(refusal, again) if refusal.is_forbidden() => {
            return Outcome::Denied(existing_resources::prefixed(&name, &refusal.message), Some(again));
        }
        Existing::Unreadable(refusal, again) => {
            return Outcome::Fail(existing_resources::prefixed(&name, &refusal.message), Some(again));
        }
        // A webhook may convert the objects so that they fit.
        Existing::Invalid(found, _) if CustomResourceDefinition::new(&desired).is_converted_by_webhook() => {
            warning = Some(existing_resources::prefixed(&name, &found));
        }
        Existing::Invalid(found, again) => {
            return Outcome::Fail(existing_resources::prefixed(&name, &found), Some(again));
        }
    }
    let mut spec = desired["spec"].clone();
    erase_others(&mut spec, object::at(live, &["spec"]));
    if !CustomResourceDefinition::new(&desired).is_converted_by_webhook() && is_converted(world, plan, &name) {
        // OLM has set the conversion for the webhook of an operator in the definition, and maintains it.
        object::map_mut(&mut spec, &[]).remove("conversion");
    }
    let labels = Metadata::new(&desired).labels();
    let mut patch = json!({ "metadata": { "labels": labels }, "spec": spec });
    for (key, value) in object::entries(&desired, &["metadata", "annotations"]) {
        object::set_annotation(&mut patch, key, value);
    }
    // The ClusterServiceVersion takes the CRD over from those that it replaces.
    let replaced = replaced_by(world, plan, resolving);
    for (key, of) in alongside() {
        let stays = of.split_once('/').is_some_and(|(namespace, name)| {
            let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
            csv.is_some_and(|c| !is_copy(c)) && !replaced.iter().any(|r| r == of)
        });
        if !stays {
            object::map_mut(&mut patch, &["metadata", "annotations"]).insert(key.to_owned(), Value::Null);
        }
    }
    note(&mut patch);
    let target = ObjectRef { gvk: step::gvk(step), namespace: String::new(), name };
    let action = Action::Patch { target, uid: object::uid(live).to_owned(), patch };
    Outcome::Act { action, after: StepStatus::Present, blind: true, warning }
}

/// Adds nulls to a merge patch for all fields that the live object has and the patch does not, so that the result equals the patch.
fn erase_others(patch: &mut Value, live: &Value) {
    for (key, value) in live.as_object().into_iter().flatten() {
        match patch.get_mut(key) {
            Some(wanted) if wanted.is_object() => erase_others(wanted, value),
            Some(_) => {}
            None => {
                object::map_mut(patch, &[]).insert(key.clone(), Value::Null);
            }
        }
    }
}

/// Reports whether an operator of the namespace has a conversion webhook for that definition.
fn is_converted(world: &Reader<'_>, plan: &Value, definition: &str) -> bool {
    let converts = |csv: &Value| {
        let webhooks = Csv::new(csv).webhooks().iter();
        webhooks.flat_map(|w| object::list(w, &["conversionCRDs"])).any(|name| name == definition)
    };
    membership::originals(world, object::namespace(plan)).any(converts)
}

/// Returns the first version in which objects may be stored and that the new definition does not have.
pub(super) fn lost_version<'l>(live: &'l Value, desired: &Value) -> Option<&'l str> {
    let versions = CustomResourceDefinition::new(desired).versions().map(CrdVersion::name);
    let of_v1beta1 = object::text(desired, &["spec", "version"]);
    let versions: Vec<&str> = versions.chain([of_v1beta1]).collect();
    CustomResourceDefinition::new(live).stored_versions().find(|stored| !versions.contains(stored))
}

/// Returns the chain of ClusterServiceVersions that this one replaces, each as `namespace/name`. The newest may not exist yet; then the plan
/// contains it.
fn replaced_by(world: &Reader<'_>, plan: &Value, csv: &str) -> Vec<String> {
    let namespace = object::namespace(plan);
    let planned = InstallPlan::new(plan).steps().find(|step| step.is_csv() && step.name() == csv);
    let manifest = planned.and_then(|step| step::manifest(step.json).ok()).unwrap_or_default();
    let mut replaced = Vec::new();
    let mut older = Csv::new(&manifest).replaces();
    while !older.is_empty() && older != csv && !replaced.iter().any(|seen| *seen == format!("{namespace}/{older}")) {
        replaced.push(format!("{namespace}/{older}"));
        let found = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, older);
        older = found.map_or("", |csv| Csv::new(csv).replaces());
    }
    replaced
}
