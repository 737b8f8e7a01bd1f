//! The positions of the parts of a document in its text, for editing a part without changing the rest.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};

/// A part of a document.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its range, in bytes. In block style what precedes the first and follows the last part of it is not included.
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// `is_plain`: without quotes and without a tag.
    Scalar { text: String, is_plain: bool },
    /// `is_flow`: in brackets, as in JSON.
    List { items: Vec<Node>, is_flow: bool },
    /// `is_flow`: in braces, as in JSON.
    Map { fields: Vec<(Node, Node)>, is_flow: bool },
    /// A reference to an anchor.
    Alias,
}

impl Node {
    /// Returns the last field with that key, case-insensitively, and its index.
    pub(crate) fn field(&self, key: &str) -> Option<(usize, &Self)> {
        let Kind::Map { fields, .. } = &self.kind else { return None };
        let found =
            fields.iter().enumerate().rfind(|(_, (k, _))| k.text().is_some_and(|k| k.eq_ignore_ascii_case(key)));
        found.map(|(number, (_, value))| (number, value))
    }

    /// Returns the last field with exactly that key: the offset of its key, and its value.
    pub(crate) fn entry(&self, key: &str) -> Option<(usize, &Self)> {
        let Kind::Map { fields, .. } = &self.kind else { return None };
        let found = fields.iter().rfind(|(k, _)| k.text() == Some(key))?;
        Some((found.0.range.start, &found.1))
    }

    /// Returns the items of a list; empty for other kinds.
    pub(crate) fn items(&self) -> &[Self] {
        if let Kind::List { items, .. } = &self.kind { items } else { &[] }
    }

    /// Returns the text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Kind::Scalar { text, .. } = &self.kind { Some(text) } else { None }
    }
}

/// Returns the parts of a YAML or JSON text that contains one document; `None` when it cannot be parsed.
pub(crate) fn outline(text: &str) -> Option<Node> {
    // JSON may be indented by tabs, YAML may not: replacing each tab by a space preserves offsets.
    let spaced = text.trim_start().starts_with('{').then(|| text.replace('\t', " "));
    let mut open: Vec<Node> = Vec::new();
    let mut keys: Vec<Option<Node>> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(spaced.as_deref().unwrap_or(text)) {
        let (event, span) = event.ok()?;
        let range = span.byte_range()?;
        let done = match event {
            Event::Scalar(value, style, _, tag) => {
                // A missing value is null, and has the range of adjacent text.
                let is_there = value != "~" || text.get(range.clone()) == Some("~");
                let range = if is_there { range } else { range.start..range.start };
                let kind =
                    Kind::Scalar { text: value.into_owned(), is_plain: style == ScalarStyle::Plain && tag.is_none() };
                Node { range, kind }
            }
            Event::Alias(_) => Node { range, kind: Kind::Alias },
            Event::SequenceStart(style, ..) => {
                let kind = Kind::List { items: Vec::new(), is_flow: style == StructureStyle::Flow };
                open.push(Node { range, kind });
                keys.push(None);
                continue;
            }
            Event::MappingStart(style, ..) => {
                let kind = Kind::Map { fields: Vec::new(), is_flow: style == StructureStyle::Flow };
                open.push(Node { range, kind });
                keys.push(None);
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                keys.pop();
                let mut node = open.pop()?;
                let parts = match &node.kind {
                    Kind::List { items, is_flow: false } => items.first().zip(items.last()),
                    Kind::Map { fields, is_flow: false } => {
                        fields.first().map(|(key, _)| key).zip(fields.last().map(|(_, value)| value))
                    }
                    _ => {
                        node.range.end = range.end;
                        None
                    }
                };
                if let Some((first, last)) = parts {
                    node.range = first.range.start..last.range.end.max(first.range.end);
                }
                node
            }
            _ => continue,
        };
        match open.last_mut().map(|node| &mut node.kind) {
            Some(Kind::List { items, .. }) => items.push(done),
            Some(Kind::Map { fields, .. }) => {
                let key = keys.last_mut()?;
                match key.take() {
                    Some(key) => fields.push((key, done)),
                    None => *key = Some(done),
                }
            }
            _ => root = root.or(Some(done)),
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_range() {
        let text = "# é\nname: c # why\nentries:\n  - name: 'a'\n    skips: [x, \"y\"]\n  # then\n  - {name: b, replaces: a}\n";
        let root = outline(text).unwrap();
        let (_, entries) = root.field("ENTRIES").unwrap();
        let at = |node: &Node| &text[node.range.clone()];
        assert_eq!(at(root.field("name").unwrap().1), "c");
        let [first, second] = entries.items() else { panic!("{entries:?}") };
        assert_eq!(at(first), "name: 'a'\n    skips: [x, \"y\"]");
        assert_eq!(at(second), "{name: b, replaces: a}");
        let (_, skips) = first.field("skips").unwrap();
        assert_eq!(skips.items().iter().map(at).collect::<Vec<_>>(), ["x", "\"y\""]);
        assert_eq!(second.field("replaces").unwrap().1.text(), Some("a"));
        assert!(outline("a: [").is_none());
        assert_eq!(outline("a:\nb: ~\n").unwrap().field("a").unwrap().1.range.len(), 0);
    }

    #[test]
    fn json_may_be_indented_by_tabs() {
        let text = "{\n\t\"name\": \"c\",\n\t\"entries\": [\n\t\t{\"name\": \"a\"}\n\t]\n}";
        let root = outline(text).unwrap();
        assert_eq!(&text[root.field("entries").unwrap().1.items()[0].range.clone()], "{\"name\": \"a\"}");
    }
}
