//! Go's way of writing things down, where OLM's messages and hashed texts depend on it: `%q` and `encoding/json`.

use std::fmt::Write;

use serde::Serialize;

/// `%q`: the text in double quotes, with Go's escapes.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            // Rust escapes what Unicode does not call printable, and so does Go.
            c if c.is_control() || c.escape_debug().len() > 1 && c != '\'' => {
                let code = u32::from(c);
                let _ = match code {
                    0..0x80 => write!(quoted, "\\x{code:02x}"),
                    0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// `json.Marshal`: compact, with `<`, `>`, `&` and the line separators escaped. Keys come in the order of the value
/// (`serde_json::Value` has them sorted, as Go's maps have). A value that JSON cannot hold gives the empty string.
pub fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_as_go_does() {
        assert_eq!(quote("a\"b\\c\n'é'\u{a0}\0\u{e0000}"), r#""a\"b\\c\n'é'\u00a0\x00\U000e0000""#);
    }

    #[test]
    fn escapes_json_as_go_does() {
        assert_eq!(json(&serde_json::json!({"b": "<&>", "a": 1})), r#"{"a":1,"b":"\u003c\u0026\u003e"}"#);
    }
}
