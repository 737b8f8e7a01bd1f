//! The end of a process that runs until it is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// The exit code of what Ctrl-C has ended, in every command: 128 and the number of the signal, as shells have it.
pub const INTERRUPTED: u8 = 130;

/// Was it Ctrl-C? A signal is about the whole process.
static CTRL_C: AtomicBool = AtomicBool::new(false);

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

/// Resolves when the process is asked to stop, with how. Whoever presses Ctrl-C again does not want to wait for an orderly end.
pub async fn received() -> Signal {
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {
                    CTRL_C.store(true, Ordering::Relaxed);
                    tokio::spawn(async move {
                        interrupt.recv().await;
                        end_now();
                    });
                    Signal::Interrupt
                }
                _ = terminate.recv() => Signal::Terminate,
            }
        }
        // Without handlers the default action of a signal ends the process, which leaves the cluster as clean.
        _ => std::future::pending().await,
    }
}

#[expect(clippy::exit, reason = "somebody has asked for it twice")]
fn end_now() {
    std::process::exit(INTERRUPTED.into());
}

/// Has Ctrl-C been pressed? Where nobody waits for [`stopped`] the process ends by the signal itself, which shells tell by the same code.
pub fn was_interrupted() -> bool {
    CTRL_C.load(Ordering::Relaxed)
}
