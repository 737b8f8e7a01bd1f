//! Bundles that are run without being published: from directories, OCI layouts and archives, with the objects of the user or generated
//! ones, on clusters of `kubectl olm run` and on those of OLM; and the removal of what was created, also of half of it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use olm_core::api::object::{kind, list, name, text};
use olm_tests::control_plane::skipped;
use olm_tests::data::repository;
use serde_json::{Value, json};

use super::{MARKET, Script, TIMEOUT};

/// The kinds of objects that are created for a bundle.
const KINDS: &str = "catalogsources,configmaps,deployments,services,operatorgroups,subscriptions";

/// Writes version 2.3.0 of the quickstart's bundle, which has no dependencies, as another version.
fn samovar(to: &Path, version: &str) -> String {
    let bundle = to.join(format!("samovar-{version}"));
    for folder in ["manifests", "metadata"] {
        fs::create_dir_all(bundle.join(folder)).unwrap();
        let from = repository().join("tests/quickstart/catalogs/market/bundles/samovar.v2.3.0").join(folder);
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            let text = fs::read_to_string(file.path()).unwrap().replace("2.3.0", version);
            fs::write(bundle.join(folder).join(file.file_name()), text).unwrap();
        }
    }
    bundle.display().to_string()
}

impl Script {
    /// Returns the names of the objects that were created for bundles in the namespace `shop`.
    fn created(&self) -> Vec<String> {
        let out = self.kubectl(&["get", KINDS, "-n", "shop", "-l", "kubectl-olm/run", "-o", "name"]);
        out.lines().map(str::to_owned).collect()
    }

    /// Asserts that nothing is left of an operator in the namespace `shop`, nor of its CustomResourceDefinition.
    fn is_clean(&self, definition: &str) {
        assert_eq!(self.created(), [""; 0]);
        // The permissions of OperatorConditions, which the garbage collector deletes after these.
        self.kubectl(&["wait", "--for=delete", "roles,rolebindings", "--all", "-n", "shop", "--timeout=2m"]);
        let left = self.kubectl(&[
            "get",
            "csv,installplans,deployments,roles,rolebindings,operatorgroups",
            "-n",
            "shop",
            "-o",
            "name",
        ]);
        let left: Vec<&str> = left.lines().collect();
        assert_eq!(left, [""; 0]);
        assert!(!self.exists("crd", definition));
    }
}

