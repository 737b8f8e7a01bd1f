//! Catalogs written by hand, the scenarios' catalogs, and opm's recorded verdicts on real ones.

mod fuzz;
pub(super) mod render;

use serde_json::json;

use super::*;
use crate::testing::{self, Checked, data, files, recorded};

pub(super) const CATALOG: &str = "
schema: olm.package
name: rose
defaultChannel: stable
description: Roses.
---
schema: olm.channel
package: rose
name: stable
entries:
- name: rose.v2.0.0
  replaces: rose.v1.0.0
  skipRange: '>=0.1.0 <1.0.0'
- name: rose.v1.0.0
---
schema: olm.channel
package: rose
name: fast
entries:
- {name: rose.v2.0.0, skips: [rose.v1.9.0]}
---
schema: olm.bundle
package: rose
name: rose.v1.0.0
image: registry.example.com/rose:v1
properties:
- {type: olm.package, value: {packageName: rose, version: 1.0.0}}
- {type: olm.gvk.required, value: {group: garden.example.com, kind: Pot, version: v1}}
---
Schema: olm.bundle
package: rose
name: rose.v2.0.0
image: registry.example.com/rose:v2
properties:
- {type: olm.gvk, value: {group: garden.example.com, kind: Rose, version: v1}}
- {type: olm.package, value: {packageName: rose, version: 2.0.0}}
- {type: olm.csv.metadata, value: {displayName: Rose, annotations: {a: b}, crdDescriptions: {owned: []}}}
---
schema: olm.deprecations
package: rose
entries:
- {reference: {schema: olm.channel, name: fast}, message: too fast}
- {reference: {schema: olm.bundle, name: rose.v1.0.0}, message: has thorns}
---
schema: example.com/notes
package: rose
note: kept
";

pub(super) fn load_text(text: &str) -> Loaded {
    load(&[File::new("catalog.yaml", text.as_bytes())])
}

fn loaded(text: &str) -> Snapshot {
    let load = load_text(text);
    assert_eq!(load.findings, []);
    load.snapshot
}

#[test]
fn packages_channels_and_entries() {
    let snapshot = loaded(CATALOG);
    let rose = snapshot.package("rose").unwrap();
    let channels: Vec<_> =
        rose.channels.iter().map(|c| (c.name.as_str(), c.head.as_str(), c.deprecation.as_deref())).collect();
    assert_eq!(channels, [("fast", "rose.v2.0.0", Some("too fast")), ("stable", "rose.v2.0.0", None)]);
    let names: Vec<_> = snapshot.entries().map(|e| format!("{}/{}", e.channel, e.name)).collect();
    assert_eq!(names, ["fast/rose.v2.0.0", "stable/rose.v1.0.0", "stable/rose.v2.0.0"]);

    let entry = snapshot.entry("rose", "stable", "rose.v2.0.0").unwrap();
    assert!(entry.is_default_channel && entry.skips_version(&crate::version::parse("0.5.0").unwrap()));
    assert_eq!(entry.replaces.as_deref(), Some("rose.v1.0.0"));
    assert_eq!(entry.version.as_ref().unwrap().to_string(), entry.version_text);
    let fast = snapshot.entry("rose", "fast", "rose.v2.0.0").unwrap();
    assert!(std::sync::Arc::ptr_eq(&fast.properties, &entry.properties), "channels share the properties of a bundle");
    let others: Vec<_> = snapshot.others().iter().map(|o| o.value().unwrap()).collect();
    assert_eq!(others, [json!({"schema": "example.com/notes", "package": "rose", "note": "kept"})]);
}

