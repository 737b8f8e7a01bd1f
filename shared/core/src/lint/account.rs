//! Checks the ServiceAccount with whose permissions the members of an OperatorGroup are installed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::members::carried;
use super::problem::{Change, Problem};
use super::rule::{ACCOUNT_LACKS_PERMISSIONS, ACCOUNT_MISSING};
use super::{LintContext, Tenant};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::install_plan::{self, InstallPlan};
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::installplan::permissions::{self, MissingPermission};
use crate::installplan::summary;
use crate::listing::shortened;
use crate::membership::{self, Group};
use crate::plan::Account;
use crate::rbac::Granted;
use crate::world::kind;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

pub(super) fn check(context: &LintContext<'_>, tenant: &Tenant<'_>, found: &mut Vec<Problem>) {
    for at in &tenant.groups {
        let group = context.group(*at);
        let name = group.service_account();
        if name.is_empty() {
            continue;
        }
        if context.is_missing(&kind::SERVICE_ACCOUNT, tenant.namespace, name) {
            found.push(missing(group, tenant, name));
        } else if tenant.the_group().is_some() && knows_permissions(context, tenant.namespace) {
            let account = Account { namespace: tenant.namespace.to_owned(), name: name.to_owned() };
            found.extend(lacks_permissions(context, tenant, *at, &account));
        }
    }
}

fn account_ref(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { gvk: kinds::SERVICE_ACCOUNT.gvk(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn missing(group: Group<'_>, tenant: &Tenant<'_>, name: &str) -> Problem {
    let namespace = tenant.namespace;
    let message =
        format!("ServiceAccount {name} does not exist in namespace {namespace}, so no operator is installed there");
    let account =
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } });
    Problem::new(&ACCOUNT_MISSING, group.json, message)
        .also([account_ref(namespace, name)])
        .propose("create it, and grant it the permissions to install the operators", Change::Apply(vec![account]))
}

/// Reports whether all roles and bindings that grant permissions in a namespace are known.
fn knows_permissions(context: &LintContext<'_>, namespace: &str) -> bool {
    let within = [&kind::ROLE, &kind::ROLE_BINDING];
    let all = [&kind::CLUSTER_ROLE, &kind::CLUSTER_ROLE_BINDING];
    within.into_iter().all(|gk| context.known.within(gk, namespace)) && all.into_iter().all(|gk| context.known.all(gk))
}

fn lacks_permissions(context: &LintContext<'_>, tenant: &Tenant<'_>, at: usize, account: &Account) -> Option<Problem> {
    let group = context.group(at);
    let mut lacking: Vec<MissingPermission> = Vec::new();
    let mut wanted_by = Vec::new();
    for plan in context.world.in_namespace(&kind::INSTALL_PLAN, tenant.namespace).map(|o| o.json()) {
        let is_done = InstallPlan::new(plan).phase() == install_plan::Phase::Complete;
        if is_done || summary::superseded_by(&context.world, plan).is_some() {
            continue;
        }
        let of_plan = permissions::lacking(&context.world, plan, account);
        if !of_plan.is_empty() {
            wanted_by.push(ObjectRef::from_object(plan));
            lacking.extend(of_plan);
        }
    }
    let deployments = json!({ "verbs": ["create"], "apiGroups": ["apps"], "resources": ["deployments"] });
    let waiting: Vec<ObjectRef> =
        without_deployments(context, tenant, at).into_iter().map(ObjectRef::from_object).collect();
    let owner = (account.namespace.as_str(), account.name.as_str());
    let granted = Granted::to(&context.world, owner, Some(tenant.namespace));
    if !waiting.is_empty() && !granted.allows(&deployments).unwrap_or(true) {
        wanted_by.extend(waiting);
        let namespace = Some(tenant.namespace.to_owned());
        lacking.push(MissingPermission { namespace, rule: deployments, to_grant: false });
    }
    let by_groups = ByGroups::new(context, tenant.namespace);
    lacking.retain(|right| !by_groups.grant(right));
    let missing: BTreeSet<String> = lacking.iter().map(MissingPermission::to_string).collect();
    if missing.is_empty() {
        return None;
    }
    let names = shortened(wanted_by.iter().map(|object| format!("{} {}", object.gvk.kind, object.name)));
    let message = format!("ServiceAccount {} lacks permissions for {names}: {}", account.name, shortened(&missing));
    let mut problem =
        Problem::new(&ACCOUNT_LACKS_PERMISSIONS, group.json, message).also([account_ref(owner.0, owner.1)]);
    problem.other_objects.extend(wanted_by);
    Some(problem.propose(
        "grant it these permissions, if it is intended to install them",
        Change::Apply(roles(context, account, &lacking)),
    ))
}

/// Returns the members with missing Deployments, which have to be created with the ServiceAccount's permissions.
fn without_deployments<'a>(context: &LintContext<'_>, tenant: &Tenant<'a>, at: usize) -> Vec<&'a Value> {
    let targets = context.targets(at);
    let carried = carried(targets);
    let lacks = |csv: &&&Value| {
        let named = Csv::new(csv).deployments().iter();
        let mut names = named.map(|deployment| object::text(deployment, &["name"]));
        let leaves = matches!(Csv::new(csv).phase(), Phase::Replacing | Phase::Deleting);
        !leaves
            && !targets.is_empty()
            && membership::supports(csv, tenant.namespace, &carried).is_ok()
            && names.any(|name| context.is_missing(&kind::DEPLOYMENT, tenant.namespace, name))
    };
    tenant.csvs.iter().filter(lacks).copied().collect()
}

