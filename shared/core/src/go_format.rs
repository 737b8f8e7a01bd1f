//! Go's text formats, where OLM's messages and hashed texts depend on them: `%q`, `encoding/json` and durations.

use std::fmt::Write;
use std::time::Duration;

use jiff::SignedDuration;
use memchr::{memchr3, memmem};
use serde::Serialize;

/// Formats the text as `%q` does: in double quotes, with Go's escapes.
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
            // Rust and Go both escape the characters that Unicode classifies as not printable.
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

/// Returns whether a text contains one of the characters that `json.Marshal` escapes. Most texts do not, and are long.
fn has_escaped(text: &[u8]) -> bool {
    let has = |separator: char| memmem::find(text, separator.encode_utf8(&mut [0; 4]).as_bytes()).is_some();
    memchr3(b'<', b'>', b'&', text).is_some() || has('\u{2028}') || has('\u{2029}')
}

/// Encodes as `json.Marshal` does: compact, with `<`, `>`, `&` and the line separators escaped. Keys keep the order of the
/// value (`serde_json::Value` sorts them, as Go sorts the keys of maps). Returns the empty string for a value that JSON cannot
/// represent.
pub fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if !has_escaped(text.as_bytes()) {
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

/// Parses as `time.ParseDuration` does.
///
/// # Errors
/// The text is not a duration, or out of range: the message is that of Go.
pub fn duration(text: &str) -> Result<SignedDuration, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let seconds = match &rest[..letters] {
            "" => return Err(format!("time: missing unit in duration {}", quote(text))),
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            unit => return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text))),
        };
        total += number * seconds;
        rest = &rest[letters..];
    }
    SignedDuration::try_from_secs_f64(if negative { -total } else { total }).map_err(|_| invalid())
}

/// Formats an age as `duration.HumanDuration` of Kubernetes does, which kubectl prints: `45s`, `3m20s`, `17m`, `5h30m`, `30h`, `3d4h`, `40d`, `2y300d`.
pub fn human_duration(age: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let two = |value: u64, big: u64, big_unit: &str, small: u64, small_unit: &str| match value % big / small {
        0 => format!("{}{big_unit}", value / big),
        rest => format!("{}{big_unit}{rest}{small_unit}", value / big),
    };
    match age.as_secs() {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s, MINUTE, "m", 1, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s, HOUR, "h", MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s, DAY, "d", HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s, YEAR, "y", DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
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
        for c in "<>&\u{2028}\u{2029}".chars() {
            assert_eq!(json(&format!("é{c}")), format!("\"é\\u{:04x}\"", u32::from(c)));
        }
        assert_eq!(json(&"é\u{2027}\u{202a}"), "\"é\u{2027}\u{202a}\"");
    }

    #[test]
    fn durations_are_gos() {
        for (text, seconds) in
            [("30m", 1800.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("0", 0.0), ("-5s", -5.0), ("2ms", 0.002)]
        {
            assert_eq!(duration(text), Ok(SignedDuration::try_from_secs_f64(seconds).unwrap()), "{text}");
        }
        for (text, error) in [
            ("", "time: invalid duration \"\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("soon", "time: invalid duration \"soon\""),
        ] {
            assert_eq!(duration(text), Err(error.to_owned()), "{text}");
        }
    }
}
