//! Handles SIGINT, SIGTERM and SIGHUP in processes that run until they are stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

/// The exit code after Ctrl-C, in every command: 128 plus the number of the signal, as in shells.
pub const INTERRUPTED: u8 = 130;

/// Whether SIGINT was received. Global, because a signal concerns the whole process.
static CTRL_C: AtomicBool = AtomicBool::new(false);

/// The signal that stops the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or SIGHUP: the terminal was closed.
    Terminate,
}

/// Resolves when a signal to stop is received.
pub async fn stopped() {
    received().await;
}

/// Resolves to the signal that is received first. A second Ctrl-C ends the process at once, without an orderly
/// shutdown.
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
                () = hung_up() => Signal::Terminate,
            }
        }
        // Without handlers the default action of the signal ends the process, which is safe at any time.
        _ => std::future::pending().await,
    }
}

/// Resolves when the terminal was closed, unless the process is to survive that (`nohup`), or the system does not report whether it is.
async fn hung_up() {
    /// The bit of SIGHUP, the first signal.
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if let (Some(0), Ok(mut hangup)) = (ignored.map(|mask| mask & HANGUP), signal(SignalKind::hangup())) {
        hangup.recv().await;
    } else {
        std::future::pending::<()>().await;
    }
}

#[expect(clippy::exit, reason = "a second Ctrl-C requests an immediate exit")]
fn end_now() {
    std::process::exit(INTERRUPTED.into());
}

/// Returns whether Ctrl-C was pressed. If no caller waits for [`stopped`], the signal itself ends the process, which
/// shells report with the same code.
pub fn was_interrupted() -> bool {
    CTRL_C.load(Ordering::Relaxed)
}
