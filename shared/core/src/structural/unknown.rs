//! Fields that a schema does not contain: their paths, and similar fields that may have been meant.

use std::fmt;

use serde_json::Value;

use super::flag;
use crate::yaml::Step;

/// An unknown field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Its path.
    pub path: Vec<Step>,
    /// A sibling field with a similar name.
    pub similar: Option<String>,
}

impl Unknown {
    /// Returns the path of a sibling field.
    pub fn beside(&self, other: &str) -> String {
        let around = self.path.len().saturating_sub(1);
        let path = self.path[..around].iter().cloned().chain([Step::Field(other.to_owned())]).collect();
        Self { path, similar: None }.to_string()
    }
}

impl fmt::Display for Unknown {
    /// `spec.list[0].field`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, step) in self.path.iter().enumerate() {
            match step {
                Step::Field(field) if n == 0 => f.write_str(field)?,
                Step::Field(field) => write!(f, ".{field}")?,
                Step::Item(n) => write!(f, "[{n}]")?,
            }
        }
        Ok(())
    }
}

/// Collects unknown fields while walking through an object.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    path: Vec<Step>,
    found: Vec<Unknown>,
}

impl Walk {
    /// Visits a field.
    pub(crate) fn field(&mut self, field: &str, look: impl FnOnce(&mut Self)) {
        self.path.push(Step::Field(field.to_owned()));
        look(self);
        self.path.pop();
    }

    /// Visits the items of a list in order.
    pub(crate) fn items(&mut self, items: &[Value], mut look: impl FnMut(&mut Self, &Value)) {
        for (n, item) in items.iter().enumerate() {
            self.path.push(Step::Item(n));
            look(self, item);
            self.path.pop();
        }
    }

    /// Adds an unknown field; `known` are the known fields of the object.
    pub(crate) fn unknown<'k>(&mut self, field: &str, known: impl Iterator<Item = &'k String>) {
        let path = self.path.iter().cloned().chain([Step::Field(field.to_owned())]).collect();
        self.found.push(Unknown { path, similar: similar(field, known).map(str::to_owned) });
    }

    /// Returns the unknown fields.
    pub(crate) fn end(self) -> Vec<Unknown> {
        self.found
    }
}

/// Returns the most similar of the known names: up to a third of the letters may differ, and their case.
pub fn similar<'k>(name: &str, known: impl Iterator<Item = &'k String>) -> Option<&'k str> {
    let name = name.to_lowercase();
    let most = (name.chars().count() / 3).clamp(1, 3);
    let distances = known.map(|known| (strsim::damerau_levenshtein(&known.to_lowercase(), &name), known.as_str()));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, known)| known)
}

/// Returns the fields that the schema does not contain. The root's `apiVersion`, `kind` and `metadata` are always known.
pub fn unknown_fields(schema: &Value, object: &Value) -> Vec<Unknown> {
    let mut walk = Walk::default();
    visit(schema, object, &mut walk, true);
    walk.end()
}

fn visit(schema: &Value, value: &Value, walk: &mut Walk, is_resource: bool) {
    // A wrong type is another error.
    let has_no_fields = matches!(schema["type"].as_str(), Some("string" | "integer" | "number" | "boolean"));
    match value {
        _ if has_no_fields => {}
        Value::Array(items) => walk.items(items, |walk, item| visit(&schema["items"], item, walk, false)),
        Value::Object(map) => {
            let properties = schema["properties"].as_object();
            let is_resource = is_resource || flag(schema, "x-kubernetes-embedded-resource");
            for (field, value) in map {
                if is_resource && matches!(field.as_str(), "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                let additional = &schema["additionalProperties"];
                match properties.and_then(|p| p.get(field)) {
                    Some(property) => walk.field(field, |walk| visit(property, value, walk, false)),
                    None if additional.is_object() => walk.field(field, |walk| visit(additional, value, walk, false)),
                    None if additional == &Value::Bool(true)
                        || flag(schema, "x-kubernetes-preserve-unknown-fields") => {}
                    None => walk.unknown(field, properties.into_iter().flat_map(|p| p.keys())),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_have_a_path_and_a_similar_field() {
        let item = json!({"type": "object", "properties": {"packageName": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "channel": {"type": "string"},
            "list": {"type": "array", "items": item},
            "map": {"type": "object", "additionalProperties": item},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": item}},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true},
        }}}});
        let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"nam": 1}, "sepc": {}, "spec": {
            "chanel": "c", "quite": "other", "list": [{"packageName": "p"}, {"packagename": "p"}],
            "map": {"k": {"package": "p"}}, "free": {"any": {"thing": 1}, "known": {"x": 1}},
            "pod": {"kind": "Pod", "metadata": {}, "spec": {}},
        }});
        let found: Vec<(String, Option<String>)> =
            unknown_fields(&schema, &object).into_iter().map(|u| (u.to_string(), u.similar)).collect();
        let wanted = [
            ("sepc", Some("spec")),
            ("spec.chanel", Some("channel")),
            ("spec.free.known.x", None),
            ("spec.list[1].packagename", Some("packageName")),
            ("spec.map.k.package", None),
            ("spec.pod.spec", None),
            ("spec.quite", None),
        ];
        let wanted: Vec<(String, Option<String>)> =
            wanted.into_iter().map(|(path, similar)| (path.to_owned(), similar.map(str::to_owned))).collect();
        let sorted = |mut all: Vec<(String, Option<String>)>| {
            all.sort();
            all
        };
        assert_eq!(sorted(found), sorted(wanted));
    }
}
