//! A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and kwok as
//! the kubelet of one node, whose pods run as soon as they are scheduled.
//!
//! ```text
//! ControlPlane -> binaries   from KUBEBUILDER_ASSETS, or built by Go
//!              -> pki        certificates and kubeconfigs
//!              -> processes  logs, and termination of all processes
//!              -> audit      writes to the API server with their users
//!              -> pod_network  answers in the place of pods that serve APIs
//! ```
//!
//! # Guarantees
//! * Control planes share nothing but binaries: they can run in parallel, in one process or in several.
//! * No process and no folder outlives the [`ControlPlane`], nor the test process, even if that is killed.
//!
//! # Caveats
//! * Nothing inside a pod ever runs, and a Job's pods succeed immediately.
//! * The garbage collector recognizes a new CRD up to 30 s after it is established.

pub mod audit;
pub(crate) mod binaries;
pub(crate) mod pki;
pub mod pod_network;
pub(crate) mod processes;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{Api, GetParams, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::Request;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use binaries::Binaries;
use pki::Authority;
use pod_network::PodNetwork;
use processes::Processes;

/// How long a control plane may take until it is ready: three seconds on two idle cores, but other tests may be using them.
const TIMEOUT: Duration = Duration::from_mins(2);

/// etcd's only address: a socket in the working folder of the components, so that no port is needed.
const ETCD: &str = "unix://etcd:1";

/// The name of the one Node, as in the recordings.
const NODE: &str = "n1";

/// Returns whether tests that need a control plane are skipped: `OLM_TEST_CONTROL_PLANE=skip`. Reports so on standard error.
pub fn skipped() -> bool {
    let skip = std::env::var_os("OLM_TEST_CONTROL_PLANE").is_some_and(|value| value == "skip");
    if skip {
        // Not captured by the test harness, unlike the output of `eprintln!`. A test may have no standard error.
        drop(writeln!(io::stderr(), "skipped: needs a control plane, and OLM_TEST_CONTROL_PLANE=skip"));
    }
    skip
}

/// Returns the path of a component's binary, for example `kubectl`, and builds it if necessary.
///
/// # Errors
/// A binary is missing, or cannot be built.
pub fn tool(name: &str) -> Result<PathBuf> {
    Ok(Binaries::locate(&[name])?.path(name))
}

/// Returns an address of this machine that is not a loopback one: the API server refuses those as addresses of Services. Sends nothing.
pub fn address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// Options of a [`ControlPlane`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Further flags for kube-apiserver, for example `--audit-log-path=/tmp/audit.log`. Its working folder is that of the
    /// control plane.
    pub apiserver_flags: Vec<String>,
    /// Whether to run kube-scheduler. Without it pods stay Pending.
    pub scheduler: bool,
    /// Whether to run kwok and create a Node. Without it pods stay Pending.
    pub kwok: bool,
    /// CustomResourceDefinitions to serve before kube-controller-manager starts, so that its garbage collector knows them.
    pub crds: Vec<Value>,
    /// Whether the API server logs all writes: [`ControlPlane::audit`].
    pub audit: bool,
    /// Whether APIs of pods are served, with the certificates that OLM generated. Without it their APIServices are not available.
    pub pod_network: bool,
}

impl Default for Options {
    /// All components run, without an audit log.
    fn default() -> Self {
        Self {
            apiserver_flags: Vec::new(),
            scheduler: true,
            kwok: true,
            crds: Vec::new(),
            audit: false,
            pod_network: false,
        }
    }
}

/// A running control plane. Dropping it ends it.
pub struct ControlPlane {
    // In the order in which they must be dropped: the folder after the processes that write to it.
    processes: Processes,
    pod_network: Option<PodNetwork>,
    folder: TempDir,
    port: Port,
    binaries: Binaries,
    authority: Authority,
    kubeconfig: PathBuf,
}

