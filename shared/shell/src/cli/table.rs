//! Tables as kubectl prints them: upper-case headers, three spaces, no lines, never wrapped.

use std::fmt;
use std::time::Duration;

use comfy_table::presets;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Width};

/// kubectl's columns are never narrower than this, its three spaces included.
const MIN_WIDTH: u16 = 6;

/// A table under construction; `Display` is its text with a final newline.
#[derive(Clone, Debug)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headers, in upper case by convention.
    pub fn new(headers: impl IntoIterator<Item = &'static str>) -> Self {
        Self::with(headers.into_iter().map(str::to_owned).collect())
    }

    /// A table with headers that depend on what is in it.
    pub fn with(headers: Vec<String>) -> Self {
        Self { headers, rows: Vec::new() }
    }

    /// Adds a row; an empty cell is shown as it is, `<none>` is the caller's to say.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Has nothing been added?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { headers, rows } = self;
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(headers.iter().map(Cell::new));
        for row in rows {
            // A line break would tear the row apart.
            table.add_row(row.iter().map(|cell| Cell::new(cell.replace('\n', " "))));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 3)).set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(MIN_WIDTH)));
        }
        for line in table.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// An age as kubectl shows it: `45s`, `3m20s`, `17m`, `5h30m`, `30h`, `3d4h`, `40d`, `2y300d`.
pub fn age(age: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let two = |value: u64, big: u64, big_unit: &str, small: u64, small_unit: &str| match value % big / small {
        0 => format!("{}{big_unit}", value / big),
        rest => format!("{}{big_unit}{rest}{small_unit}", value / big),
    };
    match age.as_secs() {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s, MINUTE, "m", 1, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s, HOUR, "h", MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s, DAY, "d", HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s, YEAR, "y", DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
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
