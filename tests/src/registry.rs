//! A real image registry for tests: `registry` of distribution, built by Go from `tests/registry`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use notify::{RecursiveMode, Watcher};
use tempfile::TempDir;

use crate::control_plane::binaries;
use crate::control_plane::pki::Authority;
use crate::control_plane::processes::Processes;

/// The only user of a registry with a login.
pub const USER: &str = "gardener";
/// The user's password.
pub const PASSWORD: &str = "secret";
/// The password in the format of htpasswd: bcrypt with the lowest cost.
const PASSWORD_HASH: &str = "$2a$04$dtE75zKm9DUbq9Vt6.ir1.Zc4aJapSftM6lJF4JwHv9FvT34UF7eS";

/// How long the registry may take to listen.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Returns whether tests that need a registry are skipped: `OLM_TEST_REGISTRY=skip`. Reports so on standard error.
pub fn skipped() -> bool {
    let skip = std::env::var_os("OLM_TEST_REGISTRY").is_some_and(|value| value == "skip");
    if skip {
        // Not captured by the test harness, unlike the output of `eprintln!`. A test may have no standard error.
        drop(writeln!(io::stderr(), "skipped: needs a registry, and OLM_TEST_REGISTRY=skip"));
    }
    skip
}

/// Options of a registry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// With TLS, by an unknown certificate authority.
    pub tls: bool,
    /// With a login: [`USER`] and [`PASSWORD`].
    pub login: bool,
}

/// A running registry on loopback. Dropping it ends it.
pub struct Registry {
    // In the order in which they must be dropped: the folder after the processes that write to it.
    _processes: Processes,
    folder: TempDir,
    host: String,
}

impl Registry {
    /// Starts a registry and returns when it listens.
    ///
    /// # Errors
    /// The binary is missing, or the registry fails; contains its log.
    pub fn start(setup: Setup) -> Result<Self> {
        let binary = binaries::registry()?;
        let folder = tempfile::Builder::new().prefix("registry-").tempdir()?;
        let logs = folder.path().join("log");
        fs::create_dir(&logs)?;
        let config = folder.path().join("config.yaml");
        fs::write(&config, configuration(folder.path(), setup)?)?;
        let mut processes = Processes::new(folder.path(), logs)?;
        let mut command = Command::new(binary);
        command.args(["serve".as_ref(), config.as_os_str()]).env_clear().env("OTEL_TRACES_EXPORTER", "none");
        processes.start("registry", &mut command)?;
        let host = listening(&mut processes)?;
        Ok(Self { _processes: processes, folder, host })
    }

    /// `host:port`
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the certificate of the authority, in PEM; empty without TLS.
    pub fn authority(&self) -> Vec<u8> {
        fs::read(self.folder.path().join("ca.crt")).unwrap_or_default()
    }

    /// Returns the file of a blob, for tests that damage it.
    pub fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        let blobs = self.folder.path().join("data/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }
}

fn configuration(folder: &Path, setup: Setup) -> Result<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut config = format!(
        "version: 0.1\nlog: {{ level: info }}\nstorage: {{ filesystem: {{ rootdirectory: {:?} }} }}\nhttp:\n  addr: 127.0.0.1:0\n",
        path("data")
    );
    if setup.tls {
        let authority = Authority::new()?;
        let server = authority.server()?;
        fs::write(path("ca.crt"), authority.certificate())?;
        fs::write(path("tls.crt"), server.certificate)?;
        fs::write(path("tls.key"), server.key)?;
        config += &format!("  tls: {{ certificate: {:?}, key: {:?} }}\n", path("tls.crt"), path("tls.key"));
    }
    if setup.login {
        fs::write(path("htpasswd"), format!("{USER}:{PASSWORD_HASH}\n"))?;
        config += &format!("auth: {{ htpasswd: {{ realm: garden, path: {:?} }} }}\n", path("htpasswd"));
    }
    Ok(config)
}

/// Returns the address that the registry listens on, according to its log.
fn listening(processes: &mut Processes) -> Result<String> {
    let log = processes.log("registry");
    let (sender, written) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event| drop(sender.send(event)))?;
    watcher.watch(&log, RecursiveMode::NonRecursive)?;
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(&log).context("the registry's log")?;
        if let Some(address) = address(&text) {
            return Ok(address);
        }
        if let Some((_, status)) = processes.ended() {
            bail!("the registry ended ({status}): {text}");
        }
        let left = TIMEOUT.saturating_sub(started.elapsed());
        written.recv_timeout(left).with_context(|| format!("the registry does not listen: {text}"))??;
    }
}

fn address(log: &str) -> Option<String> {
    // The last line may be incomplete.
    let (complete, _) = log.rsplit_once('\n')?;
    let (_, rest) = complete.split_once("listening on ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}
