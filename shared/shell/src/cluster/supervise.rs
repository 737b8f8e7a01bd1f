//! Supervision of background tasks: a panic (a bug of this program or of a library) is logged, and its task is restarted.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::backoff::Backoff;
use super::error::{Error, Panicked};

/// Returns the message of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without text".to_owned())
}

/// Runs a future once and logs a panic.
///
/// # Errors
/// The future panicked.
pub(super) async fn guarded<T>(what: impl Future<Output = T>) -> Result<T, Panicked> {
    let ended = AssertUnwindSafe(what).catch_unwind().await;
    ended.map_err(|panic| Panicked(text(&*panic))).inspect_err(|panicked| tracing::error!("{panicked}"))
}

/// Runs an operation until it succeeds, and retries it with backoff after each failure or panic, which is passed to `failed`.
pub(super) async fn supervised<F: Future<Output = Result<(), Error>>>(
    mut begin: impl FnMut() -> F,
    failed: impl Fn(Error),
) {
    let mut backoff = Backoff::new();
    while let Err(error) = guarded(begin()).await.map_err(Error::from).flatten() {
        failed(error);
        backoff.pause().await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_reported_and_restarted() {
        let (begun, reported) = (Cell::new(0), RefCell::new(Vec::new()));
        let begin = || {
            begun.set(begun.get() + 1);
            let is_first = begun.get() == 1;
            async move {
                assert!(!is_first, "no token");
                Ok(())
            }
        };
        supervised(begin, |error| reported.borrow_mut().push(error.to_string())).await;
        assert_eq!(begun.get(), 2);
        assert_eq!(*reported.borrow(), ["it failed inside kubectl-olm: no token"]);
    }
}
