//! What accounts may do afterwards and might not before, and the other way round.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::trial::Trial;
use super::{Escalation, Rbac, Right};
use crate::api::labels;
use crate::api::object;
use crate::rbac::Granted;
use crate::sim::{ApiServer, Simulation, WatchEvent};

const RBAC: &str = "rbac.authorization.k8s.io";
/// Verbs that change nothing.
const READING: [&str; 3] = ["get", "list", "watch"];
/// Groups whose objects are questions: to create one changes nothing.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];
/// What runs something, or lends somebody's identity.
const EXECUTION: [(&str, &str); 11] = [
    ("", "pods"),
    ("", "pods/exec"),
    ("", "pods/attach"),
    ("", "pods/ephemeralcontainers"),
    ("", "replicationcontrollers"),
    ("", "serviceaccounts/token"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];

/// The rights that are gained and lost.
pub(super) fn changes(trial: &Trial) -> Rbac {
    let changed = Changed::of(trial);
    if changed.0.is_empty() {
        return Rbac::default();
    }
    let own = own_groups(trial);
    let [before, after] = [&trial.before, &trial.after].map(Simulation::api);
    let accounts: BTreeSet<String> = [before, after].into_iter().flat_map(|api| changed.accounts(api)).collect();
    let [old, new] = [before, after].map(|api| grants(api, &accounts));
    let mut gained = difference(&new, &old);
    for right in &mut gained {
        right.escalations = escalations(right, &own);
    }
    let lost = difference(&old, &new);
    let escalates = gained.iter().any(|right| !right.escalations.is_empty());
    Rbac { escalates, gained, lost, aggregated: changed.aggregated(before, after) }
}

/// The roles and bindings that were written or deleted: kind, namespace, name.
struct Changed(BTreeSet<(String, String, String)>);

impl Changed {
    fn of(trial: &Trial) -> Self {
        let objects = trial.happenings.iter().map(|happening| match &happening.change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => object,
        });
        let of_rbac = objects.filter(|o| object::gvk(o).group == RBAC);
        let name = |o: &Value| {
            let kind = object::text(o, &["kind"]).to_owned();
            (kind, object::namespace(o).to_owned(), object::name(o).to_owned())
        };
        Self(of_rbac.map(|o| name(o)).collect())
    }

    fn has(&self, kind: &str, namespace: &str, name: &str) -> bool {
        self.0.contains(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))
    }

    /// The accounts whose rights may be others.
    fn accounts(&self, api: &ApiServer) -> BTreeSet<String> {
        let mut accounts = BTreeSet::new();
        for binding in bindings(api) {
            let [kind, name] = ["kind", "name"].map(|key| object::text(binding, &["roleRef", key]));
            let place = if kind == "Role" { object::namespace(binding) } else { "" };
            let of = object::text(binding, &["kind"]);
            if self.has(of, object::namespace(binding), object::name(binding)) || self.has(kind, place, name) {
                accounts.extend(subjects(binding));
            }
        }
        accounts
    }

    /// The ClusterRoles among them from which people get their rights.
    fn aggregated(&self, before: &ApiServer, after: &ApiServer) -> Vec<String> {
        let roles = self.0.iter().filter(|(kind, ..)| kind == "ClusterRole").map(|(_, _, name)| name);
        let rules = |api: &'_ ApiServer, name: &str| {
            let role = api.find(RBAC, "ClusterRole", "", name);
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
    api.list(RBAC, "ClusterRoleBinding", None).chain(api.list(RBAC, "RoleBinding", None))
}

/// Who is bound, as a right names them.
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

/// What an account is granted in one place.
#[derive(Default)]
struct Grants<'s> {
    rules: Vec<(&'s Value, String)>,
}

/// By account and namespace.
type Of<'s> = BTreeMap<(String, Option<String>), Grants<'s>>;

fn grants<'s>(api: &'s ApiServer, accounts: &BTreeSet<String>) -> Of<'s> {
    let mut all: Of<'s> = BTreeMap::new();
    for binding in bindings(api) {
        let subjects: Vec<String> = subjects(binding).into_iter().filter(|s| accounts.contains(s)).collect();
        if subjects.is_empty() {
            continue;
        }
        let [kind, name] = ["kind", "name"].map(|key| object::text(binding, &["roleRef", key]));
        let place = object::namespace(binding);
        let Some(role) = api.find(RBAC, kind, place, name) else { continue };
        let scope = Some(place).filter(|place| !place.is_empty()).map(str::to_owned);
        for subject in subjects {
            let rules = object::list(role, &["rules"]).iter().filter(|rule| !is_of_olm(rule));
            let rules = rules.map(|rule| (rule, format!("{kind} {name}")));
            all.entry((subject, scope.clone())).or_default().rules.extend(rules);
        }
    }
    all
}

