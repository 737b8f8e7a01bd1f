//! YAML and JSON documents: within their budgets, and unchanged after they were written and read again.

use olm_core::budget;
use olm_core::yaml::{self, Document, Format, Step};
use olm_shell::cli::data;
use serde_json::Value;

use super::shown::harmless;

/// Limits that small inputs exceed.
const SMALL: budget::Document = budget::Document { nodes: 200, bytes: 2000, depth: 12 };
/// How many values aliases may add to a document.
const ALIASES: usize = 10_000;

/// Reads documents.
///
/// # Panics
/// They exceed a limit, or change when they are read again.
pub(super) fn run(bytes: &[u8]) {
    let documents = match yaml::documents(bytes) {
        Ok(documents) => documents,
        Err(error) => {
            assert!(std::str::from_utf8(bytes).is_err(), "{error}");
            return;
        }
    };
    let mut end = 0;
    for document in &documents {
        let Document { line, offset, text, .. } = document;
        assert_eq!(&bytes[*offset..offset + text.len()], text.as_bytes());
        assert!(*offset >= end, "documents overlap");
        assert_eq!(*line, 1 + newlines(&bytes[..*offset]), "the line of {text:?}");
        end = offset + text.len();
        check(document);
    }
    if let Some(format) = Format::detect(bytes) {
        in_two(bytes, format, &documents);
    }
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|b| *b == b'\n').count() - 1
}

fn check(document: &Document<'_>) {
    if let Ok((value, _)) = document.parse_within(SMALL) {
        let size = Size::new(&value);
        assert!(size.nodes <= SMALL.nodes && size.bytes <= SMALL.bytes && size.depth <= SMALL.depth, "{size:?}");
    }
    let Ok((value, _)) = document.parse() else { return };
    let size = Size::new(&value);
    assert!(size.nodes <= document.text.len() + ALIASES && size.depth <= budget::Document::MANIFEST.depth, "{size:?}");
    again(&value);
    let mut path = Vec::new();
    leaf(&value, &mut path);
    let found = document.line_of(&path);
    let last = document.line + newlines(document.text.as_bytes());
    assert!((document.line..=last).contains(&found), "line {found} of {}..={last}", document.line);
}

/// Checks that the complete documents at the beginning of a text, and its rest, are the documents of the text.
fn in_two(bytes: &[u8], format: Format, documents: &[Document<'_>]) {
    let cut = yaml::whole(bytes, format);
    assert!(cut <= bytes.len());
    let (first, rest) = bytes.split_at(cut);
    let line = 1 + newlines(first);
    let rest_format = Format::detect(rest).unwrap_or(format);
    let first = yaml::documents_at(first, format, 1, 0);
    let rest = yaml::documents_at(rest, rest_format, line, cut);
    let (Ok(mut all), Ok(rest)) = (first, rest) else { return };
    all.extend(rest);
    if rest_format == format {
        assert_eq!(all, documents, "cut at {cut}");
    }
}

/// Checks that the value is unchanged after it was written in any format and read again.
pub(super) fn again(value: &Value) {
    for text in [yaml::to_string(value).unwrap_or_default(), data::yaml(value).unwrap_or_default()] {
        let read = yaml::first(text.as_bytes());
        assert_eq!(read.as_ref(), Ok(value), "{text}");
    }
    let text = data::yaml(value).unwrap_or_default() + &data::json(value).unwrap_or_default();
    harmless(&text);
    assert!(!text.contains('\t'), "{text:?}");
    for text in [serde_json::to_string(value).unwrap_or_default(), data::json(value).unwrap_or_default()] {
        assert_eq!(serde_json::from_str::<Value>(&text).ok().as_ref(), Some(value), "{text}");
        if value.is_object() {
            assert_eq!(yaml::first(text.as_bytes()).as_ref(), Ok(value), "{text}");
        }
    }
}

/// Appends the path to a leaf, following the last entry at each level.
fn leaf(value: &Value, path: &mut Vec<Step>) {
    match value {
        Value::Array(items) => {
            if let Some(last) = items.last() {
                path.push(Step::Item(items.len() - 1));
                leaf(last, path);
            }
        }
        Value::Object(fields) => {
            if let Some((key, last)) = fields.iter().next_back() {
                path.push(Step::Field(key.clone()));
                leaf(last, path);
            }
        }
        _ => {}
    }
}

/// The size of a value.
#[derive(Debug, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Size {
    fn new(value: &Value) -> Self {
        let mut size = Self { nodes: 1, ..Self::default() };
        match value {
            Value::String(text) => size.bytes = text.len(),
            Value::Array(items) => items.iter().for_each(|item| size.add(item)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                size.bytes += key.len();
                size.add(value);
            }),
            _ => {}
        }
        size
    }

    fn add(&mut self, inner: &Value) {
        let Self { nodes, bytes, depth } = Self::new(inner);
        self.nodes += nodes;
        self.bytes += bytes;
        self.depth = self.depth.max(depth + 1);
    }
}
