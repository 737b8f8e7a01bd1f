//! Kubernetes' rules for names.

/// Maximum length of a DNS label in bytes, which is also that of the value of an object's label.
pub const LONGEST_LABEL: usize = 63;
/// Maximum length of a DNS subdomain in bytes.
pub const LONGEST_SUBDOMAIN: usize = 253;

/// Kubernetes' message for a name that is not an RFC 1123 label.
pub const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
/// Kubernetes' message for a name that is not an RFC 1123 subdomain.
pub const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Returns whether it is an RFC 1123 label, of any length.
pub fn is_label(name: &str) -> bool {
    let is_end = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    is_between(name, is_end, |b| is_end(b) || b == b'-')
}

/// Returns whether it is an RFC 1123 subdomain, of any length.
pub fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// Returns whether it is not empty, its first and last bytes satisfy `is_end`, and the others `is_inner`.
pub(super) fn is_between(name: &str, is_end: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if is_end(*first) && is_end(*last))
        && bytes.iter().all(|b| is_inner(*b))
}

/// Returns the plural of a kind whose definition is not known, by the rules of English that Kubernetes applies.
pub fn guess_plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match (kind.strip_suffix('y'), kind.ends_with('s')) {
        (Some(stem), _) => format!("{stem}ies"),
        (_, true) => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}
/// Returns whether the text could be a reference of an image.
pub fn is_image_reference(image: &str) -> bool {
    let name = image.split(['@']).next().unwrap_or_default();
    !name.is_empty()
        && !name.starts_with(['/', '.', '-', ':'])
        && !name.ends_with(['/', ':', '.'])
        && image.chars().all(|c| c.is_ascii_alphanumeric() || "./:@_-+".contains(c))
}
