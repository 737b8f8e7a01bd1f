//! `kubectl-olm-run`.

fn main() {}
