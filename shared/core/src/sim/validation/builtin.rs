//! Rules of Kubernetes' own types that operators and their bundles can violate.

use serde_json::Value;

use super::super::kinds::ResourceKind;
use super::crd;
use crate::api::object::{at, list, name, text};

/// Returns the problems of the object by itself.
pub(super) fn problems(kind: &ResourceKind, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => workload(object, &mut found),
        ("batch", "Job") => template(at(object, &["spec", "template"]), "spec.template", &mut found),
        ("", "Pod") => pod_spec(at(object, &["spec"]), "spec", &mut found),
        ("", "Service") => service(object, &mut found),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
            for (n, rule) in list(object, &["rules"]).iter().enumerate() {
                policy_rule(rule, &format!("rules[{n}]"), kind.namespaced, &mut found);
            }
        }
        ("rbac.authorization.k8s.io", _) => binding(kind, object, &mut found),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::problems(object, &mut found),
        ("apiregistration.k8s.io", "APIService") => {
            let wanted = format!("{}.{}", text(object, &["spec", "version"]), text(object, &["spec", "group"]));
            if name(object) != wanted {
                found.push(format!(
                    "metadata.name: Invalid value: {:?}: must be `spec.version+\".\"+spec.group`: {wanted:?}",
                    name(object)
                ));
            }
        }
        ("admissionregistration.k8s.io", _) => {
            for (n, webhook) in list(object, &["webhooks"]).iter().enumerate() {
                admission_webhook(webhook, &format!("webhooks[{n}]"), &mut found);
            }
        }
        ("policy", "PodDisruptionBudget")
            if at(object, &["spec", "minAvailable"]) != &Value::Null
                && at(object, &["spec", "maxUnavailable"]) != &Value::Null =>
        {
            found.push(format!(
                "spec: Invalid value: {}: minAvailable and maxUnavailable cannot be both set",
                at(object, &["spec"])
            ));
        }
        ("scheduling.k8s.io", "PriorityClass")
            if name(object).starts_with("system-")
                && !matches!(name(object), "system-node-critical" | "system-cluster-critical") =>
        {
            let words = "priority class names with 'system-' prefix are reserved for system use only";
            let why = format!("{words}. error: {} is not a known system priority class", name(object));
            found.push(format!("metadata.name: Forbidden: {why}"));
        }
        _ => {}
    }
    found
}

