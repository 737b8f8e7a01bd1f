//! Tests of the executable `kubectl-olm-run`.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use assert_cmd::Command;

fn run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm-run"));
    command.env_clear().args(arguments);
    command
}

#[test]
fn the_help_page() {
    let page = run(&["--help"]).assert().success().stderr("");
    insta::assert_snapshot!(String::from_utf8_lossy(&page.get_output().stdout));
}

#[test]
fn a_usage_error_is_exit_code_2_with_a_message() {
    let refused = run(&["--feature-gates", "Tea=true"]).assert().code(2).stdout("");
    let words = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(words.contains("unknown feature gate \"Tea\"; known gates: OptionalManifests"), "{words}");
}

#[test]
fn a_simulation_is_reproducible_and_its_lines_are_short() {
    let quickstart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/quickstart");
    let story = || {
        let told = run(&["--simulate", quickstart]).assert().success();
        String::from_utf8_lossy(&told.get_output().stdout).into_owned()
    };
    let told = story();
    assert_eq!(told, story());
    let too_long: Vec<&str> = told.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
    for line in [
        "  created Subscription tea-house",
        "  created InstallPlan",
        "ClusterServiceVersion tea-house.v1.0.0: Succeeded",
        "  ClusterServiceVersion tea-house.v1.1.0\n",
        "  Succeeded (InstallSucceeded): install strategy completed with no errors",
        "deleted ClusterServiceVersion tea-house.v1.0.0",
    ] {
        assert!(told.contains(line), "{line} is not in:\n{told}");
    }
}

/// Returns the output of a simulation of these files on both streams.
fn simulated(files: &[(&str, &str)], more: &[&str], code: i32) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = run(&[&["--simulate", "."][..], more].concat());
    let output = command.current_dir(folder.path()).assert().code(code).get_output().clone();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_simulation_is_as_strict_as_the_api_server_and_reports_all_errors() {
    let subscription = "# Tea\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: tea, namespace: park}\n\
        spec:\n  name: tea\n  chanel: stable\n  source: market\n  sourceNamespace: olm\n  instalPlanApproval: Manual\n";
    let groups = "{\"apiVersion\": \"operators.coreos.com/v1\", \"kind\": \"OperatorGroup\", \"metadata\": {\"name\": \"g\"},\n \
        \"spec\": {\"targetNamespace\": [\"park\"]}}\n---\n{\"kind\": \"Node\"}\n";
    let (out, err) = simulated(&[("a.yaml", subscription)], &[], 2);
    assert_eq!(out, "");
    assert_eq!(
        err,
        "error: ./a.yaml:7: unknown field \"spec.chanel\" in Subscription/park/tea\n\
         hint: did you mean \"spec.channel\"?\n\
         error: ./a.yaml:10: unknown field \"spec.instalPlanApproval\" in Subscription/park/tea\n\
         hint: did you mean \"spec.installPlanApproval\"?\n"
    );
    let (_, err) = simulated(&[("a.yaml", "a: [\n"), ("b.json", groups)], &[], 2);
    assert!(
        err.contains("error: ./a.yaml:") && err.contains("error: ./b.json:4: this object has no apiVersion"),
        "{err}"
    );
    let kinds = "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscripton\nmetadata: {name: a}\n---\n\
        apiVersion: v1\nkind: Secret\nmetadata: {name: B}\n";
    let (_, err) = simulated(&[("c.yaml", kinds)], &[], 2);
    assert!(
        err.contains("c.yaml:1: the API server refuses Subscripton")
            && err.contains("hint: did you mean Subscription?"),
        "{err}"
    );
    assert!(err.contains("c.yaml:5: the API server refuses Secret"), "{err}");
}

#[test]
fn fields_of_a_newer_server_are_reported_and_ignored() {
    let dumped = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: park, uid: u}\nnewField: 1\n";
    let (_, err) = simulated(&[("a.yaml", dumped)], &[], 0);
    assert_eq!(
        err,
        "warning: unknown fields are ignored: ./a.yaml:4: newField of ConfigMap/park/c\n\
         note: namespace park is not among the objects and is created\n"
    );
}

