//! Removes everything that differs between any two servers: uids, times, resource versions, addresses, random names.

use std::sync::LazyLock;

use olm_core::api::object::{name, text};
use regex::Regex;
use serde_json::Value;

static UUID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$").unwrap());
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b10\.\d+\.\d+\.\d+\b").unwrap());

static REPLICA_SET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"((?:ReplicaSet|replica set|pods) "[a-z]+)-[a-z0-9]{8,10}(-?)""#).unwrap());
static TOKEN_VOLUME: LazyLock<Regex> = LazyLock::new(|| Regex::new("kube-api-access-[a-z0-9]{5}").unwrap());
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"((?:ResourceVersion in record|ResourceVersion in the precondition) )\(\d+\)").unwrap()
});

/// Normalises an error message: several problems have no order, and a quoted object is reduced to its path, because the API
/// server quotes its own Go types.
pub(crate) fn refusal(message: &str) -> String {
    let message = quoted_objects(message);
    match message.split_once("is invalid: [").and_then(|(head, rest)| Some((head, rest.strip_suffix(']')?))) {
        Some((head, problems)) => {
            let mut problems: Vec<&str> = problems.split(", ").collect();
            problems.sort_unstable();
            format!("{head}is invalid: [{}]", problems.join(", "))
        }
        None => message,
    }
}

/// Removes the content of braces or brackets in `Invalid value: {…}:`.
fn quoted_objects(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find("Invalid value: ") {
        let (head, tail) = rest.split_at(start + "Invalid value: ".len());
        out.push_str(head);
        rest = tail;
        if !tail.starts_with(['{', '[']) {
            continue;
        }
        let mut depth = 0;
        let end = tail.char_indices().find_map(|(at, c)| {
            depth += i32::from(matches!(c, '{' | '[')) - i32::from(matches!(c, '}' | ']'));
            (depth == 0).then_some(at + 1)
        });
        out.push_str("<object>");
        rest = &tail[end.unwrap_or(tail.len())..];
    }
    out + rest
}

/// Numbers uids and random names in the order of their occurrence.
#[derive(Default)]
pub(crate) struct Normaliser {
    uids: Vec<String>,
    names: Vec<String>,
}

impl Normaliser {
    pub(crate) fn object(&mut self, object: &Value) -> Value {
        let base = text(object, &["metadata", "generateName"]);
        if !base.is_empty() {
            self.random(name(object), base);
        }
        if let Some(hash) = object.pointer("/metadata/labels/pod-template-hash").and_then(Value::as_str) {
            self.random(hash, "");
        }
        let mut object = self.value(object);
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            // A Job's controller sets it only if it observes pods that are not ready yet.
            status.remove("ready");
        }
        object
    }

    fn random(&mut self, whole: &str, base: &str) {
        let suffix = whole.strip_prefix(base).unwrap_or(whole).to_owned();
        if !suffix.is_empty() && !self.names.contains(&suffix) {
            self.names.push(suffix);
        }
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        if TIME.is_match(text) {
            return "<time>".into();
        }
        let mut out = text.to_owned();
        for uid in UUID.find_iter(text).map(|m| m.as_str().to_owned()).collect::<Vec<_>>() {
            let n = self.uids.iter().position(|known| *known == uid).unwrap_or_else(|| {
                self.uids.push(uid.clone());
                self.uids.len() - 1
            });
            out = out.replace(&uid, &format!("<uid {n}>"));
        }
        for (n, suffix) in self.names.iter().enumerate() {
            out = out.replace(suffix, &format!("<random {n}>"));
        }
        let out = ADDRESS.replace_all(&out, "<ip>");
        let out = TOKEN_VOLUME.replace_all(&out, "kube-api-access-<random>");
        let out = REPLICA_SET.replace_all(&out, "$1-<hash>$2\"");
        VERSION.replace_all(&out, "$1(<n>)").into_owned()
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => map
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "managedFields" | "resourceVersion"))
                .map(|(key, value)| (self.text(key), self.value(value)))
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }
}
