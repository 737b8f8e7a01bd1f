//! The requirements of a ClusterServiceVersion, and whether they are met (olm-behaviour/csv.md#requirements).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::siblings;
use crate::api::cluster_service_version::{CrdDescription, Csv, RequirementStatus};
use crate::api::conditions::{AVAILABLE, Conditions};
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::go_json::GoType;
use crate::api::metadata::Metadata;
use crate::api::object::{self, Gvk};
use crate::api::{hash, kinds, labels};
use crate::plan::{Action, Question, Reason};
use crate::rbac;
use crate::version::Version;
use crate::world::{Discovery, IndexKey, Object, Reader, kind};

/// The result of a check: `status.requirementStatus`, and whether all requirements are met.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Requirements {
    pub(super) statuses: Vec<Value>,
    pub(super) unmet: Vec<String>,
    /// Requests for external facts without which the check is inconclusive.
    pub(super) questions: Vec<Action>,
    /// Kinds that the API server's discovery does not report: by the error, and whether their last known state is used.
    unknown: BTreeMap<(String, bool), BTreeSet<String>>,
}

impl Requirements {
    pub(super) fn met(&self) -> bool {
        self.unmet.is_empty() && self.unknown.keys().all(|(_, assumed_served)| *assumed_served)
    }

    /// Returns what is missing, and what is unknown.
    pub(super) fn reasons(&self, csv: Csv<'_>) -> Vec<Reason> {
        let (namespace, name) = (csv.namespace().to_owned(), csv.name().to_owned());
        let unknown = self.unknown.iter().map(|((message, assumed_served), apis)| Reason::ApisUnknown {
            namespace: namespace.clone(),
            name: name.clone(),
            apis: apis.iter().cloned().collect(),
            assumed_served: *assumed_served,
            message: message.clone(),
        });
        let mut reasons: Vec<Reason> = unknown.collect();
        if !self.unmet.is_empty() {
            reasons.insert(0, Reason::RequirementsNotMet { namespace, name, missing: self.unmet.clone() });
        }
        reasons
    }

    fn add(&mut self, met: bool, status: Value) {
        if !met {
            let (kind, name) = (object::kind(&status), object::text(&status, &["name"]));
            let message = match object::text(&status, &["message"]) {
                "" => object::text(&status, &["status"]),
                message => message,
            };
            self.unmet.push(format!("{kind} {name}: {message}"));
        }
        self.statuses.push(status);
    }
}

fn entry(gvk: &Gvk, name: &str, status: impl Into<Value>, message: &str) -> Value {
    json!({
        "group": gvk.group, "version": gvk.version, "kind": gvk.kind, "name": name,
        "status": status.into(), "message": message,
    })
}

fn with_uuid(mut entry: Value, object: &Value) -> Value {
    object::map_mut(&mut entry, &[]).insert("uuid".to_owned(), object::uid(object).into());
    entry
}

/// Checks all requirements. An error is an invalid permission rule.
pub(super) fn check(world: &Reader<'_>, csv: Csv<'_>) -> Result<Requirements, rbac::InvalidRule> {
    let mut found = Requirements::default();
    min_kube_version(world, csv, &mut found);
    for crd in csv.crds() {
        crd_requirement(world, csv, crd, &mut found);
    }
    api_services(world, csv, &mut found);
    native_apis(world, csv, &mut found);
    service_accounts(world, csv, &mut found)?;
    Ok(found)
}

fn min_kube_version(world: &Reader<'_>, csv: Csv<'_>, found: &mut Requirements) {
    let min = object::text(csv.json, &["spec", "minKubeVersion"]);
    if min.is_empty() {
        return;
    }
    let gvk = kinds::CLUSTER_SERVICE_VERSION.gvk();
    let mut say = |status: RequirementStatus, message: &str| {
        found.add(status == RequirementStatus::Present, entry(&gvk, csv.name(), status, message));
    };
    let Some(server) = world.server_version() else {
        return say(RequirementStatus::PresentNotSatisfied, "Server version discovery error");
    };
    let bare = server.trim_start_matches('v').split('-').next().unwrap_or_default();
    let Ok(server_version) = Version::parse(bare) else {
        return say(RequirementStatus::PresentNotSatisfied, "Server version parsing error");
    };
    let Ok(min_version) = Version::parse(min) else {
        return say(RequirementStatus::PresentNotSatisfied, "CSV version parsing error");
    };
    if min_version > server_version {
        let message =
            format!("CSV version requirement not met: minKubeVersion ({min}) > server version ({server_version})");
        say(RequirementStatus::PresentNotSatisfied, &message);
    } else {
        say(RequirementStatus::Present, &format!("CSV minKubeVersion ({min}) less than server version ({server})"));
    }
}

