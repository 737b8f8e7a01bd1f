//! `kubectl olm run` as a process on a real API server: a single writer, hostile objects, and missing permissions.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests are tests")]

mod hostile;
mod junk;
mod lease;
mod processes;
mod town;
mod upstream;
mod witness;

use std::process::Command;

use olm_core::api::crd;
use olm_tests::control_plane::{ControlPlane, skipped};
use olm_tests::plugin::binary;

use processes::{Running, TIMEOUT, ends, holder, kubectl, plane};

#[test]
fn one_process_writes_and_others_wait_for_its_end() {
    if skipped() {
        return;
    }
    let plane = plane(crd::all());
    let kubeconfig = plane.kubeconfig();
    for arguments in [&["--once"][..], &[]] {
        let (code, said) = ends(kubeconfig, arguments);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("hint: kubectl create namespace olm: it contains the Lease"), "{said}");
    }

    let (code, said) = ends(kubeconfig, &["--install-crds"]);
    assert_eq!(code, Some(0), "{said}");
    kubectl(&plane, "get namespace olm");
    let first = Running::start(kubeconfig, &[]);
    first.says("read the cluster");
    let held_by = holder(&plane);
    assert!(!held_by.is_empty());

    let (code, said) = ends(kubeconfig, &["--once"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("another process writes to this cluster: {held_by} (since 2")), "{said}");
    // A cluster has one Lease: another namespace of catalogs does not permit a second writer.
    let (code, said) = ends(kubeconfig, &["--once", "--namespace", "default"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(&format!("another process writes to this cluster: {held_by} (since 2")), "{said}");
    // Processes that do not write, or skip the Lease explicitly, do not wait.
    for arguments in [&["--audit", "--once"][..], &["--once", "--no-lease"]] {
        let (code, said) = ends(kubeconfig, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
    }

    let second = Running::start(kubeconfig, &[]);
    let waits = second.says("holds the Lease");
    assert!(waits.contains(&held_by), "{waits}");
    // A deleted Lease still belongs to its holder: the first process that notices creates it again.
    kubectl(&plane, "delete lease kubectl-olm-run -n olm");
    kubectl(&plane, "wait --for=create lease/kubectl-olm-run -n olm --timeout=60s");
    assert_eq!(holder(&plane), held_by);
    assert_eq!(first.end(), Some(0));
    // If it was the first to notice the deletion, it waits for the duration of the Lease.
    second.says_within(3 * TIMEOUT, "acquired the Lease");
    assert_ne!(holder(&plane), held_by);
    assert_eq!(second.end(), Some(0));
    assert_eq!(holder(&plane), "");
    let (code, said) = ends(kubeconfig, &["--once"]);
    assert_eq!(code, Some(0), "{said}");
    native_apis(&plane);
}

/// `rose` needs a built-in kind, one that only a subresource has, and one of a CustomResourceDefinition; `fern` needs an
/// aggregated one, whose server never responds.
const NATIVE_APIS: &str = r"
apiVersion: v1
kind: Namespace
metadata: { name: garden }
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: { name: garden, namespace: garden }
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: { name: rose, namespace: garden }
spec:
  displayName: Rose
  installModes: [{ type: AllNamespaces, supported: true }]
  install: { strategy: deployment, spec: { deployments: [] } }
  nativeAPIs:
  - { group: apps, version: v1, kind: Deployment }
  - { group: '', version: v1, kind: Eviction }
  - { group: garden.example.com, version: v1, kind: Rose }
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: { name: fern, namespace: garden }
spec:
  displayName: Fern
  installModes: [{ type: AllNamespaces, supported: true }]
  install: { strategy: deployment, spec: { deployments: [] } }
  nativeAPIs: [{ group: away.example.com, version: v1, kind: Fern }]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: { name: v1.away.example.com }
spec:
  group: away.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: { name: away, namespace: garden }
";

const ROSES: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: roses.garden.example.com }
spec:
  group: garden.example.com
  scope: Namespaced
  names: { kind: Rose, plural: roses, singular: rose, listKind: RoseList }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
";

/// Discovery decides, regardless of who serves a kind; while it fails, the last known result is used.
fn native_apis(plane: &ControlPlane) {
    let apply = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, text).unwrap();
        kubectl(plane, &format!("apply -f {}", file.path().display()));
    };
    let wait = |csv: &str, field: &str, value: &str| {
        kubectl(plane, &format!("wait -n garden csv/{csv} --for=jsonpath={{.status.{field}}}={value} --timeout=60s"));
    };
    apply(NATIVE_APIS);
    let running = Running::start(plane.kubeconfig(), &[]);
    let unknown = running.says("it is not known whether the API server serves Fern (away.example.com/v1)");
    assert!(unknown.contains("ClusterServiceVersion garden/fern needs: "), "{unknown}");
    wait("rose", "reason", "RequirementsNotMet");
    apply(ROSES);
    wait("rose", "phase", "Succeeded");
    // The last known result is used: `fern` continues.
    let known = r#"{"status":{"requirementStatus":[{"group":"away.example.com","version":"v1","kind":"Fern","name":"v1.away.example.com","status":"Present","message":"there"}]}}"#;
    kubectl(plane, &format!("patch csv fern -n garden --subresource=status --type=merge -p {known}"));
    wait("fern", "phase", "Succeeded");
    // A successful discovery without the kind is a result.
    kubectl(plane, "delete apiservice v1.away.example.com");
    wait("fern", "reason", "RequirementsNotMet");
    kubectl(plane, "delete crd roses.garden.example.com");
    wait("rose", "reason", "RequirementsNotMet");
    assert_eq!(running.end(), Some(0));
}

