//! The permissions that accounts gain and lose.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::escalations::{Holder, Own, escalations};
use super::simulated_plan::SimulatedPlan;
use super::{Escalation, Permission, Rbac};
use crate::api::cluster_service_version::Csv;
use crate::api::kinds::RBAC_GROUP;
use crate::api::{labels, object};
use crate::rbac::{Granted, InvalidRule, Work};
use crate::sim::{ApiServer, Simulation, WatchEvent};

/// Built-in roles of Kubernetes that OLM binds, and that grant no privileged permissions: kind, namespace, name. Files may lack them.
const STOCK: [(&str, &str, &str); 2] = [
    ("ClusterRole", "", "system:auth-delegator"),
    ("Role", "kube-system", "extension-apiserver-authentication-reader"),
];

/// Returns the permissions that are gained and lost.
pub(super) fn changes(simulated: &SimulatedPlan) -> Rbac {
    let changed = Changed::from_plan(simulated);
    let adopted = adopted(simulated);
    if changed.0.is_empty() && adopted.is_empty() {
        return Rbac::default();
    }
    let own = Own::from_plan(simulated);
    let [before, after] = [&simulated.before, &simulated.after].map(Simulation::api);
    let mut accounts: BTreeSet<String> = [before, after].into_iter().flat_map(|api| changed.accounts(api)).collect();
    accounts.extend(adopted.iter().cloned());
    let [mut old, new] = [before, after].map(|api| grants(api, &accounts));
    let lost = difference(&old, &new);
    // For an operator that starts to use an existing account, all of its permissions are new.
    old.retain(|(account, _), _| !adopted.contains(account));
    let mut gained = difference(&new, &old);
    for permission in &mut gained {
        let is_aggregate = permission.role.strip_prefix("ClusterRole ").is_some_and(|name| is_aggregate(after, name));
        let plain = escalations(permission, &own, Holder::Account);
        let people = if is_aggregate { escalations(permission, &own, Holder::Aggregate) } else { plain.clone() };
        // OLM's own part of such a role does not count as a wildcard.
        permission.escalations =
            plain.into_iter().filter(|e| *e != Escalation::Wildcard || people.contains(e)).collect();
    }
    gained.extend(changed.of_people(before, after, &own));
    gained.sort();
    let escalates = gained.iter().any(|permission| !permission.escalations.is_empty());
    Rbac { escalates, gained, lost, aggregated: changed.aggregated(before, after) }
}

/// Returns the ServiceAccounts that the plan's operators use and the replaced operators did not. The operators gain all of their
/// permissions, including those that were granted by others.
fn adopted(simulated: &SimulatedPlan) -> BTreeSet<String> {
    let of = |csv: &Value| -> BTreeSet<String> {
        let deployments = Csv::new(csv).deployments().iter();
        let named = deployments.map(|deployment| {
            let pod = object::at(deployment, &["spec", "template", "spec"]);
            let account = ["serviceAccountName", "serviceAccount"].map(|key| object::text(pod, &[key]));
            account.into_iter().find(|name| !name.is_empty()).unwrap_or("default")
        });
        named.map(|name| format!("{}/{name}", simulated.namespace)).collect()
    };
    let mut adopted = BTreeSet::new();
    for (new, old) in simulated.operators() {
        let known = old.map(&of).unwrap_or_default();
        adopted.extend(of(&new).into_iter().filter(|account| !known.contains(account)));
    }
    adopted
}

fn is_aggregate(api: &ApiServer, name: &str) -> bool {
    api.find(RBAC_GROUP, "ClusterRole", "", name).is_some_and(|role| !object::at(role, &["aggregationRule"]).is_null())
}

/// The roles and bindings that were written or deleted: kind, namespace, name.
struct Changed(BTreeSet<(String, String, String)>);

