//! Processes that never outlive their owner: dropping [`Processes`] kills them, and if the owner itself is killed, a watchdog
//! does.
//!
//! The watchdog is a shell that reads process ids from a pipe held only by the owner. The kernel closes the pipe when the owner
//! ends for any reason; the watchdog then kills these processes and removes the folder.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

const WATCHDOG: &str = r#"pids=; while read -r pid; do pids="$pids $pid"; done; kill -KILL $pids; rm -rf -- "$1""#;

/// A set of running processes, each with a log file.
pub(crate) struct Processes {
    running: Vec<(&'static str, Child)>,
    watchdog: Child,
    pids: ChildStdin,
    logs: PathBuf,
}

impl Processes {
    /// Creates an empty set. Logs are written to the existing folder `logs`. Only the watchdog removes `folder`.
    pub(crate) fn new(folder: &Path, logs: PathBuf) -> Result<Self> {
        let mut watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // An interrupt from the terminal ends the owner, and must not end the watchdog.
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let pids = watchdog.stdin.take().context("the watchdog has no standard input")?;
        Ok(Self { running: Vec::new(), watchdog, pids, logs })
    }

    /// Starts `command` with both outputs redirected to the log file of `name`.
    pub(crate) fn start(&mut self, name: &'static str, command: &mut Command) -> Result<()> {
        let log = File::create(self.log(name))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let pid = child.id();
        self.running.push((name, child));
        writeln!(self.pids, "{pid}").context("the watchdog has ended")
    }

    /// Returns the first process that has ended, with its exit status.
    pub(crate) fn ended(&mut self) -> Option<(&'static str, ExitStatus)> {
        self.running.iter_mut().find_map(|(name, child)| Some((*name, child.try_wait().ok()??)))
    }

    /// Returns the ids of all processes, including the watchdog's.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.running.iter().map(|(_, child)| child.id()).chain([self.watchdog.id()]).collect()
    }

    /// Returns the log file of the process `name`.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs.join(name).with_extension("log")
    }
}

impl Drop for Processes {
    /// Kills the processes, because kube-apiserver takes up to a minute to terminate. The watchdog is ended before any process
    /// is reaped, because a reaped id may belong to another process.
    fn drop(&mut self) {
        let Self { running, watchdog, .. } = self;
        // If a process cannot be killed or waited for, it has already ended.
        for (_, child) in running.iter_mut() {
            drop(child.kill());
        }
        drop(watchdog.kill());
        for (_, child) in running {
            drop(child.wait());
        }
        drop(watchdog.wait());
    }
}
