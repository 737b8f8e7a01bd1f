//! `kubectl olm operator` from an empty cluster to an upgraded operator to a clean cluster, as a script would use it: without a
//! terminal, by exit codes and JSON. The controllers are those of `kubectl olm run`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};

use olm_core::api::object::{at, kind, list, name, text};
use olm_tests::control_plane::{ControlPlane, skipped};
use olm_tests::data::repository;
use olm_tests::plugin::binary;
use serde_json::Value;
use tempfile::TempDir;

/// Limits a wait, so that a failure ends the test. A wait normally takes seconds.
const TIMEOUT: &str = "3m";

/// The controllers; dropping ends them.
struct Controllers(Child);

impl Drop for Controllers {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Script {
    plane: ControlPlane,
    folder: TempDir,
}

impl Script {
    fn new() -> Self {
        let script = Self { plane: ControlPlane::start().unwrap(), folder: tempfile::tempdir().unwrap() };
        let crds = script.plugin("kubectl-olm-run").arg("--install-crds").output().unwrap();
        assert!(crds.status.success(), "{}", String::from_utf8_lossy(&crds.stderr));
        script.kubectl(&["create", "namespace", "olm"]);
        script
    }

    fn plugin(&self, name: &str) -> Command {
        let mut command = Command::new(binary(name).unwrap());
        command.current_dir(repository()).env("KUBECONFIG", self.plane.kubeconfig()).stdin(Stdio::null());
        command
    }

    fn controllers(&self) -> Controllers {
        let log = File::create(self.folder.path().join("controllers.log")).unwrap();
        let mut run = self.plugin("kubectl-olm-run");
        run.arg(MARKET).stdout(log.try_clone().unwrap()).stderr(log);
        Controllers(run.spawn().unwrap())
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `kubectl olm operator`. Returns exit code, stdout and stderr.
    fn operator(&self, line: &str) -> (i32, String, String) {
        let output = self.plugin("kubectl-olm-operator").args(line.split(' ')).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// Runs it successfully. Returns stdout.
    fn succeed(&self, line: &str) -> String {
        let (code, out, err) = self.operator(line);
        let log = fs::read_to_string(self.folder.path().join("controllers.log")).unwrap_or_default();
        assert_eq!(code, 0, "{line}: {out}{err}\n{log}");
        out
    }

    /// Runs it without success. Returns stderr.
    fn fail(&self, line: &str) -> String {
        let (code, out, err) = self.operator(line);
        assert_eq!(code, 2, "{line}: {out}{err}");
        err
    }

    fn exists(&self, what: &str, name: &str) -> bool {
        self.plane.kubectl(["get", what, name]).output().unwrap().status.success()
    }
}

const MARKET: &str = "--catalog=market=tests/quickstart/catalogs/market";

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
    assert_eq!(
        script.succeed(&format!("upgrade tea-house -n shop --yes --timeout {TIMEOUT} {MARKET}")),
        "operator/tea-house upgraded to 1.1.0\n"
    );
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
    script.kubectl(&["apply", "-R", "-f", backup.to_str().unwrap()]);

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
