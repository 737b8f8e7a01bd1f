//! The verbs of `kubectl olm install-plan`.
//!
//! ```text
//!   observe --Seen--> list      where the plans stand, and what each waits for
//!                     explain   what they would do
//!                     named     which plans are meant
//! ```

pub mod explain;
pub mod list;
mod named;
