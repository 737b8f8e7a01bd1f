//! The commands about OLM itself: `kubectl olm install`, `upgrade`, `uninstall`, `status`, `take-over` and `hand-back`.
//!
//! ```text
//!   release   manifests of a directory, files or addresses; those of this project
//!   install   applies a release in stages ─ wait: until it is ready; also upgrades
//!   take_over stops upstream OLM and runs this project's controllers in its place ─ hand_back: the reverse
//!   uninstall deletes everything in a safe order
//!   status    the state of every object, of catalogs, and of operators
//!   welcome   `kubectl olm` without arguments
//! ```

pub mod hand_back;
pub mod install;
pub mod release;
pub mod status;
pub mod take_over;
mod transfer;
pub mod uninstall;
mod wait;
pub mod welcome;
