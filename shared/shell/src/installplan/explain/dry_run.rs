//! Sends the writes of a plan to the API server as dry runs (`dryRun=All`), which store nothing. Permissions are
//! checked first, so that missing ones are not mistaken for refusals.
//!
//! ```text
//!   Write, … --olm_core: can it be sent?--> is it permitted? --dry run--> olm_core: interpret --> DryRunResult, …
//! ```

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::explain::{Answer, DryRunResult, Write, lacks_grants};
use olm_core::plan::Account;
use olm_core::world::{GroupKind, Reader};
use serde_json::{Value, json};

use crate::cluster::api::Api;
use crate::cluster::certificate;
use crate::observe::ClusterState;

/// The number of concurrent requests.
const REQUESTS: usize = 16;

/// The maximum number of missing permissions to name.
const NAMED: usize = 3;

/// A permission, such as `create deployments.apps in namespace garden`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    verb: &'static str,
    group: String,
    resource: String,
    namespace: String,
    account: Option<(String, String)>,
}

/// Whether a permission is granted.
enum May {
    Yes,
    No,
    /// Unknown, for that reason.
    Unknown(String),
}

/// Sends all writes, and returns the results and a phrase that names the missing permissions.
pub(super) async fn send(state: &ClusterState, writes: Vec<Write>) -> (Vec<DryRunResult>, String) {
    let Some(api) = state.api() else { return (Vec::new(), String::new()) };
    let knows_namespaces = !state.read_failures.iter().any(|failure| failure.resource == "namespaces");
    let mut results = Vec::new();
    let mut asked: Vec<(ObjectRef, Write, Permission)> = Vec::new();
    for write in writes {
        let target = ObjectRef::from_object(&write.object);
        let serves = state.served.serves(&target.gvk);
        let permission = match write.hindrance(&Reader::new(&state.world), serves, knows_namespaces) {
            None => permission(api, &target, &write).await,
            Some(why) => Err(why),
        };
        match permission {
            Ok(permission) => asked.push((target, write, permission)),
            Err(why) => results.push(DryRunResult { target, answer: Answer::NotSent(why) }),
        }
    }
    let permissions: BTreeSet<Permission> = asked.iter().map(|(_, _, permission)| permission.clone()).collect();
    let answers = stream::iter(permissions).map(|permission| async move {
        let may = may(api, &permission).await;
        (permission, may)
    });
    let known: BTreeMap<Permission, May> = answers.buffer_unordered(REQUESTS).collect().await;
    let mut missing = Missing::default();
    let mut allowed = Vec::new();
    for (target, write, permission) in asked {
        match known.get(&permission) {
            Some(May::Yes) => allowed.push((target, write)),
            Some(May::No) if permission.account.is_some() => {
                let message = format!("ServiceAccount {} is not allowed to {permission}", permission.owner());
                let answer = Answer::Refused(Status::new(403, "Forbidden", message));
                results.push(DryRunResult { target, answer });
            }
            Some(May::Unknown(why)) => {
                missing.others.insert(why.clone());
                results.push(DryRunResult { target, answer: Answer::NotSent(why.clone()) });
            }
            _ => {
                results.push(DryRunResult { target, answer: Answer::NotSent(format!("not allowed to {permission}")) });
                missing.permissions.insert(permission);
            }
        }
    }
    let mut authority = None;
    for (_, write) in &mut allowed {
        certify(&mut write.object, &mut authority);
    }
    let answers = stream::iter(allowed).map(|(target, write)| async move {
        let answer = ask(api, state, &target, write).await;
        (target, answer)
    });
    for (target, answer) in answers.buffered(REQUESTS).collect::<Vec<_>>().await {
        let answer = match answer {
            Ok(kept) => Answer::Accepted(kept),
            Err(refusal) => {
                if lacks_grants(&refusal) {
                    missing.grants.insert(format!("{} {}", target.gvk.kind, target.name));
                }
                refusal.into()
            }
        };
        results.push(DryRunResult { target, answer });
    }
    (results, missing.to_string())
}

async fn permission(api: &Api, target: &ObjectRef, write: &Write) -> Result<Permission, String> {
    let resource = api.resource(&target.gvk).await.map_err(|refusal| refusal.message)?;
    Ok(Permission {
        verb: if write.exists { "update" } else { "create" },
        group: target.gvk.group.clone(),
        resource: resource.plural,
        namespace: target.namespace.clone(),
        account: write.account.clone().map(|Account { namespace, name }| (namespace, name)),
    })
}