#[test]
fn a_bundle_is_run_upgraded_and_cleaned_up() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let _controllers = script.controllers();
    let [first, second] = ["2.3.0", "2.4.0"].map(|version| samovar(script.folder.path(), version));
    let run = format!("run {first} -n shop --create-namespace --timeout {TIMEOUT}");

    for with in ["", " --registry=never"] {
        let forbidden = script.fail(&format!("{run} --as nobody --yes{with}"));
        assert!(forbidden.contains("forbidden"), "{forbidden}");
    }
    // Nothing is created before the installation is agreed to.
    assert!(script.fail(&run).contains("pass --yes"));
    let printed: Value = serde_yaml::from_str(&script.succeed(&format!("{run} --dry-run=client -o yaml"))).unwrap();
    let kinds: Vec<&str> = list(&printed, &["items"]).iter().map(kind).collect();
    assert_eq!(kinds, ["Namespace", "CatalogSource", "ConfigMap", "OperatorGroup", "Subscription"]);
    script.succeed(&format!("{run} --dry-run=server -o name"));
    assert!(!script.exists("namespace", "shop"));
    let none = script.fail(&format!("run {first} -n shop --upgrade --yes"));
    assert!(none.contains("samovar is not installed in namespace shop"), "{none}");

    if let Some(shown) = script.answers(&run, "d\nn\n") {
        assert!(shown.contains("Install samovar.v2.3.0 in namespace shop? [y/N/d]"), "{shown}");
        assert!(shown.contains("create ClusterServiceVersion shop/samovar.v2.3.0"), "{shown}");
        assert!(shown.contains("Nothing was installed") && !script.exists("namespace", "shop"), "{shown}");
    }

    let out = script.succeed(&format!("{run} --yes"));
    assert!(out.contains("catalogsource.operators.coreos.com/samovar-run created\n"), "{out}");
    assert!(out.ends_with("operator/samovar installed: samovar.v2.3.0\n"), "{out}");
    // A repeated command changes nothing; other content is not installed over it.
    let before = script.created();
    assert_eq!(before.len(), 4, "{before:?}");
    assert_eq!(script.succeed(&format!("{run} --yes")), "operator/samovar installed: samovar.v2.3.0\n");
    assert_eq!(script.created(), before);
    let other = script.fail(&format!("run {second} -n shop --yes"));
    assert!(other.contains("samovar is installed in namespace shop already, with other content"), "{other}");
    let older = samovar(script.folder.path(), "2.2.0");
    let older = script.fail(&format!("run {older} -n shop --upgrade --yes"));
    assert!(older.contains("has version 2.2.0, which is not newer than 2.3.0 of samovar.v2.3.0"), "{older}");
    let same = script.succeed(&format!("run {first} -n shop --upgrade --yes"));
    assert_eq!(same, "operator/samovar up to date: 2.3.0\n");

    let upgrade = format!("run {second} -n shop --upgrade --timeout {TIMEOUT}");
    script.succeed(&format!("{upgrade} --dry-run=client"));
    assert_eq!(script.created(), before, "a dry run publishes nothing");
    if let Some(shown) = script.answers(&upgrade, "d\nn\n") {
        assert!(shown.contains("Upgrade samovar to 2.4.0? [y/N/d]") && shown.contains("Total: "), "{shown}");
        assert_eq!(script.created(), before, "{shown}");
    }
    let out = script.succeed(&format!("{upgrade} --yes"));
    assert!(out.ends_with("operator/samovar upgraded to 2.4.0\n"), "{out}");
    let after = script.created();
    assert_eq!(after.len(), 4, "the ConfigMap of the earlier content is deleted: {after:?}");
    assert_ne!(after, before);

    // What another client has created in the namespace is retained.
    script.kubectl(&["create", "configmap", "mine", "-n", "shop"]);
    let unknown = script.fail("cleanup tulip -n shop --yes");
    assert!(unknown.contains("has created nothing for \"tulip\" in namespace shop"), "{unknown}");
    script.succeed("cleanup samovar -n shop --delete-crds --dry-run");
    assert_eq!(script.created(), after);
    assert!(script.fail("cleanup samovar -n shop --delete-crds").contains("pass --yes"));
    let planned = script.succeed("cleanup samovar -n shop --delete-crds --dry-run -o json");
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(
        (&planned["catalogs"][0]["result"], &planned["dryRun"]),
        (&json!("Planned"), &json!(true)),
        "{planned:#}"
    );
    let out = script.succeed("cleanup samovar -n shop --delete-crds --yes -o json");
    let done: Value = serde_json::from_str(&out).unwrap();
    let one = &done["catalogs"][0];
    assert_eq!((&one["result"], &one["catalog"]), (&json!("CleanedUp"), &json!("samovar-run")), "{done:#}");
    let kinds = |of: &Value| list(of, &["deleted"]).iter().map(kind).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(kinds(one), ["ConfigMap", "CatalogSource"], "{done:#}");
    let removed = kinds(&one["removals"][0]);
    for kind in ["Subscription", "ClusterServiceVersion", "CustomResourceDefinition", "OperatorGroup"] {
        assert!(removed.iter().any(|one| one == kind), "{done:#}");
    }
    script.is_clean("kettles.tea.example.com");
    script.kubectl(&["get", "configmap", "mine", "-n", "shop"]);
    assert_eq!(script.succeed("cleanup --all -n shop --yes"), "");

    // A definition that the operator only requires, and the operator that OLM installed for it, are retained.
    let house = "tests/quickstart/catalogs/market/bundles/tea-house.v1.0.0";
    script.succeed(&format!("run ./{house} -n shop {MARKET} --timeout {TIMEOUT} --yes"));
    script.succeed("cleanup tea-house -n shop --delete-crds --yes");
    assert_eq!(script.created().len(), 1, "the OperatorGroup has another member");
    assert!(script.exists("crd", "kettles.tea.example.com") && !script.exists("crd", "teahouses.tea.example.com"));
    let csvs = script.kubectl(&["get", "csv", "-n", "shop", "-o", "name"]);
    assert!(csvs.contains("samovar") && !csvs.contains("tea-house"), "{csvs}");
}

