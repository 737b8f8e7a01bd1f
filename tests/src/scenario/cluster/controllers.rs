//! `kubectl olm run` as a process with a captured log. Dropping it ends the process.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::plugin::binary;
use crate::scenario::engine::Progress;

/// The plugin.
pub(super) const NAME: &str = "kubectl-olm-run";

/// An audit lists everything once and waits only for the catalogs.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the controllers may take to report the address of their metrics.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The controllers under test, live.
pub(super) struct Controllers {
    process: Child,
    folder: TempDir,
    /// The flags that an audit receives, too.
    flags: Vec<String>,
    log: Arc<Mutex<String>>,
    /// The address of their metrics.
    metrics: String,
}

/// Captures the log until the process ends, and sends the address of the metrics.
fn keep(stderr: ChildStderr, log: &Mutex<String>, serving: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if line.contains(" serving ")
            && let Some(address) = line.split_whitespace().find_map(|word| word.strip_prefix("address="))
        {
            // There is no receiver after the first address.
            let _ = serving.send(address.to_owned());
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(&line);
        log.push('\n');
    }
}

impl Controllers {
    /// Starts them on the kubeconfig's cluster.
    pub(super) fn start(kubeconfig: &Path, flags: &[String]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut process = command(kubeconfig, &["-v", "4", "--metrics-address", "127.0.0.1:0"])?
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context(NAME)?;
        let log = Arc::new(Mutex::new(String::new()));
        let (sender, serving) = channel();
        if let Some(stderr) = process.stderr.take() {
            let log = log.clone();
            std::thread::spawn(move || keep(stderr, &log, &sender));
        }
        let flags = flags.to_vec();
        let mut controllers = Self { process, folder, flags, log, metrics: String::new() };
        match serving.recv_timeout(START_TIMEOUT) {
            Ok(address) => controllers.metrics = address,
            Err(_) => bail!("{NAME} does not serve metrics:\n{}", controllers.log()),
        }
        Ok(controllers)
    }

    /// Returns how many actions they have executed, and how much work is left.
    pub(super) fn progress(&self) -> Result<Progress> {
        let mut connection = TcpStream::connect(&self.metrics)?;
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        Progress::read(&std::io::read_to_string(connection)?)
    }

    /// Returns their log so far.
    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns an error if the process has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("{NAME} ended with {status}:\n{}", self.log()),
            None => Ok(()),
        }
    }

    /// Returns what they would do if they were restarted now on the kubeconfig's cluster, as an audit prints it.
    pub(super) fn audit(&self, kubeconfig: &Path) -> Result<Vec<String>> {
        let errors = self.folder.path().join("audit-errors");
        let mut audit = command(kubeconfig, &["--audit", "--once"])?;
        audit.args(&self.flags);
        let mut audit = audit.stdout(Stdio::piped()).stderr(File::create(&errors)?).spawn().context(NAME)?;
        let stdout = audit.stdout.take();
        let (sender, said) = channel();
        std::thread::spawn(move || {
            let text = stdout.map(std::io::read_to_string);
            // There is no receiver after the timeout.
            let _ = sender.send(text);
        });
        let Ok(text) = said.recv_timeout(AUDIT_TIMEOUT) else {
            audit.kill()?;
            audit.wait()?;
            return Ok(vec![format!("--audit --once does not end within {} s", AUDIT_TIMEOUT.as_secs())]);
        };
        let (text, status) = (text.transpose()?.unwrap_or_default(), audit.wait()?);
        // Exit code 1 means that something is blocked, which is expected in many scenarios.
        if !matches!(status.code(), Some(0 | 1)) {
            bail!("{NAME} --audit --once ended with {status}:\n{}", std::fs::read_to_string(errors)?);
        }
        let would = text.lines().filter(|line| line.starts_with("would "));
        Ok(would.map(str::to_owned).collect())
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(kubeconfig: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary(NAME)?);
    command.args(arguments).env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
    Ok(command)
}
