//! A piece of a catalog file becomes blobs, each of them read or refused. Pieces know nothing of each other, so they can be
//! read on any thread and in any order.
//!
//! What is large (the objects that a bundle carries) is checked here and left in the file.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::blob::{self, Blob, Kind};
use super::meta::Meta;
use super::stored::{Span, Stored};
use crate::budget::{self, DOCUMENT_BYTES};
use crate::bundle::{Bundle, File};
use crate::finding::Finding;
use crate::yaml::{self, Document, Format};

/// Whole documents of a catalog file.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The file, as people should see it in messages.
    pub path: &'a str,
    /// Line of the file on which the piece begins, from 1.
    pub line: usize,
    /// Offset of the piece in the file.
    pub offset: usize,
    /// The bytes.
    pub bytes: &'a [u8],
    /// How the file is written.
    pub format: Format,
    /// Where the file can be read again.
    pub file: &'a Arc<dyn Stored>,
}

/// What a piece of a catalog said, for [`super::Loader::add`].
#[derive(Debug, Default)]
pub struct Parsed {
    pub(super) blobs: Vec<Blob>,
    pub(super) findings: Vec<Finding>,
}

impl Parsed {
    /// Reads a piece of a file of blobs.
    pub fn blobs(piece: &Piece<'_>) -> Self {
        let mut parsed = Self::default();
        let path: Arc<str> = piece.path.into();
        match yaml::documents_at(piece.bytes, piece.format, piece.line, piece.offset) {
            Ok(documents) => documents.iter().for_each(|d| parsed.document(d, &path, piece.file)),
            Err(e) => parsed.findings.push(unreadable(e, &path)),
        }
        parsed
    }

    /// Reads a whole file of blobs, which stays in memory.
    pub fn file(file: &File) -> Self {
        let stored: Arc<dyn Stored> = Arc::new(file.bytes.clone());
        let format = Format::of(&file.bytes).unwrap_or(Format::Yaml);
        Self::blobs(&Piece { path: &file.path, line: 1, offset: 0, bytes: &file.bytes, format, file: &stored })
    }

    /// Reads a bundle directory, whose path begins its files' paths.
    pub fn bundle(directory: &str, files: &[File]) -> Self {
        match blob::of_directory(directory, files) {
            Ok(blob) => Self { blobs: vec![blob], findings: Vec::new() },
            Err(finding) => Self::finding(finding),
        }
    }

    /// Takes in blobs that were made, such as those of a template.
    pub fn metas(path: &str, blobs: Vec<Meta>) -> Self {
        let text: String = blobs.iter().map(|meta| format!("{}\n", meta.0)).collect();
        Self::file(&File::new(path, text.into_bytes()))
    }

    /// The same, of bundles that go into the channels that the annotations of one name.
    pub fn in_channels_of(mut self, bundle: &Bundle) -> Self {
        for blob in &mut self.blobs {
            if let Kind::Bundle(blob) = &mut blob.kind {
                blob.channels = bundle.channels().into_iter().map(str::to_owned).collect();
                bundle.default_channel().clone_into(&mut blob.default_channel);
            }
        }
        self
    }

    /// Says that the document which begins on that line of a file is too long to be read.
    pub fn too_long(path: &str, line: usize) -> Self {
        Self::finding(unreadable(too_long(line), path))
    }

    /// How many values stay in memory of what was read.
    pub fn values(&self) -> usize {
        fn of(value: &Value) -> usize {
            match value {
                Value::Array(items) => 1 + items.iter().map(of).sum::<usize>(),
                Value::Object(fields) => 1 + fields.values().map(of).sum::<usize>(),
                _ => 1,
            }
        }
        let of_blob = |blob: &Blob| match &blob.kind {
            Kind::Bundle(bundle) => {
                bundle.properties.iter().map(|p| 1 + of(&p.value)).sum::<usize>() + bundle.problems.len()
            }
            Kind::Channel(channel) => channel.entries.iter().map(|entry| 1 + entry.skips.len()).sum(),
            Kind::Deprecations(deprecations) => deprecations.entries.len(),
            Kind::Package(_) | Kind::Other(_) => 0,
        };
        self.blobs.iter().map(|blob| 1 + of_blob(blob)).sum::<usize>() + self.findings.len()
    }

    /// Says only that something is wrong.
    pub fn finding(finding: Finding) -> Self {
        Self { blobs: Vec::new(), findings: vec![finding] }
    }

    fn document(&mut self, document: &Document<'_>, path: &Arc<str>, file: &Arc<dyn Stored>) {
        let read = Text::read(document).map_err(|e| unreadable(e, path)).and_then(|text| {
            for key in &text.repeated {
                self.findings.push(
                    Finding::new(
                        "repeated-key",
                        format!("the key {key:?} stands twice in one object; the last one counts"),
                    )
                    .warning()
                    .at(path, document.line)
                    .hint("remove one of them"),
                );
            }
            for Said { line, word, means } in &text.words {
                let message = format!("{word} without quotes is {means}, as in YAML 1.1, and not a text");
                let finding = Finding::new("not-a-text", message).warning().at(path, *line);
                self.findings.push(finding.hint(format!("write '{word}' if the text is meant, else {means}")));
            }
            blob::read(&text, Span::new(file, document), path, document)
        });
        match read {
            Ok(blob) => self.blobs.push(blob),
            Err(finding) => self.findings.push(finding),
        }
    }
}

