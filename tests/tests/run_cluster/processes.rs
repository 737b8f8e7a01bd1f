//! The controllers as processes, and further requests to the cluster.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use olm_tests::control_plane::{ControlPlane, Options};
use olm_tests::plugin::binary;
use serde_json::Value;

/// Takes seconds on an idle machine.
pub(super) const TIMEOUT: Duration = Duration::from_mins(1);
/// How long the controllers may take to end after a signal.
const GRACEFUL: Duration = Duration::from_secs(2);

pub(super) fn plane(crds: Vec<Value>) -> ControlPlane {
    binary("kubectl-olm-run").unwrap();
    ControlPlane::start_with(Options { scheduler: false, kwok: false, crds, ..Options::default() }).unwrap()
}

pub(super) fn run(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("kubectl-olm-run").unwrap());
    command.args(arguments).env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
    command
}

/// Returns exit code and stderr.
pub(super) fn ends(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = run(kubeconfig, arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// Running controllers.
pub(super) struct Running {
    process: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(super) fn start(kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::spawn(run(kubeconfig, arguments))
    }

    /// Does the same as in a pod, which is started again when it ends.
    pub(super) fn start_in_pod(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let mut command = run(kubeconfig, arguments);
        command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        Self::spawn(command)
    }

    /// Does the same, with a limit of virtual memory in KiB.
    pub(super) fn start_within(kib: u64, kubeconfig: &Path, arguments: &[&str]) -> Self {
        let limited = format!("ulimit -v {kib}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.arg("-c").arg(limited).arg(binary("kubectl-olm-run").unwrap()).args(arguments);
        command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Self { process, lines }
    }

    /// Returns the process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends a signal, for example `TERM`.
    pub(super) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    /// Waits for a line with these words.
    pub(super) fn says(&self, words: &str) -> String {
        self.says_within(TIMEOUT, words)
    }

    /// Does the same with another timeout.
    pub(super) fn says_within(&self, timeout: Duration, words: &str) -> String {
        let end = Instant::now() + timeout;
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(words) {
                return line;
            }
            said.push(line);
        }
        panic!("it does not print {words:?}:\n{}", said.join("\n"));
    }

    /// Returns whether it is still running.
    pub(super) fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Returns the output since the last call.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.try_iter()
    }

    /// Returns its peak memory in MB.
    pub(super) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
    }

    /// Waits until it ends by itself.
    pub(super) fn exit_code(mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }

    /// Ends it gracefully.
    pub(super) fn end(mut self) -> Option<i32> {
        let began = Instant::now();
        self.signal("TERM");
        let status = self.process.wait().unwrap();
        assert!(began.elapsed() < GRACEFUL, "it took {:?}", began.elapsed());
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn holder(plane: &ControlPlane) -> String {
    let get = ["get", "lease", "-n", "olm", "kubectl-olm-run", "-o", "jsonpath={.spec.holderIdentity}"];
    String::from_utf8(plane.kubectl(get).output().unwrap().stdout).unwrap()
}

pub(super) fn kubectl(plane: &ControlPlane, line: &str) {
    let output = plane.kubectl(line.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}
