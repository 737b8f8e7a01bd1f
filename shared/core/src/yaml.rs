//! The documents of a YAML or JSON text: the start of each, and each as the JSON that Go's tools would read from it.
//!
//! Kubernetes' tools split a file at lines that begin with `---`, or read it as a stream of JSON objects when its first
//! character is `{`; such lines may also separate the objects. A document is parsed only when [`Document::value`] is
//! called, so a caller can keep an index of documents and read few of them. A file that is too large for memory is read in
//! pieces: [`whole`] returns where to split.

mod checked;
pub(crate) mod outline;
mod yaml11;

use std::ops::Range;

use granit_parser::{Event, Parser};
use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeSeed;
use serde_json::Value;

use self::checked::Reading;
pub(crate) use self::yaml11::Word;
use crate::budget::{self, Exceeded};

/// The depth of brackets is checked before parsing if a text has more brackets.
const MOST_BRACKETS: usize = 5_000;

/// Maximum number of directives (`%TAG`) of a document.
const MOST_DIRECTIVES: usize = 100;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Error {
    /// Line in the text, starting at 1.
    pub line: usize,
    /// The parser's message.
    pub message: String,
    /// How to fix it, if not by correcting the text.
    pub hint: Option<&'static str>,
}

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON objects, one after another.
    Json,
    /// YAML documents.
    Yaml,
}

impl Format {
    /// Returns the format of a text by its first character; `None` while it contains only white space.
    pub fn detect(start: &[u8]) -> Option<Self> {
        let first = start.strip_prefix(BOM).unwrap_or(start).trim_ascii_start().first()?;
        Some(if *first == b'{' { Self::Json } else { Self::Yaml })
    }
}

const BOM: &[u8] = "\u{feff}".as_bytes();

/// The content of a YAML text, with scalars that may have been meant otherwise.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) value: Value,
    /// Duplicate keys of mappings.
    pub(crate) repeated: Vec<String>,
    /// Unquoted words that are not strings.
    pub(crate) words: Vec<Word>,
}

/// A step of the path to a part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a field of a map.
    Field(String),
    /// To an item of a list.
    Item(usize),
}

/// One document of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Line of the text on which the document's content begins, starting at 1.
    pub line: usize,
    /// Byte offset of `text` in the whole text.
    pub offset: usize,
    /// The document.
    pub text: &'a str,
    /// Its format.
    pub format: Format,
}

