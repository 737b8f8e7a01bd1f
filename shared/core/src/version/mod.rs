//! Operator versions and the ranges that select them, with the semantics of Go's `blang/semver` v4.
//!
//! Published catalogs were written for that library, so its quirks are preserved: [`parse`] is strict, [`parse_tolerant`]
//! is what OLM's resolver uses, [`compare`] ignores build metadata, and [`Range`] treats pre-releases as ordinary versions.
//! Error texts are also blang's, because they appear in conditions.

mod range;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use range::Range;
pub use semver::Version;
use semver::{BuildMetadata, Prerelease};

use crate::go_format::quote;

/// Why a version or a range is invalid, in blang's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// Parses a full `major.minor.patch[-pre][+build]`, without leading zeros or a `v`.
///
/// # Errors
/// The text is not such a version.
pub fn parse(text: &str) -> Result<Version, Error> {
    if text.is_empty() {
        return Err(Error::new("Version string empty"));
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts[..] else {
        return Err(Error::new("No Major.Minor.Patch elements found"));
    };
    let major = number("major", "Major", major)?;
    let minor = number("minor", "Minor", minor)?;
    let (rest, build) = split_at_char(rest, '+');
    let (patch, pre) = split_at_char(rest, '-');
    let patch = number("patch", "Patch", patch)?;
    if let Some(pre) = pre {
        pre.split('.').try_for_each(check_pre_release)?;
    }
    if let Some(build) = build {
        build.split('.').try_for_each(check_build)?;
    }
    Ok(Version {
        major,
        minor,
        patch,
        pre: Prerelease::new(pre.unwrap_or_default()).map_err(|e| Error::new(e.to_string()))?,
        build: BuildMetadata::new(build.unwrap_or_default()).map_err(|e| Error::new(e.to_string()))?,
    })
}

/// Parses a version tolerantly: surrounding space, a leading `v`, leading zeros and missing minor or patch are accepted.
///
/// # Errors
/// The text is not a version even so.
pub fn parse_tolerant(text: &str) -> Result<Version, Error> {
    let text = text.trim();
    let mut parts: Vec<String> =
        text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(without_leading_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(Error::new("Short version cannot contain PreRelease/Build meta data"));
        }
        parts.resize(3, "0".to_owned());
    }
    parse(&parts.join("."))
}

/// Compares precedence: pre-releases before their release, build metadata ignored.
pub fn compare(a: &Version, b: &Version) -> Ordering {
    a.cmp_precedence(b)
}

/// Returns `major.minor.patch` of a version, without pre-release and build metadata.
pub fn finalize(version: &Version) -> Version {
    Version::new(version.major, version.minor, version.patch)
}

fn split_at_char(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    let zero = if trimmed.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
    format!("{zero}{trimmed}")
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number(name: &str, title: &str, text: &str) -> Result<u64, Error> {
    if !is_number(text) {
        return Err(Error::new(format!("Invalid character(s) found in {name} number {}", quote(text))));
    }
    if has_leading_zero(text) {
        return Err(Error::new(format!("{title} number must not contain leading zeroes {}", quote(text))));
    }
    parse_uint(text)
}

fn parse_uint(text: &str) -> Result<u64, Error> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| Error::new(format!("strconv.ParseUint: parsing {}: {why}", quote(text))))
}

fn check_pre_release(part: &str) -> Result<(), Error> {
    if part.is_empty() {
        Err(Error::new("Prerelease is empty"))
    } else if is_number(part) {
        if has_leading_zero(part) {
            return Err(Error::new(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quote(part)
            )));
        }
        parse_uint(part).map(drop)
    } else if is_identifier(part) {
        Ok(())
    } else {
        Err(Error::new(format!("Invalid character(s) found in prerelease {}", quote(part))))
    }
}

fn check_build(part: &str) -> Result<(), Error> {
    if part.is_empty() {
        Err(Error::new("Build meta data is empty"))
    } else if is_identifier(part) {
        Ok(())
    } else {
        Err(Error::new(format!("Invalid character(s) found in build meta data {}", quote(part))))
    }
}
