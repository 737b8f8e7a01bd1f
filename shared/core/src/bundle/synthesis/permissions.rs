//! Roles and bindings of the Deployments' ServiceAccounts: the permissions of the install strategy.
//!
//! A binding is projected as a whole: its role's rules become a permission of each ServiceAccount that it names and a Deployment
//! uses. A binding with other subjects beside these stays in the bundle for them, with its role.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::account::Destination;
use super::metadata::DEPENDENCY;
use super::serving::Serving;
use super::workloads::Workloads;
use super::{Manifest, Work};
use crate::api::kinds::RBAC_GROUP;
use crate::api::label_selector::LabelSelector;
use crate::api::object::{self, at, list, text};
use crate::finding::Finding;

/// The Role with which an extension API server reads the API server's trusted CAs, in [`KUBE_SYSTEM`].
const AUTHENTICATION_READER: &str = "extension-apiserver-authentication-reader";
const KUBE_SYSTEM: &str = "kube-system";
/// The ClusterRole with which an extension API server authenticates and authorizes callers.
const AUTH_DELEGATOR: &str = "system:auth-delegator";
const CLUSTER_ADMIN: &str = "cluster-admin";

/// A rule that a Deployment's ServiceAccount is granted.
pub(super) struct BoundRule<'a> {
    /// Number of the role's manifest; that of the binding for Kubernetes' own roles.
    pub(super) number: usize,
    /// Path of the rule within that manifest.
    pub(super) path: Vec<String>,
    /// The rule.
    pub(super) rule: &'a Value,
    /// Whether the binding marks its APIs as optional.
    pub(super) is_optional: bool,
}

/// What a binding refers to.
struct Binding<'a> {
    number: usize,
    object: &'a Value,
    is_cluster: bool,
}

/// Writes the permissions, and returns the rules in them.
pub(super) fn project<'a>(work: &mut Work<'a>, workloads: &Workloads, serving: &Serving) -> Vec<BoundRule<'a>> {
    let mut rules = Vec::new();
    let mut permissions: BTreeMap<(bool, String), Vec<Value>> = BTreeMap::new();
    // The rules of each permission as text: a rule is granted once.
    let mut granted = BTreeSet::new();
    for workload in &workloads.all {
        permissions.entry((false, workload.account.clone())).or_default();
    }
    let bindings: Vec<_> = [("RoleBinding", false), ("ClusterRoleBinding", true)]
        .into_iter()
        .flat_map(|(kind, is_cluster)| {
            work.of_kind(RBAC_GROUP, kind).map(move |(number, manifest)| (number, manifest, is_cluster))
        })
        .collect();
    // What was granted: each role once to an account, and its rules once in the result.
    let (mut done, mut listed) = (BTreeSet::new(), BTreeSet::new());
    for (number, manifest, is_cluster) in bindings {
        let binding = Binding { number, object: &manifest.object, is_cluster };
        let subjects = list(binding.object, &["subjects"]);
        let accounts: BTreeSet<&str> =
            subjects.iter().filter(|s| workloads.is_account(s)).map(|s| text(s, &["name"])).collect();
        if accounts.is_empty() {
            report_fixed_subjects(work, &binding, workloads);
            continue;
        }
        if !is_valid(work, &binding) {
            continue;
        }
        let others: Vec<Value> = subjects.iter().filter(|subject| !workloads.is_account(subject)).cloned().collect();
        let [kind, name] = ["kind", "name"].map(|field| text(binding.object, &["roleRef", field]));
        let is_optional = object::annotation(binding.object, DEPENDENCY) == Some("optional");
        let role = (object::namespace(binding.object), is_cluster, kind, name, is_optional);
        let new: Vec<&str> = accounts.iter().copied().filter(|account| !done.contains(&(role, *account))).collect();
        if !new.is_empty() {
            let Some(bound) = rules_of(work, &binding, &accounts, workloads, serving) else { continue };
            for account in new {
                done.insert((role, account));
                let key = (is_cluster, account.to_owned());
                for rule in &bound {
                    if granted.insert((key.clone(), rule.rule.to_string())) {
                        permissions.entry(key.clone()).or_default().push(rule.rule.clone());
                    }
                }
                permissions.entry(key).or_default();
            }
            if listed.insert(role) {
                rules.extend(bound);
            }
        }
        for account in accounts {
            work.project(number, format!("spec.install.spec.{} of {account}", field(is_cluster)));
        }
        if !others.is_empty() {
            let mut rest = binding.object.clone();
            rest["subjects"] = others.into();
            work.changed.insert(number, rest);
            work.record(number, Destination::Bundle);
            report_fixed_subjects(work, &binding, workloads);
        }
    }
    keep_other_roles(work, workloads);
    for ((is_cluster, account), rules) in permissions {
        work.push(
            &["spec", "install", "spec", field(is_cluster)],
            json!({ "serviceAccountName": account, "rules": rules }),
        );
    }
    rules
}