/// Every operator may write its own OperatorCondition, whatever its bundle says.
fn is_of_olm(rule: &Value) -> bool {
    texts(rule, "apiGroups") == ["operators.coreos.com"] && texts(rule, "resources") == ["operatorconditions"]
}

/// What is in `new` that `old` does not grant.
fn difference(new: &Of<'_>, old: &Of<'_>) -> Vec<Right> {
    let mut rights = BTreeSet::new();
    for ((account, scope), grants) in new {
        let known = [Some(scope), scope.is_some().then_some(&None)].into_iter().flatten();
        let known = known.filter_map(|scope| old.get(&(account.clone(), scope.clone())));
        let granted = Granted::of(known.flat_map(|grants| grants.rules.iter().map(|(rule, _)| *rule)).collect());
        for (rule, role) in &grants.rules {
            for part in uncovered(rule, &granted) {
                let right = Right { account: account.clone(), namespace: scope.clone(), role: role.clone(), ..part };
                rights.insert(right);
            }
        }
    }
    let rights: Vec<Right> = rights.into_iter().collect();
    let rules: Vec<Value> = rights.iter().map(as_rule).collect();
    let covers = |one: usize, other: usize| {
        let (a, b) = (&rights[one], &rights[other]);
        a.account == b.account
            && (a.namespace == b.namespace || a.namespace.is_none())
            && Granted::of(vec![&rules[one]]).allows(&rules[other]).unwrap_or(false)
    };
    // Of two that say the same the first stays.
    let is_said = |other: usize| {
        (0..rights.len()).any(|one| one != other && covers(one, other) && (one < other || !covers(other, one)))
    };
    let kept: Vec<bool> = (0..rights.len()).map(|right| !is_said(right)).collect();
    rights.iter().zip(kept).filter(|(_, kept)| *kept).map(|(right, _)| right.clone()).collect()
}

fn as_rule(right: &Right) -> Value {
    let Right { api_groups, resources, resource_names, non_resource_urls, verbs, .. } = right;
    json!({
        "verbs": verbs, "apiGroups": api_groups, "resources": resources, "resourceNames": resource_names,
        "nonResourceURLs": non_resource_urls,
    })
}

