//! Approval of bundles from untrusted writers on a real API server: the documented policy approves ordinary changes and refuses
//! far-reaching ones regardless of what a bundle claims, and exactly the approved content is installed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use olm_core::api::crd;
use olm_shell::cli::flags::{ClusterFlags, DryRun, ImageFlags, NamespaceFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{Outcome, Printer};
use olm_shell::image;
use olm_shell::installplan::approve;
use olm_shell::installplan::policy::Terms;
use olm_shell::run::{self, FeatureGates, Mode};
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use olm_tests::images::Image;
use olm_tests::registry::{self, Registry, Setup};
use serde_json::{Value, json};

const NAMESPACE: &str = "garden";

/// The controllers need seconds for a small plan.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Returns the policy of the documentation, verbatim.
fn documented_policy() -> String {
    let page = include_str!("../../../shared/docs/install-plan.md");
    let (_, rest) = page.split_once("approve --all -A --yes --if '").unwrap();
    rest.split_once('\'').unwrap().0.to_owned()
}

fn csv(version: &str, replaces: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": format!("rose.v{version}") },
        "spec": {
            "displayName": "Rose", "version": version, "replaces": replaces,
            "installModes": [{ "type": "OwnNamespace", "supported": true }],
            "install": { "strategy": "deployment", "spec": { "deployments": [{ "name": "rose", "spec": {
                "replicas": 0, "selector": { "matchLabels": { "app": "rose" } },
                "template": { "metadata": { "labels": { "app": "rose" } },
                              "spec": { "containers": [{ "name": "rose", "image": "registry.example.com/rose:1" }] } },
            } }] } },
        },
    })
}

/// Writes a bundle.
fn bundle(catalog: &Path, csv: &Value, others: &[Value]) {
    let folder = catalog.join("bundles").join(csv["metadata"]["name"].as_str().unwrap());
    fs::create_dir_all(folder.join("manifests")).unwrap();
    fs::create_dir_all(folder.join("metadata")).unwrap();
    fs::write(folder.join("manifests/csv.yaml"), csv.to_string()).unwrap();
    for other in others {
        let name = other["metadata"]["name"].as_str().unwrap();
        fs::write(folder.join("manifests").join(format!("{name}.yaml")), other.to_string()).unwrap();
    }
    fs::write(folder.join("metadata/annotations.yaml"), ANNOTATIONS).unwrap();
}

const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  \
    operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
    operators.operatorframework.io.bundle.metadata.v1: metadata/\n  \
    operators.operatorframework.io.bundle.package.v1: rose\n  operators.operatorframework.io.bundle.channels.v1: stable\n";

struct Garden {
    plane: ControlPlane,
    folder: tempfile::TempDir,
    plain_http: Vec<String>,
}

