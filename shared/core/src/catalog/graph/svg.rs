//! Update graphs as an SVG image: the table of versions and channels of a [`Grid`], with the updates as lines beside the column of their
//! channel. No line crosses text: the names of versions are on the left of all columns, the names of channels above them.

use std::collections::BTreeSet;

use super::drawing::Look;
use super::grid::{Cell, Column, Grid, Link, Row};
use crate::catalog::channel::Update;
use crate::markup::Markup;

/// Pixels.
const MARGIN: f64 = 16.0;
const ROW: f64 = 22.0;
const DOT: f64 = 5.0;
const LANE: f64 = 9.0;
/// The space between the last lane of a column and the next column.
const GAP: f64 = 18.0;
/// Widths of a digit, by size of the font; of a wide font, so that text has room.
const LETTER: f64 = 7.7;
const SMALL: f64 = 6.9;
const LARGE: f64 = 10.8;
/// The width from which on the names of channels are inclined.
const WIDE: f64 = 640.0;
/// The inclination of names of channels, in degrees, its sine and its cosine.
const ANGLE: (f64, f64, f64) = (35.0, 0.574, 0.819);
/// The least width of an image: room for its legend.
const NARROWEST: f64 = 330.0;
/// How many characters of a name, and names in a tooltip, are shown.
const LONGEST: usize = 48;
const NAMED: usize = 12;

