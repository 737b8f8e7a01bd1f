//! `kubectl olm operatorgroup create` and `delete` on a real API server: every branch, and races with other clients.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use olm_core::api::crd;
use olm_shell::cli::flags::{ClusterFlags, DataFormat, DryRun, SourceFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::image;
use olm_shell::operatorgroup::compile::{self, InstallMode, PartialGroupRequest};
use olm_shell::operatorgroup::create::{self, GroupInput};
use olm_shell::operatorgroup::operator::Operator;
use olm_shell::operatorgroup::{delete, intersect};
use olm_tests::control_plane::{ControlPlane, Options, skipped};
use olm_tests::faulty_api::{Call, Fault, FaultyApi};
use serde_json::{Value, json};

const LABEL: &str = "kubectl-olm/compiled-by";

/// The result, standard output and standard error.
type CommandResult = (Result<Outcome, CliError>, String, String);

/// A user with the answers to prompts.
struct User {
    kubeconfig: PathBuf,
    answer: Option<bool>,
}

fn run_captured(user: &User, run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> CommandResult {
    let (out, err) = (Buffer::default(), Buffer::default());
    let printer = Printer::to(out.clone(), err.clone());
    let mut printer = match user.answer {
        Some(answer) => printer.answered_by(move |_| answer),
        None => printer,
    };
    let answer = run(&mut printer);
    (answer, out.text(), err.text())
}

impl User {
    fn from_kubeconfig(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned(), answer: None }
    }

    fn answering(&self, answer: bool) -> Self {
        Self { answer: Some(answer), ..Self::from_kubeconfig(&self.kubeconfig) }
    }

    fn source(&self) -> SourceFlags {
        let cluster = ClusterFlags { kubeconfig: Some(self.kubeconfig.clone()), ..ClusterFlags::default() };
        SourceFlags { cluster, ..SourceFlags::default() }
    }

    fn creation(&self, namespace: &str, given: GroupInput) -> create::Options {
        create::Options {
            given,
            namespace: Some(namespace.to_owned()),
            other_namespace: None,
            yes: false,
            dry_run: DryRun::None,
            output: "".parse().unwrap(),
            source: self.source(),
            images: image::Options::of_user(),
        }
    }

    /// Creates a group with this name and these targets.
    fn creates(&self, namespace: &str, name: &str, targets: &[&str]) -> CommandResult {
        run_captured(self, |printer| create::run(&self.creation(namespace, request(name, targets)), printer))
    }

    fn deletion(&self, namespace: &str) -> delete::Options {
        delete::Options {
            name: None,
            namespace: Some(namespace.to_owned()),
            yes: false,
            dry_run: DryRun::None,
            output: "".parse().unwrap(),
            source: self.source(),
        }
    }

    fn deletes(&self, namespace: &str) -> CommandResult {
        run_captured(self, |printer| delete::run(&self.deletion(namespace), printer))
    }
}

fn request(name: &str, targets: &[&str]) -> GroupInput {
    GroupInput::Request(PartialGroupRequest {
        name: Some(name.to_owned()),
        namespace: None,
        mode: None,
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        operator: None,
        service_account: None,
    })
}

/// kubectl as administrator.
#[derive(Clone)]
struct Kubectl(PathBuf, PathBuf);

impl Kubectl {
    fn run(&self, arguments: &[&str], input: &str) -> String {
        let mut kubectl = std::process::Command::new(&self.0);
        let kubectl = kubectl.arg("--kubeconfig").arg(&self.1).args(arguments);
        let mut child = kubectl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn apply(&self, object: &Value) {
        self.run(&["apply", "-f", "-"], &object.to_string());
    }

    fn namespace(&self, name: &str) {
        self.run(&["create", "namespace", name], "");
    }

    /// Returns the groups of a namespace as `name=label`, and how many times they were written.
    fn groups(&self, namespace: &str) -> Vec<String> {
        let list: Value =
            serde_json::from_str(&self.run(&["get", "operatorgroups", "-n", namespace, "-o", "json"], "")).unwrap();
        let told = |group: &Value| {
            let metadata = &group["metadata"];
            format!("{}={}", metadata["name"].as_str().unwrap(), metadata["labels"][LABEL].as_str().unwrap_or_default())
        };
        list["items"].as_array().unwrap().iter().map(told).collect()
    }

    fn get(&self, namespace: &str, name: &str) -> Value {
        serde_json::from_str(&self.run(&["get", "operatorgroup", name, "-n", namespace, "-o", "json"], "")).unwrap()
    }
}

fn group(namespace: &str, name: &str, targets: &[&str], label: Option<&str>) -> Value {
    let labels = label.map_or_else(|| json!({}), |label| json!({ LABEL: label }));
    json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": name, "namespace": namespace, "labels": labels }, "spec": { "targetNamespaces": targets },
    })
}

