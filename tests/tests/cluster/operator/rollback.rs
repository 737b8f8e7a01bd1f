//! Rollbacks on a real API server: of a finished upgrade, also after an interruption, and those that are refused.

use std::fs;

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
    let lacking = script.folder.path().join("lacking");
    fs::create_dir_all(&lacking).unwrap();
    let market = repository().join("tests/quickstart/catalogs/market/catalog.yaml");
    let text = fs::read_to_string(market).unwrap().replace("- name: tea-house.v1.0.0\n", "");
    fs::write(lacking.join("catalog.yaml"), text.replace("  replaces: tea-house.v1.0.0\n", "")).unwrap();
    let bundle = "tests/quickstart/catalogs/market/bundles";
    for name in ["tea-house.v1.1.0", "samovar.v2.3.0"] {
        for part in ["manifests", "metadata"] {
            let (from, to) =
                (repository().join(bundle).join(name).join(part), lacking.join("bundles").join(name).join(part));
            fs::create_dir_all(&to).unwrap();
            for file in fs::read_dir(from).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), to.join(file.file_name())).unwrap();
            }
        }
    }
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

    // The session is lost after the new version was deleted.
    let backup = script.folder.path().join("backup");
    let mut lost = script.starts(&format!("{rollback} --yes --backup {}", backup.display()));
    lost.says("deleted ClusterServiceVersion shop/tea-house.v1.1.0");
    lost.kill();
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
    script.succeed(&format!("upgrade tea-house -n shop --yes --timeout {TIMEOUT} {MARKET}"));
    assert_eq!(installed(&script), "tea-house.v1.1.0");
}