/// Returns whether the API server would accept a binding; reports why not.
fn is_valid(work: &mut Work<'_>, binding: &Binding<'_>) -> bool {
    let kind = text(binding.object, &["roleRef", "kind"]);
    if kind != "ClusterRole" && (binding.is_cluster || kind != "Role") {
        let allowed = if binding.is_cluster { "ClusterRole" } else { "Role or ClusterRole" };
        let finding = Finding::new("invalid-binding", format!("binds an object of kind {kind:?}"));
        work.report(binding.number, &["roleRef", "kind"], finding.hint(format!("name a {allowed}")));
        return false;
    }
    let is_incomplete =
        |subject: &Value| text(subject, &["kind"]) == "ServiceAccount" && text(subject, &["namespace"]).is_empty();
    if binding.is_cluster && list(binding.object, &["subjects"]).iter().any(is_incomplete) {
        let finding = Finding::new("invalid-binding", "binds a ServiceAccount without its namespace");
        work.report(binding.number, &["subjects"], finding.hint("add the namespace of the ServiceAccount"));
        return false;
    }
    true
}

/// Returns the field with the permissions of a scope.
fn field(is_cluster: bool) -> &'static str {
    if is_cluster { "clusterPermissions" } else { "permissions" }
}

/// Returns the rules of the role that a binding grants, and records where its role went; none when they cannot be projected.
fn rules_of<'a>(
    work: &mut Work<'a>,
    binding: &Binding<'_>,
    accounts: &BTreeSet<&str>,
    workloads: &Workloads,
    serving: &Serving,
) -> Option<Vec<BoundRule<'a>>> {
    let namespace = object::namespace(binding.object);
    let (kind, name) = (text(binding.object, &["roleRef", "kind"]), text(binding.object, &["roleRef", "name"]));
    let is_optional = object::annotation(binding.object, DEPENDENCY) == Some("optional");
    // OLM binds the accounts of the Deployments that serve, and no others.
    let serve = |account: &str| {
        workloads.all.iter().any(|workload| workload.account == account && serving.is_server(&workload.name))
    };
    let is_generated = serving.has_apis()
        && list(binding.object, &["subjects"]).iter().all(|subject| workloads.is_account(subject))
        && accounts.iter().all(|account| serve(account));
    if is_generated
        && ((name, kind) == (AUTH_DELEGATOR, "ClusterRole")
            || (name, namespace) == (AUTHENTICATION_READER, KUBE_SYSTEM))
    {
        work.record(binding.number, Destination::Generated("binding of an extension API server".to_owned()));
        return None;
    }
    if !binding.is_cluster && !workloads.is_home(namespace) {
        let finding = Finding::new(
            "other-namespace",
            format!("grants the operator permissions in namespace {namespace}, which OLM cannot do"),
        )
        .hint("use a ClusterRole and a ClusterRoleBinding, or let users create the binding");
        work.report(binding.number, &["metadata", "namespace"], finding);
        return None;
    }
    let role = work.of_kind(RBAC_GROUP, if kind == "Role" { "Role" } else { "ClusterRole" }).find(|(_, role)| {
        object::name(&role.object) == name
            && (kind == "ClusterRole" || workloads.is_home(object::namespace(&role.object)))
            && (kind == "ClusterRole"
                || !workloads.namespace.is_empty()
                || object::namespace(&role.object) == namespace)
    });
    if let Some(rules) = builtin_rules(name).filter(|_| role.is_none() && kind == "ClusterRole") {
        let path = vec!["roleRef".to_owned(), "name".to_owned()];
        let bound = |rule| BoundRule { number: binding.number, path: path.clone(), rule, is_optional };
        return Some(rules.iter().map(bound).collect());
    }
    let Some((number, role)) = role else {
        let finding = Finding::new("missing-role", format!("binds {kind} {name}, which is not in the input"))
            .hint("add the role; a permission of the operator consists of the rules, not of a reference");
        work.report(binding.number, &["roleRef", "name"], finding);
        return None;
    };
    let roles = match at(&role.object, &["aggregationRule"]) {
        Value::Null => vec![(number, role)],
        rule => aggregated_roles(work, number, rule),
    };
    for (number, _) in roles.iter().copied().chain([(number, role)]) {
        for account in accounts {
            work.project(number, format!("spec.install.spec.{} of {account}", field(binding.is_cluster)));
        }
    }
    let has_others = list(binding.object, &["subjects"]).iter().any(|subject| !workloads.is_account(subject));
    if has_others && !at(&role.object, &["aggregationRule"]).is_null() {
        for (number, _) in &roles {
            work.record(*number, Destination::Bundle);
        }
    }
    let rules = roles.into_iter().flat_map(|(number, role)| {
        list(&role.object, &["rules"]).iter().enumerate().map(move |(n, rule)| (number, n, rule))
    });
    let bound = |(number, n, rule): (usize, usize, &'a Value)| {
        let path = vec!["rules".to_owned(), n.to_string()];
        BoundRule { number, path, rule, is_optional }
    };
    Some(rules.map(bound).collect())
}

