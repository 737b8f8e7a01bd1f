//! The least rights with which the ServiceAccount of an OperatorGroup can install what is asked about
//! (olm-behaviour/operatorgroup.md#serviceaccount, olm-behaviour/installplan.md#serviceaccount).
//!
//! They are found by trying: the account may do everything in the copy, and what is written with its rights there is what it needs.
//!
//! *Guarantees*: with these rights the same plan is carried out, and with them alone. *Caveats*: they are for this plan and no other:
//! the next version may need more.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::explainer::Explainer;
use super::trial::Trial;
use super::{Error, Subject};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::kinds::{OLM, RBAC};
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::plan::{Account, Controller};
use crate::rbac::Granted;
use crate::sim::{Actor, Happening, WatchEvent};

/// What to add to a cluster so that an account may do everything.
pub fn unlimited(account: &Account) -> [Value; 2] {
    let Account { namespace, name } = account;
    [
        service_account(account),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{namespace}-{name}-unlimited") },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": name }],
        }),
    ]
}

fn service_account(account: &Account) -> Value {
    let Account { namespace, name } = account;
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } })
}

impl Explainer {
    /// The ServiceAccount, and the Roles and ClusterRoles with their bindings, with which the plan of a subject can be carried out. In
    /// the copy the account is to be [`unlimited`], and the one that the OperatorGroup names. `None`: the plan is not carried out even
    /// so, or there is none.
    ///
    /// # Errors
    /// What is asked about is not there, or in no catalog that is known.
    pub fn installer(&self, subject: &Subject, account: &Account) -> Result<Option<Vec<Value>>, Error> {
        let trial = self.try_out(subject)?;
        let succeeded = |csv: &&str| {
            let csv = trial.after.api().find(OLM, "ClusterServiceVersion", &trial.namespace, csv);
            csv.is_some_and(|csv| Csv::of(csv).phase() == Phase::Succeeded)
        };
        if trial.phase() != "Complete" || !trial.csv_names().iter().all(succeeded) {
            return Ok(None);
        }
        Ok(Some(Needs::of(&trial).objects(account)))
    }
}

/// Group and plural.
type Resource = (String, String);

/// What is written of one resource.
#[derive(Default)]
struct Writes {
    creates: bool,
    deletes: bool,
    /// The names; none when they are generated, and nobody knows them.
    names: Option<BTreeSet<String>>,
}

/// What is needed in one namespace (or, without one, in the whole cluster).
#[derive(Default)]
struct Needs {
    writes: BTreeMap<(Option<String>, Resource), Writes>,
    /// Rules that are given away, and so have to be held.
    held: BTreeMap<Option<String>, Vec<Value>>,
    /// Roles that are bound and were there before: kind and name.
    bound: BTreeMap<Option<String>, BTreeSet<(String, String)>>,
}

impl Needs {
    fn of(trial: &Trial) -> Self {
        let mut needs = Self::default();
        let done: Vec<(&str, &Value)> = trial.happenings.iter().filter_map(with_rights).collect();
        let made = |kind: &str, namespace: &str, name: &str| {
            let is_it = |object: &Value| {
                object::kind(object) == kind
                    && (kind == "ClusterRole" || object::namespace(object) == namespace)
                    && object::name(object) == name
            };
            done.iter().any(|(_, object)| is_it(object))
        };
        for (verb, object) in &done {
            let gvk = object::gvk(object);
            let Some(kind) = trial.after.api().kind(&gvk.group, &gvk.kind) else { continue };
            let place = kind.namespaced.then(|| object::namespace(object).to_owned());
            let key = (place.clone(), (gvk.group.clone(), kind.plural.clone()));
            let writes =
                needs.writes.entry(key).or_insert_with(|| Writes { names: Some(BTreeSet::new()), ..Writes::default() });
            writes.creates |= *verb == "create";
            // When OLM finds that it has to give way it deletes the Deployments, whether this happened here or not.
            writes.deletes |= *verb == "delete" || gvk.kind == "Deployment";
            if !Metadata::of(object).generate_name().is_empty() {
                writes.names = None;
            } else if let Some(names) = &mut writes.names {
                names.insert(object::name(object).to_owned());
            }
            if gvk.group == RBAC && *verb != "delete" {
                let [kind, name] = ["kind", "name"].map(|field| object::text(object, &["roleRef", field]));
                if gvk.kind.ends_with("Binding") {
                    if !made(kind, object::namespace(object), name) {
                        needs.bound.entry(place).or_default().insert((kind.to_owned(), name.to_owned()));
                    }
                } else {
                    let held = needs.held.entry(place).or_default();
                    for rule in object::list(object, &["rules"]) {
                        if !held.contains(rule) {
                            held.push(rule.clone());
                        }
                    }
                }
            }
        }
        needs
    }