impl ControlPlane {
    /// Starts a complete control plane and returns when it is ready, so that a new Pod runs immediately. Blocks for a few
    /// seconds, or for minutes if the binaries have to be built first.
    ///
    /// # Errors
    /// A binary is missing, or a component failed; contains the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_with(Options::default())
    }

    /// Does the same as [`start`](Self::start), with `options`.
    pub fn start_with(options: Options) -> Result<Self> {
        let wanted: Vec<_> = binaries::ALL
            .into_iter()
            .filter(|name| options.scheduler || *name != "kube-scheduler")
            .filter(|name| options.kwok || *name != "kwok")
            .collect();
        let binaries = Binaries::locate(&wanted)?;
        let folder = tempfile::Builder::new().prefix("control-plane-").tempdir()?;
        let logs = folder.path().join("log");
        fs::create_dir(&logs)?;
        let processes = Processes::new(folder.path(), logs)?;
        let kubeconfig = folder.path().join("kubeconfig");
        let (port, authority) = (Port::reserve()?, Authority::new()?);
        let mut plane = Self { processes, pod_network: None, folder, port, binaries, authority, kubeconfig };
        plane.write_files()?;
        if options.pod_network {
            plane.pod_network = Some(PodNetwork::start(plane.folder.path(), &plane.kubeconfig)?);
        }
        if options.audit {
            fs::write(plane.folder.path().join(audit::POLICY_FILE), audit::POLICY)?;
        }
        // On a separate runtime and thread, because the caller may be inside another runtime.
        std::thread::scope(|scope| scope.spawn(|| plane.bring_up(&options)).join())
            .unwrap_or_else(|_| Err(anyhow!("starting the control plane panicked")))?;
        Ok(plane)
    }

    /// Returns the kubeconfig of a cluster administrator (group `system:masters`).
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Writes a kubeconfig for `user`, in `group` if given, with only the permissions that RBAC grants, and returns its path.
    pub fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<PathBuf> {
        let mut file = tempfile::Builder::new().prefix("kubeconfig-").tempfile_in(self.folder.path())?;
        file.write_all(self.authority.kubeconfig(&self.url(), &self.authority.client(user, group)?)?.as_bytes())?;
        Ok(file.into_temp_path().keep()?)
    }

    /// Returns the API server's address.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port.number)
    }

    /// Returns kubectl with `args`, as administrator. Its caches are in the control plane's folder, because addresses are
    /// reused.
    pub fn kubectl<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(self.tool("kubectl"));
        command.args(args).env("KUBECONFIG", &self.kubeconfig).env("HOME", self.folder.path());
        command
    }

    /// Returns the path of a component's binary, for example `kubectl` or `kube-apiserver`.
    pub fn tool(&self, name: &str) -> PathBuf {
        self.binaries.path(name)
    }

    /// Returns the folder of the components' logs, for example `kube-apiserver.log`. It is deleted with the control plane.
    pub fn logs(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Returns all writes to the API server with their users, in order. Empty unless [`Options::audit`] is set.
    pub fn audit(&self) -> Result<Vec<audit::Entry>> {
        audit::read(&self.folder.path().join(audit::LOG_FILE))
    }

    /// Returns the ids of all processes.
    pub fn process_ids(&self) -> Vec<u32> {
        self.processes.ids()
    }

    /// Writes the files that the components read: certificates, the administrator's kubeconfig, kwok's stages.
    fn write_files(&self) -> Result<()> {
        let write = |name: &str, text: &str| {
            fs::write(self.folder.path().join(name), text).with_context(|| format!("cannot write {name}"))
        };
        let admin = self.authority.client("admin", Some("system:masters"))?;
        let (private, public) = Authority::key_pair()?;
        write("ca.crt", self.authority.certificate())?;
        write("service-accounts.key", &private)?;
        write("service-accounts.pub", &public)?;
        for (name, identity) in
            [("server", self.authority.server()?), ("front-proxy", self.authority.client("front-proxy", None)?)]
        {
            write(&format!("{name}.crt"), &identity.certificate)?;
            write(&format!("{name}.key"), &identity.key)?;
        }
        write("kwok-stages.yaml", binaries::KWOK_STAGES)?;
        write("kubeconfig", &self.authority.kubeconfig(&self.url(), &admin)?)
    }

    /// Returns a component's command, with the control plane's folder as working folder and without the user's environment.
    fn component(&self, name: &str) -> Command {
        let mut command = Command::new(self.tool(name));
        command.current_dir(self.folder.path()).env_clear().env("HOME", self.folder.path());
        command
    }

    /// Starts the components and waits until all are ready.
    fn bring_up(&mut self, options: &Options) -> Result<()> {
        let commands = Commands::new(self, options);
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let processes = RefCell::new(&mut self.processes);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let started = runtime.block_on(async {
            let stage = RefCell::new("kube-apiserver listens");
            tokio::select! {
                ready = until_ready(commands, options, kubeconfig, &processes, &stage) => ready,
                error = first_end(&processes) => Err(error),
                () = tokio::time::sleep(TIMEOUT) => {
                    let log = tail(&processes.borrow().log("kube-apiserver"));
                    Err(anyhow!("still waiting after {} s until {}; kube-apiserver:\n{log}", TIMEOUT.as_secs(), stage.borrow()))
                }
            }
        });
        started.context("the control plane does not start")
    }
}

