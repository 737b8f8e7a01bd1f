//! Log lines on stderr: for people, or one JSON object a line.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::flags::{LogFlags, LogFormat};
use crate::visible;

/// The crates whose lines are ours; the others speak from verbosity 6 on, when requests are asked for.
const OURS: [&str; 2] = ["olm_core", "olm_shell"];

/// What is logged when no verbosity is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usually {
    /// Nothing but errors.
    Errors,
    /// What needs attention: for commands, which say the rest themselves.
    Warnings,
    /// What happens: for controllers, whose log is what they say.
    Events,
}

/// Where kube's client logs the bodies of answers, Secrets among them.
const BODIES: &str = "kube_client::client";
/// Where it logs requests: their methods and addresses.
const REQUESTS: &str = "kube_client::client::builder";

/// Starts logging. `RUST_LOG` in the environment overrules the flags.
pub fn start(flags: LogFlags, usually: Usually) {
    let verbosity = flags.verbosity.unwrap_or(match usually {
        Usually::Errors | Usually::Warnings => 0,
        Usually::Events => 2,
    });
    let filter = EnvFilter::try_from_default_env().map(without_bodies);
    let filter = filter.unwrap_or_else(|_| {
        let only_errors = usually == Usually::Errors && flags.verbosity.is_none();
        EnvFilter::new(if only_errors { "error,kube_client=off".to_owned() } else { directives(verbosity) })
    });
    let format = flags.log_format.unwrap_or(LogFormat::Text);
    let is_json = matches!(format, LogFormat::Json);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || visible::Log::to(std::io::stderr(), is_json))
        .with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
        .with_target(verbosity >= 4);
    // An error says that logging runs already, as when tests share a process.
    match format {
        LogFormat::Text => lines.try_init().ok(),
        LogFormat::Json => lines.json().flatten_event(true).try_init().ok(),
    };
}

/// The same without the bodies of answers, whatever is asked for.
fn without_bodies(filter: EnvFilter) -> EnvFilter {
    match format!("{BODIES}=off").parse() {
        Ok(off) => filter.add_directive(off),
        Err(_) => filter,
    }
}

/// What is logged at a verbosity, in the language of `RUST_LOG`. kubectl's own scale: 2 for what happens, 4 for why, 6
/// for requests, 8 for everything.
fn directives(verbosity: u8) -> String {
    let (ours, others) = match verbosity {
        0..=1 => (LevelFilter::WARN, LevelFilter::WARN),
        2..=3 => (LevelFilter::INFO, LevelFilter::WARN),
        4..=5 => (LevelFilter::DEBUG, LevelFilter::WARN),
        6..=7 => (LevelFilter::DEBUG, LevelFilter::DEBUG),
        8.. => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    // What its requests meet is told by those who make them; kube would tell it again, as an error.
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
        assert!(without_bodies(EnvFilter::new("trace")).to_string().contains("kube_client::client=off"));
    }
}
