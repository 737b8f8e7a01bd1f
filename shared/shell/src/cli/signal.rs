//! The end of a process that runs until it is told to stop.

/// Resolves when the process is asked to stop.
pub async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers the default action of a signal ends the process, which leaves the cluster as clean.
        _ => std::future::pending().await,
    }
}
