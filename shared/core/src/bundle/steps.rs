//! Converts a bundle to the steps of an InstallPlan (olm-behaviour/installplan.md#steps).

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::BundleContent;
use crate::api::cluster_service_version::Csv;
use crate::api::go_json::GoType;
use crate::api::install_plan::Step;
use crate::api::kinds::{self, RBAC_GROUP};
use crate::api::metadata::Metadata;
use crate::api::object::{self, Gvk};
use crate::api::subscription::Approval;
use crate::api::{hash, labels};
use crate::go_format;

/// The ClusterServiceVersion of a bundle, and its catalog.
#[derive(Clone, Copy, Debug)]
pub struct BundleSource<'a> {
    /// Name of the catalog.
    pub catalog: &'a str,
    /// Namespace of the catalog.
    pub catalog_namespace: &'a str,
    /// Name of the bundle's ClusterServiceVersion.
    pub csv: &'a str,
    /// The ClusterServiceVersion that it replaces, as resolved; empty when none.
    pub replaces: &'a str,
}

/// The kinds that a step can carry, of any group (olm-behaviour/installplan.md#steps).
const SUPPORTED: [&str; 21] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterServiceVersion",
    "ConfigMap",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "CustomResourceDefinition",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PriorityClass",
    "PrometheusRule",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "ServiceMonitor",
    "VerticalPodAutoscaler",
];

/// Returns whether a step can carry objects of a kind.
pub(crate) fn is_supported(kind: &str) -> bool {
    SUPPORTED.contains(&kind)
}

/// Why a bundle cannot be converted to steps, in OLM's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// Returns the step that creates an object of that kind and name. `manifest` is the object's JSON as text.
fn step(source: &BundleSource<'_>, gvk: &Gvk, name: &str, manifest: &str) -> Value {
    json!({
        "resolving": source.csv,
        "resource": {
            "sourceName": source.catalog,
            "sourceNamespace": source.catalog_namespace,
            "group": gvk.group,
            "version": gvk.version,
            "kind": gvk.kind,
            "name": name,
            "manifest": format!("{manifest}\n"),
        },
        "status": "Unknown",
    })
}

/// Returns the steps of one bundle: the ClusterServiceVersion, the other objects in their order, the accounts and
/// permissions. `objects` may contain the ClusterServiceVersion too; `properties` is the list for its annotation.
///
/// # Errors
/// The install strategy of the ClusterServiceVersion is not `deployment`, or cannot be read.
pub fn of_bundle(
    source: &BundleSource<'_>,
    namespace: &str,
    csv: &Value,
    objects: &[Value],
    properties: &Value,
) -> Result<Vec<Value>, Unreadable> {
    for (key, word) in [("apiVersion", "APIVersion"), ("kind", "Kind")] {
        if object::text(csv, &[key]).is_empty() {
            return Err(Unreadable(format!("bundle CSV {} missing {word}", object::name(csv))));
        }
    }
    let mut csv = csv.clone();
    object::map_mut(&mut csv, &["metadata"]).insert("namespace".to_owned(), namespace.into());
    object::map_mut(&mut csv, &["spec"]).insert("replaces".to_owned(), source.replaces.into());
    let annotation = go_format::json(&json!({ "properties": properties }));
    object::set_annotation(&mut csv, "operatorframework.io/properties", &annotation);
    let manifest = GoType::CLUSTER_SERVICE_VERSION.encode(&csv);
    let mut steps = vec![step(source, &object::gvk(&csv), object::name(&csv), &manifest)];
    for object in objects.iter().filter(|o| object::kind(o) != "ClusterServiceVersion") {
        let mut gvk = object::gvk(object);
        // Of any group, as in OLM.
        if gvk.kind == "Secret" {
            "BundleSecret".clone_into(&mut gvk.kind);
        }
        let name = match object::name(object) {
            "" => Metadata::new(object).generate_name(),
            name => name,
        };
        steps.push(step(source, &gvk, name, &go_format::json(object)));
    }
    steps.extend(access(source, namespace, &csv)?);
    Ok(steps)
}

/// Like [`of_bundle`], from the JSON texts of a catalog or an image.
///
/// # Errors
/// An object is not JSON, or [`of_bundle`] fails: the message is that of OLM.
pub fn of_content(
    source: &BundleSource<'_>,
    namespace: &str,
    content: &BundleContent,
    properties: &Value,
) -> Result<Vec<Value>, String> {
    let fail = |why: String| format!("failed to turn bundle into steps: {why}");
    let read = |json: &str| serde_json::from_str::<Value>(json).map_err(|e| fail(e.to_string()));
    let csv = read(&content.csv_json)?;
    let objects = content.objects.iter().map(|o| read(o)).collect::<Result<Vec<Value>, String>>()?;
    of_bundle(source, namespace, &csv, &objects, properties).map_err(|e| fail(e.0))
}

/// Returns ServiceAccounts, Roles and bindings for the permissions in the install strategy, by account.
fn access(source: &BundleSource<'_>, namespace: &str, csv: &Value) -> Result<Vec<Value>, Unreadable> {
    let strategy = Csv::new(csv).strategy();
    if strategy != "deployment" {
        return Err(Unreadable("unrecognized install strategy".to_owned()));
    }
    let permissions = |part: &str| object::list(csv, &["spec", "install", "spec", part]);
    let account = |p: &Value| object::text(p, &["serviceAccountName"]).to_owned();
    let all = permissions("permissions").iter().chain(permissions("clusterPermissions"));
    let accounts: BTreeSet<String> = all.map(account).collect();
    let mut steps = Vec::new();
    for name in &accounts {
        let grant = Grant { source, namespace, csv, account: name };
        let (mut bindings, of_account) = (Vec::new(), |p: &&Value| account(p) == *name);
        if name != "default" {
            steps.push(grant.service_account(permissions("permissions").iter().any(|p| of_account(&p))));
        }
        for permission in permissions("permissions").iter().filter(of_account) {
            let (role, binding) = grant.permissions(permission, false);
            steps.push(role);
            bindings.push(binding);
        }
        steps.append(&mut bindings);
        for permission in permissions("clusterPermissions").iter().filter(of_account) {
            let (role, binding) = grant.permissions(permission, true);
            steps.push(role);
            bindings.push(binding);
        }
        steps.append(&mut bindings);
    }
    Ok(steps)
}

