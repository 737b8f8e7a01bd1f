//! From an empty cluster to an upgraded operator to a clean cluster. The controllers are those of `kubectl olm run`.

use std::fs;
use std::process::{Command, Stdio};

use olm_core::api::object::{at, kind, list, name, text};
use olm_tests::control_plane::skipped;
use olm_tests::data::repository;
use olm_tests::plugin::binary;
use serde_json::Value;

use super::{MARKET, Script, TIMEOUT};

#[test]
fn a_script_installs_upgrades_and_uninstalls_an_operator() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let controllers = script.controllers();

    // Nothing is created before the installation is agreed to.
    let install = format!("install tea-house@1.0.0 -n shop --create-namespace {MARKET} --timeout {TIMEOUT}");
    let printed: Value = serde_yaml::from_str(&script.succeed(&format!("{install} --dry-run=client -o yaml"))).unwrap();
    let kinds: Vec<&str> = list(&printed, &["items"]).iter().map(kind).collect();
    assert_eq!(kinds, ["Namespace", "OperatorGroup", "Subscription"]);
    assert_eq!(text(&printed["items"][2], &["spec", "startingCSV"]), "tea-house.v1.0.0");
    assert!(script.fail(&install).contains("pass --yes"));
    let misspelt = script.fail(&format!("install tea-hose -n shop --create-namespace --yes {MARKET}"));
    assert!(misspelt.contains("did you mean tea-house?"), "{misspelt}");
    let refused = script.fail(&format!("{install} --yes --if rbac.escalates==false"));
    assert!(refused.contains("the policy does not hold: rbac.escalates==false"), "{refused}");
    assert!(!script.exists("namespace", "shop"));
    assert!(script.fail(&install.replace(" --create-namespace", "")).contains("--create-namespace"));

    // Exactly the requested version is installed, and approved by this command.
    let (_, out, err) = script.operator(&format!("{install} --yes -o json"));
    let installed: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    let subscription = list(&installed, &["items"]).iter().find(|object| kind(object) == "Subscription").unwrap();
    assert_eq!(text(subscription, &["status", "installedCSV"]), "tea-house.v1.0.0");
    assert!(!err.contains("does not do exactly what was shown"), "{err}");
    assert_documented("install", &format!("{err}operator/tea-house installed: tea-house.v1.0.0\n"));
    assert_eq!(script.succeed(&format!("{install} --yes")), "operator/tea-house installed: tea-house.v1.0.0\n");
    let other = script.fail(&format!("install tea-house --channel beta -n shop --yes {MARKET}"));
    assert!(other.contains("has no channel beta; channels: "), "{other}");

    // Two operators that provide the same API in a namespace would fail.
    let conflict = script.fail(&format!(
        "install tea-house -n office --create-namespace --install-mode SingleNamespace=shop --yes {MARKET}"
    ));
    assert!(conflict.contains("tea-house.v1.1.0 would fail: OperatorGroup shop/tea-house also provides"), "{conflict}");
    assert!(!script.exists("namespace", "office"));

    assert_eq!(
        script.succeed(&format!("wait tea-house -n shop --for upgradable --timeout {TIMEOUT}")),
        "operator/tea-house upgradable\n"
    );
    let path = script.succeed(&format!("upgrade tea-house -n shop --path {MARKET}"));
    assert_eq!(path, "operator/tea-house in namespace shop: 1.0.0 -> 1.1.0\n");
    let nowhere = script.fail(&format!("upgrade tea-house -n shop --to >=2.0.0 --yes {MARKET}"));
    assert!(nowhere.contains("versions on the path: 1.1.0"), "{nowhere}");
    let (code, out, err) = script.operator(&format!("upgrade tea-house -n shop --yes --timeout {TIMEOUT} {MARKET}"));
    assert_eq!((code, out.as_str()), (0, "operator/tea-house upgraded to 1.1.0\n"), "{err}");
    assert_documented("upgrade", &format!("{err}{out}"));
    assert_eq!(
        script.succeed(&format!("upgrade --all -A --yes {MARKET}")).lines().count(),
        2,
        "the operator and its dependency are up to date"
    );

    // A Subscription that cannot be resolved ends the wait with the cause.
    let wrong = r#"{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "wrong", "namespace": "shop"},
        "spec": {"name": "tea-house", "channel": "beta", "source": "market", "sourceNamespace": "olm"}}"#;
    let file = script.folder.path().join("wrong.json");
    fs::write(&file, wrong).unwrap();
    script.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    let unresolved = script.fail(&format!("wait wrong -n shop --timeout {TIMEOUT}"));
    assert!(unresolved.contains("wrong cannot continue: "), "{unresolved}");
    script.kubectl(&["delete", "-f", file.to_str().unwrap()]);

    // Custom resources are backed up, and deleted with the definition; the required definition stays.
    let house = r#"{"apiVersion": "tea.example.com/v1", "kind": "TeaHouse", "metadata": {"name": "corner", "namespace": "shop"}, "spec": {}}"#;
    fs::write(&file, house).unwrap();
    script.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    let needed = script.fail("uninstall samovar -n shop --yes");
    assert!(needed.contains("is required by shop/tea-house.v1.1.0"), "{needed}");
    let backup = script.folder.path().join("backup");
    let uninstall = format!("uninstall tea-house -n shop --delete-crds --backup {}", backup.display());
    assert!(script.succeed(&format!("{uninstall} --dry-run")).contains("(dry run)"));
    assert!(script.exists("crd", "teahouses.tea.example.com") && !backup.exists());
    assert_eq!(script.succeed(&format!("{uninstall} --yes")), "operator/tea-house uninstalled\n");
    assert!(!script.exists("crd", "teahouses.tea.example.com"));
    assert!(script.exists("crd", "kettles.tea.example.com"));
    let left = script.kubectl(&["get", "csv,deployments,roles,rolebindings,services", "-n", "shop", "-o", "name"]);
    assert_eq!(left.lines().filter(|line| line.contains("tea-house")).collect::<Vec<_>>(), [""; 0]);
    script.restores(&backup);

    // Without controllers, also what only they delete is deleted.
    drop(controllers);
    assert_eq!(script.succeed("uninstall samovar -n shop --delete-crds --yes"), "operator/samovar uninstalled\n");
    let roles: Value =
        serde_json::from_str(&script.kubectl(&["get", "clusterroles,clusterrolebindings,csv", "-A", "-o", "json"]))
            .unwrap();
    let left =
        list(&roles, &["items"]).iter().filter(|object| !at(object, &["metadata", "labels", "olm.owner"]).is_null());
    assert_eq!(left.map(name).collect::<Vec<_>>(), [""; 0]);
    assert!(script.fail("uninstall samovar -n shop --yes").contains("there is no operator"));
}

