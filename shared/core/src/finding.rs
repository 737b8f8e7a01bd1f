//! What is wrong with input that people wrote: where, what, and what to try next.

use std::fmt;

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// What it is about cannot be used.
    #[default]
    Error,
    /// It can be used, and yet something is not as it should be.
    Warning,
    /// Nothing need be done about it.
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

/// One thing that is wrong with a file, an object or a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// File the finding is about, as the reader was given it; empty when it is about no single file.
    pub file: String,
    /// Line in the file from 1, 0 when unknown.
    pub line: usize,
    /// How bad it is.
    pub severity: Severity,
    /// Stable name of the rule, for scripts: `duplicate-package`.
    pub code: &'static str,
    /// The object, package or channel, as people name it: `package "rose"`; may be empty.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What to try next; may be empty.
    pub hint: String,
}

impl Finding {
    /// A finding without a place; add what is known with the other functions.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }

    /// The same as a warning.
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Names the file and the line (0 when unknown).
    pub fn at(mut self, file: &str, line: usize) -> Self {
        file.clone_into(&mut self.file);
        self.line = line;
        self
    }

    /// Names what the finding is about.
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// The finding in one line, for logs: the hint in brackets.
    pub fn one_line(&self) -> String {
        match self.hint.as_str() {
            "" => self.to_string(),
            hint => format!("{} ({hint})", Self { hint: String::new(), ..self.clone() }),
        }
    }

    /// Says what to try next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}

impl fmt::Display for Finding {
    /// `file:line: subject: message`, and the hint on a line of its own.
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
