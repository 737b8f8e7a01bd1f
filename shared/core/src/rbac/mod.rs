//! What RBAC grants a ServiceAccount, and whether that covers a rule of a ClusterServiceVersion.
//!
//! *Guarantees*: matches as OLM's evaluator does (reference/olm-operator.md §1.6), which is Kubernetes' own but for two things: the
//! user has no groups, so that bindings to `system:serviceaccounts` do not count, and `pods/log` is compared whole, so that a
//! grant of `*/log` does not cover it.

mod escalation;

use serde_json::Value;

use crate::api::object;
use crate::world::{IndexKey, Reader, kind};

pub use self::escalation::{described, escalation};

/// Have the rights of ServiceAccounts in the namespace of an object been changed since it was written (reference/olm-operator.md §0.3,
/// reference/catalog-operator.md §5.7)? What one etcd stores has its versions in the order of the writes.
pub fn changed_since(world: &Reader<'_>, object: &Value) -> bool {
    let kinds = [&kind::ROLE, &kind::ROLE_BINDING, &kind::SERVICE_ACCOUNT];
    let namespace = object::namespace(object);
    kinds.into_iter().any(|kind| world.in_namespace(kind, namespace).any(|o| is_later(o.json(), object)))
}

/// Was an object written later than another?
pub fn is_later(object: &Value, other: &Value) -> bool {
    let version = |object: &Value| object::resource_version(object).parse::<u64>().ok();
    version(object).zip(version(other)).is_some_and(|(version, other)| version > other)
}

/// A rule that can be granted to nobody. Its text is what OLM puts into the CSV's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// `verbs` is empty.
    #[error("rule invalid: policy rule must have at least one verb")]
    NoVerb,
    /// There are resources (or groups, or names) and URLs.
    #[error("rule invalid: rule cannot apply to both regular resources and non-resource URLs")]
    ResourcesAndUrls,
}

/// The rules that hold for a ServiceAccount in one namespace, or in the whole cluster.
#[derive(Debug, Default)]
pub struct Granted<'w> {
    rules: Vec<&'w Value>,
}

impl<'w> Granted<'w> {
    /// What is granted to the ServiceAccount of that namespace and name: in the whole cluster, and when `namespace` is given, in
    /// that namespace. Bindings to roles that do not exist grant nothing.
    pub fn to(world: &Reader<'w>, (owner, name): (&str, &str), namespace: Option<&str>) -> Self {
        let bindings = world.indexed(IndexKey::Subject(owner.to_owned(), name.to_owned()));
        let mut rules = Vec::new();
        for binding in bindings.iter().map(|b| b.json()) {
            let bound_in = object::namespace(binding);
            if !bound_in.is_empty() && namespace != Some(bound_in) {
                continue;
            }
            let role = object::text(binding, &["roleRef", "name"]);
            let role = match object::text(binding, &["roleRef", "kind"]) {
                "ClusterRole" => world.json(&kind::CLUSTER_ROLE, "", role),
                "Role" if !bound_in.is_empty() => world.json(&kind::ROLE, bound_in, role),
                _ => None,
            };
            rules.extend(role.map(|r| object::list(r, &["rules"])).unwrap_or_default());
        }
        Self { rules }
    }

    /// What these rules grant.
    pub fn of(rules: Vec<&'w Value>) -> Self {
        Self { rules }
    }

    /// Is everything granted that the rule asks for?
    ///
    /// # Errors
    /// The rule makes no sense, so that nothing could grant it.
    pub fn allows(&self, rule: &Value) -> Result<bool, InvalidRule> {
        let verbs = texts(rule, "verbs");
        let groups = texts(rule, "apiGroups");
        let resources = texts(rule, "resources");
        let names = texts(rule, "resourceNames");
        let urls = texts(rule, "nonResourceURLs");
        if verbs.is_empty() {
            return Err(InvalidRule::NoVerb);
        }
        let asks_for_resources = ![&groups, &resources, &names].iter().all(|list| list.is_empty());
        if asks_for_resources && !urls.is_empty() {
            return Err(InvalidRule::ResourcesAndUrls);
        }
        if urls.iter().any(|url| !url.is_empty()) {
            return Ok(each(&verbs, |verb| each(&urls, |url| self.grants_url(verb, url))));
        }
        Ok(each(&verbs, |verb| {
            each(&groups, |group| {
                each(&resources, |resource| each(&names, |name| self.grants(verb, group, resource, name)))
            })
        }))
    }

    fn grants(&self, verb: &str, group: &str, resource: &str, name: &str) -> bool {
        self.rules.iter().any(|rule| {
            let names = texts(rule, "resourceNames");
            lists(rule, "verbs", verb)
                && lists(rule, "apiGroups", group)
                && lists(rule, "resources", resource)
                && (names.is_empty() || names.contains(&name))
        })
    }

    fn grants_url(&self, verb: &str, url: &str) -> bool {
        let covers =
            |granted: &str| granted == url || granted.ends_with('*') && url.starts_with(granted.trim_end_matches('*'));
        self.rules
            .iter()
            .any(|rule| lists(rule, "verbs", verb) && texts(rule, "nonResourceURLs").into_iter().any(covers))
    }
}

/// Does it hold for each? An empty list counts as one empty text.
fn each(list: &[&str], holds: impl Fn(&str) -> bool) -> bool {
    if list.is_empty() { holds("") } else { list.iter().all(|item| holds(item)) }
}

fn texts<'v>(rule: &'v Value, field: &str) -> Vec<&'v str> {
    object::list(rule, &[field]).iter().filter_map(Value::as_str).collect()
}

/// Does the list name the item, or everything?
fn lists(rule: &Value, field: &str, item: &str) -> bool {
    object::list(rule, &[field]).iter().any(|listed| listed == "*" || listed == item)
}

#[cfg(test)]
mod tests;
