//! How a command ends.

use std::process::ExitCode;

/// How a command that could answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done, or nothing to complain about: exit code 0.
    Done,
    /// The answer is no (findings, blocked, unsatisfiable, not approved): exit code 1.
    Negative,
    /// There is an answer, and it is that nobody can tell: exit code 2.
    Unknown,
    /// Somebody stopped it with Ctrl-C: exit code 130, as shells have it.
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
