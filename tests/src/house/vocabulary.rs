//! Words that plain technical English does not need: in comments and string literals of Rust files, and in Markdown.

use std::path::Path;

use anyhow::Result;
use regex::Regex;

use super::Finding;
use super::citations::File;
use super::sources::{self, Source, code};

/// The refused words and phrases with their replacement. CONTRIBUTING.md has the complete table.
const REFUSED: [(&str, &str); 13] = [
    ("somebody", "a user, or another client"),
    ("anybody", "any client"),
    ("nobody", "no user, no client, or the passive"),
    ("whoever", "any client that"),
    ("makes? no sense", "is invalid"),
    ("told|tells|tell", "state, report or contain"),
    ("says|said", "state, report or contain"),
    ("mend(?:s|ed|ing)?", "fix, repair or correct"),
    ("wanted", "expected, desired or requested"),
    ("strangers?", "untrusted writer, or hostile tenant"),
    ("means? harm", "hostile"),
    ("all the same", "nevertheless"),
    ("(?:is|are) not there", "does not exist"),
];

/// Returns the refused words in comments and string literals of Rust files, and in Markdown files of the repository.
///
/// # Errors
/// A file cannot be read.
pub fn dialect(rust: &[Source]) -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    for file in sources::files()? {
        if file.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            let text = sources::text(&file)?.unwrap_or_default();
            files.push((file, text));
        }
    }
    let mut findings = dialect_in(&files)?;
    findings.extend(dialect_of_strings(rust)?);
    Ok(findings)
}

/// Does the same for the comments of these Rust files and for these Markdown files.
///
/// # Errors
/// None, unless a pattern of this module is invalid.
pub fn dialect_in(files: &[File]) -> Result<Vec<Finding>> {
    let patterns = Patterns::new()?;
    let mut findings = Vec::new();
    for (file, text) in files {
        for (line, number) in text.lines().zip(1..) {
            if let Some(prose) = prose(file, line) {
                // Code, such as the name of an argument, is no prose.
                findings.extend(patterns.findings(file, number, &patterns.code.replace_all(prose, "``")));
            }
        }
    }
    Ok(findings)
}

/// Returns the refused words in string literals outside of tests: help, messages and hints. A literal without a space is a name or
/// an expression, not a sentence.
///
/// # Errors
/// None, unless a pattern of this module is invalid.
pub fn dialect_of_strings(rust: &[Source]) -> Result<Vec<Finding>> {
    let patterns = Patterns::new()?;
    // This file lists the words.
    let others = rust.iter().filter(|source| !source.file.ends_with("house/vocabulary.rs"));
    let mut findings = Vec::new();
    for source in others {
        for (text, line) in code(source).strings.into_iter().filter(|(text, _)| text.contains(' ')) {
            findings.extend(patterns.findings(&source.file, line, &patterns.argument.replace_all(&text, "{}")));
        }
    }
    Ok(findings)
}

struct Patterns {
    refused: Vec<(Regex, &'static str)>,
    /// Code in a comment or in Markdown.
    code: Regex,
    /// An argument in a format string.
    argument: Regex,
}

impl Patterns {
    fn new() -> Result<Self> {
        let mut refused = Vec::new();
        for (word, instead) in REFUSED {
            refused.push((Regex::new(&format!(r"(?i)\b(?:{word})\b"))?, instead));
        }
        Ok(Self { refused, code: Regex::new("`[^`]*`")?, argument: Regex::new(r"\{[^{}]*\}")? })
    }

    fn findings(&self, file: &Path, line: usize, text: &str) -> Vec<Finding> {
        let found = self.refused.iter().filter_map(|(pattern, instead)| Some((pattern.find(text)?, instead)));
        found
            .map(|(found, instead)| {
                let what = format!("{:?}: write {instead} (CONTRIBUTING.md, Words)", found.as_str());
                Finding::new(file, line, what)
            })
            .collect()
    }
}

/// Returns the prose in a line: the comment in a line of Rust, or a line of Markdown. The table of words in CONTRIBUTING.md is
/// excluded.
fn prose<'l>(file: &Path, line: &'l str) -> Option<&'l str> {
    if file.extension().is_some_and(|extension| extension == "rs") {
        let line = line.trim_start();
        return line.strip_prefix("//").or_else(|| line.split_once(" //").map(|(_, comment)| comment));
    }
    let is_table_of_words = file == Path::new("CONTRIBUTING.md") && line.starts_with('|');
    (!is_table_of_words).then_some(line)
}
