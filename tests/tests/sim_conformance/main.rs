//! The in-memory API server tells the truth: the same requests, at it and at a real control plane, get the same answers and
//! leave the same objects.
//!
//! ```text
//!   scripts ── requests ──▶ Server (Sim: olm_core::sim; Cluster: a real control plane)
//!           ◀── answers ── transcript ── normalised ── compared
//! ```

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod normalise;
mod scripts;
mod servers;
mod transcript;

use std::fmt::Write;

use olm_tests::control_plane::{ControlPlane, skipped};
use similar::TextDiff;

use servers::{Cluster, Sim};
use transcript::Transcript;

/// Every script in a namespace of its own, one after the other on one control plane.
#[test]
fn the_same_requests_get_the_same_answers() {
    if skipped() {
        return;
    }
    let plane = ControlPlane::start().unwrap();
    let mut cluster = Cluster::connect(&plane).unwrap();
    let mut told = String::new();
    for (name, script) in scripts::ALL {
        let mut sim = Sim::start();
        let expected = Transcript::of(&mut cluster, name, *script);
        let found = Transcript::of(&mut sim, name, *script);
        if expected != found {
            let diff = TextDiff::from_lines(&expected, &found);
            let diff = diff.unified_diff().context_radius(6).header("kube-apiserver", "sim").to_string();
            write!(told, "\n===== {name}\n{diff}").unwrap();
        }
    }
    assert!(told.is_empty(), "{told}");
}
