//! Parses a registry's challenge: the header `WWW-Authenticate` of the distribution protocol.

/// Longest challenge that is parsed, in bytes.
const LONGEST: usize = 4096;

/// A token service that issues tokens for the registry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bearer {
    pub(super) realm: String,
    pub(super) service: Option<String>,
}

impl Bearer {
    /// Returns the token service that a header names.
    pub(super) fn from_header(header: &str) -> Option<Self> {
        if header.len() > LONGEST {
            return None;
        }
        let at = words(header).position(|word| word.eq_ignore_ascii_case("bearer"))?;
        let (start, _) = offsets(header).nth(at)?;
        let mut rest = header[start..].trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let (mut realm, mut service) = (None, None);
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let Some((key, behind)) = rest.split_once('=') else { break };
            // A key that contains a space begins with the next scheme.
            let key = key.trim();
            if key.contains([' ', '\t', '"']) {
                break;
            }
            let (value, behind) = value(behind.trim_start())?;
            match key.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                _ => {}
            }
            rest = behind;
        }
        Some(Self { realm: realm?, service })
    }
}

/// Returns the words of a header outside of quotes, with their offsets.
fn offsets(header: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_quoted = false;
    let is_end = move |c: char| {
        if c == '"' {
            is_quoted = !is_quoted;
        }
        !is_quoted && matches!(c, ' ' | ',' | '\t')
    };
    header.split(is_end).map(move |word| (word.as_ptr() as usize - header.as_ptr() as usize, word))
}

fn words(header: &str) -> impl Iterator<Item = &str> {
    offsets(header).map(|(_, word)| word)
}

/// Returns a quoted or unquoted value, and the rest of the text after it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(characters.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn token_services_are_found() {
        let service = |realm: &str, service: Option<&str>| {
            Some(Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) })
        };
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.example.com/token",service="registry.example.com",scope="repository:a:pull""#,
                service("https://auth.example.com/token", Some("registry.example.com")),
            ),
            (r#"bearer  realm = "https://a/\"t", error=invalid_token"#, service("https://a/\"t", None)),
            (r#"Basic realm="Bearer x", Bearer realm="https://a/t""#, service("https://a/t", None)),
            (r#"Bearer realm="https://a/t", Basic realm="b""#, service("https://a/t", None)),
            ("Bearer realm=https://a/t,service=s", service("https://a/t", Some("s"))),
            (r#"Basic realm="garden""#, None),
            (r#"Bearer realm="https://a"#, None),
            (r#"Bearer service="s""#, None),
            ("Bearer", None),
            ("", None),
        ] {
            assert_eq!(Bearer::from_header(header), expected, "{header}");
        }
        assert_eq!(Bearer::from_header(&format!("Bearer realm=\"{}\"", "a".repeat(LONGEST))), None);
    }
    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_header_is_accepted_or_refused(header in "\\PC{0,20}|([Bb]earer|Basic|realm|service|scope|[=\"\\\\, \t]|é|x){0,16}") {
            let found = Bearer::from_header(&header);
            prop_assert!(found.as_ref().is_none_or(|found| found.realm.len() <= header.len()), "{:?}", found);
        }

        #[test]
        fn quoted_values_are_parsed(
            realm in "[a-z:/.=, \"\\\\é]{1,12}",
            service in proptest::option::of("[a-z., ]{1,8}"),
            scheme in "(Basic realm=\"x\", )?",
            gap in "[ \t]{1,2}",
        ) {
            let quote = |text: &str| format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
            let more = service.as_deref().map(|service| format!(",service={}", quote(service))).unwrap_or_default();
            let header = format!("{scheme}Bearer{gap}realm={}{more},scope=\"a:b\"", quote(&realm));
            prop_assert_eq!(Bearer::from_header(&header), Some(Bearer { realm, service }), "{}", header);
        }
    }
}