impl Changed {
    fn from_plan(simulated: &SimulatedPlan) -> Self {
        let objects = simulated.happenings.iter().map(|happening| match &happening.change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => object,
        });
        let of_rbac = objects.filter(|o| object::gvk(o).group == RBAC_GROUP);
        let name = |o: &Value| {
            let kind = object::kind(o).to_owned();
            (kind, object::namespace(o).to_owned(), object::name(o).to_owned())
        };
        Self(of_rbac.map(|o| name(o)).collect())
    }

    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.0.contains(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    }

    /// Returns the accounts whose permissions may have changed.
    fn accounts(&self, api: &ApiServer) -> BTreeSet<String> {
        let mut accounts = BTreeSet::new();
        for binding in bindings(api) {
            let [kind, name] = ["kind", "name"].map(|key| object::text(binding, &["roleRef", key]));
            let place = if kind == "Role" { object::namespace(binding) } else { "" };
            let of = object::kind(binding);
            if self.has(of, object::namespace(binding), object::name(binding)) || self.has(kind, place, name) {
                accounts.extend(subjects(binding));
            }
        }
        accounts
    }

    /// Returns the privileged permissions that subjects gain through aggregated ClusterRoles.
    fn of_people(&self, before: &ApiServer, after: &ApiServer, own: &Own) -> Vec<Permission> {
        let names = self.0.iter().filter(|(kind, ..)| kind == "ClusterRole").map(|(_, _, name)| name);
        let mut permissions = Vec::new();
        for name in names.filter(|name| is_aggregate(after, name)) {
            let rules = |api: &'_ ApiServer| {
                let role = api.find(RBAC_GROUP, "ClusterRole", "", name);
                role.map(|role| object::list(role, &["rules"]).to_vec()).unwrap_or_default()
            };
            let (old, new) = (rules(before), rules(after));
            let granted = Granted::from_rules(old.iter().collect());
            for part in new.iter().flat_map(|rule| uncovered(rule, &granted)) {
                let role = format!("ClusterRole {name}");
                let permission = Permission { account: role.clone(), role, ..part };
                let escalations = escalations(&permission, own, Holder::Aggregate);
                if !escalations.is_empty() {
                    permissions.push(Permission { escalations, ..permission });
                }
            }
        }
        permissions
    }

    /// Returns the changed ClusterRoles that are intended for users.
    fn aggregated(&self, before: &ApiServer, after: &ApiServer) -> Vec<String> {
        let roles = self.0.iter().filter(|(kind, ..)| kind == "ClusterRole").map(|(_, _, name)| name);
        let rules = |api: &'_ ApiServer, name: &str| {
            let role = api.find(RBAC_GROUP, "ClusterRole", "", name);
            let is_for_people = |role: &&Value| {
                let mut labels = object::entries(role, &["metadata", "labels"]);
                let is_aggregated = !object::at(role, &["aggregationRule"]).is_null()
                    || labels.any(|(key, _)| key.contains("/aggregate-to-") || key.contains("/aggregated"));
                is_aggregated || object::label(role, labels::OWNER_KIND) == Some("OperatorGroup")
            };
            role.filter(is_for_people).map(|role| object::list(role, &["rules"]).to_vec()).unwrap_or_default()
        };
        roles.filter(|name| rules(before, name) != rules(after, name)).cloned().collect()
    }
}

fn bindings(api: &ApiServer) -> impl Iterator<Item = &Value> {
    api.list(RBAC_GROUP, "ClusterRoleBinding", None).chain(api.list(RBAC_GROUP, "RoleBinding", None))
}

/// Returns the subjects of a binding, in the format of [`Permission::account`].
fn subjects(binding: &Value) -> Vec<String> {
    let subject = |s: &Value| {
        let [kind, name] = ["kind", "name"].map(|key| object::text(s, &[key]));
        match (kind, object::text(s, &["namespace"])) {
            ("ServiceAccount", "") => format!("{}/{name}", object::namespace(binding)),
            ("ServiceAccount", namespace) => format!("{namespace}/{name}"),
            _ => format!("{kind} {name}"),
        }
    };
    object::list(binding, &["subjects"]).iter().map(subject).collect()
}

