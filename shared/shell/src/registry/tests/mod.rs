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
use crate::testing;

/// Returns the data folder. Reports the test as skipped and returns `None` if it does not exist.
fn data() -> Option<PathBuf> {
    let found = testing::data();
    if found.is_none() {
        testing::report_skipped(testing::NO_DATA);
    }
    found
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