/// The style sheet of the images, for light and dark displays.
pub const STYLE: &str = "
.graph{font-family:system-ui,'Segoe UI',sans-serif;font-size:12px;background:#fff}
.graph text{fill:#1f2937}.graph .title{font-size:16px;font-weight:600}.graph .small{font-size:11px;fill:#6b7280}
.graph .bad{fill:#b91c1c}.graph .mark{fill:#b45309;font-weight:600}.graph .strong{font-weight:600}
.graph .band{fill:#f3f4f6}.graph .rail{stroke:#e5e7eb}
.graph circle{stroke-width:2}.graph .plain{fill:#fff;stroke:#475569}.graph .head{fill:#16a34a;stroke:#166534}
.graph .skipped{fill:#d1d5db;stroke:#9ca3af}.graph .stranded{fill:#ef4444;stroke:#991b1b}
.graph .absent{fill:#fff;stroke:#9ca3af;stroke-dasharray:2 2}.graph .installed{fill:none;stroke:#d97706;stroke-width:2.5}
.graph path{fill:none;stroke-width:1.7;stroke-linejoin:round}.graph polygon{stroke:none}
.graph .replaces path{stroke:#475569}.graph .replaces polygon{fill:#475569}
.graph .skips path{stroke:#7c3aed}.graph .skips polygon{fill:#7c3aed}
.graph .skipRange path{stroke:#0284c7}.graph .skipRange polygon{fill:#0284c7}
.graph .declared path{stroke:#b6bcc6;stroke-width:1.2;stroke-dasharray:3 3}.graph .declared polygon{fill:#b6bcc6}
.graph .link:hover path{stroke-width:3}
@media (prefers-color-scheme:dark){.graph{background:#111827}.graph text{fill:#e5e7eb}.graph .small{fill:#9ca3af}
.graph .bad{fill:#f87171}.graph .mark{fill:#fbbf24}.graph .band{fill:#1b2433}.graph .rail{stroke:#2b3648}
.graph .plain{fill:#111827;stroke:#cbd5e1}.graph .head{fill:#22c55e;stroke:#86efac}.graph .skipped{fill:#374151;stroke:#6b7280}
.graph .stranded{fill:#dc2626;stroke:#fca5a5}.graph .absent{fill:#111827;stroke:#6b7280}.graph .installed{stroke:#fbbf24}
.graph .replaces path{stroke:#cbd5e1}.graph .replaces polygon{fill:#cbd5e1}
.graph .skips path{stroke:#a78bfa}.graph .skips polygon{fill:#a78bfa}
.graph .skipRange path{stroke:#38bdf8}.graph .skipRange polygon{fill:#38bdf8}
.graph .declared path{stroke:#4b5563}.graph .declared polygon{fill:#4b5563}}
";

/// An image of the update graphs of packages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Title of the image; empty for an image within a page.
    pub title: String,
    /// The packages.
    pub grids: Vec<Grid>,
}

impl Picture {
    /// Renders the image as a self-contained file.
    pub fn svg(&self) -> String {
        let mut out = Markup::default();
        self.draw(true, &mut out);
        out.newline();
        out.into_string()
    }

    /// Adds the image to a page that has the style sheet [`STYLE`].
    pub fn draw_within(&self, page: &mut Markup) {
        self.draw(false, page);
    }

    fn draw(&self, is_file: bool, out: &mut Markup) {
        let frames: Vec<Frame<'_>> = self.grids.iter().map(Frame::new).collect();
        let title = if self.title.is_empty() { 0.0 } else { width(&self.title, LARGE) };
        let widest = frames.iter().map(|frame| frame.width).fold(title.max(NARROWEST), f64::max);
        let wide = (widest + 2.0 * MARGIN).ceil();
        let mut body = Markup::default();
        let mut y = MARGIN;
        if !self.title.is_empty() {
            text(&mut body, MARGIN, y + 14.0, "title", &self.title);
            y += 28.0;
        }
        y = legend(&mut body, self, y, widest);
        for frame in &frames {
            y = frame.draw(&mut body, y, wide, self.grids.len() > 1);
        }
        let high = (y + MARGIN).ceil();
        let view = format!("0 0 {wide} {high}");
        let namespace: &str = "http://www.w3.org/2000/svg";
        out.element(
            "svg",
            &[
                ("xmlns", &namespace),
                ("class", &"graph"),
                ("role", &"img"),
                ("width", &wide),
                ("height", &high),
                ("viewBox", &view),
            ],
            |svg| {
                svg.newline();
                if is_file {
                    svg.leaf("title", &[], &self.title);
                    svg.style(STYLE);
                    svg.newline();
                }
                svg.append(&body);
            },
        );
    }
}

/// The positions of a grid.
struct Frame<'g> {
    grid: &'g Grid,
    /// Where the columns begin.
    columns: Vec<f64>,
    /// Height of the names of the channels.
    header: f64,
    is_inclined: bool,
    /// Width of everything, without margins.
    width: f64,
}

impl<'g> Frame<'g> {
    fn new(grid: &'g Grid) -> Self {
        let labels = grid.rows.iter().map(|row| width(grid.label(&row.name), LETTER) + notes_width(grid, row));
        let labels = labels.chain([width(&grid.prefix, SMALL)]).fold(60.0, f64::max) + GAP;
        let gutter =
            |column: &Column| 2.0 * DOT + LANE * f64::from(u32::try_from(column.lanes).unwrap_or(u32::MAX)) + GAP;
        let upright = |column: &Column| gutter(column).max(width(&channel(column), LETTER) + GAP);
        let is_inclined = grid.columns.len() > 2 && grid.columns.iter().map(upright).sum::<f64>() > WIDE;
        let (_, sine, cosine) = ANGLE;
        let (mut columns, mut x, mut right, mut header) = (Vec::new(), MARGIN + labels, 0.0_f64, 24.0_f64);
        for column in &grid.columns {
            columns.push(x);
            let letters = width(&channel(column), LETTER);
            if is_inclined {
                header = header.max((letters * sine).ceil() + 24.0);
                right = right.max(x + (letters * cosine).ceil() + 2.0 * DOT);
                x += gutter(column).max(ROW);
            } else {
                x += upright(column);
            }
        }
        Self { grid, columns, header, is_inclined, width: right.max(x) - MARGIN }
    }

    /// Draws the grid, and returns where it ends.
    fn draw(&self, out: &mut Markup, top: f64, wide: f64, is_titled: bool) -> f64 {
        let grid = self.grid;
        let mut y = top + 8.0;
        if is_titled {
            text(out, MARGIN, y + 12.0, "strong", &shortened(&grid.package));
            y += 22.0;
        }
        let base = y + self.header - 10.0;
        if !grid.prefix.is_empty() {
            text(out, MARGIN, base, "small", &format!("{}…", shortened(&grid.prefix)));
        }
        for (column, x) in grid.columns.iter().zip(&self.columns) {
            self.name(out, column, *x, base);
        }
        y += self.header;
        let at = |row: usize| y + ROW * f64::from(u32::try_from(row).unwrap_or(u32::MAX)) + ROW / 2.0;
        let bottom = at(grid.rows.len()) - ROW / 2.0;
        for row in (0..grid.rows.len()).step_by(2) {
            let (top, wide) = (at(row) - ROW / 2.0, wide - MARGIN);
            out.void(
                "rect",
                &[("class", &"band"), ("x", &(MARGIN / 2.0)), ("y", &top), ("width", &wide), ("height", &ROW)],
            );
        }
        out.newline();
        for (column, x) in grid.columns.iter().zip(&self.columns) {
            let x = x + DOT;
            out.void("line", &[("class", &"rail"), ("x1", &x), ("x2", &x), ("y1", &(y - 4.0)), ("y2", &bottom)]);
            for link in &column.links {
                self.link(out, link, x, &at);
            }
        }
        for (place, row) in grid.rows.iter().enumerate() {
            self.row(out, row, at(place));
        }
        bottom
    }

    fn name(&self, out: &mut Markup, column: &Column, x: f64, base: f64) {
        let words = channel(column);
        let class = match column {
            Column { problem: Some(_), .. } => "strong bad",
            Column { is_default: true, .. } => "strong",
            _ => "",
        };
        let hint = match &column.problem {
            Some(problem) => format!("{}: OLM installs nothing from this channel: {problem}", column.name),
            None => column.name.clone(),
        };
        let turn = format!("rotate(-{} {} {base})", ANGLE.0, x + DOT);
        let mut attributes: Vec<crate::markup::Attribute<'_>> = vec![("class", &class), ("x", &x), ("y", &base)];
        if self.is_inclined {
            attributes.push(("transform", &turn));
        }
        out.element("text", &attributes, |name| {
            name.text(&words);
            name.leaf("title", &[], &hint);
        });
        out.newline();
    }

    fn row(&self, out: &mut Markup, row: &Row, y: f64) {
        let grid = self.grid;
        let label = shortened(grid.label(&row.name));
        let notes = grid.notes(row);
        let is_stranded = !grid.stranded_in(row).is_empty();
        text(out, MARGIN, y + 4.0, "", &label);
        let mut x = MARGIN + width(&label, LETTER) + 8.0;
        if !row.installed.is_empty() {
            let words = installed(row);
            text(out, x, y + 4.0, "mark", &words);
            x += width(&words, LETTER) + 8.0;
        }
        if !notes.is_empty() {
            text(out, x, y + 4.0, if is_stranded { "small bad" } else { "small" }, &shortened(&notes.join(", ")));
        }
        for ((cell, x), column) in row.cells.iter().zip(&self.columns).zip(&grid.columns) {
            let Some(cell) = cell else { continue };
            let x = x + DOT;
            if cell.is_installed {
                out.void("circle", &[("class", &"installed"), ("cx", &x), ("cy", &y), ("r", &(DOT + 3.5))]);
            }
            let class = cell.look.name();
            out.element("circle", &[("class", &class), ("cx", &x), ("cy", &y), ("r", &DOT)], |dot| {
                dot.leaf("title", &[], &described(row, cell, column));
            });
        }
        out.newline();
    }

    /// Draws a line from versions to the one that they are updated to. In a lane it leaves a row above its middle and arrives below it, so
    /// that lines that meet in a row do not touch.
    fn link(&self, out: &mut Markup, link: &Link, x: f64, at: &dyn Fn(usize) -> f64) {
        let Link { to, from, by, taken, lane } = link;
        let class = format!("link {by}{}", if *taken { "" } else { " declared" });
        let hint = self.tooltip(link);
        out.element("g", &[("class", &class)], |group| {
            let Some(lane) = lane else {
                let from = from.first().copied().unwrap_or(*to);
                let path = format!("M{x} {}V{}", at(from) - DOT, at(*to) + DOT);
                group.element("path", &[("d", &path)], |path| path.leaf("title", &[], &hint));
                return;
            };
            let beside = x + 2.0 * DOT + 4.0 + LANE * f64::from(u32::try_from(*lane).unwrap_or(u32::MAX));
            let target = |from: usize| if from > *to { at(*to) + 3.0 } else { at(*to) - 3.0 };
            let start = |from: usize| if from > *to { at(from) - 3.0 } else { at(from) + 3.0 };
            let (above, below): (BTreeSet<usize>, BTreeSet<usize>) = from.iter().partition(|from| *from < to);
            let mut path = String::new();
            for farthest in [above.first(), below.last()].into_iter().flatten() {
                let (y, end) = (start(*farthest), target(*farthest));
                path += &format!("M{} {y}H{beside}V{end}H{}", x + DOT, x + DOT + 5.0);
                let arrow =
                    format!("{} {end} {} {} {} {}", x + DOT, x + DOT + 6.0, end - 3.0, x + DOT + 6.0, end + 3.0);
                group.void("polygon", &[("points", &arrow)]);
            }
            for source in from.iter().filter(|from| Some(*from) != above.first() && Some(*from) != below.last()) {
                path += &format!("M{} {}H{beside}", x + DOT, start(*source));
            }
            group.element("path", &[("d", &path)], |path| path.leaf("title", &[], &hint));
        });
        out.newline();
    }

    fn tooltip(&self, link: &Link) -> String {
        let name = |row: usize| self.grid.rows.get(row).map_or("", |row| row.name.as_str());
        let mut names: Vec<&str> = link.from.iter().take(NAMED).map(|row| name(*row)).collect();
        let more = format!("{} more", link.from.len().saturating_sub(NAMED));
        if link.from.len() > NAMED {
            names.push(&more);
        }
        let verb = match link.by {
            Update::Replaces => "replaces",
            Update::Skips => "skips",
            Update::SkipRange => "covers by its skipRange",
        };
        let never = if link.taken { "" } else { " (declared, never taken)" };
        format!("{} {verb} {}{never}", name(link.to), names.join(", "))
    }
}

/// Draws the explanation of what occurs in the image, and returns where it ends.
fn legend(out: &mut Markup, picture: &Picture, top: f64, widest: f64) -> f64 {
    let rows = || picture.grids.iter().flat_map(|grid| &grid.rows);
    let cells = || rows().flat_map(|row| row.cells.iter().flatten());
    let links = || picture.grids.iter().flat_map(|grid| &grid.columns).flat_map(|column| &column.links);
    let dots = [
        (Look::Head, "head of the channel"),
        (Look::Plain, "version"),
        (Look::Skipped, "skipped: never chosen"),
        (Look::Stranded, "stranded: no path to the head"),
        (Look::Absent, "only mentioned"),
    ];
    let lines = [Update::Replaces, Update::Skips, Update::SkipRange];
    let (mut x, mut y) = (MARGIN, top);
    let mut item = |out: &mut Markup, words: &str, mark: &dyn Fn(&mut Markup, f64, f64)| {
        let long = 22.0 + width(words, SMALL) + 12.0;
        if x > MARGIN && x + long > MARGIN + widest {
            (x, y) = (MARGIN, y + 18.0);
        }
        mark(out, x, y + 8.0);
        text(out, x + 22.0, y + 12.0, "small", words);
        x += long;
    };
    for (look, words) in dots {
        if cells().any(|cell| cell.look == look) {
            item(out, words, &|out, x, y| {
                out.void("circle", &[("class", &look.name()), ("cx", &(x + 8.0)), ("cy", &y), ("r", &DOT)]);
            });
        }
    }
    if cells().any(|cell| cell.is_installed) {
        item(out, "installed", &|out, x, y| {
            out.void("circle", &[("class", &"installed"), ("cx", &(x + 8.0)), ("cy", &y), ("r", &(DOT + 1.5))]);
        });
    }
    let mut line = |out: &mut Markup, class: &str, words: &str| {
        item(out, words, &|out, x, y| {
            out.element("g", &[("class", &class)], |group| {
                group.void("path", &[("d", &format!("M{x} {y}H{}", x + 16.0))]);
            });
        });
    };
    for by in lines {
        if links().any(|link| link.taken && link.by == by) {
            line(out, &by.to_string(), &format!("update: {by}"));
        }
    }
    if links().any(|link| !link.taken) {
        let hidden: usize = picture.grids.iter().flat_map(|grid| &grid.columns).map(|column| column.hidden).sum();
        let hidden = if hidden == 0 { String::new() } else { format!("; {hidden} more are not drawn") };
        line(out, "declared", &format!("declared, never taken{hidden}"));
    }
    out.newline();
    y + 22.0
}

fn channel(column: &Column) -> String {
    let note = match column {
        Column { problem: Some(_), .. } => " (invalid)",
        Column { is_default: true, is_deprecated: true, .. } => " (default, deprecated)",
        Column { is_default: true, .. } => " (default)",
        Column { is_deprecated: true, .. } => " (deprecated)",
        _ => "",
    };
    format!("{}{note}", shortened(&column.name))
}

fn described(row: &Row, cell: &Cell, column: &Column) -> String {
    let mut words = format!("{}, channel {}", row.name, column.name);
    match (&cell.next, &cell.reason) {
        (Some((next, by)), None) => words += &format!(": updated to {next} ({by})"),
        (_, Some(reason)) => words += &format!(": {reason}"),
        (None, None) if cell.look == Look::Head => words += ": head",
        (None, None) => {}
    }
    if let Some(skipper) = &cell.skipped_by {
        words += &format!("; skipped by {skipper}");
    }
    words
}

fn installed(row: &Row) -> String {
    match &row.installed[..] {
        [one] => shortened(&format!("installed: {one}")),
        many => format!("installed {} times", many.len()),
    }
}

fn notes_width(grid: &Grid, row: &Row) -> f64 {
    let notes = shortened(&grid.notes(row).join(", "));
    let notes = if notes.is_empty() { 0.0 } else { 8.0 + width(&notes, SMALL) };
    if row.installed.is_empty() { notes } else { notes + 8.0 + width(&installed(row), LETTER) }
}

/// Returns the width of a text in a wide font, whose digits have the width `digit`. Characters outside of Latin, Greek and Cyrillic
/// writing may be twice as wide.
fn width(text: &str, digit: f64) -> f64 {
    let share = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | '(' | ')' | '[' | ']' | '-'
        | ' ' => 0.62,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.6,
        'A'..='Z' => 1.25,
        c if c < '\u{1100}' => 1.0,
        _ => 2.0,
    };
    (text.chars().take(LONGEST).map(share).sum::<f64>() * digit).ceil()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST - 1) {
        Some((end, last)) if text.len() > end + last.len_utf8() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

fn text(out: &mut Markup, x: f64, y: f64, class: &str, words: &str) {
    if class.is_empty() {
        out.leaf("text", &[("x", &x), ("y", &y)], words);
    } else {
        out.leaf("text", &[("class", &class), ("x", &x), ("y", &y)], words);
    }
}
