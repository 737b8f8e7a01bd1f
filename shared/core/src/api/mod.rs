//! The Kubernetes and OLM resources that kubectl-olm reads and writes.
//!
//! An object is kept whole as the JSON that the API server sent ([`object`]); types are views that are read from it, so that
//! no field, known or not, is lost on the way through.

pub mod go_json;
pub mod hash;
pub mod labels;
pub mod object;
pub mod status;
