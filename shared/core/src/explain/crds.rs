//! Changes of CustomResourceDefinitions, and their effects on existing custom resources.

use serde_json::{Value, json};

use super::cluster_copy::ClusterCopy;
use super::document::{Change, Crd};
use super::simulated_plan::{self, SimulatedPlan};
use crate::api::custom_resource_definition::{CrdVersion, CustomResourceDefinition};
use crate::api::install_plan::Step;
use crate::api::kinds::{self, API_EXTENSIONS};
use crate::api::object;
use crate::installplan;
use crate::structural::{SchemaCheck, Violation};

const KIND: &str = kinds::CUSTOM_RESOURCE_DEFINITION.kind;

/// Returns the CustomResourceDefinitions of the plan, by name, that use an API version that the cluster serves.
pub(super) fn changes(simulated: &SimulatedPlan, copy: &ClusterCopy) -> Vec<Crd> {
    let steps = simulated.steps().iter().filter(|s| Step::new(s).kind() == KIND);
    let mut crds: Vec<Crd> = Vec::new();
    for step in steps {
        let Some(desired) = simulated_plan::manifest(step) else { continue };
        let name = Step::new(step).name();
        if crds.iter().any(|known| known.name == name) {
            continue;
        }
        let live = simulated.before.api().find(API_EXTENSIONS, KIND, "", name);
        let version = installplan::kind_made(step).version;
        if live.is_none() && !simulated.before.api().served_versions(API_EXTENSIONS, KIND).contains(&version.as_str()) {
            // It cannot be created; `unserved_kinds` reports that.
            continue;
        }
        crds.push(match live {
            Some(live) => compared(simulated, copy, live, &desired),
            None => Crd {
                name: name.to_owned(),
                change: Change::Create,
                safe: true,
                added_versions: served(&desired),
                existing: Some(0),
                ..Crd::default()
            },
        });
    }
    crds.sort_by(|a, b| a.name.cmp(&b.name));
    crds
}

fn compared(simulated: &SimulatedPlan, copy: &ClusterCopy, live: &Value, desired: &Value) -> Crd {
    let name = object::name(live);
    let (old, new) = (served(live), served(desired));
    let only_in = |one: &[String], other: &[String]| -> Vec<String> {
        one.iter().filter(|version| !other.contains(version)).cloned().collect()
    };
    let is_unread = copy.unreadable.iter().any(|unreadable| unreadable.resource == name);
    let question = question(live, desired);
    let found = match copy.fits.get(&(question.crd.clone(), question.digest())) {
        Some(found) => found.clone(),
        None => simulated.before.fitting(&question),
    };
    // Each object is counted once per version whose schema was checked.
    let existing = found.looked_at.checked_div(question.schemas.len() as u64).unwrap_or_default();
    let after = simulated.after.api().find(API_EXTENSIONS, KIND, "", name);
    let is_changed = after.is_some_and(|after| after["spec"] != live["spec"]) || !object::covers(live, &spec(desired));
    let mut crd = Crd {
        name: name.to_owned(),
        change: if is_changed { Change::Update } else { Change::Unchanged },
        safe: true,
        added_versions: only_in(&new, &old),
        removed_versions: only_in(&old, &new),
        storage: Some((storage(live), storage(desired))).filter(|(old, new)| old != new),
        existing: (!is_unread).then_some(existing),
        ..Crd::default()
    };
    crd.invalid_count = found.invalid;
    let named = |all: &[Violation]| all.iter().map(|m| format!("{} ({}): {}", m.name, m.version, m.problem)).collect();
    crd.invalid = named(&found.first);
    crd.loss_count = found.losses;
    crd.losses = named(&found.first_losses);
    let message = match installplan::lost_version(live, desired) {
        Some(version) => format!(
            "version {version} is removed, but objects may still be stored in it (status.storedVersions): OLM refuses the change"
        ),
        None if crd.invalid_count > 0 && CustomResourceDefinition::new(desired).is_converted_by_webhook() => format!(
            "{} do not fit the new schema; OLM continues nevertheless, because a webhook converts them",
            counted(crd.invalid_count, existing)
        ),
        None if crd.invalid_count > 0 => {
            format!("{} do not fit the new schema: OLM refuses the change", counted(crd.invalid_count, existing))
        }
        None if is_unread && is_changed => "its custom resources could not be read".to_owned(),
        None if crd.loss_count > 0 => {
            format!("{} lose fields that the new schema does not define", counted(crd.loss_count, existing))
        }
        None => String::new(),
    };
    crd.safe = message.is_empty();
    crd.message = message;
    crd
}

/// Returns the check of the existing custom resources against their new schemas. If no schema changes, the check only counts them.
fn question(live: &Value, desired: &Value) -> SchemaCheck {
    installplan::schema_check_of(live, desired).unwrap_or_else(|| {
        let crd = CustomResourceDefinition::new(live);
        let mut served: Vec<CrdVersion<'_>> = crd.served().collect();
        served.sort_by_key(|version| !version.is_stored());
        SchemaCheck {
            crd: crd.name().to_owned(),
            group: crd.group().to_owned(),
            kind: crd.kind().to_owned(),
            plural: crd.plural().to_owned(),
            namespaced: crd.is_namespaced(),
            schemas: served.iter().take(1).map(|version| (version.name().to_owned(), json!({}))).collect(),
        }
    })
}

/// Returns the checks for the definitions that change. Their custom resources are not in the copy, so the caller has to run them.
pub(super) fn questions(simulated: &SimulatedPlan, crds: &[Crd]) -> Vec<SchemaCheck> {
    let is_changed = |name: &str| crds.iter().any(|crd| crd.name == name && crd.change == Change::Update);
    let steps = simulated.steps().iter().filter(|s| Step::new(s).kind() == KIND);
    let changed = steps.filter(|s| is_changed(Step::new(s).name()));
    let questions = changed.filter_map(|step| {
        let live = simulated.before.api().find(API_EXTENSIONS, KIND, "", Step::new(step).name())?;
        Some(question(live, &simulated_plan::manifest(step)?))
    });
    questions.collect()
}

fn counted(invalid: u64, existing: u64) -> String {
    format!("{} of {existing} existing objects", invalid.min(existing))
}

fn spec(crd: &Value) -> Value {
    serde_json::json!({ "spec": crd["spec"] })
}

fn served(crd: &Value) -> Vec<String> {
    CustomResourceDefinition::new(crd).served().map(|version| version.name().to_owned()).collect()
}

fn storage(crd: &Value) -> String {
    CustomResourceDefinition::new(crd).storage_version().to_owned()
}
