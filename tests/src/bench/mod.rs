//! What the measuring programs in `benches/` share: release builds, many runs told as one line, and the controllers on a real
//! cluster.

pub mod live;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::house::{manifests, sources};

/// Builds a plugin as it is released, stripped, and gives its path. All plugins decide together on the features of what they
/// depend on, so that the next one needs no other dependencies.
pub fn release(package: &str) -> Result<PathBuf> {
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(sources::root()).args(["build", "--release", "--locked", "--bin", package]);
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

/// How long something took, several times.
#[derive(Clone, Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Does something `runs` times, after once to warm up.
    pub fn of(runs: usize, mut something: impl FnMut() -> Result<()>) -> Result<Self> {
        something()?;
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            let began = Instant::now();
            something()?;
            times.push(began.elapsed());
        }
        Ok(Self::all(times))
    }

    /// These, in whatever order.
    pub fn all(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The middle one.
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
    fn the_median_is_the_middle_one() {
        let times = Times([1, 2, 90].map(Duration::from_millis).to_vec());
        assert_eq!(times.median(), Duration::from_millis(2));
        assert_eq!(times.to_string(), "median 2.0 ms (1.0 to 90.0, 3 runs)");
    }
}
