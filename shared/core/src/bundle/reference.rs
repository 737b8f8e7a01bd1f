//! Steps whose manifests are stored elsewhere: OLM stores those of an unpacked bundle in a ConfigMap
//! (olm-behaviour/subscription.md#unpacked-bundles). They can also be read from the bundle's image, which the InstallPlan
//! contains.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::steps::BundleSource;
use super::{Bundle, BundleContent, BundleImage, File, decode_data, is_csv};
use crate::api::hash::sha256_hex;
use crate::api::install_plan::{InstallPlan, Step};
use crate::api::object;
use crate::{go_format, yaml};

/// Maximum size of a decompressed file of a ConfigMap, which itself is limited to 1 MiB.
const LARGEST_FILE: u64 = 64 << 20;

/// The file whose presence shows that a bundle is of type `k8s+v1`, and the files that are not manifests.
const METADATA: &str = "olm.yaml";
const METADATA_FILES: [&str; 3] = [METADATA, "dependencies.yaml", "properties.yaml"];

/// A bundle that an InstallPlan looks up in its image.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup<'p> {
    /// Location of the bundle.
    pub image: BundleImage,
    /// The ClusterServiceVersion that it replaces; empty when none.
    pub replaces: &'p str,
    /// The list of its properties.
    pub properties: Value,
}

/// Returns whether the text is a reference to a manifest instead of a manifest.
pub fn is_reference(manifest: &str) -> bool {
    parse(manifest).is_some()
}

fn parse(manifest: &str) -> Option<Value> {
    // Most manifests are not references, and many are long.
    if !manifest.contains("\"catalogSourceName\"") {
        return None;
    }
    let value: Value = serde_json::from_str(manifest).ok()?;
    let is_one = object::kind(&value) == "ConfigMap"
        && value.get("metadata").is_none()
        && !object::text(&value, &["catalogSourceName"]).is_empty();
    is_one.then_some(value)
}

/// Returns the bundle's list of properties, which a reference to one of its manifests repeats.
pub fn properties(manifest: &str) -> Option<Value> {
    list(object::text(&parse(manifest)?, &["properties"]))
}

/// Returns what the bundle of a referenced manifest replaces.
pub fn replaces(manifest: &str) -> Option<String> {
    Some(object::text(&parse(manifest)?, &["replaces"]).to_owned())
}

/// Returns the list in `{"properties":[…]}`.
fn list(text: &str) -> Option<Value> {
    let properties: Value = serde_json::from_str(text).ok()?;
    Some(object::at(&properties, &["properties"]).clone()).filter(Value::is_array)
}

/// Returns the name of the ConfigMap, in the namespace of its catalog, in which OLM stores the content of a bundle's image
/// (olm-behaviour/subscription.md#unpack-jobs).
pub fn config_map_name(image: &str) -> String {
    let digest = sha256_hex(image);
    // Maximum length of an object's name.
    digest[..63].to_owned()
}

/// Returns namespace and name of the ConfigMap in a reference.
pub fn config_map(manifest: &str) -> Option<(String, String)> {
    let reference = parse(manifest)?;
    let text = |key: &str| object::text(&reference, &[key]).to_owned();
    Some((text("namespace"), text("name")))
}

/// Returns the content of such a ConfigMap: its files are compressed, and base64-encoded once more than JSON requires
/// (olm-behaviour/subscription.md#unpacked-bundles).
///
/// # Errors
/// States what cannot be read.
pub fn content(config_map: &Value) -> Result<BundleContent, String> {
    let mut files: Vec<(&str, &str)> = object::entries(config_map, &["binaryData"]).collect();
    files.sort_unstable();
    let of = match object::name(config_map) {
        "" => String::new(),
        config_map => format!(" of ConfigMap {config_map}"),
    };
    let mut contents = Vec::new();
    for (name, data) in files {
        let read = |what: String| format!("{name}{of}: {what}");
        let bytes = decode_data(data).map_err(read)?;
        let packed = decode_data(&String::from_utf8_lossy(&bytes)).map_err(read)?;
        let mut text = Vec::new();
        let mut file = GzDecoder::new(&packed[..]).take(LARGEST_FILE);
        file.read_to_end(&mut text).map_err(|e| read(e.to_string()))?;
        contents.push((name, text));
    }
    // Files that are not objects, such as properties, are ignored here.
    let objects = contents.iter().filter_map(|(_, text)| yaml::first(text).ok());
    let objects: Vec<Value> = objects.filter(|object| !object::kind(object).is_empty()).collect();
    match objects.iter().find(|object| is_csv(object)) {
        Some(csv) => Ok(BundleContent::in_order(&objects, csv)),
        None if contents.iter().any(|(name, _)| *name == METADATA) => plain(contents, &of),
        None => Err("it has no ClusterServiceVersion".to_owned()),
    }
}

