//! Hostile servers, in-process, with endless, false or oversized responses.

pub mod cost;
pub mod grpc;
pub mod registry;
