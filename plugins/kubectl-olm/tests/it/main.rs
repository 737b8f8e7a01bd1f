//! `kubectl-olm` as a user meets it: started by itself, and by the real kubectl.

mod answers;
mod hand_over;
mod home;
mod kubectl;
