//! The verbs of `kubectl olm install-plan`.
//!
//! ```text
//!   observe --ClusterState--> list      where the plans stand, and what each waits for
//!                     explain   what they would do
//!                     approve   yes to what was explained   --> policy    may it be approved?
//!                     wait      until a plan is complete, approved or failed
//!                     named     which plans are meant, and why nobody may look at them
//! ```

pub mod approve;
pub mod explain;
pub mod list;
mod lookup;
pub mod policy;
pub mod wait;
