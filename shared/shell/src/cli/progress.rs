//! Progress of long operations: a spinner that appears on a terminal after one second.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::image::{Transferred, Watch};

/// The delay before the spinner appears.
const DELAY: Duration = Duration::from_secs(1);

/// The interval between frames: eight per second.
const TICK: Duration = Duration::from_millis(125);

/// The bar of a transfer.
const BYTES: &str = "{spinner} {msg} {wide_bar} {binary_bytes}/{binary_total_bytes}";

/// Returns a spinner with a message.
fn spinner(doing: String, target: ProgressDrawTarget) -> ProgressBar {
    ProgressBar::with_draw_target(None, target).with_style(ProgressStyle::default_spinner()).with_message(doing)
}

/// A spinner on stderr, removed when dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropping it ends the thread that waits for [`DELAY`].
    _alive: mpsc::Sender<()>,
}

impl Progress {
    /// Starts the delay; the spinner appears after [`DELAY`] if `visible`.
    pub(super) fn start(doing: String, visible: bool) -> Self {
        let bar = spinner(doing, ProgressDrawTarget::hidden());
        let (alive, ended) = mpsc::channel();
        if visible {
            let bar = bar.clone();
            thread::spawn(move || {
                if ended.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            });
        }
        Self { bar, _alive: alive }
    }

    /// Replaces the message.
    pub fn doing(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Returns a receiver of the progress of a push or a pull, which shows a bar in place of the spinner.
    pub fn watch(&self) -> Watch {
        let bar = self.bar.clone();
        Arc::new(move |transferred| show(&bar, transferred))
    }
}

/// Shows a bar in place of the spinner.
fn show(bar: &ProgressBar, Transferred { done, total }: Transferred) {
    if bar.length() != Some(total) {
        bar.set_length(total);
        if let Ok(style) = ProgressStyle::with_template(BYTES) {
            bar.set_style(style);
        }
    }
    bar.set_position(done);
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use indicatif::TermLike;

    use super::*;

    /// A terminal that records its output.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_spinner_shows_its_message() {
        let screen = Screen::default();
        let bar = spinner("reading the cluster".to_owned(), ProgressDrawTarget::term_like(Box::new(screen.clone())));
        bar.tick();
        let shown = screen.0.lock().unwrap().clone();
        assert!(shown.contains("reading the cluster") && !shown.contains('0'), "{shown:?}");
        let (alive, _) = mpsc::channel();
        let progress = Progress { bar, _alive: alive };
        progress.watch()(Transferred { done: 1 << 20, total: 4 << 20 });
        progress.bar.tick();
        let shown = screen.0.lock().unwrap().clone();
        assert!(shown.contains("1.00 MiB/4.00 MiB"), "{shown:?}");
    }
}
