//! Servers that mean harm, in-process: what they send has no end, no truth or no measure.

pub mod cost;
pub mod grpc;
pub mod registry;
