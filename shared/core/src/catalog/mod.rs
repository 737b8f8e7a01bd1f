//! Catalogs: what an operator can be chosen from.
//!
//! ```text
//!   files (path, bytes) --load--> Load { snapshot, findings }      a file-based catalog or bundle directories
//!   registry messages   --Builder--> Snapshot                      what a catalog's gRPC server says
//!   Snapshot: packages > channels > entries                        what the resolver and our own server read
//! ```
//!
//! A [`Snapshot`] is an index: names, edges and properties are at hand, the objects of a bundle are decoded when
//! [`Snapshot::bundle`] asks for them. Both ways of making one give equal snapshots where the protocol carries the facts.

mod blob;
pub mod channel;
mod content;
mod load;
mod snapshot;
#[cfg(test)]
mod tests;
mod validate;

pub use content::Content;
pub use load::{Load, Loader, load};
pub use snapshot::{Builder, BundleMessage, Channel, Entry, Package, Snapshot};

pub use crate::bundle::{BundleContent, File, Property};
