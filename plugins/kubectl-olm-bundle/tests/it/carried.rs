//! `synthesize` on the directory of a bundle, and all errors in one run.

use super::*;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: k8s+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: roses
  operators.operatorframework.io.bundle.channels.v1: fast,stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
  com.redhat.openshift.versions: v4.15
";
const DEPENDENCIES: &str = "# what roses need
dependencies:
- type: olm.package
  value: {packageName: soil, version: '>=1.0.0'}
";
const PROPERTIES: &str = "properties:
- type: olm.maxOpenShiftVersion
  value: '4.20'
";

/// Returns a folder with a bundle of plain manifests.
fn bundle_directory() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("manifests/rose.yaml", MANIFESTS),
        ("metadata/olm.yaml", METADATA),
        ("metadata/annotations.yaml", ANNOTATIONS),
        ("metadata/dependencies.yaml", DEPENDENCIES),
        ("metadata/properties.yaml", PROPERTIES),
    ] {
        let path = folder.path().join("rose").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_bundle_keeps_its_package_channels_dependencies_and_properties() {
    let folder = bundle_directory();
    for (target, media_type) in [("registry+v1", "registry+v1"), ("k8s+v1", "k8s+v1")] {
        let output = format!("made-{target}");
        let arguments = ["synthesize", "rose", "--to", target, "--output-dir", &output];
        let (code, _, err) = outcome(folder.path(), &arguments, "");
        assert_eq!(code, 0, "{err}");
        let read = |name: &str| fs::read_to_string(folder.path().join(&output).join("metadata").join(name)).unwrap();
        assert_eq!(read("dependencies.yaml"), DEPENDENCIES);
        assert_eq!(read("properties.yaml"), PROPERTIES);
        let annotations = read("annotations.yaml");
        for line in [
            &format!("mediatype.v1: {media_type}\n"),
            "package.v1: roses\n",
            "channels.v1: fast,stable\n",
            "channel.default.v1: stable\n",
            "com.redhat.openshift.versions: v4.15\n",
        ] {
            assert!(annotations.contains(line), "{line} is not in {annotations}");
        }
    }
    let flags = ["--package", "tulips", "--channels", "beta", "--to", "k8s+v1", "--output-dir", "flags"];
    let (code, _, err) = outcome(folder.path(), &[&["synthesize", "rose"][..], &flags].concat(), "");
    assert_eq!(code, 0, "{err}");
    let annotations = fs::read_to_string(folder.path().join("flags/metadata/annotations.yaml")).unwrap();
    assert!(
        annotations.contains("package.v1: tulips\n") && annotations.contains("channels.v1: beta\n"),
        "{annotations}"
    );
    assert!(!annotations.contains("channel.default.v1"), "stable is not among the channels: {annotations}");
    let package = ["synthesize", "rose", "--to", "packagemanifests", "--output-dir", "packages"];
    let (code, _, err) = outcome(folder.path(), &package, "");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("metadata/dependencies.yaml is left out"), "{err}");
    assert!(folder.path().join("packages/roses.package.yaml").is_file());
}

#[test]
fn all_errors_of_a_bundle_are_printed_in_one_run() {
    let folder = bundle_directory();
    let faulty = format!("{MANIFESTS}---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\n");
    fs::write(folder.path().join("rose/manifests/rose.yaml"), faulty).unwrap();
    fs::write(folder.path().join("rose/metadata/olm.yaml"), "name: rose.v1.0.0\nversion: 1.0.0\n").unwrap();
    let (code, out, err) = outcome(folder.path(), &["build", "rose"], "");
    assert_eq!((code, out.as_str()), (2, ""));
    for words in [
        "rose/manifests/rose.yaml:44: DaemonSet/agent: OLM does not install objects of kind DaemonSet",
        "field minKubeVersion is required",
        "field installModes is required",
    ] {
        assert!(err.contains(words), "{words} is not in {err}");
    }
    // Without a Deployment the other findings about manifests follow from it, but those about olm.yaml do not.
    let (code, _, err) = outcome(folder.path(), &["synthesize", "-", "--metadata", "rose/metadata/olm.yaml"], "");
    assert_eq!(code, 1);
    for words in ["the input contains no Kubernetes objects", "field minKubeVersion is required"] {
        assert!(err.contains(words), "{words} is not in {err}");
    }
}

