//! What goes on by itself must not end in silence: a panic is a bug of ours or of a library, is told, and what it ended begins anew.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::backoff::Backoff;
use super::error::{Error, Panicked};

/// The text of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without text".to_owned())
}

/// Runs something once.
///
/// # Errors
/// It panicked.
pub(super) async fn guarded<T>(what: impl Future<Output = T>) -> Result<T, Panicked> {
    let ended = AssertUnwindSafe(what).catch_unwind().await;
    ended.map_err(|panic| Panicked(text(&*panic))).inspect_err(|panicked| tracing::error!("{panicked}"))
}

/// Runs something until it ends well, and again after each failure or panic, with a pause that grows. `failed` is told of each.
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
    async fn what_panics_is_told_and_begins_anew() {
        let (begun, told) = (Cell::new(0), RefCell::new(Vec::new()));
        let begin = || {
            begun.set(begun.get() + 1);
            let is_first = begun.get() == 1;
            async move {
                assert!(!is_first, "no token");
                Ok(())
            }
        };
        supervised(begin, |error| told.borrow_mut().push(error.to_string())).await;
        assert_eq!(begun.get(), 2);
        assert_eq!(*told.borrow(), ["it failed inside kubectl-olm: no token"]);
    }
}
