//! Errors for people: what was refused, where, why, and what to try next.

use std::fmt;
use std::io;
use std::process::ExitCode;

use owo_colors::OwoColorize;

use crate::{causes, visible};

/// What kind of trouble stopped a command. A negative *answer* is no error: see `cli::Outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line asks for something that does not exist or does not fit together.
    Usage,
    /// A file or an object that the user gave cannot be read as what it should be.
    Input,
    /// Nothing says which cluster to talk to.
    NoCluster,
    /// The operating system refused.
    Io,
    /// The API server refused.
    Api,
    /// No answer from the API server, a registry or a catalog.
    Unreachable,
    /// The reader of our output has gone (`| head`): no more is wanted, and nothing is said.
    Closed,
    /// Not the user's fault.
    Internal,
}

/// An error as it is shown to a person: one sentence, where it is, hints, and its causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// What was refused and why, without a full stop.
    pub message: String,
    /// Where: `file:line`, an object, an address.
    pub location: Option<String>,
    /// What to try next.
    pub hints: Vec<String>,
    /// What caused it, the nearest cause first: shown with `-v=4`.
    pub causes: Vec<String>,
    /// What is wrong besides.
    pub others: Vec<Self>,
}

impl CliError {
    /// An error of a kind, with its message.
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

    /// An error in the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// An error in what the user gave to read.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// Several errors as one, each of which is shown; none when there are none.
    pub fn all(errors: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        first.others.extend(errors);
        Some(first)
    }

    /// The same error with its place.
    #[must_use]
    pub fn at(mut self, location: impl fmt::Display) -> Self {
        self.location = Some(location.to_string());
        self
    }

    /// The same error with one more thing to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same error, said of what was being done.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same error with the causes of the error that it was made of. Causes that its message repeats are left out.
    #[must_use]
    pub fn caused_by(mut self, error: &dyn std::error::Error) -> Self {
        self.causes.extend(causes::all(error).filter(|cause| !self.message.contains(cause.as_str())));
        self
    }

    /// 2, "could not answer"; 0 when the reader has gone, as it has what it wanted.
    pub fn exit_code(&self) -> ExitCode {
        match self.kind {
            ErrorKind::Closed => ExitCode::SUCCESS,
            _ => ExitCode::from(2),
        }
    }

    /// The lines for stderr, coloured; the stream removes colours where they are not wanted.
    pub fn render(&self) -> String {
        self.lines(false)
    }

    /// The same, with the causes of each error.
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

    /// This error, and what is wrong besides.
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
            io::ErrorKind::BrokenPipe => Self::new(ErrorKind::Closed, "the reader of the output has gone"),
            _ => Self::new(ErrorKind::Io, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_comes_before_the_message_and_the_hint_has_its_own_line() {
        let error = CliError::input("no kind").at("a.yaml:3").hint("write one");
        assert_eq!(error.to_string(), "a.yaml:3: no kind");
        assert_eq!(
            anstream::adapter::strip_str(&error.render()).to_string(),
            "error: a.yaml:3: no kind\nhint: write one\n"
        );
    }

    #[test]
    fn several_errors_are_all_shown_and_a_hint_they_share_once() {
        let [a, b, c] = ["a", "b", "c"].map(|name| CliError::input(format!("no {name}")));
        let all = CliError::all([a.hint("write one"), b.hint("write one"), c]).unwrap();
        assert_eq!(
            anstream::adapter::strip_str(&all.render()).to_string(),
            "error: no a\nerror: no b\nhint: write one\nerror: no c\n"
        );
        assert_eq!(CliError::all([]), None);
    }

    #[test]
    fn causes_are_shown_when_asked_for_and_not_repeated() {
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
    fn a_reader_that_left_is_no_failure() {
        let gone = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(gone.exit_code(), ExitCode::SUCCESS);
        let full = CliError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.exit_code(), ExitCode::from(2));
    }
}
