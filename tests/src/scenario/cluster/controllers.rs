//! `kubectl olm run` as a process: its log kept, ended when dropped.

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

/// An audit lists everything once; it has nothing to wait for but the catalogs.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the controllers may take until they tell where their metrics are.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The controllers under test, live.
pub(super) struct Controllers {
    process: Child,
    folder: TempDir,
    /// What an audit is told as well.
    flags: Vec<String>,
    log: Arc<Mutex<String>>,
    /// Where their metrics are.
    metrics: String,
}

/// Keeps what they log, until they end, and tells the address that they serve their metrics on.
fn keep(stderr: ChildStderr, log: &Mutex<String>, serving: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if line.contains(" serving ")
            && let Some(address) = line.split_whitespace().find_map(|word| word.strip_prefix("address="))
        {
            // Nobody listens after the first.
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

    /// What they say that they have done, and have to do.
    pub(super) fn progress(&self) -> Result<Progress> {
        let mut connection = TcpStream::connect(&self.metrics)?;
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        Progress::read(&std::io::read_to_string(connection)?)
    }

    /// What they have logged.
    pub(super) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails when they have ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.process.try_wait()? {
            Some(status) => bail!("{NAME} ended with {status}:\n{}", self.log()),
            None => Ok(()),
        }
    }

    /// What they would do if they started now on the kubeconfig's cluster, in an audit's words.
    pub(super) fn audit(&self, kubeconfig: &Path) -> Result<Vec<String>> {
        let errors = self.folder.path().join("audit-errors");
        let mut audit = command(kubeconfig, &["--audit", "--once"])?;
        audit.args(&self.flags);
        let mut audit = audit.stdout(Stdio::piped()).stderr(File::create(&errors)?).spawn().context(NAME)?;
        let stdout = audit.stdout.take();
        let (sender, said) = channel();
        std::thread::spawn(move || {
            let text = stdout.map(std::io::read_to_string);
            // Nobody listens any more when it took too long.
            let _ = sender.send(text);
        });
        let Ok(text) = said.recv_timeout(AUDIT_TIMEOUT) else {
            audit.kill()?;
            audit.wait()?;
            return Ok(vec![format!("--audit --once does not end within {} s", AUDIT_TIMEOUT.as_secs())]);
        };
        let (text, status) = (text.transpose()?.unwrap_or_default(), audit.wait()?);
        // 1 says that something is blocked, which many a scenario is about.
        if !matches!(status.code(), Some(0 | 1)) {
            bail!("{NAME} --audit --once ended with {status}:\n{}", std::fs::read_to_string(errors)?);
        }
        let would = text.lines().filter(|line| line.starts_with("would "));
        Ok(would.map(str::to_owned).collect())
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(kubeconfig: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary(NAME)?);
    command.args(arguments).env("KUBECONFIG", kubeconfig).stdin(Stdio::null());
    Ok(command)
}