/// The components' commands, `None` for those that an option excludes.
struct Commands {
    etcd: Command,
    apiserver: Command,
    controller_manager: Command,
    scheduler: Option<Command>,
    kwok: Option<Command>,
}

impl Commands {
    fn new(plane: &ControlPlane, options: &Options) -> Self {
        let mut etcd = plane.component("etcd");
        etcd.args(["--name", "etcd", "--data-dir", "etcd-data", "--unsafe-no-fsync", "--log-level", "warn"])
            .args(["--listen-client-urls", ETCD, "--advertise-client-urls", ETCD])
            .args(["--listen-peer-urls", "unix://peer:1", "--initial-advertise-peer-urls", "unix://peer:1"])
            .args(["--initial-cluster", "etcd=unix://peer:1"])
            // It becomes the leader before kube-apiserver connects, and not only after the default of one second.
            .args(["--heartbeat-interval", "10", "--election-timeout", "50"]);

        let mut apiserver = plane.component("kube-apiserver");
        apiserver
            .args(["--etcd-servers", ETCD, "--bind-address", "127.0.0.1", "--permit-port-sharing"])
            .arg(format!("--secure-port={}", plane.port.number))
            .args(["--tls-cert-file", "server.crt", "--tls-private-key-file", "server.key"])
            .args(["--client-ca-file", "ca.crt", "--authorization-mode", "RBAC"])
            .args(["--service-account-key-file", "service-accounts.pub"])
            .args(["--service-account-signing-key-file", "service-accounts.key"])
            .args(["--service-account-issuer", "https://kubernetes.default.svc"])
            .args(["--service-cluster-ip-range", "10.0.0.0/16", "--allow-privileged", "--enable-aggregator-routing"])
            .args(["--requestheader-client-ca-file", "ca.crt", "--requestheader-allowed-names", "front-proxy"])
            .args(["--requestheader-username-headers", "X-Remote-User"])
            .args(["--requestheader-group-headers", "X-Remote-Group"])
            .args(["--requestheader-extra-headers-prefix", "X-Remote-Extra-"])
            .args(["--proxy-client-cert-file", "front-proxy.crt", "--proxy-client-key-file", "front-proxy.key"])
            .args(["--disable-admission-plugins", "DefaultStorageClass"])
            .args(&options.apiserver_flags);
        if options.audit {
            apiserver.args(["--audit-policy-file", audit::POLICY_FILE, "--audit-log-path", audit::LOG_FILE]);
        }

        if options.pod_network {
            apiserver.args(["--egress-selector-config-file", pod_network::CONFIGURATION_FILE]);
        }

        let mut controller_manager = plane.component("kube-controller-manager");
        controller_manager
            .args(["--kubeconfig", "kubeconfig", "--secure-port", "0", "--leader-elect=false"])
            .args(["--service-account-private-key-file", "service-accounts.key", "--root-ca-file", "ca.crt"])
            .args(["--use-service-account-credentials", "--concurrent-gc-syncs", "20"])
            // Without those that call a cloud provider.
            .arg("--controllers=*,-node-ipam-controller,-cloud-node-lifecycle,-node-route-controller,-service-lb-controller")
            // Tests would wait for the default of 20 requests per second.
            .args(["--kube-api-qps", "1000", "--kube-api-burst", "2000"]);

        let scheduler = options.scheduler.then(|| {
            let mut scheduler = plane.component("kube-scheduler");
            scheduler.args(["--kubeconfig", "kubeconfig", "--secure-port", "0", "--leader-elect=false"]);
            scheduler
        });
        let kwok = options.kwok.then(|| {
            let mut kwok = plane.component("kwok");
            kwok.args(["--kubeconfig", "kubeconfig", "--config", "kwok-stages.yaml", "--manage-all-nodes=true"])
                .args(["--node-lease-duration-seconds", "40"]);
            kwok
        });
        Self { etcd, apiserver, controller_manager, scheduler, kwok }
    }
}

