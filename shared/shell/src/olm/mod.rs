//! The commands about OLM itself: `kubectl olm install`, `upgrade`, `uninstall` and `status`.
//!
//! ```text
//!   release   manifests of a directory, files or addresses; those of this project
//!   install   applies a release in stages ─ wait: until it is ready; also upgrades
//!   uninstall deletes everything in a safe order
//!   status    the state of every object, of catalogs, and of operators
//!   welcome   `kubectl olm` without arguments
//! ```

pub mod install;
pub mod release;
pub mod status;
pub mod uninstall;
mod wait;
pub mod welcome;
