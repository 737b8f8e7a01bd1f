//! The shell of kubectl-olm.
