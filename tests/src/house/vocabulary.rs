//! Words that plain technical English does not need, in comments of Rust files and in Markdown.

use std::path::Path;

use anyhow::Result;
use regex::Regex;

use super::Finding;
use super::citations::File;
use super::sources;

/// The refused words and phrases with their replacement. CONTRIBUTING.md has the complete table.
const REFUSED: [(&str, &str); 5] = [
    ("somebody", "a user, or another client"),
    ("anybody", "any client"),
    ("nobody", "no user, no client, or the passive"),
    ("whoever", "any client that"),
    ("makes? no sense", "is invalid"),
];

/// Returns the refused words in comments of Rust files and in Markdown files of the repository.
///
/// # Errors
/// A file cannot be read.
pub fn dialect() -> Result<Vec<Finding>> {
    let mut files = Vec::new();
    for file in sources::files()? {
        if file.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            let text = sources::text(&file)?.unwrap_or_default();
            files.push((file, text));
        }
    }
    dialect_in(&files)
}

/// Does the same for these files.
///
/// # Errors
/// None, unless a pattern of this module is invalid.
pub fn dialect_in(files: &[File]) -> Result<Vec<Finding>> {
    let mut patterns = Vec::new();
    for (word, instead) in REFUSED {
        patterns.push((Regex::new(&format!(r"(?i)\b{word}\b"))?, instead));
    }
    let mut findings = Vec::new();
    for (file, text) in files {
        for (index, line) in text.lines().enumerate() {
            let Some(checked) = prose(file, line) else { continue };
            for (pattern, instead) in &patterns {
                if let Some(found) = pattern.find(checked) {
                    let what = format!("{:?}: write {instead} (CONTRIBUTING.md, Words)", found.as_str());
                    findings.push(Finding::new(file, index + 1, what));
                }
            }
        }
    }
    Ok(findings)
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
