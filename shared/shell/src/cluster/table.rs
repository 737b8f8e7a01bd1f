//! Objects as the API server itself shows them: names, and what is to be said of each in a few words.

use olm_core::api::object::{self, Gvk};
use olm_core::api::status::Status;
use serde_json::Value;
use serde_json::value::RawValue;

use super::decode::{self, RawList, UNREADABLE};

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
    /// Reads an answer, which is a list when the API server makes no tables. Of a row that cannot be read only the names are known.
    pub(super) fn from_list(answer: &RawList<'_>, gvk: &Gvk) -> Result<Self, Status> {
        let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get());
        let columns = answer.columns.map(read).transpose();
        let columns = columns.map_err(|error| Status::new(0, UNREADABLE, error.to_string()))?.unwrap_or_default();
        let titles: Vec<String> =
            columns.as_array().into_iter().flatten().map(|column| object::text(column, &["name"]).to_owned()).collect();
        let text = |cell: &Value| match cell {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let of_rows = answer.rows.iter().flatten().map(|raw| {
            let parts = decode::fields(raw.get());
            let of = parts.get("object").map(|object| named(object, gvk)).unwrap_or_default();
            let cells = parts.get("cells").and_then(|cells| read(cells).ok()).unwrap_or_default();
            let cells = cells.as_array().into_iter().flatten().map(text);
            (of, titles.iter().cloned().zip(cells).collect())
        });
        let of_items = answer.items.iter().flatten().map(|item| (named(item, gvk), Vec::new()));
        let rows = of_rows.chain(of_items).map(|(of, cells)| Row {
            name: object::name(&of).to_owned(),
            namespace: object::namespace(&of).to_owned(),
            cells,
        });
        Ok(Self { rows: rows.collect(), next: answer.ends().1 })
    }
}

/// An object, or as much of it as can be read.
fn named(raw: &RawValue, gvk: &Gvk) -> Value {
    decode::item(raw.get(), gvk).unwrap_or_else(|object| object.stub)
}
