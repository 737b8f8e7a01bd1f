//! Common parts of the benchmarks in `benches/`: release builds, repeated runs summarised in one line, and the controllers on a
//! real cluster.

pub mod catalog;
pub mod live;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::house::{manifests, sources};

/// Builds a plugin as a stripped release binary and returns its path. All plugins are built together, because the features of
/// their dependencies are unified: building the next one needs no other dependencies. `OLM_BENCH_PLUGINS` names a folder with plugins to
/// measure instead, such as those of a published release.
pub fn release(package: &str) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("OLM_BENCH_PLUGINS") {
        return Ok(PathBuf::from(folder).join(package));
    }
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(sources::root()).args(["build", "--profile", "dist", "--locked", "--bin", package]);
    build.arg("--message-format=json-render-diagnostics");
    for plugin in manifests::members()?.into_iter().filter(|member| member.file.starts_with("plugins")) {
        build.args(["--package", &plugin.name]);
    }
    let build = build.stderr(std::process::Stdio::inherit()).output()?;
    ensure!(build.status.success(), "cannot build {package}");
    let messages = serde_json::Deserializer::from_slice(&build.stdout).into_iter::<Value>().filter_map(Result::ok);
    let executables = messages.filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from));
    executables.last().with_context(|| format!("{package} has no executable"))
}

/// Waits for a process, and returns whether it succeeded and its peak memory in millions of bytes.
pub fn watch(mut child: Child) -> Result<(bool, u64)> {
    /// The kernel records the peak, so the polling interval has little influence.
    const GLANCE: Duration = Duration::from_millis(2);
    let status = format!("/proc/{}/status", child.id());
    let (told, ended) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let ended = child.wait();
        // The receiver may have failed already, with its own error.
        told.send(()).ok();
        ended
    });
    let mut peak = 0;
    while ended.recv_timeout(GLANCE) == Err(RecvTimeoutError::Timeout) {
        let Ok(status) = fs::read_to_string(&status) else { continue };
        let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) else { continue };
        let kib: u64 = line.split_whitespace().next().context("no VmHWM")?.parse()?;
        peak = kib * 1024 / 1_000_000;
    }
    let status = waiting.join().map_err(|_| anyhow!("cannot wait for the program"))??;
    Ok((status.success(), peak))
}

/// Durations of repeated runs.
#[derive(Clone, Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Measures `runs` calls, after one call to warm up.
    pub fn new(runs: usize, mut something: impl FnMut() -> Result<()>) -> Result<Self> {
        something()?;
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            let began = Instant::now();
            something()?;
            times.push(began.elapsed());
        }
        Ok(Self::all(times))
    }

    /// Returns the given durations, in any order.
    pub fn all(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// Returns the median.
    pub fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Option<&Duration>| time.copied().unwrap_or_default().as_secs_f64() * 1000.0;
        let (least, most) = (ms(self.0.first()), ms(self.0.last()));
        write!(f, "median {:.1} ms ({least:.1} to {most:.1}, {} runs)", ms(Some(&self.median())), self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value() {
        let times = Times([1, 2, 90].map(Duration::from_millis).to_vec());
        assert_eq!(times.median(), Duration::from_millis(2));
        assert_eq!(times.to_string(), "median 2.0 ms (1.0 to 90.0, 3 runs)");
    }
}
