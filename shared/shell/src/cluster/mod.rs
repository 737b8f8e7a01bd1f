//! The live cluster: reads its objects into the World and executes the planner's actions against the API server.
//!
//! ```text
//!   watch    lists and watches every kind that planning reads    --Event-->  live: Planner
//!     missing_copies  reads copied ClusterServiceVersions whose state is unknown; object_filter: relevant objects of common kinds
//!   catalogs connections to registries                           --Event-->   |
//!     endpoints  detects that the pods behind a Service were replaced
//!   bundles  bundle images, pulled on request                    --Event-->   |
//!     pull_secrets  the credentials of both
//!   unreadable  reports objects that cannot be decoded           --+--> log, Events
//!   execute  sends actions as requests, reports responses        <--Work----  +  bounded concurrency
//!     certificate  issues serving certificates
//!   questions  external facts for plans, from catalogs, bundles, discovery and schema_check
//!   discovery  the kinds that the API server serves              --Event-->  first requested by execute
//!   schema_check  validates custom resources against a schema    --Event-->  requested by execute
//!   metrics  counters and gauges in the Prometheus format
//!   watcher  list, watch, resume and relist of one query
//!   follow   one object, for commands that wait; installed: OLM on the cluster, and held Leases; upstream: stops and starts it
//!   lease    leader election                                     <--checked before each write--  live, execute, api
//!     permit   its validity; clock: monotonic and wall clock
//!   upstream_watch  pauses the writes while upstream OLM is running  <--also in the permit
//!   warning  the Warning headers of responses
//!   table    objects as rendered by the API server
//!   api      requests with whole objects as JSON; client: one connection for all requests of a command
//!     decode   size limits for responses, and decoding per object
//!   error    errors of catalogs and bundles
//!   request_error  errors of requests to the API server
//!   backoff  pauses before retries; supervise: restarts after panics
//! ```

pub mod api;
pub(crate) mod backoff;
mod bundles;
pub mod catalogs;
pub(crate) mod certificate;
pub(crate) mod client;
mod clock;
mod decode;
mod discovery;
pub(crate) mod endpoints;
mod error;
mod execute;
pub(crate) mod fetch_catalog;
pub(crate) mod follow;
pub mod installed;
pub mod lease;
pub mod live;
pub mod metrics;
mod missing_copies;
pub(crate) mod object_filter;
mod permit;
pub(crate) mod pull_secrets;
mod questions;
pub mod request_error;
#[cfg(test)]
pub(crate) mod rounds;
pub(crate) mod schema_check;
mod supervise;
pub mod table;
mod unreadable;
pub(crate) mod upstream;
pub(crate) mod upstream_watch;
mod warning;
pub(crate) mod watch;
pub(crate) mod watcher;

pub use error::{Error, Hint};
