//! Templates written by hand, and opm's recorded output for templates of real bundles.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::bundle::Bundle;
use crate::catalog::tests::render::digested;
use crate::testing::{Checked, data, files, recorded};

fn none(image: &str) -> Result<Vec<Value>, String> {
    Err(format!("no image {image}"))
}

#[test]
fn a_substitute_takes_over_the_edges_of_its_base() {
    let bundle = |version: &str| {
        json!({"schema": "olm.bundle", "package": "rose", "name": format!("rose.v{version}"), "image": "i",
            "properties": [{"type": "olm.package", "value": {"packageName": "rose", "version": version}}]})
    };
    let template = json!({
        "schema": "olm.template.substitutes",
        "entries": [
            {"schema": "olm.package", "name": "rose", "defaultChannel": "c"},
            {"schema": "olm.channel", "package": "rose", "name": "c", "entries": [
                {"name": "rose.v1.0.0"},
                {"name": "rose.v2.0.0", "replaces": "rose.v1.0.0", "skipRange": "<2.0.0"},
                {"name": "rose.v3.0.0", "replaces": "rose.v2.0.0"}]},
            bundle("1.0.0"), bundle("2.0.0"), bundle("3.0.0")],
        "substitutions": [{"name": "example.com/rose:2.0.1", "base": "rose.v2.0.0"}],
    });
    let render = |version: &str| {
        let template = Template::read("t.yaml", template.to_string().as_bytes(), None).unwrap();
        template.render(&mut |_| Ok(vec![bundle(version)]))
    };
    let blobs = render("2.0.1").unwrap();
    assert_eq!(
        blobs[1].0["entries"],
        json!([
            {"name": "rose.v1.0.0"},
            {"name": "rose.v2.0.0"},
            {"name": "rose.v3.0.0", "replaces": "rose.v2.0.1", "skips": ["rose.v2.0.0"]},
            {"name": "rose.v2.0.1", "replaces": "rose.v1.0.0", "skipRange": "<2.0.0", "skips": ["rose.v2.0.0"]},
        ])
    );
    let text: String = blobs.iter().map(|b| b.0.to_string()).collect();
    assert_eq!(crate::catalog::load(&[crate::bundle::File::new("t", text.as_bytes())]).findings, []);
    assert!(render("1.9.0").unwrap_err().message.contains("higher version"));
}

#[test]
fn recorded_templates() {
    let Some(data) = data() else { return };
    let Some(cases) = recorded("validate/templates.json") else { return };
    let mut checked = Checked::default();
    for case in cases.as_array().unwrap() {
        let path = case["path"].as_str().unwrap();
        let bytes = std::fs::read(data.join(path)).unwrap();
        let rendered = Template::read(path, &bytes, None).and_then(|t| t.render(&mut none));
        let error = rendered.err().map(|e| e.message).unwrap_or_default();
        let is_same = error.contains("no image") == (case["detected"]["outcome"] != "error") && !error.is_empty();
        checked.add(path, (!is_same).then_some(error));
    }
    checked.end();
}

/// Summarizes a blob as in the recordings: long lists are a count and a digest.
fn summed(meta: &Meta) -> Value {
    use crate::api::hash::sha256_hex;
    let written: Value = serde_json::from_str(&serde_json::to_string(meta).unwrap()).unwrap();
    let mut blob = digested(written);
    for key in ["properties", "relatedImages"] {
        if blob["schema"] == "olm.bundle"
            && let Some(items) = blob[key].as_array()
        {
            let digest = sha256_hex(blob[key].to_string());
            blob[key] = json!({"count": items.len(), "sha256": digest});
        }
    }
    blob
}

#[test]
fn recorded_templates_over_real_bundles() {
    let Some(data) = data() else { return };
    let Some(cases) = recorded("validate/templates-local.json") else { return };
    let registry = cases["registry"].as_str().unwrap();
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut pull = |image: &str| -> Result<Vec<Value>, String> {
        if let Some(blob) = known.get(image) {
            return Ok(vec![blob.clone()]);
        }
        let name = image.strip_prefix(registry).ok_or("another registry")?.trim_start_matches('/');
        let path = format!("bundles/{}", name.replace(':', "/"));
        let rendered = Bundle::read(&path, &files(&data, &path)).and_then(|b| b.render()).map_err(|e| e.to_string())?;
        let blob = rendered.blob(image);
        known.insert(image.to_owned(), blob.clone());
        Ok(vec![blob])
    };
    let mut checked = Checked::default();
    for case in cases["templates"].as_array().unwrap() {
        let (name, typed) = (case["name"].as_str().unwrap(), &case["typed"]);
        let kind = TemplateKind::ALL.into_iter().find(|k| k.schema().ends_with(case["type"].as_str().unwrap()));
        let text = case["template"].as_str().unwrap();
        for (kind, run) in [(kind, typed), (None, &case["detected"])] {
            let run = if *run == "same" { typed } else { run };
            let rendered = Template::read("t.yaml", text.as_bytes(), kind).and_then(|t| t.render(&mut pull));
            let fault = match (run["blobs"].as_array().filter(|_| run["exit"] == 0), rendered) {
                (Some(opms), Ok(ours)) => {
                    let ours: Vec<Value> = ours.iter().map(summed).collect();
                    (ours != *opms).then(|| format!("{ours:.3000?}\n{opms:.3000?}"))
                }
                (None, Err(ours)) => {
                    let (ours, opms) = (ours.message, run["error"].as_str().unwrap());
                    // The error messages of YAML parsers differ.
                    let is_same = opms.ends_with(&format!(": {ours}")) || name == "bad-not-yaml";
                    (!is_same).then(|| format!("{ours}\n{opms}"))
                }
                (_, ours) => Some(format!("{:.3000?} instead of {run:.3000}", ours.map(|blobs| blobs.len()))),
            };
            checked.add(name, fault);
        }
    }
    checked.end();
}
