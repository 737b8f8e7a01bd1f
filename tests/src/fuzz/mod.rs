//! Properties of all inputs from untrusted writers: one function for each kind of input.
//!
//! ```text
//!   tests/fuzz            calls them with bytes that a fuzzer makes (cargo-fuzz, a nightly toolchain; its README explains how)
//!   tests/tests/fuzz   calls them with the inputs in tests/fuzz/corpus and tests/fuzz/regressions
//! ```
//!
//! Each checks more than the absence of panics: budgets are respected, data is unchanged after it was written and read again,
//! and the output contains no terminal control characters. Nothing is sent to a network, and files are written only in a
//! temporary folder.

mod bundle;
mod catalog;
mod cel;
mod controllers;
mod documents;
mod explain;
mod graph;
mod grpc;
mod index_ignore;
mod layers;
mod layout;
mod lint;
mod must_gather;
mod parts;
mod shown;
mod synthesize;
mod validate;
mod versions;

/// A property of all inputs, which panics if it is violated.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 16] = [
    ("bundle", bundle::run),
    ("catalog", catalog::run),
    ("cel", cel::run),
    ("controllers", controllers::run),
    ("documents", documents::run),
    ("explain", explain::run),
    ("graph", graph::run),
    ("grpc", grpc::run),
    ("image_layout", layout::run),
    ("index_ignore", index_ignore::run),
    ("layers", layers::run),
    ("lint", lint::run),
    ("must_gather", must_gather::run),
    ("synthesize", synthesize::run),
    ("validate", validate::run),
    ("versions", versions::run),
];

/// Calls a target.
///
/// # Panics
/// The property is violated, or the target is unknown.
pub fn run(target: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    assert!(found.is_some(), "unknown target {target}");
    if let Some((_, target)) = found {
        target(bytes);
    }
}
