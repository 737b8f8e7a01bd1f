//! What bindings grant, to each of their subjects.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::object::{self, at, list, text};
use serde_json::Value;

use super::{Scene, serving};

/// Kind, namespace and name of a subject.
type Subject = (String, String, String);
/// The namespace, or nothing for the whole cluster, and one verb of one resource.
type Grant = (String, String);

/// What `cluster-admin` grants.
const ADMINISTRATOR: [&str; 2] = ["* *.*", "* *"];
/// What `system:auth-delegator` grants.
const DELEGATOR: [&str; 2] =
    ["create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"];

/// Reports what is not granted, and what is granted without being given.
pub(super) fn compare(scene: &mut Scene<'_>) {
    let bindings = |objects: &[Value]| -> Vec<Value> {
        objects.iter().filter(|o| matches!(object::kind(o), "RoleBinding" | "ClusterRoleBinding")).cloned().collect()
    };
    let of_manifests: BTreeSet<(&str, &str)> = scene.given.manifests().map(|m| (m.kind(), m.name())).collect();
    let mut given = bindings(&scene.given.cluster);
    given.retain(|binding| of_manifests.contains(&(object::kind(binding), object::name(binding))));
    let given = grants(&given, &scene.given.cluster);
    let running = grants(&bindings(scene.running), scene.running);
    let own = own_grants(scene.csv);
    // A namespace of which an installation knows nothing has other bindings, too.
    let is_compared = |(_, namespace, _): &&Subject| namespace == scene.namespace;
    let subjects: BTreeSet<&Subject> = given.keys().chain(running.keys().filter(is_compared)).collect();
    let mut differences = Vec::new();
    for subject in subjects {
        let none = BTreeSet::new();
        let (wanted, found) = (given.get(subject).unwrap_or(&none), running.get(subject).unwrap_or(&none));
        let everywhere = |grant: &Grant| (String::new(), grant.1.clone());
        let name = format!("{} {}/{}", subject.0, subject.1, subject.2);
        for grant in wanted.iter().filter(|grant| !found.contains(*grant) && !found.contains(&everywhere(grant))) {
            differences.push(format!("{name} is not granted: {} {}", grant.1, place(grant)));
        }
        // OLM grants permissions in the whole cluster if the operator is installed for all namespaces.
        let allowed: BTreeSet<&str> = wanted.iter().map(|(_, what)| what.as_str()).collect();
        let is_allowed = |grant: &&Grant| allowed.contains(grant.1.as_str()) || own.contains(&grant.1);
        // Other operators may grant something to subjects elsewhere.
        for grant in found.iter().filter(|grant| subject.1 == scene.namespace && !is_allowed(grant)) {
            differences.push(format!("{name} is granted more than given: {} {}", grant.1, place(grant)));
        }
    }
    scene.result.differences.extend(differences);
}

fn place((namespace, _): &Grant) -> String {
    if namespace.is_empty() { "in the cluster".to_owned() } else { format!("in namespace {namespace}") }
}

/// Returns what OLM grants for itself.
fn own_grants(csv: &Value) -> BTreeSet<String> {
    let mut own: BTreeSet<String> = ["get", "list", "watch"].iter().map(|verb| format!("{verb} namespaces")).collect();
    let condition = object::name(csv);
    for verb in ["get", "update", "patch"] {
        for part in ["", "/status"] {
            own.insert(format!("{verb} operatorconditions{part}.operators.coreos.com {condition}"));
        }
    }
    for server in serving::servers(csv) {
        own.insert(format!("get secrets {}", serving::secret(server)));
        own.extend(DELEGATOR.map(str::to_owned));
        own.insert("whatever Role extension-apiserver-authentication-reader grants".to_owned());
    }
    own
}

/// Returns what bindings grant to each subject, with the roles among `objects`.
fn grants(bindings: &[Value], objects: &[Value]) -> BTreeMap<Subject, BTreeSet<Grant>> {
    let mut granted: BTreeMap<Subject, BTreeSet<Grant>> = BTreeMap::new();
    for binding in bindings {
        let place = object::namespace(binding);
        let (kind, name) = (text(binding, &["roleRef", "kind"]), text(binding, &["roleRef", "name"]));
        let role = objects.iter().find(|role| {
            object::kind(role) == kind
                && object::name(role) == name
                && (kind == "ClusterRole" || object::namespace(role) == place)
        });
        // Labelled so by Kubernetes itself. What they grant depends on the cluster.
        let is_stock = |role: &Value| object::label(role, "kubernetes.io/bootstrapping").is_some();
        let rules: BTreeSet<String> = match (name, role.filter(|role| !is_stock(role))) {
            (_, Some(role)) => list(role, &["rules"]).iter().flat_map(atoms).collect(),
            ("cluster-admin", None) => ADMINISTRATOR.map(str::to_owned).into(),
            ("system:auth-delegator", None) => DELEGATOR.map(str::to_owned).into(),
            _ => BTreeSet::from([format!("whatever {kind} {name} grants")]),
        };
        for subject in list(binding, &["subjects"]) {
            let part = |field: &str| text(subject, &[field]).to_owned();
            let grants = rules.iter().map(|rule| (place.to_owned(), rule.clone()));
            granted.entry((part("kind"), part("namespace"), part("name"))).or_default().extend(grants);
        }
    }
    granted
}

/// Returns each verb of each resource of a rule.
fn atoms(rule: &Value) -> Vec<String> {
    let strings = |field: &str| -> Vec<&str> { list(rule, &[field]).iter().filter_map(Value::as_str).collect() };
    let mut atoms = Vec::new();
    for verb in strings("verbs") {
        atoms.extend(strings("nonResourceURLs").iter().map(|url| format!("{verb} {url}")));
        for group in strings("apiGroups") {
            let group = if group.is_empty() { String::new() } else { format!(".{group}") };
            for resource in strings("resources") {
                let names = strings("resourceNames");
                if names.is_empty() && at(rule, &["resourceNames"]).as_array().is_none_or(Vec::is_empty) {
                    atoms.push(format!("{verb} {resource}{group}"));
                }
                atoms.extend(names.iter().map(|name| format!("{verb} {resource}{group} {name}")));
            }
        }
    }
    atoms
}