/// Returns a ClusterServiceVersion that supports its own namespace.
fn csv(namespace: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v1.0.0", "namespace": namespace },
        "spec": {
            "displayName": "Rose", "version": "1.0.0", "installModes": [{ "type": "OwnNamespace", "supported": true }],
            "install": { "strategy": "deployment", "spec": { "deployments": [] } },
        },
    })
}

fn subscription(namespace: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "rose", "namespace": namespace },
        "spec": { "name": "rose", "source": "main", "sourceNamespace": "olm", "channel": "stable" },
    })
}

#[test]
fn every_branch_of_create_and_delete() {
    if skipped() {
        return;
    }
    let options = Options { scheduler: false, kwok: false, crds: crd::all(), ..Options::default() };
    let plane = ControlPlane::start_with(options).unwrap();
    let kubectl = Kubectl(plane.tool("kubectl"), plane.kubeconfig().to_owned());
    let admin = User::from_kubeconfig(plane.kubeconfig());
    creating(&plane, &kubectl, &admin);
    deleting(&plane, &kubectl, &admin);
    odd_places(&plane, &kubectl, &admin);
    narrow_permissions(&plane, &kubectl);
    other_clients_are_faster(&plane, &kubectl);
    busy_servers_are_asked_again(&plane, &kubectl);
    compiled_groups_can_be_applied(&kubectl, &admin);
}

