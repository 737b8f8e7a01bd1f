//! `kubectl olm take-over`, `hand-back` and `run --take-over` on a real control plane, whose pods run without a kubelet.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::time::Duration;

use olm_core::distribution::transfer::REPLICAS;
use olm_shell::cli::Outcome;
use olm_shell::cli::flags::DryRun;
use olm_shell::olm::install::Mode;
use olm_shell::olm::release::ReleaseFlags;
use olm_shell::olm::{hand_back, take_over};
use olm_shell::run::{self, TakeOver};
use olm_tests::control_plane::skipped;
use serde_json::{Value, json};

use super::olm::{Cluster, CommandResult, TIMEOUT, images, run_captured};

/// The objects of the controllers, without the kind.
const ADDED: [&str; 4] = ["serviceaccount", "clusterrole", "clusterrolebinding", "deployment"];

impl Cluster {
    fn takes_over(&self, change: impl FnOnce(&mut take_over::Options)) -> CommandResult {
        let mut options = take_over::Options {
            cluster: self.flags(),
            images: images("example.com/run:1"),
            allow_changes: false,
            dry_run: DryRun::None,
            yes: true,
            timeout: TIMEOUT,
        };
        change(&mut options);
        run_captured(|printer| take_over::run(&options, printer))
    }

    fn hands_back(&self, change: impl FnOnce(&mut hand_back::Options)) -> CommandResult {
        let mut options = hand_back::Options {
            cluster: self.flags(),
            allow_changes: false,
            dry_run: DryRun::None,
            yes: true,
            timeout: TIMEOUT,
        };
        change(&mut options);
        run_captured(|printer| hand_back::run(&options, printer))
    }

    /// Installs the CRDs.
    fn installs_crds(&self, allow_changes: bool) -> CommandResult {
        let options = run::Options::new(run::Mode::InstallCrds { allow_changes }, self.flags(), "olm");
        run_captured(|printer| run::run(&options, printer))
    }

    /// Runs the controllers until nothing is left to do.
    fn works(&self, take_over: Option<TakeOver>) -> CommandResult {
        let mode = run::Mode::Live {
            once: true,
            timeout: Some(TIMEOUT),
            take_over,
            lease: true,
            metrics: None,
            health: None,
            packages: None,
        };
        let options = run::Options { log_lines: true, ..run::Options::new(mode, self.flags(), "olm") };
        run_captured(|printer| run::run(&options, printer))
    }

    /// Installs upstream OLM, whose controllers are not real, in the state in which real ones would leave it.
    fn has_upstream_olm(&self) {
        let (answer, _, talk) =
            self.installs(self.release("0.1.0"), Mode::Install, |options| options.timeout = Duration::ZERO);
        assert_eq!(answer, Ok(Outcome::Done), "{talk}");
        self.kubectl(&["delete", "catalogsource", "market", "-n", "olm"]);
        self.scales(&[("olm-operator", 0), ("catalog-operator", 0)]);
        let (answer, _, talk) = self.works(None);
        assert_eq!(answer, Ok(Outcome::Done), "{talk}");
        self.scales(&[("olm-operator", 2), ("catalog-operator", 1)]);
    }

    fn scales(&self, replicas: &[(&str, u32)]) {
        for (name, replicas) in replicas {
            let replicas = format!("--replicas={replicas}");
            self.kubectl(&["scale", &format!("deployment/{name}"), "-n", "olm", &replicas]);
        }
    }

    fn has(&self, kind: &str) -> bool {
        let found = self.kubectl(&["get", kind, "kubectl-olm-run", "-n", "olm", "--ignore-not-found", "-o", "name"]);
        !found.is_empty()
    }

    /// Returns replicas and the record of `olm-operator` and `catalog-operator`.
    fn upstream(&self) -> Vec<(Value, Value)> {
        let of = |name| {
            let found = self.kubectl(&["get", "deployment", name, "-n", "olm", "-o", "json"]);
            let deployment: Value = serde_json::from_str(&found).unwrap();
            (deployment["spec"]["replicas"].clone(), deployment["metadata"]["annotations"][REPLICAS].clone())
        };
        ["olm-operator", "catalog-operator"].map(of).to_vec()
    }

    /// Returns the resourceVersions of everything that changes hands.
    fn versions(&self) -> String {
        let kinds = "crds,csv,operatorgroups,subscriptions,operators,olmconfigs,clusterroles,namespaces";
        let format = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}\n{end}";
        let all = self.kubectl(&["get", kinds, "-A", "-o", format]);
        all.lines().filter(|line| !line.contains("/kubectl-olm-run ")).map(|line| format!("{line}\n")).collect()
    }
}

