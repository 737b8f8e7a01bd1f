//! Conformance of the in-memory API server: the same requests to it and to a real control plane have the same responses and
//! result in the same objects.
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

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use olm_core::sim::ApiServer;
use olm_tests::control_plane::{ControlPlane, skipped};
use serde_json::Value;
use similar::TextDiff;

use servers::{Cluster, Sim};
use transcript::Transcript;

/// Runs every script in a separate namespace, one after the other on one control plane.
#[test]
fn the_same_requests_have_the_same_responses() {
    if skipped() {
        return;
    }
    let plane = ControlPlane::start().unwrap();
    let mut cluster = Cluster::connect(&plane).unwrap();
    let mut told = discovery(&plane);
    for (name, script) in scripts::ALL {
        let mut sim = Sim::start();
        let expected = Transcript::record(&mut cluster, name, *script);
        let found = Transcript::record(&mut sim, name, *script);
        if expected != found {
            let diff = TextDiff::from_lines(&expected, &found);
            let diff = diff.unified_diff().context_radius(6).header("kube-apiserver", "sim").to_string();
            write!(told, "\n===== {name}\n{diff}").unwrap();
        }
    }
    assert!(told.is_empty(), "{told}");
}

/// Returns the differences of discovery, one line for each group version.
fn discovery(plane: &ControlPlane) -> String {
    let get = |path: &str| -> Value {
        let output = plane.kubectl(["get", "--raw", path]).output().unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let groups = get("/apis");
    let versions = groups["groups"].as_array().unwrap().iter().flat_map(|group| group["versions"].as_array().unwrap());
    let served = versions.map(|version| version["groupVersion"].as_str().unwrap().to_owned());
    let served: BTreeSet<String> = served.chain(["v1".to_owned()]).collect();
    let sim = ApiServer::new(1);
    let mut told = String::new();
    for version in &served {
        let (group, of) = version.split_once('/').unwrap_or(("", version));
        let list = get(&if group.is_empty() { format!("/api/{of}") } else { format!("/apis/{version}") });
        let mut expected: BTreeMap<String, Option<bool>> = BTreeMap::new();
        for resource in list["resources"].as_array().unwrap() {
            let is_whole = !resource["name"].as_str().unwrap().contains('/');
            let known = expected.entry(resource["kind"].as_str().unwrap().to_owned()).or_default();
            *known = known.or(if is_whole { resource["namespaced"].as_bool() } else { None });
        }
        let found = sim.discover(group, of).kinds.unwrap_or_default();
        if expected != found {
            writeln!(told, "===== discovery of {version}\nkube-apiserver: {expected:?}\nsim:            {found:?}")
                .unwrap();
        }
    }
    let known = sim.kinds().flat_map(|kind| kind.versions.iter().map(|v| (kind.group.clone(), v.name.clone())));
    for (group, version) in known {
        let version = if group.is_empty() { version } else { format!("{group}/{version}") };
        if !served.contains(&version) {
            writeln!(told, "===== discovery of {version}: kube-apiserver does not serve it").unwrap();
        }
    }
    told
}
