//! Update graphs as Graphviz and Mermaid source.

use std::fmt::Write as _;

use super::{Graph, Hop, Lanes, Node, Update};

/// A drawing of update graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawing {
    /// Title of the drawing.
    pub title: String,
    /// Channels.
    pub parts: Vec<Part>,
}

/// A channel in a drawing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Title of the channel.
    pub title: String,
    /// Versions, the newest first.
    pub(super) shapes: Vec<Shape>,
    /// Updates, by indexes into `shapes`.
    pub(super) arrows: Vec<Arrow>,
}

/// A version in a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) name: String,
    /// Annotation; empty when there is none.
    pub(super) note: String,
    pub(super) look: Look,
}

/// The state of a version, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// None of the others.
    Plain,
    /// The head of the channel.
    Head,
    /// OLM never chooses it.
    Skipped,
    /// It has no path to the head.
    Stranded,
    /// The channel only mentions it.
    Absent,
}

impl Look {
    const ALL: [Self; 5] = [Self::Plain, Self::Head, Self::Skipped, Self::Stranded, Self::Absent];

    /// Returns the name of the class in drawings and pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Head => "head",
            Self::Skipped => "skipped",
            Self::Stranded => "stranded",
            Self::Absent => "absent",
        }
    }

    /// Returns the fill and line colours. Text is black, which is readable on each fill colour.
    pub(super) fn colours(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("#ffffff", "#445566"),
            Self::Head => ("#d6f5d6", "#2e7d32"),
            Self::Skipped => ("#eeeeee", "#999999"),
            Self::Stranded => ("#fddcdc", "#c62828"),
            Self::Absent => ("#ffffff", "#bbbbbb"),
        }
    }
}

/// An update in a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) by: Update,
    /// Whether OLM takes the update; otherwise it is only declared.
    pub(super) taken: bool,
}

impl Part {
    /// Draws a channel, or those of its nodes for which `is_shown` returns true.
    pub fn new(graph: &Graph<'_>, title: String, is_shown: impl Fn(&Node<'_>) -> bool) -> Self {
        let lanes = Lanes::new(graph, is_shown);
        let nodes = graph.nodes();
        let mut places = vec![None; nodes.len()];
        for (place, row) in lanes.rows.iter().enumerate() {
            places[row.node] = Some(place);
        }
        let (mut shapes, mut arrows) = (Vec::new(), Vec::new());
        for (place, row) in lanes.rows.iter().enumerate() {
            let node = &nodes[row.node];
            shapes.push(Shape { name: node.name.to_owned(), note: note(node), look: appearance(graph, node) });
            if let Some((to, by)) = node.next.and_then(|(next, by)| Some((places[next]?, by))) {
                arrows.push(Arrow { from: place, to, by, taken: true });
            }
            let Some(entry) = node.entry else { continue };
            let replaced = entry.replaces.iter().map(|name| (name, Update::Replaces));
            let declared = replaced.chain(entry.skips.iter().map(|name| (name, Update::Skips)));
            let others = declared.filter_map(|(name, by)| {
                let older = graph.places.get(name.as_str())?;
                let is_taken = nodes[*older].next.is_some_and(|(next, _)| next == row.node);
                Some(Arrow { from: places[*older]?, to: place, by, taken: false }).filter(|_| !is_taken)
            });
            arrows.extend(others);
        }
        arrows.sort();
        Self { title, shapes, arrows }
    }

    /// Draws the hops from one version, the last one on top.
    pub fn of_walk(graph: &Graph<'_>, title: String, from: &str, hops: &[Hop<'_>]) -> Self {
        let shape = |name: &str| match graph.node(name) {
            Some(node) => Shape { name: name.to_owned(), note: note(node), look: appearance(graph, node) },
            None => Shape { name: name.to_owned(), note: String::new(), look: Look::Absent },
        };
        let mut shapes: Vec<Shape> = hops.iter().rev().map(|hop| shape(&hop.to.name)).collect();
        shapes.push(shape(from));
        let arrow = |(at, hop): (usize, &Hop<'_>)| Arrow { from: at + 1, to: at, by: hop.by, taken: true };
        let arrows = hops.iter().rev().enumerate().map(arrow).collect();
        Self { title, shapes, arrows }
    }

    /// Returns the number of versions.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Returns whether the part has no versions.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }
}

