//! The shell of kubectl-olm: all I/O. It obtains decisions from olm-core and executes them.
//!
//! ```text
//!   program   the `main` function of plugins, and the reference of their commands
//!             program, reference
//!   commands  what each command does
//!             bundle, catalog, completion, delivery, installplan, olm, operator, operatorgroup, run, version
//!   cli       the command line: flags, streams, tables, errors as shown to users
//!   observe   the state of a cluster, or of files instead of it, read once as a World
//!   cluster   the API server: requests, watches, the loop of the controllers, the Lease
//!   registry  catalogs: directories, and the gRPC protocol, as client and server
//!   image     images: pulled from registries, read from OCI layouts
//!   common    used by all other layers
//!             blocking, causes, listener, tls, visible
//! ```
//!
//! A module imports from lower layers and from its own. The table is generated from the list that a repository rule checks
//! (`tests/src/house/layers.rs`).

pub(crate) mod blocking;
#[cfg(feature = "bundle")]
pub mod bundle;
pub mod catalog;
pub(crate) mod causes;
pub mod cli;
pub mod cluster;
pub mod completion;
pub(crate) mod delivery;
pub mod image;
pub mod installplan;
mod listener;
pub mod observe;
pub mod olm;
pub mod operator;
pub mod operatorgroup;
pub mod program;
pub mod reference;
pub mod registry;
pub mod run;
#[cfg(test)]
#[expect(unreachable_pub, reason = "olm-tests includes the file, too, and publishes these items")]
#[path = "../../core/src/testing/data.rs"]
mod testing;
pub mod tls;
pub mod version;
pub mod visible;

// Not named elsewhere: programs that use kube select the version of the Kubernetes types by this dependency.
use k8s_openapi as _;
