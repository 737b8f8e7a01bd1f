//! The shell of kubectl-olm: everything that touches the world. It asks olm-core what to do and does it.
//!
//! ```text
//!   program     the frame of every plugin's main
//!   catalog, completion, installplan, operatorgroup, run, version
//!               the verbs: what each command does
//!   cli         what every command line shares: flags, streams, tables, and what a person reads of errors
//!   observe     the state of a cluster, or of files in its place, read once as a World
//!   cluster     the API server: requests, watches, the controllers' loop, the Lease
//!   registry    catalogs: directories, and the gRPC protocol on both sides
//!   image       images: pulled from registries, read from OCI layouts
//!   error, visible, blocking, listener, tls
//!               what all of them use
//! ```
//!
//! A module imports those below it. A house rule checks that.

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
