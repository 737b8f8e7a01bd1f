//! The commands of `kubectl olm operator`.
//!
//! ```text
//!   observe --ClusterState--> olm_core::health --> list    a line for each operator: versions, health, one cause, one command
//!                             olm_core::diagnosis --> describe    the stages of an operator, and its problems  --> description    as text
//!                                                             --> controllers    whether any are running
//!                             install    subscribes to a package  --> group, subscription_config    objects to create
//!                                |                                --> settle    approves the plan, waits for Succeeded
//!                             upgrade    approves the plans of an upgrade one after the other --> settle
//!                             uninstall  removes an operator  --> operands    custom resources and their backup
//!                                                            --> deletion    deletes objects, and waits until they are gone
//!                             wait       waits for a condition
//!                             lookup     finds operators in the state of a cluster
//!                             watch      follows operators until a condition holds
//! ```

mod cause;
mod controllers;
mod deletion;
pub mod describe;
mod description;
mod group;
pub mod install;
pub mod list;
mod lookup;
mod operands;
mod settle;
mod subscription_config;
pub mod uninstall;
pub mod upgrade;
pub mod wait;
mod watch;

pub use self::group::RequestedMode;