/// Starts each component as soon as its dependencies are ready, and returns when all are. `stage` describes the current
/// condition.
async fn until_ready(
    mut commands: Commands,
    options: &Options,
    kubeconfig: Kubeconfig,
    processes: &RefCell<&mut Processes>,
    stage: &RefCell<&'static str>,
) -> Result<()> {
    let start = |name, command: &mut Command| processes.borrow_mut().start(name, command);
    start("etcd", &mut commands.etcd)?;
    start("kube-apiserver", &mut commands.apiserver)?;

    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // This polls by itself, at a higher rate.
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    answers(&client, "version").await?;
    if let Some(scheduler) = &mut commands.scheduler {
        start("kube-scheduler", scheduler)?;
    }
    if let Some(kwok) = &mut commands.kwok {
        start("kwok", kwok)?;
        stage.replace("a Node can be created");
        let node = serde_json::from_value(json!({
            "metadata": {"name": NODE, "labels": {
                "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": NODE,
            }},
        }))?;
        Api::<Node>::all(client.clone()).create(&PostParams::default(), &node).await?;
    }

    stage.replace("kube-apiserver is ready");
    answers(&client, "readyz").await?;
    stage.replace("CustomResourceDefinitions are served");
    define(&client, &options.crds).await?;
    // Not earlier: if it finds that the API server is not ready, it retries only after a second.
    start("kube-controller-manager", &mut commands.controller_manager)?;
    stage.replace("the default ServiceAccount exists and the Node is ready");
    let exists = |account: Option<&ServiceAccount>| account.is_some();
    let account = await_condition(Api::namespaced(client.clone(), "default"), "default", exists);
    let node = async {
        match commands.kwok {
            Some(_) => await_condition(Api::all(client.clone()), NODE, takes_pods).await.map(drop),
            None => Ok(()),
        }
    };
    futures::try_join!(async { account.await.map(drop) }, node)?;
    Ok(())
}

/// Waits until the API server responds to `/path` with success.
async fn answers(client: &kube::Client, path: &str) -> Result<()> {
    let mut often = tokio::time::interval(Duration::from_millis(20));
    loop {
        often.tick().await;
        match client.request_text(Request::new("").get(path, &GetParams::default())?).await {
            Ok(_) => return Ok(()),
            // Not listening or not ready yet.
            Err(kube::Error::Api(_) | kube::Error::HyperError(_) | kube::Error::Service(_)) => {}
            Err(error) => return Err(error).with_context(|| format!("GET /{path}")),
        }
    }
}

/// Creates CRDs and waits until the API server lists and serves them.
async fn define(client: &kube::Client, crds: &[Value]) -> Result<()> {
    let definitions = || Request::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    for crd in crds {
        let create = definitions().create(&PostParams::default(), crd.to_string().into_bytes())?;
        client.request::<Value>(create).await?;
    }
    for crd in crds {
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        await_condition(Api::all(client.clone()), text("/metadata/name"), is_crd_established()).await?;
        for version in crd["spec"]["versions"].as_array().into_iter().flatten().filter_map(|v| v["name"].as_str()) {
            let group = format!("apis/{}/{version}", text("/spec/group"));
            answers(client, &format!("{group}/{}", text("/spec/names/plural"))).await?;
        }
    }
    Ok(())
}

/// Returns whether `node` is Ready and the node lifecycle controller has removed its taint, which keeps pods away until then.
fn takes_pods(node: Option<&Node>) -> bool {
    let Some(node) = node else { return false };
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        && taints.count() == 0
}

/// Waits until any process has ended, which is an error.
async fn first_end(processes: &RefCell<&mut Processes>) -> anyhow::Error {
    let mut now_and_then = tokio::time::interval(Duration::from_millis(100));
    loop {
        now_and_then.tick().await;
        let mut processes = processes.borrow_mut();
        if let Some((name, status)) = processes.ended() {
            return anyhow!("{name} ended with {status}:\n{}", tail(&processes.log(name)));
        }
    }
}

/// Returns the last lines of a log, enough for the error of a component that failed.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// A reserved port on loopback. kube-apiserver cannot choose a free port by itself. It shares the port with this socket, so
/// that no other process can take it in between.
struct Port {
    number: u16,
    _held: Socket,
}

impl Port {
    fn reserve() -> Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let number = socket.local_addr()?.as_socket().context("a port without a number")?.port();
        Ok(Self { number, _held: socket })
    }
}
