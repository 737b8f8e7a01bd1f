//! Fields of Services, webhook configurations and APIServices that are not carried: OLM creates these objects from descriptions that do
//! not have them (olm-behaviour/csv.md#serving-objects).

use serde_json::Value;

use super::Work;
use super::workloads::BOOKKEEPING;
use crate::api::object::{self, at};
use crate::finding::Finding;

/// The fields of a Service that OLM's has as well, or that mean nothing in another Service.
const CARRIED: [&str; 5] = ["selector", "ports", "clusterIP", "clusterIPs", "ipFamilies"];
/// The other fields of a Service, with the value that they have by default.
const DEFAULTS: [(&str, &str); 4] = [
    ("type", "ClusterIP"),
    ("sessionAffinity", "None"),
    ("internalTrafficPolicy", "Cluster"),
    ("ipFamilyPolicy", "SingleStack"),
];
/// What the annotations begin with by which cert-manager writes `caBundle`, as OLM does.
const CERT_MANAGER: &str = "cert-manager.io/";

/// Reports the fields of a Service in whose place OLM creates its own.
pub(super) fn service(work: &mut Work<'_>, number: usize) {
    let service = &work.manifests[number].object;
    let mut lost: Vec<[&str; 2]> = Vec::new();
    for part in ["labels", "annotations"] {
        if object::entries(service, &["metadata", part]).any(|(key, _)| !BOOKKEEPING.contains(&key)) {
            lost.push(["metadata", part]);
        }
    }
    for (field, value) in at(service, &["spec"]).as_object().into_iter().flatten() {
        let is_default = || DEFAULTS.iter().any(|(known, default)| known == field && value == default);
        let is_headless = field == "clusterIP" && value == "None";
        if is_headless || !CARRIED.contains(&field.as_str()) && !is_default() && !is_empty(value) {
            lost.push(["spec", field]);
        }
    }
    let Some(first) = lost.first().copied() else { return };
    let names: Vec<String> = lost.iter().map(|path| path.join(".")).collect();
    let message = format!("OLM creates another Service in its place, without {}", names.join(", "));
    let hint = "if they are needed, add a second Service with them, whose ports no webhook or APIService uses";
    work.report(number, &first, Finding::new("service-field", message).warning().hint(hint));
}

/// Reports labels and annotations of an object that OLM creates with labels of its own.
pub(super) fn labels_and_annotations(work: &mut Work<'_>, number: usize) {
    for (part, code, one) in
        [("labels", "label-not-carried", "label"), ("annotations", "annotation-not-carried", "annotation")]
    {
        for (key, _) in object::entries(&work.manifests[number].object, &["metadata", part]) {
            if BOOKKEEPING.contains(&key) || key.starts_with(CERT_MANAGER) {
                continue;
            }
            let finding = Finding::new(code, format!("OLM does not set its {one} {key}")).warning();
            let hint = format!("remove it, and do not select the object by this {one}");
            work.report(number, &["metadata", part, key], finding.hint(hint));
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