/// Returns an object whose `deep` field has so many levels: 120 are valid in Kubernetes, and too many for recursive parsers.
fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

fn tenant(namespace: &str, levels: usize) -> String {
    let deployment = format!(
        r#"{{"name":"rose","spec":{{"selector":{{"matchLabels":{{"app":"rose"}}}},"template":{{"metadata":{{"labels":{{"app":"rose"}},"deep":{}}},"spec":{{"containers":[{{"name":"rose","image":"rose"}}]}}}}}}}}"#,
        nested(levels)
    );
    format!(
        r#"{{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{{"name":"rose","namespace":"{namespace}"}},"spec":{{"displayName":"Rose","installModes":[{{"type":"AllNamespaces","supported":true}}],"install":{{"strategy":"deployment","spec":{{"deployments":[{deployment}]}}}}}}}}"#
    )
}

#[test]
fn unreadable_objects_do_not_affect_others() {
    if skipped() {
        return;
    }
    let plane = plane(crd::all());
    let write = |verb: &str, text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, text).unwrap();
        kubectl(&plane, &format!("{verb} -f {}", file.path().display()));
    };
    let has_phase = |namespace: &str| {
        kubectl(&plane, &format!("wait -n {namespace} csv/rose --for=jsonpath={{.status.phase}} --timeout=60s"));
    };
    for namespace in ["olm", "garden", "park", "field"] {
        kubectl(&plane, &format!("create namespace {namespace}"));
    }
    write("create", &tenant("garden", 120));
    let running = Running::start(plane.kubeconfig(), &[]);
    let said = running.says("cannot be read and is ignored");
    assert!(said.contains("garden/rose") && said.contains("more than 128 levels deep"), "{said}");
    // By a list: the other objects are processed, and later ones as well.
    write("create", &tenant("park", 3));
    has_phase("park");
    // By a watch: a CustomResourceDefinition and another ClusterServiceVersion do not interrupt any watch.
    let crd = ROSES.replace("{ type: object }", &format!("{{ type: object, example: {} }}", nested(200)));
    write("create", &crd);
    assert!(running.says("cannot be read and is ignored").contains("roses.garden.example.com"));
    kubectl(&plane, "delete csv rose -n park --wait=false");
    write("create", &tenant("field", 120));
    assert!(running.says("cannot be read and is ignored").contains("field/rose"));
    // An Event reports it for the object, once.
    kubectl(
        &plane,
        "wait event -n field --for=jsonpath={.reason}=Unreadable --field-selector reason=Unreadable --all --timeout=60s",
    );
    // Its status was not written.
    let status =
        plane.kubectl(["get", "csv", "rose", "-n", "garden", "-o", "jsonpath={.status.phase}"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
    // The list of plans contains the others, and reports the missing one.
    binary("kubectl-olm-install_plan").unwrap();
    let mut list = Command::new(binary("kubectl-olm-install_plan").unwrap());
    let list = list.args(["list", "-A"]).env("KUBECONFIG", plane.kubeconfig()).output().unwrap();
    let stderr = String::from_utf8_lossy(&list.stderr);
    assert!(stderr.contains("rose in namespace garden: it is nested more than 128 levels deep"), "{stderr}");
    assert_eq!(list.status.code(), Some(0), "{stderr}");
    // A fixed object is processed again, and an unreadable one can be deleted.
    write("replace", &tenant("garden", 3));
    has_phase("garden");
    kubectl(&plane, "delete csv rose -n field --timeout=60s");
    assert_eq!(running.end(), Some(0));
}

#[test]
fn missing_permissions_are_reported() {
    if skipped() {
        return;
    }
    let plane = plane(crd::all());
    kubectl(&plane, "create namespace olm");
    let unprivileged = plane.kubeconfig_for("nobody", Some("system:authenticated")).unwrap();
    let (code, said) = ends(&unprivileged, &["--audit", "--once"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error: not allowed to list "), "{said}");
    assert!(said.contains("hint: the controllers need permission to read this kind in all namespaces"), "{said}");

    kubectl(&plane, "create clusterrole reader --verb=get,list,watch --resource=*.*");
    kubectl(&plane, "create clusterrolebinding reader --clusterrole=reader --user=nobody");
    assert_eq!(ends(&unprivileged, &["--audit", "--once"]).0, Some(0));
    let (code, said) = ends(&unprivileged, &["--once"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error: cannot acquire the Lease olm/kubectl-olm-run"), "{said}");
    assert!(said.contains("--no-lease"), "{said}");
}
