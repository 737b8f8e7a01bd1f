//! JSON as Python's `json.dumps` writes it, because the recordings' hashes, lengths and sort orders are computed from that
//! text.

use std::fmt::Write;

use serde_json::{Number, Value};

/// How `json.dumps` was called. Keys are always sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `separators=(",", ":")`, everything outside ASCII escaped.
    Compact,
    /// The default separators `", "` and `": "`, everything outside ASCII escaped.
    Spaced,
    /// The default separators and `ensure_ascii=False`.
    Readable,
}

/// Formats the value as `json.dumps(value, sort_keys=True)` does in the given form.
pub fn dumps(value: &Value, form: Form) -> String {
    let mut out = String::new();
    write_value(&mut out, value, form);
    out
}

fn write_value(out: &mut String, value: &Value, form: Form) {
    let (comma, colon) = if form == Form::Compact { (",", ":") } else { (", ", ": ") };
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => write_string(out, s, form),
        Value::Array(list) => {
            out.push('[');
            for (n, item) in list.iter().enumerate() {
                out.push_str(if n > 0 { comma } else { "" });
                write_value(out, item, form);
            }
            out.push(']');
        }
        Value::Object(map) => {
            // Sorted here, because serde_json preserves insertion order if any dependency enables that feature.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (n, (key, item)) in entries.into_iter().enumerate() {
                out.push_str(if n > 0 { comma } else { "" });
                write_string(out, key, form);
                out.push_str(colon);
                write_value(out, item, form);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str, form: Form) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (c > '~' && form != Form::Readable) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Formats a number as Python's `repr` does: floats have a decimal point or an exponent of at least two digits.
fn number(n: &Number) -> String {
    let Some(float) = n.as_f64().filter(|_| n.is_f64()) else { return n.to_string() };
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Python uses scientific notation below 1e-4 and from 1e16 on.
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_the_same_as_python() {
        // The expected texts are the output of json.dumps with sort_keys=True in Python 3.
        let value =
            json!({"b": [1, -2, 1.0, 0.5, 1e16, 1.5e-7, 0.0001, null, true], "a": "ü \u{1f339} \u{7f} \"\\\n\t\u{1}/"});
        assert_eq!(
            dumps(&value, Form::Compact),
            r#"{"a":"\u00fc \ud83c\udf39 \u007f \"\\\n\t\u0001/","b":[1,-2,1.0,0.5,1e+16,1.5e-07,0.0001,null,true]}"#
        );
        assert_eq!(dumps(&json!({"b": [1, 2], "a": {}}), Form::Spaced), r#"{"a": {}, "b": [1, 2]}"#);
        assert_eq!(dumps(&json!("ü\u{7f}\u{1}"), Form::Readable), "\"ü\u{7f}\\u0001\"");
    }

    #[test]
    fn sorts_keys_by_code_point() {
        assert_eq!(
            dumps(&json!({"\u{10000}": 1, "\u{ffff}": 2, "Z": 3, "a": 4}), Form::Readable).chars().nth(2),
            Some('Z')
        );
        assert!(dumps(&json!({"\u{10000}": 1, "\u{ffff}": 2}), Form::Readable).starts_with("{\"\u{ffff}\""));
    }
}
