//! `kubectl-olm` as a user meets it: started by itself, and by the real kubectl.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod answers;
mod cluster;
mod hand_over;
mod home;
mod kubectl;
