//! Objects as OLM's Go code writes them.
//!
//! OLM decodes an object into Go structs and encodes it again: fields in the struct's order, zero values of fields without
//! `omitempty` added, nulls and empty optional fields dropped, quantities and times in canonical form. OLM writes and
//! hashes such encodings. A table of types and one interpreter give the same result, with one difference: fields that the
//! table does not contain are preserved, not lost.

mod table;

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

use self::table::{Field, Kind};
use super::kinds::OLM_GROUP;
use super::{object, quantity};
use crate::go_format;

/// A Go type, or a slice of one, written as in Go: `DeploymentSpec`, `[]PolicyRule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoType(&'static str);

impl GoType {
    /// `appsv1.DeploymentSpec`.
    pub const DEPLOYMENT_SPEC: Self = Self("DeploymentSpec");
    /// `corev1.PodSpec`.
    pub const POD_SPEC: Self = Self("PodSpec");
    /// `corev1.ServiceSpec`.
    pub const SERVICE_SPEC: Self = Self("ServiceSpec");
    /// `[]rbacv1.PolicyRule`.
    pub const POLICY_RULES: Self = Self("[]PolicyRule");
    /// `rbacv1.PolicyRule`.
    pub const POLICY_RULE: Self = Self("PolicyRule");
    /// OLM's ClusterServiceVersion.
    pub const CLUSTER_SERVICE_VERSION: Self = Self("ClusterServiceVersion");
    /// OLM's OperatorGroup.
    pub const OPERATOR_GROUP: Self = Self("OperatorGroup");
    /// OLM's description of a webhook in a ClusterServiceVersion.
    pub const WEBHOOK_DESCRIPTION: Self = Self("WebhookDescription");
    /// The input of the hash in a Role's name: `{name, permission: {serviceAccountName, rules}}`.
    pub const ROLE_NAME: Self = Self("RoleName");
    /// The input of the hash in a ClusterRole's name: `{name, namespace, permission}`.
    pub const CLUSTER_ROLE_NAME: Self = Self("ClusterRoleName");
    /// The input of a binding's `olm.permissions.hash`: `{RoleRef, Subjects}`.
    pub const BINDING_HASH: Self = Self("BindingHash");

    /// Returns the type of that name (`Role`, `LabelSelector`, …), if the table contains it.
    pub fn named(name: &str) -> Option<Self> {
        table::structure(name).map(|(name, _)| Self(name))
    }

    /// Returns the type of an object, by its group and kind.
    pub fn from_object(object: &Value) -> Option<Self> {
        let gvk = object::gvk(object);
        let known = match gvk.group.as_str() {
            OLM_GROUP => true,
            group => gvk.version == "v1" && KUBERNETES.contains(&group),
        };
        if known { Self::named(&gvk.kind) } else { None }
    }

    /// Returns the value as decoded and encoded by Go. Parts of a wrong type are not changed.
    pub fn normalise(self, value: &Value) -> Value {
        normalise(&table::kind(self.0), value)
    }

    /// Like [`Self::normalise`], as in Go code that converts the value to another one: fields that the table does not
    /// contain are lost, and field names are matched case-insensitively.
    pub fn known(self, value: &Value) -> Value {
        let kind = table::kind(self.0);
        normalise(&kind, &known(&kind, value))
    }

    /// Encodes the value like `json.Marshal`: compact, fields in Go's order, `<`, `>` and `&` escaped; unknown fields last.
    pub fn encode(self, value: &Value) -> String {
        let kind = table::kind(self.0);
        let mut out = String::new();
        write_value(&kind, &normalise(&kind, value), &mut out);
        out
    }
}

/// The API groups whose kinds are in the table.
const KUBERNETES: [&str; 8] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "batch",
    "networking.k8s.io",
    "rbac.authorization.k8s.io",
];

fn fields(name: &str) -> &'static [Field] {
    table::structure(name).map_or(&[], |(_, fields)| fields)
}

