//! `kubectl olm install-plan` on a real API server: reading changes nothing, an approval is bound to the explained plan, and
//! missing permissions are reported.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use olm_core::api::crd;
use olm_shell::cli::flags::{ClusterFlags, DryRun, ImageFlags, NamespaceFlags, OutputFlags, SourceFlags};
use olm_shell::cli::list::ListFlags;
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::image;
use olm_shell::installplan::approve;
use olm_shell::installplan::explain::{self, Form, Request};
use olm_shell::installplan::list;
use olm_shell::installplan::policy::Terms;
use olm_shell::installplan::wait::{self, Target, Until};
use olm_shell::run::{self, CatalogDirectory, FeatureGates, Mode};
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use serde_json::{Value, json};
use tempfile::TempDir;

const NAMESPACE: &str = "old-town";
/// The controllers need seconds for a small plan.
const TIMEOUT: Duration = Duration::from_mins(2);

/// A user with a kubeconfig.
struct User(PathBuf);

/// The result, standard output and standard error.
type CommandResult = (Result<Outcome, CliError>, String, String);

fn run_captured(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> CommandResult {
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = run(&mut Printer::to(out.clone(), err.clone()));
    (answer, out.text(), err.text())
}

impl User {
    fn cluster(&self) -> ClusterFlags {
        ClusterFlags { kubeconfig: Some(self.0.clone()), ..ClusterFlags::default() }
    }

    fn namespaces() -> NamespaceFlags {
        NamespaceFlags { namespace: Some(NAMESPACE.to_owned()), all_namespaces: false }
    }

    fn source(&self) -> SourceFlags {
        SourceFlags { cluster: self.cluster(), ..SourceFlags::default() }
    }

    fn lists(&self, pending: bool, output: &str) -> CommandResult {
        let (source, namespaces) = (self.source(), Self::namespaces());
        let list = ListFlags { output: OutputFlags { output: output.parse().unwrap() }, ..ListFlags::default() };
        let options = list::Options { source, namespaces, names: Vec::new(), pending, list };
        run_captured(|printer| list::run(&options, printer))
    }

    fn asks(&self, what: Request) -> CommandResult {
        self.asks_in(NAMESPACE, what)
    }

    fn asks_in(&self, namespace: &str, what: Request) -> CommandResult {
        let options = explain::Options {
            plain_bundles: true,
            asked: what,
            source: self.source(),
            namespaces: NamespaceFlags { namespace: Some(namespace.to_owned()), all_namespaces: false },
            on_top: Vec::new(),
            images: image::Options::of_user(),
            optional_manifests: false,
            dry_run: explain::DryRun::default(),
            policies: Vec::new(),
            details: false,
            form: Form::Document("json".parse().unwrap()),
        };
        run_captured(|printer| explain::run(&options, printer))
    }

    /// Explains the plan.
    fn explains(&self, plan: &str) -> Value {
        let (answer, text, talk) = self.asks(Request::Plans(vec![plan.to_owned()]));
        assert!(answer.is_ok(), "{answer:?} {talk}");
        serde_json::from_str(&text).unwrap()
    }

    fn approval(&self, plan: &str, terms: Terms) -> approve::Options {
        approve::Options {
            plain_bundles: true,
            cluster: self.cluster(),
            namespaces: Self::namespaces(),
            plans: vec![plan.to_owned()],
            selector: None,
            terms,
            yes: true,
            dry_run: DryRun::None,
            wait: None,
            images: image::Options::of_user(),
            optional_manifests: false,
        }
    }

    fn approves(&self, plan: &str, terms: Terms) -> CommandResult {
        let options = self.approval(plan, terms);
        run_captured(|printer| approve::run(&options, printer))
    }

    fn waits(&self, of: Target, until: Until, timeout: Duration) -> CommandResult {
        let namespace = Some(NAMESPACE.to_owned());
        let options = wait::Options { cluster: self.cluster(), namespace, of, until, timeout, json: true };
        run_captured(|printer| wait::run(&options, printer))
    }
}

/// A policy that forbids creating Deployments.
const GATE: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: gate }
spec:
  matchConstraints:
    resourceRules:
    - { apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments] }
  validations:
  - { expression: "false", message: no new houses }
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: gate }
spec: { policyName: gate, validationActions: [Deny] }
"#;

