//! `kubectl olm bundle validate`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::outcome;

const CSV: &str = include_str!("rose-v1.0.0/manifests/rose.clusterserviceversion.yaml");
const CRD: &str = include_str!("rose-v1.0.0/manifests/roses.garden.example.com.yaml");
const ANNOTATIONS: &str = include_str!("rose-v1.0.0/metadata/annotations.yaml");

/// Writes a bundle below a folder.
fn write(folder: &Path, csv: &str, crd: &str) {
    for directory in ["manifests", "metadata"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
    }
    fs::write(folder.join("manifests/rose.clusterserviceversion.yaml"), csv).unwrap();
    fs::write(folder.join("manifests/roses.garden.example.com.yaml"), crd).unwrap();
    fs::write(folder.join("metadata/annotations.yaml"), ANNOTATIONS).unwrap();
}

/// Returns a folder with a valid bundle `1.0.0` and a next version `1.1.0` that is not compatible with it.
fn garden() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("1.0.0"), CSV, CRD);
    let next = CSV
        .replace("1.0.0", "1.1.0")
        .replace("{type: SingleNamespace, supported: true}", "{type: SingleNamespace, supported: false}")
        .replace("verbs: [get, list, watch]", "verbs: [get, list, watch, delete]");
    let crd = CRD.replace(
        "            type: object\n            prop",
        "            type: object\n            required: [size]\n            prop",
    );
    write(&folder.path().join("1.1.0"), &next, &crd.replace("              colour: {type: string}\n", ""));
    folder
}

#[test]
fn findings_have_places_and_codes() {
    let folder = garden();
    assert_eq!(
        outcome(folder.path(), &["validate", "1.0.0"], ""),
        (0, String::new(), "1 bundle: no findings\n".to_owned())
    );
    let csv = CSV.replace("minKubeVersion: 1.25.0", "minKubeVersion: '1.25'").replace("  displayName: Rose\n", "");
    write(&folder.path().join("1.0.0"), &csv, CRD);
    let (code, out, err) = outcome(folder.path(), &["validate", "1.0.0"], "");
    assert_eq!((code, err.as_str()), (1, "1 bundle: 2 errors\n"));
    insta::assert_snapshot!("findings", out);
    let (code, out, _) = outcome(folder.path(), &["validate", "1.0.0", "--select", "BV113"], "");
    assert_eq!((code, out.lines().count()), (1, 1), "{out}");
    let (code, out, _) = outcome(folder.path(), &["validate", "1.0.0", "--select", "BV113", "--fail-on", "never"], "");
    assert_eq!((code, out.lines().count()), (0, 1), "{out}");
    let (code, _, err) = outcome(folder.path(), &["validate", "1.0.0", "--select", "tea"], "");
    assert_eq!(code, 2);
    assert!(err.contains("no validator, suite or rule is named \"tea\""), "{err}");
}

#[test]
fn a_version_is_compared_with_the_previous_one() {
    let folder = garden();
    let (code, out, err) = outcome(folder.path(), &["validate", "1.1.0", "--against", "1.0.0"], "");
    assert_eq!(code, 1, "{err}");
    insta::assert_snapshot!("compared", out);
    // The same in a catalog.
    let catalog = folder.path().join("catalog");
    fs::create_dir(&catalog).unwrap();
    fs::rename(folder.path().join("1.0.0"), catalog.join("rose.v1.0.0")).unwrap();
    let channel = "schema: olm.package\nname: rose\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: rose\nname: stable\nentries: [{name: rose.v1.0.0}]\n";
    fs::write(catalog.join("catalog.yaml"), channel).unwrap();
    let (code, from_catalog, err) = outcome(folder.path(), &["validate", "1.1.0", "--against", "catalog"], "");
    assert_eq!(code, 1, "{err}");
    let codes = |text: &str| {
        text.lines().filter_map(|line| line.rsplit_once(" [")).map(|(_, c)| c.to_owned()).collect::<Vec<_>>()
    };
    let mut expected = codes(&out);
    expected.retain(|code| code != "BV615]");
    let mut found = codes(&from_catalog);
    found.retain(|code| code != "BV615]");
    assert_eq!(found, expected, "{from_catalog}");
    let (_, _, err) = outcome(folder.path(), &["validate", "1.1.0", "--against", "1.1.0/metadata"], "");
    assert!(err.contains("was not compared: 1.1.0/metadata has no package \"rose\""), "{err}");
}

#[test]
fn many_bundles_are_validated_in_one_run() {
    let folder = garden();
    for n in 0..9 {
        write(&folder.path().join(format!("all/{n}")), &CSV.replace("rose.v1.0.0", &format!("Rose{n}")), CRD);
    }
    fs::write(folder.path().join("all/3/manifests/rose.clusterserviceversion.yaml"), "a: [").unwrap();
    let (code, out, err) = outcome(folder.path(), &["validate", "all", "1.0.0"], "");
    assert_eq!(code, 1);
    assert!(err.starts_with("10 bundles: "), "{err}");
    let firsts: Vec<&str> = out.lines().map(|line| line.split("/manifests").next().unwrap()).collect();
    assert!(firsts.is_sorted() && firsts.contains(&"all/3") && firsts.contains(&"all/8"), "{out}");
    assert_eq!(outcome(folder.path(), &["validate", "all", "1.0.0"], "").1, out, "the output is not the same");
    let (_, out, _) = outcome(folder.path(), &["validate", "all", "1.0.0", "-o", "json"], "");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&document["kind"], &document["passed"]), (&"BundleValidation".into(), &false.into()));
    assert_eq!(document["bundles"].as_array().unwrap().len(), 10);
    assert_eq!(document["bundles"][9]["errors"], 0);
    let (_, out, _) = outcome(folder.path(), &["validate", "all", "1.0.0", "-o", "junit"], "");
    assert!(
        out.contains("<testsuite name=\"all/3\"")
            && out.contains("<testcase classname=\"1.0.0\" name=\"no findings\"/>"),
        "{out}"
    );
    let (_, out, _) = outcome(folder.path(), &["validate", "all", "-o", "github"], "");
    assert!(out.contains("::error file=all/0/manifests/rose.clusterserviceversion.yaml,line=4,title=BV101::"), "{out}");
    let (_, out, _) = outcome(folder.path(), &["validate", "all", "-o", "sarif"], "");
    let sarif: Value = serde_json::from_str(&out).unwrap();
    assert!(sarif["runs"][0]["tool"]["driver"]["rules"][0]["help"]["text"].is_string(), "{out}");
}

