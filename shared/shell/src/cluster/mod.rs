//! The live cluster: its objects into the World, the planner's actions to the API server.
//!
//! ```text
//!   watch    list and watch of every kind that planning reads    --Event-->  live: Planner
//!     copies   what is known of copied ClusterServiceVersions already
//!   catalogs connections to registries                           --Event-->   |
//!     endpoints  tells when the pods behind a Service are others
//!   bundles  images of bundles, pulled when asked for            --Event-->   |
//!     puller   as whom, for both
//!   complaints  objects that cannot be read                      --+--> log, Events
//!   execute  actions to requests, answers back to events         <--Work----  +  bounded concurrency
//!     certificate  what Secrets of servers get
//!   questions  what plans ask, answered in one place: by catalogs, bundles, discovery and schema_check
//!   discovery  which kinds the API server serves                --Event-->  execute asks first
//!   schema_check  reads whether custom resources fit a schema         --Event-->  execute asks
//!   metrics  what is counted, for those who scrape
//!   watcher  how each of them is listed, watched, resumed and listed anew
//!   follow   one object, for commands that wait
//!   lease    who may write                                       <---may it?---  live, execute, api before every send
//!     permit   until when; clock: which does not jump
//!   warning  what the API server warns of in the headers of an answer
//!   table    objects as the API server shows them
//!   api      requests with whole objects as JSON
//!     decode   answers within bounds, and each object for itself
//!   error    why catalogs and bundles cannot be read
//!   request_error  what was asked of the API server, and how it was refused
//!   backoff  pauses before something is tried again; supervise: after a panic, too
//! ```

pub mod api;
pub(crate) mod backoff;
mod bundles;
pub mod catalogs;
pub(crate) mod certificate;
mod clock;
mod complaints;
mod copies;
mod decode;
mod discovery;
pub(crate) mod endpoints;
mod error;
mod execute;
pub(crate) mod fetch_catalog;
pub(crate) mod follow;
pub(crate) mod interest;
pub mod lease;
pub mod live;
pub mod metrics;
mod permit;
pub(crate) mod puller;
mod questions;
pub mod request_error;
pub(crate) mod schema_check;
mod supervise;
pub mod table;
mod warning;
pub(crate) mod watch;
pub(crate) mod watcher;

pub use error::{Error, Hint};