fn creating(plane: &ControlPlane, kubectl: &Kubectl, admin: &User) {
    // 3.1: a group written by a user.
    kubectl.namespace("written");
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("group.yaml");
    std::fs::write(&manifest, group("written", "theirs", &["written"], None).to_string()).unwrap();
    let options = admin.creation("written", GroupInput::Manifest(manifest));
    let (answer, text, talk) = run_captured(admin, |printer| create::run(&options, printer));
    assert_eq!(
        (answer, text.as_str()),
        (Ok(Outcome::Done), "operatorgroup.operators.coreos.com/theirs created in namespace written\n"),
        "{talk}"
    );
    assert_eq!(kubectl.groups("written"), ["theirs=user"]);

    // 4.1: it blocks other groups, and is left unchanged. So is one without a label.
    kubectl.namespace("plain");
    kubectl.apply(&group("plain", "plain", &["plain"], None));
    for (namespace, name) in [("written", "theirs"), ("plain", "plain")] {
        let before = kubectl.get(namespace, name);
        let (answer, text, talk) = admin.creates(namespace, "ours", &[]);
        assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
        assert!(text.contains("not created") && text.contains("managed by users"), "{text}");
        assert_eq!((kubectl.groups(namespace).len(), kubectl.get(namespace, name)), (1, before));
    }

    // 3.2: a compiled group, after a dry run.
    kubectl.namespace("apps");
    for (dry_run, note) in [(DryRun::Client, "created (dry run)"), (DryRun::Server, "created (server dry run)")] {
        let options = create::Options { dry_run, ..admin.creation("apps", request("apps", &[])) };
        let (answer, text, talk) = run_captured(admin, |printer| create::run(&options, printer));
        assert_eq!((answer, text.contains(note)), (Ok(Outcome::Done), true), "{text}{talk}");
    }
    assert!(kubectl.groups("apps").is_empty());
    assert_eq!(admin.creates("apps", "apps", &[]).0, Ok(Outcome::Done));
    assert_eq!(kubectl.groups("apps"), ["apps=kubectl-olm"]);
    let made = kubectl.get("apps", "apps");
    assert_eq!(made["spec"]["targetNamespaces"], json!(["apps"]));

    // 4.2.2: a group with the same targets exists.
    let (answer, text, _) = admin.creates("apps", "another", &["apps"]);
    assert_eq!(
        (answer, text.as_str()),
        (Ok(Outcome::Done), "operatorgroup.operators.coreos.com/apps unchanged in namespace apps\n")
    );
    assert_eq!(kubectl.get("apps", "apps"), made);

    // 4.2.3: with other targets, in another namespace: if the user confirms, or names it.
    let (answer, _, talk) = admin.creates("apps", "east", &["east"]);
    assert!(answer.unwrap_err().hints.join("; ").contains("--yes"), "{talk}");
    let (answer, _, talk) = admin.answering(false).creates("apps", "east", &["east"]);
    assert_eq!(answer, Ok(Outcome::Negative));
    assert!(talk.contains("Nothing was created"), "{talk}");
    let namespaces = || kubectl.run(&["get", "namespaces", "-o", "name"], "");
    assert!(!namespaces().contains("apps-east"));
    for (name, targets) in [("east", &["east"][..]), ("more", &["apps", "east"]), ("all", &[""])] {
        let place = format!("apps-{name}");
        // A document describes the group, even if its namespace is created with it.
        let (dry_run, output) = (DryRun::Client, "json".parse().unwrap());
        let options = create::Options { dry_run, output, yes: true, ..admin.creation("apps", request(name, targets)) };
        let (_, text, talk) = run_captured(admin, |printer| create::run(&options, printer));
        assert!(talk.contains(&format!("namespace/{place} created (dry run)")), "{talk}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["kind"], "OperatorGroup");
        let (answer, text, talk) = admin.answering(true).creates("apps", name, targets);
        assert_eq!(answer, Ok(Outcome::Done), "{talk}");
        assert!(text.contains(&format!("namespace/{place} created\n")), "{text}");
        assert_eq!(kubectl.groups(&place), [format!("{name}=kubectl-olm")]);
        // A second request selects the same namespace.
        let (answer, text, _) = admin.creates("apps", name, targets);
        assert_eq!(answer, Ok(Outcome::Done));
        assert!(text.contains(&format!("{name} unchanged in namespace {place}")), "{text}");
    }
    for (there, targets) in
        [("apps-more", &["apps"][..]), ("apps-more", &["apps", "west"]), ("apps-east", &["east", "west"])]
    {
        let place = format!("{there}-{}", targets.len());
        kubectl.namespace(&place);
        let options = create::Options {
            other_namespace: Some(place.clone()),
            ..admin.creation(there, request("other", targets))
        };
        let (answer, text, talk) = run_captured(admin, |printer| create::run(&options, printer));
        assert_eq!(answer, Ok(Outcome::Done), "{talk}");
        assert_eq!(text, format!("operatorgroup.operators.coreos.com/other created in namespace {place}\n"));
    }
    let options = create::Options {
        other_namespace: Some("plain".to_owned()),
        ..admin.creation("apps", request("other", &["west"]))
    };
    let (answer, text, _) = run_captured(admin, |printer| create::run(&options, printer));
    assert_eq!((answer, text.contains("plain already")), (Ok(Outcome::Negative), true), "{text}");

    // Neither several groups nor a group that is being deleted is accepted.
    kubectl.namespace("crowd");
    kubectl.apply(&group("crowd", "one", &["crowd"], Some("kubectl-olm")));
    kubectl.apply(&group("crowd", "two", &["crowd"], Some("kubectl-olm")));
    let (answer, text, _) = admin.creates("crowd", "three", &[]);
    assert_eq!(
        (answer, text.contains("already has several OperatorGroups (one and two)")),
        (Ok(Outcome::Negative), true),
        "{text}"
    );
    kubectl.namespace("leaving");
    let mut leaving = group("leaving", "leaving", &["leaving"], Some("kubectl-olm"));
    leaving["metadata"]["finalizers"] = json!(["example.com/stay"]);
    kubectl.apply(&leaving);
    kubectl.run(&["delete", "operatorgroup", "leaving", "-n", "leaving", "--wait=false"], "");
    let (answer, text, _) = admin.creates("leaving", "new", &[]);
    assert_eq!((answer, text.contains("is being deleted")), (Ok(Outcome::Negative), true), "{text}");

    // Missing permissions and namespaces are reported.
    let (answer, _, _) = admin.creates("nowhere", "nowhere", &[]);
    assert!(answer.unwrap_err().hints.join("; ").contains("kubectl create namespace nowhere"));
    kubectl.run(
        &["create", "role", "look", "-n", "plain", "--verb=list", "--resource=operatorgroups.operators.coreos.com"],
        "",
    );
    kubectl.run(&["create", "rolebinding", "look", "-n", "plain", "--role=look", "--user=clerk"], "");
    let clerk = User::from_kubeconfig(&plane.kubeconfig_for("clerk", None).unwrap());
    let (answer, _, _) = clerk.creates("plain", "ours", &[]);
    assert!(
        answer.unwrap_err().message.contains("not allowed to list clusterserviceversions"),
        "the members cannot be read"
    );
    let unprivileged = User::from_kubeconfig(&plane.kubeconfig_for("nobody", None).unwrap());
    assert!(
        unprivileged
            .creates("plain", "ours", &[])
            .0
            .unwrap_err()
            .message
            .contains("not allowed to list operatorgroups.operators.coreos.com in namespace plain")
    );

    // All groups are compared: the global one intersects every other.
    let options = intersect::Options {
        groups: vec!["apps-all/all".to_owned()],
        source: admin.source(),
        namespaces: olm_shell::cli::flags::NamespaceFlags { namespace: None, all_namespaces: true },
        on_top: Vec::new(),
        images: olm_shell::image::Options::of_user(),
        format: intersect::Format::Json,
    };
    let (answer, text, talk) = run_captured(admin, |printer| intersect::run(&options, printer));
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let all = kubectl.run(&["get", "operatorgroups", "-A", "-o", "name"], "").lines().count();
    assert_eq!(document["intersections"].as_array().unwrap().len(), all - 1);
}

fn deleting(plane: &ControlPlane, kubectl: &Kubectl, admin: &User) {
    // 2: no group. 3.1: a user's group.
    kubectl.namespace("empty");
    let (answer, text, talk) = admin.deletes("empty");
    assert_eq!((answer, text.as_str()), (Ok(Outcome::Done), ""));
    assert!(talk.contains("nothing to delete"), "{talk}");
    for namespace in ["written", "plain"] {
        let (answer, text, _) = admin.deletes(namespace);
        assert_eq!((answer, text.contains("managed by users")), (Ok(Outcome::Negative), true), "{text}");
        assert_eq!(kubectl.groups(namespace).len(), 1);
    }
    let (answer, _, _) = admin.deletes("crowd");
    assert!(answer.unwrap_err().hints.join("; ").contains("one and two"));

    // 3.2.3: a group with a member.
    kubectl.apply(&csv("apps"));
    let (answer, text, _) = admin.deletes("apps");
    assert_eq!((answer, text.contains("rose.v1.0.0 would fail without it")), (Ok(Outcome::Negative), true), "{text}");
    assert_eq!(kubectl.groups("apps").len(), 1);
    kubectl.run(&["delete", "clusterserviceversion", "rose.v1.0.0", "-n", "apps"], "");

    // 3.2.2: a group without members. Pending Subscriptions are reported.
    kubectl.apply(&subscription("apps"));
    for dry_run in [DryRun::Client, DryRun::Server] {
        let options = delete::Options { dry_run, ..admin.deletion("apps") };
        let (answer, text, _) = run_captured(admin, |printer| delete::run(&options, printer));
        assert_eq!((answer, text.contains("dry run")), (Ok(Outcome::Done), true), "{text}");
    }
    let (answer, _, talk) = admin.answering(false).deletes("apps");
    assert_eq!(
        (answer, talk.contains("these Subscriptions of namespace apps are not resolved: rose")),
        (Ok(Outcome::Negative), true),
        "{talk}"
    );
    assert_eq!(kubectl.groups("apps").len(), 1);

    // A member is installed during the prompt.
    let (out, err) = (Buffer::default(), Buffer::default());
    let quick = kubectl.clone();
    let mut printer = Printer::to(out.clone(), err.clone()).answered_by(move |_| {
        quick.apply(&csv("apps"));
        true
    });
    assert_eq!(delete::run(&admin.deletion("apps"), &mut printer), Ok(Outcome::Negative), "{}", err.text());
    assert!(out.text().contains("rose.v1.0.0 would fail without it"), "{}", out.text());
    kubectl.run(&["delete", "clusterserviceversion", "rose.v1.0.0", "-n", "apps"], "");

    // Without permission to list members it is unknown whether there are any.
    kubectl.run(
        &["create", "role", "groups", "-n", "apps", "--verb=*", "--resource=operatorgroups.operators.coreos.com"],
        "",
    );
    kubectl.run(&["create", "rolebinding", "groups", "-n", "apps", "--role=groups", "--user=clerk"], "");
    let clerk = User::from_kubeconfig(&plane.kubeconfig_for("clerk", None).unwrap());
    assert!(clerk.deletes("apps").0.unwrap_err().message.contains("not allowed to list clusterserviceversions"));

    let (answer, text, talk) = admin.answering(true).deletes("apps");
    assert_eq!(
        (answer, text.as_str()),
        (Ok(Outcome::Done), "operatorgroup.operators.coreos.com/apps deleted in namespace apps\n"),
        "{talk}"
    );
    assert!(kubectl.groups("apps").is_empty());
    let (answer, _, talk) = admin.deletes("apps-east");
    assert_eq!(answer, Ok(Outcome::Done), "no member, no prompt: {talk}");
}

fn odd_places(plane: &ControlPlane, kubectl: &Kubectl, admin: &User) {
    // A namespace that is being deleted accepts nothing, whether this is visible in advance or not.
    kubectl.namespace("closing");
    let stays = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "stays", "namespace": "closing", "finalizers": ["example.com/stay"] },
    });
    kubectl.apply(&stays);
    let guest = User::from_kubeconfig(&guest(plane, kubectl, "guest", &["closing"]));
    kubectl.run(&["delete", "namespace", "closing", "--wait=false"], "");
    let (answer, text, talk) = admin.creates("closing", "closing", &[]);
    assert_eq!((answer, text.contains("namespace closing is being deleted")), (Ok(Outcome::Negative), true), "{text}");
    assert!(talk.contains("kubectl wait --for=delete namespace/closing"), "{talk}");
    let refused = guest.creates("closing", "closing", &[]).0.unwrap_err();
    assert!(refused.hints.join("; ").contains("kubectl wait --for=delete namespace/closing"), "{}", refused.message);

    // A compiled group with a finalizer is deleted when that is removed, and only once.
    kubectl.namespace("lasting");
    let mut lasting = group("lasting", "lasting", &["lasting"], Some("kubectl-olm"));
    lasting["metadata"]["finalizers"] = json!(["example.com/stay"]);
    kubectl.apply(&lasting);
    let (answer, text, talk) = admin.deletes("lasting");
    assert_eq!((answer, text.contains("lasting deleted in namespace")), (Ok(Outcome::Done), true), "{text}");
    assert!(talk.contains("stays until its finalizers are removed: example.com/stay"), "{talk}");
    let (answer, text, talk) = admin.deletes("lasting");
    assert_eq!((answer, text.as_str()), (Ok(Outcome::Done), ""));
    assert!(talk.contains("is already being deleted"), "{talk}");

    // An existing group is used, even if it differs from the requested one.
    kubectl.namespace("account");
    assert_eq!(admin.creates("account", "account", &[]).0, Ok(Outcome::Done));
    let GroupInput::Request(partial) = request("account", &[]) else { panic!("expected a request") };
    let given = GroupInput::Request(PartialGroupRequest { service_account: Some("installer".to_owned()), ..partial });
    let options = create::Options { output: "json".parse().unwrap(), ..admin.creation("account", given) };
    let (answer, text, talk) = run_captured(admin, |printer| create::run(&options, printer));
    assert_eq!(
        (answer, talk.contains("its serviceAccountName differs from the requested group")),
        (Ok(Outcome::Done), true),
        "{talk}"
    );
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["metadata"]["name"], "account");

    // Programs that expect an object receive nothing else.
    for output in ["json", "yaml", "name", "jsonpath={.metadata.name}"] {
        let options =
            create::Options { output: output.parse().unwrap(), ..admin.creation("plain", request("plain", &[])) };
        let (answer, text, talk) = run_captured(admin, |printer| create::run(&options, printer));
        assert_eq!((answer, text.as_str()), (Ok(Outcome::Negative), ""), "{output}");
        assert!(talk.contains("not created") && talk.contains("hint:"), "{talk}");
        let options = delete::Options { output: output.parse().unwrap(), ..admin.deletion("plain") };
        let (answer, text, talk) = run_captured(admin, |printer| delete::run(&options, printer));
        assert_eq!((answer, text.as_str()), (Ok(Outcome::Negative), ""), "{output}");
        assert!(talk.contains("not deleted"), "{talk}");
    }
}

