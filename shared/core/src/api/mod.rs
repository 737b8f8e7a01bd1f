//! The Kubernetes and OLM resources that kubectl-olm reads and writes.
//!
//! Every object is stored whole, as the JSON that the API server sent ([`object`]), and written back as that JSON, so that
//! no field, known or unknown, is lost. Decisions read it through *views*, which borrow the JSON and copy nothing:
//!
//! ```text
//!   Csv, InstallPlan and Step, Subscription, OperatorGroup, CatalogSource   a kind of OLM each
//!   CustomResourceDefinition                                                           a definition of a kind
//!   Metadata, Conditions                                                               parts of many kinds
//! ```
//!
//! Phases, types of conditions and reasons are defined only in the module of their kind; groups, versions and plurals in
//! [`kinds`]. Data that is only passed on stays raw JSON: pod templates, RBAC rules, schemas, manifests.
//!
//! Views never fail: a missing value or one of the wrong type is read as empty, as in Go.

pub mod catalog_source;
pub mod cluster_service_version;
pub mod conditions;
pub mod crd;
pub mod custom_resource_definition;
pub mod go_json;
pub mod hash;
pub mod install_plan;
pub mod kinds;
pub(crate) mod label_selector;
pub mod labels;
pub mod metadata;
pub mod names;
pub mod object;
pub mod operator_group;
pub mod quantity;
pub mod status;
pub mod subscription;
mod view;
mod words;
