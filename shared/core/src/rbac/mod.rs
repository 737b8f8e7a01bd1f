//! The RBAC permissions of a ServiceAccount, and whether they cover a rule of a ClusterServiceVersion.
//!
//! *Guarantees*: matches like OLM's evaluator (olm-behaviour/csv.md#permissions-evaluation), which differs from that of
//! Kubernetes in two ways: the user has no groups, so that bindings to `system:serviceaccounts` are ignored, and `pods/log`
//! is compared as a whole, so that a grant of `*/log` does not cover it.

mod escalation;
mod granted;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::object;
use crate::world::{IndexKey, Reader, kind};

pub use self::escalation::{described, escalation, lacking};
pub use self::granted::{Granted, Work};

/// Returns whether the permissions of ServiceAccounts in the namespace of an object have changed since it was written
/// (olm-behaviour/processes.md#permissions-changed). The resource versions of one etcd are in the order of writes.
pub fn changed_since(world: &Reader<'_>, object: &Value) -> bool {
    let kinds = [&kind::ROLE, &kind::ROLE_BINDING, &kind::SERVICE_ACCOUNT];
    let namespace = object::namespace(object);
    kinds.into_iter().any(|kind| world.in_namespace(kind, namespace).any(|o| is_later(o.json(), object)))
}

/// Returns whether an object was written later than another one.
pub fn is_later(object: &Value, other: &Value) -> bool {
    let version = |object: &Value| object::resource_version(object).parse::<u64>().ok();
    version(object).zip(version(other)).is_some_and(|(version, other)| version > other)
}

/// A rule that cannot be granted. Its text is OLM's in the CSV's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRule {
    /// `verbs` is empty.
    #[error("rule invalid: policy rule must have at least one verb")]
    NoVerb,
    /// The rule contains resources (or groups, or names) and URLs.
    #[error("rule invalid: rule cannot apply to both regular resources and non-resource URLs")]
    ResourcesAndUrls,
    /// Evaluating the rule exceeds the limit. OLM has no such limit.
    #[error(
        "rule invalid: there are too many combinations of verbs, API groups, resources and names to find out who may do it"
    )]
    TooMuch,
}

impl<'w> Granted<'w> {
    /// Returns what is granted to the ServiceAccount of that namespace and name: cluster-wide, and when `namespace` is
    /// given, in that namespace. Bindings to missing roles grant nothing.
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
        Self::from_rules(rules)
    }
}

/// Returns whether `holds` is true for each item. An empty list is treated as one empty string.
fn each(list: &BTreeSet<&str>, holds: impl Fn(&str) -> Result<bool, InvalidRule>) -> Result<bool, InvalidRule> {
    if list.is_empty() {
        return holds("");
    }
    for item in list {
        if !holds(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn texts<'v>(rule: &'v Value, field: &str) -> Vec<&'v str> {
    object::list(rule, &[field]).iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests;