impl Document<'_> {
    /// Returns the document as JSON; `null` when it contains nothing but comments. Of duplicate keys the last one is used.
    ///
    /// # Errors
    /// The document does not parse, or exceeds the limits for manifests.
    pub fn value(&self) -> Result<Value, Error> {
        self.parse().map(|(value, _)| value)
    }

    /// Returns the document as JSON, and the duplicate keys of the mappings of a YAML document.
    ///
    /// A map in braces without quotes is YAML even where JSON is expected, and JSON indented by tabs is JSON even where
    /// YAML is expected: like kubectl, this tries the other format as well.
    ///
    /// # Errors
    /// The document does not parse, or exceeds the limits for manifests. The error has the line.
    pub fn parse(&self) -> Result<(Value, Vec<String>), Error> {
        self.parse_within(budget::Document::MANIFEST)
    }

    /// Like [`Self::parse`], within other limits.
    ///
    /// # Errors
    /// The document does not parse, or exceeds the limits.
    pub fn parse_within(&self, limits: budget::Document) -> Result<(Value, Vec<String>), Error> {
        let json = || self.read_json(limits);
        let yaml = || self.read_yaml(self.text, limits).map(|read| (read.value, read.repeated));
        let in_braces = self.text.trim_start().strip_prefix('{').map(str::trim_start);
        match self.format {
            Format::Json => json().map(|value| (value, Vec::new())).or_else(|error| match in_braces {
                Some(text) if error.hint.is_none() && !text.starts_with(['"', '}']) => yaml().map_err(|_| error),
                _ => Err(error),
            }),
            // A list as JSON, as in the ConfigMap of a catalog, does not need the YAML parser.
            Format::Yaml if self.text.trim_start().starts_with('[') => json()
                .map(|value| (value, Vec::new()))
                .or_else(|error| if error.hint.is_some() { Err(error) } else { yaml() }),
            Format::Yaml => yaml().or_else(|error| match in_braces {
                Some(_) if error.hint.is_none() => json().map(|value| (value, Vec::new())).map_err(|_| error),
                _ => Err(error),
            }),
        }
    }

    /// Returns the line of a part of the document in the whole text; for a missing part, that of its parent.
    pub fn line_of(&self, path: &[Step]) -> usize {
        outline::outline(self.text).map_or(self.line, |outline| self.line_in(&outline, path))
    }

    /// Does the same with the outline of the document's text, which can be used for several parts.
    pub(crate) fn line_in(&self, outline: &outline::Node, path: &[Step]) -> usize {
        let mut at = outline.range.start;
        let mut node = outline;
        for step in path {
            let inner = match step {
                Step::Field(name) => node.entry(name),
                Step::Item(n) => node.items().get(*n).map(|item| (item.range.start, item)),
            };
            let Some((start, inner)) = inner else { break };
            (at, node) = (start, inner);
        }
        self.line + newlines(&self.text.as_bytes()[..at])
    }

    /// Reads a YAML text that replaces the document's own, line by line.
    pub(crate) fn read(&self, text: &str) -> Result<Read, Error> {
        self.read_yaml(text, budget::Document::MANIFEST)
    }

    fn read_yaml(&self, text: &str, limits: budget::Document) -> Result<Read, Error> {
        let reading = Reading::new(limits.of_text(text.len()));
        self.check_work(text, limits.depth)?;
        let mut value = reading.root().deserialize(serde_yaml::Deserializer::from_str(text)).map_err(|e| {
            let within = e.location().map_or(1, |l| l.line());
            self.error(within - 1, e.to_string(), &reading)
        })?;
        if text.contains("<<") {
            checked::merge(&mut value).map_err(|message| self.error(0, message.to_owned(), &reading))?;
        }
        let mut words = Vec::new();
        if yaml11::is_suspect(&value)
            && let Some(outline) = outline::outline(text)
        {
            yaml11::replace(&mut value, &outline, &mut words);
        }
        Ok(Read { value, repeated: reading.repeated.into_inner(), words })
    }

    /// Rejects documents that would take the parser too long: its work is quadratic in the depth of brackets, independent
    /// of the reader's depth limit, and in the number of directives.
    fn check_work(&self, text: &str, depth: usize) -> Result<(), Error> {
        if text.lines().filter(|line| line.starts_with('%')).nth(MOST_DIRECTIVES).is_some() {
            let message = format!("the document has more than {MOST_DIRECTIVES} directives");
            return Err(Error { line: self.line, message, hint: Some("remove unused directives") });
        }
        if memchr::memchr2_iter(b'[', b'{', text.as_bytes()).nth(MOST_BRACKETS).is_none() {
            return Ok(());
        }
        let too_deep = |line: usize| {
            let exceeded = Exceeded::Depth(depth);
            Error { line, message: exceeded.to_string(), hint: Some(exceeded.hint()) }
        };
        let mut level = 0_usize;
        for event in Parser::new_from_str(text) {
            // Invalid YAML for this parser is also invalid for the other one, unless this one stops at its own depth limit.
            let (event, span) = event.map_err(|error| {
                let (line, message) = (self.line + error.marker().line().max(1) - 1, error.to_string());
                if message.starts_with("recursion limit") {
                    too_deep(line)
                } else {
                    Error { line, message, hint: None }
                }
            })?;
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => level += 1,
                Event::SequenceEnd | Event::MappingEnd => level = level.saturating_sub(1),
                _ => {}
            }
            if level > depth {
                return Err(too_deep(self.line + span.start.line().max(1) - 1));
            }
        }
        Ok(())
    }

    fn read_json(&self, limits: budget::Document) -> Result<Value, Error> {
        let reading = Reading::new(limits.of_text(self.text.len()));
        let mut deserializer = serde_json::Deserializer::from_str(self.text);
        let value = reading.root().deserialize(&mut deserializer);
        value.and_then(|value| deserializer.end().map(|()| value)).map_err(|e| match reading.meter.exceeded() {
            Some(_) => self.error(0, String::new(), &reading),
            None => self.json_error(&e),
        })
    }

    /// Returns an error that many lines into the document; if a limit was exceeded, the error is about the limit.
    fn error(&self, lines: usize, message: String, reading: &Reading) -> Error {
        let line = self.line + lines;
        match reading.meter.exceeded() {
            Some(exceeded) => Error { line, message: exceeded.to_string(), hint: Some(exceeded.hint()) },
            None => Error { line, message, hint: None },
        }
    }

    /// Returns the error of a parser of this document's JSON, with the line in the whole text.
    pub(crate) fn json_error(&self, error: &serde_json::Error) -> Error {
        let within = if self.format == Format::Json { error.line().max(1) - 1 } else { 0 };
        Error { line: self.line + within, message: error.to_string(), hint: None }
    }
}

