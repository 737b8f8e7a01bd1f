//! A problem, and the smallest change that fixes it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Rule;
use super::rule::{
    EMPTY_HOLDS_APIS, ORPHANED_COPY, ORPHANED_GROUP_ROLE, ORPHANED_PERMISSIONS, STALE_APIS, STALE_MEMBER, STALE_STATUS,
};
use crate::api::object::{self, ObjectRef};
use crate::finding::Severity;
use crate::visible::word;
use crate::yaml;

/// A problem that a rule has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The rule.
    pub rule: &'static Rule,
    /// Severity of this problem.
    pub severity: Severity,
    /// The object that has the problem, and would have to change.
    pub object: ObjectRef,
    /// Other objects that are involved.
    pub other_objects: Vec<ObjectRef>,
    /// What is wrong, a clause without a full stop.
    pub message: String,
    /// How to fix it.
    pub fix: Option<Fix>,
}

/// How to fix a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// In words, an imperative without a full stop.
    pub description: String,
    /// As a change of the cluster, if there is one.
    pub change: Option<Change>,
    /// Whether the change removes nothing that a user may want. Only safe changes may be applied automatically.
    pub is_safe: bool,
}

/// A change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A JSON merge patch of one object.
    Patch(ObjectRef, Value),
    /// Deletion of objects, in this order.
    Delete(Vec<ObjectRef>),
    /// Objects to apply.
    Apply(Vec<Value>),
    /// Any other command.
    Command(String),
}

/// The identity of a problem, which is independent of its message. A baseline stores fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint {
    /// The rule's code.
    pub code: String,
    /// The object, `Kind/namespace/name`.
    pub object: String,
    /// The other objects, in the same form.
    pub also: Vec<String>,
}

impl Fingerprint {
    /// Reports whether one of its objects is that namespace, or in it.
    pub fn is_in(&self, namespace: &str) -> bool {
        let is_in = |object: &String| match object.split('/').collect::<Vec<_>>()[..] {
            ["Namespace", name] => name == namespace,
            [_, place, _] => place == namespace,
            _ => false,
        };
        is_in(&self.object) || self.also.iter().any(is_in)
    }
}

impl Problem {
    /// Creates a problem of an object, with the severity of the rule.
    pub(crate) fn new(rule: &'static Rule, object: &Value, message: impl Into<String>) -> Self {
        Self::about(rule, ObjectRef::from_object(object), message)
    }

    /// Creates a problem of an object that may not exist, with the severity of the rule.
    pub(crate) fn about(rule: &'static Rule, object: ObjectRef, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.severity, object, other_objects: Vec::new(), message: message.into(), fix: None }
    }

    pub(crate) fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub(crate) fn also(mut self, others: impl IntoIterator<Item = ObjectRef>) -> Self {
        self.other_objects.extend(others);
        self
    }

    /// Adds a fix in words only.
    pub(crate) fn advise(self, description: impl Into<String>) -> Self {
        Self { fix: Some(Fix { description: description.into(), change: None, is_safe: false }), ..self }
    }

    /// Adds a change that a user has to decide on.
    pub(crate) fn propose(self, description: impl Into<String>, change: Change) -> Self {
        Self { fix: Some(Fix { description: description.into(), change: Some(change), is_safe: false }), ..self }
    }

    /// Adds a change that removes nothing that a user may want.
    pub(crate) fn fix(self, description: impl Into<String>, change: Change) -> Self {
        Self { fix: Some(Fix { description: description.into(), change: Some(change), is_safe: true }), ..self }
    }