/// The rules that an account is granted in one namespace, or cluster-wide.
#[derive(Default)]
struct Grants<'s> {
    rules: Vec<(&'s Value, String)>,
    /// Roles that do not exist.
    unknown: BTreeSet<String>,
    /// Roles with too many rules and subjects to list: their rules count as unknown and new.
    vast: BTreeSet<String>,
}

/// Maximum number of rules that are evaluated; a rule counts once per subject.
const MOST_RULES: usize = 200_000;

/// Maximum number of combinations of API groups, resources and verbs of a rule that are evaluated individually.
const MOST_PARTS: usize = 20_000;

/// By account and namespace.
type Of<'s> = BTreeMap<(String, Option<String>), Grants<'s>>;

fn grants<'s>(api: &'s ApiServer, accounts: &BTreeSet<String>) -> Of<'s> {
    let mut all: Of<'s> = BTreeMap::new();
    let mut left = MOST_RULES;
    for binding in bindings(api) {
        let subjects: Vec<String> = subjects(binding).into_iter().filter(|s| accounts.contains(s)).collect();
        if subjects.is_empty() {
            continue;
        }
        let [kind, name] = ["kind", "name"].map(|key| object::text(binding, &["roleRef", key]));
        let place = object::namespace(binding);
        let found = api.find(RBAC_GROUP, kind, if kind == "ClusterRole" { "" } else { place }, name);
        let scope = Some(place).filter(|place| !place.is_empty()).map(str::to_owned);
        let Some(role) = found else {
            if !STOCK.contains(&(kind, if kind == "ClusterRole" { "" } else { place }, name)) {
                for subject in subjects {
                    all.entry((subject, scope.clone())).or_default().unknown.insert(format!("{kind} {name}"));
                }
            }
            continue;
        };
        let taken = object::list(role, &["rules"]).len().saturating_mul(subjects.len());
        if taken > left {
            for subject in subjects {
                all.entry((subject, scope.clone())).or_default().vast.insert(format!("{kind} {name}"));
            }
            continue;
        }
        left -= taken;
        for subject in subjects {
            let rules = object::list(role, &["rules"]).iter().filter(|rule| scope.is_none() || !is_of_olm(rule));
            let rules = rules.map(|rule| (rule, format!("{kind} {name}")));
            all.entry((subject, scope.clone())).or_default().rules.extend(rules);
        }
    }
    all
}

/// Reports whether it is the rule that lets an operator write its own OperatorCondition, which OLM grants every operator.
fn is_of_olm(rule: &Value) -> bool {
    let of = |field| texts(rule, field);
    of("apiGroups") == ["operators.coreos.com"]
        && of("resources") == ["operatorconditions"]
        && of("resourceNames").len() == 1
        && of("verbs") == ["get", "update", "patch"]
}

/// Returns the permissions in `new` that `old` does not grant.
fn difference(new: &Of<'_>, old: &Of<'_>) -> Vec<Permission> {
    let mut permissions = BTreeSet::new();
    for ((account, scope), grants) in new {
        let known = [Some(scope), scope.is_some().then_some(&None)].into_iter().flatten();
        let known = known.filter_map(|scope| old.get(&(account.clone(), scope.clone())));
        let granted =
            Granted::from_rules(known.flat_map(|grants| grants.rules.iter().map(|(rule, _)| *rule)).collect());
        for (rule, role) in &grants.rules {
            for part in uncovered(rule, &granted) {
                let permission =
                    Permission { account: account.clone(), namespace: scope.clone(), role: role.clone(), ..part };
                permissions.insert(permission);
            }
        }
        let was_unknown = |role: &String| {
            let known = [Some(scope), scope.is_some().then_some(&None)].into_iter().flatten();
            let mut known = known.filter_map(|scope| old.get(&(account.clone(), scope.clone())));
            known.any(|grants| grants.unknown.contains(role))
        };
        for role in grants.unknown.iter().filter(|role| !was_unknown(role)).chain(&grants.vast) {
            let permission = Permission {
                account: account.clone(),
                namespace: scope.clone(),
                role: role.clone(),
                ..Permission::default()
            };
            permissions.insert(permission);
        }
    }
    once(permissions.into_iter().collect())
}