/// The permissions that every ServiceAccount of a namespace has through its groups.
struct ByGroups<'a> {
    within: Granted<'a>,
    everywhere: Granted<'a>,
}

impl<'a> ByGroups<'a> {
    fn new(context: &LintContext<'a>, namespace: &str) -> Self {
        let groups = [
            "system:authenticated".to_owned(),
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
        ];
        let is_of = |binding: &&Value| {
            object::list(binding, &["subjects"]).iter().any(|subject| {
                object::kind(subject) == "Group" && groups.iter().any(|group| group == object::text(subject, &["name"]))
            })
        };
        let rules = |binding: &'a Value| {
            let [kind_, name] = ["kind", "name"].map(|key| object::text(binding, &["roleRef", key]));
            let role = match kind_ {
                "ClusterRole" => context.world.json(&kind::CLUSTER_ROLE, "", name),
                _ => context.world.json(&kind::ROLE, object::namespace(binding), name),
            };
            role.map(|role| object::list(role, &["rules"])).unwrap_or_default()
        };
        let everywhere = context.world.all(&kind::CLUSTER_ROLE_BINDING).map(|o| o.json()).filter(is_of);
        let everywhere: Vec<&'a Value> = everywhere.flat_map(rules).collect();
        let within = context.world.in_namespace(&kind::ROLE_BINDING, namespace).map(|o| o.json()).filter(is_of);
        let within = within.flat_map(rules).chain(everywhere.iter().copied()).collect();
        Self { within: Granted::from_rules(within), everywhere: Granted::from_rules(everywhere) }
    }

    fn grant(&self, right: &MissingPermission) -> bool {
        let granted = if right.namespace.is_some() { &self.within } else { &self.everywhere };
        granted.allows(&right.rule).unwrap_or(false)
    }
}

/// Returns the Role, the ClusterRole, and their bindings that grant the missing permissions. Rules of a previously applied role of the same
/// name are preserved.
fn roles(context: &LintContext<'_>, account: &Account, lacking: &[MissingPermission]) -> Vec<Value> {
    let name = format!("{}-installs", account.name);
    let mut by_place: BTreeMap<Option<&str>, Vec<&Value>> = BTreeMap::new();
    for right in lacking {
        by_place.entry(right.namespace.as_deref()).or_default().push(&right.rule);
    }
    let subject = json!({ "kind": "ServiceAccount", "name": account.name, "namespace": account.namespace });
    let mut objects = Vec::new();
    for (namespace, mut rules) in by_place {
        let prefix = if namespace.is_some() { "" } else { "Cluster" };
        let metadata = match namespace {
            Some(namespace) => json!({ "name": name, "namespace": namespace }),
            // Other namespaces may have a ServiceAccount of the same name.
            None => json!({ "name": format!("{}-{name}", account.namespace) }),
        };
        let role = format!("{prefix}Role");
        let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": metadata["name"] });
        let gk = if namespace.is_some() { kind::ROLE } else { kind::CLUSTER_ROLE };
        let before = context.world.json(&gk, namespace.unwrap_or_default(), object::text(&metadata, &["name"]));
        rules.extend(before.map(|role| object::list(role, &["rules"])).unwrap_or_default());
        objects.push(json!({ "apiVersion": RBAC, "kind": role, "metadata": metadata, "rules": merged(&rules) }));
        objects.push(json!({
            "apiVersion": RBAC, "kind": format!("{role}Binding"), "metadata": metadata, "roleRef": reference,
            "subjects": [subject],
        }));
    }
    objects
}

/// API groups and the names of objects that a rule is about.
type About = (Vec<String>, Vec<String>);

/// Merges rules: first the verbs of the same resources, then the resources with the same verbs.
fn merged(rules: &[&Value]) -> Vec<Value> {
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        object::list(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut verbs: BTreeMap<(About, String), BTreeSet<String>> = BTreeMap::new();
    let mut others = Vec::new();
    for rule in rules {
        if !object::list(rule, &["nonResourceURLs"]).is_empty() {
            others.push((*rule).clone());
            continue;
        }
        for resource in texts(rule, "resources") {
            let about = (texts(rule, "apiGroups"), texts(rule, "resourceNames"));
            verbs.entry((about, resource)).or_default().extend(texts(rule, "verbs"));
        }
    }
    let mut together: BTreeMap<(About, BTreeSet<String>), Vec<String>> = BTreeMap::new();
    for ((about, resource), verbs) in verbs {
        together.entry((about, verbs)).or_default().push(resource);
    }
    let rules = together.into_iter().map(|(((groups, names), verbs), resources)| {
        let mut rule = json!({ "apiGroups": groups, "resources": resources, "verbs": verbs });
        if !names.is_empty() {
            rule["resourceNames"] = names.into();
        }
        rule
    });
    rules.chain(others).collect()
}