/// Asserts that each line that the README shows below a command was printed.
fn assert_documented(command: &str, printed: &str) {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let command = format!("$ kubectl olm operator {command} ");
    let shown = readme.lines().skip_while(|line| !line.starts_with(&command)).skip(1);
    let shown: Vec<&str> = shown.take_while(|line| !line.starts_with("$ ") && !line.starts_with("```")).collect();
    assert!(shown.len() > 2, "{command}");
    let missing = shown.into_iter().filter(|line| *line != "…" && !printed.contains(line));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "{printed}");
}

/// The script of `tests/pipeline.sh`, with the plugins as users type them.
#[test]
fn a_pipeline_installs_upgrades_and_removes_an_operator() {
    if skipped() {
        return;
    }
    let has_jq =
        Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !has_jq {
        eprintln!("skipped: jq is not installed");
        return;
    }
    let script = Script::empty();
    let plugins = binary("kubectl-olm-operator").unwrap();
    for plugin in ["kubectl-olm", "kubectl-olm-run"] {
        assert_eq!(binary(plugin).unwrap().parent(), plugins.parent());
    }
    let kubectl = script.plane.tool("kubectl");
    let folders = [plugins.parent().unwrap(), kubectl.parent().unwrap()].map(|folder| folder.display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.arg("tests/pipeline.sh").arg(script.folder.path()).current_dir(repository()).stdin(Stdio::null());
    let ended = bash.env("PATH", path).env("KUBECONFIG", script.plane.kubeconfig()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let log = fs::read_to_string(script.folder.path().join("controllers.log")).unwrap_or_default();
    assert!(ended.status.success() && out.ends_with("clean\n"), "{out}{err}\n{log}");
}
