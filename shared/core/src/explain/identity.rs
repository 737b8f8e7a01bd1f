//! Which created objects take the place of deleted ones. An upgrade recreates objects under other names: the ClusterServiceVersion, and
//! those whose names OLM generates from it, with hashes. Compared by name they are unrelated; compared by identity they are changes.
//!
//! ```text
//!   csvs (new replaces old) + objects --pair--> Object::replaces, Object::replaced_by --predecessors--> old content under the new names
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::document::{Change, Csv, Explanation, Object, Totals};
use crate::api::hash::sha256_hex;
use crate::api::kinds;
use crate::api::metadata::Metadata;
use crate::api::object;

/// The kinds whose names OLM generates, or derives from the name of the ClusterServiceVersion.
const GENERATED: [&str; 8] = [
    kinds::CLUSTER_SERVICE_VERSION.kind,
    OPERATOR_CONDITION,
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

const OPERATOR_CONDITION: &str = kinds::OPERATOR_CONDITION.kind;

/// The shortest suffix that the API server or OLM generate.
const SHORTEST_SUFFIX: usize = 5;

/// Group, kind and namespace of objects, and the ClusterServiceVersion that they belong to after the plan.
type Group = (String, String, String, String);

/// Marks the created and deleted objects that are the same object of consecutive versions of an operator.
pub(super) fn pair(objects: &mut [Object], csvs: &[Csv]) {
    let successors: BTreeMap<&str, &str> =
        csvs.iter().filter_map(|csv| Some((csv.replaces.as_deref()?, csv.name.as_str()))).collect();
    if successors.is_empty() {
        return;
    }
    let accounts = accounts(objects);
    let mut groups: BTreeMap<Group, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (index, object) in objects.iter().enumerate() {
        let csv = csv_of(object);
        let (csv, is_created) = match object.change {
            Change::Create => (Some(csv), true),
            Change::Delete => (successors.get(csv).copied(), false),
            _ => continue,
        };
        let Some(csv) = csv.filter(|csv| !csv.is_empty()) else { continue };
        let key = (object.gvk.group.clone(), object.gvk.kind.clone(), object.namespace.clone(), csv.to_owned());
        let (created, deleted) = groups.entry(key).or_default();
        if is_created { created } else { deleted }.push(index);
    }
    let mut pairs = Vec::new();
    for ((_, kind, _, csv), (created, deleted)) in groups {
        let old = successors.iter().find(|(_, new)| **new == csv).map_or("", |(old, _)| old);
        let stem = |index: &usize| stem(&objects[*index].name.replace(old, &csv));
        let mut open = Open { created, deleted, pairs: Vec::new() };
        open.pair_by(|index| Some(content(&objects[*index])));
        if GENERATED.contains(&kind.as_str()) {
            open.pair_by(|index| Some(format!("{} {}", stem(index), accounts.get(index)?)));
            open.pair_by(|index| Some(stem(index)));
        }
        if open.created.len() == 1 && (GENERATED.contains(&kind.as_str()) || kind == kinds::DEPLOYMENT.kind) {
            open.pair_by(|_| Some(String::new()));
        }
        pairs.append(&mut open.pairs);
    }
    for (created, deleted) in pairs {
        let (new, old) = (objects[created].name.clone(), objects[deleted].name.clone());
        (objects[created].replaces, objects[deleted].replaced_by) = (old, new);
    }
}

/// Created and deleted objects of one kind that are not paired yet.
struct Open {
    created: Vec<usize>,
    deleted: Vec<usize>,
    pairs: Vec<(usize, usize)>,
}

impl Open {
    /// Pairs objects with equal keys, in their order.
    fn pair_by(&mut self, key: impl Fn(&usize) -> Option<String>) {
        let mut known: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
        for index in &self.deleted {
            if let Some(key) = key(index) {
                known.entry(key).or_default().push_back(*index);
            }
        }
        let mut paired = BTreeSet::new();
        self.created.retain(|index| {
            let old = key(index).and_then(|key| known.get_mut(&key)?.pop_front());
            if let Some(old) = old {
                self.pairs.push((*index, old));
                paired.insert(old);
            }
            old.is_none()
        });
        self.deleted.retain(|index| !paired.contains(index));
    }
}

/// Returns the ClusterServiceVersion that an object belongs to: itself, if it is one. The permissions of an OperatorCondition belong to
/// the ClusterServiceVersion of that name.
fn csv_of(object: &Object) -> &str {
    if object.gvk.kind == kinds::CLUSTER_SERVICE_VERSION.kind {
        return &object.name;
    }
    if !object.csv.is_empty() {
        return &object.csv;
    }
    let owners = Metadata::new(json(object)).owner_references();
    let condition = owners.iter().find(|owner| object::kind(owner) == OPERATOR_CONDITION);
    condition.map_or("", |owner| object::text(owner, &["name"]))
}

fn json(object: &Object) -> &Value {
    if object.change == Change::Delete { &object.before } else { &object.after }
}

/// Returns the digest of the content without names: metadata and references to a role are omitted.
fn content(object: &Object) -> String {
    let mut json = json(object).clone();
    if let Some(fields) = json.as_object_mut() {
        fields.remove("metadata");
        fields.remove("roleRef");
    }
    sha256_hex(json.to_string())
}

/// Returns a name without a generated suffix.
fn stem(name: &str) -> String {
    let is_generated = |suffix: &str| {
        suffix.len() >= SHORTEST_SUFFIX && suffix.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    match name.rsplit_once('-') {
        Some((stem, suffix)) if is_generated(suffix) => stem.to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns the accounts of bindings and of the roles that they refer to, by the index of the object.
fn accounts(objects: &[Object]) -> BTreeMap<usize, String> {
    let mut of_roles: BTreeMap<(bool, &str, &str, &str), BTreeSet<String>> = BTreeMap::new();
    let mut accounts = BTreeMap::new();
    let is_created = |object: &Object| object.change == Change::Create;
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| object.gvk.kind.ends_with("RoleBinding")) {
        let json = json(object);
        let subjects: BTreeSet<String> = object::list(json, &["subjects"])
            .iter()
            .map(|subject| object::text(subject, &["name"]).to_owned())
            .collect();
        let role = object::text(json, &["roleRef", "name"]);
        let kind = object::text(json, &["roleRef", "kind"]);
        let namespace = if kind == "ClusterRole" { "" } else { &object.namespace };
        of_roles.entry((is_created(object), kind, namespace, role)).or_default().extend(subjects.iter().cloned());
        accounts.insert(index, joined(&subjects));
    }
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| object.gvk.kind.ends_with("Role")) {
        let key = (is_created(object), object.gvk.kind.as_str(), object.namespace.as_str(), object.name.as_str());
        if let Some(subjects) = of_roles.get(&key) {
            accounts.insert(index, joined(subjects));
        }
    }
    accounts
}

fn joined(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Counts what a plan does. An object that takes the place of another one is a change.
pub(super) fn totals(explanation: &Explanation) -> Totals {
    let count = |is_counted: &dyn Fn(&Object) -> bool| {
        explanation.objects.iter().filter(|object| is_counted(object)).count().try_into().unwrap_or(u64::MAX)
    };
    Totals {
        add: count(&|object| object.change == Change::Create && object.replaces.is_empty()),
        change: count(&|object| match object.change {
            Change::Update => true,
            Change::Create => !object.replaces.is_empty(),
            _ => false,
        }),
        destroy: count(&|object| object.change == Change::Delete && object.replaced_by.is_empty()),
        gained: explanation.rbac.gained.len().try_into().unwrap_or(u64::MAX),
        lost: explanation.rbac.lost.len().try_into().unwrap_or(u64::MAX),
    }
}

/// Returns the content of replaced objects, under the names of their successors, by the index of the successor in
/// [`Explanation::objects`]: what differs from the successor is a change.
pub fn predecessors(explanation: &Explanation) -> BTreeMap<usize, Value> {
    let objects = &explanation.objects;
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    names.extend(explanation.csvs.iter().filter_map(|csv| Some((csv.replaces.as_deref()?, csv.name.as_str()))));
    let replaced = objects.iter().filter(|object| !object.replaces.is_empty());
    names.extend(replaced.map(|object| (object.replaces.as_str(), object.name.as_str())));
    let key = |object: &'_ Object, name: &str| {
        (object.gvk.group.clone(), object.gvk.kind.clone(), object.namespace.clone(), name.to_owned())
    };
    let deleted: BTreeMap<_, &Object> = objects
        .iter()
        .filter(|object| !object.replaced_by.is_empty())
        .map(|object| (key(object, &object.name), object))
        .collect();
    let found = objects.iter().enumerate().filter_map(|(index, object)| {
        let mut before = deleted.get(&key(object, &object.replaces))?.before.clone();
        for field in ["metadata", "roleRef"] {
            if let Some(part) = before.get_mut(field) {
                rename(part, &names);
            }
        }
        Some((index, before))
    });
    found.collect()
}

/// Replaces texts that are old names.
fn rename(json: &mut Value, names: &BTreeMap<&str, &str>) {
    match json {
        Value::String(text) => {
            if let Some(new) = names.get(text.as_str()) {
                (*new).clone_into(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::object::Gvk;

    fn object(kind: &str, name: &str, csv: &str, change: Change, content: Value) -> Object {
        let (before, after) = if change == Change::Delete { (content, Value::Null) } else { (Value::Null, content) };
        let (gvk, name, csv) = (Gvk::new("g", "v1", kind), name.to_owned(), csv.to_owned());
        Object { gvk, namespace: "garden".to_owned(), name, csv, change, before, after, ..Object::default() }
    }

    fn upgrade(mut objects: Vec<Object>) -> Explanation {
        let csv = Csv { name: "rose.v2".to_owned(), replaces: Some("rose.v1".to_owned()), ..Csv::default() };
        pair(&mut objects, std::slice::from_ref(&csv));
        let mut explanation = Explanation { objects, csvs: vec![csv], ..Explanation::default() };
        explanation.totals = totals(&explanation);
        explanation
    }

    fn pairs(explanation: &Explanation) -> Vec<(&str, &str)> {
        let replaced = explanation.objects.iter().filter(|object| !object.replaces.is_empty());
        replaced.map(|object| (object.replaces.as_str(), object.name.as_str())).collect()
    }

    #[test]
    fn roles_are_paired_by_content_then_by_account_then_by_name() {
        let (old, new) = ("rose.v1", "rose.v2");
        let rules = |verb: &str| json!({ "metadata": {}, "rules": [{ "verbs": [verb] }] });
        let binding = |role: &str, account: &str| json!({ "roleRef": { "kind": "Role", "name": role }, "subjects": [{ "name": account }] });
        let explanation = upgrade(vec![
            object("Role", "rose.v2-aaaaa1", new, Change::Create, rules("get")),
            object("Role", "rose.v2-bbbbb1", new, Change::Create, rules("list")),
            object("Role", "rose.v2-ccccc1", new, Change::Create, rules("watch")),
            object("RoleBinding", "rose.v2-bbbbb1", new, Change::Create, binding("rose.v2-bbbbb1", "pruner")),
            object("Role", "rose.v1-ddddd1", old, Change::Delete, rules("delete")),
            object("Role", "rose.v1-eeeee1", old, Change::Delete, rules("patch")),
            object("Role", "rose.v1-fffff1", old, Change::Delete, rules("get")),
            object("RoleBinding", "rose.v1-eeeee1", old, Change::Delete, binding("rose.v1-eeeee1", "pruner")),
        ]);
        assert_eq!(
            pairs(&explanation),
            [
                ("rose.v1-fffff1", "rose.v2-aaaaa1"),
                ("rose.v1-eeeee1", "rose.v2-bbbbb1"),
                ("rose.v1-ddddd1", "rose.v2-ccccc1"),
                ("rose.v1-eeeee1", "rose.v2-bbbbb1"),
            ]
        );
        assert_eq!(explanation.totals, Totals { change: 4, ..Totals::default() });
        let old = predecessors(&explanation);
        assert_eq!(old.len(), 4);
        assert_eq!(old[&0], rules("get"));
        assert_eq!(old[&3], explanation.objects[3].after, "the binding changes only by its names");
    }

    #[test]
    fn objects_of_users_are_paired_only_if_their_content_is_equal() {
        let (old, new) = ("rose.v1", "rose.v2");
        let explanation = upgrade(vec![
            object("ConfigMap", "rose-alpha", new, Change::Create, json!({ "data": { "a": "1" } })),
            object("ConfigMap", "rose-gamma", new, Change::Create, json!({ "data": { "c": "3" } })),
            object("Deployment", "gardener", new, Change::Create, json!({ "spec": { "replicas": 2 } })),
            object("ClusterServiceVersion", new, new, Change::Create, json!({ "spec": { "version": "2" } })),
            object("ConfigMap", "rose-beta", old, Change::Delete, json!({ "data": { "b": "2" } })),
            object("ConfigMap", "rose-old", old, Change::Delete, json!({ "data": { "a": "1" } })),
            object("Deployment", "pruner", old, Change::Delete, json!({ "spec": { "replicas": 1 } })),
            object("ClusterServiceVersion", old, "", Change::Delete, json!({ "spec": { "version": "1" } })),
            object("Role", "lily.v1-aaaaa1", "lily.v1", Change::Delete, json!({ "rules": [] })),
        ]);
        assert_eq!(pairs(&explanation), [("rose-old", "rose-alpha"), ("pruner", "gardener"), (old, new)]);
        assert_eq!(explanation.totals, Totals { add: 1, change: 3, destroy: 2, ..Totals::default() });
        let lily = &explanation.objects[8];
        assert_eq!((lily.replaces.as_str(), lily.replaced_by.as_str()), ("", ""));
    }
}
