//! Runs asynchronous code on a thread that may block.

use crate::error::CliError;

/// Runs a future to completion, on the runtime of the thread, or on a new one.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.block_on(future),
        Err(_) => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future),
    }
}
