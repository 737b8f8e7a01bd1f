//! Edits the text of one document in place. Everything that does not change keeps its formatting.
//!
//! *Guarantee.* The edited text is parsed again, and is rejected unless it has the intended content and nothing else
//! changed.

use std::ops::Range;

use serde_json::{Value, json};

use crate::yaml::outline::{Kind, Node, outline};
use crate::yaml::{self, Document, Format};

/// A change of an `olm.channel` or `olm.package` blob.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    /// Adds an entry with its name and edges.
    Entry(Value),
    /// Makes the first entry replace the second one.
    Replaces(String, String),
    /// Makes the first entry skip the second one.
    Skip(String, String),
    /// Sets the default channel.
    DefaultChannel(String),
}

/// Applies the edits to a document. Returns `None` when the form of the text does not allow an edit in place.
pub(super) fn edited(text: &str, format: Format, edits: &[Edit]) -> Option<String> {
    let value = |text: &str| Document { line: 1, offset: 0, text, format }.value().ok();
    let (mut expected, mut changed) = (value(text)?, text.to_owned());
    for edit in edits {
        edit.value(&mut expected)?;
        let (at, new) = edit.text(&changed, format == Format::Json)?;
        let new = if text.contains("\r\n") { new.replace('\n', "\r\n") } else { new };
        changed.replace_range(at, &new);
    }
    (value(&changed)? == expected).then_some(changed)
}

type Replacement = (Range<usize>, String);

impl Edit {
    /// Applies the edit to the parsed blob.
    fn value(&self, blob: &mut Value) -> Option<()> {
        match self {
            Self::DefaultChannel(name) => match field(blob, "defaultChannel") {
                Some(value) => *value = name.as_str().into(),
                None => blob["defaultChannel"] = name.as_str().into(),
            },
            Self::Entry(entry) => field(blob, "entries")?.as_array_mut()?.push(entry.clone()),
            Self::Replaces(name, replaced) => {
                let entry = entry(blob, name)?;
                match field(entry, "replaces") {
                    Some(value) => *value = replaced.as_str().into(),
                    None => entry["replaces"] = replaced.as_str().into(),
                }
            }
            Self::Skip(name, skipped) => {
                let entry = entry(blob, name)?;
                match field(entry, "skips") {
                    Some(skips) => skips.as_array_mut()?.push(skipped.as_str().into()),
                    None => entry["skips"] = json!([skipped]),
                }
            }
        }
        Some(())
    }

    /// Returns the replacement of a part of the text.
    fn text(&self, text: &str, is_json: bool) -> Option<Replacement> {
        let root = outline(text)?;
        let writer = Writer { text, is_json };
        let entry = |name: &str| {
            let mut entries = root.field("entries")?.1.items().iter();
            entries.rfind(|e| e.field("name").is_some_and(|(_, n)| n.text() == Some(name)))
        };
        let set = |node: &Node, key: &str, value: Value| {
            let (after, _) = node.field("name")?;
            writer.insert(node, after, key, &value)
        };
        match self {
            Self::DefaultChannel(name) => match root.field("defaultChannel") {
                Some((_, value)) => writer.replace(value, name),
                None => set(&root, "defaultChannel", name.as_str().into()),
            },
            Self::Entry(entry) => writer.append(root.field("entries")?.1, entry),
            Self::Replaces(name, replaced) => match entry(name)?.field("replaces") {
                Some((_, value)) => writer.replace(value, replaced),
                None => set(entry(name)?, "replaces", replaced.as_str().into()),
            },
            Self::Skip(name, skipped) => match entry(name)?.field("skips") {
                Some((_, skips)) => writer.append(skips, &skipped.as_str().into()),
                None => set(entry(name)?, "skips", json!([skipped])),
            },
        }
    }
}

fn field<'a>(object: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    object.as_object_mut()?.iter_mut().find(|(k, _)| k.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

fn entry<'a>(blob: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    let entries = field(blob, "entries")?.as_array_mut()?;
    let at = entries.iter_mut().rposition(|e| field(e, "name").is_some_and(|n| n == name))?;
    entries.get_mut(at)
}

