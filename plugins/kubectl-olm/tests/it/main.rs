//! Tests of the executable `kubectl-olm`, run directly and by kubectl.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answers;
mod cluster;
mod hand_over;
mod home;
mod kubectl;
