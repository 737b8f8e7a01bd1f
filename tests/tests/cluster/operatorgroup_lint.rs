//! `kubectl olm operatorgroup lint` on a real API server: findings, fixes after confirmation, and the report for users who
//! cannot read all namespaces.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use olm_core::api::crd;
use olm_shell::cli::findings::Format;
use olm_shell::cli::flags::{ClusterFlags, NamespaceFlags, SourceFlags};
use olm_shell::cli::streams::Buffer;
use olm_shell::cli::{CliError, Outcome, Printer};
use olm_shell::operatorgroup::lint::{self, FailOn, Options};
use olm_tests::control_plane::{self, ControlPlane, skipped};
use serde_json::Value;

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: garden}
---
apiVersion: v1
kind: Namespace
metadata: {name: park}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: both, namespace: garden}
spec: {targetNamespaces: [park, nowhere], selector: {matchLabels: {team: roses}}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: empty, namespace: park, annotations: {olm.providedAPIs: Rose.v1.example.com}}
spec: {}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: rose.v1, namespace: park, labels: {olm.copiedFrom: garden}}
spec:
  displayName: rose
  install: {strategy: deployment, spec: {deployments: []}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: olm.og.old.view-x
  labels: {olm.owner: old, olm.owner.namespace: garden, olm.owner.kind: OperatorGroup}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: rose.v0-x
  namespace: park
  labels: {olm.copiedFrom: garden, olm.owner: rose.v0, olm.owner.namespace: park, olm.owner.kind: ClusterServiceVersion}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reads}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reads}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: joe}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reads}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looks, namespace: garden}
rules: [{apiGroups: [operators.coreos.com], resources: ['*'], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: looks, namespace: garden}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: looks}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
";

struct User {
    kubeconfig: PathBuf,
    name: Option<String>,
}

impl User {
    fn options(&self, all: bool) -> Options {
        let cluster = ClusterFlags {
            kubeconfig: Some(self.kubeconfig.clone()),
            impersonate: self.name.clone(),
            ..ClusterFlags::default()
        };
        Options {
            source: SourceFlags { cluster, ..SourceFlags::default() },
            namespaces: NamespaceFlags { namespace: Some("garden".to_owned()), all_namespaces: all },
            on_top: Vec::new(),
            complete: false,
            package: None,
            images: olm_shell::image::Options::default(),
            format: Format::Json,
            baseline: None,
            create_baseline: false,
            fail_on: FailOn::Warning,
            fix: false,
            yes: false,
        }
    }
}

/// Returns the result, the document, and standard error.
fn run_captured(options: &Options, answer: Option<bool>) -> (Result<Outcome, CliError>, Value, String) {
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut printer = Printer::to(out.clone(), err.clone());
    if let Some(answer) = answer {
        printer = printer.answered_by(move |_| answer);
    }
    let outcome = lint::run(options, &mut printer);
    (outcome, serde_json::from_str(&out.text()).unwrap_or_default(), err.text())
}

