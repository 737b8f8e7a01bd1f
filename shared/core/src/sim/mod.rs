//! An in-memory Kubernetes: an API server, and those effects of Kubernetes' own controllers that OLM observes.
//!
//! ```text
//!   ApiServer  create, update, patch, delete ── kinds ── typed (Kubernetes' types) or structural (CRDs)
//!      │            │                             │            defaults, validation, strategy
//!      │            └── store: objects, resource versions, events ── drain
//!      └── step ── controllers: definitions, namespaces, workloads, garbage, aggregation, …
//! ```
//!
//! Pure and deterministic: time is an argument, ids are derived from a seed.

mod api_server;
mod apply;
mod authorize;
pub(crate) mod certificate;
mod controllers;
mod defaults;
mod discovery;
mod ids;
mod kinds;
mod lists;
mod load;
mod patch;
mod selector;
mod simulation;
mod store;
mod stored_object;
mod strategy;
mod strict;
mod typed;
mod validation;
mod writes;

pub use api_server::ApiServer;
pub use kinds::{KindSchema, KindVersion, ResourceKind};
pub use patch::Patch;
pub use simulation::{Actor, Crashes, Fault, Happening, Progress, SERVER_VERSION, Simulation};
pub use store::WatchEvent;
pub use strict::Strict;
pub use validation::definition_problems;
pub use writes::{Preconditions, Propagation};

#[cfg(test)]
mod tests;
