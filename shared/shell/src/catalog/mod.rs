//! The commands of `kubectl olm catalog`.
//!
//! ```text
//!   REF --source--> Catalog (olm-core)
//!     add        adds bundles to it
//!     build      builds an image of it
//!     validate   checks it for errors
//!     render     prints its blobs, or a part of them
//!     serve      serves it over gRPC, and reloads it on changes
//!     list       lists its packages, channels and versions
//!     describe   describes its packages, as PackageManifests
//!     resolve    prints what OLM would choose from it, and why
//!     graph      prints its upgrade graphs
//!     diff       compares it with another catalog, and reports stranded versions
//!     page       the graphs and the differences as HTML
//!   CatalogSource of a cluster --catalog_sources--> REF
//!   files or a cluster --installed--> World   installed objects, for resolve, graph and diff
//! ```

pub mod add;
pub mod build;
pub mod catalog_sources;
pub mod describe;
pub mod diff;
pub mod graph;
mod installed;
pub mod list;
mod page;
pub mod render;
pub mod resolve;
pub mod serve;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub mod validate;

pub use installed::InstalledFrom;
pub use source::Ref;