/// What a take-over prints that has failed.
const RESTORED: &str = "deployment.apps/kubectl-olm-run deleted\ndeployment.apps/catalog-operator scaled up again\n\
                        deployment.apps/olm-operator scaled up again\n";

/// The number of replicas and the record of a Deployment that runs.
fn runs(replicas: u32) -> (Value, Value) {
    (json!(replicas), Value::Null)
}

/// The same of a Deployment that is stopped.
fn stopped(replicas: u32) -> (Value, Value) {
    (json!(0), json!(replicas.to_string()))
}

#[test]
fn a_cluster_changes_hands_and_back_without_another_write() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    assert_eq!(cluster.takes_over(|_| {}).0.unwrap_err().message, "OLM is not installed on this cluster");
    assert_eq!(cluster.hands_back(|_| {}).0.unwrap_err().message, "the cluster has no upstream OLM to hand back to");
    cluster.has_upstream_olm();
    let before = cluster.versions();
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);
    let (answer, out, talk) = cluster.hands_back(|_| {});
    assert_eq!((answer, out.as_str()), (Ok(Outcome::Done), ""));
    assert!(talk.ends_with("nothing to hand back\n"), "{talk}");

    // A dry run reads only.
    let (answer, out, talk) = cluster.takes_over(|options| options.dry_run = DryRun::Server);
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(
        out,
        "serviceaccount/kubectl-olm-run created (server dry run)\n\
         clusterrole.rbac.authorization.k8s.io/kubectl-olm-run created (server dry run)\n\
         clusterrolebinding.rbac.authorization.k8s.io/kubectl-olm-run created (server dry run)\n\
         deployment.apps/catalog-operator scaled to zero (server dry run)\n\
         deployment.apps/olm-operator scaled to zero (server dry run)\n\
         deployment.apps/kubectl-olm-run created (server dry run)\n"
    );
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);

    let (answer, out, talk) = cluster.takes_over(|_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert!(
        out.ends_with("deployment.apps/olm-operator scaled to zero\ndeployment.apps/kubectl-olm-run created\n"),
        "{out}"
    );
    assert!(
        talk.ends_with(
            "the controllers of kubectl-olm run in place of upstream OLM v0.1.0 in namespace olm; kubectl olm hand-back returns to it\n"
        ),
        "{talk}"
    );
    assert_eq!(cluster.upstream(), [stopped(2), stopped(1)]);
    assert!(ADDED.iter().all(|kind| cluster.has(kind)));
    let (_, out, talk) = cluster.status(ReleaseFlags::default(), "");
    assert!(
        out.starts_with(
            "OLM: kubectl-olm v0.1.0 in namespace olm\nOLM: upstream OLM v0.1.0 in namespace olm (stopped)\n"
        ),
        "{out}{talk}"
    );
    assert!(!out.contains("Changed") && !out.contains("olm-operator"), "{out}");

    // It can be repeated with another image; an upgrade would replace what belongs to upstream OLM.
    let (answer, out, talk) = cluster.takes_over(|options| options.images = images("example.com/run:2"));
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(out.lines().last(), Some("deployment.apps/kubectl-olm-run configured"), "{out}");
    let upgrade = Mode::Upgrade { downgrade: false };
    let (answer, _, _) = cluster.installs(super::olm::own("example.com/run:3"), upgrade, |_| {});
    assert!(answer.unwrap_err().hints[0].contains("kubectl olm take-over --image IMAGE"));

    // Dry runs foresee what is done, in its order.
    for (image, what) in [("example.com/run:2", "unchanged"), ("example.com/run:3", "configured")] {
        let (_, out, talk) = cluster.takes_over(|options| {
            options.images = images(image);
            options.dry_run = DryRun::Client;
        });
        let expected = format!("deployment.apps/kubectl-olm-run {what} (dry run)");
        assert_eq!(out.lines().last(), Some(expected.as_str()), "{out}{talk}");
        assert_eq!(out.matches(" unchanged (dry run)").count(), if what == "unchanged" { 4 } else { 3 }, "{out}");
    }
    let (_, foreseen, _) = cluster.hands_back(|options| options.dry_run = DryRun::Client);
    let (answer, out, talk) = cluster.hands_back(|_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(foreseen.replace(" (dry run)", ""), out);
    assert_eq!(
        out,
        "deployment.apps/kubectl-olm-run deleted\n\
         deployment.apps/catalog-operator scaled up\n\
         deployment.apps/olm-operator scaled up\n\
         clusterrolebinding.rbac.authorization.k8s.io/kubectl-olm-run deleted\n\
         clusterrole.rbac.authorization.k8s.io/kubectl-olm-run deleted\n\
         serviceaccount/kubectl-olm-run deleted\n"
    );
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);
    assert!(!ADDED.iter().any(|kind| cluster.has(kind)));
    assert_eq!(cluster.versions(), before);
}

