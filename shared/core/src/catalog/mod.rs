//! Catalogs: what an operator can be chosen from.
//!
//! ```text
//!   bytes --Chunk--> Parsed --Loader--> CatalogIndex      chunks of files become an index of blobs, by package
//!   CatalogIndex --load--> Loaded { snapshot, findings }  the valid packages; what is wrong with the others
//!   registry messages --Builder--> Snapshot   what a catalog's gRPC server says
//!   Snapshot: packages > channels > entries   what the resolver and our own server read
//!     graph    where OLM takes each version of a channel next
//!     diff     what another snapshot has changed, and whom it strands
//! ```
//!
//! A [`Snapshot`] is an index: names, edges and properties are at hand, the objects of a bundle are read again and decoded
//! when [`Snapshot::bundle`] asks for them. Both ways of making one give equal snapshots where the protocol carries the facts.

mod add;
mod blob;
pub mod channel;
mod chunk;
mod config_map;
mod content;
pub mod diff;
mod document_text;
mod filter;
pub mod graph;
mod index;
mod load;
mod meta;
mod migrate;
mod properties;
pub mod reference;
mod render;
mod snapshot;
mod stored;
pub mod template;
#[cfg(test)]
mod tests;
mod unload;
mod validate;

pub use add::{Added, AddedTo, Addition, FileChange, Mode, Request};
pub use chunk::{Chunk, Parsed};
pub use config_map::config_map;
pub use content::Content;
pub use filter::Filter;
pub use index::CatalogIndex;
pub use load::{Loaded, Loader, index_files, load};
pub use meta::Meta;
pub use migrate::MigrationLevel;

pub use snapshot::{Builder, BundleMessage, Channel, Entry, Package, Snapshot};
pub use stored::{Span, Stored};
pub use template::{Template, TemplateKind};
pub use validate::refused_by_opm;

use crate::bundle::property;
pub use crate::bundle::{BundleContent, File, Property};
