//! Warnings of the API server: the header `Warning` (RFC 7234 §5.5), as Kubernetes writes it. Admission webhooks add warnings too.

use http::HeaderMap;
use http::header::WARNING;
use olm_core::visible::one_line;

/// The maximum number of warnings that are stored per response.
const MOST: usize = 20;

/// The maximum number of characters of a warning.
const LONGEST: usize = 512;

/// Replaces warnings about a Secret.
pub(super) const ABOUT_SECRET: &str = "there is a warning, which is not shown because it may quote the Secret";

/// The code of warnings for users.
const MISCELLANEOUS: &str = "299";

/// Returns the first warnings of a response, truncated and without control characters.
pub(super) fn given(headers: &HeaderMap, is_about_secret: bool) -> Vec<String> {
    let values = headers.get_all(WARNING).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
    let mut given = values.flat_map(texts).map(|text| shown(&text));
    if is_about_secret {
        return given.next().map(|_| ABOUT_SECRET.to_owned()).into_iter().collect();
    }
    given.take(MOST).collect()
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", one_line(&text[..end])),
        None => one_line(text).into_owned(),
    }
}

/// Returns the texts in the value of such a header: `299 - "text" "date", 299 - "text"`. Stops at a syntax error.
fn texts(header: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = header.trim_start();
    while let Some((code, after)) = rest.split_once(' ') {
        let Some((_agent, after)) = after.trim_start().split_once(' ') else { break };
        let Some((text, after)) = quoted(after.trim_start()) else { break };
        if code == MISCELLANEOUS {
            texts.push(text);
        }
        // A date may follow.
        let after = quoted(after.trim_start()).map_or(after, |(_, after)| after);
        match after.trim_start().strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => break,
        }
    }
    texts
}

/// Returns the text of a quoted string and the rest of the input.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.strip_prefix('"')?.char_indices();
    let mut unquoted = String::new();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((unquoted, &text[at + 2..])),
            '\\' => unquoted.push(characters.next()?.1),
            _ => unquoted.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_few_short_and_visible() {
        let long = "é".repeat(100_000);
        let mut headers = HeaderMap::new();
        let mut warn = |text: &[u8]| headers.append(WARNING, http::HeaderValue::from_bytes(text).unwrap());
        warn("299 - \"turn \u{202e} it\"".as_bytes());
        warn(format!("299 - \"{long}\"").as_bytes());
        warn(b"299 - \"\xff\"");
        for _ in 0..1000 {
            warn(b"299 - \"a\",299 - \"b\"");
        }
        let kept = given(&headers, false);
        assert_eq!((kept.len(), kept[0].as_str()), (MOST, r"turn \u{202e} it"));
        assert_eq!(kept[1], format!("{}…", "é".repeat(LONGEST)));
        assert_eq!(given(&headers, true), [ABOUT_SECRET]);
        assert_eq!(given(&HeaderMap::new(), true), [""; 0]);
    }

    #[test]
    fn texts_are_taken_out_of_their_quotes() {
        for (header, wanted) in [
            (r#"299 - "policy/v1beta1 is deprecated""#, &["policy/v1beta1 is deprecated"][..]),
            (r#"299 - "say \"no\", and a \\" "Sat, 25 Aug 2012 23:34:45 GMT""#, &[r#"say "no", and a \"#]),
            (r#"299 kube "a" , 299 - "b","#, &["a", "b"]),
            (r#"110 - "stale", 299 - "b""#, &["b"]),
            ("299 - \"unfinished", &[]),
            ("299 - nothing", &[]),
            ("299", &[]),
            ("", &[]),
        ] {
            assert_eq!(texts(header), wanted, "{header}");
        }
    }
}