    /// The rules for one place.
    fn rules(&self, place: Option<&String>) -> Vec<Value> {
        let mut rules = Vec::new();
        // What is created has no name yet as far as rules are concerned.
        let mut created: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for ((_, (group, plural)), writes) in self.writes.iter().filter(|((at, _), _)| at.as_ref() == place) {
            if writes.creates {
                created.entry(group).or_default().push(plural);
            }
        }
        for (group, plurals) in created {
            rules.push(json!({ "apiGroups": [group], "resources": plurals, "verbs": ["create"] }));
        }
        for ((_, (group, plural)), writes) in self.writes.iter().filter(|((at, _), _)| at.as_ref() == place) {
            let mut verbs = vec!["get", "update", "patch"];
            if writes.deletes {
                verbs.push("delete");
            }
            let mut rule = json!({ "apiGroups": [group], "resources": [plural], "verbs": verbs });
            if let Some(names) = &writes.names {
                rule["resourceNames"] = json!(names);
            }
            rules.push(rule);
        }
        let everywhere: Vec<&Value> = self.held.get(&None).into_iter().flatten().collect();
        let everywhere = Granted::of(if place.is_some() { everywhere } else { Vec::new() });
        let place = place.cloned();
        for (kind, name) in self.bound.get(&place).into_iter().flatten() {
            let plural = format!("{}s", kind.to_lowercase());
            rules.push(
                json!({ "apiGroups": [RBAC], "resources": [plural], "resourceNames": [name], "verbs": ["bind"] }),
            );
        }
        // What is held in the whole cluster is held here.
        let held = self.held.get(&place).into_iter().flatten();
        rules.extend(held.filter(|rule| !everywhere.allows(rule).unwrap_or(false)).cloned());
        rules
    }

    fn objects(&self, account: &Account) -> Vec<Value> {
        let mut objects = vec![service_account(account)];
        let places: BTreeSet<&Option<String>> =
            self.writes.keys().map(|(place, _)| place).chain(self.held.keys()).chain(self.bound.keys()).collect();
        for place in places {
            let Account { namespace, name } = account;
            let (kind, metadata) = match place {
                // Names of ClusterRoles are everybody's.
                None => ("ClusterRole", json!({ "name": format!("{namespace}-{name}-installer") })),
                Some(place) => ("Role", json!({ "name": format!("{name}-installer"), "namespace": place })),
            };
            let api_version = format!("{RBAC}/v1");
            objects.push(json!({
                "apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": self.rules(place.as_ref()),
            }));
            objects.push(json!({
                "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": { "apiGroup": RBAC, "kind": kind, "name": metadata["name"] },
                "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
            }));
        }
        objects
    }
}

/// What was written with the rights of the account: verb and object.
fn with_rights(happening: &Happening) -> Option<(&'static str, &Value)> {
    let Actor::Controller(key) = &happening.actor else { return None };
    let (verb, object) = match &happening.change {
        WatchEvent::Added(object) => ("create", object),
        WatchEvent::Modified(object) => ("update", object),
        WatchEvent::Deleted(object) => ("delete", object),
    };
    let kind = object::gvk(object).kind;
    let with = match key.controller {
        // Steps, but for CustomResourceDefinitions, which need the rights of a cluster's administrator.
        Controller::InstallPlan => !matches!(kind.as_str(), "InstallPlan" | "CustomResourceDefinition" | "Event"),
        // What a ClusterServiceVersion installs.
        Controller::ClusterServiceVersion => {
            !matches!(kind.as_str(), "ClusterServiceVersion" | "OperatorGroup" | "Event")
        }
        _ => false,
    };
    with.then_some((verb, object))
}

#[cfg(test)]
mod tests;