impl Garden {
    fn start(plain_http: Vec<String>) -> Self {
        let plane =
            ControlPlane::start_with(Options { crds: crd::all(), scheduler: false, kwok: false, ..Options::default() })
                .unwrap();
        let garden = Self { plane, folder: tempfile::tempdir().unwrap(), plain_http };
        fs::create_dir(garden.folder.path().join("catalog")).unwrap();
        for object in [
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
            json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                    "metadata": { "name": "garden", "namespace": NAMESPACE }, "spec": { "targetNamespaces": [NAMESPACE] } }),
            json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                    "metadata": { "name": "rose", "namespace": NAMESPACE },
                    "spec": { "name": "rose", "channel": "stable", "source": "main", "sourceNamespace": "olm",
                              "installPlanApproval": "Manual", "startingCSV": "rose.v1.0.0" } }),
        ] {
            let file = garden.folder.path().join("object.json");
            fs::write(&file, object.to_string()).unwrap();
            garden.kubectl(&["apply", "-f", file.to_str().unwrap()]);
        }
        garden
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Replaces the content of the catalog.
    fn offers(&self, blobs: &str, write: impl Fn(&Path)) {
        let catalog = self.folder.path().join("catalog");
        fs::remove_dir_all(&catalog).unwrap();
        fs::create_dir(&catalog).unwrap();
        fs::write(catalog.join("catalog.yaml"), blobs).unwrap();
        write(&catalog);
    }

    fn cluster(&self) -> ClusterFlags {
        ClusterFlags { kubeconfig: Some(self.plane.kubeconfig().to_owned()), ..ClusterFlags::default() }
    }

    fn images(&self) -> ImageFlags {
        ImageFlags { plain_http: self.plain_http.clone(), ..ImageFlags::default() }
    }

    /// Runs the controllers until nothing is left to do except what waits for approval, and returns their output.
    fn work(&self) -> String {
        let catalog = format!("main={}", self.folder.path().join("catalog").display());
        let timeout = Some(TIMEOUT);
        let options = run::Options {
            mode: Mode::Live {
                once: true,
                timeout,
                take_over: None,
                lease: false,
                metrics: None,
                health: None,
                packages: None,
            },
            cluster: self.cluster(),
            namespace: "olm".to_owned(),
            objects_namespace: "default".to_owned(),
            catalogs: vec![catalog.parse().unwrap()],
            catalog_images: Vec::new(),
            bundle_images: Vec::new(),
            catalog_pods: false,
            image_size_limit: None,
            images: self.images(),
            feature_gates: FeatureGates::default(),
            retry_optional: false,
            protected_copied_csv_namespaces: Vec::new(),
            output: None,
            log_lines: true,
        };
        let said = Buffer::default();
        let answer = run::run(&options, &mut Printer::to(said.clone(), said.clone()));
        assert!(answer.is_ok(), "{answer:?} {}", said.text());
        said.text()
    }

    /// Approves the waiting plan with these policies, and returns the result and the complete output.
    fn approve(&self, policies: &[String]) -> (Outcome, String) {
        let options = approve::Options {
            plain_bundles: true,
            cluster: self.cluster(),
            namespaces: NamespaceFlags { namespace: Some(NAMESPACE.to_owned()), all_namespaces: false },
            plans: Vec::new(),
            selector: None,
            terms: Terms { policies: policies.to_vec(), ..Terms::default() },
            yes: true,
            dry_run: DryRun::None,
            wait: None,
            images: image::Options { cache: None, ..self.images().options().unwrap() },
            optional_manifests: false,
        };
        let said = Buffer::default();
        let answer = approve::run(&options, &mut Printer::to(said.clone(), said.clone()));
        (answer.unwrap_or_else(|error| panic!("{error} {}", said.text())), said.text())
    }

    fn get(&self, what: &[&str]) -> Value {
        let arguments = [&["get", "-n", NAMESPACE, "-o", "json"], what].concat();
        serde_json::from_str(&self.kubectl(&arguments)).unwrap()
    }
}

/// Returns a channel with these versions, each replacing the previous one.
fn channel(versions: &[&str]) -> String {
    let mut blobs =
        "schema: olm.package\nname: rose\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: rose\n\
        name: stable\nentries:\n"
            .to_owned();
    for (n, version) in versions.iter().enumerate() {
        blobs += &format!("- name: rose.v{version}\n");
        if n > 0 {
            blobs += &format!("  replaces: rose.v{}\n", versions[n - 1]);
        }
    }
    blobs
}

#[test]
fn the_documented_policy_refuses_a_bundle_that_claims_a_group_of_kubernetes() {
    if skipped() {
        return;
    }
    let garden = Garden::start(Vec::new());
    let (first, second) = (csv("1.0.0", ""), csv("1.0.1", "rose.v1.0.0"));
    garden.offers(&channel(&["1.0.0", "1.0.1"]), |catalog| {
        bundle(catalog, &first, &[]);
        bundle(catalog, &second, &[]);
    });
    garden.work();
    let policy = [documented_policy()];
    // It installs nothing new, and this is not why the attack is refused later.
    let (answer, said) = garden.approve(&policy);
    assert_eq!(answer, Outcome::Negative, "{said}");
    assert_eq!(garden.approve(&[]).0, Outcome::Done);
    garden.work();
    let (answer, said) = garden.approve(&policy);
    assert_eq!(answer, Outcome::Done, "an ordinary upgrade: {said}");
    garden.work();

    let mut evil = csv("1.0.2", "rose.v1.0.1");
    evil["spec"]["customresourcedefinitions"] = json!({ "owned": [
        { "name": "xs.rbac.authorization.k8s.io", "version": "v1", "kind": "X", "displayName": "X" },
    ] });
    evil["spec"]["install"]["spec"]["clusterPermissions"] = json!([{ "serviceAccountName": "default", "rules": [
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["*"] },
    ] }]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "xs.rbac.authorization.k8s.io",
                      "annotations": { "api-approved.kubernetes.io": "unapproved, testing only" } },
        "spec": { "group": "rbac.authorization.k8s.io", "scope": "Namespaced",
            "names": { "kind": "X", "listKind": "XList", "plural": "xs", "singular": "x" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }] },
    });
    garden.offers(&channel(&["1.0.0", "1.0.1", "1.0.2"]), |catalog| {
        bundle(catalog, &first, &[]);
        bundle(catalog, &second, &[]);
        bundle(catalog, &evil, std::slice::from_ref(&definition));
    });
    garden.work();
    let (answer, said) = garden.approve(&policy);
    assert_eq!(answer, Outcome::Negative, "exit code 1: {said}");
    for mark in ["gains privileged permissions", "wildcards", "escalate", "bind"] {
        assert!(said.contains(mark), "no {mark:?} in {said}");
    }
    garden.work();
    assert!(!garden.kubectl(&["get", "clusterrolebindings", "-o", "name"]).contains("rose.v1.0.2"));
    assert!(!garden.kubectl(&["get", "crds", "-o", "name"]).contains("xs.rbac"));
    // A policy also detects a far-reaching effect that is not declared.
    let mut privileged = csv("1.0.2", "rose.v1.0.1");
    privileged["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["hostPID"] = true.into();
    assert!(policy[0].contains("verdict.result == \"safe\""), "{}", policy[0]);
    let told = explained(&garden, &privileged);
    assert_eq!((&told["verdict"]["result"], &told["rbac"]["escalates"]), (&json!("needsDecision"), &json!(false)));
    // A user may permit it explicitly.
    assert_eq!(garden.approve(&["rbac.escalates".to_owned()]).0, Outcome::Done);
}

