//! The pure core of kubectl-olm: it computes plans and performs no I/O.
//!
//! ```text
//!   api, version, budget    depend on no other module
//!   structural              depends on no other module; schemas of custom resources
//!   catalog, bundle         depend on api, version
//!   resolver, unpack        depend on catalog, constraint, bundle, world
//!   controllers             depend on world and plan, but not on each other
//!   planner                 depends on the controllers; selects the key to plan next
//!   sim                     an in-memory API server, and the simulation loop
//!   explain                 the effects of an InstallPlan, determined by simulation
//!   metrics                 OLM's metrics about a World
//!   lint                    problems with OperatorGroups, according to the controllers' own rules
//! ```
//!
//! The core uses no clock, randomness, environment, files, network or terminal: times, ids and random suffixes are arguments.

pub mod api;
pub mod apiroles;
pub mod budget;
pub mod bundle;
pub mod catalog;
pub mod catalogsource;
pub mod constraint;
pub mod copiedcsv;
pub mod csv;
pub mod explain;
pub mod finding;
pub mod go_format;
pub mod installplan;
pub mod lint;
pub mod membership;
pub mod metrics;
pub mod operator;
pub mod operatorcondition;
pub mod operatorgroup;
pub mod plan;
pub mod planner;
pub mod rbac;
pub mod resolver;
pub mod settings;
pub mod sim;
pub mod structural;
pub mod subscription;
#[cfg(test)]
mod testing;
mod unpack;
pub mod version;
pub mod visible;
pub mod world;
pub mod yaml;
