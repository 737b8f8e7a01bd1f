//! Server-side apply: computes the new object from the fields that a manager applied before, those that it applies now, and
//! those that other managers applied.

use serde_json::{Map, Value};

use super::kinds::ResourceKind;
use super::lists::{Merge, merge_of, same_entry};
use crate::api::object::map_mut;

/// Fields of the metadata without an owner.
const UNOWNED: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// One step of a field path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Field(String),
    /// The entry of a list whose keys have these values.
    Entry(Map<String, Value>),
}

/// A field that another manager applied with a different value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conflict {
    pub(super) manager: String,
    path: Vec<Step>,
}

impl std::fmt::Display for Conflict {
    /// Writes the path as Kubernetes does: `.spec.ports[port=80].targetPort`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for step in &self.path {
            match step {
                Step::Field(field) => write!(f, ".{field}")?,
                Step::Entry(keys) => {
                    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                    write!(f, "[{}]", keys.join(","))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the fields of an applied object that its manager owns: without identity and nulls, and limited to the part that the
/// request addresses.
pub(super) fn owned_fields(kind: &ResourceKind, version: &str, object: &Value, subresource: Option<&str>) -> Value {
    let mut fields = object.clone();
    drop_nulls(&mut fields);
    let map = map_mut(&mut fields, &[]);
    map.remove("apiVersion");
    map.remove("kind");
    let has_status = kind.version(version).is_some_and(|v| v.status);
    match subresource {
        Some("status") => map.retain(|key, _| key == "status"),
        _ if has_status => {
            map.remove("status");
        }
        _ => {}
    }
    if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
        metadata.retain(|field, _| !UNOWNED.contains(&field.as_str()));
    }
    fields
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// One apply request with the previous and the requested fields of its manager.
pub(super) struct Apply<'a> {
    pub(super) kind: &'a ResourceKind,
    pub(super) version: &'a str,
    /// The fields of the manager's last apply, null if this is its first.
    pub(super) before: &'a Value,
    /// The requested fields.
    pub(super) wanted: &'a Value,
    /// The fields that other managers applied.
    pub(super) others: &'a [(String, Value)],
}

impl Apply<'_> {
    /// Returns the fields that another manager applied with a different value, unless the stored object already has the
    /// requested value.
    pub(super) fn conflicts(&self, stored: &Value) -> Vec<Conflict> {
        let mut found = Vec::new();
        for (manager, theirs) in self.others {
            self.find_conflicts(&mut Vec::new(), &mut Vec::new(), self.wanted, stored, theirs, &mut |path| {
                found.push(Conflict { manager: manager.clone(), path });
            });
        }
        found
    }

    fn find_conflicts(
        &self,
        fields: &mut Vec<String>,
        path: &mut Vec<Step>,
        wanted: &Value,
        stored: &Value,
        theirs: &Value,
        found: &mut dyn FnMut(Vec<Step>),
    ) {
        if theirs.is_null() {
            return;
        }
        match wanted {
            Value::Object(map) if theirs.is_object() => {
                for (key, wanted) in map {
                    fields.push(key.clone());
                    path.push(Step::Field(key.clone()));
                    let stored = stored.get(key).unwrap_or(&Value::Null);
                    let theirs = theirs.get(key).unwrap_or(&Value::Null);
                    self.find_conflicts(fields, path, wanted, stored, theirs, found);
                    path.pop();
                    fields.pop();
                }
            }
            Value::Array(items) => match merge_of(self.kind, self.version, fields) {
                Merge::Map(keys) => {
                    for wanted in items {
                        path.push(Step::Entry(keys_of(&keys, wanted)));
                        let stored = entry(&keys, stored, wanted);
                        let theirs = entry(&keys, theirs, wanted);
                        self.find_conflicts(fields, path, wanted, stored, theirs, found);
                        path.pop();
                    }
                }
                Merge::Atomic if wanted != stored => found(path.clone()),
                Merge::Set | Merge::Atomic => {}
            },
            _ if wanted != stored => found(path.clone()),
            _ => {}
        }
    }

    /// Returns the stored object with the requested fields, and without those that only this manager owned and no longer
    /// requests.
    pub(super) fn merged(&self, stored: &Value) -> Value {
        let others: Vec<&Value> = self.others.iter().map(|(_, fields)| fields).collect();
        self.merge(&mut Vec::new(), stored.clone(), self.before, self.wanted, &others)
    }

    fn merge(
        &self,
        fields: &mut Vec<String>,
        stored: Value,
        before: &Value,
        wanted: &Value,
        others: &[&Value],
    ) -> Value {
        match wanted {
            Value::Object(wanted) => {
                let mut map = match stored {
                    Value::Object(map) => map,
                    _ => Map::new(),
                };
                for (key, before) in before.as_object().into_iter().flatten() {
                    if wanted.contains_key(key) {
                        continue;
                    }
                    fields.push(key.clone());
                    if let Some(stored) = map.remove(key)
                        && let Some(left) = self.released(fields, stored, before, &inner(others, key))
                    {
                        map.insert(key.clone(), left);
                    }
                    fields.pop();
                }
                for (key, wanted) in wanted {
                    fields.push(key.clone());
                    let stored = map.remove(key).unwrap_or_default();
                    let before = before.get(key).unwrap_or(&Value::Null);
                    let merged = self.merge(fields, stored, before, wanted, &inner(others, key));
                    fields.pop();
                    map.insert(key.clone(), merged);
                }
                Value::Object(map)
            }
            Value::Array(items) => self.merge_list(fields, stored, before, items, others),
            other => other.clone(),
        }
    }

    fn merge_list(
        &self,
        fields: &mut Vec<String>,
        stored: Value,
        before: &Value,
        wanted: &[Value],
        others: &[&Value],
    ) -> Value {
        let items = match stored {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let before = before.as_array().map_or(&[][..], Vec::as_slice);
        match merge_of(self.kind, self.version, fields) {
            Merge::Atomic => Value::Array(wanted.to_vec()),
            Merge::Set => {
                let theirs = |item: &Value| others.iter().any(|other| has(other, |theirs| theirs == item));
                let mut items: Vec<Value> =
                    items.into_iter().filter(|item| !before.contains(item) || theirs(item)).collect();
                let new: Vec<Value> = wanted.iter().filter(|item| !items.contains(item)).cloned().collect();
                items.extend(new);
                Value::Array(items)
            }
            Merge::Map(keys) => {
                let among = |list: &[Value], item: &Value| list.iter().any(|other| same_entry(&keys, other, item));
                let theirs =
                    |item: &Value| others.iter().any(|other| has(other, |theirs| same_entry(&keys, theirs, item)));
                let mut items: Vec<Value> = items
                    .into_iter()
                    .filter(|item| among(wanted, item) || !among(before, item) || theirs(item))
                    .collect();
                for wanted in wanted {
                    let before = before.iter().find(|b| same_entry(&keys, b, wanted)).unwrap_or(&Value::Null);
                    let others: Vec<&Value> = others.iter().map(|other| entry(&keys, other, wanted)).collect();
                    match items.iter().position(|item| same_entry(&keys, item, wanted)) {
                        Some(n) => items[n] = self.merge(fields, items[n].take(), before, wanted, &others),
                        None => items.push(wanted.clone()),
                    }
                }
                Value::Array(items)
            }
        }
    }

    /// Returns the rest of a field that the manager released: the parts that other managers applied and those without an owner.
    fn released(&self, fields: &mut Vec<String>, stored: Value, before: &Value, others: &[&Value]) -> Option<Value> {
        match (stored, before) {
            (Value::Object(mut map), Value::Object(before)) => {
                for (key, before) in before {
                    fields.push(key.clone());
                    if let Some(stored) = map.remove(key)
                        && let Some(left) = self.released(fields, stored, before, &inner(others, key))
                    {
                        map.insert(key.clone(), left);
                    }
                    fields.pop();
                }
                (!map.is_empty()).then_some(Value::Object(map))
            }
            (stored @ Value::Array(_), Value::Array(_))
                if merge_of(self.kind, self.version, fields) != Merge::Atomic =>
            {
                match self.merge_list(fields, stored, before, &[], others) {
                    Value::Array(items) if items.is_empty() => None,
                    left => Some(left),
                }
            }
            (stored, _) => others.iter().any(|other| !other.is_null()).then_some(stored),
        }
    }
}

/// Returns the fields of a manager without those it lost.
pub(super) fn without(mut fields: Value, lost: &[&Conflict]) -> Value {
    for conflict in lost {
        forget(&mut fields, &conflict.path);
    }
    fields
}

fn forget(value: &mut Value, path: &[Step]) {
    match path {
        [Step::Field(field)] => {
            if let Value::Object(map) = value {
                map.remove(field);
            }
        }
        [Step::Field(field), rest @ ..] => {
            if let Some(inner) = value.get_mut(field) {
                forget(inner, rest);
            }
        }
        [Step::Entry(keys), rest @ ..] => {
            let names: Vec<String> = keys.keys().cloned().collect();
            let wanted = Value::Object(keys.clone());
            let items = value.as_array_mut().into_iter().flatten();
            items.filter(|item| same_entry(&names, item, &wanted)).for_each(|item| forget(item, rest));
        }
        [] => {}
    }
}

fn inner<'a>(others: &[&'a Value], key: &str) -> Vec<&'a Value> {
    others.iter().filter_map(|other| other.get(key)).collect()
}

fn has(list: &Value, is_it: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|items| items.iter().any(is_it))
}

fn keys_of(keys: &[String], entry: &Value) -> Map<String, Value> {
    keys.iter().filter_map(|key| Some((key.clone(), entry.get(key)?.clone()))).collect()
}

fn entry<'a>(keys: &[String], list: &'a Value, wanted: &Value) -> &'a Value {
    static NULL: Value = Value::Null;
    let found = list.as_array().into_iter().flatten().find(|item| same_entry(keys, item, wanted));
    found.unwrap_or(&NULL)
}
