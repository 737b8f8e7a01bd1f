//! `kubectl-olm`.

fn main() {}
