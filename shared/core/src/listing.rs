//! Joins names and counts for sentences, and wraps paragraphs.

/// Maximum number of names in [`shortened`].
const MOST: usize = 8;

/// Joins names as in `a, b and c`.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [others @ .., last] => {
            let others: Vec<&str> = others.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", others.join(", "), last.as_ref())
        }
    }
}

/// Joins names like [`listed`]; of more than eight only the first ones, as in `a, b, c, d, e, f, g, h and 3 more`.
pub fn shortened<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<S> = names.into_iter().collect();
    match names.get(..MOST) {
        Some(first) if names.len() > MOST => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {} more", first.join(", "), names.len() - MOST)
        }
        _ => listed(&names),
    }
}

/// Returns a count with its noun, as in `1 finding` or `3 findings`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Maximum length of a cause in a table that is not wide, in characters.
pub const CAUSE: usize = 80;

/// Returns a message of at most that number of characters: an explanation in parentheses is omitted, then all but the first clauses of a
/// list (`a; b; c`), then the context of the innermost cause (`a: b: c`), and at last the end. `…` marks what is omitted.
pub fn clause(text: &str, limit: usize) -> String {
    let is_short = |text: &str| text.chars().count() <= limit;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let whole = words(text);
    if is_short(&whole) {
        return whole;
    }
    let plain = words(&without_explanations(&whole));
    if is_short(&plain) {
        return plain;
    }
    let mut first = String::new();
    for clause in plain.split_inclusive("; ") {
        if !is_short(&format!("{first}{clause}…")) {
            break;
        }
        first.push_str(clause);
    }
    if !first.is_empty() {
        return format!("{first}…");
    }
    let start = plain.match_indices(": ").find(|(start, _)| is_short(&format!("…{}", &plain[*start + 1..])));
    match start {
        Some((start, _)) => format!("…{}", &plain[start + 1..]),
        None => {
            let end = whole.char_indices().nth(limit.saturating_sub(1)).map_or(whole.len(), |(end, _)| end);
            format!("{}…", whole[..end].trim_end())
        }
    }
}

/// Removes parentheses with several words. Those without a space are parts of names and calls.
fn without_explanations(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once(" (") {
        let Some((inside, tail)) = after.split_once(')') else { break };
        plain.push_str(before);
        if !inside.contains(' ') {
            plain.push_str(&format!(" ({inside})"));
        }
        rest = tail;
    }
    plain.push_str(rest);
    plain
}

/// Wraps a paragraph at that number of columns.
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, String::len);
        if last > 0 && last + 1 + word.len() > columns {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cause_becomes_one_clause() {
        let x509 = "x509: certificate signed by unknown authority (possibly because of \"crypto/rsa: verification error\" while \
                    trying to verify candidate authority certificate \"Example, Inc.\")";
        let chain = format!(
            "failed to pull image \"registry.example.com/catalog:v1\": tls: failed to verify certificate: {x509}"
        );
        let list = "requirements are not met: CustomResourceDefinition a.example.com: CRD is not present; \
                    CustomResourceDefinition b.example.com: CRD is not present";
        let sentence = "no words that separate a cause from its context occur in this long sentence of a user";
        for (text, limit, expected) in [
            ("short", 80, "short"),
            ("two\nlines", 80, "two lines"),
            (x509, 80, "x509: certificate signed by unknown authority"),
            (chain.as_str(), 80, "… failed to verify certificate: x509: certificate signed by unknown authority"),
            (list, 90, "requirements are not met: CustomResourceDefinition a.example.com: CRD is not present; …"),
            (sentence, 40, "no words that separate a cause from its…"),
            ("größer", 4, "grö…"),
        ] {
            let clause = clause(text, limit);
            assert_eq!(clause, expected);
            assert!(clause.chars().count() <= limit, "{clause}");
        }
    }

    #[test]
    fn names_are_joined_and_many_are_shortened() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        for (count, expected) in
            [(0, ""), (1, "a"), (2, "a and b"), (3, "a, b and c"), (8, "a, b, c, d, e, f, g and h")]
        {
            assert_eq!(listed(&names[..count]), expected);
            assert_eq!(shortened(&names[..count]), expected);
        }
        assert_eq!(listed(&names), "a, b, c, d, e, f, g, h and i");
        assert_eq!(shortened(names), "a, b, c, d, e, f, g, h and 1 more");
        assert_eq!([0, 1, 2].map(|n| count(n, "finding")), ["0 findings", "1 finding", "2 findings"]);
    }
}