#[test]
fn a_take_over_needs_agreement_a_free_lease_and_controllers_that_start() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    cluster.has_upstream_olm();

    // A ClusterServiceVersion that upstream OLM has not processed.
    cluster.creates(&json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v1", "namespace": "olm" },
        "spec": { "displayName": "Rose", "installModes": [{ "type": "OwnNamespace", "supported": true }],
                  "install": { "strategy": "deployment", "spec": { "deployments": [] } } },
    }));
    let refused = |(answer, out, talk): CommandResult, verb: &str| {
        assert_eq!((answer, out.as_str()), (Ok(Outcome::Negative), ""), "{talk}");
        assert!(talk.contains("would update ClusterServiceVersion/olm/rose.v1  (for "), "{talk}");
        assert!(
            talk.contains(&format!(
                "error: cannot {verb}: the controllers of kubectl olm run would change objects at once ("
            )),
            "{talk}"
        );
    };
    refused(cluster.takes_over(|_| {}), "take over");
    refused(cluster.works(Some(TakeOver::default())), "take over");
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);

    // Accepted changes are printed, and confirmed.
    let question = "upstream OLM v0.1.0 in namespace olm, and ";
    for (answer, out, talk) in [
        cluster.works(Some(TakeOver { allow_changes: true, yes: false })),
        cluster.takes_over(|options| (options.allow_changes, options.yes) = (true, false)),
    ] {
        let error = answer.unwrap_err();
        assert!(error.message.starts_with(&format!("Stop {question}")), "{error}");
        assert!(
            error.message.contains(", which changes objects at once (2 writes)? Confirmation is required"),
            "{error}"
        );
        assert!(talk.contains("would update ClusterServiceVersion/olm/rose.v1  (for ") && out.is_empty(), "{talk}");
    }
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);

    // On this machine: the changes are accepted, and made.
    let (answer, _, talk) = cluster.works(Some(TakeOver { allow_changes: true, yes: true }));
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(cluster.upstream(), [stopped(2), stopped(1)]);
    assert_eq!(cluster.kubectl(&["get", "csv", "rose.v1", "-n", "olm", "-o", "jsonpath={.status.phase}"]), "Succeeded");

    // A process that runs elsewhere has to end first.
    let holder = r#"{"spec": {"holderIdentity": "somewhere", "leaseDurationSeconds": 60}}"#;
    cluster.kubectl(&["patch", "lease", "kubectl-olm-run", "-n", "olm", "--type=merge", "-p", holder]);
    for result in [cluster.hands_back(|_| {}), cluster.takes_over(|_| {})] {
        let error = result.0.unwrap_err();
        assert_eq!(
            error.message,
            "another process writes to this cluster: somewhere holds the Lease olm/kubectl-olm-run"
        );
    }
    cluster.kubectl(&["delete", "lease", "kubectl-olm-run", "-n", "olm"]);
    let (answer, out, talk) = cluster.hands_back(|options| options.dry_run = DryRun::Client);
    assert_eq!((answer, out.lines().count()), (Ok(Outcome::Done), 2), "{out}{talk}");
    let (answer, _, talk) = cluster.hands_back(|_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);

    // Pods that never start: upstream OLM runs again, and nothing is left.
    let nodes = cluster.kubectl(&["get", "nodes", "-o", "name"]);
    for node in nodes.lines() {
        cluster.kubectl(&["cordon", node]);
    }
    let (answer, out, talk) = cluster.takes_over(|options| options.timeout = Duration::from_secs(5));
    assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
    assert!(out.contains(RESTORED), "{out}");
    assert!(talk.contains("not ready after 5s\n") && talk.contains("runs as before\n"), "{talk}");
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);
    assert!(!ADDED.iter().any(|kind| cluster.has(kind)));

    // Also if the user may not delete the account and its permissions, which then remain.
    let may = ["get,list,watch,create,update,patch", "delete"].iter().zip(["*.*", "deployments.apps"]);
    for (n, (verbs, resources)) in may.enumerate() {
        let (name, verbs, resources) =
            (format!("bob-{n}"), format!("--verb={verbs}"), format!("--resource={resources}"));
        cluster.kubectl(&["create", "clusterrole", &name, &verbs, &resources]);
        cluster.kubectl(&["create", "clusterrolebinding", &name, &format!("--clusterrole={name}"), "--user=bob"]);
    }
    cluster.kubectl(&["patch", "clusterrole", "bob-0", "--type=json", "-p", r#"[
        {"op": "replace", "path": "/rules/0", "value": {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "create", "update", "patch", "bind", "escalate"]}}
    ]"#]);
    let (answer, out, talk) = cluster.takes_over(|options| {
        options.timeout = Duration::from_secs(5);
        options.cluster.impersonate = Some("bob".to_owned());
    });
    assert_eq!(answer, Ok(Outcome::Negative), "{out}{talk}");
    assert!(out.contains(RESTORED) && talk.contains("permissions of the controllers remain: "), "{out}{talk}");
    assert_eq!(cluster.upstream(), [runs(2), runs(1)]);
}

