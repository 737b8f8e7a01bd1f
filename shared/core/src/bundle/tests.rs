//! Small bundles written by hand, and opm's recorded output for real ones.

use serde_json::json;

use super::*;
use crate::api::hash::sha256_hex;
use crate::testing::{Checked, data, entries, files};

const CSV: &str = "
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: rose.v1.0.0
  annotations: {olm.skipRange: <1.0.0}
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned: [{name: roses.garden.example.com, kind: Rose, version: v1}]
    required: [{name: pots.garden.example.com, kind: Pot, version: v1}]
";
const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: roses.garden.example.com}
spec: {group: garden.example.com, names: {kind: Rose}, versions: [{name: v1}, {name: v2}]}
";
const ANNOTATIONS: &str = "annotations: {operators.operatorframework.io.bundle.package.v1: rose}\n";

fn file(path: &str, text: &str) -> File {
    File::new(format!("rose/{path}"), text.as_bytes())
}

fn rose() -> Vec<File> {
    vec![
        file("manifests/rose.csv.yaml", CSV),
        file("manifests/crd.yaml", CRD),
        file("metadata/annotations.yaml", ANNOTATIONS),
        file(
            "metadata/more.yaml",
            "dependencies: [{type: olm.package, value: {packageName: clay, version: '>=1.0.0'}}]",
        ),
        file("tests/scorecard/config.yaml", "kind: Configuration"),
    ]
}

#[test]
fn provided_and_required_apis_of_a_bundle() {
    let rendered = Bundle::read("rose", &rose()).unwrap().render().unwrap();
    let pot = json!({"group": "garden.example.com", "kind": "Pot", "version": "v1"});
    let rose = |version: &str| json!({"group": "garden.example.com", "kind": "Rose", "version": version});
    assert_eq!(
        rendered.properties,
        [
            Property::new("olm.gvk", rose("v1")),
            Property::new("olm.gvk", rose("v2")),
            Property::new("olm.gvk.required", pot.clone()),
            Property::new("olm.package", json!({"packageName": "rose", "version": "1.0.0"})),
            Property::new("olm.package.required", json!({"packageName": "clay", "versionRange": ">=1.0.0"})),
        ]
    );
    assert_eq!(
        rendered.dependencies,
        [
            Property::new("olm.gvk", pot),
            Property::new("olm.package", json!({"packageName": "clay", "version": ">=1.0.0"})),
        ]
    );
    assert_eq!((rendered.version.as_str(), rendered.skip_range.as_str()), ("1.0.0", "<1.0.0"));
    assert_eq!(rendered.content.objects.len(), 2);
    assert!(rendered.content.csv_json.contains(r#""olm.skipRange":"\u003c1.0.0""#));
}

#[test]
fn missing_parts_are_reported_with_a_hint() {
    for (left_out, code) in
        [("rose.csv.yaml", "no-csv"), ("crd.yaml", "missing-crd"), ("annotations.yaml", "no-annotations")]
    {
        let files: Vec<File> = rose().into_iter().filter(|f| !f.path.ends_with(left_out)).collect();
        let finding = Bundle::read("rose", &files).unwrap_err();
        assert_eq!((finding.code, finding.file.as_str()), (code, "rose"));
        assert!(!finding.hint.is_empty(), "{finding}");
    }
    let mut files = rose();
    files[0] = file("manifests/rose.csv.yaml", "kind: ClusterServiceVersion\nmetadata: [\n");
    let finding = Bundle::read("rose", &files).unwrap_err();
    assert!(finding.to_string().starts_with("rose/manifests/rose.csv.yaml:"), "{finding}");
}

/// Canonical JSON of the recordings: keys sorted, integral numbers without a fraction.
fn digest(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    sha256_hex(value.to_string())
}

/// Returns what is wrong with our rendering of a bundle; `None` when it equals opm's.
fn fault(data: &std::path::Path, path: &str, answer: &serde_json::Value) -> Option<String> {
    let rendered = Bundle::read(path, &files(data, path)).and_then(|b| b.render());
    let (blob, rendered) = match (answer["blobs"].get(0), rendered) {
        (Some(blob), Ok(rendered)) => (blob, rendered),
        (None, Err(_)) => return None,
        (None, Ok(_)) => return Some(format!("opm refuses it: {}", answer["error"])),
        (Some(_), Err(finding)) => return Some(finding.to_string()),
    };
    let (objects, properties): (Vec<_>, Vec<_>) =
        blob["properties"].as_array().unwrap().iter().partition(|p| p["type"] == "olm.bundle.object");
    let ours: Vec<_> = rendered.properties.iter().map(|p| serde_json::to_value(p).unwrap()).collect();
    let digests: Vec<_> = rendered.content.objects.iter().map(|o| digest(o)).collect();
    let expected: Vec<_> = objects.iter().map(|o| o["value"]["sha256"].as_str().unwrap()).collect();
    // opm's order of one image under several names is random.
    let mut images: Vec<_> = rendered.related_images.iter().map(|(n, i)| json!({"name": n, "image": i})).collect();
    let mut opms_images = blob["relatedImages"].as_array().cloned().unwrap_or_default();
    images.sort_by_key(ToString::to_string);
    opms_images.sort_by_key(ToString::to_string);
    let names = [&rendered.name, &rendered.package];
    if names != [&blob["name"], &blob["package"]].map(|v| v.as_str().unwrap()) {
        return Some(format!("{names:?}"));
    }
    if ours.iter().collect::<Vec<_>>() != properties {
        return Some(format!("properties {ours:?}\ninstead of {properties:?}"));
    }
    if digests != expected {
        return Some(format!("objects {digests:?} instead of {expected:?}"));
    }
    (images != opms_images).then(|| format!("images {images:?} instead of {opms_images:?}"))
}

#[test]
fn real_bundles_render_as_recorded() {
    let (Some(data), Some(answers)) = (data(), entries("recorded/render")) else { return };
    let mut checked = Checked::default();
    for file in answers {
        let answer: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let path = answer["bundle"].as_str().unwrap();
        checked.add(path, fault(&data, path, &answer));
    }
    checked.end();
}

#[test]
fn every_error_of_plain_manifests_is_returned() {
    let annotations = "annotations: {operators.operatorframework.io.bundle.mediatype.v1: k8s+v1}\n";
    let manifests = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\n";
    let files = [
        File::new("rose/manifests/agent.yaml", manifests.as_bytes()),
        File::new("rose/metadata/annotations.yaml", annotations.as_bytes()),
        File::new("rose/metadata/olm.yaml", b"name: rose.v1.0.0\nversion: 1.0.0\n".as_slice()),
    ];
    let errors = Bundle::read_whole("rose", &files).unwrap_err();
    let codes: Vec<&str> = errors.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["no-deployment", "unsupported-kind", "required-field", "required-field"]);
    let first = Bundle::read("rose", &files).unwrap_err();
    assert_eq!(first.message, format!("{} (and 3 more errors)", errors[0].message));
}
