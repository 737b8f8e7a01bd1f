//! The text of one document of a catalog file, as JSON. Large parts (the objects that a bundle carries) are checked and
//! left in the file.

use std::borrow::Cow;

use serde_json::Value;

use crate::budget::{self, DOCUMENT_BYTES};
use crate::finding::Finding;
use crate::yaml::{self, Document, Format};

/// Returns the error for a document that exceeds the size limit.
pub(super) fn too_long(line: usize) -> yaml::Error {
    let message = format!("the document has more than {DOCUMENT_BYTES} bytes");
    yaml::Error {
        line,
        message,
        hint: Some("split it: a document of a catalog describes one package, channel or bundle"),
    }
}

/// Returns the finding for a document or file that cannot be parsed.
pub(super) fn unreadable(error: yaml::Error, path: &str) -> Finding {
    Finding::new("unreadable-file", error.message)
        .at(path, error.line)
        .hint(error.hint.unwrap_or("a catalog is YAML or JSON; list other files in .indexignore"))
}

/// A longer line of YAML is checked for the base64 of an object.
const LONG_LINE: usize = 512;

/// A document as JSON, in which `@` and a number may replace the base64 of large objects.
pub(super) struct DocumentText<'a> {
    pub(super) json: Cow<'a, str>,
    large: Vec<&'a str>,
    /// Keys that occur twice in one object of the YAML.
    pub(super) repeated: Vec<String>,
    /// Plain scalars of the YAML that are not the strings that they look like.
    pub(super) words: Vec<NonTextWord>,
}

/// A plain scalar that is not a string, and its line in the file.
pub(super) struct NonTextWord {
    pub(super) line: usize,
    pub(super) word: String,
    pub(super) means: String,
}

impl<'a> DocumentText<'a> {
    pub(super) fn read(document: &Document<'a>) -> Result<Self, yaml::Error> {
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
        // YAML parsing is slow and base64 is most of some catalogs, so it is parsed without.
        if let Some((short, large)) = without_large(document.text) {
            let read = document.read(&short)?;
            if count_stand_ins(&read.value) == Some(large.len()) {
                return Ok(Self::new(document, &short, read, large));
            }
        }
        Ok(Self::new(document, document.text, document.read(document.text)?, Vec::new()))
    }

    /// Returns the parsed document, given a text that replaces the document's text line by line.
    fn new(document: &Document<'a>, text: &str, read: yaml::Read, large: Vec<&'a str>) -> Self {
        let line = |at: usize| document.line + memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count();
        let words = read.words.into_iter().map(|yaml::Word { at, text, means }| NonTextWord {
            line: line(at),
            word: text,
            means,
        });
        Self { json: Cow::Owned(read.value.to_string()), large, repeated: read.repeated, words: words.collect() }
    }

    /// Returns the full `data` of an `olm.bundle.object`.
    pub(super) fn data<'b>(&'b self, data: &'b str) -> &'b str {
        let stood_for = || self.large.get(data.strip_prefix('@')?.parse::<usize>().ok()?);
        stood_for().map_or(data, |large| large)
    }
}

/// Returns the text without the base64 of `data: …` lines, and the removed parts. `None` when nothing was removed, or when
/// the text contains a placeholder.
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

/// Returns the range of the base64 in a line that consists of `data: BASE64`.
fn base64_value(line: &str) -> Option<std::ops::Range<usize>> {
    let body = line.trim_start_matches([' ', '-']).strip_prefix("data: ")?;
    let start = line.len() - body.len();
    let value = body.trim_end();
    let is_base64 = value.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    is_base64.then_some(start..start + value.len())
}

/// Counts the placeholders in properties; `None` when there is one elsewhere.
fn count_stand_ins(blob: &Value) -> Option<usize> {
    let properties = blob.as_object()?.iter().find(|(k, _)| k.eq_ignore_ascii_case("properties"))?.1.as_array()?;
    let is_stand_in = |p: &&Value| p.pointer("/value/data").and_then(Value::as_str).is_some_and(|d| d.starts_with('@'));
    let is_object = |p: &&Value| p.get("type").is_some_and(|t| t == crate::bundle::property::BUNDLE_OBJECT);
    let stood_for: Vec<&Value> = properties.iter().filter(is_stand_in).collect();
    stood_for.iter().all(is_object).then_some(stood_for.len())
}
