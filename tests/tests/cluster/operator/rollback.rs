//! Rollbacks on a real API server: of a finished upgrade, also after an interruption, and those that are refused.

use std::fs;
use std::path::{Path, PathBuf};

use olm_tests::control_plane::skipped;
use olm_tests::data::repository;
use serde_json::{Value, json};

use super::{MARKET, Script, TIMEOUT};

const CRD: &str = "teahouses.tea.example.com";

fn installed(script: &Script) -> String {
    script.kubectl(&["get", "subscription", "tea-house", "-n", "shop", "-o", "jsonpath={.status.installedCSV}"])
}

/// Makes another version of the definition the stored one, as a migration by a newer operator does.
fn store_in(script: &Script, version: &str) {
    let definition: Value = serde_json::from_str(&script.kubectl(&["get", "crd", CRD, "-o", "json"])).unwrap();
    let mut versions = definition["spec"]["versions"].as_array().unwrap().clone();
    if !versions.iter().any(|one| one["name"] == version) {
        let mut new = versions[0].clone();
        new["name"] = version.into();
        versions.push(new);
    }
    for one in &mut versions {
        one["storage"] = (one["name"] == version).into();
    }
    let patch = json!({ "spec": { "versions": versions } }).to_string();
    script.kubectl(&["patch", "crd", CRD, "--type=merge", "-p", &patch]);
}

/// Writes a copy of the catalog of the quickstart with these bundles, whose files `edit` changes.
fn market(script: &Script, name: &str, bundles: &[&str], edit: impl Fn(&str, String) -> String) -> PathBuf {
    let (source, copy) = (repository().join("tests/quickstart/catalogs/market"), script.folder.path().join(name));
    let folders =
        bundles.iter().flat_map(|bundle| ["manifests", "metadata"].map(|part| format!("bundles/{bundle}/{part}")));
    let copy_file = |from: &Path, to: &Path| {
        let file = from.file_name().unwrap().to_str().unwrap();
        let bundle = from.ancestors().nth(2).unwrap().file_name().unwrap().to_str().unwrap();
        let id = if file == "catalog.yaml" { file.to_owned() } else { format!("{bundle}/{file}") };
        fs::write(to, edit(&id, fs::read_to_string(from).unwrap())).unwrap();
    };
    fs::create_dir_all(&copy).unwrap();
    copy_file(&source.join("catalog.yaml"), &copy.join("catalog.yaml"));
    for folder in folders {
        fs::create_dir_all(copy.join(&folder)).unwrap();
        for file in fs::read_dir(source.join(&folder)).unwrap() {
            let file = file.unwrap();
            copy_file(&file.path(), &copy.join(&folder).join(file.file_name()));
        }
    }
    copy
}

#[test]
fn an_upgrade_that_hangs_is_undone() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let bundles = ["tea-house.v1.0.0", "tea-house.v1.1.0", "samovar.v2.3.0"];
    let nowhere = "nodeSelector: { tea: nowhere }\n              containers:\n";
    let market = market(&script, "hanging", &bundles, |file, text| match file {
        "tea-house.v1.1.0/csv.yaml" => text.replace("containers:\n", nowhere),
        _ => text,
    });
    let market = format!("--catalog=market={}", market.display());
    let _controllers = script.controllers_with(&market);
    script.succeed(&format!("install tea-house@1.0.0 -n shop --create-namespace {market} --yes --timeout {TIMEOUT}"));

    // No node fits the pods of the new version, as the command predicts. The time limit is long enough for them to be created.
    let (code, out, err) =
        script.operator(&format!("upgrade tea-house -n shop --yes --allow-failing --timeout 20s {market}"));
    assert_eq!(code, 2, "{out}{err}");
    assert!(err.contains("error: tea-house is not installed after 20s: tea-house.v1.1.0 Installing: "), "{err}");
    let phase = |name: &str| {
        script.kubectl(&["get", "csv", name, "-n", "shop", "--ignore-not-found", "-o", "jsonpath={.status.phase}"])
    };
    assert_eq!((phase("tea-house.v1.0.0").as_str(), phase("tea-house.v1.1.0").as_str()), ("Replacing", "Installing"));
    let (_, out, _) = script.operator("describe tea-house -n shop");
    assert!(out.contains("node affinity/selector"), "{out}");

    let (code, out, err) = script.operator(&format!("rollback tea-house -n shop {market} --yes --timeout {TIMEOUT}"));
    assert_eq!((code, out.as_str()), (0, "operator/tea-house rolled back to tea-house.v1.0.0\n"), "{err}");
    assert_eq!(installed(&script), "tea-house.v1.0.0");
    assert_eq!((phase("tea-house.v1.0.0").as_str(), phase("tea-house.v1.1.0").as_str()), ("Succeeded", ""));
}