#[test]
fn the_account_is_printed_in_every_format() {
    let folder = input();
    let account = ["synthesize", "deploy", "--metadata", "olm.yaml", "--account", "-o"];
    let printed = |format: &str| {
        let (code, out, err) = outcome(folder.path(), &[&account[..], &[format]].concat(), "");
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    let json: Value = serde_json::from_str(&printed("json")).unwrap();
    assert_eq!(json["kind"], "BundleAccount");
    let yaml = printed("yaml");
    assert!(yaml.starts_with("apiVersion: kubectl-olm/v1\n") && yaml.contains("kind: BundleAccount\n"), "{yaml}");
}

/// A catalog states the plural of an API, also where it does not follow from the kind.
#[test]
fn required_apis_are_looked_up_in_a_catalog() {
    let folder = input();
    let rule = "- {apiGroups: [soil.example.com], resources: [compost], verbs: [get]}\n\
                - {apiGroups: [lab.example.com], resources: [testers], verbs: [get]}\n";
    let manifests = MANIFESTS.replacen("rules:\n", &format!("rules:\n{rule}"), 1);
    fs::write(folder.path().join("deploy/rose.yaml"), &manifests).unwrap();
    let property =
        |group: &str, kind: &str| format!("{{type: olm.gvk, value: {{group: {group}, version: v1, kind: {kind}}}}}");
    let metadata = "{type: olm.csv.metadata, value: {
      crdDescriptions: {owned: [{name: compost.soil.example.com, version: v1, kind: Compost}]},
      apiServiceDefinitions: {owned: [{name: testers, group: lab.example.com, version: v1, kind: Tester}]}}}";
    let catalog = format!(
        "schema: olm.package\nname: soil\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: soil\nname: stable\n\
         entries: [{{name: soil.v1.0.0}}]\n---\nschema: olm.bundle\npackage: soil\nname: soil.v1.0.0\n\
         image: example.com/soil-bundle:1\nproperties:\n\
         - {{type: olm.package, value: {{packageName: soil, version: 1.0.0}}}}\n- {}\n- {}\n- {metadata}\n",
        property("soil.example.com", "Compost"),
        property("lab.example.com", "Tester")
    );
    fs::create_dir(folder.path().join("catalog")).unwrap();
    fs::write(folder.path().join("catalog/soil.yaml"), catalog).unwrap();
    let arguments = ["synthesize", "deploy", "--metadata", "olm.yaml", "--to", "k8s+v1", "--output-dir", "bundle"];
    let (code, _, err) = outcome(folder.path(), &arguments, "");
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("requires the API compost.soil.example.com"), "{err}");
    let (code, _, err) = outcome(folder.path(), &[&arguments[..], &["--catalog", "./catalog"]].concat(), "");
    assert_eq!(code, 0, "{err}");
    let olm_yaml = fs::read_to_string(folder.path().join("bundle/metadata/olm.yaml")).unwrap();
    let expected = "requiredAPIs:
- group: soil.example.com
  kind: Compost
  resource: compost
  version: v1
- aggregated: true
  group: lab.example.com
  kind: Tester
  resource: testers
  version: v1
";
    assert!(olm_yaml.ends_with(expected), "{olm_yaml}");
    // The written bundle states them.
    let (code, _, err) =
        outcome(folder.path(), &["synthesize", "bundle", "--to", "k8s+v1", "--output-dir", "again"], "");
    assert_eq!(code, 0, "{err}");
}

/// Returns what is on a terminal on which a command is answered. `None` if there is no program `script`.
#[expect(clippy::print_stderr, reason = "tests report that they are skipped")]
fn answered(folder: &Path, arguments: &str, answers: &str) -> Option<String> {
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_kubectl-olm-bundle"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder).write_stdin(answers);
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            eprintln!("skipped: there is no program script");
            None
        }
    }
}

#[test]
fn a_terminal_is_asked_for_what_olm_yaml_does_not_state() {
    let folder = input();
    let to = "--to k8s+v1 --output-dir";
    let answers = "roses\n2.0.0\nRoses\n1.29.0\nOwnNamespace,AllNamespaces\nGrows roses.\n\nnobody\nThe gardeners <g@example.com>\n";
    let Some(shown) = answered(folder.path(), &format!("synthesize deploy {to} made"), answers) else { return };
    let olm_yaml =
        fs::read_to_string(folder.path().join("made/metadata/olm.yaml")).unwrap_or_else(|_| panic!("{shown}"));
    assert!(shown.contains("write it as NAME <EMAIL>"), "an invalid answer is asked for again: {shown}");
    for line in [
        "name: roses.v2.0.0\n",
        "minKubeVersion: 1.29.0\n",
        "displayName: Roses\n",
        "description: Grows roses.\n",
        "email: g@example.com\n",
    ] {
        assert!(olm_yaml.contains(line), "{line} is not in {olm_yaml}");
    }
    assert!(!olm_yaml.contains("provider"), "it was skipped: {olm_yaml}");
    // A file that lacks fields is completed.
    fs::write(folder.path().join("part.yaml"), "# roses\nname: rose.v1.0.0\nversion: 1.0.0\n").unwrap();
    let arguments = format!("synthesize deploy --metadata part.yaml {to} part");
    let shown = answered(folder.path(), &arguments, "\n\n").unwrap();
    let completed =
        fs::read_to_string(folder.path().join("part/metadata/olm.yaml")).unwrap_or_else(|_| panic!("{shown}"));
    assert!(completed.starts_with("# roses\nname: rose.v1.0.0\nversion: 1.0.0\ninstallModes:\n"), "{completed}");
    assert!(completed.ends_with("minKubeVersion: 1.28.0\n"), "{completed}");
}
