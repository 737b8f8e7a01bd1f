//! The annotations, the properties and the keys of bundles.

use super::*;

/// The manifests are those of the directory that the annotations name, as in images that are built of the bundle.
#[test]
fn the_annotations_name_the_directory_of_the_manifests() {
    let found = |annotation: &str, folder: &str| {
        let mut bundle = Bundle::new();
        bundle.csv["spec"]["minKubeVersion"] = "1.25".into();
        bundle.annotations = bundle.annotations.replace("v1: manifests/", &format!("v1: {annotation}"));
        let moved = |file: File| File::new(file.path.replace("b/manifests/", &format!("b/{folder}/")), file.bytes);
        let mut files: Vec<File> = bundle.files().into_iter().map(moved).collect();
        if folder != "manifests" {
            // Not part of the image.
            files.push(File::new("b/manifests/csv.yaml", b"a: [".as_slice()));
        }
        let found = validate("b", &files, &Options::default(), &mut ()).findings;
        found.into_iter().map(|finding| (finding.file, finding.line, finding.message)).collect::<Vec<_>>()
    };
    for (annotation, folder) in [("manifests/", "manifests"), ("other/", "other"), ("./deploy/olm", "deploy/olm")] {
        let [(file, ..)] = &found(annotation, folder)[..] else { panic!("{annotation}: one finding") };
        assert_eq!(*file, format!("b/{folder}/csv.yaml"));
    }
    for annotation in ["../../../etc/", "metadata/", "metadata/olm", ".hidden", "\"\"", "a/../.."] {
        let wrong = found(annotation, "manifests");
        let [first, _] = &wrong[..] else { panic!("{annotation}: {wrong:?}") };
        assert_eq!(first.0, "b/manifests/csv.yaml");
        assert_eq!((wrong[1].0.as_str(), wrong[1].1), ("b/metadata/annotations.yaml", 3), "{annotation}");
    }
}

#[test]
fn directories_of_metadata_and_tests_are_checked() {
    let found = |from: &str, to: &str| {
        let mut bundle = Bundle::new();
        bundle.annotations = bundle.annotations.replace(from, to);
        bundle.validate(Selection::default()).into_iter().map(|finding| finding.message).collect::<Vec<_>>()
    };
    assert_eq!(found("v1: metadata/", "v1: /metadata"), [""; 0]);
    let [metadata] = &found("v1: metadata/", "v1: meta/")[..] else { panic!("one finding") };
    assert!(
        metadata.ends_with(
            "names \"meta/\", which is another directory than metadata/, which every reader of bundles expects"
        ),
        "{metadata}"
    );
    for tests in ["../tests", "manifests/", "metadata/tests"] {
        let tests = format!("annotations:\n  operators.operatorframework.io.test.config.v1: {tests}");
        assert_eq!(found("annotations:", &tests).len(), 1, "{tests}");
    }
    assert_eq!(
        found("annotations:", "annotations:\n  operators.operatorframework.io.test.config.v1: tests/scorecard/"),
        [""; 0]
    );
}

#[test]
fn names_of_packages_and_channels_are_those_that_catalogs_accept() {
    let found = |from: &str, to: &str| {
        let mut bundle = Bundle::new();
        bundle.annotations = bundle.annotations.replace(from, to);
        let mut only = Selection::nothing();
        only.add("wrong-annotation").unwrap();
        bundle.validate(only).into_iter().map(|finding| (finding.line, finding.message)).collect::<Vec<_>>()
    };
    for name in ["../../x", "Rose", "ro se", "\"rose\\u202e\"", "\"ro\\u0007se\"", "\"\"", "{a: b}", &"r".repeat(64)] {
        let [(5, message)] = &found("package.v1: rose", &format!("package.v1: {name}"))[..] else { panic!("{name}") };
        assert!(message.starts_with("invalid package name ") && !message.contains(char::is_control), "{message}");
    }
    assert_eq!(found("package.v1: rose", "package.v1: 12"), [], "readers accept a number for a text");
    for (channels, expected) in [
        ("a, b,c", 0),
        ("candidate-v1.2_x", 0),
        ("\"a,,b, c\\nd\"", 2),
        ("a,", 1),
        ("\" \"", 1),
        ("a b,c\u{200b}", 2),
        (&(0..1_000).fold("a,".to_owned(), |list, n| format!("{list}x {n},")), 21),
    ] {
        let found = found("channels.v1: stable", &format!("channels.v1: {channels}"));
        assert_eq!(found.len(), expected, "{found:?}");
    }
    assert_eq!(found("default.v1: stable", "default.v1: 'a,b'").len(), 1);
}

