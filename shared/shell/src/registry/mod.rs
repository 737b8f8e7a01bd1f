//! Catalogs from outside: local directories, and the registry's gRPC protocol on both sides.
//!
//! ```text
//!   dir       a directory --> what there is to read
//!   local     directories that stand in for CatalogSources
//!   read      what there is to read --> Catalog (olm-core), on every processor
//!   image     an image --> the same, or the files of a bundle
//!   server    Snapshot --> gRPC, for whoever dials
//!   client    gRPC --> Snapshot, reconnecting, with the states that OLM reports
//!   share     the memory that snapshots of several clients may take together
//!   convert   between the protocol's messages and olm-core's
//!   error     why a catalog was refused, and whether the same may succeed later
//!   proto     the messages, generated from api.proto
//! ```

pub mod client;
mod convert;
pub mod dir;
mod error;
pub mod image;
pub mod local;
pub mod proto;
pub(crate) mod read;
pub mod server;
pub mod share;
#[cfg(test)]
mod tests;

pub use error::Error;
