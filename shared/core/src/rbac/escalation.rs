//! Privilege escalation by a ServiceAccount: the API server rejects a Role or binding that grants more than its writer has,
//! unless the writer may `escalate` or `bind` it.

use serde_json::{Value, json};

use super::{Granted, texts};
use crate::api::kinds::RBAC_GROUP;
use crate::api::object;
use crate::world::Reader;

/// A rule with more combinations of API groups, resources and verbs is not split into its parts.
const MOST_PARTS: usize = 20_000;

/// Returns the rules that writing this Role, ClusterRole, or binding would grant, and that the ServiceAccount of that
/// namespace and name lacks. `rules_of` returns the rules of the role (kind, name) of a binding. If empty, the object may
/// be written.
pub fn escalation(
    world: &Reader<'_>,
    account: (&str, &str),
    object: &Value,
    rules_of: impl Fn(&str, &str) -> Vec<Value>,
) -> Vec<Value> {
    let role = |path: &[&str]| object::text(object, path);
    let namespace = Some(object::namespace(object)).filter(|namespace| !namespace.is_empty());
    let (verb, kind, name, rules) = match object::kind(object) {
        kind @ ("Role" | "ClusterRole") => {
            ("escalate", kind, object::name(object), object::list(object, &["rules"]).to_vec())
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let (kind, name) = (role(&["roleRef", "kind"]), role(&["roleRef", "name"]));
            ("bind", kind, name, rules_of(kind, name))
        }
        _ => return Vec::new(),
    };
    let granted = Granted::to(world, account, namespace);
    let plural = format!("{}s", kind.to_lowercase());
    let may = json!({ "verbs": [verb], "apiGroups": [RBAC_GROUP], "resources": [plural], "resourceNames": [name] });
    let is_granted = |rule: &Value| granted.allows(rule).is_ok_and(|granted| granted);
    if is_granted(&may) { Vec::new() } else { rules.iter().flat_map(|rule| lacking(rule, is_granted)).collect() }
}

/// Returns the parts of a rule that are not granted: one for each resource, and one for the URLs.
pub fn lacking(rule: &Value, is_granted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let part = |part: Value| {
        let mut part = part;
        let lacks = |verb: &&str| {
            part["verbs"] = json!([verb]);
            !is_granted(&part)
        };
        let verbs: Vec<&str> = texts(rule, "verbs").into_iter().filter(lacks).collect();
        part["verbs"] = json!(verbs);
        (!verbs.is_empty()).then_some(part)
    };
    let lists = ["apiGroups", "resources", "verbs"].map(|field| texts(rule, field).len());
    if lists.into_iter().fold(1, usize::saturating_mul) > MOST_PARTS {
        return if is_granted(rule) { Vec::new() } else { vec![rule.clone()] };
    }
    let mut parts = Vec::new();
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            let mut one = json!({ "apiGroups": [group], "resources": [resource] });
            if !object::list(rule, &["resourceNames"]).is_empty() {
                one["resourceNames"] = rule["resourceNames"].clone();
            }
            parts.extend(part(one));
        }
    }
    for url in texts(rule, "nonResourceURLs") {
        parts.extend(part(json!({ "nonResourceURLs": [url] })));
    }
    parts
}

/// Describes a rule about one API group: `create, get deployments.apps`.
pub fn described(rule: &Value) -> String {
    let verbs = texts(rule, "verbs").join(", ");
    let group = texts(rule, "apiGroups").first().copied().unwrap_or_default().to_owned();
    let of = |resource: &str| if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let what: Vec<String> = texts(rule, "resources").into_iter().map(of).collect();
    let what = if what.is_empty() { texts(rule, "nonResourceURLs").join(", ") } else { what.join(", ") };
    let names = texts(rule, "resourceNames");
    let named = if names.is_empty() { String::new() } else { format!(" named {}", names.join(", ")) };
    format!("{verbs} {what}{named}")
}
