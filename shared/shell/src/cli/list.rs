//! The flags and the printing of all list commands, as in kubectl.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use olm_core::api::object;
use serde_json::{Value, json};

use super::flags::{OutputFlags, SelectorFlags};
use super::jsonpath::Path;
use super::output::Output;
use super::table::Table;
use super::{CliError, Printer};

/// The cell of objects without labels in the column of labels.
const NONE: &str = "<none>";

/// Flags of every list command.
#[derive(Args, Clone, Debug, Default)]
pub struct ListFlags {
    #[command(flatten)]
    /// The output format.
    pub output: OutputFlags,
    #[command(flatten)]
    /// The label query.
    pub selector: SelectorFlags,
    /// After listing, watch for changes and print them until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
    /// Omit the headers of tables
    #[arg(long)]
    pub no_headers: bool,
    /// Sort by a field of the objects as -o json prints them, such as .metadata.creationTimestamp
    #[arg(long, value_name = "JSONPATH")]
    pub sort_by: Option<Path>,
    /// Show labels in the last column of tables
    #[arg(long)]
    pub show_labels: bool,
}

impl ListFlags {
    /// Returns whether the output is a table with the command's own columns. Values that only tables contain need not
    /// be determined otherwise.
    pub fn wants_table(&self) -> bool {
        matches!(self.output.output, Output::Table | Output::Wide)
    }

    /// Returns whether the output consists of rows or names, not of documents.
    pub fn wants_rows(&self) -> bool {
        !matches!(self.output.output, Output::Json | Output::Yaml | Output::JsonPath(_))
    }

    /// Returns whether only names are printed.
    pub fn wants_names(&self) -> bool {
        self.output.output == Output::Name
    }

    /// Refuses `--watch` for a source that is read only once.
    ///
    /// # Errors
    /// `--watch` was given.
    pub fn refuse_to_watch(&self, what: &str) -> Result<(), CliError> {
        if self.watch {
            return Err(CliError::usage(format!("{what} cannot be watched")).hint("leave out --watch"));
        }
        Ok(())
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    title: &'static str,
    is_wide: bool,
}

impl Column {
    /// A column of every table.
    pub const fn new(title: &'static str) -> Self {
        Self { title, is_wide: false }
    }

    /// A column of wide tables.
    pub const fn wide(title: &'static str) -> Self {
        Self { title, is_wide: true }
    }
}

/// An entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The object, for output as data.
    pub object: Value,
    /// The cells of the row, one for each column, including wide ones.
    pub cells: Vec<String>,
    /// The name that `-o name` prints.
    pub name: String,
}

/// The content of a list.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The columns of the table.
    pub columns: Vec<Column>,
    /// The entries.
    pub entries: Vec<Entry>,
    /// The document for output as data, without its `items`, which are the entries' objects: `apiVersion`, `kind` and
    /// other fields.
    pub document: Value,
}

impl Listing {
    /// Returns the entries that the flags select, in the order that they state.
    ///
    /// # Errors
    /// `--sort-by` names a field that no entry has.
    pub fn arranged(mut self, flags: &ListFlags) -> Result<Self, CliError> {
        if let Some(query) = &flags.selector.selector {
            self.entries.retain(|entry| query.selects(&entry.object));
        }
        if let Some(path) = &flags.sort_by {
            let value = |entry: &Entry| path.values(&entry.object).first().map(|value| (*value).clone());
            if !self.entries.is_empty() && self.entries.iter().all(|entry| value(entry).is_none()) {
                return Err(
                    CliError::usage(format!("no object has the field {path}")).hint("-o json prints all fields")
                );
            }
            self.entries.sort_by(|a, b| compare(value(a).as_ref(), value(b).as_ref()));
        }
        Ok(self)
    }

