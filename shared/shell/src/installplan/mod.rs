//! The verbs of `kubectl olm install-plan`.
//!
//! ```text
//!   observe --Seen--> list      where the plans stand, and what each waits for
//!                     named     which plans are meant
//! ```

pub mod list;
mod named;
