//! Log lines on stderr: for people, or one JSON object a line.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::flags::{LogFlags, LogFormat};

/// The crates whose lines are ours; the others speak from verbosity 6 on, when requests are asked for.
const OURS: [&str; 2] = ["olm_core", "olm_shell"];

/// Starts logging. `usual` is the level at verbosity 0: warnings for a command that answers and ends, and what happens
/// for the controllers. `RUST_LOG` in the environment overrules both.
pub fn start(flags: LogFlags, usual: LevelFilter) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(directives(flags.verbosity, usual)));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
        .with_target(flags.verbosity >= 4);
    // An error says that logging runs already, as when tests share a process.
    match flags.log_format {
        LogFormat::Text => lines.try_init().ok(),
        LogFormat::Json => lines.json().flatten_event(true).try_init().ok(),
    };
}

/// What is logged at a verbosity, in the language of `RUST_LOG`. kubectl's own scale: 2 for what happens, 4 for why, 6
/// for requests, 8 for everything.
fn directives(verbosity: u8, usual: LevelFilter) -> String {
    let (ours, others) = match verbosity {
        0..=1 => (usual, LevelFilter::WARN),
        2..=3 => (LevelFilter::INFO, LevelFilter::WARN),
        4..=5 => (LevelFilter::DEBUG, LevelFilter::WARN),
        6..=7 => (LevelFilter::DEBUG, LevelFilter::DEBUG),
        8.. => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    OURS.iter().fold(others.to_string(), |all, name| format!("{all},{name}={ours}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_is_kubectls_scale() {
        assert_eq!(directives(0, LevelFilter::WARN), "warn,olm_core=warn,olm_shell=warn");
        assert_eq!(directives(0, LevelFilter::INFO), "warn,olm_core=info,olm_shell=info");
        assert_eq!(directives(4, LevelFilter::INFO), "warn,olm_core=debug,olm_shell=debug");
        assert_eq!(directives(9, LevelFilter::WARN), "trace,olm_core=trace,olm_shell=trace");
    }
}
