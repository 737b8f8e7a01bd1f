//! Tables in kubectl's format: upper-case headers, three spaces between columns, no borders, no wrapping.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use comfy_table::presets;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Width};
use jiff::Timestamp;
use olm_core::api::metadata::Metadata;
use serde_json::Value;

use crate::visible;

/// The minimum width of columns in kubectl, including the gap of three spaces.
const MIN_WIDTH: u16 = 6;

/// The number of spaces between columns.
const GAP: u16 = 3;

/// Returns a cell with line breaks replaced by spaces, and control characters made visible.
fn harmless(cell: &str) -> Cow<'_, str> {
    if cell.contains(['\n', '\t']) {
        return Cow::Owned(visible::one_line(&cell.replace(['\n', '\t'], " ")).into_owned());
    }
    visible::one_line(cell)
}

/// A table under construction; `Display` is its text with a final newline.
#[derive(Clone, Debug)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
    is_titled: bool,
    /// The minimum widths of columns.
    widths: Vec<u16>,
}

impl Table {
    /// Returns a table with these headers, in upper case by convention.
    pub fn new(headers: impl IntoIterator<Item = &'static str>) -> Self {
        Self::with(headers.into_iter().map(str::to_owned).collect())
    }

    /// Returns a table with dynamic headers.
    pub fn with(headers: Vec<String>) -> Self {
        Self { headers, rows: Vec::new(), is_titled: true, widths: Vec::new() }
    }

    /// Adds a row. Empty cells are printed empty; callers pass `<none>` where appropriate.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the table with or without headers.
    #[must_use]
    pub fn with_headers(self, is_titled: bool) -> Self {
        Self { is_titled, ..self }
    }

    /// Returns the table with minimum widths of columns.
    #[must_use]
    pub fn at_least(self, widths: &[u16]) -> Self {
        Self { widths: widths.to_vec(), ..self }
    }

    /// Returns the widths of the columns, including gaps.
    pub fn widths(&self) -> Vec<u16> {
        let lines = || self.rows.iter().chain(self.is_titled.then_some(&self.headers));
        let width = |at: usize| {
            let cells = lines().filter_map(|line| line.get(at)).map(|cell| harmless(cell).chars().count());
            u16::try_from(cells.max().unwrap_or_default()).unwrap_or(u16::MAX).saturating_add(GAP).max(MIN_WIDTH)
        };
        (0..self.headers.len()).map(width).collect()
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { headers, rows, is_titled, widths } = self;
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if *is_titled {
            table.set_header(headers.iter().map(|header| Cell::new(harmless(header))));
        }
        for row in rows {
            table.add_row(row.iter().map(|cell| Cell::new(harmless(cell))));
        }
        for (at, column) in table.column_iter_mut().enumerate() {
            let width = widths.get(at).copied().unwrap_or_default().max(MIN_WIDTH);
            column.set_padding((0, GAP)).set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
        for line in table.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// What kubectl prints for a value that is unknown.
pub(crate) const UNKNOWN: &str = "<unknown>";

/// Formats the age of an object as kubectl does.
pub(crate) fn object_age(object: &Value, now: Timestamp) -> String {
    let since = Metadata::new(object).created_at().and_then(|at| Duration::try_from(now.duration_since(at)).ok());
    since.map_or_else(|| UNKNOWN.to_owned(), age)
}

/// Formats an age as kubectl does: `45s`, `3m20s`, `17m`, `5h30m`, `30h`, `3d4h`, `40d`, `2y300d`.
pub fn age(age: Duration) -> String {
    olm_core::go_format::human_duration(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_kubectls() {
        let mut table = Table::new(["NAME", "OK", "MESSAGE"]);
        table.row(["etcdoperator.v0.9.4", "x", "a\nb"]);
        table.row(["z", "", ""]);
        assert_eq!(
            table.to_string(),
            "NAME                  OK    MESSAGE\n\
             etcdoperator.v0.9.4   x     a b\n\
             z\n"
        );
    }

    #[test]
    fn control_characters_in_cells_are_visible() {
        let mut table = Table::new(["A"]);
        table.row(["\u{1b}[31mred\r\nand\u{7}"]);
        assert_eq!(table.with_headers(false).to_string(), "\\u{1b}[31mred\\u{d} and\\u{7}\n");
    }

    #[test]
    fn long_cells_are_not_wrapped() {
        let mut table = Table::new(["A"]);
        table.row(["word ".repeat(100)]);
        assert_eq!(table.to_string().lines().count(), 2);
    }

    #[test]
    fn ages_are_kubectls() {
        for (seconds, shown) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (17 * 60 + 5, "17m"),
            (5 * 3600 + 30 * 60, "5h30m"),
            (30 * 3600, "30h"),
            (76 * 3600, "3d4h"),
            (40 * 86400, "40d"),
            (1030 * 86400, "2y300d"),
            (9 * 365 * 86400, "9y"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), shown);
        }
    }
}
