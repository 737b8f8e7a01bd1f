//! OLM's kinds as types: the CustomResourceDefinitions are generated from them, and from their comments, which `kubectl explain` prints.
//!
//! Nothing is read into them: objects stay JSON, and the views of [`api`](crate::api) read it.

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
