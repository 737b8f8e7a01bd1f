//! `kubectl olm install`, `upgrade`, `status` and `uninstall` on a real control plane, whose pods run without a kubelet.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use olm_core::api::crd;
use olm_shell::cli::flags::{ClusterFlags, DryRun, NamespaceFlags};
use olm_shell::cli::output::Output;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::olm::install::{self, Mode};
use olm_shell::olm::release::{ControllerImageFlags, ReleaseFlags};
use olm_shell::olm::{status, uninstall};
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Kubernetes needs seconds to start the pods of a Deployment.
pub(super) const TIMEOUT: Duration = Duration::from_mins(2);

/// The result, standard output and standard error.
pub(super) type CommandResult = (Result<Outcome, CliError>, String, String);

pub(super) fn run_captured(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> CommandResult {
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = run(&mut Printer::to(out.clone(), err.clone()));
    (answer, out.text(), err.text())
}

/// A control plane, and manifests of releases in folders.
pub(super) struct Cluster {
    pub(super) plane: ControlPlane,
    folder: TempDir,
}

impl Cluster {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for version in ["0.1.0", "0.2.0"] {
            let release = folder.path().join(version);
            std::fs::create_dir(&release).unwrap();
            let list =
                |objects: Vec<Value>| json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string();
            std::fs::write(release.join("crds.yaml"), list(crd::all())).unwrap();
            std::fs::write(release.join("olm.yaml"), list(manifests(version))).unwrap();
        }
        Self { plane: ControlPlane::start_with(Options::default()).unwrap(), folder }
    }

    pub(super) fn flags(&self) -> ClusterFlags {
        ClusterFlags { kubeconfig: Some(self.plane.kubeconfig().to_owned()), ..ClusterFlags::default() }
    }

    pub(super) fn release(&self, version: &str) -> ReleaseFlags {
        ReleaseFlags { from: vec![self.path(version).display().to_string()], ..ReleaseFlags::default() }
    }

    fn path(&self, version: &str) -> PathBuf {
        self.folder.path().join(version)
    }

    pub(super) fn installs(
        &self,
        release: ReleaseFlags,
        mode: Mode,
        change: impl FnOnce(&mut install::Options),
    ) -> CommandResult {
        let mut options = install::Options {
            cluster: self.flags(),
            release,
            mode,
            crds_only: false,
            dry_run: DryRun::None,
            timeout: TIMEOUT,
            output: Output::Table,
        };
        change(&mut options);
        run_captured(|printer| install::run(&options, printer))
    }

    pub(super) fn status(&self, release: ReleaseFlags, output: &str) -> CommandResult {
        let options = status::Options {
            cluster: self.flags(),
            release,
            namespaces: NamespaceFlags { namespace: None, all_namespaces: true },
            output: output.parse().unwrap(),
        };
        run_captured(|printer| status::run(&options, printer))
    }

    pub(super) fn uninstalls(&self, change: impl FnOnce(&mut uninstall::Options)) -> CommandResult {
        let mut options = uninstall::Options {
            cluster: self.flags(),
            delete_user_objects: false,
            keep_crds: false,
            dry_run: DryRun::None,
            yes: true,
            timeout: TIMEOUT,
        };
        change(&mut options);
        run_captured(|printer| uninstall::run(&options, printer))
    }

    pub(super) fn creates(&self, object: &Value) {
        let file = self.path("object.json");
        std::fs::write(&file, object.to_string()).unwrap();
        self.kubectl(&["create", "-f", file.to_str().unwrap()]);
    }

    pub(super) fn kubectl(&self, words: &[&str]) -> String {
        let output = self.plane.kubectl(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Does what the controllers do: the package server succeeds.
    fn package_server_succeeds(&self) {
        let succeeded = r#"{"status": {"phase": "Succeeded"}}"#;
        self.kubectl(&[
            "patch",
            "csv",
            "packageserver",
            "-n",
            "olm",
            "--subresource=status",
            "--type=merge",
            "-p",
            succeeded,
        ]);
    }
}

/// Manifests as those of upstream OLM.
fn manifests(version: &str) -> Vec<Value> {
    let olm = "operators.coreos.com";
    let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let deployment = |name: &str| {
        let labels = json!({ "app": name });
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name, "namespace": "olm", "labels": labels },
            "spec": {
                "replicas": 1, "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": "olm-operator-serviceaccount",
                        "containers": [{ "name": name, "image": format!("example.com/olm:{version}"), "args": ["--namespace", "olm"] }],
                    },
                },
            },
        })
    };
    vec![
        deployment("olm-operator"),
        deployment("catalog-operator"),
        namespace("olm"),
        namespace("operators"),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": { "name": "olm-operator-serviceaccount", "namespace": "olm" } }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "system:controller:operator-lifecycle-manager" },
            "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": "olm-operator-binding-olm" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                         "name": "system:controller:operator-lifecycle-manager" },
            "subjects": [{ "kind": "ServiceAccount", "name": "olm-operator-serviceaccount", "namespace": "olm" }],
        }),
        json!({ "apiVersion": format!("{olm}/v1"), "kind": "OperatorGroup",
                "metadata": { "name": "olm-operators", "namespace": "olm" }, "spec": { "targetNamespaces": ["olm"] } }),
        json!({
            "apiVersion": format!("{olm}/v1alpha1"), "kind": "ClusterServiceVersion",
            "metadata": { "name": "packageserver", "namespace": "olm", "labels": { "olm.version": version } },
            "spec": {
                "displayName": "Package Server", "version": version,
                "installModes": [{ "type": "OwnNamespace", "supported": true }],
                "install": { "strategy": "deployment", "spec": { "deployments": [] } },
            },
        }),
        json!({ "apiVersion": format!("{olm}/v1alpha1"), "kind": "CatalogSource",
                "metadata": { "name": "market", "namespace": "olm" },
                "spec": { "sourceType": "grpc", "image": "example.com/market:1", "displayName": "Market", "publisher": "tea" } }),
    ]
}

