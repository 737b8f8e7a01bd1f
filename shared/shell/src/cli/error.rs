//! Errors of commands: what was refused, where, why, and the next step.

use std::fmt;
use std::io;
use std::process::ExitCode;

use owo_colors::OwoColorize;

use crate::{causes, visible};

/// The kind of an error. A negative result is not an error: see `cli::Outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is invalid, or refers to something that does not exist.
    Usage,
    /// A file or an object in the input is invalid.
    Input,
    /// No cluster is configured.
    NoCluster,
    /// An error of the operating system.
    Io,
    /// The API server refused a request.
    Api,
    /// No response from the API server, a registry or a catalog.
    Unreachable,
    /// The reader of the output has closed it (`| head`). The command stops without a message.
    Closed,
    /// An error in this program.
    Internal,
}

/// An error as a command prints it: a message, its location, hints and causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    /// The kind.
    pub kind: ErrorKind,
    /// What was refused and why, without a full stop.
    pub message: String,
    /// The location: `file:line`, an object or an address.
    pub location: Option<String>,
    /// The next steps.
    pub hints: Vec<String>,
    /// The causes, the immediate cause first; printed with `-v=4`.
    pub causes: Vec<String>,
    /// Further errors.
    pub others: Vec<Self>,
}

impl CliError {
    /// Returns an error of a kind, with its message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            location: None,
            hints: Vec::new(),
            causes: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Returns an error in the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Returns an error in the input.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// Combines several errors, all of which are printed. Returns nothing if there are none.
    pub fn all(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        first.others.extend(errors);
        Some(first)
    }

    /// Returns the error with its location.
    #[must_use]
    pub fn at(mut self, location: impl fmt::Display) -> Self {
        self.location = Some(location.to_string());
        self
    }

    /// Returns the error with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the error with the failed operation before its message.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Returns the error with the causes of the original error, except causes that its message contains.
    #[must_use]
    pub fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        self.causes.extend(causes::all(error).filter(|cause| !self.message.contains(cause.as_str())));
        self
    }

    /// Returns the exit code: 2, for an unknown result, or 0 if the reader has closed the output.
    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            ErrorKind::Closed => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        }
    }

    /// Returns the lines for stderr, with colours. The stream removes colours where they are disabled.
    pub fn render(&self) -> String {
        self.lines(false)
    }

    /// Does the same, with the causes of each error.
    pub fn render_with_causes(&self) -> String {
        self.lines(true)
    }

    fn lines(&self, with_causes: bool) -> String {
        let mut text = String::new();
        let shown = |words: &str| visible::lines(&visible::hanging(words)).into_owned();
        let all: Vec<&Self> = self.each().collect();
        for (n, error) in all.iter().enumerate() {
            text += &format!("{} {}\n", "error:".red().bold(), shown(&error.to_string()));
            for cause in error.causes.iter().filter(|_| with_causes) {
                text += &format!("{} {}\n", "cause:".red().bold(), shown(cause));
            }
            // A hint that several errors share is given once.
            let next = all.get(n + 1).map_or(&[][..], |next| &next.hints);
            for hint in error.hints.iter().filter(|hint| !next.contains(hint)) {
                text += &format!("{} {}\n", "hint:".cyan().bold(), shown(hint));
            }
        }
        text
    }

    /// Returns this error and the further errors.
    pub fn each(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        Box::new(std::iter::once(self).chain(self.others.iter().flat_map(Self::each)))
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { message, location, .. } = self;
        match location {
            Some(location) => write!(f, "{location}: {message}"),
            None => f.write_str(message),
        }
    }
}

impl std::error::Error for CliError {}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(ErrorKind::Closed, "the output was closed by its reader"),
            _ => Self::new(ErrorKind::Io, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_location_precedes_the_message_and_the_hint_has_its_own_line() {
        let error = CliError::input("no kind").at("a.yaml:3").hint("write one");
        assert_eq!(error.to_string(), "a.yaml:3: no kind");
        assert_eq!(
            anstream::adapter::strip_str(&error.render()).to_string(),
            "error: a.yaml:3: no kind\nhint: write one\n"
        );
    }

    #[test]
    fn all_errors_are_printed_and_a_shared_hint_once() {
        let [a, b, c] = ["a", "b", "c"].map(|name| CliError::input(format!("no {name}")));
        let all = CliError::all([a.hint("write one"), b.hint("write one"), c]).unwrap();
        assert_eq!(
            anstream::adapter::strip_str(&all.render()).to_string(),
            "error: no a\nerror: no b\nhint: write one\nerror: no c\n"
        );
        assert_eq!(CliError::all([]), None);
    }

    #[test]
    fn causes_are_printed_on_request_and_not_repeated() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Caused(&'static str, #[source] Option<Box<Self>>);
        let caused = Caused("no tea", Some(Box::new(Caused("no water", Some(Box::new(Caused("drought", None)))))));
        let error = CliError::input("no tea: no water").caused_by(&caused);
        assert_eq!(anstream::adapter::strip_str(&error.render()).to_string(), "error: no tea: no water\n");
        assert_eq!(
            anstream::adapter::strip_str(&error.render_with_causes()).to_string(),
            "error: no tea: no water\ncause: drought\n"
        );
    }

    #[test]
    fn closed_output_is_not_a_failure() {
        let closed = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(closed.exit_code(), ExitCode::SUCCESS);
        let full = CliError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit_code(), ExitCode::from(2));
    }
}
