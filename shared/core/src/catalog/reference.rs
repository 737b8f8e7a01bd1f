//! Image references: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`, checked as opm checks them.

use std::sync::LazyLock;

use regex::Regex;

/// Why a text is not a reference, in the words of the library that opm uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The text does not have the form of a reference.
    #[error("invalid reference format")]
    Format,
    /// The text would be a reference in lower case.
    #[error("invalid reference format: repository name must be lowercase")]
    UpperCase,
    /// The name is too long.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// The name could be an image ID.
    #[error("invalid repository name, cannot specify 64-byte hexadecimal strings")]
    Identifier,
    /// The length of the digest does not match its algorithm.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest algorithm is unknown.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
}

/// Maximum length of a repository name, including the host.
const LONGEST_NAME: usize = 255;

/// Matches a whole reference. The pattern is constant, so compiling it cannot fail. ASCII classes, as in Go: 128
/// repetitions of Unicode's `\w` take megabytes.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let component = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let host = format!(r"(?:{component}(?:\.{component})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?");
    let part = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*";
    let name = format!(r"(?:{host}/)?{part}(?:/{part})*");
    let digest = r"(?<algorithm>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):(?<hex>[0-9a-fA-F]{32,})";
    Regex::new(&format!(r"^(?<name>{name})(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?(?:@{digest})?$")).ok()
});

/// Checks that the text is an image reference.
///
/// # Errors
/// The text is not an image reference: the variant states which part is invalid.
pub fn check(text: &str) -> Result<(), Invalid> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return Err(Invalid::Identifier);
    }
    // A first component without a dot or a colon is not a host, unless it is localhost or contains upper-case letters.
    let (host, path) = match text.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first => {
            (first, rest)
        }
        _ => ("", text),
    };
    let repository = path.split([':', '@']).next().unwrap_or_default();
    if repository.to_lowercase() != repository {
        return Err(Invalid::UpperCase);
    }
    let found = REFERENCE.as_ref().and_then(|r| r.captures(text)).ok_or(Invalid::Format)?;
    if host.len() + repository.len() > LONGEST_NAME {
        return Err(Invalid::TooLong);
    }
    let group = |name: &str| found.name(name).map(|m| m.as_str());
    let (Some(algorithm), Some(hex)) = (group("algorithm"), group("hex")) else { return Ok(()) };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(Invalid::DigestAlgorithm),
    };
    if hex.len() != length {
        return Err(Invalid::DigestLength);
    }
    if hex.bytes().any(|b| b.is_ascii_uppercase()) { Err(Invalid::Format) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_checked_as_opm_does() {
        let digest = format!("example.com/a@sha256:{}", "0".repeat(64));
        for good in
            ["a", "a/b", "a:v1", "localhost:5000/a__b/c-d:V1.0_x", "Host/a", "[::1]:5000/a", "example.com/a:1", &digest]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let (short, upper) = (&digest[..digest.len() - 1], digest.replace("00", "0A"));
        let (long, hex) = (format!("example.com/{}", "a".repeat(250)), "a1".repeat(32));
        for (bad, why) in [
            ("oci://example.com/a", Invalid::Format),
            ("", Invalid::Format),
            ("a b", Invalid::Format),
            ("example.com/a:", Invalid::Format),
            ("example.com/a:é", Invalid::Format),
            ("example.com/", Invalid::Format),
            ("example.com/A", Invalid::UpperCase),
            ("example.com/a@md5:00000000000000000000000000000000", Invalid::DigestAlgorithm),
            (short, Invalid::DigestLength),
            (&upper, Invalid::Format),
            (&long, Invalid::TooLong),
            (&hex, Invalid::Identifier),
        ] {
            assert_eq!(check(bad), Err(why), "{bad}");
        }
    }
}
