//! An object kept whole, with the typed view that decisions are made on.
//!
//! What is written back is always the JSON: unknown and future fields, and nulls, are never lost. The view is read once and cannot
//! be changed.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

use super::object::{self, ObjectRef};

/// The API group of all of OLM's resources.
pub const GROUP: &str = "operators.coreos.com";

/// A view of one of OLM's kinds.
pub trait View: DeserializeOwned {
    /// The kind it is a view of.
    const KIND: &'static str;
}

/// An object, whole, and its view.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource<T> {
    json: Arc<Value>,
    view: T,
}

/// Why an object, or a field of it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {path}: {why}")]
pub struct ReadError {
    /// The object, as it names itself.
    pub object: Box<ObjectRef>,
    /// The path of the field, `spec.install.spec.deployments[0].name`; `kind` when it is another kind of object.
    pub path: String,
    /// What is there, and what should be.
    pub why: String,
}

impl<T: View> Resource<T> {
    /// Reads the view of an object. Absent fields and nulls read as empty, as they do in Go; unknown fields do not matter. The first
    /// field of a wrong type is an error.
    pub fn read(json: impl Into<Arc<Value>>) -> Result<Self, ReadError> {
        let json = json.into();
        check_kind::<T>(&json)?;
        let view = if has_null(&json) { view(&without_nulls(&json)) } else { view(&json) };
        match view {
            Ok(view) => Ok(Self { json, view }),
            Err((path, why)) => Err(field_error(&json, &path, why)),
        }
    }

    /// Reads what can be read: fields of a wrong type read as empty, and are returned. Only an object of another kind is an error.
    pub fn read_tolerant(json: impl Into<Arc<Value>>) -> Result<(Self, Vec<ReadError>), ReadError> {
        let json = json.into();
        check_kind::<T>(&json)?;
        let mut readable = without_nulls(&json);
        let mut errors = Vec::new();
        loop {
            match view(&readable) {
                Ok(view) => return Ok((Self { json, view }, errors)),
                Err((path, why)) => {
                    remove(&mut readable, &path);
                    errors.push(field_error(&json, &path, why));
                }
            }
        }
    }
}

fn check_kind<T: View>(json: &Value) -> Result<(), ReadError> {
    let gvk = object::gvk(json);
    if gvk.kind == T::KIND && gvk.group == GROUP && json.is_object() {
        return Ok(());
    }
    let why = format!("is {:?} of {:?}, expected {:?} of {GROUP:?}", gvk.kind, gvk.api_version(), T::KIND);
    Err(ReadError { object: Box::new(ObjectRef::of(json)), path: "kind".to_owned(), why })
}

fn view<T: View>(json: &Value) -> Result<T, (Path, String)> {
    serde_path_to_error::deserialize(json).map_err(|error| (error.path().clone(), error.inner().to_string()))
}

fn field_error(json: &Value, path: &Path, why: String) -> ReadError {
    ReadError { object: Box::new(ObjectRef::of(json)), path: path.to_string(), why }
}

/// Removes what is at a path; everything, when the path leads nowhere, so that reading again comes to an end.
fn remove(json: &mut Value, path: &Path) {
    let segments: Vec<_> = path.iter().collect();
    let found = segments.split_last().and_then(|(last, parents)| {
        let parent = parents.iter().try_fold(&mut *json, |value, segment| match segment {
            Segment::Map { key } => value.get_mut(key),
            Segment::Seq { index } => value.get_mut(index),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        match (parent?, last) {
            (Value::Object(map), Segment::Map { key }) => map.remove(key),
            (Value::Array(items), Segment::Seq { index }) if *index < items.len() => Some(items.remove(*index)),
            _ => None,
        }
    });
    if found.is_none() {
        *json = Value::Object(Map::new());
    }
}

impl<T> Resource<T> {
    /// The whole object.
    pub fn json(&self) -> &Arc<Value> {
        &self.json
    }

    /// The whole object, to be changed and read again.
    pub fn into_json(self) -> Value {
        Arc::unwrap_or_clone(self.json)
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        object::name(&self.json)
    }

    /// `metadata.namespace`, empty when cluster-scoped.
    pub fn namespace(&self) -> &str {
        object::namespace(&self.json)
    }

    /// What names the object.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::of(&self.json)
    }
}

impl<T> Deref for Resource<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect()
        }
        Value::Array(items) => items.iter().filter(|v| !v.is_null()).map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
