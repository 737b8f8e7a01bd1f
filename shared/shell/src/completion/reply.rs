//! Candidates as cobra's protocol has them: a line each, and what the shell should do besides in the last.

use std::fmt;

/// Longer descriptions are cut off.
const LONGEST: usize = 80;

/// Longer values are no names.
const LONGEST_VALUE: usize = 512;

/// A word that may stand where the cursor is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The word.
    pub value: String,
    /// What it is, in a line; may be empty.
    pub about: String,
}

impl Candidate {
    /// A word and what it is.
    pub fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self { value: value.into(), about: about.into() }
    }

    /// Would every shell take it for one word as it stands? Names of packages and contexts are anybody's choice.
    pub(super) fn is_harmless(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=+,%".contains(c);
        !self.value.is_empty() && self.value.len() <= LONGEST_VALUE && self.value.chars().all(plain)
    }
}

/// What the shell should do besides offering the candidates: cobra's `ShellCompDirective`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directive {
    /// Offer nothing else.
    #[default]
    Words,
    /// The same, and add no space behind a candidate, as more of the word is to come.
    Parts,
    /// Offer files if there are no candidates.
    Files,
    /// The same, and add no space.
    FilesAndParts,
}

impl Directive {
    /// The same, and no space is added.
    pub(super) fn without_space(self) -> Self {
        match self {
            Self::Words | Self::Parts => Self::Parts,
            Self::Files | Self::FilesAndParts => Self::FilesAndParts,
        }
    }

    /// cobra's number for it: 2 is "no space", 4 is "no files".
    fn number(self) -> u8 {
        match self {
            Self::Words => 4,
            Self::Parts => 6,
            Self::Files => 0,
            Self::FilesAndParts => 2,
        }
    }
}

/// What is answered. `Display` is the text of the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// What may stand there.
    pub candidates: Vec<Candidate>,
    /// What else.
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

/// A description in one short line that does nothing to a terminal.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let plain: String = first.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", plain[..end].trim_end()),
        None => plain.trim().to_owned(),
    }
}
