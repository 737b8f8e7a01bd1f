//! Computes the minimal permissions with which the ServiceAccount of an OperatorGroup can install a subject
//! (olm-behaviour/operatorgroup.md#serviceaccount, olm-behaviour/installplan.md#serviceaccount).
//!
//! The account may do everything in the simulation, and the permissions are derived from the objects that are written with its permissions.
//!
//! *Guarantees*: with these permissions alone, the same plan is executed. *Caveats*: they apply to this plan only; the next version may
//! need more.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::explainer::Explainer;
use super::simulated_plan::SimulatedPlan;
use super::{Error, Subject};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::kinds::{OLM_GROUP, RBAC_GROUP};
use crate::api::metadata::Metadata;
use crate::api::{install_plan, object};
use crate::plan::{Account, Controller};
use crate::rbac::Granted;
use crate::sim::{Actor, Happening, WatchEvent};

/// Returns the objects that grant an account all permissions.
pub fn unlimited(account: &Account) -> [Value; 2] {
    let Account { namespace, name } = account;
    [
        service_account(account),
        json!({
            "apiVersion": format!("{RBAC_GROUP}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{namespace}-{name}-unlimited") },
            "roleRef": { "apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "namespace": namespace, "name": name }],
        }),
    ]
}

fn service_account(account: &Account) -> Value {
    let Account { namespace, name } = account;
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } })
}

impl Explainer {
    /// Returns the ServiceAccount, and the Roles and ClusterRoles with their bindings, with which the plan of a subject can be executed. In
    /// the copy, the account has to be [`unlimited`], and named by the OperatorGroup. Returns `None` if there is no plan, or if it is not
    /// executed even so.
    ///
    /// # Errors
    /// The subject does not exist, or no known catalog offers it.
    pub fn installer(&self, subject: &Subject, account: &Account) -> Result<Option<Vec<Value>>, Error> {
        let simulated = self.simulate(subject)?;
        let succeeded = |csv: &&str| {
            let csv = simulated.after.api().find(OLM_GROUP, "ClusterServiceVersion", &simulated.namespace, csv);
            csv.is_some_and(|csv| Csv::new(csv).phase() == Phase::Succeeded)
        };
        if simulated.phase() != install_plan::Phase::Complete || !simulated.csv_names().iter().all(succeeded) {
            return Ok(None);
        }
        Ok(Some(Needs::from_plan(&simulated).objects(account)))
    }
}

/// Group and plural.
type Resource = (String, String);

/// The writes of one resource.
#[derive(Default)]
struct Writes {
    creates: bool,
    deletes: bool,
    /// The names of the objects; `None` if names are generated and so unknown.
    names: Option<BTreeSet<String>>,
}

/// The permissions that are needed, by namespace (`None` for the whole cluster).
#[derive(Default)]
struct Needs {
    writes: BTreeMap<(Option<String>, Resource), Writes>,
    /// Rules that are granted, and so have to be held.
    held: BTreeMap<Option<String>, Vec<Value>>,
    /// Existing roles that are bound: kind and name.
    bound: BTreeMap<Option<String>, BTreeSet<(String, String)>>,
}

impl Needs {
    fn from_plan(simulated: &SimulatedPlan) -> Self {
        let mut needs = Self::default();
        let done: Vec<(&str, &Value)> = simulated.happenings.iter().filter_map(with_permissions).collect();
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
            let Some(kind) = simulated.after.api().kind(&gvk.group, &gvk.kind) else { continue };
            let place = kind.namespaced.then(|| object::namespace(object).to_owned());
            let key = (place.clone(), (gvk.group.clone(), kind.plural.clone()));
            let writes =
                needs.writes.entry(key).or_insert_with(|| Writes { names: Some(BTreeSet::new()), ..Writes::default() });
            writes.creates |= *verb == "create";
            // OLM deletes Deployments if the operator conflicts with another one, which may not happen in the simulation.
            writes.deletes |= *verb == "delete" || gvk.kind == "Deployment";
            if !Metadata::new(object).generate_name().is_empty() {
                writes.names = None;
            } else if let Some(names) = &mut writes.names {
                names.insert(object::name(object).to_owned());
            }
            if gvk.group == RBAC_GROUP && *verb != "delete" {
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

    /// Returns the rules for one namespace, or the cluster.
    fn rules(&self, place: Option<&String>) -> Vec<Value> {
        let mut rules = Vec::new();
        // RBAC cannot restrict creations by name.
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
        let everywhere = Granted::from_rules(if place.is_some() { everywhere } else { Vec::new() });
        let place = place.cloned();
        for (kind, name) in self.bound.get(&place).into_iter().flatten() {
            let plural = format!("{}s", kind.to_lowercase());
            rules.push(
                json!({ "apiGroups": [RBAC_GROUP], "resources": [plural], "resourceNames": [name], "verbs": ["bind"] }),
            );
        }
        // Rules that are held in the whole cluster need not be repeated.
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
                // ClusterRoles have no namespace, so their names have to be unique.
                None => ("ClusterRole", json!({ "name": format!("{namespace}-{name}-installer") })),
                Some(place) => ("Role", json!({ "name": format!("{name}-installer"), "namespace": place })),
            };
            let api_version = format!("{RBAC_GROUP}/v1");
            objects.push(json!({
                "apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": self.rules(place.as_ref()),
            }));
            objects.push(json!({
                "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": { "apiGroup": RBAC_GROUP, "kind": kind, "name": metadata["name"] },
                "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
            }));
        }
        objects
    }
}

/// Returns verb and object of a write with the permissions of the account.
fn with_permissions(happening: &Happening) -> Option<(&'static str, &Value)> {
    let Actor::Controller(key) = &happening.actor else { return None };
    let (verb, object) = match &happening.change {
        WatchEvent::Added(object) => ("create", object),
        WatchEvent::Modified(object) => ("update", object),
        WatchEvent::Deleted(object) => ("delete", object),
    };
    let kind = object::gvk(object).kind;
    let with = match key.controller {
        // Steps, except CustomResourceDefinitions, which are written with OLM's own permissions.
        Controller::InstallPlan => !matches!(kind.as_str(), "InstallPlan" | "CustomResourceDefinition" | "Event"),
        // The objects that a ClusterServiceVersion installs.
        Controller::ClusterServiceVersion => {
            !matches!(kind.as_str(), "ClusterServiceVersion" | "OperatorGroup" | "Event")
        }
        _ => false,
    };
    with.then_some((verb, object))
}

#[cfg(test)]
mod tests;