/// Returns the content of the files of a bundle of type `k8s+v1`.
fn plain(contents: Vec<(&str, Vec<u8>)>, of: &str) -> Result<BundleContent, String> {
    let file = |(name, text): (&str, Vec<u8>)| {
        let folder = if METADATA_FILES.contains(&name) { "metadata" } else { "manifests" };
        File::new(format!("{folder}/{name}"), text)
    };
    let files: Vec<File> = contents.into_iter().map(file).collect();
    Bundle::unpack(&files).map_err(|finding| format!("{}:{}{of}: {}", finding.file, finding.line, finding.message))
}

/// Returns a reference to any manifest of the bundle in an image, as OLM writes it.
pub fn to_manifest(image: &str, source: &BundleSource<'_>, properties: &str) -> String {
    go_format::json(&json!({
        "kind": "ConfigMap",
        "name": config_map_name(image),
        "namespace": source.catalog_namespace,
        "catalogSourceName": source.catalog,
        "catalogSourceNamespace": source.catalog_namespace,
        "replaces": source.replaces,
        "properties": properties,
    }))
}

/// Returns the bundles whose manifests an InstallPlan only references and has not all created, by ClusterServiceVersion;
/// `None` where the plan does not contain the image.
pub fn unmade(plan: &Value) -> BTreeMap<&str, Option<Lookup<'_>>> {
    let mut unmade = BTreeMap::new();
    for step in InstallPlan::new(plan).steps_json() {
        let csv = Step::new(step).resolving();
        let is_made = matches!(object::text(step, &["status"]), "Created" | "Present" | "NotCreated");
        if !is_made && !unmade.contains_key(csv) && is_reference(Step::new(step).manifest()) {
            unmade.insert(csv, lookup(plan, csv));
        }
    }
    unmade
}

fn lookup<'p>(plan: &'p Value, csv: &str) -> Option<Lookup<'p>> {
    let lookups = InstallPlan::new(plan).bundle_lookups();
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
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn source() -> BundleSource<'static> {
        BundleSource { catalog: "main", catalog_namespace: "olm", csv: "rose.v1.0.0", replaces: "" }
    }

    #[test]
    fn a_reference_is_distinguished_from_a_manifest() {
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

    fn packed(text: &str) -> String {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        STANDARD.encode(STANDARD.encode(file.finish().unwrap()))
    }

    #[test]
    fn a_bundle_of_plain_manifests_that_a_job_unpacked_is_synthesized() {
        let deployment = "apiVersion: apps/v1
kind: Deployment
metadata: {name: rose}
spec:
  selector: {matchLabels: {app: rose}}
  template:
    metadata: {labels: {app: rose}}
    spec: {containers: [{name: rose, image: example.com/rose}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
";
        let olm_yaml = "name: rose.v1.0.0\nversion: 1.0.0\nminKubeVersion: 1.28.0\ninstallModes: [{type: AllNamespaces, supported: true}]\n";
        let config_map = |olm_yaml: &str| {
            json!({ "metadata": { "name": "a" }, "binaryData": {
                "rose.yaml": packed(deployment), "olm.yaml": packed(olm_yaml), "properties.yaml": packed("properties: []\n"),
            } })
        };
        let unpacked = content(&config_map(olm_yaml)).unwrap();
        assert!(unpacked.is_plain && unpacked.csv_json.contains("rose.v1.0.0"));
        assert_eq!(unpacked.objects.len(), 2, "the ClusterServiceVersion and the ConfigMap");
        let refused = content(&config_map("name: rose.v1.0.0\n")).unwrap_err();
        assert!(refused.starts_with("metadata/olm.yaml:1 of ConfigMap a: field version is required"), "{refused}");
    }

    #[test]
    fn bundles_unpacked_by_olm_are_read() {
        let csv =
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: rose.v1.0.0}\n";
        let config_map = json!({ "binaryData": {
            "rose.csv.yaml": packed(csv),
            "crd.yaml": packed("kind: CustomResourceDefinition\nmetadata: {name: roses}\n"),
            "properties.yaml": packed("properties: []\n"),
        } });
        let content = content(&config_map).unwrap();
        assert_eq!(content.objects.len(), 2);
        assert!(content.objects[0].contains("\"roses\"") && content.csv_json.contains("rose.v1.0.0"));
        assert!(super::content(&json!({ "binaryData": { "a": "!" } })).unwrap_err().starts_with("a: not base64"));
        assert!(super::content(&json!({})).is_err());
    }

    #[test]
    fn created_objects_need_no_image() {
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
