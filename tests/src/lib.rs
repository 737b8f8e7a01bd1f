//! What crosses crates.

pub mod data;
pub mod scenario;
