//! Whatever bytes others write: one function for each kind of input, which must hold for every input.
//!
//! ```text
//!   tests/fuzz            calls them with bytes that a fuzzer makes (cargo-fuzz, a nightly toolchain; its README says how)
//!   tests/tests/fuzz.rs   calls them with the bytes in tests/fuzz/corpus and tests/fuzz/regressions
//! ```
//!
//! Each asks for more than that nothing panics: budgets hold, what is read, written and read again is the same, and what is printed
//! steers no terminal. Nothing is asked of a network, and nothing is written but in a temporary folder.

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
mod versions;

/// Something that must hold for all bytes: it panics where it does not.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 14] = [
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
    ("versions", versions::run),
];

/// Calls a target.
///
/// # Panics
/// What must hold does not, or there is no such target.
pub fn run(target: &str, bytes: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    assert!(found.is_some(), "there is no target {target}");
    if let Some((_, target)) = found {
        target(bytes);
    }
}
