//! Effects of a plan that deleting the operator, or returning to its older version, does not undo.

use super::document::{By, Change, CsvChange, Explanation, Irreversible, Object};
use super::simulated_plan::{CSV, SimulatedPlan};
use crate::api::metadata::Metadata;
use crate::api::{labels, object};

/// Returns the effects that cannot be undone.
pub(super) fn changes(simulated: &SimulatedPlan, explanation: &Explanation) -> Vec<Irreversible> {
    let mut all = Vec::new();
    let mut add = |object: String, message: String| all.push(Irreversible { object, message });
    for csv in explanation.csvs.iter().filter(|csv| matches!(csv.change, CsvChange::Upgrade | CsvChange::Downgrade)) {
        let old = csv.replaces.as_deref().unwrap_or_default();
        add(format!("{CSV} {}", csv.name), format!("cannot be rolled back to {old} by OLM"));
    }
    let is_reached = |name: &str| {
        let found = explanation.objects.iter().find(|o| o.gvk.kind == "CustomResourceDefinition" && o.name == name);
        found.is_some_and(|o| matches!(o.change, Change::Create | Change::Update))
    };
    for crd in explanation.crds.iter().filter(|crd| is_reached(&crd.name)) {
        let object = format!("CustomResourceDefinition {}", crd.name);
        match (&crd.change, &crd.storage) {
            (Change::Create, _) => {
                add(object, "stays when the operator is deleted, with its custom resources".to_owned());
            }
            (_, Some((_, new))) => {
                add(
                    object,
                    format!(
                        "stores objects in version {new} from then on, which the previous definition does not have"
                    ),
                );
            }
            (_, None) if !crd.removed_versions.is_empty() => {
                let versions = crd.removed_versions.join(", ");
                add(object, format!("is no longer served in version {versions}"));
            }
            _ => {}
        }
    }
    for object in &explanation.objects {
        let is_crd = object.gvk.kind == "CustomResourceDefinition";
        if object.change == Change::Create && object.by == By::Step && !is_crd && stays(simulated, object) {
            let message = "stays when the operator is deleted, because it has no owner".to_owned();
            add(format!("{} {}", object.gvk.kind, object.name), message);
        }
    }
    all
}

/// Reports whether the object stays when its operator is deleted.
fn stays(simulated: &SimulatedPlan, Object { gvk, namespace, name, .. }: &Object) -> bool {
    if matches!(gvk.kind.as_str(), CSV | "Subscription") {
        return false;
    }
    let made = simulated.after.api().find(&gvk.group, &gvk.kind, namespace, name);
    made.is_some_and(|o| Metadata::new(o).owner_references().is_empty() && object::label(o, labels::OWNER).is_none())
}
