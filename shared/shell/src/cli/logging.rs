//! Logging to stderr, as text or as one JSON object per line.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::flags::{LogFlags, LogFormat};
use crate::cluster::client::REQUESTS;
use crate::visible;

/// The crates of this project. Other crates log only from verbosity 6 on.
const OURS: [&str; 2] = ["olm_core", "olm_shell"];

/// The log level when no verbosity is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usually {
    /// Errors only.
    Errors,
    /// Warnings: for commands, which report their results by other means.
    Warnings,
    /// Events: for controllers, which report by their log.
    Events,
}

/// The target under which kube's client logs response bodies, including Secrets.
const BODIES: &str = "kube_client::client";

/// Starts logging. The environment variable `RUST_LOG` takes precedence over the flags.
pub fn start(flags: LogFlags, usually: Usually) {
    let verbosity = flags.verbosity.unwrap_or(match usually {
        Usually::Errors | Usually::Warnings => 0,
        Usually::Events => 2,
    });
    let usual = || {
        let only_errors = usually == Usually::Errors && flags.verbosity.is_none();
        filter(&if only_errors { "error,kube_client=off".to_owned() } else { directives(verbosity) })
    };
    // Targets and levels only: the filters on fields of EnvFilter need regular expressions, and the code for those.
    let given = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = given.and_then(|text| text.parse().ok()).map_or_else(usual, without_bodies);
    let format = flags.log_format.unwrap_or(LogFormat::Text);
    let is_json = matches!(format, LogFormat::Json);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || visible::Log::to(std::io::stderr(), is_json))
        .with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
        .with_target(verbosity >= 4);
    let log = tracing_subscriber::registry().with(filter);
    // An error means that logging is already initialized, as in tests that share a process.
    match format {
        LogFormat::Text => log.with(lines).try_init().ok(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).try_init().ok(),
    };
}

/// Parses directives of this module.
fn filter(directives: &str) -> Targets {
    directives.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::WARN))
}

/// Returns the filter without response bodies, whatever it contains.
fn without_bodies(filter: Targets) -> Targets {
    filter.with_target(BODIES, LevelFilter::OFF)
}

/// Returns the directives of a verbosity in `RUST_LOG` syntax, on kubectl's scale: 2 for events, 4 for details, 6 for
/// requests, 8 for everything.
fn directives(verbosity: u8) -> String {
    let (ours, others) = match verbosity {
        0..=1 => (LevelFilter::WARN, LevelFilter::WARN),
        2..=3 => (LevelFilter::INFO, LevelFilter::WARN),
        4..=5 => (LevelFilter::DEBUG, LevelFilter::WARN),
        6..=7 => (LevelFilter::DEBUG, LevelFilter::DEBUG),
        8.. => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    // Callers report failed requests; kube would report them again, as errors.
    let client = match verbosity {
        0..=5 => ",kube_client=off".to_owned(),
        6.. => format!(",{BODIES}=off,{REQUESTS}={others}"),
    };
    OURS.iter().fold(format!("{others}{client}"), |all, name| format!("{all},{name}={ours}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_is_kubectls_scale() {
        assert_eq!(directives(0), "warn,kube_client=off,olm_core=warn,olm_shell=warn");
        assert_eq!(directives(2), "warn,kube_client=off,olm_core=info,olm_shell=info");
        assert_eq!(directives(4), "warn,kube_client=off,olm_core=debug,olm_shell=debug");
        let requests = "kube_client::client=off,kube_client::client::builder";
        assert_eq!(directives(6), format!("debug,{requests}=debug,olm_core=debug,olm_shell=debug"));
        assert_eq!(directives(9), format!("trace,{requests}=trace,olm_core=trace,olm_shell=trace"));
        for own in (0..10).map(directives) {
            assert!(own.parse::<Targets>().is_ok(), "{own}");
        }
        for given in ["trace", "info,kube_client::client=trace", "kube_client=debug"] {
            let filter = without_bodies(given.parse().unwrap());
            assert!(!filter.would_enable(BODIES, &tracing::Level::ERROR), "{given}");
            assert!(filter.would_enable("kube_client::api", &tracing::Level::INFO), "{given}");
        }
    }
}
