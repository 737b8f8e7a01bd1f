//! The Kubernetes and OLM resources that kubectl-olm reads and writes.
//!
//! Every object is carried whole as the JSON that the API server sent ([`object`]): what is written back is that JSON, so that no field,
//! known or not, is lost on the way through. What decisions are made on is read by *views*, which borrow the JSON and copy nothing:
//!
//! ```text
//!   Csv, InstallPlan and Step, Subscription, OperatorGroup, CatalogSource   one kind of OLM's each
//!   CustomResourceDefinition                                                           as the API server has it
//!   Metadata, Conditions                                                               parts that many kinds have
//! ```
//!
//! Phases, types of conditions and reasons are spelt in the module of their kind, and nowhere else; groups, versions and plurals in
//! [`kinds`]. Raw JSON stays what is only carried from one object to another: pod templates, RBAC rules, schemas, manifests.
//!
//! Views never fail: what is absent or of the wrong type reads as empty, as it does in Go.

pub mod catalog_source;
pub mod cluster_service_version;
pub mod conditions;
pub mod crd;
pub mod custom_resource_definition;
pub mod go_json;
pub mod hash;
pub mod install_plan;
pub mod kinds;
pub mod labels;
pub mod metadata;
pub mod names;
pub mod object;
pub mod operator_group;
pub mod quantity;
pub mod status;
pub mod subscription;
mod words;
