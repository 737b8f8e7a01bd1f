//! The aggregated API `packages.operators.coreos.com/v1`: which response a request gets. The shell serves it over TLS behind the
//! API server (olm-behaviour/processes.md#packageserver).
//!
//! ```text
//!   front_proxy    who sends a request, and what it needs permission for
//!   request        path, query and headers of a request
//!   selector       label and field selectors
//!   store          the PackageManifests of all catalogs, and their last changes
//!   form           objects as a whole, as metadata, or as rows of a Table
//!   discovery      the resource, for kubectl and for the API server's aggregation
//!   openapi        descriptions of the API, for kubectl explain
//!   response       code, headers and body
//!   reply          the response to a request: documents, objects, lists and tables
//!   watch          the events of a watch
//!   registration   the objects by which the API server finds the process that serves
//! ```
//!
//! *Guarantees.* A list and the watch that continues it report every change once, unless the watch is refused with 410 `Expired`. The
//! serialized status of a package is shared between all responses.

mod discovery;
mod form;
pub mod front_proxy;
mod openapi;
pub mod registration;
mod reply;
pub mod request;
mod response;
mod selector;
pub mod store;
#[cfg(test)]
mod tests;
pub mod watch;

pub use self::reply::{Reply, error, reply};
pub use self::response::Response;
pub use self::store::{Item, Store, items};
