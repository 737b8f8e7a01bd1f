//! `kubectl olm run --packages` behind the real aggregator: kubectl lists, watches and reads PackageManifests, users need permissions, and
//! nothing is left at the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use olm_core::api::crd;
use olm_tests::control_plane::{ControlPlane, Options, skipped};
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

/// Returns an address of this machine that is not a loopback one: the API server refuses those as addresses of Services. Sends nothing.
fn address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

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

    fn end(mut self) -> Option<i32> {
        self.signal("TERM");
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

    /// Writes a catalog and returns `NAME=DIRECTORY`.
    fn catalog(&self, name: &str, package: &str) -> String {
        let directory = self.folder.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("catalog.yaml"), catalog(package)).unwrap();
        format!("{name}={}", directory.display())
    }

    /// Returns the refusal of a command that cannot start.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }
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
    let began = Instant::now();
    while !cluster.attempt("api-resources --cached=false --no-headers -o name").1.contains("packagemanifests.packages")
    {
        assert!(began.elapsed() < TIMEOUT, "the API server does not discover packagemanifests");
    }

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

    // Another server's registration is not replaced, and that of this process is removed when it ends.
    assert_eq!(run.end(), Some(0));
    for object in [API_SERVICE, "service/kubectl-olm-packages -n olm", "endpointslice/kubectl-olm-packages -n olm"] {
        let (succeeded, text) = cluster.attempt(&format!("get {object}"));
        assert!(!succeeded && text.contains("NotFound"), "{object}: {text}");
    }
    let foreign = cluster.folder.path().join("foreign.yaml");
    std::fs::write(
        &foreign,
        "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.packages.operators.coreos.com}, spec: \
         {group: packages.operators.coreos.com, version: v1, groupPriorityMinimum: 2000, versionPriority: 15, insecureSkipTLSVerify: true, \
         service: {name: packageserver-service, namespace: olm}}}",
    )
    .unwrap();
    cluster.kubectl(&format!("apply -f {}", foreign.display()));
    let refused = cluster.refused(&["--packages", "--packages-address", &given]);
    assert!(refused.contains("leads to another server: Service olm/packageserver-service"), "{refused}");
}