/// Returns the documents of a text, in order, without empty ones. Text after a whole object of a JSON text that is neither
/// another object nor a separator is a document as well, which no parser accepts.
///
/// # Errors
/// The text is not UTF-8.
pub fn documents(bytes: &[u8]) -> Result<Vec<Document<'_>>, Error> {
    documents_at(bytes, Format::detect(bytes).unwrap_or(Format::Yaml), 1, 0)
}

/// Returns the documents of a piece of a text that begins on that line and at that offset.
///
/// # Errors
/// The text is not UTF-8.
pub fn documents_at(bytes: &[u8], format: Format, line: usize, offset: usize) -> Result<Vec<Document<'_>>, Error> {
    let text = std::str::from_utf8(bytes).map_err(|e| Error {
        line: line + newlines(&bytes[..e.valid_up_to()]),
        message: "the text is not UTF-8".to_owned(),
        hint: None,
    })?;
    let body = text.trim_start_matches('\u{feff}');
    let offset = offset + text.len() - body.len();
    Ok(match format {
        Format::Json => json_documents(body, line, offset),
        Format::Yaml => yaml_documents(body, line, offset),
    })
}

/// Renders a value as YAML that YAML 1.1 and YAML 1.2 read alike.
///
/// # Errors
/// The value contains a map with keys that are not strings.
pub fn to_string(value: &impl Serialize) -> Result<String, serde_yaml::Error> {
    serde_yaml::to_string(value).map(yaml11::quote)
}

/// Returns the first document of a text as JSON; `null` for an empty text.
///
/// # Errors
/// The text is not UTF-8, or its first document does not parse.
pub fn first(bytes: &[u8]) -> Result<Value, Error> {
    documents(bytes)?.first().map_or(Ok(Value::Null), Document::value)
}

/// Returns the number of bytes at the start of a text that are whole documents, if more of the text follows.
pub fn whole(bytes: &[u8], format: Format) -> usize {
    match format {
        Format::Json => {
            let mut end = 0;
            while let Some(Part { range, is_whole: true, .. }) = next_part(bytes, end) {
                end = range.end;
            }
            end
        }
        Format::Yaml => memmem::rfind_iter(bytes, b"\n---")
            .find(|at| bytes.get(at + 4).is_some_and(|b| is_blank(*b)))
            .map_or(0, |at| at + 1),
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// A document of a text that begins as a stream of JSON objects.
struct Part {
    range: Range<usize>,
    format: Format,
    /// Whether its end does not depend on what follows.
    is_whole: bool,
}

/// Returns the next part from an offset. Objects follow each other, with or without separator lines between them. After a
/// separator a document may also be YAML; that, and text that is not an object, ends at the next separator.
fn next_part(bytes: &[u8], mut at: usize) -> Option<Part> {
    let mut is_separated = false;
    loop {
        let rest = bytes.get(at..)?;
        let rest = if at == 0 { rest.strip_prefix(BOM).unwrap_or(rest) } else { rest }.trim_ascii_start();
        at = bytes.len() - rest.len();
        let end_of_line = || memchr::memchr(b'\n', rest).map_or(bytes.len(), |n| at + n + 1);
        match rest.first()? {
            b'-' if is_separator(bytes, at) => {
                is_separated = true;
                let comment = bytes[at + 3..end_of_line()].trim_ascii();
                at = if comment.is_empty() || comment[0] == b'#' { end_of_line() } else { at + 3 };
            }
            b'#' if is_separated => at = end_of_line(),
            first => {
                let is_object = *first == b'{';
                let end = if is_object { json_end(bytes, at) } else { None };
                // No object contains a separator line: an apparent one is invalid, however much of the text has been read.
                let next = memmem::find_iter(&bytes[at..end.unwrap_or(bytes.len())], b"\n---")
                    .map(|n| at + n + 1)
                    .find(|n| is_separator(bytes, *n));
                if let (Some(end), None) = (end, next) {
                    return Some(Part { range: at..end, format: Format::Json, is_whole: true });
                }
                let format = if is_separated && !is_object { Format::Yaml } else { Format::Json };
                let end = next.unwrap_or(bytes.len());
                return Some(Part { range: at..end, format, is_whole: next.is_some_and(|n| n + 3 < bytes.len()) });
            }
        }
    }
}

/// Returns whether a separator line begins here.
fn is_separator(bytes: &[u8], at: usize) -> bool {
    let begins_line = at == 0 || bytes[at - 1] == b'\n';
    begins_line && bytes[at..].starts_with(b"---") && bytes.get(at + 3).is_none_or(|b| is_blank(*b))
}

fn json_documents(text: &str, mut line: usize, offset: usize) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let mut end = 0;
    while let Some(Part { range, format, .. }) = next_part(text.as_bytes(), end) {
        line += newlines(&text.as_bytes()[end..range.start]);
        documents.push(Document { line, offset: offset + range.start, text: &text[range.clone()], format });
        line += newlines(&text.as_bytes()[range.clone()]);
        end = range.end;
    }
    documents
}

/// Returns the end of the object that begins at an offset, after optional white space; `None` if it is incomplete or not an
/// object.
fn json_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let rest = rest.strip_prefix(BOM).unwrap_or(rest).trim_ascii_start();
    let start = bytes.len() - rest.len();
    if rest.first() != Some(&b'{') {
        return None;
    }
    let (mut depth, mut at) = (0_usize, start);
    loop {
        at += memchr::memchr3(b'"', b'{', b'}', &bytes[at..])?;
        match bytes[at] {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => at = string_end(bytes, at + 1)?,
        }
        at += 1;
    }
}

