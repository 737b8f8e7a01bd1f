//! The progress of pushes and pulls.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// The progress of a push or a pull, in bytes of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes that were transferred, or that the registry had already.
    pub done: u64,
    /// Bytes of all blobs.
    pub total: u64,
}

/// Receives the progress of a push or a pull.
pub type Watch = Arc<dyn Fn(Transferred) + Send + Sync>;

/// Receives the progress of pulls, if anything does.
#[derive(Clone, Default)]
pub struct PullWatch(pub Option<Watch>);

impl fmt::Debug for PullWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "watched" } else { "unwatched" })
    }
}

/// A blob that is read and counted.
pub(super) struct Counted {
    blob: Box<dyn Read + Send>,
    watch: PullWatch,
    transferred: Transferred,
}

impl Counted {
    /// `transferred`: what was transferred before this blob.
    pub(super) fn new(blob: Box<dyn Read + Send>, watch: PullWatch, transferred: Transferred) -> Self {
        Self { blob, watch, transferred }
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.blob.read(buffer)?;
        self.transferred.done += count as u64;
        if let Some(watch) = self.watch.0.as_ref().filter(|_| count > 0) {
            watch(self.transferred);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_is_read_of_a_blob_is_reported_after_what_was_read_of_others() {
        let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
        let receiver = seen.clone();
        let watch: Watch = Arc::new(move |transferred| receiver.lock().unwrap().push(transferred.done));
        let transferred = Transferred { done: 100, total: 110 };
        let mut blob = Counted::new(Box::new(Cursor::new([0; 10])), PullWatch(Some(watch)), transferred);
        let mut buffer = [0; 6];
        while blob.read(&mut buffer).unwrap() > 0 {}
        assert_eq!(*seen.lock().unwrap(), [106, 110]);
    }
}