/// The permissions of one ServiceAccount of a ClusterServiceVersion.
struct Grant<'a> {
    source: &'a BundleSource<'a>,
    namespace: &'a str,
    csv: &'a Value,
    account: &'a str,
}

impl Grant<'_> {
    /// Returns the owner reference to the ClusterServiceVersion; its uid is set when the step is executed.
    fn owner(&self) -> Value {
        let mut owner = object::owner_reference(self.csv, false);
        // OLM only checks the kind, whatever group and version the manifest has.
        owner["apiVersion"] = "operators.coreos.com/v1alpha1".into();
        owner
    }

    /// Returns the ServiceAccount. OLM sets the namespace only when the account has permissions in it.
    fn service_account(&self, namespaced: bool) -> Value {
        let mut object = json!({ "metadata": { "name": self.account, "ownerReferences": [self.owner()] } });
        if namespaced {
            object::map_mut(&mut object, &["metadata"]).insert("namespace".to_owned(), self.namespace.into());
        }
        self.step("", "ServiceAccount", &object)
    }

    /// Returns the steps for a Role and its RoleBinding, or for the cluster-scoped equivalents.
    fn permissions(&self, permission: &Value, cluster: bool) -> (Value, Value) {
        let csv = object::name(self.csv);
        let (kind, base, digest) = if cluster {
            let hashed = json!({ "name": csv, "namespace": self.namespace, "permission": permission });
            ("ClusterRole", csv.to_owned(), hash::deep_hash(GoType::CLUSTER_ROLE_NAME, &hashed))
        } else {
            let hashed = json!({ "name": csv, "permission": permission });
            ("Role", format!("{csv}-{}", self.account), hash::deep_hash(GoType::ROLE_NAME, &hashed))
        };
        let name = hash::generate_name(&base, &digest);
        let rules = object::at(permission, &["rules"]).clone();
        let role_ref = json!({ "apiGroup": RBAC_GROUP, "kind": kind, "name": name });
        let subjects = json!([{ "kind": "ServiceAccount", "name": self.account, "namespace": self.namespace }]);

        let mut role = json!({ "metadata": { "name": name }, "rules": rules });
        self.mark(&mut role, &hash::plain_hash(GoType::POLICY_RULES, &rules));
        let mut binding = json!({
            "metadata": { "name": name, "namespace": self.namespace },
            "subjects": subjects,
            "roleRef": role_ref,
        });
        let hashed = json!({ "RoleRef": role_ref, "Subjects": subjects });
        self.mark(&mut binding, &hash::plain_hash(GoType::BINDING_HASH, &hashed));
        if !cluster {
            object::map_mut(&mut role, &["metadata"]).insert("namespace".to_owned(), self.namespace.into());
            for object in [&mut role, &mut binding] {
                let owners = json!([self.owner()]);
                object::map_mut(object, &["metadata"]).insert("ownerReferences".to_owned(), owners);
            }
        }
        (self.step(RBAC_GROUP, kind, &role), self.step(RBAC_GROUP, &format!("{kind}Binding"), &binding))
    }

    fn mark(&self, object: &mut Value, permissions_hash: &str) {
        labels::set_owner(object, self.csv);
        object::set_label(object, "olm.permissions.hash", permissions_hash);
    }

    /// Returns a step. The manifest has no apiVersion and kind: the step contains them.
    fn step(&self, group: &str, kind: &str, object: &Value) -> Value {
        let manifest = GoType::named(kind).map_or_else(|| go_format::json(object), |t| t.encode(object));
        step(self.source, &Gvk::new(group, "v1", kind), object::name(object), &manifest)
    }
}

/// Returns the step that creates the Subscription of a dependency (olm-behaviour/subscription.md#solution-to-steps).
pub fn of_subscription(source: &BundleSource<'_>, namespace: &str, package: &str, channel: &str) -> Value {
    let BundleSource { catalog, catalog_namespace, csv, .. } = *source;
    let name = format!("{package}-{channel}-{catalog}-{catalog_namespace}");
    let mut spec = json!({
        "source": catalog,
        "sourceNamespace": catalog_namespace,
        "name": package,
        "channel": channel,
        "startingCSV": csv,
        "installPlanApproval": Approval::Automatic,
    });
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| value != "");
        // Always written, even if empty.
        for (key, value) in [("source", catalog), ("sourceNamespace", catalog_namespace), ("name", package)] {
            spec.insert(key.to_owned(), value.into());
        }
    }
    let object = json!({
        "metadata": { "name": name, "namespace": namespace },
        "spec": spec,
        "status": { "lastUpdated": null },
    });
    step(source, &kinds::SUBSCRIPTION.gvk(), &name, &go_format::json(&object))
}

/// Sorts the steps of several bundles: ClusterServiceVersions, then CustomResourceDefinitions, then the rest.
pub fn order(steps: &mut [Value]) {
    steps.sort_by_key(|step| match Step::new(step).kind() {
        "ClusterServiceVersion" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    });
}
