//! `kubectl olm run --packages` behind the real aggregator: kubectl lists, watches, reads and explains PackageManifests, users need
//! permissions, and nothing is left at the end: of a process, of one that was killed, and of an installation.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use olm_core::api::crd;
use olm_tests::control_plane::{ControlPlane, Options, address, skipped};
use olm_tests::plugin::binary;
use serde_json::Value;

/// Takes seconds on an idle machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The APIService.
const API_SERVICE: &str = "apiservice/v1.packages.operators.coreos.com";

const API: &str = "/apis/packages.operators.coreos.com/v1";

fn catalog(package: &str) -> String {
    format!(
        "schema: olm.package\nname: {package}\ndefaultChannel: stable\nicon: {{base64data: PHN2Zy8+, mediatype: image/svg+xml}}\n\
         ---\nschema: olm.channel\npackage: {package}\nname: stable\nentries: [{{name: {package}.v1.0.0}}]\n\
         ---\nschema: olm.bundle\npackage: {package}\nname: {package}.v1.0.0\nimage: example.com/{package}:v1\nproperties:\n\
         - {{type: olm.package, value: {{packageName: {package}, version: 1.0.0}}}}\n\
         - {{type: olm.csv.metadata, value: {{displayName: A {package}, provider: {{name: Garden}}}}}}\n"
    )
}

/// A catalog of tulips in a namespace.
const SHED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shed, namespace: garden}
data:
  customResourceDefinitions: '[]'
  clusterServiceVersions: |
    - apiVersion: operators.coreos.com/v1alpha1
      kind: ClusterServiceVersion
      metadata: {name: tulip.v1.0.0}
      spec: {displayName: Tulip, version: 1.0.0, install: {strategy: deployment, spec: {deployments: []}}}
  packages: |
    - packageName: tulip
      channels: [{name: stable, currentCSV: tulip.v1.0.0}]
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: shed, namespace: garden}
spec: {sourceType: configmap, configMap: shed}
";

/// A process, and the lines that it prints.
struct Running {
    process: Child,
    lines: Receiver<String>,
}

