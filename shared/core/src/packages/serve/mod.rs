//! The aggregated API `packages.operators.coreos.com/v1`: which response a request gets. The shell serves it over TLS behind the
//! API server (olm-behaviour/processes.md#packageserver).
//!
//! ```text
//!   front_proxy    who sends a request, and what it needs permission for
//!   request        path, query and headers of a request
//!   selector       label and field selectors
//!   store          the PackageManifests of all catalogs, and their last changes
//!   form           objects as a whole, as metadata, or as rows of a Table
//!   reply          discovery, objects, lists and tables
//!   watch          the events of a watch
//!   registration   the objects by which the API server finds the process that serves
//! ```
//!
//! *Guarantees.* A list and the watch that continues it report every change once, unless the watch is refused with 410 `Expired`. The
//! serialized status of a package is shared between all responses.

mod form;
pub mod front_proxy;
pub mod registration;
mod reply;
pub mod request;
mod selector;
pub mod store;
#[cfg(test)]
mod tests;
pub mod watch;

pub use self::reply::{Reply, Response, error, reply};
pub use self::store::{Item, Store, items};
