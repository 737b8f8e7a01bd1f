//! Roles and bindings of the Deployments' ServiceAccounts: the permissions of the install strategy.
//!
//! A binding is projected as a whole: its role's rules become a permission of each ServiceAccount that it names and a Deployment
//! uses. Subjects beside these keep the binding, without the projected ones, and its role in the bundle.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Work;
use super::account::Destination;
use super::serving::Serving;
use super::workloads::Workloads;
use crate::api::kinds::RBAC;
use crate::api::object::{self, list, text};
use crate::finding::Finding;

/// The annotation of a binding whose APIs the operator uses if they exist (seed "Inferrable").
pub(super) const DEPENDENCY: &str = "operators.operatorframework.io.bundle.dependency";
/// The Role with which an extension API server reads the API server's trusted CAs, in [`KUBE_SYSTEM`].
const AUTHENTICATION_READER: &str = "extension-apiserver-authentication-reader";
const KUBE_SYSTEM: &str = "kube-system";
/// The ClusterRole with which an extension API server authenticates and authorizes callers.
const AUTH_DELEGATOR: &str = "system:auth-delegator";

/// A rule that a Deployment's ServiceAccount is granted.
pub(super) struct BoundRule<'a> {
    /// Number of the role's manifest, and of the rule within it; none for rules of Kubernetes' own roles.
    pub(super) place: Option<(usize, usize)>,
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
            work.of_kind(RBAC, kind).map(move |(number, manifest)| (number, manifest, is_cluster))
        })
        .collect();
    for (number, manifest, is_cluster) in bindings {
        let binding = Binding { number, object: &manifest.object, is_cluster };
        let subjects = list(binding.object, &["subjects"]);
        let accounts: Vec<&str> =
            subjects.iter().filter(|s| workloads.is_account(s)).map(|s| text(s, &["name"])).collect();
        if accounts.is_empty() {
            report_fixed_subjects(work, &binding, workloads);
            continue;
        }
        let Some(bound) = rules_of(work, &binding, workloads, serving) else { continue };
        for account in accounts {
            let key = (is_cluster, account.to_owned());
            for rule in &bound {
                if granted.insert((key.clone(), rule.rule.to_string())) {
                    permissions.entry(key.clone()).or_default().push(rule.rule.clone());
                }
            }
            permissions.entry(key).or_default();
            work.project(number, format!("spec.install.spec.{} of {account}", field(is_cluster)));
        }
        if subjects.iter().any(|subject| !workloads.is_account(subject)) {
            let finding = Finding::new("shared-binding", "binds ServiceAccounts of the Deployments and other subjects")
                .hint("split it: one binding for the Deployments' ServiceAccounts, one for the others");
            work.report(number, &["subjects"], finding);
        }
        rules.extend(bound);
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

/// Returns the field with the permissions of a scope.
fn field(is_cluster: bool) -> &'static str {
    if is_cluster { "clusterPermissions" } else { "permissions" }
}

/// Returns the rules of the role that a binding grants, and records where its role went; none when they cannot be projected.
fn rules_of<'a>(
    work: &mut Work<'a>,
    binding: &Binding<'_>,
    workloads: &Workloads,
    serving: &Serving,
) -> Option<Vec<BoundRule<'a>>> {
    let namespace = object::namespace(binding.object);
    let (kind, name) = (text(binding.object, &["roleRef", "kind"]), text(binding.object, &["roleRef", "name"]));
    let is_optional = object::annotation(binding.object, DEPENDENCY) == Some("optional");
    if serving.has_apis() && (name, kind) == (AUTH_DELEGATOR, "ClusterRole")
        || serving.has_apis() && (name, namespace) == (AUTHENTICATION_READER, KUBE_SYSTEM)
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
    if (name, kind) == (AUTH_DELEGATOR, "ClusterRole") {
        static RULES: std::sync::LazyLock<[Value; 2]> = std::sync::LazyLock::new(|| {
            let rule = |group: &str, resource: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": ["create"] });
            [rule("authentication.k8s.io", "tokenreviews"), rule("authorization.k8s.io", "subjectaccessreviews")]
        });
        return Some(RULES.iter().map(|rule| BoundRule { place: None, rule, is_optional }).collect());
    }
    let role = work.of_kind(RBAC, if kind == "Role" { "Role" } else { "ClusterRole" }).find(|(_, role)| {
        object::name(&role.object) == name
            && (kind == "ClusterRole" || workloads.is_home(object::namespace(&role.object)))
    });
    let Some((number, role)) = role else {
        let finding = Finding::new("missing-role", format!("binds {kind} {name}, which is not in the input"))
            .hint("add the role; a permission of the operator consists of the rules, not of a reference");
        work.report(binding.number, &["roleRef", "name"], finding);
        return None;
    };
    if role.object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
        let finding = Finding::new(
            "aggregated-role",
            "collects its rules from other ClusterRoles at run time, which a permission cannot",
        )
        .hint("write the rules of the selected ClusterRoles into it");
        work.report(number, &["aggregationRule"], finding);
    }
    for subject in list(binding.object, &["subjects"]).iter().filter(|s| workloads.is_account(s)) {
        work.project(
            number,
            format!("spec.install.spec.{} of {}", field(binding.is_cluster), text(subject, &["name"])),
        );
    }
    let rules = list(&role.object, &["rules"]).iter().enumerate();
    Some(rules.map(|(n, rule)| BoundRule { place: Some((number, n)), rule, is_optional }).collect())
}

/// Leaves roles in the bundle that have an effect beside the projected bindings: aggregated ones, and those of other bindings.
fn keep_other_roles(work: &mut Work<'_>, workloads: &Workloads) {
    let is_aggregated = |role: &Value| {
        let mut labels = object::entries(role, &["metadata", "labels"]);
        labels.any(|(key, value)| key.starts_with("rbac.authorization.k8s.io/aggregate-to-") && value == "true")
    };
    for kind in ["Role", "ClusterRole"] {
        for (number, role) in work.of_kind(RBAC, kind) {
            let name = object::name(&role.object);
            let is_bound_elsewhere = ["RoleBinding", "ClusterRoleBinding"].into_iter().any(|binding| {
                work.of_kind(RBAC, binding).any(|(_, binding)| {
                    text(&binding.object, &["roleRef", "kind"]) == kind
                        && text(&binding.object, &["roleRef", "name"]) == name
                        && list(&binding.object, &["subjects"]).iter().any(|subject| !workloads.is_account(subject))
                })
            });
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
        if text(subject, &["kind"]) == "ServiceAccount" && !namespace.is_empty() && workloads.is_home(namespace) {
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
