//! Catalogs (placeholder until the model lands).

/// The content of a catalog.
#[derive(Debug, Default)]
pub struct Snapshot {}