#[test]
fn properties_are_checked_by_their_type() {
    let found = |properties: Value| {
        let files = |bundle: &Bundle, properties: Option<&Value>| {
            let mut files = bundle.files();
            files.extend(properties.map(|value| {
                File::new("b/metadata/properties.yaml", json!({ "properties": value }).to_string().into_bytes())
            }));
            let mut selection = Selection::nothing();
            selection.add("invalid-property").unwrap();
            let found = validate("b", &files, &Options { selection, ..Options::default() }, &mut ()).findings;
            found.into_iter().map(|finding| finding.message).collect::<Vec<String>>()
        };
        let mut annotated = Bundle::new();
        annotated.csv["metadata"]["annotations"]["olm.properties"] = properties.to_string().into();
        let found = files(&Bundle::new(), Some(&properties));
        let of_annotation = files(&annotated, None);
        let expected: Vec<String> =
            found.iter().map(|message| format!("annotation olm.properties: {message}")).collect();
        assert_eq!(of_annotation, expected, "the annotation has the same rules");
        found
    };
    let gvk = json!({ "group": "garden.example.com", "version": "v1", "kind": "Rose" });
    let good = json!([
        { "type": "olm.gvk", "value": gvk }, { "type": "olm.package", "value": { "packageName": "rose", "version": "1.1.0" } },
        { "type": "olm.package.required", "value": { "packageName": "tea", "versionRange": ">=1.0.0" } },
        { "type": "olm.maxOpenShiftVersion", "value": "4.20" }, { "type": "example.com/any", "value": false },
        { "type": "olm.constraint", "value": { "failureMessage": "no tea", "gvk": gvk } },
    ]);
    assert_eq!(found(good), [""; 0]);
    for (entry, expected) in [
        (json!("olm.gvk"), " is not a map with type and value"),
        (json!(null), " is not a map with type and value"),
        (json!({ "value": 1 }), " has no type"),
        (json!({ "type": 7, "value": 1 }), ".type is \"7\", which is not a string"),
        (json!({ "type": "olm.gvk" }), " has no value"),
        (json!({ "type": "olm.gvk", "value": [] }), ".value of olm.gvk is not a map with group, version, kind"),
        (
            json!({ "type": "olm.gvk", "value": { "group": "a", "version": 1, "kind": "A" } }),
            ".value.version of olm.gvk is \"1\", which is not a string",
        ),
        (
            json!({ "type": "olm.gvk.required", "value": { "group": "a", "version": "v1" } }),
            ".value.kind of olm.gvk.required is missing",
        ),
        (
            json!({ "type": "olm.package", "value": { "packageName": "tulip", "version": "1.1.0" } }),
            ".value.packageName of olm.package is \"tulip\", that of the annotations \"rose\"",
        ),
        (
            json!({ "type": "olm.package", "value": { "packageName": "rose", "version": "2.0.0" } }),
            ".value.version of olm.package is \"2.0.0\", that of the ClusterServiceVersion \"1.1.0\"",
        ),
        (json!({ "type": "olm.manifests.optional", "value": {} }), ": the value has no list `manifests`"),
    ] {
        assert_eq!(found(json!([entry])), [format!("properties[0]{expected}")]);
    }
    let range = json!({ "type": "olm.package.required", "value": { "packageName": "tea", "versionRange": "new" } });
    let constraint = json!({ "type": "olm.constraint", "value": 1 });
    assert_eq!(found(json!([range, constraint])).len(), 2);
    assert_eq!(found(json!({ "a": 1 })).len(), 1);
    assert_eq!(found(vec![json!(1); 1_000].into()).len(), 20, "a hostile file does not hide other findings");
    let mut broken = Bundle::new();
    broken.csv["metadata"]["annotations"]["olm.properties"] = "[}".into();
    assert!(names(&broken.validate(Selection::default())).contains("invalid-property"));
}

#[test]
fn repeated_keys_of_plain_manifests_and_olm_yaml_are_found() {
    let olm_yaml = "name: rose.v1.1.0\nversion: 1.0.0\nversion: 1.1.0\n";
    let manifests = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {name: b, name: b}\n";
    let annotations = ANNOTATIONS.replace("registry+v1", "k8s+v1");
    let files = [
        ("metadata/annotations.yaml", annotations.as_str()),
        ("metadata/olm.yaml", olm_yaml),
        ("manifests/all.yaml", manifests),
    ]
    .map(|(path, text)| File::new(format!("b/{path}"), text.as_bytes()));
    let mut selection = Selection::nothing();
    selection.add("repeated-key").unwrap();
    let found = validate("b", &files, &Options { selection, ..Options::default() }, &mut ()).findings;
    let places: Vec<(&str, usize)> = found.iter().map(|finding| (finding.file.as_str(), finding.line)).collect();
    assert_eq!(places, [("b/manifests/all.yaml", 5), ("b/manifests/all.yaml", 5), ("b/metadata/olm.yaml", 1)]);
}
