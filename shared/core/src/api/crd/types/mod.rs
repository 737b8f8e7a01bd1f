//! OLM's kinds as types. The CustomResourceDefinitions are generated from them and from their doc comments, which `kubectl explain`
//! prints.
//!
//! Objects are not deserialized into them: they stay JSON, which the views of [`api`](crate::api) read.

pub mod carried;
pub mod catalog_source;
pub mod cluster_service_version;
pub mod install_plan;
pub mod olm_config;
pub mod operator;
pub mod operator_condition;
pub mod operator_group;
pub mod parts;
pub mod subscription;
