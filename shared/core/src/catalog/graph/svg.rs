//! The update graph as an SVG image: a row for each version with its name, and lines that lead upwards to the version to
//! which OLM updates it.
//!
//! Updates that OLM takes are drawn on the left of the names, in the columns of the lanes; updates that are only declared
//! are dashed arcs on the right.

use std::fmt::Write as _;

use super::drawing::{Arrow, Drawing, Look, Part, Shape};
use crate::visible::is_harmful;

/// Pixels.
const MARGIN: usize = 20;
const ROW: usize = 28;
const COLUMN: usize = 22;
const DOT: usize = 6;
/// Upper bound of the width of a letter, in pixels.
const LETTER: usize = 8;
/// Upper bound of the width of a small letter, in pixels.
const SMALL: usize = 6;
/// Widest arc of an update that is only declared, in pixels.
const ARC: usize = 160;
const TITLE: usize = 34;
const LEGEND: &str = "Updates lead upwards. Green: the head. Grey: skipped, never chosen. Red: no path to the head. \
                      Dotted: only mentioned. Dashed lines: declared, never taken.";

impl Drawing {
    /// Renders the drawing as a self-contained SVG image.
    pub fn svg(&self) -> String {
        picture(self)
    }
}

fn picture(drawing: &Drawing) -> String {
    let wide =
        MARGIN + (drawing.parts.iter().map(width).max().unwrap_or_default() + ARC).max(LEGEND.len() * SMALL) + MARGIN;
    let high = MARGIN + TITLE + ROW + drawing.parts.iter().map(height).sum::<usize>() + MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} {high}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"#ffffff\"/>\n",
        escape(&drawing.title)
    );
    let mut top = MARGIN;
    text(&mut out, MARGIN, top + 16, "font-size=\"18\" font-weight=\"bold\"", &drawing.title);
    text(&mut out, MARGIN, top + TITLE, "fill=\"#555555\" font-size=\"11\"", LEGEND);
    top += TITLE + ROW;
    for drawn in &drawing.parts {
        part(&mut out, drawn, top);
        top += height(drawn);
    }
    out + "</svg>\n"
}

fn columns(part: &Part) -> usize {
    1 + part.shapes.iter().map(|b| b.column).max().unwrap_or_default()
}

/// Returns the horizontal position at which the names begin.
fn names(part: &Part) -> usize {
    MARGIN + columns(part) * COLUMN
}

fn width(part: &Part) -> usize {
    let letters = part.shapes.iter().map(|b| label(b).chars().count()).chain([part.title.chars().count()]).max();
    columns(part) * COLUMN + letters.unwrap_or_default() * LETTER
}

fn height(part: &Part) -> usize {
    TITLE + part.shapes.len() * ROW
}

fn label(Shape { name, note, .. }: &Shape) -> String {
    if note.is_empty() { name.clone() } else { format!("{name} ({note})") }
}

fn part(out: &mut String, part: &Part, top: usize) {
    text(out, MARGIN, top + 16, "font-size=\"15\" font-weight=\"bold\"", &part.title);
    let y = |place: usize| top + TITLE + place * ROW;
    let x = |place: usize| MARGIN + DOT + part.shapes[place].column * COLUMN;
    for Arrow { from, to, by, taken } in &part.arrows {
        let (x1, y1, x2, y2) = (x(*from), y(*from), x(*to), y(*to));
        // Writing to a string does not fail, here and below.
        let _ = if *taken {
            // To the other column, then up in that column: it is free between the two rows.
            let turn = y1 - ROW / 2;
            writeln!(
                out,
                "<path d=\"M{x1} {y1} L{x2} {turn} L{x2} {y2}\" fill=\"none\" stroke=\"#445566\" stroke-width=\"2\"><title>{by}</title></path>"
            )
        } else {
            let (from, to) = (right(part, *from), right(part, *to));
            let out_to = from.max(to) + ARC.min(20 + y1.abs_diff(y2) / 3);
            writeln!(
                out,
                "<path d=\"M{from} {y1} C{out_to} {y1} {out_to} {y2} {to} {y2}\" fill=\"none\" stroke=\"#999999\" \
                 stroke-dasharray=\"4 3\"><title>{by}, not taken</title></path>"
            )
        };
    }
    for (place, drawn) in part.shapes.iter().enumerate() {
        let (ground, line) = drawn.look.colours();
        let dashes = if drawn.look == Look::Absent { " stroke-dasharray=\"2 2\"" } else { "" };
        let _ = writeln!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{DOT}\" fill=\"{ground}\" stroke=\"{line}\" stroke-width=\"2\"{dashes}/>",
            x(place),
            y(place)
        );
        text(out, names(part), y(place) + 4, "", &label(drawn));
    }
}

/// Returns the horizontal position at which a name ends.
fn right(part: &Part, place: usize) -> usize {
    names(part) + label(&part.shapes[place]).chars().count() * LETTER
}

fn text(out: &mut String, x: usize, y: usize, attributes: &str, words: &str) {
    let space = if attributes.is_empty() { "" } else { " " };
    let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\"{space}{attributes}>{}</text>", escape(words));
}

/// Escapes text for XML. Characters that XML does not allow are replaced.
fn escape(text: &str) -> String {
    let one = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&apos;".to_owned(),
        '\n' | '\t' => " ".to_owned(),
        c if is_harmful(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => "\u{fffd}".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(one).collect()
}
