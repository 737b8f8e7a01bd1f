//! The update graph of a channel as text.

use std::fmt;

use super::{End, Graph, Lanes, Node, Row, Update};
use crate::visible::one_line;

/// A graph of at most this many rows is not shortened.
const READABLE: usize = 40;

/// A long run of similar rows shows this many rows at each end.
const ENDS: usize = 3;

/// Rows of text, each below the version to which OLM updates it.
#[derive(Debug)]
pub struct Text<'g, 'a> {
    /// The update graph.
    pub graph: &'g Graph<'a>,
    /// The rows.
    pub lanes: &'g Lanes,
}

impl Text<'_, '_> {
    /// Returns whether a long run of similar rows is shortened.
    pub fn is_shortened(&self) -> bool {
        self.groups().iter().any(|group| is_long(group.len()))
    }

    fn node(&self, row: &Row) -> &Node<'_> {
        &self.graph.nodes()[row.node]
    }

    /// Returns the kind of a row. Rows of one kind differ only in their names and versions.
    fn kind(&self, row: &Row) -> impl PartialEq {
        let node = self.node(row);
        let by = node.next.map(|(_, by)| by);
        let of_entry = node.entry.map(|entry| entry.deprecation.is_some());
        (row.column, row.is_top, row.above.is_some(), by, of_entry, node.skipped_by.is_some(), node.reaches_head)
    }

    /// Returns runs of consecutive rows of one kind.
    fn groups(&self) -> Vec<&[Row]> {
        let rows = &self.lanes.rows;
        if rows.len() <= READABLE {
            return rows.chunks(1).collect();
        }
        rows.chunk_by(|a, b| self.kind(a) == self.kind(b)).collect()
    }

    /// Returns the annotation of a version.
    fn label(&self, row: &Row) -> String {
        let node = self.node(row);
        let mut parts = Vec::new();
        match (node.next, row.above) {
            (Some((next, by)), above) => {
                let by = match (by, self.graph.nodes()[next].entry.and_then(|e| e.skip_range.as_deref())) {
                    (Update::Replaces, _) => "replaced".to_owned(),
                    (Update::Skips, _) => "skipped".to_owned(),
                    (Update::SkipRange, range) => format!("in skipRange {}", range.unwrap_or_default()),
                };
                parts.push(match above {
                    Some(_) => by,
                    None => format!("{by} by {}", self.graph.nodes()[next].name),
                });
            }
            (None, _) if node.name == self.graph.head() && self.graph.problem().is_none() => {
                parts.push("head".to_owned());
            }
            (None, _) if self.graph.problem().is_some() => {}
            (None, _) => {
                if let End::Stuck { because, .. } = self.graph.walk(node.point()).end {
                    parts.push(format!("no update: {because}"));
                }
            }
        }
        match (node.entry, node.skipped_by) {
            (None, _) => parts.push("not in the channel".to_owned()),
            // The update already reports that the entry is skipped.
            (Some(_), Some(by)) if node.next.is_some_and(|(_, by)| by != Update::Skips) => {
                parts.push(format!("never chosen, as {by} skips it"));
            }
            (Some(_), _) => {}
        }
        if node.entry.is_some_and(|e| e.deprecation.is_some()) {
            parts.push("deprecated".to_owned());
        }
        parts.join(", ")
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, row: &Row, width: usize) -> fmt::Result {
        let node = self.node(row);
        let dot = if node.entry.is_some() { '●' } else { '○' };
        let name = format!("{}{dot} {}", lines(row, "├─"), one_line(node.name));
        let version = node.entry.map_or("", |e| &e.version_text);
        let version = if node.name.contains(version) { String::new() } else { format!("{version}, ") };
        writeln!(f, "{}", one_line(format!("{name:width$}   {version}{}", self.label(row)).trim_end()))
    }
}

/// Renders the columns on the left of a row.
fn lines(row: &Row, joint: &str) -> String {
    match (row.column, row.is_top) {
        (0, _) => String::new(),
        (column, true) => format!("{}{joint}", "│ ".repeat(column - 1)),
        (column, false) => "│ ".repeat(column),
    }
}

fn is_long(length: usize) -> bool {
    length > 2 * ENDS + 1
}

impl fmt::Display for Text<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.lanes.rows.iter().map(|row| 2 * row.column + 2 + self.node(row).name.chars().count());
        let width = widths.max().unwrap_or_default();
        let mut stranded = false;
        for group in self.groups() {
            let strands = group.first().is_some_and(|row| !self.node(row).reaches_head);
            if strands && !stranded && self.graph.problem().is_none() {
                writeln!(f, "stranded, without a path to the head")?;
            }
            stranded |= strands;
            if !is_long(group.len()) {
                group.iter().try_for_each(|row| self.row(f, row, width))?;
                continue;
            }
            let (first, last) = (&group[..ENDS], &group[group.len() - ENDS..]);
            first.iter().try_for_each(|row| self.row(f, row, width))?;
            writeln!(f, "{}⋮ {} more", lines(&group[0], "│ "), group.len() - 2 * ENDS)?;
            last.iter().try_for_each(|row| self.row(f, row, width))?;
        }
        Ok(())
    }
}