/// Returns the kubeconfig of a user who may read these namespaces and change groups in them, and nothing else.
fn guest(plane: &ControlPlane, kubectl: &Kubectl, name: &str, namespaces: &[&str]) -> PathBuf {
    for namespace in namespaces {
        let resources = "operatorgroups,clusterserviceversions,subscriptions".split(',');
        let resources = resources.map(|plural| format!("--resource={plural}.operators.coreos.com"));
        let role = ["create", "role", name, "-n", namespace, "--verb=*"].map(str::to_owned);
        let arguments: Vec<String> = role.into_iter().chain(resources).collect();
        kubectl.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), "");
        let (role, user) = (format!("--role={name}"), format!("--user={name}"));
        kubectl.run(&["create", "rolebinding", name, "-n", namespace, &role, &user], "");
    }
    plane.kubeconfig_for(name, None).unwrap()
}

fn narrow_permissions(plane: &ControlPlane, kubectl: &Kubectl) {
    for namespace in ["narrow", "beside", "foreign"] {
        kubectl.namespace(namespace);
    }
    let guest = User::from_kubeconfig(&guest(plane, kubectl, "neighbour", &["narrow", "beside"]));
    assert_eq!(guest.creates("narrow", "narrow", &[]).0, Ok(Outcome::Done));
    let into = |place: &str, name: &str| {
        let other_namespace = Some(place.to_owned());
        let options = create::Options { other_namespace, ..guest.creation("narrow", request(name, &["east"])) };
        run_captured(&guest, |printer| create::run(&options, printer))
    };
    // The existence of the other namespace cannot be read, and it does not have to be created.
    let (answer, text, talk) = into("beside", "moved");
    assert_eq!(answer, Ok(Outcome::Done), "{talk}");
    assert_eq!(text, "operatorgroup.operators.coreos.com/moved created in namespace beside\n");
    // An existing group is used.
    let (answer, text, _) = into("beside", "another");
    assert_eq!((answer, text.contains("moved unchanged in namespace beside")), (Ok(Outcome::Done), true), "{text}");
    let refused = into("foreign", "moved").0.unwrap_err();
    let expected = "not allowed to list operatorgroups.operators.coreos.com in namespace foreign: ";
    assert!(refused.message.starts_with(expected), "{refused}");
    // A group is not deleted without a prompt if Subscriptions may depend on it.
    kubectl.run(&["delete", "role", "neighbour", "-n", "beside"], "");
    let resource = "--resource=operatorgroups.operators.coreos.com,clusterserviceversions.operators.coreos.com";
    kubectl.run(&["create", "role", "neighbour", "-n", "beside", "--verb=*", resource], "");
    let (answer, _, talk) = guest.answering(false).deletes("beside");
    assert_eq!((answer, talk.contains("not allowed to list subscriptions")), (Ok(Outcome::Negative), true), "{talk}");
    assert_eq!(guest.deletes("narrow").0, Ok(Outcome::Done));
}

