//! The pure core of kubectl-olm: it decides, it never acts.
//!
//! ```text
//!   api, version, budget    know nothing
//!   structural              knows nothing: the schemas of custom resources
//!   catalog, bundle         know api, version
//!   resolver, unpack        know catalog, constraint, bundle, world
//!   controllers             know world and plan, and not each other
//!   planner                 knows the controllers: it says which key to plan next
//!   sim                     an in-memory API server, and the loop that simulates with it
//!   explain                 what an InstallPlan would do: tried out in a simulation
//!   metrics                 what OLM measures of a World
//!   lint                    what is wrong with OperatorGroups, by the controllers' own rules
//! ```
//!
//! No clock, randomness, environment, file, network or terminal: time, ids and random suffixes are arguments.

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