    /// Returns the namespaces of its objects.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        let objects = std::iter::once(&self.object).chain(&self.other_objects);
        objects.map(namespace_of).filter(|namespace| !namespace.is_empty()).collect()
    }

    /// Returns the key by which problems are sorted: namespace, object, code.
    pub(crate) fn place_among_others(&self) -> impl Ord + use<> {
        let ObjectRef { gvk, name, .. } = self.object.clone();
        (namespace_of(&self.object).to_owned(), gvk.kind, name, self.rule.code, self.other_objects.clone())
    }

    /// Returns the identity of the problem.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            code: self.rule.code.to_owned(),
            object: self.object.to_string(),
            also: self.other_objects.iter().map(ObjectRef::to_string).collect(),
        }
    }

    /// Reports whether the problem may be caused by an operation of OLM that is in progress. These rules may follow from the deletion of an
    /// object, whose time is unknown. Other rules report nothing until OLM had the time to react to a change.
    pub fn may_be_under_way(&self) -> bool {
        const AFTER_DELETIONS: [&Rule; 7] = [
            &STALE_MEMBER,
            &STALE_STATUS,
            &STALE_APIS,
            &EMPTY_HOLDS_APIS,
            &ORPHANED_COPY,
            &ORPHANED_GROUP_ROLE,
            &ORPHANED_PERMISSIONS,
        ];
        AFTER_DELETIONS.iter().any(|rule| rule.code == self.rule.code)
    }

    /// Returns the problem as a JSON document.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "code": self.rule.code, "rule": self.rule.name, "severity": self.severity,
            "object": reference(&self.object),
            "message": self.message,
            "explain": self.rule.command(),
        });
        if !self.other_objects.is_empty() {
            document["otherObjects"] = self.other_objects.iter().map(reference).collect();
        }
        if let Some(fix) = &self.fix {
            document["fix"] = fix.document();
        }
        document
    }
}

fn namespace_of(object: &ObjectRef) -> &str {
    if object.gvk.kind == "Namespace" { &object.name } else { &object.namespace }
}

fn reference(object: &ObjectRef) -> Value {
    let mut document = json!({ "apiVersion": object.gvk.api_version(), "kind": object.gvk.kind, "name": object.name });
    if !object.namespace.is_empty() {
        document["namespace"] = object.namespace.as_str().into();
    }
    document
}

impl Fix {
    /// Returns the object that it changes, if it is a single existing one.
    pub fn target(&self) -> Option<&ObjectRef> {
        match self.change.as_ref()? {
            Change::Patch(target, _) => Some(target),
            Change::Delete(targets) => match &targets[..] {
                [target] => Some(target),
                _ => None,
            },
            Change::Apply(_) | Change::Command(_) => None,
        }
    }

    /// Returns the shell command that applies the change. Objects to apply are its input, see [`Fix::manifest`].
    pub fn command(&self) -> Option<String> {
        self.change.as_ref().map(|change| match change {
            Change::Patch(target, patch) => {
                let patch = patch.to_string().replace('\'', r"'\''");
                format!("kubectl patch {} --type merge -p '{patch}'", named(target))
            }
            Change::Delete(targets) => {
                let commands: Vec<String> =
                    targets.iter().map(|target| format!("kubectl delete {}", named(target))).collect();
                commands.join(" && ")
            }
            Change::Command(command) => command.clone(),
            Change::Apply(objects) => match &objects[..] {
                [object] if object::kind(object) == "ServiceAccount" => {
                    format!(
                        "kubectl create serviceaccount {}{}",
                        word(object::name(object)),
                        place(object::namespace(object))
                    )
                }
                _ => "kubectl apply -f -".to_owned(),
            },
        })
    }

    /// Returns the objects to apply, as YAML.
    pub fn manifest(&self) -> Option<String> {
        match &self.change {
            Some(Change::Apply(objects)) if self.command().is_some_and(|command| command.ends_with('-')) => {
                let documents = objects.iter().filter_map(|object| yaml::to_string(object).ok());
                Some(documents.collect::<Vec<_>>().join("---\n"))
            }
            _ => None,
        }
    }

    fn document(&self) -> Value {
        let mut document = json!({ "description": self.description, "safe": self.is_safe });
        if let Some(command) = self.command() {
            document["command"] = command.into();
        }
        match &self.change {
            Some(Change::Patch(_, patch)) => document["patch"] = patch.clone(),
            Some(Change::Apply(objects)) => document["objects"] = objects.clone().into(),
            Some(Change::Delete(_) | Change::Command(_)) | None => {}
        }
        document
    }
}

/// `operatorgroup.operators.coreos.com all -n garden`
fn named(target: &ObjectRef) -> String {
    let kind = target.gvk.kind.to_lowercase();
    let kind = if target.gvk.group.is_empty() { kind } else { format!("{kind}.{}", target.gvk.group) };
    format!("{} {}{}", word(&kind), word(&target.name), place(&target.namespace))
}

fn place(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!(" -n {}", word(namespace)) }
}