#[test]
fn tenants_neither_prevent_a_transfer_nor_get_their_objects_changed() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    cluster.has_upstream_olm();
    cluster.kubectl(&["create", "namespace", "aaa"]);
    let of_tenant = |name: &str, labels: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name, "namespace": "aaa", "labels": labels, "annotations": { REPLICAS: "7" } },
            "spec": { "replicas": 0, "selector": { "matchLabels": { "app": name } }, "template": {
                "metadata": { "labels": { "app": name } }, "spec": { "containers": [{ "name": "x", "image": "example.com/x" }] },
            } },
        })
    };
    cluster.creates(&of_tenant("olm-operator", json!({ "app": "olm-operator" })));
    cluster.creates(&of_tenant("evil", json!({ "app": "olm-operator" })));
    cluster.creates(&of_tenant("kubectl-olm-run", json!({ "kubectl-olm/release": "v9.9.9" })));
    cluster.creates(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "kubectl-olm-run", "namespace": "aaa" },
        "spec": { "holderIdentity": "evil", "leaseDurationSeconds": 60 },
    }));
    let all = || {
        cluster.kubectl(&[
            "get",
            "deployments,leases",
            "-n",
            "aaa",
            "-o",
            "jsonpath={.items[*].metadata.uid} {.items[*].spec.replicas}",
        ])
    };
    let before = all();

    // A pod that was evicted remains, also when its Deployment is scaled to zero.
    let pod = cluster.kubectl(&[
        "get",
        "pods",
        "-n",
        "olm",
        "-l",
        "app=olm-operator",
        "-o",
        "jsonpath={.items[0].metadata.name}",
    ]);
    let evicted = r#"{"status": {"phase": "Failed", "reason": "Evicted"}}"#;
    cluster.kubectl(&["patch", "pod", &pod, "-n", "olm", "--subresource=status", "--type=merge", "-p", evicted]);

    let (answer, _, talk) = cluster.takes_over(|_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    let (_, out, _) = cluster.status(ReleaseFlags::default(), "");
    assert!(!out.contains("aaa") && !out.contains("v9.9.9"), "{out}");
    // Another client starts upstream OLM again.
    cluster.scales(&[("olm-operator", 1)]);
    let (_, _, talk) = cluster.status(ReleaseFlags::default(), "");
    assert!(
        talk.contains(
            "the controllers of kubectl-olm are paused while upstream OLM v0.1.0 in namespace olm is running"
        ),
        "{talk}"
    );
    let (answer, _, talk) = cluster.hands_back(|_| {});
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(cluster.upstream(), [runs(1), runs(1)]);
    assert_eq!(all(), before);

    // Only a real OLM prevents the controllers from running.
    cluster.scales(&[("olm-operator", 0), ("catalog-operator", 0)]);
    cluster.kubectl(&["scale", "deployment", "--all", "-n", "aaa", "--replicas=1"]);
    let (answer, _, talk) = cluster.works(None);
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
}

