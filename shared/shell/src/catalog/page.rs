//! Update graphs and differences of catalogs as pages: versions as rows, channels as columns, reasons beside them.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::catalog::diff::{Change, ChannelChange, Diff, EntryChange, Field, PackageChange, Stranded};
use olm_core::catalog::graph::{Cell, Column, Grid, GridRow, Look, Picture, STYLE};
use olm_core::markup::Markup;

use crate::cli::page::{self, bounded, facts, left_out, page, phrase, span};
use crate::cli::paint::Tone;

/// How many versions a table of differences shows in full. A longer one leaves out those that neither differ nor are installed, unless
/// they are heads.
const SHOWN: usize = 20;

/// How many channels a table of differences shows in full.
const COLUMNS: usize = 3;

/// Returns the page of the update graphs of packages, each with a note about what is left out.
pub(super) fn graphs(title: &str, grids: &[Grid], note: &str) -> String {
    page(title, &[STYLE], |body| {
        span(body, "h1", "", title);
        body.newline();
        if !note.is_empty() {
            span(body, "p", "soft", note);
        }
        let rest = bounded(body, grids, |body, grid| {
            if grids.len() > 1 {
                span(body, "h2", "", &format!("Package {}", grid.package));
            }
            numbers(body, grid);
            problems(body, grid);
            body.element("div", &[("class", &"pair")], |pair| {
                picture(pair, grid);
                table(pair, grid, &Marks::default());
            });
        });
        left_out(body, rest, "packages");
    })
}

/// A package that differs: with the table of its versions, if the new catalog contains it.
pub(super) struct Changed<'d> {
    pub(super) change: &'d PackageChange,
    /// The versions of the new catalog, and those that only the old one contains.
    pub(super) grid: Option<Grid>,
}

/// Returns the page of the differences between two catalogs.
pub(super) fn diff(title: &str, summary: &str, diff: &Diff, packages: &[Changed<'_>]) -> String {
    page(title, &[STYLE], |body| {
        span(body, "h1", "", title);
        let tone = if diff.stranded.is_empty() { "banner good" } else { "banner bad" };
        body.element("div", &[("class", &tone)], |banner| {
            let verdict = match diff.stranded.len() {
                0 => "No version loses its update path.".to_owned(),
                1 => "1 version would be stranded: it loses its update path to the head.".to_owned(),
                n => format!("{n} versions would be stranded: they lose their update path to the head."),
            };
            span(banner, "p", "", &verdict);
            span(banner, "p", "soft", summary);
        });
        body.newline();
        stranded(body, &diff.stranded);
        if packages.is_empty() {
            span(body, "p", "", "The catalogs are equal.");
        } else {
            span(body, "h2", "", "Packages");
        }
        let rest = bounded(body, packages, |body, changed| one_package(body, changed, &diff.stranded));
        left_out(body, rest, "packages");
    })
}

fn stranded(body: &mut Markup, stranded: &[Stranded]) {
    if stranded.is_empty() {
        return;
    }
    let has_subscriptions = stranded.iter().any(|one| one.subscription.is_some());
    span(body, "h2", "bad", "Stranded versions");
    let subscription = has_subscriptions.then_some("Subscription");
    let titles = ["Version", "Package", "Channel"].into_iter().chain(subscription).chain(["Why", "Alternative"]);
    page::table(body, titles, stranded, "stranded versions", |row, one| {
        span(row, "td", "name bad", &one.name);
        span(row, "td", "", &one.package);
        span(row, "td", "", &one.channel);
        if has_subscriptions {
            let of = one.subscription.as_ref().map(|s| format!("{}/{}", s.namespace, s.name));
            span(row, "td", "name mark", &of.unwrap_or_default());
        }
        span(row, "td", "wide", &one.reason);
        let others = one.alternative_channels.join(" or ");
        span(row, "td", "", &if others.is_empty() { "none".to_owned() } else { format!("channel {others}") });
    });
}

fn one_package(body: &mut Markup, changed: &Changed<'_>, stranded: &[Stranded]) {
    let PackageChange { name, change, fields, channels, bundles } = changed.change;
    let is_stranded = stranded.iter().any(|one| one.package == *name);
    let card = |body: &mut Markup, content: &dyn Fn(&mut Markup)| {
        let inner = |details: &mut Markup| {
            details.element("summary", &[], |summary| {
                let (sign, class) = sign(*change);
                span(summary, "span", class, sign);
                phrase(summary, &format!(" {name} "));
                let counts = format!("{}, {}", counted(channels.len(), "channel"), counted(bundles.len(), "bundle"));
                let does = match change {
                    Change::Added => format!("added: {counts}"),
                    Change::Removed => format!("removed: {counts}"),
                    Change::Changed => format!("{counts} differ"),
                };
                span(summary, "span", "count", &does);
            });
            content(details);
        };
        if is_stranded || *change == Change::Changed {
            body.element("details", &[("class", &"card"), ("open", &"open")], inner);
        } else {
            body.element("details", &[("class", &"card")], inner);
        }
        body.newline();
    };
    card(body, &|details| {
        let removed = channels.iter().filter(|channel| channel.change == Change::Removed);
        let other = removed.map(|channel| format!("channel {} is removed", channel.name));
        let of_channels = channels.iter().filter(|channel| channel.change == Change::Changed);
        let of_channels = of_channels.flat_map(|channel| {
            channel.fields.iter().map(|field| format!("channel {}: {}", channel.name, one_field(field)))
        });
        let lines: Vec<String> = fields.iter().map(one_field).chain(other).chain(of_channels).collect();
        if !lines.is_empty() {
            page::list(details, "", &lines, "fields");
        }
        if let Some(grid) = &changed.grid {
            table(details, grid, &Marks { channels, stranded });
        }
        let lines: Vec<String> = bundles
            .iter()
            .map(|bundle| {
                let (sign, _) = sign(bundle.change);
                let fields: Vec<String> = match bundle.change {
                    Change::Changed => bundle.fields.iter().map(one_field).collect(),
                    Change::Added | Change::Removed => Vec::new(),
                };
                let colon = if fields.is_empty() { "" } else { ": " };
                format!("{sign} {}{colon}{}", bundle.name, fields.join("; "))
            })
            .collect();
        if !lines.is_empty() {
            details.element("details", &[], |inner| {
                span(inner, "summary", "", &format!("{} differ", counted(bundles.len(), "bundle")));
                page::list(inner, "", &lines, "bundles");
            });
        }
    });
}

/// What a difference of catalogs adds to a table of versions.
#[derive(Clone, Copy, Default)]
struct Marks<'d> {
    channels: &'d [ChannelChange],
    stranded: &'d [Stranded],
}

