//! What crosses crates.

pub mod data;