#[test]
fn what_upstream_olm_has_is_not_changed_by_a_catalog_that_is_away_nor_by_crds() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    cluster.has_upstream_olm();
    // A Subscription to a catalog that cannot be read here, in the state in which upstream OLM leaves both.
    cluster.kubectl(&["create", "namespace", "garden"]);
    let olm = |kind: &str, name: &str, namespace: &str, spec: Value| {
        let version = if kind == "OperatorGroup" { "v1" } else { "v1alpha1" };
        json!({
            "apiVersion": format!("operators.coreos.com/{version}"), "kind": kind,
            "metadata": { "name": name, "namespace": namespace }, "spec": spec,
        })
    };
    let address = "away.invalid\u{1b}[2J:50051";
    let of_away = json!({ "name": "rose", "channel": "stable", "source": "away", "sourceNamespace": "olm" });
    cluster.creates(&olm("CatalogSource", "away", "olm", json!({ "sourceType": "grpc", "address": address })));
    cluster.creates(&olm("OperatorGroup", "garden", "garden", json!({})));
    cluster.creates(&olm("Subscription", "rose", "garden", of_away));
    cluster.scales(&[("olm-operator", 0), ("catalog-operator", 0)]);
    let (answer, _, talk) = cluster.works(None);
    assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
    let ready = r#"{"status": {"connectionState": {"lastObservedState": "READY", "address": "away.invalid:50051"}}}"#;
    let unknown = r#"{"status": {"catalogHealth": null}}"#;
    for (what, name, namespace, patch) in
        [("catalogsource", "away", "olm", ready), ("subscription", "rose", "garden", unknown)]
    {
        cluster.kubectl(&["patch", what, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch]);
    }
    cluster.scales(&[("olm-operator", 2), ("catalog-operator", 1)]);

    let (answer, out, talk) = cluster.takes_over(|options| options.dry_run = DryRun::Server);
    assert_eq!(answer, Ok(Outcome::Done), "{out}{talk}");
    assert_eq!(talk.matches("note: catalog olm/away cannot be read: ").count(), 1, "{talk}");
    assert!(talk.contains("; whether it has upgrades was not checked\n") && !talk.contains('\u{1b}'), "{talk:?}");

    // CRDs of upstream OLM stay as they are, also if it is stopped, until that is requested.
    let description = "/spec/versions/0/schema/openAPIV3Schema/description";
    let patch = json!([{ "op": "add", "path": description, "value": "of upstream OLM" }]).to_string();
    cluster.kubectl(&["patch", "crd", "subscriptions.operators.coreos.com", "--type=json", "-p", &patch]);
    cluster.kubectl(&["delete", "crd", "olmconfigs.operators.coreos.com"]);
    let described = || cluster.kubectl(&["get", "crd", "subscriptions.operators.coreos.com", "-o", "yaml"]);
    for replicas in [1, 0] {
        cluster.scales(&[("olm-operator", replicas), ("catalog-operator", replicas)]);
        let before = described();
        let (answer, out, talk) = cluster.installs_crds(false);
        assert_eq!(answer, Ok(Outcome::Done), "{talk}");
        assert!(before.contains("of upstream OLM") && described() == before, "{out}");
        assert!(talk.contains("warning: the cluster has upstream OLM v0.1.0 in namespace olm"), "{talk}");
        assert!(
            talk.contains(" are not updated\nhint: to update them to those of this version, pass --allow-changes"),
            "{talk}"
        );
        let created =
            out.contains("customresourcedefinition.apiextensions.k8s.io/olmconfigs.operators.coreos.com created\n");
        assert_eq!(created, replicas == 1, "{out}");
    }
    let (answer, out, _) = cluster.installs_crds(true);
    assert_eq!(answer, Ok(Outcome::Done), "{out}");
    assert!(!described().contains("of upstream OLM"), "{out}");
}

#[test]
fn transfers_at_the_same_time_lose_nothing() {
    if skipped() {
        return;
    }
    let cluster = Cluster::start();
    cluster.has_upstream_olm();
    for round in 0..3 {
        // The take-over finds upstream OLM stopped, or stops it; the hand-back finds it running or starts it.
        let results = std::thread::scope(|scope| {
            let overs = [0, 1].map(|_| scope.spawn(|| cluster.takes_over(|options| options.allow_changes = true)));
            let backs = [0, 1].map(|_| scope.spawn(|| cluster.hands_back(|options| options.allow_changes = true)));
            [overs, backs].map(|threads| threads.map(|thread| thread.join().unwrap()))
        });
        let text = format!("round {round}: {results:#?}");
        let (answer, _, talk) = cluster.hands_back(|_| {});
        assert_eq!(answer, Ok(Outcome::Done), "{text}\n{talk}");
        assert_eq!(cluster.upstream(), [runs(2), runs(1)], "{text}");
        assert!(!cluster.has("deployment"), "{text}");
    }
}