fn crd_requirement(world: &Reader<'_>, csv: Csv<'_>, wanted: CrdDescription<'_>, found: &mut Requirements) {
    let gvk = kinds::CUSTOM_RESOURCE_DEFINITION.gvk();
    let mut say = |met, status: RequirementStatus, message: &str, crd: Option<&Value>| {
        let entry = entry(&gvk, wanted.name, status, message);
        found.add(met, if let Some(crd) = crd { with_uuid(entry, crd) } else { entry });
    };
    let Some(crd) = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", wanted.name) else {
        return say(false, RequirementStatus::NotPresent, "CRD is not present", None);
    };
    if wanted.owned {
        let others = older_owners(world, csv, crd);
        if !others.is_empty() {
            let message = format!("CRD installed alongside other CSV(s): {}", others.join(", "));
            return say(false, RequirementStatus::PresentNotSatisfied, &message, None);
        }
    }
    if !CustomResourceDefinition::new(crd).served().any(|version| version.name() == wanted.version) {
        return say(false, RequirementStatus::NotPresent, "CRD version not served", None);
    }
    if CustomResourceDefinition::new(crd).is_established() {
        say(true, RequirementStatus::Present, "CRD is present and Established condition is true", Some(crd));
    } else {
        let message = "CRD is present but the Established condition is False (not available)";
        say(false, RequirementStatus::PresentNotAvailable, message, None);
    }
}

/// Returns the ClusterServiceVersions that the CRD was installed alongside, that this one replaces, and that still exist:
/// until its own InstallPlan has written the CRD, the CRD belongs to them.
fn older_owners(world: &Reader<'_>, csv: Csv<'_>, crd: &Value) -> Vec<String> {
    let alongside: Vec<&str> = object::entries(crd, &["metadata", "annotations"])
        .filter(|(key, _)| key.starts_with(labels::INSTALLED_ALONGSIDE))
        .map(|(_, value)| value)
        .collect();
    let named = |name: &str| alongside.iter().any(|a| *a == format!("{}/{name}", csv.namespace()));
    if named(csv.name()) {
        return Vec::new();
    }
    let mut older = Vec::new();
    let mut next = siblings::replaced(world, csv);
    while let Some(replaced) = next {
        if older.iter().any(|seen| seen == replaced.name()) {
            break;
        }
        older.push(replaced.name().to_owned());
        next = siblings::replaced(world, replaced);
    }
    older.retain(|name| named(name));
    older.sort();
    older
}

fn api_services(world: &Reader<'_>, csv: Csv<'_>, found: &mut Requirements) {
    let name_of = |d: &Value| format!("{}.{}", object::text(d, &["version"]), object::text(d, &["group"]));
    let gvk = kinds::API_SERVICE.gvk();
    let mut owned: Vec<&Value> = csv.owned_api_services().iter().collect();
    owned.sort_by_key(|d| name_of(d));
    let mut required: Vec<&Value> =
        csv.required_api_services().iter().filter(|r| !owned.iter().any(|o| name_of(o) == name_of(r))).collect();
    required.sort_by_key(|d| name_of(d));
    for description in required {
        let name = name_of(description);
        let available = world.json(&kind::API_SERVICE, "", &name).filter(|s| is_available(s));
        let service = available.filter(|_| {
            let [group, version, kind] = ["group", "version", "kind"].map(|key| object::text(description, &[key]));
            // An available API that was not discovered yet is accepted.
            discovery(world, group, version, found).is_none_or(|discovery| discovery.serves(kind) != Ok(false))
        });
        match service {
            Some(service) => found.add(true, with_uuid(entry(&gvk, &name, RequirementStatus::Present, ""), service)),
            None => found.add(false, entry(&gvk, &name, RequirementStatus::NotPresent, "")),
        }
    }
    for description in owned {
        let deployment = object::text(description, &["deploymentName"]);
        let has = csv.deployments().iter().any(|d| object::text(d, &["name"]) == deployment);
        let status = if has { "DeploymentFound" } else { "DeploymentNotFound" };
        found.add(has, entry(&gvk, &name_of(description), status, ""));
    }
}

fn is_available(api_service: &Value) -> bool {
    Conditions::new(api_service).is_true(AVAILABLE)
}

/// Checks kinds that have to be served, by any server. Without a response of the API server's discovery, the
/// ClusterServiceVersion's own status is used: an aggregated API that is temporarily unavailable fails no operator.
fn native_apis(world: &Reader<'_>, csv: Csv<'_>, found: &mut Requirements) {
    for api in csv.native_apis() {
        let Some(discovery) = discovery(world, &api.group, &api.version, found) else { continue };
        let (exists, unknown) = match discovery.serves(&api.kind) {
            Ok(exists) => (exists, None),
            Err(error) => (was_present(csv, &api), Some(error)),
        };
        let name = format!("{}.{}", api.version, api.group);
        let (status, message) = if exists {
            (RequirementStatus::Present, "Native API exists")
        } else {
            (RequirementStatus::NotPresent, "Native API does not exist")
        };
        let entry = entry(&api, &name, status, message);
        match unknown {
            None => found.add(exists, entry),
            Some(error) => {
                let kind = format!("{} ({})", api.kind, api.api_version());
                found.unknown.entry((error.to_owned(), exists)).or_default().insert(kind);
                found.statuses.push(entry);
            }
        }
    }
}

