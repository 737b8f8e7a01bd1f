//! The end of a process that runs until it is told to stop.

/// How a process is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The usual end of a process that goes on.
    Terminate,
}

/// Resolves when the process is asked to stop.
pub async fn stopped() {
    received().await;
}

/// Resolves when the process is asked to stop, with how.
pub async fn received() -> Signal {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => Signal::Interrupt,
                _ = terminate.recv() => Signal::Terminate,
            }
        }
        // Without handlers the default action of a signal ends the process, which leaves the cluster as clean.
        _ => std::future::pending().await,
    }
}