fn write_down(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let file = folder.path().join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// Runs the controllers until nothing is left to do except what waits for approval.
fn work(kubeconfig: &Path) {
    let market = concat!(env!("CARGO_MANIFEST_DIR"), "/quickstart/catalogs/market");
    let options = run::Options {
        mode: Mode::Live {
            once: true,
            timeout: None,
            take_over: None,
            lease: false,
            metrics: None,
            health: None,
            packages: None,
        },
        cluster: ClusterFlags { kubeconfig: Some(kubeconfig.to_owned()), ..ClusterFlags::default() },
        namespace: "olm".to_owned(),
        objects_namespace: "default".to_owned(),
        catalogs: vec![format!("market={market}").parse::<CatalogDirectory>().unwrap()],
        catalog_images: Vec::new(),
        bundle_images: Vec::new(),
        catalog_pods: false,
        image_size_limit: None,
        images: ImageFlags::default(),
        feature_gates: FeatureGates::default(),
        retry_optional: false,
        protected_copied_csv_namespaces: Vec::new(),
        output: None,
        log_lines: true,
    };
    let (answer, _, talk) = run_captured(|printer| run::run(&options, printer));
    assert!(answer.is_ok(), "{answer:?} {talk}");
}

/// Returns the plan that waits for approval.
fn pending(user: &User) -> String {
    let (answer, text, talk) = user.lists(true, "name");
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    text.trim_end().strip_prefix("installplan/").unwrap_or_else(|| panic!("{text}")).to_owned()
}

fn policy(text: &str) -> Terms {
    Terms { policies: vec![text.to_owned()], ..Terms::default() }
}

#[test]
fn plans_are_listed_explained_approved_and_awaited() {
    if skipped() {
        return;
    }
    let plane = ControlPlane::start_with(Options { crds: crd::all(), ..Options::default() }).unwrap();
    let kubectl = |arguments: &[&str]| {
        let output = plane.kubectl(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let cluster = include_str!("../../quickstart/cluster.yaml");
    let cluster = cluster.replace("installPlanApproval: Automatic", "installPlanApproval: Manual");
    let file = write_down(&folder, "cluster.yaml", &cluster);
    kubectl(&["apply", "-f", file.to_str().unwrap()]);
    work(plane.kubeconfig());

    let admin = User(plane.kubeconfig().to_owned());
    let first = pending(&admin);
    let (_, table, _) = admin.lists(false, "");
    assert!(table.contains("Manual     RequiresApproval") && table.contains("waits for approval"), "{table}");

    // A user with read permissions can explain, which changes nothing.
    kubectl(&["create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=*.*"]);
    kubectl(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=reader"]);
    kubectl(&[
        "create",
        "role",
        "plans",
        "-n",
        NAMESPACE,
        "--verb=get,list,watch",
        "--resource=installplans.operators.coreos.com",
    ]);
    kubectl(&["create", "rolebinding", "plans", "-n", NAMESPACE, "--role=plans", "--user=clerk"]);
    let everything =
        "installplans,subscriptions,clusterserviceversions,crd,serviceaccounts,roles,rolebindings,secrets,configmaps";
    let all = || kubectl(&["get", everything, "-A", "-o", "json"]);
    let before = all();
    let reader = User(plane.kubeconfig_for("reader", None).unwrap());
    let read = reader.explains(&first);
    let hash = read["hash"].as_str().unwrap().to_owned();
    assert!(read["dryRun"]["sent"] == false && read["dryRun"]["refused"] == json!([]), "{}", read["dryRun"]);
    let message = read["dryRun"]["message"].as_str().unwrap();
    assert!(message.starts_with("not allowed to create ") && message.ends_with(" more"), "{message}");

    // With write permissions, a dry run on the API server reports more, and stores nothing.
    let tried = admin.explains(&first);
    assert_eq!((&tried["hash"], &tried["verdict"]["result"]), (&read["hash"], &read["verdict"]["result"]));
    let dry_run = &tried["dryRun"];
    assert!(dry_run["accepted"].as_u64().unwrap() > 5 && dry_run["refused"] == json!([]), "{dry_run}");
    assert_eq!(dry_run["message"], "");
    let of = |told: &Value, kind: &str| {
        let mut objects = told["objects"].as_array().unwrap().iter();
        objects.find(|o| o["kind"] == kind).unwrap_or_else(|| panic!("no {kind}")).clone()
    };
    assert_eq!(of(&read, "Deployment"), of(&tried, "Deployment"), "the copy knows what the server sets");
    kubectl(&["apply", "-f", write_down(&folder, "gate.yaml", GATE).to_str().unwrap()]);
    let probe = ["create", "deployment", "probe", "--image=example.com/probe", "-n", NAMESPACE, "--dry-run=server"];
    let began = Instant::now();
    while plane.kubectl(probe).output().unwrap().status.success() {
        assert!(began.elapsed() < TIMEOUT, "the gate does not close");
    }
    let refused = admin.explains(&first);
    assert_eq!((&refused["hash"], &refused["verdict"]["result"]), (&read["hash"], &json!("wouldFail")));
    let deployment = of(&refused, "Deployment");
    assert_eq!(deployment["change"], "refused");
    assert!(deployment["message"].as_str().unwrap().contains("no new houses"), "{deployment}");
    assert_eq!(reader.explains(&first)["verdict"], read["verdict"]);
    kubectl(&["delete", "-f", folder.path().join("gate.yaml").to_str().unwrap()]);
    let (answer, _, _) = reader.approves(&first, Terms::default());
    let refused = answer.unwrap_err();
    assert!(
        refused.message.starts_with("not allowed to patch installplans.operators.coreos.com in namespace old-town"),
        "{refused}"
    );
    assert!(
        refused.hints.join("; ").contains("kubectl auth can-i patch installplans.operators.coreos.com -n old-town")
    );
    let clerk = User(plane.kubeconfig_for("clerk", None).unwrap());
    let (answer, text, talk) = clerk.lists(false, "name");
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert!(
        text.contains(&first) && talk.contains("not allowed to list subscriptions.operators.coreos.com in namespace"),
        "{talk}"
    );
    let unprivileged = User(plane.kubeconfig_for("nobody", None).unwrap());
    assert!(
        unprivileged
            .lists(false, "")
            .0
            .unwrap_err()
            .message
            .contains("not allowed to list installplans.operators.coreos.com in namespace old-town")
    );

    // Missing read permissions are reported, rather than an empty list.
    for asked in [Request::Plans(Vec::new()), Request::Subscription("tea-house".to_owned())] {
        let refused = unprivileged.asks(asked).0.unwrap_err();
        assert!(refused.message.starts_with("not allowed to list "), "{refused}");
    }

    // Nothing is approved if a condition does not hold.
    let other = Terms { explained: Some("sha256:0123456789abcdef".to_owned()), ..Terms::default() };
    let only = Terms { only_csvs: vec!["tea-house.v1.0.0".to_owned()], ..Terms::default() };
    for (terms, why) in [
        (other, "its effect has changed since it was explained"),
        (only, "it installs more than tea-house.v1.0.0: samovar.v2.3.0"),
        (policy("size(csvs) == 1"), "the policy does not hold: size(csvs) == 1"),
    ] {
        let (answer, text, talk) = admin.approves(&first, terms);
        assert_eq!(answer, Ok(Outcome::Negative), "{text}{talk}");
        assert!(text.contains(why), "{text}");
    }
    for (dry_run, said) in [(DryRun::Client, "approved (dry run)"), (DryRun::Server, "approved (server dry run)")] {
        let options = approve::Options { dry_run, ..admin.approval(&first, Terms::default()) };
        let (answer, text, talk) = run_captured(|printer| approve::run(&options, printer));
        assert_eq!((answer, text.contains(said)), (Ok(Outcome::Done), true), "{text}{talk}");
    }
    assert_eq!(before, all());
    let (answer, text, _) = admin.waits(Target::Plan(first.clone()), Until::Approved, Duration::ZERO);
    assert_eq!(answer, Ok(Outcome::Negative));
    assert!(text.contains(r#""phase":"RequiresApproval""#), "{text}");

    // Objects that are written as a ServiceAccount are tried with its permissions, if the user may impersonate it.
    let kept = include_str!("narrow.yaml");
    kubectl(&["apply", "-f", write_down(&folder, "narrow.yaml", kept).to_str().unwrap()]);
    kubectl(&["create", "clusterrole", "mason", "--verb=get,list,watch,create,update", "--resource=*.*"]);
    kubectl(&["create", "clusterrolebinding", "mason", "--clusterrole=mason", "--user=mason"]);
    work(plane.kubeconfig());
    let tries = |user: &User| {
        let (answer, text, talk) = user.asks_in("narrow", Request::Plans(vec!["by-hand".to_owned()]));
        assert!(answer.is_ok(), "{answer:?} {talk}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let told = tries(&admin);
    assert_eq!(told["plan"]["serviceAccount"], "narrow/keeper");
    let dry_run = &told["dryRun"];
    assert!(dry_run["message"] == "" && dry_run["refused"] == json!([]), "{dry_run}");
    let whole = dry_run["accepted"].as_u64().unwrap();
    let told = tries(&User(plane.kubeconfig_for("mason", None).unwrap()));
    let dry_run = &told["dryRun"];
    assert_eq!(
        dry_run["message"],
        "not allowed to impersonate ServiceAccount narrow/keeper, whose permissions are used to execute the plan"
    );
    let taken = dry_run["accepted"].as_u64().unwrap();
    assert!(0 < taken && taken < whole, "definitions are everybody's: {dry_run}");

    // A plan that changes during the prompt is not approved.
    let kubeconfig = plane.kubeconfig().to_owned();
    let (tool, plan) = (plane.tool("kubectl"), first.clone());
    let touch = move |question: &str| {
        assert!(question.starts_with("Approve InstallPlan install-"), "{question}");
        let mut kubectl = std::process::Command::new(&tool);
        let kubectl = kubectl.arg("--kubeconfig").arg(&kubeconfig);
        let change = r#"{"spec": {"source": "another"}}"#;
        kubectl.args(["patch", "installplan", &plan, "-n", NAMESPACE, "--type=merge", "-p", change]);
        kubectl.output().unwrap().status.success()
    };
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut printer = Printer::to(out.clone(), err.clone()).answered_by(touch);
    let options = approve::Options { yes: false, ..admin.approval(&first, Terms::default()) };
    assert_eq!(approve::run(&options, &mut printer), Ok(Outcome::Negative), "{}", err.text());
    assert!(out.text().contains("has changed since it was read"), "{}", out.text());

    // The explained plan is approved.
    let (answer, text, talk) = admin.approves(&first, Terms { explained: Some(hash.clone()), ..Terms::default() });
    assert_eq!(answer, Ok(Outcome::Done), "{text}{talk}");
    assert_eq!(text, format!("installplan.operators.coreos.com/{first} approved\n"));
    assert!(talk.contains("tea-house.v1.0.0") && talk.contains(&hash), "{talk}");
    let plan: Value =
        serde_json::from_str(&kubectl(&["get", "installplan", &first, "-n", NAMESPACE, "-o", "json"])).unwrap();
    let annotations = &plan["metadata"]["annotations"];
    assert_eq!(annotations["kubectl-olm/approved-hash"], hash.as_str());
    assert!(!annotations["kubectl-olm/approved-by"].as_str().unwrap().is_empty());
    let (answer, text, _) = admin.approves(&format!("installplan/{first}"), Terms::default());
    assert_eq!(answer, Ok(Outcome::Done));
    assert!(text.contains("was approved already by "), "{text}");
    let approved = admin.explains(&first);
    assert_eq!((&approved["hash"], &approved["plan"]["approved"]), (&json!(hash), &json!(true)));
    assert_eq!(approved["verdict"]["result"], read["verdict"]["result"]);
    let reasons = approved["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|because| because["reason"] == "approved"), "{reasons:?}");
    // Waiting works regardless of who approved the plan: nothing executes it now.
    let waiting = |timeout| approve::Options { wait: Some(timeout), ..admin.approval(&first, Terms::default()) };
    let (answer, _, talk) = run_captured(|printer| approve::run(&waiting(Duration::ZERO), printer));
    assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
    assert!(talk.contains("not complete: ") && talk.contains("no controller has started to execute it"), "{talk}");
    assert_eq!(admin.waits(Target::Plan(first.clone()), Until::Approved, Duration::ZERO).0, Ok(Outcome::Done));

    // The plan is watched until it is complete, which is a terminal state.
    let (answer, text, talk) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| admin.waits(Target::Plan(first.clone()), Until::Complete, TIMEOUT));
        work(plane.kubeconfig());
        waiting.join().unwrap()
    });
    assert_eq!(answer, Ok(Outcome::Done), "{text}{talk}");
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.len() > 1, "{text}");
    assert_eq!(
        events.last().map(|event| (&event["phase"], &event["reached"])),
        Some((&"Complete".into(), &true.into()))
    );
    assert_eq!(admin.waits(Target::Plan(first.clone()), Until::Failed, TIMEOUT).0, Ok(Outcome::Negative));
    let (answer, text, _) = run_captured(|printer| approve::run(&waiting(TIMEOUT), printer));
    assert_eq!((answer, text.contains(", it is Complete")), (Ok(Outcome::Done), true), "{text}");
    assert!(
        admin
            .waits(Target::Plan("gone".to_owned()), Until::Failed, TIMEOUT)
            .0
            .unwrap_err()
            .message
            .contains("there is no InstallPlan")
    );

    // A plan that would fail is refused, and so is one that cannot be checked because OperatorGroups cannot be read.
    let plan = pending(&admin);
    let group =
        "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: { name: second, namespace: old-town }\n";
    let file = write_down(&folder, "second.yaml", group);
    kubectl(&["apply", "-f", file.to_str().unwrap()]);
    let (answer, text, talk) = admin.approves(&plan, Terms::default());
    assert_eq!(answer, Ok(Outcome::Negative), "{text}{talk}");
    assert!(text.contains("not approved: it would fail: namespace old-town has several OperatorGroups"), "{text}");
    kubectl(&["delete", "-f", file.to_str().unwrap()]);
    let (answer, text, _) = clerk.approves(&plan, Terms::default());
    let refused = answer.unwrap_err();
    assert!(refused.message.starts_with("not allowed to list operatorgroups.operators.coreos.com"), "{refused} {text}");
    assert!(refused.hints.join("; ").contains("--allow-failing"));

    // The next plans, approved together.
    let second = pending(&admin);
    assert_ne!(first, second);
    let stays = "csvs.all(x, x.from != null && semver(x.to).major() == semver(x.from).major())";
    let options = approve::Options { plans: Vec::new(), ..admin.approval("", policy(stays)) };
    let (answer, text, talk) = run_captured(|printer| approve::run(&options, printer));
    assert_eq!(
        (answer, text),
        (Ok(Outcome::Done), format!("installplan.operators.coreos.com/{second} approved\n")),
        "{talk}"
    );
    work(plane.kubeconfig());
    let of = Target::Subscription("tea-house".to_owned());
    assert_eq!(admin.waits(of, Until::Complete, TIMEOUT).0, Ok(Outcome::Done));
}
