//! Steps whose manifests are kept elsewhere: OLM keeps those of an unpacked bundle in a ConfigMap (reference/catalog-operator.md
//! §4.4). What is there can be had again from the bundle's image, which the InstallPlan names as well.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::BundleImage;
use super::steps::BundleSource;
use crate::api::object;
use crate::go;

/// A bundle that an InstallPlan looks up in its image.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup<'p> {
    /// Where the bundle is.
    pub image: BundleImage,
    /// The ClusterServiceVersion it replaces; empty when none.
    pub replaces: &'p str,
    /// The list of its properties.
    pub properties: Value,
}

/// Does the text refer to the manifest instead of being it?
pub fn is_reference(manifest: &str) -> bool {
    parse(manifest).is_some()
}

fn parse(manifest: &str) -> Option<Value> {
    // Most manifests are no references, and many are long.
    if !manifest.contains("\"catalogSourceName\"") {
        return None;
    }
    let value: Value = serde_json::from_str(manifest).ok()?;
    let is_one = object::text(&value, &["kind"]) == "ConfigMap"
        && value.get("metadata").is_none()
        && !object::text(&value, &["catalogSourceName"]).is_empty();
    is_one.then_some(value)
}

/// The list of properties of a bundle that a reference to one of its manifests repeats.
pub fn properties(manifest: &str) -> Option<Value> {
    list(object::text(&parse(manifest)?, &["properties"]))
}

/// What the bundle of a manifest that is referred to replaces.
pub fn replaces(manifest: &str) -> Option<String> {
    Some(object::text(&parse(manifest)?, &["replaces"]).to_owned())
}

/// Lists from `{"properties":[…]}`.
fn list(text: &str) -> Option<Value> {
    let properties: Value = serde_json::from_str(text).ok()?;
    Some(object::at(&properties, &["properties"]).clone()).filter(Value::is_array)
}

/// The text that refers to any manifest of the bundle in an image, as OLM writes it.
pub fn to_manifest(image: &str, source: &BundleSource<'_>, properties: &str) -> String {
    let name: String = Sha256::digest(image).iter().map(|byte| format!("{byte:02x}")).collect();
    go::json(&json!({
        "kind": "ConfigMap",
        // The name of an object may have so many characters.
        "name": &name[..63],
        "namespace": source.catalog_namespace,
        "catalogSourceName": source.catalog,
        "catalogSourceNamespace": source.catalog_namespace,
        "replaces": source.replaces,
        "properties": properties,
    }))
}

/// The bundles whose manifests an InstallPlan only refers to and has not all made, by their ClusterServiceVersions; `None` where it
/// does not say from which image.
pub fn unmade(plan: &Value) -> BTreeMap<&str, Option<Lookup<'_>>> {
    let mut unmade = BTreeMap::new();
    for step in object::list(plan, &["status", "plan"]) {
        let csv = object::text(step, &["resolving"]);
        let is_made = matches!(object::text(step, &["status"]), "Created" | "Present" | "NotCreated");
        if !is_made && !unmade.contains_key(csv) && is_reference(object::text(step, &["resource", "manifest"])) {
            unmade.insert(csv, lookup(plan, csv));
        }
    }
    unmade
}

fn lookup<'p>(plan: &'p Value, csv: &str) -> Option<Lookup<'p>> {
    let lookups = object::list(plan, &["status", "bundleLookups"]);
    let lookup = lookups.iter().find(|l| object::text(l, &["identifier"]) == csv)?;
    let text = |path: &[&str]| object::text(lookup, path);
    Some(Lookup {
        image: BundleImage {
            namespace: object::namespace(plan).to_owned(),
            catalog_namespace: text(&["catalogSourceRef", "namespace"]).to_owned(),
            catalog: text(&["catalogSourceRef", "name"]).to_owned(),
            image: text(&["path"]).to_owned(),
        },
        replaces: text(&["replaces"]),
        properties: list(text(&["properties"])).unwrap_or_else(|| json!([])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> BundleSource<'static> {
        BundleSource { catalog: "main", catalog_namespace: "olm", csv: "rose.v1.0.0", replaces: "" }
    }

    #[test]
    fn a_reference_is_told_from_a_manifest() {
        let properties_text = r#"{"properties":[{"type":"a","value":"<"}]}"#;
        let reference = to_manifest("registry.example.com/rose-bundle:1.0.0", &source(), properties_text);
        // The name is that of a recording.
        assert!(
            reference.contains("\"19b3f2f19ccb063d824dc9228533ac3eac59042c47bf75ed5d9a1a74f7d19e5\""),
            "{reference}"
        );
        assert!(is_reference(&reference));
        assert_eq!(properties(&reference), Some(json!([{ "type": "a", "value": "<" }])));
        let config_map = json!({ "kind": "ConfigMap", "metadata": { "name": "a" }, "catalogSourceName": "main" });
        for manifest in [config_map.to_string(), "{".to_owned(), "\"catalogSourceName\"".to_owned()] {
            assert!(!is_reference(&manifest), "{manifest}");
        }
    }

    #[test]
    fn what_is_made_needs_no_image() {
        let reference = to_manifest("i", &source(), "{}");
        let step = |csv: &str, status: &str, manifest: &str| json!({ "resolving": csv, "status": status, "resource": { "manifest": manifest } });
        let plan = json!({ "metadata": { "namespace": "garden" }, "status": {
            "plan": [
                step("made", "Created", &reference),
                step("half", "Present", &reference),
                step("half", "Unknown", &reference),
                step("inline", "Unknown", "{}"),
                step("lost", "Unknown", &reference),
            ],
            "bundleLookups": [
                { "identifier": "half", "path": "i", "replaces": "r", "catalogSourceRef": { "name": "main", "namespace": "olm" } },
            ],
        } });
        let unmade = unmade(&plan);
        assert_eq!(unmade.keys().copied().collect::<Vec<_>>(), ["half", "lost"]);
        assert_eq!(unmade["lost"], None);
        let half = unmade["half"].as_ref().unwrap();
        assert_eq!((half.image.image.as_str(), half.image.catalog.as_str(), half.replaces), ("i", "main", "r"));
    }
}