#[test]
fn objects_without_a_namespace_get_the_same_one_as_in_kubectl() {
    let objects = "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"c\"}}\n---\n\
        {\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"park\"}}\n";
    for (more, namespace) in [(&[][..], "default"), (&["-n", "park"], "park")] {
        let (out, _) = simulated(&[("a.json", objects)], &[more, &["-o", "json"]].concat(), 0);
        let list: serde_json::Value = serde_json::from_str(&out).unwrap();
        let found = list["items"].as_array().unwrap().iter().find(|o| o["metadata"]["name"] == "c").unwrap();
        assert_eq!(found["metadata"]["namespace"], namespace);
    }
}

/// The feature gate concerns one bundle: other packages of the same catalog are installed.
#[test]
fn a_bundle_of_plain_manifests_is_refused_without_its_feature() {
    const IMAGE: &str = "registry.example.com/rose-bundle:1.0.0";
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let bundle = |name: &str, more: &str| {
        format!(
            "---\nschema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: {name}\nname: stable\n\
             entries: [{{name: {name}.v1.0.0}}]\n---\nschema: olm.bundle\npackage: {name}\nname: {name}.v1.0.0\n{more}\n"
        )
    };
    let package = |name: &str| format!("{{type: olm.package, value: {{packageName: {name}, version: 1.0.0}}}}");
    let plain = format!("image: {IMAGE}\nproperties: [{}]", package("rose"));
    write("given/catalogs/market/catalog.yaml", &bundle("rose", &plain));
    let tulip = bundle("tulip", "");
    write("given/catalogs/market/tulip.yaml", tulip.split_once("---\nschema: olm.bundle").unwrap().0);
    let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: tulip.v1.0.0}\n\
               spec:\n  displayName: Tulip\n  version: 1.0.0\n  installModes: [{type: AllNamespaces, supported: true}]\n  \
               install: {strategy: deployment, spec: {deployments: []}}\n";
    write("given/catalogs/market/tulip/manifests/csv.yaml", csv);
    let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: tulip, \
                       operators.operatorframework.io.bundle.channels.v1: stable}\n";
    write("given/catalogs/market/tulip/metadata/annotations.yaml", annotations);
    let subscription = |name: &str| {
        format!(
            "---\napiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {{name: {name}, namespace: {name}}}\n\
             spec: {{name: {name}, channel: stable, source: market, sourceNamespace: olm}}\n---\n\
             apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {{name: all, namespace: {name}}}\n---\n\
             apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n"
        )
    };
    write("given/cluster.yaml", &[subscription("rose"), subscription("tulip")].concat());
    write("rose/manifests/rose.yaml", include_str!("../../../kubectl-olm-bundle/tests/it/rose.yaml"));
    write("rose/metadata/olm.yaml", include_str!("../../../kubectl-olm-bundle/tests/it/olm.yaml"));
    let simulate = |gates: &str| {
        let given = format!("{IMAGE}=rose");
        let arguments = ["--simulate", "given", "--bundle-image", &given, "--feature-gates", gates];
        let output = run(&arguments).current_dir(folder.path()).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        // Long lines are wrapped.
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let enabled = simulate("PlainBundles=true");
    assert!(enabled.contains("created ClusterServiceVersion rose/rose.v1.0.0"), "{enabled}");
    assert!(enabled.contains("clusterserviceversion/tulip.v1.0.0 Succeeded"), "{enabled}");
    let disabled = simulate("PlainBundles=false");
    assert!(!disabled.contains("created ClusterServiceVersion rose/rose.v1.0.0"), "{disabled}");
    assert!(disabled.contains("--feature-gates PlainBundles=true"), "{disabled}");
    assert!(disabled.contains("clusterserviceversion/tulip.v1.0.0 Succeeded"), "{disabled}");
}