#[test]
fn requirements_are_derived_as_the_resolver_does() {
    let snapshot = loaded(CATALOG);
    let entry = snapshot.entry("rose", "stable", "rose.v1.0.0").unwrap();
    let pot = json!({"group": "garden.example.com", "kind": "Pot", "version": "v1"});
    let types: Vec<_> = entry.properties.iter().map(|p| p.type_.as_str()).collect();
    assert_eq!(types, ["olm.package", "olm.gvk.required", "olm.gvk.required"], "listed twice, as in OLM");
    assert_eq!(entry.dependencies[..], [Property::new("olm.gvk", pot)]);
    assert_eq!(entry.deprecation.as_deref(), Some("has thorns"));

    let mut builder = Builder::default();
    let channels = vec![Channel { name: "c".into(), ..Channel::default() }];
    builder.package(Package { name: "old".into(), channels, ..Package::default() });
    let api = |kind: &str| crate::api::object::Gvk::new("g", "v1", kind);
    builder.bundle(BundleMessage {
        csv_name: "old.v1".into(),
        package: "old".into(),
        channel: "c".into(),
        version: "v1".into(),
        provided_apis: vec![api("B"), api("A")],
        required_apis: vec![api("C")],
        ..BundleMessage::default()
    });
    let snapshot = builder.build();
    let entry = snapshot.entry("old", "c", "old.v1").unwrap();
    let gvk = |kind: &str| json!({"group": "g", "kind": kind, "version": "v1"});
    assert_eq!(
        entry.properties[..],
        [
            Property::new("olm.gvk", gvk("A")),
            Property::new("olm.gvk", gvk("B")),
            Property::new("olm.gvk.required", gvk("C")),
            Property::package("old", "v1"),
        ]
    );
    assert_eq!(entry.version.as_ref().unwrap().to_string(), "1.0.0");
}

#[test]
fn a_missing_csv_is_generated() {
    let snapshot = loaded(CATALOG);
    let content = snapshot.bundle("rose", "fast", "rose.v2.0.0").unwrap();
    let csv: serde_json::Value = serde_json::from_str(&content.csv_json).unwrap();
    assert_eq!(csv["metadata"], json!({"name": "rose.v2.0.0", "annotations": {"a": "b"}}));
    assert_eq!([&csv["spec"]["description"], &csv["spec"]["version"]], ["Roses.", "2.0.0"]);
    assert_eq!(content.objects.first(), Some(&content.csv_json));
    assert_eq!(snapshot.bundle("rose", "stable", "rose.v1.0.0"), None);
    assert_eq!(snapshot.bundle("rose", "fast", "rose.v1.0.0"), None, "not in that channel");
}

#[test]
fn an_invalid_package_is_set_aside_and_the_others_are_served() {
    let broken = "
---
schema: olm.package
name: tulip
defaultChannel: beta
---
schema: olm.channel
package: tulip
name: alpha
entries: [{name: tulip.v1.0.0}, {name: tulip.v2.0.0}]
---
schema: olm.bundle
package: tulip
name: tulip.v1.0.0
image: registry.example.com/tulip:v1
properties:
- {type: olm.package, value: {packageName: tulip, version: v1}}
---
schema: olm.channel
package: daisy
name: alpha
---
schema: [1]
---
- no object
";
    let load = load_text(&format!("{CATALOG}{broken}"));
    assert_eq!(load.snapshot, loaded(CATALOG));
    assert_eq!(load.invalid_packages.iter().collect::<Vec<_>>(), ["daisy", "tulip"]);
    let codes: Vec<_> = load.findings.iter().map(|f| f.code).collect();
    assert_eq!(
        codes,
        [
            "bad-blob",
            "not-an-object",
            "unknown-package",
            "unknown-default-channel",
            "bad-version",
            "missing-bundle",
            "bad-graph"
        ]
    );
    let text = load.findings[3].to_string();
    let line = 1 + CATALOG.lines().count() + 2;
    assert_eq!(
        text,
        format!(
            "catalog.yaml:{line}: channel \"beta\" of package \"tulip\": channel must contain at least one bundle\n\
             hint: set defaultChannel to one of the existing channels: \"alpha\""
        )
    );
}

#[test]
fn malformed_optional_manifests_are_only_a_warning() {
    for (value, problem) in [
        ("{manifests: [{group: example.com, kind: Pot, name: clay}]}", None),
        ("{manifests: {}}", Some("it is ignored: the value has no list `manifests`")),
        ("[]", Some("it is ignored: the value has no list `manifests`")),
        ("{manifests: [{kind: Pot}]}", Some("it is ignored: manifests[0].name is missing")),
    ] {
        let property = format!("- {{type: olm.manifests.optional, value: {value}}}\n- {{type: olm.gvk.required");
        let load = load_text(&CATALOG.replace("- {type: olm.gvk.required", &property));
        let messages: Vec<&str> = load.findings.iter().map(|f| f.message.as_str()).collect();
        let expected = problem.map(|why| format!("property[1] of type olm.manifests.optional: {why}"));
        assert_eq!(messages, Vec::from_iter(expected.as_deref()), "{value}");
        assert!(refused(&load).is_empty());
        assert!(load.findings.iter().all(|f| f.severity == crate::finding::Severity::Warning));
    }
}