/// Writes new parts in the style of their siblings.
struct Writer<'a> {
    text: &'a str,
    is_json: bool,
}

impl Writer<'_> {
    /// Replaces a scalar.
    fn replace(&self, node: &Node, new: &str) -> Option<Replacement> {
        let Kind::Scalar { is_plain, .. } = node.kind else { return None };
        let value = new.into();
        let new = if is_plain && !self.is_json { plain(&value, false)? } else { json_text(&value)? };
        if node.range.is_empty() {
            // A missing value is written after the colon.
            let (before, behind) = self.text.split_at(node.range.start);
            let at = match behind.trim_start().strip_prefix(':') {
                Some(rest) => self.text.len() - rest.len(),
                None => before.trim_end().len(),
            };
            return Some((at..at, format!(" {new}")));
        }
        Some((node.range.clone(), new))
    }

    /// Adds an item to a list.
    fn append(&self, list: &Node, value: &Value) -> Option<Replacement> {
        let Kind::List { items, is_flow } = &list.kind else { return None };
        let Some(last) = items.last() else {
            return is_flow.then(|| Some((list.range.clone(), format!("[{}]", inline(value, self.is_json)?))))?;
        };
        if !is_flow {
            return self.append_block(last, value);
        }
        let quotes = self.is_json || self.text[last.range.clone()].contains('"');
        let indent = self.indent(last.range.start);
        let written = match (indent, self.unit(last)) {
            (Some(indent), Some(unit)) => pretty(value, indent, &unit)?,
            _ => inline(value, quotes)?,
        };
        let between = items.len().checked_sub(2).map(|at| &self.text[items[at].range.end..last.range.start]);
        let space = if between == Some(",") { "" } else { " " };
        Some(self.behind(last.range.end, indent, space, &written))
    }

    /// Adds an item to a block sequence.
    fn append_block(&self, last: &Node, value: &Value) -> Option<Replacement> {
        let line = self.line_start(last.range.start);
        let before = self.text[line..last.range.start].trim_end();
        let indent = before.strip_suffix('-').filter(|i| i.trim().is_empty())?;
        let gap = last.range.start - line - before.len();
        let is_flow = matches!(&last.kind, Kind::Map { is_flow: true, .. });
        let written = if is_flow || !value.is_object() {
            let quotes = self.text[last.range.clone()].contains('"');
            inline(value, quotes)?
        } else {
            let lines = yaml::to_string(value).ok()?;
            let inner = format!("\n{indent} {}", " ".repeat(gap));
            lines.trim_end().lines().collect::<Vec<_>>().join(&inner)
        };
        let mut end = self.line_end(self.trimmed_end(last));
        // Comments that are indented deeper than the dash belong to the item.
        while let Some(next) = self.text.get(end + 1..).map(|rest| rest.lines().next().unwrap_or_default()) {
            let depth = next.len() - next.trim_start().len();
            if !next.trim_start().starts_with('#') || depth <= indent.len() {
                break;
            }
            end = self.line_end(end + 1);
        }
        let end = if self.text[..end].ends_with('\r') { end - 1 } else { end };
        Some((end..end, format!("\n{indent}-{}{written}", " ".repeat(gap))))
    }

    /// Adds a field to an object, after another field.
    fn insert(&self, object: &Node, after: usize, key: &str, value: &Value) -> Option<Replacement> {
        let Kind::Map { fields, is_flow } = &object.kind else { return None };
        let (known, before) = fields.get(after)?;
        if !is_flow {
            let column = known.range.start - self.line_start(known.range.start);
            let indent = " ".repeat(column);
            let mut end = self.line_end(self.trimmed_end(before));
            if self.text[..end].ends_with('\r') {
                end -= 1;
            }
            let lines = yaml::to_string(&json!({ (key): value })).ok()?;
            return Some((end..end, lines.trim_end().lines().map(|line| format!("\n{indent}{line}")).collect()));
        }
        let quotes = self.is_json || self.text[known.range.clone()].starts_with('"');
        let key = if quotes { json_text(&key.into())? } else { key.to_owned() };
        let indent = self.indent(known.range.start);
        Some(self.behind(before.range.end, indent, " ", &format!("{key}: {}", inline(value, quotes)?)))
    }

    /// Adds a part after another one in a flow collection: on its own line if the other one has its own line.
    fn behind(&self, end: usize, indent: Option<&str>, space: &str, written: &str) -> Replacement {
        let line_end = self.line_end(end);
        let rest = &self.text[end..line_end];
        let (comma, rest) = match rest.trim_start().strip_prefix(',') {
            Some(rest) => (true, rest.trim()),
            None => (false, rest.trim()),
        };
        match indent {
            Some(indent) if rest.is_empty() || rest.starts_with('#') => {
                let same = self.text[end..line_end].trim_end();
                let new =
                    if comma { format!("{same}\n{indent}{written},") } else { format!(",{same}\n{indent}{written}") };
                (end..end + same.len(), new)
            }
            Some(indent) => (end..end, format!(",\n{indent}{written}")),
            None => (end..end, format!(",{space}{written}")),
        }
    }

    /// Returns the indentation of an object's fields relative to the object, in spaces, if each field has its own line.
    fn unit(&self, object: &Node) -> Option<String> {
        let Kind::Map { fields, is_flow: true } = &object.kind else { return None };
        let outer = self.indent(object.range.start)?;
        let inner = self.indent(fields.first()?.0.range.start)?;
        inner.strip_prefix(outer).map(str::to_owned)
    }

    /// Returns the indentation of a part that begins its line.
    fn indent(&self, start: usize) -> Option<&str> {
        let before = &self.text[self.line_start(start)..start];
        before.trim().is_empty().then_some(before)
    }

    fn trimmed_end(&self, node: &Node) -> usize {
        node.range.start + self.text[node.range.clone()].trim_end().len()
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |n| n + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |n| at + n)
    }
}

