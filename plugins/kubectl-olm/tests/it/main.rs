//! `kubectl-olm` as a user meets it: started by itself, and by the real kubectl.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and says why it was skipped"
)]

mod answers;
mod hand_over;
mod home;
mod kubectl;
