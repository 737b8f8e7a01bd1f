//! The location of a blob's bytes. A catalog is an index; it reads a blob again when the blob is needed.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::meta::Meta;
use crate::yaml::{Document, Format};

/// A source of a catalog file's bytes: the bytes themselves, or a way to read them again.
pub trait Stored: fmt::Debug + Send + Sync {
    /// Returns a range of bytes.
    ///
    /// # Errors
    /// The bytes are no longer available: a sentence that states why.
    fn read(&self, range: Range<usize>) -> Result<Vec<u8>, String>;
}

/// A file in memory.
impl Stored for Vec<u8> {
    fn read(&self, range: Range<usize>) -> Result<Vec<u8>, String> {
        self.get(range).map(<[u8]>::to_vec).ok_or_else(|| "the file is shorter than it was".to_owned())
    }
}

/// A shared file in memory.
impl Stored for Arc<[u8]> {
    fn read(&self, range: Range<usize>) -> Result<Vec<u8>, String> {
        self.get(range).map(<[u8]>::to_vec).ok_or_else(|| "the file is shorter than it was".to_owned())
    }
}

/// The location of one blob in its file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Span {
    file: Arc<dyn Stored>,
    range: Range<usize>,
    format: Format,
}

impl Span {
    pub(super) fn new(file: &Arc<dyn Stored>, document: &Document<'_>) -> Self {
        let range = document.offset..document.offset + document.text.len();
        Self { file: file.clone(), range, format: document.format }
    }

    /// Returns the range of the blob in its file, in bytes.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Returns the format of the file.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Reads the blob as JSON, with known fields in their usual case.
    ///
    /// # Errors
    /// The file cannot be read, has changed, or the blob is no valid document.
    pub fn value(&self) -> Result<Value, String> {
        let bytes = self.file.read(self.range.clone())?;
        let text = std::str::from_utf8(&bytes).map_err(|_| "the file has changed since it was read".to_owned())?;
        let document = Document { line: 1, offset: 0, text, format: self.format };
        document.value().map(|value| Meta::new(value).0).map_err(|e| e.message)
    }
}
