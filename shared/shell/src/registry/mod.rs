//! Catalogs from directories and images, and the client and the server of the registry's gRPC protocol.
//!
//! ```text
//!   dir       a directory --> the items to read
//!   local     directories that replace CatalogSources
//!   read      items --> Catalog (olm-core), on all processors
//!   image     an image --> a catalog or the files of a bundle
//!   server    Snapshot --> gRPC
//!   client    gRPC --> Snapshot; reconnects, and reports the states that OLM reports
//!   share     limits of the memory and disk space of tenants' catalogs
//!   convert   conversions between the messages of the protocol and of olm-core
//!   error     errors, and whether a retry may succeed
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