/// The action of another client immediately before a request arrives, once for each.
type Interruption = Box<dyn FnMut(&Call) -> bool + Send>;

fn other_clients_are_faster(plane: &ControlPlane, kubectl: &Kubectl) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let through = |mut interrupts: Interruption| {
        let judge = move |call: &Call| {
            interrupts(call);
            None
        };
        runtime.block_on(FaultyApi::start(plane.kubeconfig(), judge)).unwrap()
    };
    let once = |verb: &'static str, act: Box<dyn Fn() + Send>| -> Interruption {
        let mut done = false;
        Box::new(move |call| {
            let is_now = !done && call.verb == verb && call.resource == "operatorgroups";
            if is_now {
                done = true;
                act();
            }
            is_now
        })
    };
    let with = |verb, act: Box<dyn Fn() + Send>| {
        let proxy = through(once(verb, act));
        let user = User::from_kubeconfig(&proxy.kubeconfig());
        (proxy, user)
    };

    // The same group is created.
    kubectl.namespace("same");
    let (quick, there) = (kubectl.clone(), group("same", "same", &["same"], Some("kubectl-olm")));
    let (_proxy, user) = with("create", Box::new(move || quick.apply(&there)));
    let (answer, text, talk) = user.creates("same", "same", &[]);
    assert_eq!((answer, text.contains("unchanged")), (Ok(Outcome::Done), true), "{text}{talk}");

    // A user creates another group.
    kubectl.namespace("other");
    let (quick, there) = (kubectl.clone(), group("other", "theirs", &["other"], None));
    let (_proxy, user) = with("create", Box::new(move || quick.apply(&there)));
    let (answer, text, talk) = user.creates("other", "ours", &[]);
    assert_eq!((answer, text.contains("managed by users")), (Ok(Outcome::Negative), true), "{text}{talk}");
    assert!(talk.contains("deleting ours again"), "{talk}");
    assert_eq!(kubectl.groups("other"), ["theirs="]);

    // Many clients create a group at once, each with another name.
    kubectl.namespace("rush");
    let answers: Vec<CommandResult> = std::thread::scope(|scope| {
        let rush = |n: usize| {
            let user = User::from_kubeconfig(plane.kubeconfig());
            scope.spawn(move || user.creates("rush", &format!("group-{n}"), &["rush"]))
        };
        let running: Vec<_> = (0..4).map(rush).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|(answer, ..)| *answer == Ok(Outcome::Done)), "{answers:?}");
    assert_eq!(kubectl.groups("rush").len(), 1, "{answers:?}");

    // A write during the deletion requires a new decision.
    let quick = kubectl.clone();
    let touch = move || drop(quick.run(&["annotate", "operatorgroup", "same", "-n", "same", "seen=yes"], ""));
    let (_proxy, user) = with("delete", Box::new(touch));
    let (answer, text, talk) = user.deletes("same");
    assert_eq!((answer, text.contains("deleted")), (Ok(Outcome::Done), true), "{text}{talk}");
    assert!(kubectl.groups("same").is_empty());

    // Ownership of the group changes.
    kubectl.apply(&group("same", "same", &["same"], Some("kubectl-olm")));
    let quick = kubectl.clone();
    let label = format!("{LABEL}=user");
    let take = move || drop(quick.run(&["label", "operatorgroup", "same", "-n", "same", "--overwrite", &label], ""));
    let (_proxy, user) = with("delete", Box::new(take));
    let (answer, text, _) = user.deletes("same");
    assert_eq!((answer, text.contains("managed by users")), (Ok(Outcome::Negative), true), "{text}");
    assert_eq!(kubectl.groups("same"), ["same=user"]);

    // A member is created at that moment: its group is created again.
    kubectl.namespace("member");
    let mut ours = group("member", "ours", &["member"], Some("kubectl-olm"));
    ours["metadata"]["annotations"] = json!({ "kept": "yes" });
    kubectl.apply(&ours);
    let quick = kubectl.clone();
    let (_proxy, user) = with("delete", Box::new(move || quick.apply(&csv("member"))));
    let (answer, text, talk) = user.deletes("member");
    assert_eq!(answer, Ok(Outcome::Negative), "{talk}");
    assert!(text.contains("rose.v1.0.0 appeared in the meantime, and it was created again"), "{text}");
    let again = kubectl.get("member", "ours");
    let targets = &again["spec"]["targetNamespaces"];
    assert_eq!(
        (&again["metadata"]["annotations"]["kept"], targets),
        (&json!("yes"), &ours["spec"]["targetNamespaces"])
    );
    assert_eq!(kubectl.groups("member"), ["ours=kubectl-olm"]);
}

