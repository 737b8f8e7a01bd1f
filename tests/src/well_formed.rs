//! Whether markup is well-formed: a check that needs no browser.

use std::collections::BTreeSet;

/// Checks that elements are nested, attributes are quoted, and only known entities occur, as XML requires.
///
/// # Errors
/// What is wrong, in words.
pub fn is_well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text.strip_prefix("<!DOCTYPE html>").unwrap_or(text);
    while let Some(at) = rest.find(['<', '&', '>']) {
        let found = &rest[at..];
        if let Some(entity) = found.strip_prefix('&') {
            let (name, after) = entity.split_once(';').ok_or("an entity without an end")?;
            if !["amp", "lt", "gt", "quot", "#39"].contains(&name) {
                return Err(format!("the entity {name}"));
            }
            rest = after;
            continue;
        }
        let Some(tag) = found.strip_prefix('<') else {
            return Err(format!("a bare > before {}", &found[..30.min(found.len())]));
        };
        let (tag, after) = tag.split_once('>').ok_or("a tag without an end")?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> ends another element"));
            }
            continue;
        }
        let (tag, is_void) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if attributes.matches('"').count() % 2 != 0 || attributes.contains('<') {
            return Err(format!("the attributes {attributes}"));
        }
        if name == "style" {
            rest = rest.split_once("</style>").ok_or("a style sheet without an end")?.1;
        } else if !is_void {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("open elements: {open:?}")) }
}

/// Returns the names of the elements and of the attributes of markup, as far as its tags are well-formed.
pub fn names(text: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut elements, mut attributes) = (BTreeSet::new(), BTreeSet::new());
    for tag in text.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { continue };
        let mut words = tag.trim_end_matches('/').splitn(2, ' ');
        let name = words.next().unwrap_or_default();
        if name.starts_with(['/', '!']) {
            continue;
        }
        elements.insert(name.to_owned());
        // Outside of quotes every second part is a list of attributes.
        for part in words.next().unwrap_or_default().split('"').step_by(2) {
            attributes.extend(part.split_whitespace().map(|name| name.trim_end_matches('=').to_owned()));
        }
    }
    (elements, attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_are_found() {
        assert_eq!(is_well_formed("<!DOCTYPE html>\n<a b=\"c\">&lt;<br/></a>"), Ok(()));
        for defect in ["<a><b></a></b>", "<a>&nbsp;</a>", "<a>", "</a>", "<a b=\"c>", "a > b", "<a b=\"<\"></a>", "<"] {
            assert!(is_well_formed(defect).is_err(), "{defect}");
        }
    }

    #[test]
    fn names_of_elements_and_attributes() {
        let (elements, attributes) = names("<!DOCTYPE html><a b=\"c d=e\" f-g=\"\">h i=\"j\"<br/></a>");
        assert_eq!(elements.into_iter().collect::<Vec<_>>(), ["a", "br"]);
        assert_eq!(attributes.into_iter().collect::<Vec<_>>(), ["b", "f-g"]);
    }
}