pub(super) fn own(image: &str) -> ReleaseFlags {
    ReleaseFlags { images: images(image), ..ReleaseFlags::default() }
}

pub(super) fn images(image: &str) -> ControllerImageFlags {
    ControllerImageFlags { image: Some(image.to_owned()), ..ControllerImageFlags::default() }
}

fn upgrade() -> Mode {
    Mode::Upgrade { downgrade: false }
}

fn lines(text: &str, suffix: &str) -> usize {
    text.lines().filter(|line| line.ends_with(suffix)).count()
}

#[test]
fn upstream_olm_is_installed_upgraded_and_reported() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    let nothing = || ReleaseFlags::default();

    // Before: nothing is there, and nothing can be upgraded.
    let (answer, out, talk) = cluster.status(nothing(), "");
    assert_eq!((answer, out.as_str()), (Ok(Outcome::Negative), "OLM: not installed\n"), "{talk}");
    for release in [cluster.release("0.2.0"), nothing()] {
        let (answer, _, _) = cluster.installs(release, upgrade(), |_| {});
        assert_eq!(answer.unwrap_err().message, "OLM is not installed on this cluster");
    }

    // A dry run changes nothing; the client's connects to no cluster and prints manifests.
    let (answer, out, talk) =
        cluster.installs(cluster.release("0.1.0"), Mode::Install, |options| options.dry_run = DryRun::Server);
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(
        (lines(&out, " created (server dry run)"), lines(&out, "is missing (server dry run)")),
        (12, 6),
        "{out}"
    );
    let (answer, out, _) = cluster.installs(cluster.release("0.1.0"), Mode::Install, |options| {
        options.dry_run = DryRun::Client;
        options.output = Output::Yaml;
        options.cluster = ClusterFlags { kubeconfig: Some(Path::new("/none").to_owned()), ..ClusterFlags::default() };
    });
    assert_eq!(
        (answer, out.matches(" kubectl-olm/release: v0.1.0\n").count() > 10),
        (Ok(Outcome::Done), true),
        "{out}"
    );
    assert!(!cluster.kubectl(&["get", "namespaces", "-o", "name"]).contains("namespace/olm"));

    // CRDs, then everything else; the package server never succeeds, because no controllers run.
    let (answer, out, talk) = cluster.installs(nothing(), Mode::Install, |options| options.crds_only = true);
    assert_eq!((answer, lines(&out, " created")), (Ok(Outcome::Done), 9), "{out}{talk}");
    // Controllers that hold the Lease would write at the same time, or prevent others from starting.
    cluster.creates(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "kubectl-olm-run", "namespace": "olm" },
        "spec": { "holderIdentity": "desk_1_0a", "leaseDurationSeconds": 60 },
    }));
    for release in [cluster.release("0.1.0"), own("example.com/run:1")] {
        let error = cluster.installs(release, Mode::Install, |_| {}).0.unwrap_err();
        assert!(error.message.ends_with("desk_1_0a holds the Lease olm/kubectl-olm-run"), "{error}");
        assert!(error.hints[0].starts_with("stop it: "), "{error}");
    }
    cluster.kubectl(&["delete", "lease", "kubectl-olm-run", "-n", "olm"]);
    let (answer, out, talk) =
        cluster.installs(cluster.release("0.1.0"), Mode::Install, |options| options.timeout = Duration::ZERO);
    assert_eq!((answer, lines(&out, " created")), (Ok(Outcome::Done), 9), "{out}{talk}");
    let (answer, _, talk) =
        cluster.installs(cluster.release("0.1.0"), Mode::Install, |options| options.timeout = Duration::from_secs(2));
    assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
    assert!(talk.contains("clusterserviceversion/packageserver: no controller has processed it\n"), "{talk}");
    assert!(talk.contains("error: OLM is not ready after 2s\nhint: run the command again"), "{talk}");
    assert_eq!(talk.matches("CustomResourceDefinitions of OLM").count(), 0, "{talk}");
    // A client dry run compares with the cluster.
    let (answer, out, _) =
        cluster.installs(cluster.release("0.1.0"), Mode::Install, |options| options.dry_run = DryRun::Client);
    assert_eq!((answer, lines(&out, " unchanged (dry run)")), (Ok(Outcome::Done), 18), "{out}");
    cluster.package_server_succeeds();
    let (answer, out, talk) = cluster.installs(cluster.release("0.1.0"), Mode::Install, |_| {});
    assert_eq!((answer, lines(&out, " unchanged")), (Ok(Outcome::Done), 18), "{out}{talk}");
    assert!(talk.ends_with(
        "upstream OLM v0.1.0 is installed; kubectl olm status shows its objects, and kubectl olm catalog list what it offers\n"
    ), "{talk}");

    // Another release or distribution is refused, and so are other CRDs.
    for (release, crds_only, hint) in [
        (cluster.release("0.2.0"), false, "to change its version: kubectl olm upgrade --version v0.2.0"),
        (own("example.com/run:1"), false, "to run the controllers of kubectl-olm in its place: "),
        (nothing(), true, "it has its CRDs, "),
    ] {
        let (answer, out, _) = cluster.installs(release, Mode::Install, |options| options.crds_only = crds_only);
        let error = answer.unwrap_err();
        assert_eq!(
            (error.message.as_str(), out.as_str()),
            ("OLM is already installed: upstream OLM v0.1.0 in namespace olm", "")
        );
        assert!(error.hints[0].starts_with(hint), "{error:?}");
    }

    // The status compares with manifests, and shows the operators.
    let (answer, out, talk) = cluster.status(cluster.release("0.1.0"), "");
    assert_eq!(answer, Ok(Outcome::Done), "{out}{talk}");
    assert!(out.starts_with("OLM: upstream OLM v0.1.0 in namespace olm\nObjects: 18 present\n\nCatalogs:\n"), "{out}");
    assert!(out.contains("\nCatalogSource   olm         market   Present"), "{out}");
    assert!(out.contains("\nOperators in all namespaces:\n") && out.contains("packageserver"), "{out}");
    cluster.kubectl(&["scale", "deployment/olm-operator", "-n", "olm", "--replicas=0"]);
    cluster.kubectl(&["label", "namespace/operators", "tea=green"]);
    let (_, out, _) = cluster.status(cluster.release("0.2.0"), "json");
    let document: Value = serde_json::from_str(&out).unwrap();
    let objects = document["objects"].as_array().unwrap();
    let of = |name: &str| objects.iter().find(|object| object["name"] == name).unwrap();
    assert_eq!((&of("operators")["state"], &of("olm-operator")["state"]), (&json!("Present"), &json!("Unhealthy")));
    assert_eq!(of("olm-operator")["message"], "it is scaled to zero");
    assert_eq!(
        (&of("catalog-operator")["state"], &of("catalog-operator")["message"]),
        (&json!("Changed"), &json!("spec.template.spec.containers[0].image differs from the manifest"))
    );

    // The upgrade replaces the images, also of a Deployment that was scaled; a downgrade is refused.
    let (answer, out, talk) = cluster.installs(cluster.release("0.2.0"), upgrade(), |_| {});
    assert_eq!((answer, lines(&out, " configured")), (Ok(Outcome::Done), 18), "{out}{talk}");
    let (answer, _, _) = cluster.installs(cluster.release("0.1.0"), upgrade(), |_| {});
    assert_eq!(answer.unwrap_err().message, "v0.1.0 is older than the installed v0.2.0");
    let (answer, _, talk) = cluster.installs(cluster.release("0.1.0"), Mode::Upgrade { downgrade: true }, |_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
}