/// Removes permissions that other permissions of the same account cover, in the same namespace or cluster-wide. Of two equivalent
/// permissions the first is retained.
fn once(permissions: Vec<Permission>) -> Vec<Permission> {
    let rules: Vec<Value> = permissions.iter().map(as_rule).collect();
    let mut places: BTreeMap<(&str, Option<&str>), Vec<usize>> = BTreeMap::new();
    for (place, permission) in permissions.iter().enumerate() {
        places.entry((&permission.account, permission.namespace.as_deref())).or_default().push(place);
    }
    let work = Work::default();
    let granted: BTreeMap<_, _> = places
        .iter()
        .map(|(of, places)| {
            (*of, Granted::from_rules(places.iter().map(|place| &rules[*place]).collect()).sharing(&work))
        })
        .collect();
    let covering = |place: usize| -> Vec<usize> {
        let Permission { account, namespace, .. } = &permissions[place];
        let scopes = [Some(namespace.as_deref()), namespace.as_ref().map(|_| None)].into_iter().flatten();
        let found = scopes.filter_map(|scope| {
            let of = (account.as_str(), scope);
            // If there is too much to evaluate, all permissions are retained.
            let found = granted.get(&of)?.granting(&rules[place]).unwrap_or_default();
            Some(found.into_iter().map(|found| places[&of][found]).collect::<Vec<_>>())
        });
        found.flatten().filter(|other| *other != place).collect()
    };
    let covered: Vec<Vec<usize>> = (0..permissions.len()).map(covering).collect();
    let is_covered =
        |place: usize| covered[place].iter().any(|other| *other < place || !covered[*other].contains(&place));
    let kept: Vec<bool> = (0..permissions.len()).map(|place| !is_covered(place)).collect();
    permissions.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(permission, _)| permission).collect()
}

fn as_rule(permission: &Permission) -> Value {
    let Permission { api_groups, resources, resource_names, non_resource_urls, verbs, .. } = permission;
    json!({
        "verbs": verbs, "apiGroups": api_groups, "resources": resources, "resourceNames": resource_names,
        "nonResourceURLs": non_resource_urls,
    })
}

