//! The commands of `kubectl olm operator`.
//!
//! ```text
//!   observe --ClusterState--> olm_core::health --> list    a line for each operator: versions, health, one cause, one command
//! ```

pub mod list;
