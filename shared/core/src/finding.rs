//! Findings about user input: place, problem, and hint.

use std::fmt;

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The subject cannot be used.
    #[default]
    Error,
    /// The subject can be used, but has a problem.
    Warning,
    /// No action is required.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// A problem of a file, an object or a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// File of the finding, as it was passed to the reader; empty if the finding is not about a single file.
    pub file: String,
    /// Line in the file, starting at 1; 0 if unknown.
    pub line: usize,
    /// Severity.
    pub severity: Severity,
    /// Stable name of the rule, for scripts: `duplicate-package`.
    pub code: &'static str,
    /// The object, package or channel, such as `package "rose"`; may be empty.
    pub subject: String,
    /// The problem.
    pub message: String,
    /// A suggested next step; may be empty.
    pub hint: String,
}

impl Finding {
    /// Creates an error without a place, subject or hint.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }

    /// Returns the finding as a warning.
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Sets the file and the line (0 if unknown).
    pub fn at(mut self, file: &str, line: usize) -> Self {
        file.clone_into(&mut self.file);
        self.line = line;
        self
    }

    /// Sets the subject.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Formats the finding in one line, for logs, with the hint in parentheses.
    pub fn one_line(&self) -> String {
        match self.hint.as_str() {
            "" => self.to_string(),
            hint => format!("{} ({hint})", Self { hint: String::new(), ..self.clone() }),
        }
    }

    /// Sets the hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for Finding {
    /// Formats `file:line: subject: message`, and the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, severity: _, code: _, subject, message, hint } = self;
        if !file.is_empty() {
            f.write_str(file)?;
            if *line > 0 {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !subject.is_empty() {
            write!(f, "{subject}: ")?;
        }
        f.write_str(message)?;
        if !hint.is_empty() {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Finding {}
