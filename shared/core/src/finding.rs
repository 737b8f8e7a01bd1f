//! Findings about user input: place, problem, and hint.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::visible::one_line;

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

impl Finding {
    /// Returns file, subject and message, each as one line: names of objects can contain line breaks.
    pub fn texts(&self) -> [Cow<'_, str>; 3] {
        [&self.file, &self.subject, &self.message].map(|text| one_line(text))
    }
}

impl fmt::Display for Finding {
    /// Formats `file:line: subject: message`, and the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, severity: _, code: _, hint, .. } = self;
        let [file, subject, message] = self.texts();
        if !file.is_empty() {
            f.write_str(&file)?;
            if *line > 0 {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if !subject.is_empty() {
            write!(f, "{subject}: ")?;
        }
        f.write_str(&message)?;
        if !hint.is_empty() {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Finding {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_objects_do_not_begin_lines() {
        let finding = Finding::new("refused", "no\n::error::forged").hint("correct it");
        let finding = Finding { subject: "ConfigMap/a\nb".to_owned(), ..finding.at("a\u{1b}.yaml", 2) };
        let shown = "a\\u{1b}.yaml:2: ConfigMap/a\\u{a}b: no\\u{a}::error::forged\nhint: correct it";
        assert_eq!(finding.to_string(), shown);
    }
}
