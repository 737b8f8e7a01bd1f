//! The chain of causes of an error.

/// The texts of the causes of an error, the nearest first.
pub(crate) fn all(error: &dyn std::error::Error) -> impl Iterator<Item = String> {
    std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string)
}

/// The text of the innermost cause of an error: the outer ones often state only that a request was made.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
