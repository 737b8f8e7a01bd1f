//! Escapes untrusted text for output: characters that control a terminal, change the direction of writing, or start a new line are replaced
//! by Rust escapes such as `\u{1b}`. All other characters are unchanged.

use std::borrow::Cow;

/// Reports whether a character is escaped: a control character (C0, C1), a bidirectional control, a line separator, or an invisible
/// character.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes a text for one line, including line breaks.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

/// Escapes a text of several lines; line feeds and tabs are unchanged.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_harmful(c) && !matches!(c, '\n' | '\t'))
}

/// Quotes a text as one word of a POSIX shell, so that untrusted text in printed commands is not interpreted.
pub fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", one_line(text).replace('\'', r"'\''")))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(
            word("olm.providedAPIs=Rose.v1.example.com,Tulip.v1.example.com"),
            "olm.providedAPIs=Rose.v1.example.com,Tulip.v1.example.com"
        );
        assert!(matches!(word("rose-1"), Cow::Borrowed(_)));
        assert_eq!(word("a; rm -rf $HOME"), "'a; rm -rf $HOME'");
        assert_eq!(word("a'`b`\n"), r"'a'\''`b`\u{a}'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(one_line("plain ä 日本 🌹"), "plain ä 日本 🌹");
        assert!(matches!(one_line("plain"), Cow::Borrowed(_)));
        assert_eq!(one_line("a\u{1b}]0;b\u{7}\n\tc\u{9b}"), r"a\u{1b}]0;b\u{7}\u{a}\u{9}c\u{9b}");
        assert_eq!(one_line("\u{202e}\u{2066}\u{2028}"), r"\u{202e}\u{2066}\u{2028}");
        assert_eq!(lines("a\n\tb\r\u{202e}"), "a\n\tb\\u{d}\\u{202e}");
    }
}