impl Marks<'_> {
    fn entry(&self, channel: &str, name: &str) -> Option<&EntryChange> {
        let channel = self.channels.iter().find(|changed| changed.name == channel)?;
        channel.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns whether the row belongs to the difference.
    fn is_worth(&self, grid: &Grid, row: &GridRow) -> bool {
        let is_head = row.cells.iter().flatten().any(|cell| cell.look == Look::Head);
        is_head
            || !row.installed.is_empty()
            || self.stranded.iter().any(|one| one.package == grid.package && one.name == row.name)
            || self.channels.iter().any(|channel| channel.entries.iter().any(|entry| entry.name == row.name))
    }
}

fn numbers(body: &mut Markup, grid: &Grid) {
    let stranded = grid.rows.iter().filter(|row| !grid.stranded_in(row).is_empty()).count();
    let installed = grid.rows.iter().filter(|row| !row.installed.is_empty()).count();
    let mut numbers = vec![
        (grid.len().to_string(), if grid.len() == 1 { "version" } else { "versions" }, Tone::Plain),
        (grid.columns.len().to_string(), if grid.columns.len() == 1 { "channel" } else { "channels" }, Tone::Plain),
        (
            stranded.to_string(),
            "without a path to the head of a channel",
            if stranded == 0 { Tone::Good } else { Tone::Bad },
        ),
    ];
    if installed > 0 {
        numbers.push((installed.to_string(), "installed", Tone::Doubtful));
    }
    facts(body, &numbers);
}

fn problems(body: &mut Markup, grid: &Grid) {
    for Column { name, problem, .. } in &grid.columns {
        if let Some(problem) = problem {
            body.element("div", &[("class", &"banner bad")], |banner| {
                span(banner, "p", "", &format!("OLM installs nothing from channel {name}: {problem}"));
            });
        }
    }
}

fn picture(body: &mut Markup, grid: &Grid) {
    body.element("div", &[("class", &"scroll")], |scroll| {
        Picture { title: String::new(), grids: vec![grid.clone()] }.draw_within(scroll);
    });
    body.newline();
}

/// Adds the table of versions and channels.
fn table(body: &mut Markup, grid: &Grid, marks: &Marks<'_>) {
    let is_short = grid.len() <= SHOWN || marks.channels.is_empty();
    let rows: Vec<&GridRow> = grid.rows.iter().filter(|row| is_short || marks.is_worth(grid, row)).collect();
    // Of a difference also the channels that do not belong to it.
    let is_worth = |place: &usize| {
        let cells = || rows.iter().filter_map(|row| row.cells.get(*place)?.as_ref());
        marks.channels.is_empty()
            || grid.columns.len() <= COLUMNS
            || cells().any(|cell| cell.is_installed)
            || grid.columns.get(*place).is_some_and(|column| marks.channels.iter().any(|one| one.name == column.name))
    };
    let places: Vec<usize> = (0..grid.columns.len()).filter(is_worth).collect();
    let channels = places.iter().map(|place| grid.columns[*place].name.as_str());
    let noted: Vec<Markup> = rows.iter().map(|row| notes(grid, row, marks)).collect();
    let has_notes = noted.iter().any(|notes| !notes.is_empty());
    let titles = std::iter::once("Version").chain(channels).chain(has_notes.then_some("Notes"));
    let rows: Vec<(&GridRow, Markup)> = rows.into_iter().zip(noted).collect();
    page::table(body, titles, &rows, "versions", |out, (row, notes)| {
        one_row(out, grid, row, marks, &places);
        if has_notes {
            out.element("td", &[("class", &"wide")], |out| out.append(notes));
        }
    });
    let more = [(grid.len() - rows.len(), "version"), (grid.columns.len() - places.len(), "channel")];
    let more: Vec<String> = more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(*n, what)).collect();
    if !more.is_empty() {
        span(body, "p", "soft", &format!("Not shown, without a difference: {}.", more.join(", ")));
    }
}