/// Returns the discovery of a version of a group. It is requested when unknown.
fn discovery<'w>(world: &Reader<'w>, group: &str, version: &str, found: &mut Requirements) -> Option<&'w Discovery> {
    let known = world.discovery(group, version);
    let question = || Action::Ask(Question::Discover { group: group.to_owned(), version: version.to_owned() });
    if known.is_none() && !found.questions.contains(&question()) {
        found.questions.push(question());
    }
    known
}

/// Returns whether the native API existed when the requirements were last checked.
fn was_present(csv: Csv<'_>, api: &Gvk) -> bool {
    csv.requirements().any(|known| known.status() == RequirementStatus::Present && known.gvk() == *api)
}

fn service_accounts(world: &Reader<'_>, csv: Csv<'_>, found: &mut Requirements) -> Result<(), rbac::InvalidRule> {
    let mut accounts: Vec<(&str, bool, Vec<Value>)> = Vec::new();
    let made = world.indexed(IndexKey::OwnerLabels {
        kind: "ClusterServiceVersion".to_owned(),
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
    });
    let scopes = [(csv.permissions(), Some(csv.namespace())), (csv.cluster_permissions(), None)];
    let work = rbac::Work::default();
    for (permissions, namespace) in scopes {
        for permission in permissions {
            let name = object::text(permission, &["serviceAccountName"]);
            if namespace.is_some() && is_made(&made, csv, name, object::at(permission, &["rules"])) {
                continue;
            }
            let index = accounts.iter().position(|(n, ..)| *n == name).unwrap_or_else(|| {
                accounts.push((name, true, Vec::new()));
                accounts.len() - 1
            });
            let granted = rbac::Granted::to(world, (csv.namespace(), name), namespace).sharing(&work);
            for rule in object::list(permission, &["rules"]) {
                let satisfied = granted.allows(rule)?;
                let scope = if namespace.is_some() { "namespaced" } else { "cluster" };
                let (_, all, dependents) = &mut accounts[index];
                *all &= satisfied;
                dependents.push(json!({
                    "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "PolicyRule",
                    "status": if satisfied { RequirementStatus::Satisfied } else { RequirementStatus::NotSatisfied },
                    "message": format!("{scope} rule:{}", GoType::POLICY_RULE.encode(rule)),
                }));
            }
        }
    }
    accounts.sort_by_key(|(name, ..)| *name);
    let gvk = kinds::SERVICE_ACCOUNT.gvk();
    for (name, satisfied, dependents) in accounts {
        let account = world.json(&kind::SERVICE_ACCOUNT, csv.namespace(), name);
        let (status, message) = match account {
            None => (RequirementStatus::NotPresent, "Service account does not exist"),
            Some(account) if belongs_to_another(account, csv) => {
                (RequirementStatus::PresentNotSatisfied, "Service account is owned by another ClusterServiceVersion")
            }
            Some(_) if !satisfied => {
                (RequirementStatus::PresentNotSatisfied, "Policy rule not satisfied for service account")
            }
            Some(_) => (RequirementStatus::Present, ""),
        };
        let mut entry = entry(&gvk, name, status, message);
        if account.is_some() && !dependents.is_empty() {
            object::map_mut(&mut entry, &[]).insert("dependents".to_owned(), dependents.into());
        }
        found.add(status == RequirementStatus::Present, entry);
    }
    Ok(())
}

/// Returns whether the InstallPlan created a Role with exactly these rules for the ServiceAccount, and its binding. Then,
/// as in OLM, nothing is evaluated, and the rules are not in the status.
fn is_made(made: &[&Arc<Object>], csv: Csv<'_>, account: &str, rules: &Value) -> bool {
    let in_namespace = |kind: &str| {
        let kind = kind.to_owned();
        made.iter()
            .map(|o| o.json())
            .filter(move |o| object::kind(o) == kind && object::namespace(o) == csv.namespace())
    };
    let hash = hash::plain_hash(GoType::POLICY_RULES, rules);
    in_namespace("Role").filter(|role| object::label(role, labels::PERMISSIONS_HASH) == Some(&hash)).any(|role| {
        in_namespace("RoleBinding").any(|binding| {
            let binds = object::at(binding, &["roleRef"]);
            let subject = |s: &Value| {
                object::kind(s) == "ServiceAccount"
                    && object::text(s, &["name"]) == account
                    && object::text(s, &["namespace"]) == csv.namespace()
            };
            object::kind(binds) == "Role"
                && object::text(binds, &["name"]) == object::name(role)
                && object::label(binding, labels::PERMISSIONS_HASH).is_some()
                && object::list(binding, &["subjects"]).iter().any(subject)
        })
    })
}

fn belongs_to_another(account: &Value, csv: Csv<'_>) -> bool {
    let mut owners = Metadata::new(account)
        .owner_references()
        .iter()
        .filter(|o| object::kind(o) == "ClusterServiceVersion")
        .map(|o| object::text(o, &["uid"]))
        .peekable();
    owners.peek().is_some() && !owners.any(|uid| uid == csv.uid())
}
