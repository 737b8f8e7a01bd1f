//! The labels and annotations with which OLM marks objects and their owners (olm-behaviour/processes.md#labels), and Kubernetes' rules for
//! labels.

use serde_json::Value;

use super::names::{self, LONGEST_LABEL, SUBDOMAIN_RULE, is_subdomain};
use super::object;

/// `olm.managed: "true"` is on every object that OLM creates.
pub const MANAGED: &str = "olm.managed";
/// Prefix of the annotations of a CustomResourceDefinition that contain the ClusterServiceVersions whose InstallPlans wrote
/// it.
pub const INSTALLED_ALONGSIDE: &str = "operatorframework.io/installed-alongside-";
/// Name of the owner.
pub const OWNER: &str = "olm.owner";
/// Namespace of the owner.
pub const OWNER_NAMESPACE: &str = "olm.owner.namespace";
/// Kind of the owner.
pub const OWNER_KIND: &str = "olm.owner.kind";
/// On Roles and bindings created for a permission: the hash of the rules, or of the subjects.
pub const PERMISSIONS_HASH: &str = "olm.permissions.hash";
/// On Deployments: the hash of the desired spec.
pub const DEPLOYMENT_SPEC_HASH: &str = "olm.deployment-spec-hash";
/// Prefix of the keys of labels that make an object a component of an Operator.
pub const COMPONENT: &str = "operators.coreos.com/";
/// On copies of ClusterServiceVersions and of their RBAC: the namespace of the original.
pub const COPIED_FROM: &str = "olm.copiedFrom";
/// The selector of objects that are not copies.
pub const NOT_COPIED: &str = "!olm.copiedFrom";
/// Annotation of a member of an OperatorGroup, and of its copies: the name of the group.
pub const OPERATOR_GROUP: &str = "olm.operatorGroup";
/// Annotation of a member of an OperatorGroup, and of its copies: the namespace in which it runs.
pub const OPERATOR_NAMESPACE: &str = "olm.operatorNamespace";
/// Annotation of a member of an OperatorGroup: the namespaces to watch, sorted and joined by commas, or `""` for all.
pub const TARGET_NAMESPACES: &str = "olm.targetNamespaces";
/// Annotation of an OperatorGroup: the APIs that its members provide.
pub const PROVIDED_APIS: &str = "olm.providedAPIs";

/// Sets the three owner labels.
pub fn set_owner(object: &mut Value, owner: &Value) {
    object::set_label(object, OWNER, object::name(owner));
    object::set_label(object, OWNER_NAMESPACE, object::namespace(owner));
    object::set_label(object, OWNER_KIND, object::text(owner, &["kind"]));
}

/// Returns kind, namespace and name of the owner that the labels identify, if there are all three.
pub fn owner(object: &Value) -> Option<(&str, &str, &str)> {
    let [kind, namespace, name] = [OWNER_KIND, OWNER_NAMESPACE, OWNER].map(|key| object::label(object, key));
    Some((kind?, namespace?, name?))
}

/// Returns whether the three owner labels identify this owner.
pub fn is_owner(object: &Value, owner: &Value) -> bool {
    object::label(object, OWNER) == Some(object::name(owner))
        && object::label(object, OWNER_NAMESPACE) == Some(object::namespace(owner))
        && object::label(object, OWNER_KIND) == Some(object::text(owner, &["kind"]))
}

const QUALIFIED_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns why a text is not a valid label key, in Kubernetes' words.
pub fn key_problem(key: &str) -> Option<String> {
    let part = match key.split_once('/') {
        Some(("", _)) => return Some("prefix part must be non-empty".into()),
        Some((prefix, _)) if !is_subdomain(prefix) => return Some(format!("prefix part {SUBDOMAIN_RULE}")),
        Some((_, part)) => part,
        None => key,
    };
    if part.is_empty() {
        Some("name part must be non-empty".into())
    } else if part.len() > LONGEST_LABEL {
        Some("name part must be no more than 63 bytes".into())
    } else {
        (!is_qualified(part)).then(|| QUALIFIED_RULE.to_owned())
    }
}

/// Returns why a text is not a valid label value, in Kubernetes' words.
pub fn value_problem(value: &str) -> Option<String> {
    if value.len() > LONGEST_LABEL {
        Some("must be no more than 63 bytes".into())
    } else {
        (!value.is_empty() && !is_qualified(value)).then(|| VALUE_RULE.to_owned())
    }
}

fn is_qualified(text: &str) -> bool {
    let is_end = |b: u8| b.is_ascii_alphanumeric();
    names::is_between(text, is_end, |b| is_end(b) || matches!(b, b'-' | b'_' | b'.'))
}