#[test]
fn an_upgrade_is_undone_or_refused() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let _controllers = script.controllers();
    let install = format!("install tea-house@1.0.0 -n shop --create-namespace {MARKET} --yes --timeout {TIMEOUT}");
    script.succeed(&install);
    let rollback = format!("rollback tea-house -n shop {MARKET} --timeout {TIMEOUT}");

    // An upgrade that is not approved has changed nothing.
    script.succeed(&format!("wait tea-house -n shop --for upgradable --timeout {TIMEOUT}"));
    let (code, out, err) = script.operator(&format!("{rollback} --yes"));
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("nothing to undo: InstallPlan install-"), "{err}");

    script.succeed(&format!("upgrade tea-house -n shop --yes --timeout {TIMEOUT} {MARKET}"));
    assert_eq!(installed(&script), "tea-house.v1.1.0");
    let house = json!({ "apiVersion": "tea.example.com/v1", "kind": "TeaHouse",
                        "metadata": { "name": "corner", "namespace": "shop" }, "spec": { "tables": 3, "terrace": true } });
    script.applies([house]);

    // A catalog without the old version.
    let lacking = market(&script, "lacking", &["tea-house.v1.1.0", "samovar.v2.3.0"], |file, text| match file {
        "catalog.yaml" => text.replace("- name: tea-house.v1.0.0\n", "").replace("  replaces: tea-house.v1.0.0\n", ""),
        _ => text,
    });
    let refused = script.fail(&format!("rollback tea-house -n shop --catalog market={} --yes", lacking.display()));
    assert!(refused.contains("does not have tea-house.v1.0.0; versions: 1.1.0"), "{refused}");
    let newer = script.fail(&format!("{rollback} --to >=2.0.0 --yes"));
    assert!(newer.contains("does not have a version >=2.0.0"), "{newer}");

    // Objects may be stored in a version that the old definition does not have.
    store_in(&script, "v2");
    let refused = script.fail(&format!("{rollback} --yes"));
    assert!(refused.contains("nothing was rolled back: ") && refused.contains("risk of data loss"), "{refused}");
    assert_eq!(installed(&script), "tea-house.v1.1.0");
    store_in(&script, "v1");
    let stored = json!({ "status": { "storedVersions": ["v1"] } }).to_string();
    script.kubectl(&["patch", "crd", CRD, "--subresource=status", "--type=merge", "-p", &stored]);

    // An object that the schema of the old definition does not allow.
    let minimum = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tables/minimum";
    let versions =
        json!([{ "op": "remove", "path": "/spec/versions/1" }, { "op": "remove", "path": minimum }]).to_string();
    script.kubectl(&["patch", "crd", CRD, "--type=json", "-p", &versions]);
    let tiny = json!({ "apiVersion": "tea.example.com/v1", "kind": "TeaHouse",
                       "metadata": { "name": "tiny", "namespace": "shop" }, "spec": { "tables": 0 } });
    script.applies([tiny]);
    let refused = script.fail(&format!("{rollback} --yes"));
    assert!(refused.contains("nothing was rolled back: ") && refused.contains("spec.tables"), "{refused}");
    script.kubectl(&["delete", "teahouse", "tiny", "-n", "shop"]);

    let losing = script.fail(&format!("{rollback} --yes"));
    assert!(losing.contains("would be lost, of 1 custom resource"), "{losing}");
    let planned: Value = serde_json::from_str(&script.succeed(&format!("{rollback} --dry-run -o json"))).unwrap();
    assert_eq!((&planned["result"], &planned["to"]), (&json!("Planned"), &json!("tea-house.v1.0.0")), "{planned:#}");
    assert!(planned["notUndone"].as_array().unwrap().len() > 1, "{planned:#}");
    assert_eq!(installed(&script), "tea-house.v1.1.0");
    assert!(script.fail(&rollback).contains("pass --yes"));
    if let Some(shown) = script.answers(&rollback, "d\nn\n") {
        assert!(shown.contains("Roll back tea-house from tea-house.v1.1.0 to tea-house.v1.0.0? [y/N/d]"), "{shown}");
        assert!(shown.contains("create ClusterServiceVersion shop/tea-house.v1.0.0"), "{shown}");
        assert!(shown.contains("Total: ") && shown.contains("Nothing was changed"), "{shown}");
    }

    // The session is lost after the new version was deleted.
    let backup = script.folder.path().join("backup");
    let mut lost = script.starts(&format!("{rollback} --yes --backup {}", backup.display()));
    lost.says("deleted ClusterServiceVersion shop/tea-house.v1.1.0");
    lost.kill();
    if let Some(shown) = script.answers(&rollback, "d\nn\n") {
        assert!(shown.contains("Install tea-house.v1.0.0 in namespace shop? [y/N/d]"), "{shown}");
        assert!(shown.contains("create ClusterServiceVersion shop/tea-house.v1.0.0"), "{shown}");
    }
    let (code, out, err) = script.operator(&format!("{rollback} --yes"));
    assert_eq!((code, out.as_str()), (0, "operator/tea-house rolled back to tea-house.v1.0.0\n"), "{err}");
    assert!(err.contains("Continue the rollback from tea-house.v1.1.0 to tea-house.v1.0.0"), "{err}");
    assert_eq!(installed(&script), "tea-house.v1.0.0");
    let spec: Value = serde_json::from_str(&script.kubectl(&[
        "get",
        "subscription",
        "tea-house",
        "-n",
        "shop",
        "-o",
        "jsonpath={.spec}",
    ]))
    .unwrap();
    assert_eq!((&spec["startingCSV"], &spec["installPlanApproval"]), (&json!("tea-house.v1.0.0"), &json!("Manual")));
    let tables = script.kubectl(&["get", "teahouse", "corner", "-n", "shop", "-o", "jsonpath={.spec.tables}"]);
    assert_eq!(tables, "3", "custom resources are retained");
    assert!(backup.join(format!("1-{CRD}/shop.corner.yaml")).exists());
    let operators = script.kubectl(&["get", "operators", "-o", "json"]);
    assert!(!operators.contains("kubectl-olm/rollback"), "{operators}");

    // Nothing is left to undo, and the upgrade waits again.
    assert_eq!(script.operator(&format!("{rollback} --to 1.0.0 --yes")).0, 1);
    // Its plan is approved also where the content of the catalog is not known.
    let out =
        script.succeed(&format!("upgrade tea-house -n shop --yes --accept-risks --allow-failing --timeout {TIMEOUT}"));
    assert_eq!(out, "operator/tea-house upgraded to tea-house.v1.1.0\n");
    assert_eq!(installed(&script), "tea-house.v1.1.0");
}
