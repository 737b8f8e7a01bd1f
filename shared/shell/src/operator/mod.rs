//! The commands of `kubectl olm operator`.
//!
//! ```text
//!   observe --ClusterState--> olm_core::health --> list    a line for each operator: versions, health, one cause, one command
//!                             olm_core::diagnosis --> describe    the stages of an operator, and its problems  --> description, page    as text, as HTML
//!                                                             --> controllers    whether any are running
//!                             doctor     trouble of the whole cluster
//!                             install    subscribes to a package  --> group, subscription_config    objects to create
//!                                |                                --> creation    creates them
//!                                |                                --> settle    approves the plan, waits for Succeeded
//!                             upgrade    approves the plans of an upgrade one after the other --> path, settle
//!                             rollback   returns an operator to an older version  --> steps, settle
//!                             outdated   lists what can be upgraded --> path
//!                             uninstall  removes an operator  --> operands, backup    custom resources and their backup
//!                                                            --> steps --> deletion   deletes objects, and waits for that
//!                                                            --> left    proves that nothing is left
//!                             run        installs a bundle that is not published  --> publication    its catalog on the cluster
//!                                                            --> supplied    manifests of the user    --> install, upgrade
//!                             cleanup    removes what run has created --> uninstall
//!                             wait       waits for a condition
//!                             lookup     finds operators in the state of a cluster
//!                             awaiting   waits until a condition holds or no longer can --> watch, controllers
//! ```

mod awaiting;
mod backup;
mod cause;
pub mod cleanup;
mod controllers;
mod creation;
mod deletion;
pub mod describe;
mod description;
pub mod doctor;
mod group;
pub mod install;
mod left;
pub mod list;
mod lookup;
mod operands;
pub mod outdated;
mod page;
mod path;
#[cfg_attr(not(feature = "bundle"), allow(dead_code, reason = "only `run` publishes"))]
mod publication;
pub mod rollback;
// It validates bundles.
#[cfg(feature = "bundle")]
pub mod run;
mod settle;
mod steps;
mod subscription_config;
#[cfg(feature = "bundle")]
mod supplied;
pub mod uninstall;
pub mod upgrade;
pub mod wait;
mod watch;

pub use self::group::RequestedMode;
