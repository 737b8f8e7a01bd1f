//! Waiting for what is asynchronous, on a thread that may block.

use crate::error::CliError;

/// Waits for a future: on the runtime that the thread belongs to, else on one of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.block_on(future),
        Err(_) => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future),
    }
}
