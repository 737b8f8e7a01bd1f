//! What the API server warns of: the header `Warning` (RFC 7234 §5.5), as Kubernetes writes it.

/// The code of the warnings that are for people to read.
const MISCELLANEOUS: &str = "299";

/// The texts in the value of such a header: `299 - "text" "date", 299 - "text"`. What is not written like that ends it.
pub(super) fn texts(header: &str) -> Vec<String> {
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

/// The text of a quoted string, and what follows it.
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
    use super::texts;

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
