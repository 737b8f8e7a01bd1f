//! The documents of a YAML or JSON text: where each begins, and each as the JSON that Go's tools would read from it.
//!
//! Kubernetes' tools cut a file at lines that begin with `---`, or read it as a stream of JSON objects when its first
//! character is `{`. A document is parsed only when [`Document::value`] is called, so a caller can keep an index of
//! documents and read few of them.

use serde::de::IgnoredAny;
use serde_json::Value;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Error {
    /// Line in the text, from 1.
    pub line: usize,
    /// What the parser says.
    pub message: String,
}

/// One document of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Line of the text on which the document's content begins, from 1.
    pub line: usize,
    /// Byte offset of `text` in the whole.
    pub offset: usize,
    /// The document.
    pub text: &'a str,
    json: bool,
}

impl Document<'_> {
    /// The document as JSON; `null` when it holds nothing but comments. Of a key given twice the last one counts.
    pub fn value(&self) -> Result<Value, Error> {
        if self.json {
            return serde_json::from_str(self.text).map_err(|e| self.json_error(&e));
        }
        // Only the untyped value resolves YAML's merge keys, and few texts have any.
        let parsed = if self.text.contains("<<") {
            serde_yaml::from_str::<serde_yaml::Value>(self.text).and_then(|mut value| {
                value.apply_merge()?;
                serde_yaml::from_value(value)
            })
        } else {
            serde_yaml::from_str(self.text)
        };
        parsed.map_err(|e| {
            let within = e.location().map_or(1, |l| l.line());
            Error { line: self.line + within - 1, message: e.to_string() }
        })
    }

    fn json_error(&self, error: &serde_json::Error) -> Error {
        Error { line: self.line + error.line().max(1) - 1, message: error.to_string() }
    }
}

/// The documents of a text, in order, without empty ones.
pub fn documents(bytes: &[u8]) -> Result<Vec<Document<'_>>, Error> {
    let text = std::str::from_utf8(bytes).map_err(|e| Error {
        line: 1 + newlines(&bytes[..e.valid_up_to()]),
        message: "the text is not UTF-8".to_owned(),
    })?;
    let body = text.trim_start_matches('\u{feff}');
    let offset = text.len() - body.len();
    if is_json(body) { json_documents(body, offset) } else { Ok(yaml_documents(body, offset)) }
}

/// The first document of a text as JSON; `null` for an empty text.
pub fn first(bytes: &[u8]) -> Result<Value, Error> {
    documents(bytes)?.first().map_or(Ok(Value::Null), Document::value)
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|b| *b == b'\n').count() - 1
}

fn json_documents(text: &str, offset: usize) -> Result<Vec<Document<'_>>, Error> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut end, mut line) = (0, 1);
    while let Some(next) = stream.next() {
        next.map_err(|e| Error { line: e.line(), message: e.to_string() })?;
        let blank = text[end..].len() - text[end..].trim_start().len();
        line += newlines(&text.as_bytes()[end..end + blank]);
        let start = end + blank;
        end = stream.byte_offset();
        documents.push(Document { line, offset: offset + start, text: &text[start..end], json: true });
        line += newlines(&text.as_bytes()[start..end]);
    }
    Ok(documents)
}

fn yaml_documents(text: &str, offset: usize) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 1, 0);
    let mut push = |from: usize, to: usize, line: usize| {
        let document = &text[from..to];
        let has_content = |l: &str| !l.trim().is_empty() && !l.trim_start().starts_with('#');
        if document.lines().any(has_content) {
            documents.push(Document { line, offset: offset + from, text: document, json: false });
        }
    };
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if let Some(rest) = line.strip_prefix("---")
            && (rest.trim().is_empty() || rest.starts_with([' ', '\t']))
        {
            push(start, at, start_line);
            // What stands behind the dashes is part of the document only when it is content.
            let comment = rest.trim_start().starts_with('#') || rest.trim().is_empty();
            (start, start_line) = if comment { (at + line.len(), index + 2) } else { (at + 3, index + 1) };
        }
        at += line.len();
    }
    push(start, text.len(), start_line);
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
    fn merge_keys_and_repeated_keys() {
        let text = "base: &b {x: 1, y: 2}\nmade:\n  <<: *b\n  y: 3\n";
        assert_eq!(values(text)[0].1["made"], json!({"x": 1, "y": 3}));
        assert_eq!(values("a: 1\na: 2\n")[0].1, json!({"a": 2}));
    }

    #[test]
    fn errors_name_the_line_in_the_file() {
        let broken = documents(b"a: 1\n---\nb: [1\nc: 2\n").unwrap()[1].value().unwrap_err();
        assert!((3..=5).contains(&broken.line), "{broken}");
        assert_eq!(documents(b"{\"a\": 1}\n{\"b\": }").unwrap_err().line, 2);
        assert_eq!(documents(b"a: 1\nb: \xff").unwrap_err().line, 2);
    }
}
