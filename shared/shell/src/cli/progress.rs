//! Showing that work goes on: nothing for the first second, nothing where nobody looks.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};

/// Work that is over within this time is shown by its result only.
const PATIENCE: Duration = Duration::from_secs(1);

/// Eight pictures a second look smooth and cost nothing.
const TICK: Duration = Duration::from_millis(125);

/// A spinner on stderr, removed when dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropping it ends the thread that waits for [`PATIENCE`].
    _alive: mpsc::Sender<()>,
}

impl Progress {
    /// Starts to count; the spinner appears when `doing` takes longer than a second and `visible` is true.
    pub(super) fn start(doing: String, visible: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(doing);
        let (alive, ended) = mpsc::channel();
        if visible {
            let bar = bar.clone();
            thread::spawn(move || {
                if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            });
        }
        Self { bar, _alive: alive }
    }

    /// Says what is being done now.
    pub fn doing(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