pub(super) fn appearance(graph: &Graph<'_>, node: &Node<'_>) -> Look {
    match node {
        _ if !node.reaches_head => Look::Stranded,
        Node { entry: None, .. } => Look::Absent,
        Node { name, .. } if *name == graph.head() => Look::Head,
        Node { skipped_by: Some(_), .. } => Look::Skipped,
        _ => Look::Plain,
    }
}

fn note(node: &Node<'_>) -> String {
    let mut notes = Vec::new();
    match node.entry {
        None => notes.push("not in the channel".to_owned()),
        Some(entry) if !node.name.contains(&entry.version_text) => notes.push(entry.version_text.clone()),
        Some(_) => {}
    }
    if !node.reaches_head {
        notes.push(if node.next.is_none() { "no update" } else { "stranded" }.to_owned());
    }
    if node.entry.is_some_and(|e| e.deprecation.is_some()) {
        notes.push("deprecated".to_owned());
    }
    notes.join(", ")
}

impl Drawing {
    /// Returns the number of versions.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Returns whether the drawing has no versions.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(Part::is_empty)
    }

    /// Renders the drawing as Graphviz source.
    pub fn dot(&self) -> String {
        let quote =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"));
        let mut out = format!("digraph {} {{\n  rankdir=BT;\n", quote(&self.title));
        out += "  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n";
        for (n, part) in self.parts.iter().enumerate() {
            // Writing to a string does not fail, here and below.
            let _ = writeln!(out, "  subgraph cluster_{n} {{\n    label={};", quote(&part.title));
            for (b, Shape { name, note, look, .. }) in part.shapes.iter().enumerate() {
                let label = if note.is_empty() { name.clone() } else { format!("{name}\n{note}") };
                let (ground, line) = look.colours();
                let _ =
                    writeln!(out, "    c{n}_{b} [label={}, fillcolor=\"{ground}\", color=\"{line}\"];", quote(&label));
            }
            for Arrow { from, to, by, taken } in &part.arrows {
                let style = if *taken { "" } else { ", style=dashed, constraint=false" };
                let _ = writeln!(out, "    c{n}_{from} -> c{n}_{to} [label=\"{by}\"{style}];");
            }
            out += "  }\n";
        }
        out + "}\n"
    }

    /// Renders the drawing as Mermaid source.
    pub fn mermaid(&self) -> String {
        let quote = |text: &str| {
            let entity = |c: char| match c {
                '"' | '#' | '&' | '<' | '>' | '`' | '\\' => format!("#{};", u32::from(c)),
                '\n' => " ".to_owned(),
                c => c.to_string(),
            };
            format!("\"{}\"", text.chars().map(entity).collect::<String>())
        };
        let mut out = "flowchart BT\n".to_owned();
        for (n, part) in self.parts.iter().enumerate() {
            let _ = writeln!(out, "  subgraph c{n}[{}]", quote(&part.title));
            for (b, Shape { name, note, look, .. }) in part.shapes.iter().enumerate() {
                let label = if note.is_empty() { name.clone() } else { format!("{name}: {note}") };
                let _ = writeln!(out, "    c{n}_{b}[{}]:::{}", quote(&label), look.name());
            }
            for Arrow { from, to, by, taken } in &part.arrows {
                let arrow = if *taken { "-->" } else { "-.->" };
                let _ = writeln!(out, "    c{n}_{from} {arrow}|{by}| c{n}_{to}");
            }
            out += "  end\n";
        }
        for look in Look::ALL {
            let (ground, line) = look.colours();
            let _ = writeln!(out, "  classDef {} fill:{ground},stroke:{line},color:#000000", look.name());
        }
        out
    }
}