/// A bundle of plain manifests, built into an OCI layout and into an archive.
#[test]
fn images_of_plain_bundles_are_run_from_layouts_and_archives() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let _controllers = script.controllers();
    let folder = script.folder.path();
    let bundle = folder.join("fern");
    for (file, content) in [
        (
            "metadata/olm.yaml",
            "name: fern.v1.0.0\nversion: 1.0.0\ndisplayName: Fern\ndescription: Grows\nminKubeVersion: 1.25.0\nprovider: {name: Garden}\nmaintainers: [{name: Gardener, email: gardener@example.com}]\ninstallModes: [{type: OwnNamespace, supported: true}]\n",
        ),
        (
            "metadata/annotations.yaml",
            "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: k8s+v1\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  operators.operatorframework.io.bundle.metadata.v1: metadata/\n  operators.operatorframework.io.bundle.package.v1: fern\n  operators.operatorframework.io.bundle.channels.v1: stable\n",
        ),
        (
            "manifests/account.yaml",
            "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: fern, namespace: fern-system}\n",
        ),
        (
            "manifests/deployment.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: fern, namespace: fern-system}\nspec:\n  selector: {matchLabels: {app: fern}}\n  template:\n    metadata: {labels: {app: fern}}\n    spec:\n      serviceAccountName: fern\n      containers: [{name: fern, image: registry.example.com/fern:1.0.0}]\n",
        ),
    ] {
        fs::create_dir_all(bundle.join(file).parent().unwrap()).unwrap();
        fs::write(bundle.join(file), content).unwrap();
    }
    let [layout, archive] = ["layout", "fern.tar"].map(|name| folder.join(name).display().to_string());
    for destination in [["--oci-layout", &layout], ["--archive", &archive]] {
        let mut build = script.plugin("kubectl-olm-bundle");
        build.arg("build").arg(&bundle).args(["--tag", "registry.example.com/fern-bundle:1.0.0"]).args(destination);
        let output = build.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    script.kubectl(&["create", "namespace", "shop"]);
    for source in [layout, archive] {
        let out = script.succeed(&format!("run {source} -n shop --timeout {TIMEOUT} --yes"));
        assert!(out.ends_with("operator/fern installed: fern.v1.0.0\n"), "{out}");
        script.kubectl(&["get", "deployment", "fern", "-n", "shop"]);
        script.succeed("cleanup --all -n shop --yes");
        assert_eq!(script.created(), [""; 0]);
    }
}

#[test]
fn supplied_manifests_are_used() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let _controllers = script.controllers();
    let bundle = samovar(script.folder.path(), "2.3.0");
    script.kubectl(&["create", "namespace", "shop"]);
    let manifests = script.folder.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    let group = |targets: Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": { "name": "mine" },
            "spec": { "targetNamespaces": targets },
        })
    };
    let write = |file: &str, object: &Value| fs::write(manifests.join(file), object.to_string()).unwrap();
    write("group.yaml", &group(json!(["a", "b"])));
    write(
        "subscription.yaml",
        &json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": "kettle", "labels": { "team": "tea" } },
            "spec": {
                "name": "samovar", "channel": "stable", "source": "tea", "sourceNamespace": "shop",
                "config": { "env": [{ "name": "HEAT", "value": "95" }] },
            },
        }),
    );
    let run = format!("run {bundle} -n shop --manifests {} --timeout {TIMEOUT} --yes", manifests.display());
    let unfit = script.fail(&run);
    assert!(unfit.contains("the supplied OperatorGroup mine does not fit"), "{unfit}");
    assert_eq!(script.created(), [""; 0]);
    write("group.yaml", &group(json!(["shop"])));
    write(
        "source.yaml",
        &json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": { "name": "tea" },
            "spec": { "sourceType": "grpc", "displayName": "Tea" },
        }),
    );
    let out = script.succeed(&run);
    assert!(out.ends_with("operator/kettle installed: samovar.v2.3.0\n"), "{out}");
    let get = |what: &str, name: &str| -> Value {
        serde_json::from_str(&script.kubectl(&["get", what, name, "-n", "shop", "-o", "json"])).unwrap()
    };
    let subscription = get("subscription", "kettle");
    assert_eq!(text(&subscription, &["spec", "channel"]), "stable");
    assert_eq!(subscription["metadata"]["labels"]["team"], "tea");
    assert_eq!(get("catalogsource", "tea")["spec"]["displayName"], "Tea");
    assert_eq!(get("operatorgroup", "mine")["metadata"]["labels"]["kubectl-olm/compiled-by"], "user");
    let deployments = script.kubectl(&["get", "deployments", "-n", "shop", "-o", "json"]);
    assert!(deployments.contains("HEAT"), "{deployments}");
    // A group that another client created is neither needed nor deleted; this one was created for the bundle.
    script.succeed("cleanup kettle -n shop --delete-crds --yes");
    script.is_clean("kettles.tea.example.com");

    // Objects of other origin are not touched.
    script.applies([json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "samovar-run", "namespace": "shop" },
        "spec": { "sourceType": "grpc", "address": "tea.example.com:50051" },
    })]);
    let taken = script.fail(&format!("run {bundle} -n shop --yes"));
    assert!(taken.contains("CatalogSource samovar-run of namespace shop exists, and does not belong"), "{taken}");
    script.kubectl(&["delete", "catalogsource", "samovar-run", "-n", "shop"]);
    script.applies([json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "samovar", "namespace": "shop" },
        "spec": { "name": "samovar", "channel": "stable", "source": "market", "sourceNamespace": "olm" },
    })]);
    let used = script.fail(&format!("run {bundle} -n shop --yes"));
    assert!(used.contains("Subscription shop/samovar exists, with catalog olm/market"), "{used}");
    let used = script.fail(&format!("run {bundle} -n shop --upgrade --yes"));
    assert!(used.contains("is not installed yet") || used.contains("uses catalog olm/market"), "{used}");
    assert_eq!(script.created(), [""; 0]);
}

