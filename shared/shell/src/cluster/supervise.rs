//! What goes on by itself must not end in silence: a panic is a bug of ours or of a library, is told, and what it ended begins anew.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use super::backoff::Backoff;

/// The text of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(ToString::to_string).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without text".to_owned())
}

/// Runs something once.
///
/// # Errors
/// The text of its panic, as a sentence.
pub(super) async fn guarded<T>(what: impl Future<Output = T>) -> Result<T, String> {
    let ended = AssertUnwindSafe(what).catch_unwind().await;
    ended.map_err(|panic| {
        let message = format!("it failed inside kubectl-olm: {}", text(&*panic));
        tracing::error!("{message}");
        message
    })
}

/// Runs something until it ends well, and again after each failure or panic, with a pause that grows. `failed` is told of each.
pub(super) async fn supervised<F: Future<Output = Result<(), String>>>(
    mut begin: impl FnMut() -> F,
    failed: impl Fn(String),
) {
    let mut backoff = Backoff::new();
    while let Err(message) = guarded(begin()).await.flatten() {
        failed(message);
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
        supervised(begin, |message| told.borrow_mut().push(message)).await;
        assert_eq!(begun.get(), 2);
        assert_eq!(*told.borrow(), ["it failed inside kubectl-olm: no token"]);
    }
}
