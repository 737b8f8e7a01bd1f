//! What crosses crates.

pub mod control_plane;