/// A document that is longer than one may be.
fn too_long(line: usize) -> yaml::Error {
    let message = format!("the document has more than {DOCUMENT_BYTES} bytes");
    yaml::Error {
        line,
        message,
        hint: Some("divide it: a document of a catalog describes one package, channel or bundle"),
    }
}

pub(super) fn unreadable(error: yaml::Error, path: &str) -> Finding {
    Finding::new("unreadable-file", error.message)
        .at(path, error.line)
        .hint(error.hint.unwrap_or("a catalog is YAML or JSON; name other files in .indexignore"))
}

/// A line of YAML that is longer is looked at: is it the base64 of an object?
const LONG_LINE: usize = 512;

/// A document as JSON, in which the base64 of large objects may be stood for by `@` and a number.
pub(super) struct Text<'a> {
    pub(super) json: Cow<'a, str>,
    large: Vec<&'a str>,
    /// Keys that stand twice in one object of the YAML.
    pub(super) repeated: Vec<String>,
    /// Words of the YAML that are not the text that they look like.
    words: Vec<Said>,
}

/// A word that stands for something else, and on which line of the file.
struct Said {
    line: usize,
    word: String,
    means: String,
}

impl<'a> Text<'a> {
    fn read(document: &Document<'a>) -> Result<Self, yaml::Error> {
        let refuse = |message: String, hint| yaml::Error { line: document.line, message, hint: Some(hint) };
        if document.text.len() > DOCUMENT_BYTES {
            return Err(too_long(document.line));
        }
        if document.format == Format::Json {
            budget::check_json(document.text, budget::Document::MANIFEST)
                .map_err(|exceeded| refuse(exceeded.to_string(), exceeded.hint()))?;
            return Ok(Self {
                json: Cow::Borrowed(document.text),
                large: Vec::new(),
                repeated: Vec::new(),
                words: Vec::new(),
            });
        }
        // YAML is slow to read and base64 is most of some catalogs, so it is read without.
        if let Some((short, large)) = without_large(document.text) {
            let read = document.read(&short)?;
            if count_stand_ins(&read.value) == Some(large.len()) {
                return Ok(Self::of(document, &short, read, large));
            }
        }
        Ok(Self::of(document, document.text, document.read(document.text)?, Vec::new()))
    }

    /// What was read of a text that stands for the document's own, line for line.
    fn of(document: &Document<'a>, text: &str, read: yaml::Read, large: Vec<&'a str>) -> Self {
        let line = |at: usize| document.line + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
        let words =
            read.words.into_iter().map(|yaml::Word { at, text, means }| Said { line: line(at), word: text, means });
        Self { json: Cow::Owned(read.value.to_string()), large, repeated: read.repeated, words: words.collect() }
    }

    /// The `data` of an `olm.bundle.object` in full.
    pub(super) fn data<'b>(&'b self, data: &'b str) -> &'b str {
        let stood_for = || self.large.get(data.strip_prefix('@')?.parse::<usize>().ok()?);
        stood_for().map_or(data, |large| large)
    }
}

/// The text without the base64 of `data: …` lines, and what was left out. None when nothing was, or when the text uses what
/// stands for it.
fn without_large(text: &str) -> Option<(String, Vec<&str>)> {
    let mut large = Vec::new();
    let mut short = String::new();
    let mut kept = 0;
    let mut at = 0;
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n);
        if end - at > LONG_LINE
            && let Some(value) = base64_value(&text[at..end])
        {
            let start = at + value.start;
            short.push_str(&text[kept..start]);
            short.push_str(&format!("\"@{}\"", large.len()));
            large.push(&text[start..at + value.end]);
            kept = at + value.end;
        }
        at = end + 1;
    }
    if large.is_empty() || text.contains("\"@") || text.contains("'@") {
        return None;
    }
    short.push_str(&text[kept..]);
    Some((short, large))
}

/// Where in the line `data: BASE64` the base64 is, if that is all of it.
fn base64_value(line: &str) -> Option<std::ops::Range<usize>> {
    let body = line.trim_start_matches([' ', '-']).strip_prefix("data: ")?;
    let start = line.len() - body.len();
    let value = body.trim_end();
    let is_base64 = value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    is_base64.then_some(start..start + value.len())
}

/// How many objects of properties are stood for; none when something else is, too.
fn count_stand_ins(blob: &Value) -> Option<usize> {
    let properties = blob.as_object()?.iter().find(|(k, _)| k.eq_ignore_ascii_case("properties"))?.1.as_array()?;
    let is_stand_in = |p: &&Value| p.pointer("/value/data").and_then(Value::as_str).is_some_and(|d| d.starts_with('@'));
    let is_object = |p: &&Value| p.get("type").is_some_and(|t| t == crate::bundle::property::BUNDLE_OBJECT);
    let stood_for: Vec<&Value> = properties.iter().filter(is_stand_in).collect();
    stood_for.iter().all(is_object).then_some(stood_for.len())
}
