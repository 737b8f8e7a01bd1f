//! The pure core of kubectl-olm: it computes plans and performs no I/O.
//!
//! ```text
//!   lint         problems of clusters, OperatorGroups and bundles, according to the controllers' own rules
//!                doctor, lint, validate
//!   explain      the effects of an InstallPlan, determined by simulation
//!   sim          an in-memory API server, and the simulation loop
//!   planner      selects the key to plan next
//!   health       the objects of OLM itself, the state of operators with its causes, and their removal
//!                diagnosis, distribution, health, removal
//!   controllers  plans for the objects of a kind
//!                apiroles, catalogsource, copiedcsv, csv, installplan, operator, operatorcondition, operatorgroup,
//!                subscription
//!   rules        rules that several controllers share, metrics, and PackageManifests
//!                membership, metrics, packages, rbac, resolver, unpack
//!   state        decisions as values; the known state of the cluster
//!                plan, world
//!   content      what catalogs and bundles contain
//!                bundle, catalog, constraint
//!   foundation   objects, formats and limits
//!                api, budget, finding, go_format, listing, markup, settings, structural, version, visible, yaml
//! ```
//!
//! A module imports from lower layers and from its own, but controllers do not import each other. The table is generated from the list
//! that a repository rule checks (`tests/src/house/layers.rs`).
//!
//! The core uses no clock, randomness, environment, files, network or terminal: times, ids and random suffixes are arguments.

#![warn(clippy::missing_errors_doc)]

pub mod api;
pub mod apiroles;
pub mod budget;
pub mod bundle;
pub mod catalog;
pub mod catalogsource;
pub mod constraint;
pub mod copiedcsv;
pub mod csv;
pub mod diagnosis;
pub mod distribution;
pub mod doctor;
pub mod explain;
pub mod finding;
pub mod go_format;
pub mod health;
pub mod installplan;
pub mod lint;
pub mod listing;
pub mod markup;
pub mod membership;
pub mod metrics;
pub mod operator;
pub mod operatorcondition;
pub mod operatorgroup;
pub mod packages;
pub mod plan;
pub mod planner;
pub mod rbac;
pub mod removal;
pub mod resolver;
pub mod settings;
pub mod sim;
pub mod structural;
pub mod subscription;
#[cfg(test)]
mod testing;
mod unpack;
#[cfg(feature = "validate")]
pub mod validate;
pub mod version;
pub mod visible;
pub mod world;
pub mod yaml;