/// Where OLM runs the cluster. It does not run here: the objects are created, and the command ends at its time limit.
#[test]
fn a_registry_serves_the_catalog_where_olm_runs_and_half_of_a_run_is_cleaned_up() {
    if skipped() {
        return;
    }
    let script = Script::new();
    let bundle = samovar(script.folder.path(), "2.3.0");
    // The Deployment by which OLM is known, and a namespace that refuses pods with privileges.
    script.kubectl(&["create", "deployment", "olm-operator", "-n", "olm", "--image=example.com/olm", "--replicas=0"]);
    script.kubectl(&["label", "deployment", "olm-operator", "-n", "olm", "app=olm-operator", "--overwrite"]);
    script.kubectl(&["create", "namespace", "shop"]);
    script.kubectl(&["label", "namespace", "shop", "pod-security.kubernetes.io/enforce=restricted"]);
    let run = format!("run {bundle} -n shop --registry-image example.com/opm:v1 --timeout 1s --yes");
    let ended = script.fail(&run);
    assert!(ended.contains("hint: kubectl olm operator cleanup samovar -n shop removes what was created"), "{ended}");
    let items = |what: &str| -> Vec<Value> {
        let out = script.kubectl(&["get", what, "-n", "shop", "-l", "kubectl-olm/run", "-o", "json"]);
        list(&serde_json::from_str(&out).unwrap(), &["items"]).to_vec()
    };
    let kinds: Vec<String> = items(KINDS).iter().map(|object| kind(object).to_owned()).collect();
    assert_eq!(kinds, ["CatalogSource", "ConfigMap", "Deployment", "Service", "OperatorGroup", "Subscription"]);
    let source = &items("catalogsources")[0];
    assert_eq!(text(source, &["spec", "address"]), "samovar-run.shop.svc:50051");
    let service = &items("services")[0];
    assert_eq!(name(service), "samovar-run");
    // The pod is admitted, and mounts the ConfigMap, whose content is the catalog.
    script.kubectl(&[
        "wait",
        "--for=create",
        "pods",
        "-l",
        "kubectl-olm/run=samovar-run",
        "-n",
        "shop",
        "--timeout=2m",
    ]);
    let pod = &items("pods")[0];
    let config_map = &items("configmaps")[0];
    assert_eq!(text(&list(pod, &["spec", "volumes"])[0], &["configMap", "name"]), name(config_map));
    let packed = STANDARD.decode(text(config_map, &["binaryData", "catalog.json.gz"])).unwrap();
    let mut blobs = String::new();
    MultiGzDecoder::new(&packed[..]).read_to_string(&mut blobs).unwrap();
    let schemas: Vec<Value> =
        blobs.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["schema"].clone()).collect();
    assert_eq!(schemas, ["olm.package", "olm.channel", "olm.bundle"]);
    // Also clients outside of the cluster read it.
    let listed = script
        .plugin("kubectl-olm-catalog")
        .args(["list", "samovar", "catalogsource/shop/samovar-run"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("samovar"), "{}", String::from_utf8_lossy(&listed.stderr));

    // A repeated command continues, with another image.
    script.fail(&run.replace("opm:v1", "opm:v2"));
    assert!(items("deployments")[0].to_string().contains("example.com/opm:v2"));

    // Half of it is deleted by another client.
    script.kubectl(&["delete", "subscription", "samovar", "-n", "shop"]);
    script.kubectl(&["delete", "service", "samovar-run", "-n", "shop"]);
    let out = script.succeed("cleanup --all -n shop --yes");
    assert!(out.ends_with("catalogsource/samovar-run cleaned up\n"), "{out}");
    script.is_clean("kettles.tea.example.com");

    // The CatalogSource owns the rest: without the command, the garbage collector deletes it.
    script.fail(&run);
    script.kubectl(&["delete", "catalogsource", "samovar-run", "-n", "shop"]);
    script.kubectl(&[
        "wait",
        "--for=delete",
        "deployments,services,configmaps",
        "-l",
        "kubectl-olm/run",
        "-n",
        "shop",
        "--timeout=2m",
    ]);
    script.succeed("cleanup --all -n shop --yes");
    script.is_clean("kettles.tea.example.com");
}
