//! Builds HTML and SVG from untrusted text: names of elements and attributes are constants, every text and every value is escaped, and
//! every element that is opened is closed. The result is well-formed both as HTML and as XML.
//!
//! Characters that control a terminal or change the direction of writing are made visible, as in all output ([`crate::visible`]).

use std::fmt::Display;

use crate::visible;

/// An attribute: a name, and a value that is escaped.
pub type Attribute<'a> = (&'static str, &'a dyn Display);

/// A part of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup {
    text: String,
}

impl Markup {
    /// Returns a document that begins with the declaration of HTML.
    pub fn html() -> Self {
        Self { text: "<!DOCTYPE html>\n".to_owned() }
    }

    /// Adds an element.
    pub fn element(&mut self, name: &'static str, attributes: &[Attribute<'_>], content: impl FnOnce(&mut Self)) {
        self.begin(name, attributes);
        self.text.push('>');
        content(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// Adds an element with only text in it.
    pub fn leaf(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.element(name, attributes, |inner| inner.text(text));
    }

    /// Adds an element that has no content. HTML has such elements only under certain names, such as `meta`.
    pub fn void(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.begin(name, attributes);
        self.text.push_str("/>");
    }

    /// Adds text in one line.
    pub fn text(&mut self, text: &str) {
        escape(&mut self.text, &visible::one_line(text));
    }

    /// Adds text of several lines; line breaks and tabs are unchanged.
    pub fn lines(&mut self, text: &str) {
        escape(&mut self.text, &visible::lines(text));
    }

    /// Adds a line break to the source, where it has no meaning.
    pub fn newline(&mut self) {
        self.text.push('\n');
    }

    /// Adds a style sheet, which must not contain `<`, `&` or `]]>`.
    pub fn style(&mut self, sheet: &'static str) {
        self.text.push_str("<style>");
        self.text.push_str(sheet);
        self.text.push_str("</style>");
    }

    /// Adds another part.
    pub fn append(&mut self, part: &Self) {
        self.text.push_str(&part.text);
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text of the document.
    pub fn into_string(self) -> String {
        self.text
    }

    fn begin(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.text.push('<');
        self.text.push_str(name);
        for (name, value) in attributes {
            let value = value.to_string();
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(&mut self.text, &visible::one_line(&value));
            self.text.push('"');
        }
    }
}

/// Escapes text for HTML and XML, in elements and in quoted values. Characters that XML does not allow are replaced.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_values_are_inert() {
        let hostile = "</a><script>alert('1')</script>&\"\u{1b}\u{202e}\u{ffff}\n";
        let mut page = Markup::default();
        page.element("a", &[("title", &hostile), ("n", &1)], |a| {
            a.lines(hostile);
            a.text(hostile);
            a.void("br", &[]);
            a.leaf("b", &[], "c");
        });
        let inert = "&lt;/a&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;\\u{1b}\\u{202e}\u{fffd}";
        let lines = format!("{inert}\n{inert}\\u{{a}}");
        assert_eq!(page.into_string(), format!("<a title=\"{inert}\\u{{a}}\" n=\"1\">{lines}<br/><b>c</b></a>"));
    }

    #[test]
    fn parts_are_added_as_they_are() {
        let mut part = Markup::default();
        assert!(part.is_empty());
        part.leaf("i", &[], "<");
        let mut page = Markup::html();
        page.append(&part);
        page.newline();
        page.style("i{color:red}");
        assert_eq!(page.len(), "<!DOCTYPE html>\n<i>&lt;</i>\n<style>i{color:red}</style>".len());
    }
}