fn texts(rule: &Value, field: &str) -> Vec<String> {
    object::list(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The parts of a rule that are not granted: by which verbs of which resources are new.
fn uncovered(rule: &Value, granted: &Granted<'_>) -> Vec<Right> {
    let [verbs, groups, resources, names, urls] =
        ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"].map(|field| texts(rule, field));
    let is_new = |rule: Value| !granted.allows(&rule).unwrap_or(true);
    if !urls.is_empty() {
        let new = is_new(json!({ "verbs": verbs, "nonResourceURLs": urls }));
        return if new { vec![Right { non_resource_urls: urls, verbs, ..Right::default() }] } else { Vec::new() };
    }
    // Resources of a group by the verbs that are new for them, then groups by those.
    let mut parts: BTreeMap<BTreeMap<Vec<String>, Vec<String>>, Vec<String>> = BTreeMap::new();
    for group in groups {
        let mut of_group: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for resource in &resources {
            let asks = |verb: &&String| {
                is_new(json!({
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
    let mut rights = Vec::new();
    for (by_verbs, api_groups) in parts {
        for (verbs, resources) in by_verbs {
            rights.push(Right {
                api_groups: api_groups.clone(),
                resources,
                resource_names: names.clone(),
                verbs,
                ..Right::default()
            });
        }
    }
    rights
}

/// The groups of the APIs that the plan's operators define themselves: to rule over these is what they are for.
fn own_groups(trial: &Trial) -> BTreeSet<String> {
    let mut groups = BTreeSet::new();
    for name in trial.csv_names() {
        let csv = trial.after.api().find("operators.coreos.com", "ClusterServiceVersion", &trial.namespace, name);
        let Some(csv) = csv else { continue };
        for crd in object::list(csv, &["spec", "customresourcedefinitions", "owned"]) {
            groups.extend(object::text(crd, &["name"]).split_once('.').map(|(_, group)| group.to_owned()));
        }
        for api in object::list(csv, &["spec", "apiservicedefinitions", "owned"]) {
            groups.insert(object::text(api, &["group"]).to_owned());
        }
    }
    groups
}

/// Why a right is more than an ordinary one.
fn escalations(right: &Right, own: &BTreeSet<String>) -> Vec<Escalation> {
    let Right { api_groups, resources, verbs, namespace, resource_names, .. } = right;
    let is_of = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
    let of = |group: &str, resource: &str| {
        let whole = resource.split_once('/').map_or("*", |(_, sub)| sub);
        is_of(api_groups, group) && (is_of(resources, resource) || resources.contains(&format!("*/{whole}")))
    };
    let does = |verb: &str| is_of(verbs, verb);
    let writes = verbs.iter().any(|verb| !READING.contains(&verb.as_str()));
    let is_own = !api_groups.is_empty() && api_groups.iter().all(|group| own.contains(group));
    let is_review = !api_groups.is_empty() && api_groups.iter().all(|group| REVIEWS.contains(&group.as_str()));
    let is_wild = [verbs, api_groups, resources].into_iter().any(|list| list.iter().any(|item| item == "*"));
    let mut escalations = Vec::new();
    let mut mark = |is_one: bool, escalation| escalations.extend(is_one.then_some(escalation));
    if !is_own {
        mark(is_wild, Escalation::Wildcard);
        mark(of("", "secrets") && resource_names.is_empty(), Escalation::Secrets);
        let roles = of(RBAC, "roles") || of(RBAC, "clusterroles");
        mark(roles && does("escalate"), Escalation::Escalate);
        mark(roles && does("bind"), Escalation::Bind);
        let who = ["users", "groups", "serviceaccounts"].iter().any(|who| of("", who)) || of(REVIEWS[0], "userextras");
        mark(who && does("impersonate"), Escalation::Impersonate);
        let everywhere = namespace.is_none() && !resources.is_empty();
        mark(everywhere && writes && !is_review, Escalation::ClusterWide);
        let runs = EXECUTION.iter().any(|(group, resource)| of(group, resource)) && writes;
        mark(everywhere && runs, Escalation::Execution);
    }
    escalations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(namespace: Option<&str>, rule: Value) -> Vec<Escalation> {
        let right =
            Right { namespace: namespace.map(str::to_owned), ..uncovered(&rule, &Granted::of(Vec::new())).remove(0) };
        escalations(&right, &BTreeSet::from(["garden.example.com".to_owned()]))
    }

    fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
        json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
    }

    #[test]
    fn escalations_are_marked() {
        use Escalation as E;
        let garden = Some("garden");
        assert_eq!(marks(garden, rule("", "pods", &["get", "delete"])), []);
        assert_eq!(marks(garden, rule("", "secrets", &["get"])), [E::Secrets]);
        assert_eq!(marks(None, rule("", "nodes", &["get", "list"])), []);
        assert_eq!(marks(None, rule("", "nodes", &["patch"])), [E::ClusterWide]);
        assert_eq!(marks(None, rule("", "pods", &["create"])), [E::ClusterWide, E::Execution]);
        assert_eq!(marks(None, rule("authorization.k8s.io", "subjectaccessreviews", &["create"])), []);
        assert_eq!(marks(None, rule("garden.example.com", "*", &["*"])), []);
        assert_eq!(marks(garden, rule("apps", "*", &["get"])), [E::Wildcard]);
        let roles = marks(None, rule(RBAC, "clusterroles", &["bind", "escalate"]));
        assert_eq!(roles, [E::Escalate, E::Bind, E::ClusterWide]);
        assert_eq!(marks(None, rule("", "users", &["impersonate"])), [E::Impersonate, E::ClusterWide]);
        let all = marks(None, rule("*", "*", &["*"]));
        assert_eq!(all, [E::Wildcard, E::Secrets, E::Escalate, E::Bind, E::Impersonate, E::ClusterWide, E::Execution]);
    }

    #[test]
    fn only_what_is_new_is_gained() {
        let known =
            json!({ "apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"] });
        let wanted = json!({
            "apiGroups": ["", "apps"], "resources": ["pods", "secrets"], "verbs": ["get", "list", "delete"],
        });
        let gained = uncovered(&wanted, &Granted::of(vec![&known]));
        let told: Vec<_> =
            gained.iter().map(|r| (r.api_groups.join("+"), r.resources.join("+"), r.verbs.join("+"))).collect();
        let part = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(told, [part("+apps", "pods", "delete"), part("+apps", "secrets", "get+list+delete")]);
        assert!(uncovered(&known, &Granted::of(vec![&known])).is_empty());
    }
}
