//! The outcome of a command.

use std::process::ExitCode;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success, or no findings: exit code 0.
    Done,
    /// A negative result (findings, blocked, unsatisfiable, not approved): exit code 1.
    Negative,
    /// The result is unknown: exit code 2.
    Unknown,
    /// Interrupted by Ctrl-C: exit code 130, as in shells.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Negative => Self::from(1),
            Outcome::Unknown => Self::from(2),
            Outcome::Interrupted => Self::from(130),
        }
    }
}
