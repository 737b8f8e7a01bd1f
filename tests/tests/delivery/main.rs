//! The archives of a release: packed by `krew/package`, installed, upgraded and uninstalled by krew, and executed by kubectl.

#![expect(clippy::unwrap_used, reason = "a test fails when something does not work")]

mod archives;
mod image;
mod install;
mod release;
