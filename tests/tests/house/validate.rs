//! Validates documents against the JSON Schemas that are generated here: an unknown keyword is a fault of the schema. Fields
//! that the schema does not contain are faults, too.

use std::collections::BTreeSet;

use serde_json::Value;

/// Keywords without an effect on validation.
const NOTES: [&str; 12] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "uniqueItems",
    "$comment",
];

/// Returns how the document violates the schema.
pub(crate) fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    Validation { root: schema }.value(schema, document, "", &mut faults);
    faults
}

struct Validation<'s> {
    root: &'s Value,
}

/// The fields of an object that a schema defines.
#[derive(Default)]
struct Named {
    all: bool,
    names: BTreeSet<String>,
}

impl Validation<'_> {
    fn value(&self, schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
        let named = self.in_place(schema, value, path, faults);
        for (name, _) in value.as_object().into_iter().flatten() {
            if !named.all && !named.names.contains(name) {
                faults.push(format!("{path}.{name} is not in the schema"));
            }
        }
    }

    fn in_place(&self, schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) -> Named {
        let Some(keywords) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                faults.push(format!("{path} must not be there"));
            }
            return Named { all: true, ..Named::default() };
        };
        let mut named = Named::default();
        let says_fields =
            ["properties", "$ref", "allOf", "anyOf", "oneOf"].iter().any(|word| keywords.contains_key(*word));
        named.all = !says_fields;
        for (keyword, wanted) in keywords {
            match keyword.as_str() {
                "$ref" => {
                    let target = wanted.as_str().and_then(|r| r.strip_prefix('#')).and_then(|r| self.root.pointer(r));
                    match target {
                        Some(target) => named.add(self.in_place(target, value, path, faults)),
                        None => faults.push(format!("the schema has no {wanted}")),
                    }
                }
                "type" if !is_of_type(wanted, value) => faults.push(format!("{path} is not of type {wanted}: {value}")),
                "const" if wanted != value => faults.push(format!("{path} is {value}, not {wanted}")),
                "enum" if !wanted.as_array().is_some_and(|all| all.contains(value)) => {
                    faults.push(format!("{path} is {value}, none of {wanted}"));
                }
                "type" | "const" | "enum" => {}
                "required" => {
                    let missing = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
                    let missing = missing.filter(|name| value.is_object() && value.get(*name).is_none());
                    faults.extend(missing.map(|name| format!("{path}.{name} is missing")));
                }
                "properties" => {
                    for (name, schema) in wanted.as_object().into_iter().flatten() {
                        named.names.insert(name.clone());
                        if let Some(value) = value.get(name) {
                            self.value(schema, value, &format!("{path}.{name}"), faults);
                        }
                    }
                }
                "additionalProperties" | "unevaluatedProperties" => {
                    named.all |= wanted != &Value::Bool(false);
                }
                "items" => {
                    let known = keywords.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                    for (at, item) in value.as_array().into_iter().flatten().enumerate().skip(known) {
                        self.value(wanted, item, &format!("{path}[{at}]"), faults);
                    }
                }
                "prefixItems" => {
                    for (at, schema) in wanted.as_array().into_iter().flatten().enumerate() {
                        if let Some(item) = value.get(at) {
                            self.value(schema, item, &format!("{path}[{at}]"), faults);
                        }
                    }
                }
                "allOf" => {
                    for schema in wanted.as_array().into_iter().flatten() {
                        named.add(self.in_place(schema, value, path, faults));
                    }
                }
                "anyOf" | "oneOf" => {
                    let mut held = false;
                    for schema in wanted.as_array().into_iter().flatten() {
                        let mut found = Vec::new();
                        let of_branch = self.in_place(schema, value, path, &mut found);
                        if found.is_empty() {
                            held = true;
                            named.add(of_branch);
                        }
                    }
                    if !held {
                        faults.push(format!("{path} is none of what it may be: {value}"));
                    }
                }
                note if NOTES.contains(&note) => {}
                unknown => faults.push(format!("the schema has the keyword {unknown}, which is not checked here")),
            }
        }
        named
    }
}

impl Named {
    fn add(&mut self, other: Self) {
        self.all |= other.all;
        self.names.extend(other.names);
    }
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => false,
    }
}