/// Checks whether the caller, or the ServiceAccount whose permissions are used, is allowed to write.
async fn may(api: &Api, permission: &Permission) -> May {
    let Permission { verb, group, resource, namespace, account } = permission;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "namespace": namespace, "verb": verb, "group": group, "resource": resource,
        } },
    });
    let api = impersonating(api, account.as_ref());
    match api.create(&review).await {
        Ok(review) if object::at(&review, &["status", "allowed"]) == &Value::Bool(true) => May::Yes,
        Ok(_) => May::No,
        Err(refusal) if refusal.is_forbidden() && account.is_some() => May::Unknown(format!(
            "not allowed to impersonate ServiceAccount {}, whose permissions are used to execute the plan",
            permission.owner()
        )),
        Err(refusal) => May::Unknown(format!("the API server does not report permissions: {}", refusal.message)),
    }
}

fn impersonating(api: &Api, account: Option<&(String, String)>) -> Api {
    match account {
        Some((namespace, name)) => {
            api.with_permissions_of(&Account { namespace: namespace.clone(), name: name.clone() })
        }
        None => api.clone(),
    }
}

async fn ask(api: &Api, state: &ClusterState, target: &ObjectRef, write: Write) -> Result<Value, Status> {
    let Write { mut object, exists, account } = write;
    let api = account.map_or_else(|| api.clone(), |account| api.with_permissions_of(&account));
    let answer = if exists {
        let world = Reader::new(&state.world);
        let of = GroupKind::new(&target.gvk.group, &target.gvk.kind);
        let version = world.json(&of, &target.namespace, &target.name).map_or("", object::resource_version).to_owned();
        object::map_mut(&mut object, &["metadata"]).insert("resourceVersion".to_owned(), version.into());
        api.dry_run_update(&object).await
    } else {
        api.dry_run_create(&object).await
    };
    answer.map(|mut kept| {
        // The response may be in another version; it is the object that was sent.
        for field in ["apiVersion", "kind"] {
            object::map_mut(&mut kept, &[]).insert(field.to_owned(), object[field].clone());
        }
        kept
    })
}

/// Replaces the placeholder of a CA certificate that is only created on execution by a valid one, since API servers validate it.
fn certify(value: &mut Value, authority: &mut Option<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(text) if key == "caBundle" && !text.is_empty() => {
                        let made = authority.get_or_insert_with(certificate::any_authority);
                        text.clone_from(made);
                    }
                    value => certify(value, authority),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| certify(item, authority)),
        _ => {}
    }
}

impl Permission {
    /// Returns the ServiceAccount as `garden/rose-sa`.
    fn owner(&self) -> String {
        self.account.as_ref().map(|(namespace, name)| format!("{namespace}/{name}")).unwrap_or_default()
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, group, resource, namespace, account: _ } = self;
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        write!(f, "{verb} {resource}{group}{place}")
    }
}

/// The permissions missing for dry runs.
#[derive(Default)]
struct Missing {
    permissions: BTreeSet<Permission>,
    /// Roles that contain permissions which the caller does not have.
    grants: BTreeSet<String>,
    /// Other reasons, as text.
    others: BTreeSet<String>,
}

impl std::fmt::Display for Missing {
    /// Writes `not allowed to create clusterroles.rbac.authorization.k8s.io, … and 2 more`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { permissions, grants, others } = self;
        let mut sentences: Vec<String> = others.iter().cloned().collect();
        if !permissions.is_empty() {
            sentences.push(format!("not allowed to {}", named(permissions.iter().map(ToString::to_string))));
        }
        if !grants.is_empty() {
            sentences.push(format!("not allowed to grant the permissions in {}", named(grants.iter().cloned())));
        }
        f.write_str(&sentences.join("; "))
    }
}

fn named(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let first: Vec<String> = all.take(NAMED).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permissions_are_listed() {
        let permission = |resource: &str| Permission {
            verb: "create",
            group: "apps".to_owned(),
            resource: resource.to_owned(),
            namespace: "garden".to_owned(),
            account: None,
        };
        let missing = Missing {
            permissions: BTreeSet::from([permission("deployments")]),
            grants: BTreeSet::from(["Role rose".to_owned()]),
            others: BTreeSet::new(),
        };
        assert_eq!(
            missing.to_string(),
            "not allowed to create deployments.apps in namespace garden; not allowed to grant the permissions in Role rose"
        );
    }
}
