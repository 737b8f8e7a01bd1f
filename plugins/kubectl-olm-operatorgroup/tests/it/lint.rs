//! `kubectl olm operatorgroup lint`.

use std::fs;

use super::run_in;

/// Objects with several kinds of problems.
const GARDEN: &str = "apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: all, namespace: garden}
spec:
  targetNamespaces: [feild]
  selector: {matchLabels: {team: roses}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: rose.v1, namespace: garden}
spec:
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: false}
  - {type: MultiNamespace, supported: true}
  customresourcedefinitions: {owned: [{name: roses.example.com, kind: Rose, version: v1}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: field}
";

const PARK: &str = "apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: park, namespace: park}
spec: {serviceAccountName: keeper}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: tulip, namespace: park}
spec: {name: tulip, source: market, sourceNamespace: olm}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: lily, namespace: meadow}
spec: {name: lily, source: market, sourceNamespace: olm}
";

const CATALOG: &str = "schema: olm.package
name: rose
defaultChannel: stable
---
schema: olm.channel
package: rose
name: stable
entries: [{name: rose.v1.0.0}, {name: rose.v2.0.0, replaces: rose.v1.0.0}]
---
schema: olm.channel
package: rose
name: old
entries: [{name: rose.v1.0.0}]
---
schema: olm.bundle
package: rose
name: rose.v1.0.0
image: example.com/rose:1
properties:
- {type: olm.package, value: {packageName: rose, version: 1.0.0}}
- {type: olm.csv.metadata, value: {installModes: [{type: OwnNamespace, supported: true}, {type: SingleNamespace, supported: true}]}}
---
schema: olm.bundle
package: rose
name: rose.v2.0.0
image: example.com/rose:2
properties:
- {type: olm.package, value: {packageName: rose, version: 2.0.0}}
- {type: olm.csv.metadata, value: {installModes: [{type: OwnNamespace, supported: true}]}}
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in
        [("manifests/garden.yaml", GARDEN), ("manifests/park.yaml", PARK), ("catalog/catalog.yaml", CATALOG)]
    {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Returns the output of each command, as on a terminal.
fn transcript(folder: &std::path::Path, commands: &[&str]) -> String {
    let run = |command: &&str| {
        let (code, out, err) = run_in(folder, &command.split(' ').collect::<Vec<_>>());
        format!("$ kubectl olm operatorgroup {command}\n{out}{err}[{code}]\n")
    };
    commands.iter().map(run).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_findings_are_reported_in_one_run() {
    let folder = folder();
    let commands =
        ["lint --from manifests --complete", "lint --from manifests -n park", "lint --from manifests -n elsewhere"];
    insta::assert_snapshot!(transcript(folder.path(), &commands));
}

#[test]
fn findings_for_tools() {
    let folder = folder();
    let commands = [
        "lint --from manifests --fail-on never -o github",
        "lint --from manifests --complete -n park -o json",
        "lint --from manifests -n garden -o sarif --fail-on error",
        "lint --from manifests --complete -n nowhere -o github",
    ];
    insta::assert_snapshot!(transcript(folder.path(), &commands));
}

#[test]
fn a_baseline_omits_known_findings() {
    let folder = folder();
    let before = [
        "lint --from manifests --baseline known.yaml",
        "lint --from manifests --baseline known.yaml --create-baseline",
    ];
    let mut told = transcript(folder.path(), &before);
    told += &format!("\n$ cat known.yaml\n{}\n", fs::read_to_string(folder.path().join("known.yaml")).unwrap());
    told += &transcript(folder.path(), &["lint --from manifests --baseline known.yaml"]);
    let mended =
        GARDEN.replace("  selector: {matchLabels: {team: roses}}\n", "").replace("MultiNamespace", "AllNamespaces");
    fs::write(folder.path().join("manifests/garden.yaml"), mended).unwrap();
    told += "\n";
    told += &transcript(folder.path(), &["lint --from manifests --baseline known.yaml"]);
    fs::write(folder.path().join("known.yaml"), "kind: Tea\n").unwrap();
    told += "\n";
    told += &transcript(folder.path(), &["lint --from manifests --baseline known.yaml"]);
    insta::assert_snapshot!(told);
}

#[test]
fn a_package_is_checked_against_the_groups() {
    let folder = folder();
    let commands = [
        "lint --from manifests --package rose --catalog tea=catalog",
        "lint --from manifests --package tulip --catalog tea=catalog",
        "lint --from manifests --package rose --catalog tea.meadow=catalog --fail-on error",
    ];
    insta::assert_snapshot!(transcript(folder.path(), &commands));
}

#[test]
fn groups_are_checked_against_the_catalogs_of_their_namespaces() {
    let folder = folder();
    let everywhere =
        CATALOG.replace("{type: OwnNamespace, supported: true}]}", "{type: AllNamespaces, supported: true}]}");
    fs::create_dir(folder.path().join("wide")).unwrap();
    fs::write(folder.path().join("wide/catalog.yaml"), everywhere).unwrap();
    let asked = |arguments: &str| {
        let command = format!("lint --from manifests --package rose --fail-on never -o json {arguments}");
        let (code, out, err) = run_in(folder.path(), &command.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 0, "{err}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        let packages = document["packages"].as_array().unwrap().iter();
        let columns = packages.map(|package| {
            let groups = package["groups"].as_array().unwrap().iter().map(|g| g["namespace"].as_str().unwrap());
            format!("{}: {}", package["catalog"].as_str().unwrap(), groups.collect::<Vec<_>>().join(","))
        });
        let unfit = document["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == "OG021");
        let unfit = unfit.map(|finding| finding["object"]["name"].as_str().unwrap().to_owned());
        (columns.collect::<Vec<_>>(), unfit.collect::<Vec<_>>())
    };
    let told = |columns: &[&str], unfit: &[&str]| {
        let owned = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        (owned(columns), owned(unfit))
    };
    assert_eq!(asked("--catalog tea=catalog"), told(&["olm/tea: garden,park"], &["park"]));
    assert_eq!(asked("--catalog tea.garden=catalog"), told(&["garden/tea: garden"], &[]));
    assert_eq!(
        asked("--catalog tea=catalog --catalog wide.park=wide"),
        told(&["olm/tea: garden,park", "park/wide: park"], &[]),
        "another catalog has one that fits"
    );
    let (code, _, err) = run_in(
        folder.path(),
        &["lint", "--from", "manifests", "-n", "park", "--package", "rose", "--catalog", "tea.garden=catalog"],
    );
    assert_eq!(code, 2);
    assert!(err.contains("no catalog that namespace park can use has package rose"), "{err}");
}

#[test]
fn objects_of_files_are_fixed_in_their_file() {
    let folder = folder();
    fs::write(
        folder.path().join("second.yaml"),
        GARDEN.split("---").next().unwrap().replace("name: all", "name: second"),
    )
    .unwrap();
    insta::assert_snapshot!(transcript(folder.path(), &["lint --from manifests -f second.yaml -n garden"]));
}

#[test]
fn invalid_arguments_are_refused() {
    let folder = folder();
    let commands = [
        "lint --from manifests --fix",
        "lint --fix -f manifests/garden.yaml",
        "lint --complete",
        "lint --from manifests --create-baseline",
        "lint --explain OG999",
    ];
    insta::assert_snapshot!(transcript(folder.path(), &commands));
}

#[test]
fn rules_are_explained() {
    insta::assert_snapshot!(transcript(
        std::path::Path::new("."),
        &["lint --explain", "lint --explain og004", "lint --explain conflicting-apis"]
    ));
}