    /// Prints the list. An empty table prints nothing; the message for it is up to the command.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print(&self, flags: &ListFlags, printer: &mut Printer) -> Result<(), CliError> {
        match &flags.output.output {
            Output::Table | Output::Wide => printer.data(self.table(flags, &self.entries, !flags.no_headers)),
            Output::CustomColumns(columns) => {
                let table = columns.table(self.entries.iter().map(|entry| &entry.object));
                printer.data(table.with_headers(!flags.no_headers))
            }
            Output::Name => {
                // An object may have several rows.
                let mut printed = BTreeSet::new();
                let mut names = self.entries.iter().map(|entry| &entry.name).filter(|name| printed.insert(*name));
                names.try_for_each(|name| printer.line(name))
            }
            output @ (Output::Json | Output::Yaml | Output::JsonPath(_)) => {
                let mut document = self.document.clone();
                document["items"] = json!(self.entries.iter().map(|entry| &entry.object).collect::<Vec<_>>());
                output.object(printer, &document, || Table::new([]))
            }
        }
    }

    fn table(&self, flags: &ListFlags, entries: &[Entry], with_headers: bool) -> Table {
        let is_shown = |column: &Column| !column.is_wide || flags.output.output.is_wide();
        let mut titles: Vec<String> =
            self.columns.iter().filter(|column| is_shown(column)).map(|column| column.title.to_owned()).collect();
        if flags.show_labels {
            titles.push("LABELS".to_owned());
        }
        let mut table = Table::with(titles);
        for entry in entries {
            let shown = self.columns.iter().zip(&entry.cells).filter(|(column, _)| is_shown(column));
            let labels = flags.show_labels.then(|| labels(&entry.object));
            table.row(shown.map(|(_, cell)| cell.clone()).chain(labels));
        }
        table.with_headers(with_headers)
    }
}

/// `a=b,c=d`
fn labels(object: &Value) -> String {
    let labels: Vec<String> =
        object::entries(object, &["metadata", "labels"]).map(|(key, value)| format!("{key}={value}")).collect();
    if labels.is_empty() { NONE.to_owned() } else { labels.join(",") }
}

/// Compares in kubectl's order: missing values first, numbers by value, and digits within strings as numbers.
fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::String(a)), Some(Value::String(b))) => naturally(a, b),
        (Some(a), Some(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => a.to_string().cmp(&b.to_string()),
        },
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Compares strings with digits as numbers: `v2` is before `v10`.
fn naturally(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (Some(first), Some(second)) = (a.chars().next(), b.chars().next()) else { return a.len().cmp(&b.len()) };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number, rest) = split_number(a);
            let (other, other_rest) = split_number(b);
            match number.len().cmp(&other.len()).then_with(|| number.cmp(other)) {
                Ordering::Equal => (a, b) = (rest, other_rest),
                unequal => return unequal,
            }
        } else if first == second {
            (a, b) = (&a[first.len_utf8()..], &b[second.len_utf8()..]);
        } else {
            return first.cmp(&second);
        }
    }
}

/// Splits off the leading digits, without leading zeros.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number.trim_start_matches('0'), rest)
}

/// Prints a list, and afterwards its changes.
#[derive(Debug, Default)]
pub struct Watched {
    /// The objects printed last, by namespace and name.
    printed: Option<BTreeMap<(String, String), Value>>,
    /// The column widths of the first table, used to align later rows with it.
    widths: Vec<u16>,
}

impl Watched {
    /// Prints all entries the first time, and then those that are new or have changed.
    ///
    /// # Errors
    /// The output cannot be written, or the list not be sorted.
    pub fn show(&mut self, listing: Listing, flags: &ListFlags, printer: &mut Printer) -> Result<(), CliError> {
        let mut listing = listing.arranged(flags)?;
        let now = listing.entries.iter().map(|entry| (key(entry), entry.object.clone())).collect();
        match self.printed.replace(now) {
            None => {
                self.widths = listing.table(flags, &listing.entries, !flags.no_headers).widths();
                if listing.entries.is_empty() {
                    return Ok(());
                }
                match flags.output.output {
                    Output::Json | Output::Yaml | Output::JsonPath(_) => one_by_one(&listing, flags, printer)?,
                    _ => listing.print(flags, printer)?,
                }
            }
            Some(before) => {
                let is_first = before.is_empty() && flags.wants_table();
                listing.entries.retain(|entry| before.get(&key(entry)) != Some(&entry.object));
                if !listing.entries.is_empty() {
                    self.changes(&listing, flags, is_first, printer)?;
                }
            }
        }
        // Watchers expect every line at once.
        printer.flush()
    }

    fn changes(
        &self,
        listing: &Listing,
        flags: &ListFlags,
        is_first: bool,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        match &flags.output.output {
            Output::Table | Output::Wide => {
                let table = listing.table(flags, &listing.entries, is_first && !flags.no_headers);
                printer.data(table.at_least(&self.widths))
            }
            Output::CustomColumns(columns) => {
                printer.data(columns.table(listing.entries.iter().map(|entry| &entry.object)).with_headers(false))
            }
            Output::Name => listing.entries.iter().try_for_each(|entry| printer.line(&entry.name)),
            Output::Json | Output::Yaml | Output::JsonPath(_) => one_by_one(listing, flags, printer),
        }
    }
}