fn normalise(kind: &Kind, value: &Value) -> Value {
    match (kind, value) {
        (Kind::Pointer(inner), value) if !value.is_null() => normalise(inner, value),
        (Kind::Slice(inner), Value::Array(items)) => items.iter().map(|v| normalise(inner, v)).collect(),
        (Kind::Map(inner), Value::Object(map)) => {
            Value::Object(map.iter().map(|(k, v)| (k.clone(), normalise(inner, v))).collect())
        }
        (Kind::Struct(name) | Kind::Some(name), Value::Object(map)) => normalise_struct(fields(name), map),
        (Kind::Struct(name), Value::Null) => normalise_struct(fields(name), &Map::new()),
        (Kind::Some(name), Value::Array(items)) => items.iter().map(|v| normalise(&Kind::Some(name), v)).collect(),
        (Kind::String, Value::Null) => json!(""),
        (Kind::Number | Kind::IntOrString, Value::Null) => json!(0),
        (Kind::Bool, Value::Null) => json!(false),
        (Kind::Quantity, Value::Null) => json!("0"),
        (Kind::Quantity, Value::String(text)) => quantity::canonical(text).map_or_else(|| value.clone(), Value::from),
        (Kind::Quantity, Value::Number(number)) => {
            quantity::canonical(&number.to_string()).map_or_else(|| value.clone(), Value::from)
        }
        (Kind::Time, Value::String(text)) => time(text, "%Y-%m-%dT%H:%M:%SZ"),
        (Kind::MicroTime, Value::String(text)) => time(text, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        (_, value) => value.clone(),
    }
}

fn normalise_struct(fields: &[Field], map: &Map<String, Value>) -> Value {
    let mut out = Map::new();
    for Field { name, kind, omit_empty, omit_zero } in fields {
        let value = normalise(kind, map.get(*name).unwrap_or(&Value::Null));
        let omitted = *omit_empty && is_empty(kind, &value) || *omit_zero && value == normalise(kind, &Value::Null);
        if !omitted {
            out.insert((*name).to_owned(), value);
        }
    }
    for (name, value) in map {
        if !fields.iter().any(|f| f.name == name) {
            out.insert(name.clone(), value.clone());
        }
    }
    Value::Object(out)
}

fn known(kind: &Kind, value: &Value) -> Value {
    match (kind, value) {
        (Kind::Pointer(inner), value) => known(inner, value),
        (Kind::Slice(inner), Value::Array(items)) => items.iter().map(|v| known(inner, v)).collect(),
        (Kind::Some(_), Value::Array(items)) => items.iter().map(|v| known(kind, v)).collect(),
        (Kind::Map(inner), Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), known(inner, v))).collect(),
        (Kind::Struct(name) | Kind::Some(name), Value::Object(map)) => {
            let any_case = |name: &str| map.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v);
            let of = |field: &Field| {
                let found = map.get(field.name).or_else(|| any_case(field.name))?;
                Some((field.name.to_owned(), known(&field.kind, found)))
            };
            fields(name).iter().filter_map(of).collect()
        }
        (_, value) => value.clone(),
    }
}

/// Returns whether Go's `omitempty` drops the value: never a struct, and a pointer only when nil.
fn is_empty(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Pointer(_) => value.is_null(),
        Kind::String | Kind::Bytes => value.is_null() || value == "",
        Kind::Number => value.as_f64() == Some(0.0),
        Kind::Bool => value == &Value::Bool(false),
        Kind::Slice(_) => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
        Kind::Map(_) => value.is_null() || value.as_object().is_some_and(Map::is_empty),
        Kind::Struct(_)
        | Kind::Some(_)
        | Kind::Raw
        | Kind::Time
        | Kind::MicroTime
        | Kind::Quantity
        | Kind::IntOrString => false,
    }
}

fn time(text: &str, format: &str) -> Value {
    text.parse::<Timestamp>().map_or_else(|_| json!(text), |time| json!(time.strftime(format).to_string()))
}

fn write_value(kind: &Kind, value: &Value, out: &mut String) {
    match (kind, value) {
        (Kind::Pointer(inner), value) if !value.is_null() => write_value(inner, value, out),
        (Kind::Slice(inner), Value::Array(items)) => write_list(inner, items, out),
        (Kind::Some(_), Value::Array(items)) => write_list(kind, items, out),
        (Kind::Map(inner), Value::Object(map)) => write_entries(sorted(map).map(|(k, v)| (k, v, &**inner)), out),
        (Kind::Struct(name) | Kind::Some(name), Value::Object(map)) => {
            let fields = fields(name);
            let known = fields.iter().filter_map(|f| Some((f.name, map.get(f.name)?, &f.kind)));
            let unknown = sorted(map).filter(|(k, _)| !fields.iter().any(|f| f.name == *k));
            write_entries(known.chain(unknown.map(|(k, v)| (k, v, &Kind::Raw))), out);
        }
        (_, Value::Array(items)) => write_list(&Kind::Raw, items, out),
        (_, Value::Object(map)) => write_entries(sorted(map).map(|(k, v)| (k, v, &Kind::Raw)), out),
        (_, Value::String(text)) => out.push_str(&go_format::json(text)),
        (_, Value::Number(number)) => write_number(number, out),
        (_, Value::Bool(value)) => out.push_str(if *value { "true" } else { "false" }),
        (_, Value::Null) => out.push_str("null"),
    }
}

fn sorted(map: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v)).collect();
    entries.sort_unstable_by_key(|(k, _)| *k);
    entries.into_iter()
}

fn write_list(kind: &Kind, items: &[Value], out: &mut String) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_value(kind, item, out);
    }
    out.push(']');
}

fn write_entries<'a>(entries: impl Iterator<Item = (&'a str, &'a Value, &'a Kind)>, out: &mut String) {
    out.push('{');
    for (i, (key, value, kind)) in entries.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&go_format::json(&key));
        out.push(':');
        write_value(kind, value, out);
    }
    out.push('}');
}

/// Go writes a float without exponent from 1e-6 up to 1e21, and an integral one without a point.
fn write_number(number: &Number, out: &mut String) {
    let written = match number.as_f64() {
        Some(float) if number.is_f64() => {
            if float == 0.0 || (1e-6..1e21).contains(&float.abs()) {
                write!(out, "{float}")
            } else {
                let text = format!("{float:e}");
                out.push_str(&if text.contains("e-") { text } else { text.replace('e', "e+") });
                Ok(())
            }
        }
        _ => write!(out, "{number}"),
    };
    debug_assert!(written.is_ok(), "writing to a String cannot fail");
}

#[cfg(test)]
mod tests;
