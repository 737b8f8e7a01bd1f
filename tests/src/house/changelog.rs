//! CHANGELOG.md: a section for each version, of which the first one is the version of Cargo.toml. Releases take their notes from it.

use anyhow::Result;
use regex::Regex;

use super::{Finding, sources};

const FILE: &str = "CHANGELOG.md";

/// Returns the violations of the changelog.
///
/// # Errors
/// A file cannot be read.
pub fn wrong() -> Result<Vec<Finding>> {
    wrong_in(&sources::text(FILE.as_ref())?.unwrap_or_default(), env!("CARGO_PKG_VERSION"))
}

/// Does the same for this text and version.
///
/// # Errors
/// None, unless a pattern of this module is invalid.
pub fn wrong_in(text: &str, version: &str) -> Result<Vec<Finding>> {
    let heading = Regex::new(r"^## (\d+\.\d+\.\d+\S*) \((?:unreleased|\d{4}-\d{2}-\d{2})\)$")?;
    let mut findings = Vec::new();
    let mut wrong = |line: usize, what: String| findings.push(Finding::new(FILE, line, what));
    let mut versions: Vec<(usize, &str, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.starts_with("## ") {
            match heading.captures(line).and_then(|found| found.get(1)) {
                Some(found) => versions.push((number, found.as_str(), 0)),
                None => wrong(number, "write `## VERSION (YYYY-MM-DD)`, or `(unreleased)`".to_owned()),
            }
            if line.ends_with("(unreleased)") && versions.len() > 1 {
                wrong(number, "only the first version can be unreleased".to_owned());
            }
        } else if let Some((.., entries)) = versions.last_mut() {
            *entries += usize::from(line.starts_with("- "));
        }
    }
    if versions.first().is_none_or(|(_, first, _)| *first != version) {
        wrong(0, format!("the first section is not that of version {version} of Cargo.toml"));
    }
    for (line, version, entries) in &versions {
        if *entries == 0 {
            wrong(*line, format!("version {version} has no entries"));
        }
        if versions.iter().any(|(other, same, _)| same == version && other < line) {
            wrong(*line, format!("version {version} has two sections"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_of_the_changelog_are_found() {
        let good = "# Changelog\n\n## 0.2.0 (unreleased)\n\n- B\n\n## 0.1.0 (2026-01-31)\n\n### run\n\n- A\n";
        let found =
            |text: &str| -> Vec<String> { wrong_in(text, "0.2.0").unwrap().iter().map(Finding::to_string).collect() };
        assert_eq!(found(good), [""; 0]);
        for (from, to, expected) in [
            ("0.2.0 (unreleased)", "0.2.1 (unreleased)", "the first section is not that of version 0.2.0"),
            ("0.2.0 (unreleased)", "Unreleased", ":3: write `## VERSION"),
            ("(2026-01-31)", "(unreleased)", ":7: only the first version"),
            ("- A\n", "", ":7: version 0.1.0 has no entries"),
            ("0.1.0", "0.2.0", ":7: version 0.2.0 has two sections"),
        ] {
            let findings = found(&good.replace(from, to));
            assert!(findings.iter().any(|finding| finding.contains(expected)), "{expected}: {findings:?}");
        }
    }
}