/// Prints each object as a separate document, because a watched list has no end.
fn one_by_one(listing: &Listing, flags: &ListFlags, printer: &mut Printer) -> Result<(), CliError> {
    for entry in &listing.entries {
        if flags.output.output == Output::Yaml {
            printer.line("---")?;
        }
        flags.output.output.object(printer, &entry.object, || Table::new([]))?;
    }
    Ok(())
}

fn key(entry: &Entry) -> (String, String) {
    (object::namespace(&entry.object).to_owned(), object::name(&entry.object).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;
    use crate::cli::streams::Buffer;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        list: ListFlags,
    }

    fn flags(line: &str) -> ListFlags {
        let words = std::iter::once("list").chain(line.split_whitespace());
        Flags::from_arg_matches(&Flags::command().get_matches_from(words)).unwrap().list
    }

    fn entry(name: &str, size: u32) -> Entry {
        let object = json!({"metadata": {"name": name, "labels": {"is": name}}, "size": size});
        Entry { object, cells: vec![name.to_owned(), size.to_string(), "far".to_owned()], name: format!("pot/{name}") }
    }

    fn listing() -> Listing {
        Listing {
            columns: vec![Column::new("NAME"), Column::new("SIZE"), Column::wide("WHERE")],
            entries: vec![entry("v10", 3), entry("v2", 20), entry("big-name", 100)],
            document: json!({"apiVersion": "v1", "kind": "PotList"}),
        }
    }

    fn printed(line: &str) -> String {
        let (out, flags) = (Buffer::default(), flags(line));
        let mut printer = Printer::to(out.clone(), Buffer::default());
        listing().arranged(&flags).unwrap().print(&flags, &mut printer).unwrap();
        out.text()
    }

    #[test]
    fn every_flag_does_what_kubectls_does() {
        assert_eq!(printed(""), "NAME       SIZE\nv10        3\nv2         20\nbig-name   100\n");
        assert_eq!(printed("--no-headers -l is=v2"), "v2    20\n");
        assert_eq!(printed("-o wide -l is=v2"), "NAME   SIZE   WHERE\nv2     20     far\n");
        assert_eq!(printed("--show-labels --no-headers -l is=v2"), "v2    20    is=v2\n");
        assert_eq!(printed("-o name --sort-by .metadata.name"), "pot/big-name\npot/v2\npot/v10\n");
        assert_eq!(printed("-o name --sort-by={.size}"), "pot/v10\npot/v2\npot/big-name\n");
        assert_eq!(printed("-o custom-columns=N:.metadata.name,X:.x -l is=v2"), "N     X\nv2    <none>\n");
        assert_eq!(printed("-o custom-columns=N:.metadata.name --no-headers -l is=v2"), "v2\n");
        assert_eq!(printed("-o jsonpath={.items[*].size} --sort-by .size"), "3 20 100");
        let error = listing().arranged(&flags("--sort-by .no.such")).unwrap_err();
        assert_eq!(error.message, "no object has the field .no.such");
    }

    #[test]
    fn changes_are_aligned_with_the_first_table() {
        let watched = |line: &str| {
            let (out, flags) = (Buffer::default(), flags(line));
            let mut printer = Printer::to(out.clone(), Buffer::default());
            let mut watched = Watched::default();
            let mut listing = listing();
            watched.show(listing.clone(), &flags, &mut printer).unwrap();
            watched.show(listing.clone(), &flags, &mut printer).unwrap();
            listing.entries[1] = entry("v2", 21);
            listing.entries.push(entry("new", 1));
            listing.entries.remove(0);
            watched.show(listing, &flags, &mut printer).unwrap();
            out.text()
        };
        assert_eq!(
            watched(""),
            "NAME       SIZE\nv10        3\nv2         20\nbig-name   100\nv2         21\nnew        1\n"
        );
        assert_eq!(watched("-o name -l is=v2"), "pot/v2\npot/v2\n");
        assert_eq!(watched("-o jsonpath={.size}; -l is=v2"), "20;21;");
    }

    #[test]
    fn digits_in_names_are_numbers() {
        assert_eq!(naturally("v2", "v10"), Ordering::Less);
        assert_eq!(naturally("a1b2", "a1b10"), Ordering::Less);
        assert_eq!(naturally("a01", "a1"), Ordering::Equal);
        assert_eq!(naturally("b", "a10"), Ordering::Greater);
    }
}
