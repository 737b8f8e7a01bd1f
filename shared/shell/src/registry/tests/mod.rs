//! Tests of server and client together, and of the server against the recorded responses of `opm serve`.

mod conversions;
mod directories;
mod generated;
mod recorded;
mod round_trip;
mod serving;

use std::path::{Path, PathBuf};

use olm_core::catalog::Snapshot;
use tokio::sync::watch;

use super::server::Server;

/// The data folder that `OLM_TEST_DATA` names, default `../shared/data` beside the repository. Prints a message if it is missing.
fn data() -> Option<PathBuf> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let folder = std::env::var_os("OLM_TEST_DATA").map_or_else(default, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no test data at {}", folder.display());
    None
}

/// The sample catalog of this repository.
fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/garden")
}

/// Starts a server of a snapshot on a free port. The sender replaces the snapshot.
async fn serve(snapshot: Snapshot) -> (Server, watch::Sender<Snapshot>) {
    let (sender, receiver) = watch::channel(snapshot);
    (Server::start(([127, 0, 0, 1], 0).into(), receiver).await.unwrap(), sender)
}
