//! Determines which permissions are privileged.
//!
//! Statements of a ClusterServiceVersion about itself exempt no permissions, because the author of the bundle is untrusted. Only the mark
//! for cluster-wide writes exempts resources that the plan itself creates: custom resources of exactly the definitions that it creates, and
//! groups of APIServices that were not served before. Built-in groups are never exempt.
//!
//! Names are compared case-insensitively, and a `*` anywhere counts as a wildcard. RBAC is stricter in both cases, so this errs towards
//! marking.

use std::collections::BTreeSet;

use serde_json::Value;

use super::simulated_plan::SimulatedPlan;
use super::{Escalation, Permission};
use crate::api::cluster_service_version::Csv;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::kinds::{self, ADMISSION_REGISTRATION, API_EXTENSIONS, OLM_GROUP, RBAC_GROUP};
use crate::api::object;
use crate::csv;

const AUTHENTICATION: &str = "authentication.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";

/// Verbs that only read.
const READING: [&str; 3] = ["get", "list", "watch"];

/// Review resources: creating one changes nothing.
const REVIEWS: [(&str, &str); 6] = [
    (AUTHENTICATION, "selfsubjectreviews"),
    (AUTHENTICATION, "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Resources that run Pods. Writing them in all namespaces is equivalent to the permissions of every ServiceAccount.
const RUNNING: [(&str, &str); 8] = [
    ("", "pods"),
    ("", "replicationcontrollers"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];

/// Resources that give access to running Pods, or issue tokens of ServiceAccounts. Some of them are used with the verb `get`.
const ENTERING: [(&str, &str); 7] = [
    ("", "nodes/proxy"),
    ("", "pods/attach"),
    ("", "pods/ephemeralcontainers"),
    ("", "pods/exec"),
    ("", "pods/portforward"),
    ("", "pods/proxy"),
    ("", "serviceaccounts/token"),
];

/// Resources that can be impersonated.
const IDENTITIES: [(&str, &str); 6] = [
    ("", "groups"),
    ("", "serviceaccounts"),
    ("", "users"),
    (AUTHENTICATION, "uids"),
    (AUTHENTICATION, "userextras"),
    (AUTHENTICATION, "users"),
];

/// The domains that are reserved for Kubernetes. Its other groups have no dot in their names.
const BUILT_IN: [&str; 2] = ["k8s.io", "kubernetes.io"];

/// Reports whether a group is served by Kubernetes itself, or reserved for it.
pub(super) fn is_built_in(group: &str) -> bool {
    let group = group.to_ascii_lowercase();
    let is_below = |domain: &str| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !group.contains('.') || BUILT_IN.iter().any(|domain| is_below(domain)) || group == OLM_GROUP
}

/// The APIs and certificates that a plan itself creates.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Group and resource of the CustomResourceDefinitions that it creates.
    created: BTreeSet<(String, String)>,
    /// Groups of these that were not served before.
    new_groups: BTreeSet<String>,
    /// Group and resource of the custom resources that its ClusterServiceVersions provide, and that are defined after the plan.
    provided: BTreeSet<(String, String)>,
    /// Groups of its APIServices that were not served before.
    groups: BTreeSet<String>,
    /// Names of the Secrets with the certificates that OLM creates for it.
    certificates: BTreeSet<String>,
    /// The namespace of its operators.
    namespace: String,
}

impl Own {
    /// Returns the APIs and certificates of a plan.
    pub(super) fn from_plan(simulated: &SimulatedPlan) -> Self {
        let [before, after] = [&simulated.before, &simulated.after].map(crate::sim::Simulation::api);
        let defined = |name: &str| {
            let crd = after.find(API_EXTENSIONS, "CustomResourceDefinition", "", name)?;
            let crd = CustomResourceDefinition::new(crd);
            Some((crd.group().to_ascii_lowercase(), crd.plural().to_ascii_lowercase()))
                .filter(|(group, _)| !is_built_in(group))
        };
        let is_served_by_others = |group: &str| {
            let mut services = before.list(kinds::API_SERVICE.group, kinds::API_SERVICE.kind, None);
            let has = |s: &Value| !object::at(s, &["spec", "service"]).is_null();
            services.any(|s| object::text(s, &["spec", "group"]).eq_ignore_ascii_case(group) && has(s))
        };
        let mut own = Self { namespace: simulated.namespace.clone(), ..Self::default() };
        for step in simulated.steps() {
            let of = |key| object::text(step, &["resource", key]);
            let name = of("name");
            let is_new = || before.find(API_EXTENSIONS, "CustomResourceDefinition", "", name).is_none();
            if of("kind") == "CustomResourceDefinition" && is_new() {
                let pair = defined(name).filter(|(group, plural)| {
                    before.kind_by_plural(group, plural).is_none() && !is_served_by_others(group)
                });
                own.created.extend(pair);
            }
        }
        let is_new = |group: &&String| !before.kinds().any(|kind| kind.group == **group) && !is_served_by_others(group);
        own.new_groups = own.created.iter().map(|(group, _)| group).filter(is_new).cloned().collect();
        for name in simulated.csv_names() {
            let Some(csv) = after.find(OLM_GROUP, "ClusterServiceVersion", &simulated.namespace, name) else {
                continue;
            };
            for crd in Csv::new(csv).owned_crds() {
                own.provided.extend(defined(object::text(crd, &["name"])));
            }
            for service in Csv::new(csv).owned_api_services() {
                let group = object::text(service, &["group"]).to_ascii_lowercase();
                let is_known = before.kinds().any(|kind| kind.group == group) || is_served_by_others(&group);
                if !is_built_in(&group) && !is_known {
                    own.groups.insert(group);
                }
            }
            own.certificates.extend(csv::certificates(csv));
        }
        own
    }

    /// Reports whether the plan creates the definition of these custom resources; for `*`, whether it creates the whole group.
    pub(super) fn creates(&self, group: &str, resource: &str) -> bool {
        resource == "*" && self.new_groups.contains(group)
            || self.created.contains(&(group.to_owned(), resource.to_owned()))
    }

    /// Reports whether the plan's operators claim to provide these custom resources.
    pub(super) fn provides(&self, group: &str, resource: &str) -> bool {
        self.provided.contains(&(group.to_owned(), resource.to_owned()))
    }

    #[cfg(test)]
    pub(super) fn creating(group: &str, resource: &str) -> Self {
        let new_groups = BTreeSet::from([group.to_owned()]);
        Self { created: BTreeSet::from([(group.to_owned(), resource.to_owned())]), new_groups, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn providing(group: &str, resource: &str) -> Self {
        Self { provided: BTreeSet::from([(group.to_owned(), resource.to_owned())]), ..Self::default() }
    }

    /// Reports whether the plan creates all resources of the permission.
    fn is_all(&self, permission: &Permission) -> bool {
        all_pairs(permission, |group, resource| {
            self.groups.contains(group) || self.created.contains(&(group.to_owned(), resource.to_owned()))
        })
    }

    /// Reports whether the plan's operators provide all resources of the permission.
    fn is_all_provided(&self, permission: &Permission) -> bool {
        all_pairs(permission, |group, resource| {
            self.groups.contains(group) || self.provided.contains(&(group.to_owned(), resource.to_owned()))
        })
    }

    /// Reports whether it is the permission that OLM grants an operator to read the certificate that OLM has created for it.
    fn is_certificate(&self, permission: &Permission) -> bool {
        let Permission { namespace, role, resources, resource_names, verbs, .. } = permission;
        let [name] = &resource_names[..] else { return false };
        namespace.as_deref() == Some(&self.namespace)
            && *role == format!("Role {name}")
            && self.certificates.contains(name)
            && *resources == ["secrets"]
            && *verbs == ["get"]
    }
}

/// Reports whether `holds` is true for each group and resource of a permission, ignoring subresources. Wildcards count as names, and an
/// empty list yields false.
fn all_pairs(permission: &Permission, holds: impl Fn(&str, &str) -> bool) -> bool {
    // Duplicates are removed, because untrusted lists could make their product expensive.
    let lower = |list: &[String]| -> BTreeSet<String> {
        list.iter().map(|item| item.split('/').next().unwrap_or_default().to_ascii_lowercase()).collect()
    };
    let [groups, resources] = [&permission.api_groups, &permission.resources].map(|list| lower(list));
    !groups.is_empty()
        && !resources.is_empty()
        && groups.iter().all(|group| resources.iter().all(|resource| holds(group, resource)))
}

/// The holder of a permission.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// The account that the permission names.
    Account,
    /// All subjects that are bound to the aggregated ClusterRole that contains the permission, in any namespace.
    Aggregate,
}

/// Returns why a permission is privileged; empty if it is not.
pub(super) fn escalations(permission: &Permission, own: &Own, holder: Holder) -> Vec<Escalation> {
    let Permission { account, api_groups, resources, verbs, namespace, non_resource_urls, .. } = permission;
    let is_unknown = verbs.is_empty() && resources.is_empty() && non_resource_urls.is_empty();
    let of = |group: &str, resource: &str| names_group(api_groups, group) && names_resource(resources, resource);
    let of_any = |pairs: &[(&str, &str)]| pairs.iter().any(|(group, resource)| of(group, resource));
    let all = is_any(verbs, |verb| verb.contains('*'));
    let does = |wanted: &str| all || is_any(verbs, |verb| verb == wanted);
    let writes = is_any(verbs, |verb| !READING.contains(&verb));
    let is_review = !verbs.is_empty()
        && verbs.iter().all(|verb| verb == "create")
        && all_pairs(permission, |group, resource| REVIEWS.contains(&(group, resource)));
    let is_wild = |list: &[String]| is_any(list, |item| item.contains('*'));
    // OLM grants administrators of a namespace all verbs on the APIs that its operators provide.
    let is_ordinary = holder == Holder::Aggregate && own.is_all_provided(permission);
    let everywhere = holder == Holder::Account && namespace.is_none() && !resources.is_empty();
    let mut escalations = Vec::new();
    let mut mark = |is_one: bool, escalation| escalations.extend(is_one.then_some(escalation));
    let wild = [api_groups, resources, non_resource_urls].into_iter().any(|list| is_wild(list));
    mark(wild || all && !is_ordinary, Escalation::Wildcard);
    mark(of("", "secrets") && !own.is_certificate(permission), Escalation::Secrets);
    let roles = of_any(&[(RBAC_GROUP, "roles"), (RBAC_GROUP, "clusterroles")]);
    mark(roles && does("escalate"), Escalation::Escalate);
    mark(roles && does("bind"), Escalation::Bind);
    // Newer versions of Kubernetes have several verbs with this prefix, for other resources, too.
    let impersonates = is_any(verbs, |verb| verb.starts_with("impersonate"));
    mark(impersonates || all && of_any(&IDENTITIES), Escalation::Impersonate);
    mark(everywhere && writes && !is_review && !own.is_all(permission), Escalation::ClusterWide);
    let runs = everywhere && writes && of_any(&RUNNING);
    mark(runs || of_any(&ENTERING), Escalation::Execution);
    let signs = of_any(&[
        (CERTIFICATES, "certificatesigningrequests/approval"),
        (CERTIFICATES, "certificatesigningrequests/status"),
        (CERTIFICATES, "signers"),
    ]);
    mark(signs && writes, Escalation::Certificates);
    let admits = names_group(api_groups, ADMISSION_REGISTRATION) && !resources.is_empty();
    mark(admits && writes, Escalation::Admission);
    let is_everyone = account.starts_with("Group system:") || account == "User system:anonymous";
    mark(is_everyone, Escalation::Everyone);
    mark(is_unknown, Escalation::UnknownRole);
    escalations
}

/// Returns a rule as a permission of an account, with the reasons why it is privileged regardless of what else the operator brings.
/// Without a namespace the permission holds in the whole cluster.
pub fn permission(account: &str, namespace: Option<&str>, rule: &Value) -> Permission {
    let of = |field: &str| -> Vec<String> {
        object::list(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut permission = Permission {
        account: account.to_owned(),
        namespace: namespace.map(str::to_owned),
        api_groups: of("apiGroups"),
        resources: of("resources"),
        resource_names: of("resourceNames"),
        non_resource_urls: of("nonResourceURLs"),
        verbs: of("verbs"),
        ..Permission::default()
    };
    permission.escalations = escalations(&permission, &Own::default(), Holder::Account);
    permission
}

fn is_any(list: &[String], holds: impl Fn(&str) -> bool) -> bool {
    list.iter().any(|item| holds(&item.to_ascii_lowercase()))
}

fn names_group(groups: &[String], wanted: &str) -> bool {
    is_any(groups, |group| group.contains('*') || group == wanted)
}

/// Reports whether the list names the resource, `pods` or `pods/exec`: literally, or through `*`, `pods/*` or `*/exec`.
fn names_resource(resources: &[String], wanted: &str) -> bool {
    let (of, sub) = wanted.split_once('/').map_or((wanted, None), |(of, sub)| (of, Some(sub)));
    is_any(resources, |named| match named.split_once('/') {
        _ if named == "*" || named == wanted => true,
        // `userextras/scopes` is a `userextras`.
        Some((named_of, named_sub)) => match sub {
            Some(sub) => (named_of == "*" || named_of == of) && (named_sub == "*" || named_sub == sub),
            None => named_of == "*" && named_sub == "*" || of == "userextras" && named_of == of,
        },
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own() -> Own {
        let pair = |group: &str, resource: &str| (group.to_owned(), resource.to_owned());
        Own {
            created: BTreeSet::from([pair("garden.example.com", "roses")]),
            provided: BTreeSet::from([pair("garden.example.com", "roses"), pair("garden.example.com", "tulips")]),
            groups: BTreeSet::from(["metrics.example.com".to_owned()]),
            certificates: BTreeSet::from(["gate-service-cert".to_owned()]),
            namespace: "garden".to_owned(),
            new_groups: BTreeSet::new(),
        }
    }

    fn permission(namespace: Option<&str>, rule: &Value) -> Permission {
        super::permission("", namespace, rule)
    }

    fn marks(namespace: Option<&str>, rule: &Value) -> Vec<Escalation> {
        escalations(&permission(namespace, rule), &own(), Holder::Account)
    }

    fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
        json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs })
    }

    #[test]
    fn escalations_are_marked() {
        use Escalation as E;
        let garden = Some("garden");
        assert_eq!(marks(garden, &rule("", "pods", &["get", "delete"])), []);
        assert_eq!(marks(garden, &rule("", "secrets", &["get"])), [E::Secrets]);
        assert_eq!(marks(None, &rule("", "nodes", &["get", "list"])), []);
        assert_eq!(marks(None, &rule("", "nodes", &["patch"])), [E::ClusterWide]);
        assert_eq!(marks(None, &rule("", "pods", &["create"])), [E::ClusterWide, E::Execution]);
        assert_eq!(marks(None, &rule("authorization.k8s.io", "subjectaccessreviews", &["create"])), []);
        assert_eq!(marks(garden, &rule("apps", "*", &["get"])), [E::Wildcard]);
        let roles = marks(None, &rule(RBAC_GROUP, "clusterroles", &["bind", "escalate"]));
        assert_eq!(roles, [E::Escalate, E::Bind, E::ClusterWide]);
        assert_eq!(marks(None, &rule("", "users", &["impersonate"])), [E::Impersonate, E::ClusterWide]);
        let everything = marks(None, &rule("*", "*", &["*"]));
        let all = [
            E::Wildcard,
            E::Secrets,
            E::Escalate,
            E::Bind,
            E::Impersonate,
            E::ClusterWide,
            E::Execution,
            E::Certificates,
            E::Admission,
        ];
        assert_eq!(everything, all);
    }

    #[test]
    fn only_created_resources_are_exempt_and_only_from_the_mark_for_cluster_wide_writes() {
        use Escalation as E;
        let writes = &["create", "update"];
        assert_eq!(marks(None, &rule("garden.example.com", "roses", writes)), []);
        assert_eq!(marks(None, &rule("garden.example.com", "roses/status", writes)), []);
        assert_eq!(marks(None, &rule("metrics.example.com", "anything", writes)), []);
        assert_eq!(marks(None, &rule("garden.example.com", "tulips", writes)), [E::ClusterWide]);
        assert_eq!(marks(None, &rule("example.com", "roses", writes)), [E::ClusterWide]);
        assert_eq!(marks(None, &rule("garden.example.com", "roses", &["*"])), [E::Wildcard]);
        assert_eq!(marks(None, &rule("garden.example.com", "*", &["get"])), [E::Wildcard]);
        assert_eq!(marks(None, &rule("garden.example.com", "roses", &["impersonate"])), [E::Impersonate]);
        // One other resource is enough for a mark.
        let mixed =
            json!({ "apiGroups": ["garden.example.com", ""], "resources": ["roses", "secrets"], "verbs": ["create"] });
        assert_eq!(marks(None, &mixed), [E::Secrets, E::ClusterWide]);
    }

    #[test]
    fn permissions_that_lead_to_other_permissions_are_marked_in_all_spellings() {
        use Escalation as E;
        let garden = Some("garden");
        for (group, resource, verbs, wanted) in [
            ("", "pods/exec", &["get"][..], &[E::Execution][..]),
            ("", "pods/attach", &["create"], &[E::Execution]),
            ("", "pods/portforward", &["create"], &[E::Execution]),
            ("", "nodes/proxy", &["get"], &[E::Execution]),
            ("", "serviceaccounts/token", &["create"], &[E::Execution]),
            ("", "*/exec", &["create"], &[E::Wildcard, E::Execution]),
            ("", "pods/*", &["create"], &[E::Wildcard, E::Execution]),
            ("", "*/token", &["create"], &[E::Wildcard, E::Execution]),
            ("", "Secrets", &["GET"], &[E::Secrets]),
            ("*.k8s.io", "roses", &["get"], &[E::Wildcard]),
            (AUTHENTICATION, "userextras/scopes", &["impersonate"], &[E::Impersonate]),
            (AUTHENTICATION, "users", &["impersonate:user-info"], &[E::Impersonate]),
            (CERTIFICATES, "certificatesigningrequests/approval", &["update"], &[E::Certificates]),
            (CERTIFICATES, "signers", &["approve"], &[E::Certificates]),
            (ADMISSION_REGISTRATION, "mutatingwebhookconfigurations", &["patch"], &[E::Admission]),
            (ADMISSION_REGISTRATION, "validatingadmissionpolicybindings", &["create"], &[E::Admission]),
            (ADMISSION_REGISTRATION, "mutatingwebhookconfigurations", &["list"], &[]),
        ] {
            assert_eq!(marks(garden, &rule(group, resource, verbs)), wanted, "{verbs:?} {resource}.{group}");
        }
        let urls = |url: &str| marks(None, &json!({ "nonResourceURLs": [url], "verbs": ["get"] }));
        assert_eq!((urls("*"), urls("/metrics")), (vec![E::Wildcard], vec![]));
        // The group of the reviews also contains requests for tokens.
        assert_eq!(marks(None, &rule(AUTHENTICATION, "roses", &["create"])), [E::ClusterWide]);
        let everyone = Permission {
            account: "Group system:authenticated".to_owned(),
            ..permission(garden, &rule("", "pods", &["get"]))
        };
        assert_eq!(escalations(&everyone, &own(), Holder::Account), [E::Everyone]);
        let unknown = Permission { role: "ClusterRole who-knows".to_owned(), ..Permission::default() };
        assert_eq!(escalations(&unknown, &own(), Holder::Account), [E::UnknownRole]);
    }

    #[test]
    fn named_secrets_are_marked_except_certificates_of_olm() {
        let named = |name: &str, role: &str, verb: &str| {
            let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": [verb] });
            let permission = Permission { role: role.to_owned(), ..permission(Some("garden"), &rule) };
            escalations(&permission, &own(), Holder::Account)
        };
        assert_eq!(named("gate-service-cert", "Role gate-service-cert", "get"), []);
        for (name, role, verb) in [
            ("bootstrap-token", "Role gate-service-cert", "get"),
            ("gate-service-cert", "Role other", "get"),
            ("gate-service-cert", "Role gate-service-cert", "update"),
        ] {
            assert_eq!(named(name, role, verb), [Escalation::Secrets], "{verb} {name} {role}");
        }
    }

    #[test]
    fn aggregated_roles_may_contain_all_verbs_only_on_provided_apis() {
        let aggregate = |rule: &Value| escalations(&permission(None, rule), &own(), Holder::Aggregate);
        assert_eq!(aggregate(&rule("garden.example.com", "tulips", &["*"])), []);
        assert_eq!(aggregate(&rule("", "pods", &["create"])), []);
        assert_eq!(aggregate(&rule("garden.example.com", "lilies", &["*"])), [Escalation::Wildcard]);
        assert_eq!(aggregate(&rule("", "secrets", &["get"])), [Escalation::Secrets]);
    }

    #[test]
    fn groups_of_kubernetes_are_built_in() {
        for group in
            ["", "apps", "batch", "RBAC.authorization.k8s.io", "x.k8s.io", "k8s.io", "a.kubernetes.io", OLM_GROUP]
        {
            assert!(is_built_in(group), "{group}");
        }
        for group in ["garden.example.com", "notk8s.io", "k8s.io.example.com"] {
            assert!(!is_built_in(group), "{group}");
        }
    }
}
