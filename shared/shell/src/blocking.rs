//! Runs asynchronous code on a thread that may block.

use std::io;

/// Runs a future to completion, on the runtime of the thread, or on a new one.
pub(crate) fn block_on<T, E: From<io::Error>>(future: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.block_on(future),
        Err(_) => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future),
    }
}