#[test]
fn plain_scalars_that_are_not_strings_are_reported() {
    let load = load_text(&CATALOG.replace(
        "- {type: olm.gvk.required",
        "- {type: taste, value: {sweet: yes, 'on': 'no'}}\n- {type: olm.gvk.required",
    ));
    let [finding] = &load.findings[..] else { panic!("{:?}", load.findings) };
    assert_eq!(
        (finding.code, finding.message.as_str()),
        ("not-a-text", "unquoted yes means true in YAML 1.1, not a string")
    );
    assert!(refused(&load).is_empty());
}

#[test]
fn equality_sees_inline_objects_and_edges() {
    let inline = |object: &str| {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(object);
        let bundle = format!(
            "image: registry.example.com/rose:v1\nproperties:\n- {{type: olm.bundle.object, value: {{data: {data}}}}}"
        );
        CATALOG.replace("image: registry.example.com/rose:v1\nproperties:", &bundle)
    };
    let (one, other) = (inline("kind: A"), inline("kind: B"));
    assert_eq!(loaded(&one).bundle("rose", "stable", "rose.v1.0.0").unwrap().objects[..], [r#"{"kind":"A"}"#.into()]);
    assert_eq!(loaded(&one), loaded(&other), "the image is authoritative");
    let without_image = |text: &str| text.replace("image: registry.example.com/rose:v1", "");
    assert_ne!(loaded(&without_image(&one)), loaded(&without_image(&other)));
    assert_ne!(loaded(CATALOG), loaded(&CATALOG.replace("skips: [rose.v1.9.0]", "")));
}

#[test]
fn packed_objects_are_unpacked() {
    let content = |csv: &str, objects: &[&str]| BundleContent {
        csv_json: csv.into(),
        objects: objects.iter().map(|o| (*o).into()).collect(),
        is_plain: false,
    };
    for content in [content("b", &["a", "b"]), content("c", &["a"]), content("", &["a", ""]), content("", &[])] {
        assert_eq!(Content::pack(&content).read().unwrap(), content);
    }
}

fn order_of(edges: &[(&str, &str, &[&str])]) -> Result<Vec<String>, String> {
    let entries: Vec<Entry> = edges
        .iter()
        .map(|(name, replaces, skips)| Entry {
            name: (*name).into(),
            package: "rose".into(),
            channel: "stable".into(),
            replaces: Some((*replaces).to_owned()).filter(|r| !r.is_empty()),
            skips: skips.iter().map(|s| (*s).to_owned()).collect(),
            ..Entry::default()
        })
        .collect();
    let ordered = channel::order(&entries.iter().collect::<Vec<_>>());
    ordered.map(|o| o.iter().map(|e| e.name.clone()).collect()).map_err(|e| e.to_string())
}

#[test]
fn channel_order_follows_replaces_from_the_head() {
    assert_eq!(order_of(&[("a", "", &[]), ("c", "b", &[]), ("b", "a", &[])]).unwrap(), ["c", "b", "a"]);
    assert_eq!(order_of(&[("a", "", &[]), ("b", "a", &[]), ("c", "a", &["b"])]).unwrap(), ["c", "a"]);
    assert_eq!(order_of(&[]).unwrap(), [""; 0]);
    assert_eq!(
        order_of(&[("a", "b", &[]), ("b", "a", &[])]).unwrap_err(),
        "no channel heads (entries not replaced by another entry) found in channel \"stable\" of package \"rose\""
    );
    assert_eq!(
        order_of(&[("h", "a", &[]), ("a", "b", &[]), ("b", "a", &[])]).unwrap_err(),
        "a cycle exists in the chain of replacement beginning with \"h\" in channel \"stable\" of package \"rose\""
    );
    assert_eq!(
        order_of(&[("a", "", &[]), ("b", "a", &[]), ("c", "", &[])]).unwrap_err(),
        "a unique replacement chain within a channel is required to determine the relative order between channel \
         entries, but 2 replacement chains were found in channel \"stable\" of package \"rose\": b...a, c"
    );
}

#[test]
fn a_long_channel_is_visited_once() {
    const LONG: usize = 40_000;
    let names: Vec<String> = (0..LONG).map(|n| format!("rose.v{n}")).collect();
    let node =
        |n: usize| channel::Node { name: &names[n], replaces: n.checked_sub(1).map_or("", |n| &names[n]), skips: &[] };
    let mut nodes: Vec<_> = (0..LONG).map(node).collect();
    assert_eq!(channel::check(&nodes), Ok(()));
    nodes[0].replaces = &names[LONG - 2];
    let cycle = channel::check(&nodes).unwrap_err();
    assert!(cycle.starts_with("detected cycle") && cycle.ends_with(" -> rose.v0 -> rose.v39998"), "{}", cycle.len());
    // Half of them are heads of the other half.
    let half = LONG / 2;
    let entry = |n: usize| Entry {
        name: names[n].clone(),
        replaces: n.checked_sub(1).map(|n| names[n.min(half)].clone()),
        ..Entry::default()
    };
    let entries: Vec<Entry> = (0..LONG).map(entry).collect();
    let Err(channel::OrderError::ManyChains { chains, .. }) = channel::order(&entries.iter().collect::<Vec<_>>())
    else {
        panic!("expected many heads")
    };
    assert_eq!((chains.len(), chains[0].as_str()), (LONG - half - 1, "rose.v20001...rose.v0"));
}

#[test]
fn scenario_catalogs_are_valid() {
    let Some(data) = data() else { return };
    let Some(scenarios) = testing::entries("scenarios") else { return };
    let mut checked = Checked::default();
    for scenario in scenarios {
        let scenario = scenario.file_name().unwrap().to_str().unwrap();
        let folder = format!("scenarios/{scenario}/catalogs");
        let Ok(entries) = std::fs::read_dir(data.join(&folder)) else { continue };
        for catalog in entries {
            let catalog = format!("{folder}/{}", catalog.unwrap().file_name().into_string().unwrap());
            let mut all = files(&data, &catalog);
            let lists: Vec<File> = all.extract_if(.., |f| f.path.ends_with("/bundles.txt")).collect();
            for line in lists.iter().flat_map(|f| std::str::from_utf8(&f.bytes).unwrap().lines()) {
                if !line.trim().is_empty() && !line.starts_with('#') {
                    all.extend(files(&data, line.trim()));
                }
            }
            let load = load(&all);
            let mut faults: Vec<String> =
                load.findings.iter().filter(|f| f.code != "bad-related-image").map(ToString::to_string).collect();
            for entry in load.snapshot.entries() {
                let content = load.snapshot.bundle(&entry.package, &entry.channel, &entry.name);
                if content.is_none() && entry.bundle_path.is_empty() {
                    faults.push(format!("{} has no content", entry.name));
                }
            }
            checked.add(&catalog, (!faults.is_empty()).then(|| faults.join("\n")));
        }
    }
    checked.end();
}

/// Findings because of which opm rejects the catalog.
fn refused(load: &Loaded) -> Vec<&crate::finding::Finding> {
    load.findings.iter().filter(|f| refused_by_opm(f.code)).collect()
}

#[test]
fn recorded_verdicts() {
    let Some(data) = data() else { return };
    let Some(cases) = recorded("validate/catalogs.json") else { return };
    let mut checked = Checked::default();
    for case in cases.as_array().unwrap() {
        let path = case["path"].as_str().unwrap();
        let all = match std::fs::read(data.join(path)) {
            Ok(bytes) => vec![File::new(path, bytes)],
            Err(_) => files(&data, path),
        };
        let load = load(&all);
        let refused = refused(&load);
        let message = case["message"].as_str().unwrap_or_default();
        let is_same = refused.is_empty() == case["valid"].as_bool().unwrap()
            && (message.is_empty() || refused.iter().any(|f| f.message == message));
        let are_whole = refused.iter().all(|f| f.line > 0 && !f.subject.is_empty() && !f.hint.is_empty());
        checked.add(path, (!is_same || !are_whole).then(|| format!("{message:?}, {refused:#?}")));
    }
    checked.end();
}
