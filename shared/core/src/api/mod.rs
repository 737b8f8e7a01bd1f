//! The Kubernetes and OLM resources that kubectl-olm reads and writes.
//!
//! An object is kept whole as the JSON that the API server sent ([`object`]); types are views that are read from it, so that
//! no field, known or not, is lost on the way through.

pub mod catalog_source;
pub mod cluster_service_version;
pub mod crd;
pub mod go_json;
pub mod hash;
pub mod install_plan;
pub mod labels;
pub mod names;
pub mod object;
pub mod olm_config;
pub mod operator;
pub mod operator_condition;
pub mod operator_group;
pub mod parts;
pub mod quantity;
pub mod raw;
pub mod resource;
pub mod status;
pub mod subscription;