/// Renders a value in flow style, on one line.
fn inline(value: &Value, quotes: bool) -> Option<String> {
    Some(match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let key = if quotes { json_text(&key.as_str().into())? } else { key.clone() };
                Some(format!("{key}: {}", inline(value, quotes)?))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|i| inline(i, quotes)).collect::<Option<Vec<_>>>()?.join(", "))
        }
        scalar if quotes => json_text(scalar)?,
        scalar => plain(scalar, true)?,
    })
}

/// Renders a value as JSON, one line for each part.
fn pretty(value: &Value, indent: &str, unit: &str) -> Option<String> {
    let inner = format!("{indent}{unit}");
    let parts: Vec<String> = match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                Some(format!("{}: {}", json_text(&key.as_str().into())?, pretty(value, &inner, unit)?))
            };
            fields.iter().map(field).collect::<Option<_>>()?
        }
        Value::Array(items) => items.iter().map(|item| pretty(item, &inner, unit)).collect::<Option<_>>()?,
        scalar => return json_text(scalar),
    };
    let [open, close] = if value.is_object() { ["{", "}"] } else { ["[", "]"] };
    Some(format!("{open}\n{inner}{}\n{indent}{close}", parts.join(&format!(",\n{inner}"))))
}

/// Renders a scalar as YAML, quoted where needed.
fn plain(value: &Value, in_flow: bool) -> Option<String> {
    let text = yaml::to_string(value).ok()?;
    let text = text.trim_end();
    if text.contains('\n') || in_flow && text.contains([',', '[', ']', '{', '}']) {
        return json_text(value);
    }
    Some(text.to_owned())
}

