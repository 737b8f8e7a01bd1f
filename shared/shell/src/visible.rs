//! Makes control characters in untrusted text visible, for terminals and documents: [`olm_core::visible`], applied to
//! output.
//!
//! ```text
//!   Printer   all output, as the last step; its own colours and line breaks stay
//!   Table, sections of an explanation, findings   each field, so that none adds a line
//!   JSON, YAML   escaped by the rules of these languages, so that values stay the same
//!   log lines   each event stays one line
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use olm_core::visible::is_harmful;
pub use olm_core::visible::{lines, one_line};
use serde_json::Value;

/// The escape sequences of colours that `cli::paint` and the log write, without the escape character. All others are escaped.
const COLOURS: [&str; 15] = [
    "[0m", "[1m", "[2m", "[3m", "[31m", "[32m", "[33m", "[34m", "[35m", "[36m", "[39m", "[31;1m", "[32;1m", "[33;1m",
    "[36;1m",
];

/// Returns a text of several lines that may contain our colours.
pub fn painted(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return lines(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (n, part) in text.split('\u{1b}').enumerate() {
        let colour = COLOURS.iter().find(|colour| part.starts_with(**colour));
        match colour {
            _ if n == 0 => {}
            Some(_) => shown.push('\u{1b}'),
            None => shown.push_str(r"\u{1b}"),
        }
        shown.push_str(&lines(part));
    }
    Cow::Owned(shown)
}

/// Indents all lines of a message but the first, so that none looks like a separate message.
pub fn hanging(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (n, line) in text.trim_end_matches('\n').split('\n').enumerate() {
        if n > 0 {
            shown.push_str(if line.starts_with(' ') { "\n" } else { "\n  " });
        }
        shown.push_str(line);
    }
    shown
}

/// Returns whether a text of several lines has only harmless characters.
pub fn is_plain(text: &str) -> bool {
    !text.contains(|c| is_harmful(c) && c != '\n')
}

/// Escapes harmful characters in JSON text by the rules of JSON.
pub fn json(text: String) -> String {
    if is_plain(&text) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail, here and below.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Writes a value as YAML, with strings that have harmful characters quoted and escaped by the rules of YAML.
///
/// # Errors
/// Those of `write`, which writes a value as YAML.
pub fn yaml<E>(value: &Value, write: impl Fn(&Value) -> Result<String, E>) -> Result<String, E> {
    let text = write(value)?;
    if is_plain(&text) {
        return Ok(text);
    }
    // Replace such strings by placeholders that occur nowhere else in the value.
    let mut word = "olm-text".to_owned();
    while text.contains(&word) {
        word.push('x');
    }
    let mut texts = Vec::new();
    let mut text = write(&replaced(value, &word, &mut texts))?;
    for (n, quoted) in texts.iter().enumerate() {
        text = text.replace(&format!("{word}-{n}-"), quoted);
    }
    Ok(text)
}

/// Returns the value with placeholders for strings that have harmful characters.
fn replaced(value: &Value, word: &str, texts: &mut Vec<String>) -> Value {
    let mut stand_in = |text: &String| {
        if is_plain(text) {
            return text.clone();
        }
        texts.push(quoted(text));
        format!("{word}-{}-", texts.len() - 1)
    };
    match value {
        Value::String(text) => stand_in(text).into(),
        Value::Array(items) => items.iter().map(|item| replaced(item, word, texts)).collect(),
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().map(&mut stand_in).collect();
            keys.into_iter().zip(map.values()).map(|(key, value)| (key, replaced(value, word, texts))).collect()
        }
        other => other.clone(),
    }
}

/// Returns a double-quoted YAML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_harmful(c) => drop(write!(quoted, "\\U{:08x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A stream of log lines; each write is an event, which stays one line.
pub struct Log<W> {
    stream: W,
    is_json: bool,
}

impl<W> Log<W> {
    /// Returns a log to the stream, as text or as JSON.
    pub fn to(stream: W, is_json: bool) -> Self {
        Self { stream, is_json }
    }
}

impl<W: io::Write> io::Write for Log<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let event = String::from_utf8_lossy(bytes);
        let (line, end) = event.strip_suffix('\n').map_or((&*event, ""), |line| (line, "\n"));
        let line = if self.is_json { json(line.to_owned()) } else { painted(line).replace('\n', r"\u{a}") };
        self.stream.write_all(format!("{line}{end}").as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_known_colours_are_not_escaped() {
        assert_eq!(painted("\u{1b}[31;1mred\u{1b}[0m\n"), "\u{1b}[31;1mred\u{1b}[0m\n");
        assert_eq!(painted("\u{1b}[8mhidden\u{1b}]0;title\u{7}"), r"\u{1b}[8mhidden\u{1b}]0;title\u{7}");
    }

    #[test]
    fn lines_of_a_message_are_indented() {
        assert_eq!(hanging("a\nerror: b\n | c\n"), "a\n  error: b\n | c");
    }

    #[test]
    fn an_event_is_a_line() {
        let mut text = Vec::new();
        Log::to(&mut text, false).write_all(b"a\nWARN b\xc2\x9b\n").unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "a\\u{a}WARN b\\u{9b}\n");
        let mut text = Vec::new();
        Log::to(&mut text, true).write_all("{\"a\":\"\u{202e}\"}\n".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "{\"a\":\"\\u202e\"}\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn escaped_data_has_the_same_value(text in any::<String>(), key in any::<String>()) {
            let value = json!({ key: [text.clone()], "text": format!("a\n{text}\u{202e}") });
                let shown = json(serde_json::to_string_pretty(&value).unwrap());
            prop_assert!(is_plain(&shown), "{shown:?}");
            prop_assert_eq!(&serde_json::from_str::<Value>(&shown).unwrap(), &value);
            let shown = yaml(&value, olm_core::yaml::to_string).unwrap();
            prop_assert!(is_plain(&shown), "{shown:?}");
            prop_assert_eq!(&serde_yaml::from_str::<Value>(&shown).unwrap(), &value);
        }
    }
}