fn one_row(out: &mut Markup, grid: &Grid, row: &GridRow, marks: &Marks<'_>, places: &[usize]) {
    out.element("td", &[("class", &"name"), ("title", &row.name)], |name| {
        phrase(name, grid.label(&row.name));
    });
    for place in places {
        let (column, cell) = (&grid.columns[*place], &row.cells[*place]);
        out.element("td", &[], |out| {
            let entry = marks.entry(&column.name, &row.name);
            if let Some(entry) = entry {
                let (sign, class) = sign(entry.change);
                span(out, "span", class, sign);
                out.text(" ");
            }
            match cell {
                Some(cell) => one_cell(out, grid, cell),
                None if entry.is_some() => span(out, "span", "gone bad", "removed"),
                None => {}
            }
        });
    }
}

fn one_cell(out: &mut Markup, grid: &Grid, cell: &Cell) {
    let next = cell.next.as_ref().map(|(name, by)| format!("→ {} ({by})", grid.label(name)));
    match (cell.look, next) {
        (Look::Head, _) => span(out, "span", "state good", "● head"),
        (Look::Stranded, Some(next)) => span(out, "span", "state bad", &format!("✗ {next}")),
        (Look::Stranded, None) => span(out, "span", "state bad", "✗ no update"),
        (Look::Skipped, Some(next)) => span(out, "span", "soft", &format!("◌ {next}")),
        (Look::Skipped, None) => span(out, "span", "soft", "◌ never chosen"),
        (Look::Absent, Some(next)) => span(out, "span", "soft", &format!("○ {next}")),
        (Look::Absent, None) => span(out, "span", "soft", "○"),
        (Look::Plain, Some(next)) => phrase(out, &format!("● {next}")),
        (Look::Plain, None) => phrase(out, "●"),
    }
}

fn notes(grid: &Grid, row: &GridRow, marks: &Marks<'_>) -> Markup {
    let mut notes = Markup::default();
    let out = &mut notes;
    let mut separator = Separator::default();
    for subscription in &row.installed {
        separator.next(out);
        span(out, "span", "mark", &format!("installed by Subscription {subscription}"));
    }
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut skippers: BTreeSet<&str> = BTreeSet::new();
    for (column, cell) in grid.columns.iter().zip(&row.cells) {
        let Some(cell) = cell else { continue };
        if let Some(reason) = cell.reason.as_deref().filter(|_| column.problem.is_none()) {
            reasons.entry(reason).or_default().push(&column.name);
        }
        skippers.extend(cell.skipped_by.as_deref());
    }
    for (reason, channels) in reasons {
        separator.next(out);
        span(out, "span", "bad", &format!("{}: {reason}", channels.join(", ")));
    }
    if !skippers.is_empty() {
        separator.next(out);
        let skippers: Vec<&str> = skippers.into_iter().map(|name| grid.label(name)).collect();
        span(out, "span", "soft", &format!("skipped by {}", skippers.join(", ")));
    }
    if row.is_deprecated {
        separator.next(out);
        span(out, "span", "doubtful", "deprecated");
    }
    if let Some(version) = &row.version {
        separator.next(out);
        span(out, "span", "soft", &format!("version {version}"));
    }
    let is_listed = row.cells.iter().any(Option::is_some);
    if !is_listed && !grid.columns.iter().any(|column| marks.entry(&column.name, &row.name).is_some()) {
        separator.next(out);
        span(out, "span", "bad", "in no channel of the new catalog");
    }
    for column in &grid.columns {
        let Some(EntryChange { change: Change::Changed, fields, .. }) = marks.entry(&column.name, &row.name) else {
            continue;
        };
        for field in fields {
            separator.next(out);
            phrase(out, &format!("{}: {}", column.name, one_field(field)));
        }
    }
    notes
}

/// Line breaks between notes.
#[derive(Default)]
struct Separator {
    is_needed: bool,
}

impl Separator {
    fn next(&mut self, out: &mut Markup) {
        if std::mem::replace(&mut self.is_needed, true) {
            out.void("br", &[]);
        }
    }
}

fn one_field(field: &Field) -> String {
    let Field { field, old, new } = field;
    match (&old[..], &new[..]) {
        ([], new) => format!("{field} + {}", new.join(", ")),
        (old, []) => format!("{field} − {}", old.join(", ")),
        (old, new) => format!("{field} {} → {}", old.join(", "), new.join(", ")),
    }
}

fn sign(change: Change) -> (&'static str, &'static str) {
    match change {
        Change::Added => ("+", "state good"),
        Change::Removed => ("−", "state bad"),
        Change::Changed => ("~", "state doubtful"),
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