/// Returns the closing quote of a string whose content begins at an offset.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn yaml_documents(text: &str, first_line: usize, offset: usize) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let (mut start, mut line) = (0, first_line);
    let mut push = |from: usize, to: usize, line: usize| {
        let document = &text[from..to];
        let has_content = |l: &str| !l.trim().is_empty() && !l.trim_start().starts_with('#');
        if document.lines().any(has_content) {
            documents.push(Document { line, offset: offset + from, text: document, format: Format::Yaml });
        }
    };
    let bytes = text.as_bytes();
    let separators =
        bytes.starts_with(b"---").then_some(0).into_iter().chain(memmem::find_iter(bytes, b"\n---").map(|at| at + 1));
    let (mut counted, mut lines) = (0, 0);
    for at in separators {
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(text.len(), |n| at + n + 1);
        let rest = &text[at + 3..end];
        if !is_separator(bytes, at) {
            continue;
        }
        push(start, at, line);
        lines += newlines(&bytes[counted..at]);
        counted = at;
        // Text after the dashes is part of the document only when it is content.
        let comment = rest.trim_start().starts_with('#') || rest.trim().is_empty();
        (start, line) = if comment { (end, first_line + lines + 1) } else { (at + 3, first_line + lines) };
    }
    push(start, text.len(), line);
    documents
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<(usize, Value)> {
        documents(text.as_bytes()).unwrap().iter().map(|d| (d.line, d.value().unwrap())).collect()
    }

    #[test]
    fn yaml_documents_know_their_lines() {
        let text = "# head\n---\na: 1\n--- # note\n\n---\nb: |\n  ---\n  text\n--- {c: 2}\n";
        assert_eq!(values(text), [(3, json!({"a": 1})), (7, json!({"b": "---\ntext\n"})), (10, json!({"c": 2}))]);
    }

    #[test]
    fn json_streams_know_their_lines() {
        let text = "{\"a\":\n1}\n{\"b\":2} {\"c\":3}\n\n{\"d\":4}\n";
        let lines: Vec<usize> = values(text).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 3, 3, 5]);
    }

    #[test]
    fn a_list_may_be_json_or_yaml() {
        let json = json!([{ "a": 1.5, "b": ["\u{1f339}"] }]);
        for text in
            [&*json.to_string(), "\n [{\"a\": 1.5, \"b\": [\"\\ud83c\\udf39\"]}]\n", "[{a: 1.5, b: [\u{1f339}]}] # x\n"]
        {
            assert_eq!(first(text.as_bytes()).unwrap(), json, "{text}");
        }
        assert_eq!(first(b"[{\"a\": 1},\n{]").unwrap_err().line, 2);
    }

    #[test]
    fn json_objects_may_be_separated_as_yaml_documents_are() {
        let text = "{\"a\": 1}\n---\n{\"b\":\n 2}\n--- # note\n# more\n\n{\"c\": 3}\n--- {\"d\": 4}\n---\ne: 5\nf: ['{']\n---\n\n{g: 6}\n---";
        let wanted = [
            (1, json!({"a": 1})),
            (3, json!({"b": 2})),
            (8, json!({"c": 3})),
            (9, json!({"d": 4})),
            (11, json!({"e": 5, "f": ["{"]})),
            (15, json!({"g": 6})),
        ];
        assert_eq!(values(text), wanted);
        assert_eq!(
            values("---\n{\n\t\"a\": [\n\t\t1]}\n---\n{\"b\": 2}\n"),
            [(2, json!({"a": [1]})), (6, json!({"b": 2}))]
        );
        assert_eq!(values("{a: b}\n"), [(1, json!({"a": "b"}))]);
        // A line of dashes separates only where it is a line.
        assert!(documents(b"{\"a\": 1} ---\n{\"b\": 2}").unwrap()[1].value().is_err());
        assert!(documents(b"{\"a\": 1}\n---x\n{\"b\": 2}").unwrap()[1].value().is_err());
    }

    #[test]
    fn parts_know_their_lines() {
        let text = "---\na:\n  - b: 1\n    c: {d: 2,\n      e: 3}\n---\n{\"f\": [\n{\"g\": 1},\n{\"h\": 2}]}\n";
        let documents = documents(text.as_bytes()).unwrap();
        let field = |name: &str| Step::Field(name.to_owned());
        let first = |path: &[Step]| documents[0].line_of(path);
        assert_eq!((first(&[]), first(&[field("a")]), first(&[field("a"), Step::Item(0), field("c")])), (2, 2, 4));
        assert_eq!(first(&[field("a"), Step::Item(0), field("c"), field("e")]), 5);
        assert_eq!(first(&[field("a"), field("x")]), 2, "the line of the parent");
        assert_eq!(documents[1].line_of(&[field("f"), Step::Item(1), field("h")]), 9);
    }

    #[test]
    fn merge_keys_and_repeated_keys() {
        let text = "base: &b {x: 1, z: 2}\nmade:\n  <<: *b\n  z: 3\n";
        assert_eq!(values(text)[0].1["made"], json!({"x": 1, "z": 3}));
        assert_eq!(values("a: 1\na: 2\n")[0].1, json!({"a": 2}));
    }

    #[test]
    fn errors_name_the_line_in_the_file() {
        let broken = documents(b"a: 1\n---\nb: [1\nc: 2\n").unwrap()[1].value().unwrap_err();
        assert!((3..=5).contains(&broken.line), "{broken}");
        let json = documents(b"{\"a\": 1}\n{\"b\": }\n{\"c\": 3} x").unwrap();
        assert_eq!(
            json.iter().map(|d| d.value().map_err(|e| e.line)).filter_map(Result::err).collect::<Vec<_>>(),
            [2, 3]
        );
        assert_eq!(json[2].value().unwrap(), json!({"c": 3}));
        assert_eq!(documents(b"a: 1\nb: \xff").unwrap_err().line, 2);
    }

    #[test]
    fn pieces_of_a_text_have_the_documents_of_the_whole() {
        let yaml = "\u{feff}# head\n---\na: |\n  ---\n---x\n--- {b: 2}\n---\n\n---\nc: é\n";
        let json = "\u{feff} {\"a\":\"}\\\"{\"}\n{\"b\":{\"c\":\"é\"}} {}\n\n{\"d\":4} [";
        let mixed = "{\"a\":1}\n---\n{\"b\":\"---\"}\n--- # é\n# x\nc: |\n ---\n d\n---\n\n---\n{\"e\":5}{}\n---\nf";
        let broken = "{\"a\":1}\n{\"b\":\n---\n2}\n{\"c\":\"\n--- \n\"}";
        for text in [yaml, json, mixed, broken] {
            let format = Format::detect(text.as_bytes()).unwrap();
            let all = documents(text.as_bytes()).unwrap();
            assert!(all.len() > 2, "{all:?}");
            for size in 1..text.len() {
                let (mut line, mut offset, mut pieces) = (1, 0, Vec::new());
                let mut end = 0;
                while offset < text.len() {
                    end = (end + size).min(text.len());
                    let piece = &text.as_bytes()[offset..end];
                    let cut = if end == text.len() { piece.len() } else { whole(piece, format) };
                    pieces.extend(documents_at(&piece[..cut], format, line, offset).unwrap());
                    line += newlines(&piece[..cut]);
                    offset += cut;
                }
                assert_eq!(pieces, all, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn documents_that_would_take_the_parser_too_long_are_rejected() {
        let refused = |text: &str| documents(text.as_bytes()).unwrap()[0].value().unwrap_err().message;
        let depth = "the document has more than 120 levels of maps and lists";
        for open in ["[", "[ \"]\", ", "[ # ]\n", "[ ']', ", "{a: "] {
            assert_eq!(refused(&format!("a: {}", open.repeat(200_000))), depth, "{open}");
        }
        let tags: String = (0..20_000).map(|n| format!("%TAG !e{n}! tag:x{n},2000:\n")).collect();
        assert_eq!(refused(&tags), "the document has more than 100 directives");
        // Many brackets that are not nested deeply are accepted, and brackets in strings are ignored.
        let many = format!("a: [{}]\nb: '{}'\n", "[1], ".repeat(20_000), "[".repeat(20_000));
        assert_eq!(values(&many)[0].1["a"].as_array().unwrap().len(), 20_000);
    }
}
