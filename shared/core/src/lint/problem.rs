//! What is wrong, and the smallest change that mends it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Rule;
use super::rule::{
    EMPTY_HOLDS_APIS, ORPHANED_COPY, ORPHANED_GROUP_ROLE, ORPHANED_RIGHTS, STALE_APIS, STALE_MEMBER, STALE_STATUS,
};
use crate::api::object::{self, ObjectRef};
use crate::finding::Severity;
use crate::visible::word;
use crate::yaml;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The rule that says so.
    pub rule: &'static Rule,
    /// How bad it is here.
    pub severity: Severity,
    /// The object that it is about, and that would have to change.
    pub object: ObjectRef,
    /// Other objects that it is about.
    pub also: Vec<ObjectRef>,
    /// What is wrong, a clause without a full stop.
    pub message: String,
    /// What to do about it.
    pub fix: Option<Fix>,
}

/// What to do about a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// In words, an imperative without a full stop.
    pub what: String,
    /// As a change of the cluster, where there is one.
    pub change: Option<Change>,
    /// Does it take nothing away that somebody may want? Only then may a program do it.
    pub is_safe: bool,
}

/// A change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A JSON merge patch of one object.
    Patch(ObjectRef, Value),
    /// Objects go, in this order.
    Delete(Vec<ObjectRef>),
    /// Objects are applied.
    Apply(Vec<Value>),
    /// Whatever else a command does.
    Command(String),
}

/// What stays the same about a problem from one look to the next, however it is worded: what a baseline notes.
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
    /// Is one of its objects that namespace, or in it?
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
    /// A problem of an object, as bad as the rule says.
    pub(super) fn new(rule: &'static Rule, object: &Value, message: impl Into<String>) -> Self {
        Self::of(rule, ObjectRef::of(object), message)
    }

    /// The same, of an object that need not be there.
    pub(super) fn of(rule: &'static Rule, object: ObjectRef, message: impl Into<String>) -> Self {
        Self { rule, severity: rule.severity, object, also: Vec::new(), message: message.into(), fix: None }
    }

    pub(super) fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    pub(super) fn also(mut self, others: impl IntoIterator<Item = ObjectRef>) -> Self {
        self.also.extend(others);
        self
    }

    /// What to do, in words only.
    pub(super) fn advise(self, what: impl Into<String>) -> Self {
        Self { fix: Some(Fix { what: what.into(), change: None, is_safe: false }), ..self }
    }

    /// A change that somebody has to decide on.
    pub(super) fn propose(self, what: impl Into<String>, change: Change) -> Self {
        Self { fix: Some(Fix { what: what.into(), change: Some(change), is_safe: false }), ..self }
    }

    /// A change that takes nothing away that somebody may want.
    pub(super) fn mend(self, what: impl Into<String>, change: Change) -> Self {
        Self { fix: Some(Fix { what: what.into(), change: Some(change), is_safe: true }), ..self }
    }

    /// The namespaces that it concerns.
    pub fn namespaces(&self) -> BTreeSet<&str> {
        let objects = std::iter::once(&self.object).chain(&self.also);
        objects.map(namespace_of).filter(|namespace| !namespace.is_empty()).collect()
    }

    /// By what problems are sorted: namespace, object, code.
    pub(super) fn place_among_others(&self) -> impl Ord + use<> {
        let ObjectRef { gvk, name, .. } = self.object.clone();
        (namespace_of(&self.object).to_owned(), gvk.kind, name, self.rule.code, self.also.clone())
    }

    /// What stays the same about it.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            code: self.rule.code.to_owned(),
            object: self.object.to_string(),
            also: self.also.iter().map(ObjectRef::to_string).collect(),
        }
    }

    /// May it be about what OLM is doing at this moment? What follows from an object that was deleted tells nobody since when; of what
    /// follows from changes alone is nothing said before OLM had its time.
    pub fn may_be_under_way(&self) -> bool {
        const AFTER_DELETIONS: [&Rule; 7] = [
            &STALE_MEMBER,
            &STALE_STATUS,
            &STALE_APIS,
            &EMPTY_HOLDS_APIS,
            &ORPHANED_COPY,
            &ORPHANED_GROUP_ROLE,
            &ORPHANED_RIGHTS,
        ];
        AFTER_DELETIONS.iter().any(|rule| rule.code == self.rule.code)
    }

    /// The problem as data.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "code": self.rule.code, "rule": self.rule.name, "severity": self.severity,
            "object": reference(&self.object),
            "message": self.message,
            "explain": self.rule.command(),
        });
        if !self.also.is_empty() {
            document["also"] = self.also.iter().map(reference).collect();
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
    /// The object that it changes, when it is a single one that is there.
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

    /// The command that does it, for a shell. What is applied is its input, see [`Fix::manifest`].
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

    /// The objects that are applied, as YAML.
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
        let mut document = json!({ "what": self.what, "safe": self.is_safe });
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
