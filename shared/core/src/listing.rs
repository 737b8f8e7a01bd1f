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
