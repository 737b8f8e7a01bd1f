//! The commands of `kubectl olm install-plan`.
//!
//! ```text
//!   observe --ClusterState--> list      the state of plans, and what each waits for
//!                     explain   what plans would do
//!                     approve   approves what was explained   --> policy    may a plan be approved?
//!                     wait      waits until a plan is complete, approved or failed
//!                     lookup    finds plans, and reports missing ones
//! ```

pub mod approve;
pub mod explain;
pub mod list;
mod lookup;
pub mod policy;
pub mod wait;
