//! The directories that the annotations of a bundle name, for its readers and writers alike.

/// Returns the directory that an annotation names, relative to the bundle; `None` if it is not a visible directory within the bundle. A
/// path from the root is one from the root of the image, which is the bundle.
pub fn folder(annotation: &str) -> Option<&str> {
    let path = annotation.trim_start_matches("./").trim_matches('/');
    path.split('/').all(is_portable).then_some(path)
}

/// Returns whether a name is usable on every system, and not hidden.
pub fn is_portable(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\'))
}

/// Returns whether neither directory contains the other.
pub fn are_apart(a: &str, b: &str) -> bool {
    let contains = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !contains(a, b) && !contains(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_within_the_bundle_are_named() {
        for (annotation, expected) in [
            ("manifests/", Some("manifests")),
            ("./deploy/olm", Some("deploy/olm")),
            ("/manifests/", Some("manifests")),
            ("../../etc/", None),
            ("a/../..", None),
            ("a//b", None),
            (".hidden/", None),
            ("a\\b", None),
            ("a\nb", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(folder(annotation), expected, "{annotation:?}");
        }
        assert!(are_apart("manifests", "manifests-2") && are_apart("a/b", "a/c"));
        assert!(!are_apart("a", "a") && !are_apart("a/b", "a") && !are_apart("a", "a/b"));
    }
}