#[test]
fn olm_is_removed_with_a_stuck_api_and_a_namespace_that_hangs() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    assert_eq!(cluster.uninstalls(|_| {}).2, "OLM is not installed: nothing to remove\n");
    let (answer, _, talk) =
        cluster.installs(cluster.release("0.1.0"), Mode::Install, |options| options.timeout = Duration::ZERO);
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");

    // What the controllers create: a finalizer, an APIService without a server, and permissions.
    let finalizers = r#"{"metadata": {"finalizers": ["operators.coreos.com/csv-cleanup"]}}"#;
    cluster.kubectl(&["patch", "csv", "packageserver", "-n", "olm", "--type=merge", "-p", finalizers]);
    cluster.creates(&json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.packages.operators.coreos.com" },
        "spec": { "group": "packages.operators.coreos.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
                  "insecureSkipTLSVerify": true, "service": { "name": "none", "namespace": "olm" } },
    }));
    cluster.creates(&json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": "packageserver-abc", "labels": { "olm.owner": "packageserver" } },
    }));
    // What users have: an operator, an object that another program has to release, and a custom resource.
    cluster.creates(&json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v1", "namespace": "default" },
        "spec": { "displayName": "Rose", "install": { "strategy": "deployment", "spec": { "deployments": [] } } },
    }));
    cluster.creates(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "tea", "namespace": "olm", "finalizers": ["tea.example.com/keep"] },
    }));

    let (answer, out, talk) = cluster.uninstalls(|_| {});
    assert_eq!((answer, out.as_str()), (Ok(Outcome::Negative), ""), "{talk}");
    assert!(talk.contains("clusterserviceversion.operators.coreos.com/rose.v1 in namespace default\n"), "{talk}");
    assert!(talk.contains("error: OLM is in use: 1 objects"), "{talk}");
    let (answer, _, _) = cluster.uninstalls(|options| {
        options.delete_user_objects = true;
        options.yes = false;
    });
    assert!(answer.unwrap_err().message.ends_with(
        "1 of which are of users: their operators stop? Confirmation is required, and stdin is not a terminal"
    ));
    let (answer, plan, talk) = cluster.uninstalls(|options| {
        options.delete_user_objects = true;
        options.dry_run = DryRun::Server;
    });
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert!(plan.starts_with("clusterserviceversion.operators.coreos.com/"), "{plan}");
    assert!(plan.ends_with("/subscriptions.operators.coreos.com deleted (server dry run)\n"), "{plan}");
    assert!(cluster.kubectl(&["get", "crds", "-o", "name"]).contains("subscriptions.operators.coreos.com"));

    let (answer, plan, talk) = cluster.uninstalls(|options| options.dry_run = DryRun::Client);
    assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
    assert!(plan.ends_with("/subscriptions.operators.coreos.com deleted (dry run)\n"), "{plan}");
    assert!(talk.contains("error: OLM is in use: 1 objects"), "{talk}");

    // The namespace hangs; the finalizer is named, and everything before it is deleted.
    let (answer, out, talk) = cluster.uninstalls(|options| {
        options.delete_user_objects = true;
        options.timeout = Duration::from_secs(40);
    });
    assert_eq!(answer, Ok(Outcome::Negative), "{out}{talk}");
    assert!(talk.contains("namespace/olm still exists: "), "{talk}");
    assert!(talk.contains("tea.example.com/keep in 1 resource instances"), "{talk}");
    assert!(talk.contains("error: OLM is not removed after 40s\nhint: "), "{talk}");
    assert!(!cluster.kubectl(&["get", "apiservices", "-o", "name"]).contains("packages.operators.coreos.com"));
    let (answer, _, _) = cluster.installs(cluster.release("0.1.0"), Mode::Install, |_| {});
    assert_eq!(answer.unwrap_err().message, "namespace olm is being deleted");

    // The same command continues, and proves that nothing is left.
    cluster.kubectl(&[
        "patch",
        "configmap",
        "tea",
        "-n",
        "olm",
        "--type=merge",
        "-p",
        r#"{"metadata": {"finalizers": null}}"#,
    ]);
    let (answer, out, talk) = cluster.uninstalls(|_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{out}{talk}");
    assert!(talk.ends_with("OLM is removed: nothing is left of it\n"), "{talk}");
    let left = cluster.kubectl(&["get", "namespaces,crds,clusterroles,clusterrolebindings,apiservices", "-o", "name"]);
    for name in ["olm", "operators.coreos.com", "packageserver", "operator-lifecycle-manager", "namespace/operators"] {
        assert!(!left.lines().any(|line| line.contains(name)), "{name}: {left}");
    }
    assert_eq!(cluster.status(ReleaseFlags::default(), "").1, "OLM: not installed\n");
}
