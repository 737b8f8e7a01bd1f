//! Catalogs: the packages, channels and bundles from which operators are chosen.
//!
//! ```text
//!   bytes --Chunk--> Parsed --Loader--> CatalogIndex      chunks of files become an index of blobs, by package
//!   CatalogIndex --load--> Loaded { snapshot, findings }  the valid packages; findings about the others
//!   registry messages --Builder--> Snapshot   responses of a catalog's gRPC server
//!   Snapshot: packages > channels > entries   input of the resolver and of the registry server
//!     graph    the updates of each version of a channel
//!     diff     changes between two snapshots, and stranded versions
//!   ConfigMaps --config_map, parts--> Snapshot    catalogs in the oldest format, and as compressed blobs
//!   bundle --ephemeral--> the objects of a catalog for an author who runs the bundle
//! ```
//!
//! A [`Snapshot`] is an index: names, edges and properties are in memory; the objects of a bundle are read and decoded when
//! [`Snapshot::bundle`] requests them. Both ways of building one give equal snapshots where the protocol carries the same
//! data.

mod add;
mod blob;
pub mod channel;
mod chunk;
mod config_map;
mod content;
pub mod diff;
mod document_text;
pub mod ephemeral;
mod filter;
pub mod graph;
mod index;
mod load;
mod meta;
mod migrate;
pub mod parts;
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
pub use config_map::{config_map, count_packages};
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
