//! Tests that the state of a recording of OLM needs no changes: after each step of each scenario, the controllers without history plan no
//! writes.
//!
//! Recordings are normalised: removed parts are restored here, or excluded from the comparison.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dispatch;
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::labels;
use crate::api::object::{self, ObjectRef};
use crate::plan::{Action, Controller, Key};
use crate::settings::Settings;
use crate::world::{Reader, World};

/// Controllers without history: their plan depends only on the current state.
const KEEPERS: [Controller; 8] = [
    Controller::OperatorGroup,
    Controller::Namespace,
    Controller::CopiedCsv,
    Controller::ProvidedApiRoles,
    Controller::OperatorCondition,
    Controller::Adoption,
    Controller::Operator,
    Controller::OlmConfig,
];

/// Objects by their names in recordings: `Kind/namespace/name`.
type Objects = BTreeMap<String, Value>;

#[test]
fn keepers_have_nothing_to_do_after_a_recorded_step() {
    let mut found = Vec::new();
    for (step, objects) in recorded_steps() {
        for (key, action) in plans(&world(&objects)) {
            let target = action.target().to_string();
            if !is_masked(&objects[&target]) {
                found.push(format!("{step}: {key} plans to {} {target}: {action:?}", action.verb().as_str()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn keepers_make_what_was_lost_again() {
    let mut made = 0;
    let mut found = Vec::new();
    for (step, mut objects) in recorded_steps() {
        let kept: Vec<String> = objects.iter().filter(|(_, o)| is_kept(o, &objects)).map(|(n, _)| n.clone()).collect();
        for name in kept {
            let Some(lost) = objects.remove(&name) else { continue };
            let plans = plans(&world(&objects));
            let new = plans.iter().find_map(|(_, action)| match action {
                Action::Create(new) if ObjectRef::from_object(new).to_string() == name => Some(new),
                _ => None,
            });
            match new {
                Some(new) if essence(new) == essence(&lost) => made += 1,
                Some(new) => found.push(format!("{step}: {name}\n  was  {}\n  made {}", essence(&lost), essence(new))),
                None => found.push(format!("{step}: {name} is not made again")),
            }
            objects.insert(name, lost);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(made > 0 || recorded_steps().is_empty(), "no object was lost and made again");
}

/// Reports whether it is an object that only these controllers create, and would create in this state.
fn is_kept(object: &Value, objects: &Objects) -> bool {
    let namespace = object::namespace(object);
    let owner = object.pointer("/metadata/ownerReferences/0").unwrap_or(&Value::Null);
    let kind = object::kind(object);
    let original = |namespace: &str| {
        objects
            .get(&format!("ClusterServiceVersion/{namespace}/{}", object::name(object)))
            .is_some_and(Value::is_object)
    };
    match (kind, object::kind(owner)) {
        _ if is_masked(object) => false,
        ("OperatorCondition", _) => original(namespace),
        ("Role" | "RoleBinding", "OperatorCondition") | ("Operator", _) => true,
        ("ClusterRole", "customresourcedefinition") => {
            objects.values().any(|csv| provides(csv, object::text(owner, &["name"])))
        }
        ("ClusterRole", _) => object::label(object, "olm.owner.kind") == Some("OperatorGroup"),
        ("ClusterServiceVersion", _) => object::label(object, labels::COPIED_FROM).is_some_and(original),
        ("Role" | "RoleBinding", "ClusterServiceVersion") => object::label(object, labels::COPIED_FROM).is_some(),
        _ => false,
    }
}

fn provides(csv: &Value, crd: &str) -> bool {
    Csv::new(csv).phase() == Phase::Succeeded
        && Csv::new(csv).owned_crds().iter().any(|d| object::text(d, &["name"]) == crd)
}

/// Returns an object as it is created: without its status, and without the fields that the API server, Kubernetes' aggregation and adoption
/// add later.
fn essence(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = object::map_mut(&mut object, &[]);
    fields.remove("status");
    let name = fields["metadata"]["name"].as_str().unwrap();
    if name.starts_with("olm.og.") {
        fields.insert("rules".to_owned(), Value::Null);
    }
    if fields["kind"] == "OperatorCondition" {
        let spec = object::map_mut(&mut object, &["spec"]);
        spec.retain(|field, _| field == "deployments" || field == "serviceAccounts");
    }
    let metadata = object::map_mut(&mut object, &["metadata"]);
    metadata.remove("uid");
    metadata.remove("generation");
    object::map_mut(&mut object, &["metadata", "labels"]).retain(|key, _| !key.starts_with("operators.coreos.com/"));
    if object["metadata"]["labels"] == json!({}) {
        object::map_mut(&mut object, &["metadata"]).remove("labels");
    }
    object
}

/// Returns the objects after each step of each recording.
fn recorded_steps() -> Vec<(String, Objects)> {
    let Some(folders) = crate::testing::entries("scenarios") else { return Vec::new() };
    let mut steps = Vec::new();
    for folder in folders {
        let scenario = folder.file_name().unwrap().to_string_lossy().into_owned();
        let golden = folder.join("golden.yaml");
        // In recordings of real operators the specs of ClusterServiceVersions are replaced by their hashes.
        if scenario.starts_with("real-") || !golden.is_file() {
            continue;
        }
        let golden: Value = serde_yaml::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
        let mut objects = before();
        for step in object::list(&golden, &["steps"]) {
            for gone in object::list(step, &["gone"]) {
                objects.remove(gone.as_str().unwrap());
            }
            let changed = object::at(step, &["changed"]).as_object().into_iter().flatten();
            objects.extend(changed.map(|(name, object)| (name.clone(), restore(name, object))));
            steps.push((format!("{scenario}, {}", object::text(step, &["name"])), objects.clone()));
        }
    }
    steps
}

fn world(objects: &Objects) -> World {
    let mut world = World::new();
    for object in objects.values().filter(|o| o.is_object()) {
        world.apply(object.clone());
    }
    world
}

/// Reports whether the object contains masked values, which differ between recordings.
fn is_masked(object: &Value) -> bool {
    object.to_string().contains("<unstable>")
}

/// An object as it was before it was recorded, as far as that matters.
fn restore(name: &str, recorded: &Value) -> Value {
    if !recorded.is_object() {
        return Value::Null;
    }
    let mut object = recorded.clone();
    let metadata = object::map_mut(&mut object, &["metadata"]);
    metadata.insert("uid".to_owned(), format!("<uid of {name}>").into());
    metadata.insert("generation".to_owned(), 1.into());
    if object["kind"] == "OperatorCondition" {
        let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            condition["observedGeneration"] = 1.into();
        }
    }
    without_conditions(&mut object);
    object
}

/// Removes conditions, which are recorded differently in an object than in the Operator whose component it is.
fn without_conditions(object: &mut Value) {
    match object["kind"].as_str() {
        Some("Deployment" | "CustomResourceDefinition" | "Subscription") => {
            object::map_mut(object, &["status"]).remove("conditions");
        }
        Some("Operator") => {
            let references = object.pointer_mut("/status/components/refs").and_then(Value::as_array_mut);
            for reference in references.into_iter().flatten() {
                if reference["kind"] != "ClusterServiceVersion" && reference["kind"] != "InstallPlan" {
                    object::map_mut(reference, &[]).remove("conditions");
                }
            }
        }
        _ => {}
    }
}

/// Returns the relevant objects that exist at the start of every recording.
fn before() -> Objects {
    let namespaces = ["default", "kube-node-lease", "kube-public", "kube-system", "olm", "operators"];
    let namespaces = namespaces.iter().map(|name| {
        let json = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        (format!("Namespace/{name}"), json)
    });
    namespaces.collect()
}

/// Returns all actions that these controllers plan.
fn plans(world: &World) -> Vec<(Key, Action)> {
    let now = "2026-11-21T13:00:00Z".parse().unwrap();
    let mut keys: Vec<Key> = Vec::new();
    for object in world.objects().map(|o| o.json()) {
        keys.extend(KEEPERS.map(|controller| Key::new(controller, object::namespace(object), object::name(object))));
        let labels = object::entries(object, &["metadata", "labels"]);
        let components = labels.filter_map(|(key, _)| key.strip_prefix("operators.coreos.com/"));
        keys.extend(components.map(|name| Key::new(Controller::Operator, "", name)));
    }
    keys.sort();
    keys.dedup();
    let plan = |key: &Key| dispatch::plan(&Settings::default(), &Reader::new(world), key, now).actions;
    keys.into_iter().flat_map(|key| plan(&key).into_iter().map(move |action| (key.clone(), action))).collect()
}
