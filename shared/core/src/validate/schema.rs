//! Compares two schemas of a version of a CustomResourceDefinition: which custom resources that the old one accepts the new one rejects
//! or changes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::object::{at, list};

/// Maximum depth of schemas that are compared.
const DEPTH: usize = 100;
/// Maximum number of changes of one schema.
const MOST: usize = 100;

/// A change of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The path in the schema, from `openAPIV3Schema`.
    pub(super) path: Vec<String>,
    /// The field of the custom resource, `spec.size`, and what has changed.
    pub(super) message: String,
    /// What it means.
    pub(super) effect: Effect,
}

/// The effect of a change on existing custom resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Values that were valid are rejected.
    Rejects,
    /// Values are dropped.
    Drops,
    /// Values may be rejected: conditions are not compared.
    MayReject,
}

/// Returns the changes that affect existing custom resources.
pub(super) fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut compared = Compared { path: Vec::new(), field: Vec::new(), found: Vec::new() };
    compared.check(old, new, 0);
    compared.found
}

struct Compared {
    path: Vec<String>,
    field: Vec<String>,
    found: Vec<Change>,
}

impl Compared {
    fn add(&mut self, effect: Effect, message: impl AsRef<str>) {
        if self.found.len() < MOST {
            let field = if self.field.is_empty() { "the object".to_owned() } else { self.field.join(".") };
            let message = format!("{field}: {}", message.as_ref());
            self.found.push(Change { path: self.path.clone(), message, effect });
        }
    }

    fn within(&mut self, path: &[&str], field: &str, check: impl FnOnce(&mut Self)) {
        self.path.extend(path.iter().map(|part| (*part).to_owned()));
        self.field.push(field.to_owned());
        check(self);
        self.field.pop();
        self.path.truncate(self.path.len() - path.len());
    }

    fn check(&mut self, old: &Value, new: &Value, depth: usize) {
        if depth > DEPTH || old == new {
            return;
        }
        let is_any = |schema: &Value| {
            ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"]
                .iter()
                .any(|key| schema[*key] == true)
        };
        let (from, to) = (old["type"].as_str().unwrap_or_default(), new["type"].as_str().unwrap_or_default());
        let widens = to.is_empty() && is_any(new) || (from, to) == ("integer", "number");
        if from != to && !widens {
            let shown = |kind: &str| if kind.is_empty() { "any".to_owned() } else { kind.to_owned() };
            return self.add(Effect::Rejects, format!("the type changes from {} to {}", shown(from), shown(to)));
        }
        if old["nullable"] == true && new["nullable"] != true {
            self.add(Effect::Rejects, "null is no longer permitted");
        }
        self.values(old, new);
        self.limits(old, new);
        self.properties(old, new, depth);
        if new["items"].is_object() && old["items"].is_object() {
            self.within(&["items"], "[*]", |this| this.check(&old["items"], &new["items"], depth + 1));
        }
        for key in ["allOf", "anyOf", "oneOf", "not", "x-kubernetes-validations"] {
            if old[key] != new[key] && !new[key].is_null() {
                self.add(Effect::MayReject, format!("{key} has changed"));
            }
        }
    }

    fn values(&mut self, old: &Value, new: &Value) {
        let Some(allowed) = new["enum"].as_array() else { return };
        let Some(before) = old["enum"].as_array() else {
            return self.add(Effect::Rejects, "only listed values are permitted");
        };
        let gone: Vec<String> = before.iter().filter(|value| !allowed.contains(value)).map(Value::to_string).collect();
        if !gone.is_empty() {
            self.add(Effect::Rejects, format!("{} is no longer permitted", gone.join(", ")));
        }
    }

