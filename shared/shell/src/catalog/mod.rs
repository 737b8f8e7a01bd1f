//! The verbs of `kubectl olm catalog`.
//!
//! ```text
//!   REF --source--> Catalog (olm-core)
//!     add        bundles to it
//!     validate   what is wrong with it
//!     render     its blobs, or a part of them
//!     serve      it over gRPC, again when it changes
//!     list       its packages, channels and versions
//!     resolve    what OLM would choose from it, and why
//!     graph      where OLM takes each version next
//!     diff       what another one has changed, and whom it strands
//!   CatalogSource of a cluster --live--> REF
//!   files or a cluster --there--> World   what is installed, for resolve and diff
//! ```

pub mod add;
pub mod catalog_sources;
pub mod diff;
pub mod graph;
mod installed;
pub mod list;
pub mod render;
pub mod resolve;
pub mod serve;
mod source;
#[cfg(test)]
mod tests;
pub mod validate;
mod write;

pub use installed::InstalledFrom;
pub use source::Ref;