/// Returns changes of immutable fields.
pub(super) fn update_problems(kind: &ResourceKind, object: &Value, stored: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut immutable = |path: &[&str], words: &str| {
        let (new, old) = (at(object, path), at(stored, path));
        if new != old && !old.is_null() {
            found.push(format!("{}: Invalid value: {new}: {words}", path.join(".")));
        }
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", _) => immutable(&["spec", "selector"], "field is immutable"),
        ("batch", "Job") => {
            immutable(&["spec", "selector"], "field is immutable");
            immutable(&["spec", "template"], "field is immutable");
        }
        ("", "Secret") => immutable(&["type"], "field is immutable"),
        ("", "Service") if at(object, &["spec", "type"]) == at(stored, &["spec", "type"]) => {
            let addresses = |service| list(service, &["spec", "clusterIPs"]).first();
            if addresses(object) != addresses(stored) && addresses(stored).is_some() {
                let now = at(object, &["spec", "clusterIPs"]);
                found.push(format!("spec.clusterIPs[0]: Invalid value: {now}: may not change once set"));
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            immutable(&["roleRef"], "cannot change roleRef");
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            for (field, words) in [
                ("value", "may not be changed in an update."),
                ("preemptionPolicy", "may not be changed in an update."),
            ] {
                if at(object, &[field]) != at(stored, &[field]) {
                    found.push(format!("{field}: Forbidden: {words}"));
                }
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::update_problems(object, stored, &mut found),
        _ => {}
    }
    found
}

fn required(object: &Value, field: &str, path: &str, found: &mut Vec<String>) {
    let value = &object[field];
    let empty = match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if empty {
        found.push(format!("{path}.{field}: Required value"));
    }
}

fn workload(object: &Value, found: &mut Vec<String>) {
    let spec = at(object, &["spec"]);
    if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
        found.push(format!("spec.replicas: Invalid value: {}: must be greater than or equal to 0", spec["replicas"]));
    }
    let labels = at(spec, &["template", "metadata", "labels"]);
    let selector = &spec["selector"];
    if selector.is_null() {
        found.push("spec.selector: Required value".into());
    }
    if selector.as_object().is_some_and(serde_json::Map::is_empty) {
        found.push(format!("spec.selector: Invalid value: {selector}: empty selector is invalid for deployment"));
    } else if !super::super::selector::matches(selector, labels) {
        found.push(format!(
            "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`",
            if labels.is_null() { "{}".to_owned() } else { labels.to_string() }
        ));
    }
    template(&spec["template"], "spec.template", found);
}

fn template(template: &Value, path: &str, found: &mut Vec<String>) {
    pod_spec(&template["spec"], &format!("{path}.spec"), found);
}

fn pod_spec(spec: &Value, path: &str, found: &mut Vec<String>) {
    required(spec, "containers", path, found);
    for containers in ["initContainers", "containers"] {
        let all = list(spec, &[containers]);
        for (n, container) in all.iter().enumerate() {
            let path = format!("{path}.{containers}[{n}]");
            required(container, "name", &path, found);
            required(container, "image", &path, found);
            for (m, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
                if !list(spec, &["volumes"]).iter().any(|volume| volume["name"] == mount["name"]) {
                    found.push(format!("{path}.volumeMounts[{m}].name: Not found: {}", mount["name"]));
                }
            }
            let own = text(container, &["name"]);
            if !own.is_empty() && all[..n].iter().any(|other| other["name"] == container["name"]) {
                found.push(format!("{path}.name: Duplicate value: {own:?}"));
            }
        }
    }
}

fn service(object: &Value, found: &mut Vec<String>) {
    let spec = at(object, &["spec"]);
    let ports = list(spec, &["ports"]);
    if ports.is_empty() && spec["clusterIP"] != "None" && spec["type"] != "ExternalName" {
        found.push("spec.ports: Required value".into());
    }
    for (n, port) in ports.iter().enumerate() {
        if ports.len() > 1 {
            required(port, "name", &format!("spec.ports[{n}]"), found);
        }
        for field in ["port", "targetPort"] {
            let number = &port[field];
            if !number.is_string() && !number.as_i64().is_some_and(|number| (1..=65535).contains(&number)) {
                let number = number.as_i64().unwrap_or_default();
                let path = format!("spec.ports[{n}].{field}");
                found.push(format!("{path}: Invalid value: {number}: must be between 1 and 65535, inclusive"));
            }
        }
    }
}

fn policy_rule(rule: &Value, path: &str, namespaced: bool, found: &mut Vec<String>) {
    if list(rule, &["verbs"]).is_empty() {
        found.push(format!("{path}.verbs: Required value: verbs must contain at least one value"));
    }
    let urls = list(rule, &["nonResourceURLs"]);
    let (groups, resources) = (list(rule, &["apiGroups"]), list(rule, &["resources"]));
    if !urls.is_empty() {
        if namespaced {
            found.push(format!(
                "{path}.nonResourceURLs: Invalid value: {}: namespaced rules cannot apply to non-resource URLs",
                rule["nonResourceURLs"]
            ));
        }
        if !groups.is_empty() || !resources.is_empty() || !list(rule, &["resourceNames"]).is_empty() {
            found.push(format!(
                "{path}.nonResourceURLs: Invalid value: {}: rules cannot apply to both regular resources and non-resource URLs",
                rule["nonResourceURLs"]
            ));
        }
        return;
    }
    if groups.is_empty() {
        found.push(format!("{path}.apiGroups: Required value: resource rules must supply at least one api group"));
    }
    if resources.is_empty() {
        found.push(format!("{path}.resources: Required value: resource rules must supply at least one resource"));
    }
}

fn binding(kind: &ResourceKind, object: &Value, found: &mut Vec<String>) {
    let reference = at(object, &["roleRef"]);
    let allowed: &[&str] = if kind.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let referred = text(reference, &["kind"]);
    if !allowed.contains(&referred) {
        let allowed: Vec<String> = allowed.iter().map(|kind| format!("{kind:?}")).collect();
        found.push(format!("roleRef.kind: Unsupported value: {referred:?}: supported values: {}", allowed.join(", ")));
    }
    required(reference, "name", "roleRef", found);
    for (n, subject) in list(object, &["subjects"]).iter().enumerate() {
        required(subject, "name", &format!("subjects[{n}]"), found);
        if !kind.namespaced && subject["kind"] == "ServiceAccount" {
            required(subject, "namespace", &format!("subjects[{n}]"), found);
        }
    }
}

fn admission_webhook(webhook: &Value, path: &str, found: &mut Vec<String>) {
    let own = text(webhook, &["name"]);
    if own.split('.').filter(|part| !part.is_empty()).count() < 3 {
        found.push(format!(
            "{path}.name: Invalid value: {own:?}: should be a domain with at least three segments separated by dots"
        ));
    }
    match text(webhook, &["sideEffects"]) {
        "None" | "NoneOnDryRun" => {}
        "" => found.push(format!("{path}.sideEffects: Required value: must specify one of None, NoneOnDryRun")),
        other => found.push(format!(
            "{path}.sideEffects: Unsupported value: {other:?}: supported values: \"None\", \"NoneOnDryRun\""
        )),
    }
    if list(webhook, &["admissionReviewVersions"]).is_empty() {
        found.push(format!("{path}.admissionReviewVersions: Required value: must specify one of v1, v1beta1"));
    }
    let timeout = webhook["timeoutSeconds"].as_i64().unwrap_or_default();
    if !(1..=30).contains(&timeout) {
        found.push(format!(
            "{path}.timeoutSeconds: Invalid value: {timeout}: the timeout value must be between 1 and 30 seconds"
        ));
    }
}