/// Returns each finding as `OG006 both`.
fn summaries(findings: &Value) -> Vec<String> {
    let line = |f: &Value| format!("{} {}", f["code"].as_str().unwrap(), f["object"]["name"].as_str().unwrap());
    findings.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn findings_are_fixed_after_confirmation() {
    if skipped() {
        return;
    }
    let options =
        control_plane::Options { crds: crd::all(), scheduler: false, kwok: false, ..control_plane::Options::default() };
    let plane = ControlPlane::start_with(options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    std::fs::write(&file, OBJECTS).unwrap();
    let applied = plane.kubectl(["apply", "-f", file.to_str().unwrap()]).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));

    let admin = User { kubeconfig: plane.kubeconfig().to_owned(), name: None };
    let all = [
        "OG019 olm.og.old.view-x",
        "OG006 both",
        "OG008 both",
        "OG017 both",
        "OG018 rose.v1",
        "OG016 empty",
        "OG020 rose.v0-x",
    ];
    // The group was written a moment ago: OLM may still be about to notice that it lists APIs without a provider.
    let now: Vec<&str> = all.into_iter().filter(|found| !found.starts_with("OG016")).collect();
    let (outcome, document, talk) = run_captured(&admin.options(true), None);
    assert_eq!(outcome, Ok(Outcome::Negative), "{talk}");
    assert_eq!(summaries(&document["findings"]), now);
    assert_eq!(document["unchecked"], Value::Array(Vec::new()));
    let (_, of_garden, _) = run_captured(&admin.options(false), None);
    assert!(!summaries(&of_garden["findings"]).contains(&"OG018 rose.v1".to_owned()), "it exists in park");

    let mending = Options { fix: true, ..admin.options(true) };
    let (outcome, document, talk) = run_captured(&mending, Some(false));
    assert_eq!(
        (outcome, summaries(&document["findings"])),
        (Ok(Outcome::Negative), now.iter().map(|s| (*s).to_owned()).collect())
    );
    assert!(talk.contains("kubectl delete clusterrole.rbac.authorization.k8s.io olm.og.old.view-x"), "{talk}");
    let (_, document, talk) = run_captured(&mending, Some(true));
    assert_eq!(
        summaries(&document["fixed"]),
        ["OG019 olm.og.old.view-x", "OG006 both", "OG018 rose.v1", "OG020 rose.v0-x"],
        "{talk}"
    );
    assert_eq!(summaries(&document["findings"]), ["OG008 both", "OG017 both"]);
    let (_, document, _) = run_captured(&admin.options(true), None);
    assert_eq!(summaries(&document["findings"]), ["OG008 both", "OG017 both"]);
    let group = plane.kubectl(["get", "operatorgroup", "both", "-n", "garden", "-o", "json"]).output().unwrap();
    let group: Value = serde_json::from_slice(&group.stdout).unwrap();
    assert_eq!(
        group["spec"]["targetNamespaces"],
        serde_json::json!(["park", "nowhere"]),
        "only the selector was removed"
    );

    // The findings if another group were added.
    let second = folder.path().join("second.yaml");
    let text =
        "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: second, namespace: garden}\n";
    std::fs::write(&second, text).unwrap();
    let (outcome, document, _) = run_captured(&Options { on_top: vec![second.clone()], ..admin.options(false) }, None);
    assert_eq!(
        (outcome, summaries(&document["findings"])),
        (Ok(Outcome::Negative), vec!["OG008 both".to_owned(), "OG001 second".to_owned()])
    );
    let place = second.display().to_string();
    assert_eq!(
        (&document["findings"][1]["file"], &document["findings"][1]["line"]),
        (&place.as_str().into(), &1.into())
    );

    // A finding that OLM is about to fix is not reported after OLM has fixed it.
    let copy = folder.path().join("copy.yaml");
    let is_copy = |document: &&str| document.contains("kind: ClusterServiceVersion");
    std::fs::write(&copy, OBJECTS.split("---").find(is_copy).unwrap()).unwrap();
    let copy = copy.to_str().unwrap();
    assert!(plane.kubectl(["apply", "-f", copy]).status().unwrap().success());
    let joe = User { name: Some("joe".to_owned()), kubeconfig: admin.kubeconfig.clone() };
    let (_, document, _) = run_captured(&joe.options(true), None);
    assert!(
        summaries(&document["findings"]).contains(&"OG018 rose.v1".to_owned()),
        "without permission to watch it is read again"
    );
    let began = Instant::now();
    let mut olm = plane.kubectl(["delete", "-f", copy, "--wait=false"]).spawn().unwrap();
    let (_, document, _) = run_captured(&admin.options(true), None);
    assert_eq!(summaries(&document["findings"]), ["OG008 both", "OG017 both"]);
    assert!(began.elapsed() < Duration::from_secs(4), "it waited for the deadline: {:?}", began.elapsed());
    assert!(olm.wait().unwrap().success());

    let jane = User { name: Some("jane".to_owned()), ..admin };
    let (outcome, document, talk) = run_captured(&jane.options(false), None);
    assert_eq!(
        (outcome, summaries(&document["findings"])),
        (Ok(Outcome::Done), vec!["OG017 both".to_owned()]),
        "{talk}"
    );
    assert!(
        talk.contains("not allowed to list namespaces: these rules were checked only in part: OG007, OG008, OG014"),
        "{talk}"
    );
    let (outcome, _, _) = run_captured(&jane.options(true), None);
    assert!(outcome.is_err_and(|error| error.message.contains("operatorgroups")), "she cannot read all namespaces");
}
