//! Parses a chunk of a catalog file into blobs. Chunks are independent: they may be parsed by any thread and in any order.

use std::sync::Arc;

use serde_json::Value;

use super::blob::{self, Blob, Kind};
use super::document_text::{self, DocumentText, NonTextWord};
use super::meta::Meta;
use super::stored::{Span, Stored};
use crate::bundle::{Bundle, File};
use crate::finding::Finding;
use crate::yaml::{self, Document, Format};

/// Whole documents of a catalog file.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The file's path for messages.
    pub path: &'a str,
    /// First line of the chunk in the file, starting at 1.
    pub line: usize,
    /// Offset of the chunk in the file, in bytes.
    pub offset: usize,
    /// The bytes.
    pub bytes: &'a [u8],
    /// How the file is written.
    pub format: Format,
    /// The source from which the file can be read again.
    pub file: &'a Arc<dyn Stored>,
}

/// The result of parsing a chunk, for [`super::Loader::add`].
#[derive(Debug, Default)]
pub struct Parsed {
    pub(super) blobs: Vec<Blob>,
    pub(super) findings: Vec<Finding>,
}

impl Parsed {
    /// Parses a chunk of a file of blobs.
    pub fn blobs(chunk: &Chunk<'_>) -> Self {
        let mut parsed = Self::default();
        let path: Arc<str> = chunk.path.into();
        match yaml::documents_at(chunk.bytes, chunk.format, chunk.line, chunk.offset) {
            Ok(documents) => documents.iter().for_each(|d| parsed.document(d, &path, chunk.file)),
            Err(e) => parsed.findings.push(document_text::unreadable(e, &path)),
        }
        parsed
    }

    /// Parses a whole file of blobs, which stays in memory.
    pub fn file(file: &File) -> Self {
        let stored: Arc<dyn Stored> = Arc::new(file.bytes.clone());
        let format = Format::detect(&file.bytes).unwrap_or(Format::Yaml);
        Self::blobs(&Chunk { path: &file.path, line: 1, offset: 0, bytes: &file.bytes, format, file: &stored })
    }

    /// Parses a bundle directory. The directory is a prefix of its files' paths.
    pub fn bundle(directory: &str, files: &[File]) -> Self {
        match blob::of_directory(directory, files) {
            Ok(blob) => Self { blobs: vec![blob], findings: Vec::new() },
            Err(findings) => Self::findings(findings),
        }
    }

    /// Takes generated blobs, such as those of a template.
    pub fn metas(path: &str, blobs: Vec<Meta>) -> Self {
        let text: String = blobs.iter().map(|meta| format!("{}\n", meta.0)).collect();
        Self::file(&File::new(path, text.into_bytes()))
    }

    /// Sets the channels of the bundles to those in the annotations of `bundle`.
    pub fn in_channels_of(mut self, bundle: &Bundle) -> Self {
        for blob in &mut self.blobs {
            if let Kind::Bundle(blob) = &mut blob.kind {
                blob.channels = bundle.channels().into_iter().map(str::to_owned).collect();
                bundle.default_channel().clone_into(&mut blob.default_channel);
            }
        }
        self
    }

    /// Returns the finding that the document at that line of a file is too long.
    pub fn too_long(path: &str, line: usize) -> Self {
        Self::finding(document_text::unreadable(document_text::too_long(line), path))
    }

    /// Returns the number of parsed values that stay in memory.
    pub fn values(&self) -> usize {
        fn count(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
                Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
                _ => 1,
            }
        }
        let of_blob = |blob: &Blob| match &blob.kind {
            Kind::Bundle(bundle) => {
                bundle.properties.iter().map(|p| 1 + count(&p.value)).sum::<usize>() + bundle.problems.len()
            }
            Kind::Channel(channel) => channel.entries.iter().map(|entry| 1 + entry.skips.len()).sum(),
            Kind::Deprecations(deprecations) => deprecations.entries.len(),
            Kind::Package(_) | Kind::Other(_) => 0,
        };
        self.blobs.iter().map(|blob| 1 + of_blob(blob)).sum::<usize>() + self.findings.len()
    }

    /// Returns only a finding.
    pub fn finding(finding: Finding) -> Self {
        Self::findings(vec![finding])
    }

    /// Takes several findings.
    pub fn findings(findings: Vec<Finding>) -> Self {
        Self { blobs: Vec::new(), findings }
    }

    fn document(&mut self, document: &Document<'_>, path: &Arc<str>, file: &Arc<dyn Stored>) {
        let read = DocumentText::read(document).map_err(|e| document_text::unreadable(e, path)).and_then(|text| {
            for key in &text.repeated {
                self.findings.push(
                    Finding::new(
                        "repeated-key",
                        format!("the key {key:?} occurs twice in one object; the last one is used"),
                    )
                    .warning()
                    .at(path, document.line)
                    .hint("remove one of the keys"),
                );
            }
            for NonTextWord { line, word, means } in &text.words {
                let message = format!("unquoted {word} means {means} in YAML 1.1, not a string");
                let finding = Finding::new("not-a-text", message).warning().at(path, *line);
                self.findings.push(finding.hint(format!("write '{word}' for the string, or {means}")));
            }
            blob::read(&text, Span::new(file, document), path, document)
        });
        match read {
            Ok(blob) => self.blobs.push(blob),
            Err(finding) => self.findings.push(finding),
        }
    }
}