/// Explains what a bundle would do.
fn explained(garden: &Garden, csv: &Value) -> Value {
    use olm_shell::cli::flags::SourceFlags;
    use olm_shell::installplan::explain::{self, Form, Request};
    let folder = tempfile::tempdir().unwrap();
    bundle(folder.path(), csv, &[]);
    let bundle = folder.path().join("bundles").join(csv["metadata"]["name"].as_str().unwrap());
    let options = explain::Options {
        plain_bundles: true,
        asked: Request::Bundle(bundle.to_str().unwrap().to_owned()),
        source: SourceFlags { cluster: garden.cluster(), ..SourceFlags::default() },
        namespaces: NamespaceFlags { namespace: Some(NAMESPACE.to_owned()), all_namespaces: false },
        on_top: Vec::new(),
        images: image::Options::default(),
        optional_manifests: false,
        dry_run: explain::DryRun::None,
        policies: Vec::new(),
        details: false,
        form: Form::Document("json".parse().unwrap()),
    };
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = explain::run(&options, &mut Printer::to(out.clone(), err.clone()));
    assert!(answer.is_ok(), "{answer:?} {}", err.text());
    serde_json::from_str(&out.text()).unwrap()
}

/// Returns a bundle in an image, too large for an InstallPlan, so that its steps refer to the image.
fn image(letter: &str) -> Image {
    let map = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
                "data": { "text": letter.repeat(700_000) } })
        .to_string()
    };
    let csv = csv("1.0.0", "").to_string();
    let [one, two, three] = ["one", "two", "three"].map(map);
    let files = [
        ("manifests/csv.yaml", csv.as_str()),
        ("manifests/one.yaml", &one),
        ("manifests/two.yaml", &two),
        ("manifests/three.yaml", &three),
        ("metadata/annotations.yaml", ANNOTATIONS),
    ];
    Image::bundle("rose", &files)
}

#[test]
fn content_of_a_tag_moved_after_approval_is_not_installed() {
    if skipped() || registry::skipped() {
        return;
    }
    let registry = Registry::start(Setup::default()).unwrap();
    let garden = Garden::start(vec![registry.host().to_owned()]);
    let reference = format!("{}/garden/rose:1", registry.host());
    let push = |letter: &str| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(image(letter).push(&reference, &[])).unwrap();
    };
    push("a");
    let offered = format!(
        "{}---\nschema: olm.bundle\npackage: rose\nname: rose.v1.0.0\nimage: {reference}\nproperties:\n\
         - {{type: olm.package, value: {{packageName: rose, version: 1.0.0}}}}\n",
        channel(&["1.0.0"])
    );
    garden.offers(&offered, |_| {});
    garden.work();
    let (answer, said) = garden.approve(&[]);
    assert_eq!(answer, Outcome::Done, "{said}");
    let plan = garden.get(&["installplans"])["items"][0].clone();
    let approved = plan["metadata"]["annotations"]["kubectl-olm/approved-content"].as_str().unwrap_or_default();
    let approved: Value = serde_json::from_str(approved).unwrap_or_else(|_| panic!("{plan}"));
    let digest = approved["rose.v1.0.0"].as_str().unwrap();
    // Another writer pushes different content to the same tag.
    push("b");
    let said = garden.work();
    assert!(said.contains(&format!("the approved digest is {digest}")), "{said}");
    assert_eq!(garden.get(&["clusterserviceversions"])["items"], json!([]));
    assert_ne!(garden.get(&["installplans"])["items"][0]["status"]["phase"], "Complete");
    // The plan continues with the approved content.
    push("a");
    garden.work();
    let map = garden.get(&["configmap", "one"]);
    assert!(map["data"]["text"].as_str().unwrap().starts_with('a'));
}