/// A busy API server refuses a request before executing it.
fn busy_servers_are_asked_again(plane: &ControlPlane, kubectl: &Kubectl) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let refused: Arc<Mutex<BTreeSet<Call>>> = Arc::default();
    let seen = refused.clone();
    let judge = move |call: &Call| {
        let is_first = matches!(call.verb, "list" | "watch" | "create") && seen.lock().unwrap().insert(call.clone());
        let (code, reason) = (429, "TooManyRequests".to_owned());
        is_first.then(|| Fault::Refused { code, reason, message: "storage is (re)initializing".to_owned() })
    };
    kubectl.namespace("busy");
    let proxy = runtime.block_on(FaultyApi::start(plane.kubeconfig(), judge)).unwrap();
    let (answer, _, talk) = User::from_kubeconfig(&proxy.kubeconfig()).creates("busy", "busy", &[]);
    assert_eq!((answer, talk.as_str()), (Ok(Outcome::Done), ""));
    assert_eq!(kubectl.groups("busy"), ["busy=kubectl-olm"]);
    let refused = refused.lock().unwrap();
    assert!(
        ["list", "watch", "create"].iter().all(|verb| refused.iter().any(|call| call.verb == *verb)),
        "{refused:?}"
    );
}

fn compiled_groups_can_be_applied(kubectl: &Kubectl, admin: &User) {
    let market = concat!(env!("CARGO_MANIFEST_DIR"), "/quickstart/catalogs/market");
    kubectl.namespace("tea");
    let partial = PartialGroupRequest {
        name: None,
        namespace: Some("tea".to_owned()),
        mode: Some(InstallMode::OwnNamespace),
        targets: Vec::new(),
        operator: Some(Operator::Package("tea-house".to_owned())),
        service_account: Some("installer".to_owned()),
    };
    let source = SourceFlags { catalogs: vec![format!("market={market}").parse().unwrap()], ..SourceFlags::default() };
    for format in [DataFormat::Yaml, DataFormat::Json] {
        let options = compile::Options {
            request: partial.clone(),
            source: source.clone(),
            images: image::Options::of_user(),
            rbac: true,
            format,
        };
        let (answer, text, talk) = run_captured(admin, |printer| compile::run(&options, printer));
        assert_eq!(answer, Ok(Outcome::Done), "{talk}");
        let applied = kubectl.run(&["apply", "-f", "-"], &text);
        assert_eq!(applied.lines().count(), 6, "{applied}");
    }
    // The account has the required permissions, and no others. kubectl exits with 1 if an action is not permitted.
    let may = |verb: &str, what: &str| {
        let mut can_i = std::process::Command::new(&kubectl.0);
        let can_i = can_i.arg("--kubeconfig").arg(&kubectl.1).args(["auth", "can-i", verb, what, "-n", "tea"]);
        can_i.arg("--as=system:serviceaccount:tea:installer").output().unwrap().status.success()
    };
    assert!(may("create", "roles.rbac.authorization.k8s.io") && may("create", "subscriptions.operators.coreos.com"));
    assert!(!may("get", "secrets") && !may("create", "customresourcedefinitions.apiextensions.k8s.io"));
}