/// Returns the rules of a ClusterRole that exists in every cluster and is not aggregated.
fn builtin_rules(name: &str) -> Option<&'static [Value]> {
    static DELEGATOR: LazyLock<[Value; 2]> = LazyLock::new(|| {
        let rule =
            |group: &str, resource: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": ["create"] });
        [rule("authentication.k8s.io", "tokenreviews"), rule("authorization.k8s.io", "subjectaccessreviews")]
    });
    static ADMINISTRATOR: LazyLock<[Value; 2]> = LazyLock::new(|| {
        [
            json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }),
            json!({ "nonResourceURLs": ["*"], "verbs": ["*"] }),
        ]
    });
    match name {
        AUTH_DELEGATOR => Some(&DELEGATOR[..]),
        CLUSTER_ADMIN => Some(&ADMINISTRATOR[..]),
        _ => None,
    }
}

/// Returns the ClusterRoles of the input that an aggregation rule selects: its rules are replaced by theirs at run time.
fn aggregated_roles<'a>(work: &mut Work<'a>, number: usize, rule: &Value) -> Vec<(usize, &'a Manifest)> {
    let mut selected = Vec::new();
    for (n, selector) in list(rule, &["clusterRoleSelectors"]).iter().enumerate() {
        match LabelSelector::read(selector) {
            Ok(selector) => {
                let roles = work.of_kind(RBAC_GROUP, "ClusterRole");
                selected.extend(roles.filter(|(other, role)| *other != number && selector.selects(&role.object)));
            }
            Err(problem) => {
                let path = ["aggregationRule", "clusterRoleSelectors", &n.to_string()];
                work.report(number, &path, Finding::new("aggregated-role", problem).hint("correct the selector"));
            }
        }
    }
    if selected.iter().any(|(_, role)| !at(&role.object, &["aggregationRule"]).is_null()) {
        let finding = Finding::new("aggregated-role", "selects ClusterRoles that are aggregated themselves");
        work.report(number, &["aggregationRule"], finding.hint("select the ClusterRoles that have the rules"));
    }
    selected.sort_by_key(|(number, _)| *number);
    selected.dedup_by_key(|(number, _)| *number);
    let message = format!(
        "is granted with the rules of {} selected ClusterRoles of the input; those that are added at run time are not granted",
        selected.len()
    );
    let finding = Finding::new("aggregated-role", message);
    let finding = if selected.is_empty() {
        finding.hint("add the ClusterRoles that it selects, or write their rules into it")
    } else {
        finding.warning().hint("write the rules into it if the operator needs others")
    };
    work.report(number, &["aggregationRule"], finding);
    selected
}

/// Leaves roles in the bundle that have an effect beside the projected bindings: aggregated ones, and those of other bindings.
fn keep_other_roles(work: &mut Work<'_>, workloads: &Workloads) {
    let is_aggregated = |role: &Value| {
        let mut labels = object::entries(role, &["metadata", "labels"]);
        labels.any(|(key, value)| key.starts_with("rbac.authorization.k8s.io/aggregate-to-") && value == "true")
    };
    let bound_elsewhere: BTreeSet<(&str, &str)> = ["RoleBinding", "ClusterRoleBinding"]
        .into_iter()
        .flat_map(|kind| work.of_kind(RBAC_GROUP, kind))
        .filter(|(_, binding)| {
            list(&binding.object, &["subjects"]).iter().any(|subject| !workloads.is_account(subject))
        })
        .map(|(_, binding)| (text(&binding.object, &["roleRef", "kind"]), text(&binding.object, &["roleRef", "name"])))
        .collect();
    for kind in ["Role", "ClusterRole"] {
        for (number, role) in work.of_kind(RBAC_GROUP, kind) {
            let is_bound_elsewhere = bound_elsewhere.contains(&(kind, object::name(&role.object)));
            if !work.destinations[number].is_empty() && (is_aggregated(&role.object) || is_bound_elsewhere) {
                work.record(number, Destination::Bundle);
            }
        }
    }
}

/// Reports a binding that stays in the bundle and names a namespace in its subjects: OLM does not change it.
fn report_fixed_subjects(work: &mut Work<'_>, binding: &Binding<'_>, workloads: &Workloads) {
    for (n, subject) in list(binding.object, &["subjects"]).iter().enumerate() {
        let namespace = text(subject, &["namespace"]);
        let is_in_home = !namespace.is_empty() && workloads.is_home(namespace) && !workloads.is_account(subject);
        if text(subject, &["kind"]) == "ServiceAccount" && is_in_home {
            let finding = Finding::new(
                "fixed-namespace",
                format!("binds ServiceAccount {} of namespace {namespace}, which no Deployment uses", text(subject, &["name"])),
            )
            .warning()
            .hint(format!("it works in namespace {namespace} only: run the ServiceAccount's pods from a Deployment, or let the operator create the binding"));
            work.report(binding.number, &["subjects", &n.to_string(), "namespace"], finding);
        }
    }
}