    fn limits(&mut self, old: &Value, new: &Value) {
        for key in ["maximum", "maxLength", "maxItems", "maxProperties"] {
            if let Some(limit) = new[key].as_f64()
                && old[key].as_f64().is_none_or(|before| limit < before)
            {
                self.add(Effect::Rejects, format!("{key} is now {}", new[key]));
            }
        }
        for key in ["minimum", "minLength", "minItems", "minProperties"] {
            if let Some(limit) = new[key].as_f64()
                && old[key].as_f64().map_or(limit > 0.0 || key == "minimum", |before| limit > before)
            {
                self.add(Effect::Rejects, format!("{key} is now {}", new[key]));
            }
        }
        for key in ["exclusiveMaximum", "exclusiveMinimum", "uniqueItems"] {
            if new[key] == true && old[key] != true {
                self.add(Effect::Rejects, format!("{key} is now true"));
            }
        }
        for key in ["pattern", "format", "multipleOf", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"] {
            let is_looser = new[key].is_null() || new[key] == "atomic";
            if old[key] != new[key] && !is_looser {
                let effect =
                    if old[key].is_null() || key.starts_with("x-") { Effect::Rejects } else { Effect::MayReject };
                self.add(effect, format!("{key} is now {}", new[key]));
            }
        }
    }

    fn properties(&mut self, old: &Value, new: &Value, depth: usize) {
        let texts = |schema: &Value| -> BTreeSet<String> {
            list(schema, &["required"]).iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        for field in texts(new).difference(&texts(old)) {
            if at(new, &["properties", field, "default"]).is_null() {
                self.within(&["required"], field, |this| this.add(Effect::Rejects, "is now required"));
            }
        }
        let (before, after) = (old["properties"].as_object(), new["properties"].as_object());
        let keeps = new["x-kubernetes-preserve-unknown-fields"] == true || new["additionalProperties"].is_object();
        for (name, schema) in before.into_iter().flatten() {
            match after.and_then(|after| after.get(name)) {
                Some(changed) => {
                    self.within(&["properties", name], name, |this| this.check(schema, changed, depth + 1));
                }
                None if keeps => {}
                None => self.within(&["properties"], name, |this| this.add(Effect::Drops, "is no longer a field")),
            }
        }
        let [more_before, more_after] = [old, new].map(|schema| &schema["additionalProperties"]);
        if more_before.is_object() && more_after.is_object() {
            self.within(&["additionalProperties"], "*", |this| this.check(more_before, more_after, depth + 1));
        } else if more_before.is_object() && !keeps {
            self.add(Effect::Drops, "other fields are no longer stored");
        }
        let preserved = old["x-kubernetes-preserve-unknown-fields"] == true;
        if preserved && !keeps {
            self.add(Effect::Drops, "unknown fields are no longer stored");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(old: &Value, new: &Value) -> Vec<(Effect, String)> {
        let of = |spec: &Value| json!({ "type": "object", "properties": { "spec": spec } });
        changes(&of(old), &of(new)).into_iter().map(|change| (change.effect, change.message)).collect()
    }

    #[test]
    fn stricter_schemas_are_found() {
        let old = json!({ "type": "object", "properties": {
            "size": { "type": "integer", "minimum": 1 }, "colour": { "type": "string", "enum": ["red", "white"] },
            "note": { "type": "string" }, "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        }});
        let new = json!({ "type": "object", "required": ["size", "note", "kind"], "properties": {
            "size": { "type": "integer", "minimum": 2, "maximum": 9 }, "colour": { "type": "string", "enum": ["red"] },
            "note": { "type": "string", "default": "" }, "kind": { "type": "string" },
            "labels": { "type": "object", "additionalProperties": { "type": "integer" } },
        }});
        let expected = [
            (Effect::Rejects, "spec.kind: is now required"),
            (Effect::Rejects, "spec.size: is now required"),
            (Effect::Rejects, "spec.colour: \"white\" is no longer permitted"),
            (Effect::Rejects, "spec.labels.*: the type changes from string to integer"),
            (Effect::Rejects, "spec.size: maximum is now 9"),
            (Effect::Rejects, "spec.size: minimum is now 2"),
        ];
        let expected: Vec<(Effect, String)> = expected.map(|(effect, text)| (effect, text.to_owned())).to_vec();
        assert_eq!(found(&old, &new), expected);
        let back: Vec<Effect> = found(&new, &old).into_iter().map(|(effect, _)| effect).collect();
        assert_eq!(back, [Effect::Drops, Effect::Rejects], "the type of labels changes in both directions");
        assert_eq!(found(&old, &old), []);
    }
}
