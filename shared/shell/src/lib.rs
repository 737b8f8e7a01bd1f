//! The shell of kubectl-olm: everything that touches the world. It asks olm-core what to do and does it.
//!
//! ```text
//!   catalog    `kubectl olm catalog`
//!   cli        arguments, streams, tables, prompts, errors: what every plugin shares
//!   cluster    a live cluster: watches, requests, the loop
//!   completion command lines that are completed, for kubectl and for shells
//!   image      images: pulled from registries, read from OCI layouts
//!   installplan `kubectl olm install-plan`
//!   listener   sockets with limits, and metrics over HTTP
//!   observe    what is there, as a World: a cluster that is only read, or files
//!   operatorgroup `kubectl olm operatorgroup`
//!   registry   catalogs: directories, and the gRPC protocol on both sides
//!   run        `kubectl olm run`: live, --audit and --simulate
//!   version    what runs here and on the server
//! ```

pub(crate) mod blocking;
pub mod catalog;
pub mod cli;
pub mod cluster;
pub mod completion;
pub mod error;
pub mod image;
pub mod installplan;
mod listener;
pub mod observe;
pub mod operatorgroup;
pub mod program;
pub mod registry;
pub mod run;
pub mod tls;
pub mod version;
pub mod visible;

// Not named anywhere else: kube leaves it to the programs that use it which version of Kubernetes' types there is.
use k8s_openapi as _;