fn texts(rule: &Value, field: &str) -> Vec<String> {
    object::list(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the parts of a rule that are not granted, grouped by new verbs.
fn uncovered(rule: &Value, granted: &Granted<'_>) -> Vec<Permission> {
    let [verbs, groups, resources, names, urls] =
        ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"].map(|field| texts(rule, field));
    // Invalid rules grant nothing. Rules that are too large to evaluate count as new.
    let is_new = |rule: &Value| match granted.allows(rule) {
        Ok(allowed) => !allowed,
        Err(InvalidRule::TooMuch) => true,
        Err(InvalidRule::NoVerb | InvalidRule::ResourcesAndUrls) => false,
    };
    let mut permissions = Vec::new();
    // Most rules are unchanged.
    if granted.allows(rule) == Ok(true) {
        return permissions;
    }
    if [&verbs, &groups, &resources].iter().fold(1, |parts: usize, list| parts.saturating_mul(list.len())) > MOST_PARTS
    {
        return vec![Permission {
            api_groups: groups,
            resources,
            resource_names: names,
            non_resource_urls: urls,
            verbs,
            ..Permission::default()
        }];
    }
    if !urls.is_empty() && is_new(&json!({ "verbs": verbs, "nonResourceURLs": urls })) {
        permissions.push(Permission { non_resource_urls: urls, verbs: verbs.clone(), ..Permission::default() });
    }
    // Groups resources by their new verbs, then API groups with the same resources.
    let mut parts: BTreeMap<BTreeMap<Vec<String>, Vec<String>>, Vec<String>> = BTreeMap::new();
    for group in groups {
        let mut of_group: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for resource in &resources {
            let asks = |verb: &&String| {
                is_new(&json!({
                    "verbs": [verb], "apiGroups": [group], "resources": [resource], "resourceNames": names,
                }))
            };
            let new: Vec<String> = verbs.iter().filter(asks).cloned().collect();
            if !new.is_empty() {
                of_group.entry(new).or_default().push(resource.clone());
            }
        }
        parts.entry(of_group).or_default().push(group);
    }
    for (by_verbs, api_groups) in parts {
        for (verbs, resources) in by_verbs {
            permissions.push(Permission {
                api_groups: api_groups.clone(),
                resources,
                resource_names: names.clone(),
                verbs,
                ..Permission::default()
            });
        }
    }
    permissions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants<'s>(rules: &'s [Value], account: &str, scope: Option<&str>) -> Of<'s> {
        let rules = rules.iter().map(|rule| (rule, "ClusterRole r".to_owned())).collect();
        let grants = Grants { rules, ..Grants::default() };
        BTreeMap::from([((account.to_owned(), scope.map(str::to_owned)), grants)])
    }

    #[test]
    fn roles_with_thousands_of_rules_are_compared_quickly() {
        let rule = |n: usize, verb: &str| json!({ "apiGroups": [""], "resources": [format!("r{n}")], "verbs": [verb] });
        let old: Vec<Value> = (0..20_000).map(|n| rule(n, "get")).collect();
        let mut new = old.clone();
        new[7] = rule(7, "delete");
        let gained = difference(&grants(&new, "garden/rose", None), &grants(&old, "garden/rose", None));
        assert_eq!(gained.len(), 1, "{gained:?}");
        assert_eq!((&gained[0].resources[0][..], &gained[0].verbs[0][..]), ("r7", "delete"));
        assert_eq!(difference(&grants(&new, "garden/rose", None), &BTreeMap::new()).len(), 20_000);
    }

    #[test]
    fn rules_with_too_many_combinations_are_reported_as_a_whole() {
        let list = |letter: &str| -> Vec<String> { (0..1_000).map(|n| format!("{letter}{n}")).collect() };
        let wide = [json!({ "apiGroups": list("g"), "resources": list("r"), "verbs": list("v") })];
        let half = [json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": list("v")[..500] })];
        let gained = difference(&grants(&wide, "garden/rose", None), &grants(&half, "garden/rose", None));
        assert_eq!((gained.len(), gained[0].verbs.len()), (1, 1_000));
        assert_eq!(difference(&grants(&wide, "garden/rose", None), &grants(&wide, "garden/rose", None)), []);
    }

    #[test]
    fn covered_permissions_are_not_repeated() {
        let permission = |namespace: Option<&str>, resource: &str, role: &str| Permission {
            account: "garden/rose".to_owned(),
            namespace: namespace.map(str::to_owned),
            api_groups: vec![String::new()],
            resources: vec![resource.to_owned()],
            verbs: vec!["get".to_owned()],
            role: role.to_owned(),
            ..Permission::default()
        };
        let (pods, all) = (permission(None, "pods", "a"), permission(None, "*", "a"));
        let here = permission(Some("garden"), "pods", "a");
        assert_eq!(once(vec![all.clone(), pods.clone(), here.clone()]), [all]);
        assert_eq!(once(vec![here.clone(), pods.clone()]), std::slice::from_ref(&pods));
        assert_eq!(once(vec![pods.clone(), permission(None, "pods", "b")]), [pods], "the first is retained");
        let others = [here, permission(Some("field"), "pods", "a"), permission(None, "secrets", "a")];
        assert_eq!(once(others.to_vec()), others);
    }

    #[test]
    fn only_new_permissions_are_gained() {
        let known =
            json!({ "apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"] });
        let wanted = json!({
            "apiGroups": ["", "apps"], "resources": ["pods", "secrets"], "verbs": ["get", "list", "delete"],
        });
        let gained = uncovered(&wanted, &Granted::from_rules(vec![&known]));
        let parts: Vec<_> =
            gained.iter().map(|r| (r.api_groups.join("+"), r.resources.join("+"), r.verbs.join("+"))).collect();
        let part = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(parts, [part("+apps", "pods", "delete"), part("+apps", "secrets", "get+list+delete")]);
        assert!(uncovered(&known, &Granted::from_rules(vec![&known])).is_empty());
    }
}