fn json_text(value: &Value) -> Option<String> {
    serde_json::to_string(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_entry() -> Edit {
        Edit::Entry(json!({"name": "c", "replaces": "b", "skips": ["a"]}))
    }

    fn check(before: &str, edits: &[Edit], after: &str) {
        let format = Format::detect(before.as_bytes()).unwrap();
        let changed = edited(before, format, edits);
        assert_eq!(changed.as_deref(), Some(after), "of\n{before}");
        let lines = |text: &str| text.replace('\n', "\r\n");
        assert_eq!(edited(&lines(before), format, edits), Some(lines(after)));
    }

    #[test]
    fn an_entry_is_written_as_those_before_it() {
        check(
            "# top\nentries: # all\n- name: a # the first\n- name: b\n  replaces: a # why\n  # of b\n# end\nschema: x\n",
            &[new_entry()],
            "# top\nentries: # all\n- name: a # the first\n- name: b\n  replaces: a # why\n  # of b\n\
             - name: c\n  replaces: b\n  skips:\n  - a\n# end\nschema: x\n",
        );
        check(
            "entries:\n    -   name: b\n",
            &[new_entry()],
            "entries:\n    -   name: b\n    -   name: c\n        replaces: b\n        skips:\n        - a\n",
        );
        check(
            "entries:\n  - {name: b} # x",
            &[new_entry()],
            "entries:\n  - {name: b} # x\n  - {name: c, replaces: b, skips: [a]}",
        );
        check(
            "# x\n{entries: [{name: b}], name: x}\n",
            &[new_entry()],
            "# x\n{entries: [{name: b}, {name: c, replaces: b, skips: [a]}], name: x}\n",
        );
        check(
            "entries: [\n  {name: a}, # first\n  {name: b} # second\n]\n",
            &[new_entry()],
            "entries: [\n  {name: a}, # first\n  {name: b}, # second\n  {name: c, replaces: b, skips: [a]}\n]\n",
        );
        check(
            "{\"entries\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
            &[new_entry()],
            "{\"entries\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\": \"c\", \"replaces\": \"b\", \"skips\": [\"a\"]}]}",
        );
        check(
            "{\n  \"entries\": [\n    {\n      \"name\": \"b\"\n    }\n  ]\n}",
            &[new_entry()],
            "{\n  \"entries\": [\n    {\n      \"name\": \"b\"\n    },\n    {\n      \"name\": \"c\",\n      \"replaces\": \"b\",\n      \
             \"skips\": [\n        \"a\"\n      ]\n    }\n  ]\n}",
        );
    }

    #[test]
    fn edges_are_changed_in_place() {
        let moved = [
            Edit::Replaces("b".into(), "c".into()),
            Edit::Skip("b".into(), "x".into()),
            Edit::Skip("b".into(), "y".into()),
        ];
        check(
            "entries:\n- name: b # head\n  skipRange: '<1.0.0'\n- name: a\n",
            &moved,
            "entries:\n- name: b # head\n  skips:\n  - x\n  - 'y'\n  replaces: c\n  skipRange: '<1.0.0'\n- name: a\n",
        );
        check(
            "entries:\n- replaces: 'a' # old\n  name: b\n  skips: [z]\n",
            &moved,
            "entries:\n- replaces: \"c\" # old\n  name: b\n  skips: [z, x, 'y']\n",
        );
        check(
            "{\n  \"entries\": [\n    {\n      \"name\": \"b\",\n      \"skips\": [\n        \"z\"\n      ]\n    }\n  ]\n}",
            &moved[..2],
            "{\n  \"entries\": [\n    {\n      \"name\": \"b\",\n      \"replaces\": \"c\",\n      \"skips\": [\n        \"z\",\n        \"x\"\n      ]\n    }\n  ]\n}",
        );
        check("entries: [{name: b}]", &moved[..1], "entries: [{name: b, replaces: c}]");
        check("entries:\n- name: b\n  replaces:\n", &moved[..1], "entries:\n- name: b\n  replaces: c\n");
        let channel = [Edit::DefaultChannel("fast".into())];
        check("name: p\ndefaultChannel: slow # for now\n", &channel, "name: p\ndefaultChannel: fast # for now\n");
        check("# x\n{name: p}", &channel, "# x\n{name: p, defaultChannel: fast}");
    }

    #[test]
    fn what_cannot_be_changed_in_place_is_refused() {
        for text in ["entries: &e\n- name: b\nmore: *e\n", "a: 1\n", "entries: !x [", "entries:\n- - name: b\n"] {
            assert_eq!(edited(text, Format::Yaml, &[Edit::Replaces("b".into(), "c".into())]), None, "{text}");
        }
        assert_eq!(edited("entries:\n- &b\n  name: b\n", Format::Yaml, &[new_entry()]), None);
    }
}