#[test]
fn a_baseline_omits_known_findings_also_of_the_next_version() {
    let folder = garden();
    let csv = CSV.replace("minKubeVersion: 1.25.0", "minKubeVersion: '1.25'");
    write(&folder.path().join("1.0.0"), &csv, CRD);
    let create = ["validate", "1.0.0", "--baseline", "known.yaml", "--create-baseline"];
    let (code, _, err) = outcome(folder.path(), &create, "");
    assert_eq!((code, err.as_str()), (0, "wrote 1 finding to known.yaml\n"));
    write(&folder.path().join("2.0.0"), &csv.replace("1.0.0", "2.0.0"), CRD);
    let (code, out, err) = outcome(folder.path(), &["validate", "2.0.0", "--baseline", "known.yaml"], "");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "", "1 bundle: no findings, 1 in the baseline\n"));
    let (code, _, err) = outcome(folder.path(), &["validate", "1.1.0", "--baseline", "known.yaml"], "");
    assert_eq!(
        (code, err.as_str()),
        (0, "obsolete in the baseline: BV113 rose/ClusterServiceVersion/NAME\n1 bundle: no findings\n")
    );
}

#[test]
fn the_help_of_validate() {
    let (code, out, _) = outcome(Path::new("."), &["validate", "--help"], "");
    assert_eq!(code, 0);
    insta::assert_snapshot!(out);
}

#[test]
fn the_validators_are_listed() {
    let (code, out, err) = outcome(Path::new("."), &["validate", "--list-optional"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("validators", out);
}

#[test]
fn custom_categories_replace_the_standard_ones() {
    let folder = garden();
    let csv = CSV.replace("  annotations:\n", "  annotations:\n    categories: Roses\n");
    write(&folder.path().join("1.0.0"), &csv, CRD);
    fs::write(folder.path().join("categories.json"), "{\"categories\": [\"Roses\"]}").unwrap();
    let run = |variable: &str| {
        let mut command = super::bundle(&["validate", "1.0.0", "--select-optional", "name=categories"]);
        command.env("OPERATOR_BUNDLE_CATEGORIES", variable).current_dir(folder.path());
        command.output().unwrap().status.code().unwrap()
    };
    assert_eq!((run(""), run("categories.json"), run("missing.json")), (1, 0, 2));
}

#[cfg(unix)]
#[test]
fn links_that_leave_the_bundle_are_not_read() {
    use std::os::unix::fs::symlink;
    let folder = garden();
    let manifests = folder.path().join("1.0.0/manifests");
    fs::write(folder.path().join("secret.yaml"), "password: hunter2\n").unwrap();
    symlink(folder.path().join("secret.yaml"), manifests.join("secret.yaml")).unwrap();
    symlink("rose.clusterserviceversion.yaml", manifests.join("same.yaml")).unwrap();
    symlink("missing.yaml", manifests.join("broken.yaml")).unwrap();
    symlink(folder.path(), manifests.join("up")).unwrap();
    fs::create_dir(manifests.join("sub")).unwrap();
    fs::write(manifests.join(".hidden.yaml"), "a: 1").unwrap();
    let (code, out, _) = outcome(folder.path(), &["validate", "1.0.0"], "");
    assert_eq!(code, 1);
    assert!(!out.contains("hunter2"), "{out}");
    let about =
        |name: &str| out.lines().find(|line| line.starts_with(&format!("1.0.0/manifests/{name}"))).unwrap_or_default();
    assert!(about("secret.yaml").contains("outside of the bundle"), "{out}");
    assert!(about("up").contains("outside of the bundle"), "{out}");
    assert!(about("same.yaml").contains("contains multiple CSVs"), "{out}");
    assert!(about("broken.yaml").contains("cannot be read"), "{out}");
    assert!(about("sub").contains("contains directory"), "{out}");
    assert!(about(".hidden.yaml").contains("hidden file"), "{out}");
    // A bundle may itself be named by a link.
    symlink("1.1.0", folder.path().join("link")).unwrap();
    assert_eq!(outcome(folder.path(), &["validate", "link"], "").2, "1 bundle: no findings\n");
}

#[test]
fn what_is_not_a_bundle_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let (code, out, _) = outcome(folder.path(), &["validate", "empty"], "");
    assert_eq!(code, 1);
    assert!(out.contains("empty: error: Unable to locate manifests directory [BV002]"), "{out}");
    fs::write(folder.path().join("text"), "tea").unwrap();
    let (code, out, _) = outcome(folder.path(), &["validate", "text"], "");
    assert_eq!(code, 1);
    assert!(out.starts_with("text: error: ") && out.contains("[BV017]"), "{out}");
    let (code, _, err) = outcome(folder.path(), &["validate", "-"], "");
    assert_eq!(code, 2);
    assert!(err.contains("- is not a bundle"), "{err}");
}
