//! The ServiceAccount of an OperatorGroup with whose permissions its plans are executed, and the permissions that it lacks
//! (olm-behaviour/installplan.md#serviceaccount).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::step;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::install_plan::{InstallPlan, Step};
use crate::api::{kinds, object};
use crate::plan::{Account, Reason};
use crate::rbac::{self, Granted};
use crate::world::{GroupKind, IndexKey, Reader, kind};

/// Returns the ServiceAccount that the status of a plan references. The namespace of the reference is ignored in favour of the plan's own,
/// so that users who can write the status of a plan do not gain permissions in other namespaces.
pub(super) fn account(plan: &Value, reference: &Value) -> Option<Account> {
    let (namespace, name) = (object::namespace(plan).to_owned(), object::text(reference, &["name"]).to_owned());
    (!name.is_empty()).then_some(Account { namespace, name })
}

/// A missing permission.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingPermission {
    /// The namespace in which it is needed; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// The missing permission, as a rule of a Role.
    pub rule: Value,
    /// Whether it is needed to grant it. To write a Role, an account needs the permissions that the Role grants.
    pub to_grant: bool,
}

impl std::fmt::Display for MissingPermission {
    /// Formats `create deployments.apps in namespace garden`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.to_grant {
            write!(f, "grant {}", rbac::described(&self.rule))?;
        } else {
            // The name of an existing object is omitted.
            let mut rule = self.rule.clone();
            object::map_mut(&mut rule, &[]).remove("resourceNames");
            f.write_str(&rbac::described(&rule))?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => f.write_str(" in the cluster"),
        }
    }
}

/// Returns all permissions that the remaining steps need and the ServiceAccount lacks. The API server would report them only one by one.
pub fn lacking(world: &Reader<'_>, plan: &Value, account: &Account) -> Vec<MissingPermission> {
    let namespace = object::namespace(plan);
    let owner = (account.namespace.as_str(), account.name.as_str());
    let (within, everywhere) = (Granted::to(world, owner, Some(namespace)), Granted::to(world, owner, None));
    let mut missing = Vec::new();
    for step in InstallPlan::new(plan).steps_json() {
        let gvk = step::gvk(step);
        let is_done = Step::new(step).is_done();
        let Some((plural, namespaced)) = resource(world, &GroupKind::new(&gvk.group, &gvk.kind)) else { continue };
        if is_done || gvk.kind == "CustomResourceDefinition" {
            continue;
        }
        let name = Step::new(step).name();
        let place = if namespaced { namespace } else { "" };
        let there = world.json(&GroupKind::new(&gvk.group, &gvk.kind), place, name).is_some();
        let verb = if there { "update" } else { "create" };
        let mut rule = json!({ "verbs": [verb], "apiGroups": [gvk.group], "resources": [plural] });
        if there {
            rule["resourceNames"] = json!([name]);
        }
        let granted = if namespaced { &within } else { &everywhere };
        let place = namespaced.then(|| namespace.to_owned());
        if !granted.allows(&rule).is_ok_and(|allowed| allowed) {
            missing.push(MissingPermission { namespace: place.clone(), rule, to_grant: false });
        }
        let given = gives_away(world, plan, step, owner).into_iter();
        missing.extend(given.map(|rule| MissingPermission { namespace: place.clone(), rule, to_grant: true }));
    }
    missing
}

/// Returns the missing permissions as a reason, without duplicates.
pub(super) fn missing(world: &Reader<'_>, plan: &Value, account: &Account) -> Option<Reason> {
    let missing: BTreeSet<String> = lacking(world, plan, account).iter().map(MissingPermission::to_string).collect();
    let (namespace, name) = (account.namespace.clone(), account.name.clone());
    (!missing.is_empty()).then(|| Reason::PermissionsMissing {
        namespace,
        name,
        permissions: missing.into_iter().collect(),
    })
}

/// Returns the permissions that a step for a Role or a binding would grant and the ServiceAccount lacks.
fn gives_away(world: &Reader<'_>, plan: &Value, step: &Value, account: (&str, &str)) -> Vec<Value> {
    if step::gvk(step).group != kind::ROLE.group {
        return Vec::new();
    }
    let Ok(mut object) = step::manifest(step) else { return Vec::new() };
    let namespace = object::namespace(plan);
    let is_namespaced = matches!(object::kind(&object), "Role" | "RoleBinding");
    let metadata = object::map_mut(&mut object, &["metadata"]);
    metadata.insert("namespace".to_owned(), if is_namespaced { namespace } else { "" }.into());
    rbac::escalation(world, account, &object, |role, name| {
        let steps = InstallPlan::new(plan).steps_json().iter();
        let mut made = steps.filter(|s| step::gvk(s).kind == role && Step::new(s).name() == name);
        let known = || {
            let kind = if role == "Role" { &kind::ROLE } else { &kind::CLUSTER_ROLE };
            world.json(kind, if role == "Role" { namespace } else { "" }, name).cloned()
        };
        let role = made.next().and_then(|step| step::manifest(step).ok()).or_else(known).unwrap_or_default();
        object::list(&role, &["rules"]).to_vec()
    })
}

/// Returns the plural of a kind, and whether it is namespaced; `None` for unknown kinds.
fn resource(world: &Reader<'_>, gk: &GroupKind) -> Option<(String, bool)> {
    let definitions = world.indexed(IndexKey::Definition(gk.group.to_string(), gk.kind.to_string()));
    if let Some(definition) = definitions.first().map(|d| d.json()) {
        let plural = CustomResourceDefinition::new(definition).plural().to_owned();
        return Some((plural, CustomResourceDefinition::new(definition).is_namespaced()));
    }
    kinds::find(&gk.group, &gk.kind).map(|kind| (kind.plural.to_owned(), kind.namespaced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_a_plan_is_one_of_its_own_namespace() {
        let plan = json!({ "metadata": { "namespace": "garden" } });
        let reference = json!({ "name": "admin", "namespace": "kube-system" });
        let found = account(&plan, &reference).unwrap();
        assert_eq!(found.user(), "system:serviceaccount:garden:admin");
        assert_eq!(account(&plan, &Value::Null), None);
    }
}
