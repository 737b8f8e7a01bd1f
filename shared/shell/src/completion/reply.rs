//! Replies in cobra's protocol: one line per candidate, and a final line with a directive for the shell.

use std::fmt;

/// The length at which descriptions are truncated.
const LONGEST: usize = 80;

/// The maximum length of a value.
const LONGEST_VALUE: usize = 512;

/// A candidate for the word at the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The word.
    pub value: String,
    /// A one-line description; may be empty.
    pub about: String,
}

impl Candidate {
    /// Returns a candidate with a description.
    pub fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self { value: value.into(), about: about.into() }
    }

    /// Returns whether every shell reads the value as a single word. Names of packages and contexts are untrusted.
    pub(super) fn is_harmless(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,%".contains(c);
        !self.value.is_empty() && self.value.len() <= LONGEST_VALUE && self.value.chars().all(plain)
    }
}

/// The directive for the shell: cobra's `ShellCompDirective`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directive {
    /// Offer only the candidates.
    #[default]
    Words,
    /// Offer only the candidates, and add no space, because more of the word follows.
    Parts,
    /// Offer files if there are no candidates.
    Files,
    /// Offer files if there are no candidates, and add no space.
    FilesAndParts,
}

impl Directive {
    /// Returns the directive that adds no space.
    pub(super) fn without_space(self) -> Self {
        match self {
            Self::Words | Self::Parts => Self::Parts,
            Self::Files | Self::FilesAndParts => Self::FilesAndParts,
        }
    }

    /// Returns cobra's number of the directive: 2 is "no space", 4 is "no files".
    fn number(self) -> u8 {
        match self {
            Self::Words => 4,
            Self::Parts => 6,
            Self::Files => 0,
            Self::FilesAndParts => 2,
        }
    }
}

/// A reply. `Display` is the text of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// The directive.
    pub directive: Directive,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Candidate { value, about } in &self.candidates {
            match line(about).as_str() {
                "" => writeln!(f, "{value}")?,
                about => writeln!(f, "{value}\t{about}")?,
            }
        }
        writeln!(f, ":{}", self.directive.number())
    }
}

/// Returns a description as one short line without control characters.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let plain: String = first.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", plain[..end].trim_end()),
        None => plain.trim().to_owned(),
    }
}
