//! Blobs as opm writes them: written by hand, and recorded from real bundles served as images.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::*;
use super::{CATALOG, load_text};
use crate::api::hash::sha256_hex;
use crate::bundle::Bundle;
use crate::testing::{Checked, data, files, recorded_lines};

pub(super) fn rendered(text: &str) -> Vec<Meta> {
    let catalog = index_files(&[File::new("catalog.yaml", text.as_bytes())]);
    catalog.blobs(MigrationLevel::None).collect::<Result<_, _>>().unwrap()
}

#[test]
fn blobs_come_in_opms_order_with_opms_fields() {
    let mixed = "{\"schema\": \"a.last\"}\n{\"Schema\": \"olm.bundle\", \"package\": \"p\", \"name\": \"b\", \"x\": 1, \"image\": \"\"}\n\
                 {\"schema\": \"olm.channel\", \"name\": \"c\", \"package\": \"p\", \"entries\": [{\"skips\": [], \"name\": \"b\"}]}\n\
                 {\"schema\": \"olm.deprecations\", \"package\": \"p\", \"entries\": [{\"message\": \"m\"}]}\n\
                 {\"schema\": \"olm.package\", \"name\": \"p\", \"icon\": {\"mediatype\": \"m\"}}\n";
    let lines: Vec<String> = rendered(mixed).iter().map(|m| serde_json::to_string(m).unwrap()).collect();
    assert_eq!(
        lines,
        [
            r#"{"schema":"olm.package","name":"p","defaultChannel":"","icon":{"base64data":"","mediatype":"m"}}"#,
            r#"{"schema":"olm.channel","name":"c","package":"p","entries":[{"name":"b"}]}"#,
            r#"{"schema":"olm.bundle","name":"b","package":"p","image":""}"#,
            r#"{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":""},"message":"m"}]}"#,
            r#"{"schema":"a.last"}"#,
        ]
    );
}

#[test]
fn what_is_rendered_loads_as_the_same_catalog() {
    let text: String = rendered(CATALOG).iter().map(|m| serde_json::to_string(m).unwrap() + "\n").collect();
    assert_eq!(load_text(&text).snapshot, load_text(CATALOG).snapshot);
}

fn digest(value: &Value) -> String {
    sha256_hex(value.to_string())
}

/// A blob with its large values digested as in the recordings.
pub(in super::super) fn digested(mut blob: Value) -> Value {
    for property in blob.get_mut("properties").and_then(Value::as_array_mut).into_iter().flatten() {
        match property["type"].as_str() {
            Some("olm.bundle.object") => {
                let bytes = STANDARD.decode(property["value"]["data"].as_str().unwrap()).unwrap();
                let object: Value = serde_json::from_slice(&bytes).unwrap();
                let name = &object["metadata"]["name"];
                property["value"] = json!({"sha256": digest(&object), "kind": object["kind"], "name": name});
            }
            Some("olm.csv.metadata") => {
                let keys: BTreeMap<&String, Value> = property["value"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(k, v)| (k, json!({"sha256": digest(v), "length": v.to_string().len()})))
                    .collect();
                property["value"] = json!({"sha256": digest(&property["value"]), "keys": keys});
            }
            _ => {}
        }
    }
    blob
}

/// opm's order of one image under several names is random.
fn sort_images(mut blob: Value) -> Value {
    if let Some(images) = blob.get_mut("relatedImages").and_then(Value::as_array_mut) {
        images.sort_by_key(ToString::to_string);
    }
    blob
}

#[test]
fn real_bundles_in_images_render_as_recorded() {
    let Some(data) = data() else { return };
    let Some(cases) = recorded_lines::<Value>("render-image/images.jsonl") else { return };
    let mut checked = Checked::default();
    for case in cases {
        let path = case["bundle"].as_str().unwrap();
        let rendered = Bundle::read(path, &files(&data, path)).and_then(|b| b.render());
        if case["plain"]["exit"] != 0 {
            checked.same(path, &rendered.is_err(), &true);
            continue;
        }
        let mut blob = match rendered {
            Ok(rendered) => rendered.blob(case["image"].as_str().unwrap()),
            Err(finding) => {
                checked.add(path, Some(finding.to_string()));
                continue;
            }
        };
        for (run, level) in [("plain", "none"), ("migrate", "all")] {
            level.parse::<MigrationLevel>().unwrap().migrate(&mut blob);
            let ours = sort_images(digested(blob.clone()));
            let opms = sort_images(case[run]["blobs"][0].clone());
            checked.same(format!("{path} {run}"), &ours, &opms);
        }
    }
    checked.end();
}

/// opm decodes and encodes a package's icon, which removes a trailing line break such as that of `base64 | cat`.
#[test]
fn an_icon_is_decoded_and_encoded_again() {
    let meta = |data: &str| {
        let icon = json!({"base64data": data, "mediatype": "image/png"});
        Meta::new(json!({"schema": "olm.package", "name": "rose", "defaultChannel": "c", "icon": icon})).0
    };
    assert_eq!(meta("cm9z\nZQ==\n")["icon"]["base64data"], "cm9zZQ==");
    assert_eq!(meta("no base64")["icon"]["base64data"], "no base64");
    let icon = json!({"base64data": "a\n", "mediatype": "x"});
    assert_eq!(Meta::new(json!({"schema": "custom", "icon": icon})).0["icon"], icon, "other schemas are not changed");
}