impl Running {
    /// Starts a command and reads its standard error, or its standard output.
    fn start(mut command: Command, of_stdout: bool) -> Self {
        let command = command.stdin(Stdio::null());
        let (sender, lines) = channel();
        let process = if of_stdout { command.stdout(Stdio::piped()) } else { command.stderr(Stdio::piped()) };
        let mut process = process.spawn().unwrap();
        let reader: Box<dyn std::io::Read + Send> = match (process.stdout.take(), process.stderr.take()) {
            (Some(stdout), _) => Box::new(stdout),
            (_, Some(stderr)) => Box::new(stderr),
            _ => panic!("no output"),
        };
        std::thread::spawn(move || {
            BufReader::new(reader).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Self { process, lines }
    }

    /// Waits for lines with these words, in any order.
    fn prints(&self, words: &[&str]) {
        let (end, mut printed) = (Instant::now() + TIMEOUT, String::new());
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            printed += &format!("{line}\n");
            if words.iter().all(|words| printed.contains(words)) {
                return;
            }
        }
        panic!("it does not print {words:?}:\n{printed}");
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    fn end(self) -> Option<i32> {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for the end and returns the exit code.
    fn wait(mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Cluster {
    plane: ControlPlane,
    folder: tempfile::TempDir,
}

impl Cluster {
    /// Runs kubectl and returns whether it succeeded, with its output.
    fn attempt(&self, line: &str) -> (bool, String) {
        let output = self.plane.kubectl(line.split_whitespace()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn kubectl(&self, line: &str) -> String {
        let (succeeded, text) = self.attempt(line);
        assert!(succeeded, "{line}: {text}");
        text
    }

    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("kubectl-olm-run").unwrap());
        command.args(arguments).env("KUBECONFIG", self.plane.kubeconfig()).stdin(Stdio::null());
        command
    }

    /// Runs `kubectl olm` and returns its exit code and output.
    fn olm(&self, line: &str) -> (Option<i32>, String) {
        let mut command = Command::new(binary("kubectl-olm").unwrap());
        command.args(line.split_whitespace()).env("KUBECONFIG", self.plane.kubeconfig()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    /// Starts the controllers in the place of the Deployment's pod, in which nothing runs.
    fn pod(&self, ip: IpAddr) -> Running {
        let address = format!("{ip}:0");
        let mut command = self.run(&["--packages", "--packages-address", &address, "--no-lease"]);
        command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        Running::start(command, false)
    }

    /// Writes a catalog and returns `NAME=DIRECTORY`.
    fn catalog(&self, name: &str, package: &str) -> String {
        let directory = self.folder.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("catalog.yaml"), catalog(package)).unwrap();
        format!("{name}={}", directory.display())
    }

    /// Checks that kubectl explain prints this line. The API server reads the documents of an API once a minute.
    fn explains(&self, field: &str, line: &str) {
        let explained = || self.attempt(&format!("explain {field}")).1;
        eventually(|| explained().lines().any(|printed| printed.trim() == line), &explained());
    }

    /// Checks that nothing is left of a process that served.
    fn is_unregistered(&self) {
        let objects = [
            API_SERVICE,
            "service/kubectl-olm-packages -n olm",
            "endpointslice/kubectl-olm-packages -n olm",
            "clusterrole/kubectl-olm-packages-view",
        ];
        for object in objects {
            let (succeeded, text) = self.attempt(&format!("get {object}"));
            assert!(!succeeded && text.contains("NotFound"), "{object}: {text}");
        }
    }

    /// Returns the refusal of a command that cannot start.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Waits for a condition.
fn eventually(mut is_true: impl FnMut() -> bool, why: &str) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < TIMEOUT, "{why}");
    }
}

/// Returns a table without its spaces.
fn words(table: &str) -> String {
    table.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The APIService of OLM's package server.
const FOREIGN: &str = "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.packages.operators.coreos.com}, spec: \
     {group: packages.operators.coreos.com, version: v1, groupPriorityMinimum: 2000, versionPriority: 15, insecureSkipTLSVerify: true, \
     service: {name: packageserver-service, namespace: olm}}}";

#[test]
fn an_installation_serves_packages_and_is_removed_with_them() {
    if skipped() {
        return;
    }
    let Some(ip) = address() else {
        eprintln!("skipped: this machine has only loopback addresses, which the API server refuses");
        return;
    };
    binary("kubectl-olm").unwrap();
    let plane = ControlPlane::start_with(Options { crds: crd::all(), ..Options::default() }).unwrap();
    let cluster = Cluster { plane, folder: tempfile::tempdir().unwrap() };
    let install = "install --image example.com/kubectl-olm:v1 --timeout";

    // What upstream OLM leaves would prevent the controllers from starting.
    let foreign = cluster.folder.path().join("foreign.yaml");
    std::fs::write(&foreign, FOREIGN).unwrap();
    cluster.kubectl(&format!("apply -f {}", foreign.display()));
    let (code, text) = cluster.olm(&format!("{install} 60s"));
    assert!(
        code == Some(2) && text.contains("of another OLM is left, which leads to Service olm/packageserver-service"),
        "{text}"
    );
    cluster.kubectl(&format!("delete {API_SERVICE}"));

    // The installation is ready when the API is.
    let (code, text) = cluster.olm(&format!("{install} 20s"));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("deployment/kubectl-olm-run is ready\n"), "{text}");
    assert!(
        text.contains("apiservice/v1.packages.operators.coreos.com: the controllers have not created it yet\n"),
        "{text}"
    );
    let pod = cluster.pod(ip);
    pod.prints(&["serving PackageManifests"]);
    let (code, text) = cluster.olm(&format!("{install} 60s"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the cluster has no catalog yet") && text.contains("kind: CatalogSource"), "{text}");
    let (code, text) = cluster.olm("status -o wide");
    assert!(code == Some(0) && words(&text).contains("v1.packages.operators.coreos.com Present"), "{text}");

    // In the cluster the next pod continues. Until then the status reports it.
    assert_eq!(pod.end(), Some(0));
    cluster.kubectl(&format!("wait --for=condition=Available=false {API_SERVICE} --timeout=60s"));
    let (code, text) = cluster.olm("status");
    assert!(code == Some(1) && words(&text).contains("v1.packages.operators.coreos.com Unhealthy "), "{text}");

    // Also a client that deletes the manifests leaves nothing that blocks the deletion of namespaces.
    cluster.kubectl("delete clusterrole kubectl-olm-run");
    eventually(|| !cluster.attempt(&format!("get {API_SERVICE}")).0, "the garbage collector does not delete it");

    // The removal does not depend on controllers, and proves that nothing is left.
    let (code, text) = cluster.olm(&format!("{install} 0"));
    assert_eq!(code, Some(0), "{text}");
    let pod = cluster.pod(ip);
    pod.prints(&["serving PackageManifests"]);
    pod.signal("KILL");
    drop(pod);
    let (code, text) = cluster.olm("uninstall --keep-crds --yes");
    assert_eq!(code, Some(0), "{text}");
    for kind in ["service", "endpointslice.discovery.k8s.io", "apiservice.apiregistration.k8s.io"] {
        assert!(text.contains(&format!("{kind}/")), "{kind}: {text}");
    }
    cluster.is_unregistered();
    let (code, text) = cluster.olm("uninstall --yes");
    assert!(code == Some(0) && text.ends_with("OLM is removed: nothing is left of it\n"), "{text}");
}

#[test]
fn kubectl_reads_packages_through_the_aggregator() {
    if skipped() {
        return;
    }
    let Some(ip) = address() else {
        eprintln!("skipped: this machine has only loopback addresses, which the API server refuses");
        return;
    };
    binary("kubectl-olm-run").unwrap();
    let options = Options { scheduler: false, kwok: false, crds: crd::all(), ..Options::default() };
    let plane = ControlPlane::start_with(options).unwrap();
    let cluster = Cluster { plane, folder: tempfile::tempdir().unwrap() };
    for namespace in ["olm", "garden"] {
        cluster.kubectl(&format!("create namespace {namespace}"));
    }

    // The API server of this test is reached by a loopback address.
    let refused = cluster.refused(&["--packages"]);
    assert!(refused.contains("the API server cannot reach this process at 127.0.0.1"), "{refused}");

    let (given, roses) = (format!("{ip}:0"), cluster.catalog("market", "rose"));
    let arguments = ["--packages", "--packages-address", &given, "--catalog", &roses];
    let run = Running::start(cluster.run(&arguments), false);
    run.prints(&["serving PackageManifests", "the PackageManifests are current"]);
    cluster.kubectl(&format!("wait --for=condition=Available {API_SERVICE} --timeout=60s"));

    // The API server discovers the resources of an available API a little later.
    let resources = || cluster.attempt("api-resources --cached=false --no-headers -o name").1;
    eventually(
        || resources().contains("packagemanifests.packages"),
        "the API server does not discover packagemanifests",
    );

    // The documents of the API: kubectl explain prints the fields, and the API server finds nothing to report.
    let listed = cluster.kubectl("api-resources --cached=false --no-headers --api-group=packages.operators.coreos.com");
    let words: Vec<&str> = listed.split_whitespace().collect();
    assert_eq!(words, ["packagemanifests", "packages.operators.coreos.com/v1", "true", "PackageManifest"]);
    cluster.explains("packagemanifests.status.channels", "currentCSV\t<string> -required-");
    for (path, kind) in
        [("/openapi/v2", "/definitions"), ("/openapi/v3/apis/packages.operators.coreos.com/v1", "/components/schemas")]
    {
        let merged: Value = serde_json::from_str(&cluster.kubectl(&format!("get --raw {path}"))).unwrap();
        let schema = &merged.pointer(kind).unwrap()["com.coreos.operators.packages.v1.PackageManifest"];
        assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "PackageManifest", "{path}");
    }
    let log = std::fs::read_to_string(cluster.plane.logs().join("kube-apiserver.log")).unwrap();
    let complaints: Vec<&str> =
        log.lines().filter(|line| line.starts_with('E') && line.contains("v1.packages")).collect();
    assert_eq!(complaints, [""; 0]);

    let table = cluster.kubectl("get packagemanifests -A");
    let words: Vec<&str> = table.split_whitespace().collect();
    assert_eq!((&words[..6], words.len()), (&["NAMESPACE", "NAME", "CATALOG", "AGE", "olm", "rose"][..], 8), "{table}");
    let object = cluster.kubectl("get packagemanifest rose -n garden -o yaml");
    for line in
        ["  namespace: garden", "  catalogSource: market", "  - currentCSV: rose.v1.0.0", "      displayName: A rose"]
    {
        assert!(object.contains(&format!("{line}\n")), "{object}");
    }
    assert_eq!(
        cluster.kubectl("get packagemanifests -n garden -l catalog=market -o name"),
        "packagemanifest.packages.operators.coreos.com/rose\n"
    );
    assert_eq!(cluster.kubectl(&format!("get --raw {API}/namespaces/garden/packagemanifests/rose/icon")), "<svg/>");
    let (succeeded, text) = cluster.attempt("get packagemanifest tulip -n garden");
    assert!(
        !succeeded && text.contains("packagemanifests.packages.operators.coreos.com \"tulip\" not found"),
        "{text}"
    );
    let (succeeded, text) = cluster.attempt("delete packagemanifest rose -n garden");
    assert!(!succeeded && text.contains("MethodNotAllowed"), "{text}");

    // A user needs permission, for exactly this request.
    let kubeconfig = cluster.plane.kubeconfig_for("ada", Some("gardeners")).unwrap();
    let as_ada = |line: &str| cluster.attempt(&format!("--kubeconfig {} {line}", kubeconfig.display()));
    let (succeeded, text) = as_ada("get packagemanifests -n garden");
    assert!(
        !succeeded
            && text.contains("Forbidden")
            && text.contains("User \"ada\" cannot list resource \"packagemanifests\""),
        "{text}"
    );
    cluster.kubectl(
        "create role reader -n garden --verb=get,list --resource=packagemanifests.packages.operators.coreos.com",
    );
    cluster.kubectl("create rolebinding reader -n garden --role=reader --user=ada");
    assert_eq!(
        as_ada("get packagemanifests rose -n garden -o name"),
        (true, "packagemanifest.packages.operators.coreos.com/rose\n".to_owned())
    );
    assert!(!as_ada("get packagemanifests -A").0);

    // Users with the role view may read packages, also without an installation of OLM.
    cluster.kubectl("create serviceaccount viewer -n garden");
    let as_viewer = |line: &str| {
        cluster.attempt(&format!("{line} --as system:serviceaccount:garden:viewer --as-group system:authenticated"))
    };
    let (succeeded, text) = as_viewer("get packagemanifests -n garden");
    assert!(!succeeded, "{text}");
    assert_eq!(
        text.trim_end(),
        "Error from server (Forbidden): packagemanifests.packages.operators.coreos.com is forbidden: User \"system:serviceaccount:garden:viewer\" \
         cannot list resource \"packagemanifests\" in API group \"packages.operators.coreos.com\" in the namespace \"garden\""
    );
    cluster.kubectl("create rolebinding viewer -n garden --clusterrole=view --serviceaccount=garden:viewer");
    eventually(|| as_viewer("get packagemanifests -n garden -o name").0, "the role view is not aggregated");
    assert_eq!(
        as_viewer(&format!("get --raw {API}/namespaces/garden/packagemanifests/rose/icon")),
        (true, "<svg/>".to_owned())
    );
    assert!(!as_viewer("get packagemanifests -A").0);

    // Without the certificate of the API server there is no response, and no header names a user.
    let slice = cluster.kubectl("get endpointslice kubectl-olm-packages -n olm -o json");
    let slice: Value = serde_json::from_str(&slice).unwrap();
    let url = format!("https://{ip}:{}{API}", slice["ports"][0]["port"]);
    let (succeeded, text) = cluster.attempt(&format!("--server {url} --insecure-skip-tls-verify get --raw /"));
    assert!(!succeeded, "{text}");

    // A watch reports the packages of a new catalog.
    let watching = Running::start(
        cluster.plane.kubectl(["get", "packagemanifests", "-n", "garden", "--watch", "-o", "name"]),
        true,
    );
    watching.prints(&["packagemanifest.packages.operators.coreos.com/rose"]);
    let shed = cluster.folder.path().join("shed.yaml");
    std::fs::write(&shed, SHED).unwrap();
    cluster.kubectl(&format!("apply -f {}", shed.display()));
    watching.prints(&["packagemanifest.packages.operators.coreos.com/tulip"]);
    drop(watching);

    // Without the Lease, which would be held for another minute.
    let again = [&arguments[..], &["--no-lease"]].concat();
    // A process that is killed leaves its registration. The next one takes it over, and removes it when it ends: also when its
    // terminal is closed.
    run.signal("KILL");
    drop(run);
    cluster.kubectl(&format!("wait --for=condition=Available=false {API_SERVICE} --timeout=60s"));
    let run = Running::start(cluster.run(&again), false);
    run.prints(&["serving PackageManifests"]);
    cluster.kubectl(&format!("wait --for=condition=Available {API_SERVICE} --timeout=60s"));
    run.signal("HUP");
    assert_eq!(run.wait(), Some(0));
    cluster.is_unregistered();

    // So does one that does not serve itself, once the API server has noticed.
    let run = Running::start(cluster.run(&again), false);
    run.prints(&["serving PackageManifests"]);
    cluster.kubectl(&format!("wait --for=condition=Available {API_SERVICE} --timeout=60s"));
    run.signal("KILL");
    drop(run);
    cluster.kubectl(&format!("wait --for=condition=Available=false {API_SERVICE} --timeout=60s"));
    let other = Running::start(cluster.run(&["--no-lease"]), false);
    other.prints(&["deleted the registration of a former run --packages"]);
    assert_eq!(other.end(), Some(0));
    cluster.is_unregistered();

    // Another server's registration is not replaced.
    let foreign = cluster.folder.path().join("foreign.yaml");
    std::fs::write(&foreign, FOREIGN).unwrap();
    cluster.kubectl(&format!("apply -f {}", foreign.display()));
    let refused = cluster.refused(&["--packages", "--packages-address", &given]);
    assert!(refused.contains("leads to another server: Service olm/packageserver-service"), "{refused}");
}
