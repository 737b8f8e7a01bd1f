//! Objects as the API server itself shows them: names, and what is to be said of each in a few words.

use olm_core::api::object;
use serde_json::Value;

/// An object as the API server shows it in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its namespace; empty when it has none.
    pub namespace: String,
    /// The titles of the columns, and what is in them.
    pub cells: Vec<(String, String)>,
}

/// A page of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TablePage {
    /// The objects; without cells when the API server makes no tables.
    pub rows: Vec<Row>,
    /// Token of the next page, empty at the end.
    pub next: String,
}

impl TablePage {
    /// Reads an answer, which is a list when the API server makes no tables.
    pub(super) fn of(answer: &Value) -> Self {
        let list = |value: &Value, field: &str| object::list(value, &[field]).to_vec();
        let titles: Vec<String> =
            list(answer, "columnDefinitions").iter().map(|column| object::text(column, &["name"]).to_owned()).collect();
        let text = |cell: &Value| match cell {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let of_rows = list(answer, "rows").into_iter().map(|row| {
            let cells = titles.iter().cloned().zip(object::list(&row, &["cells"]).iter().map(text));
            (object::at(&row, &["object"]).clone(), cells.collect())
        });
        let of_items = list(answer, "items").into_iter().map(|item| (item, Vec::new()));
        let rows = of_rows.chain(of_items).map(|(of, cells)| Row {
            name: object::name(&of).to_owned(),
            namespace: object::namespace(&of).to_owned(),
            cells,
        });
        Self { rows: rows.collect(), next: object::text(answer, &["metadata", "continue"]).to_owned() }
    }
}
