//! Objects as rendered by the API server: names and the cells of a table.

use olm_core::api::object::{self, Gvk};
use olm_core::api::status::Status;
use serde_json::Value;
use serde_json::value::RawValue;

use super::decode::{self, RawList, UNREADABLE};

/// A row of a table of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The name of the object.
    pub name: String,
    /// The namespace of the object; empty if it is cluster-scoped.
    pub namespace: String,
    /// The titles of the columns, with the cells.
    pub cells: Vec<(String, String)>,
}

/// A page of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TablePage {
    /// The objects; without cells if the API server does not support tables.
    pub rows: Vec<Row>,
    /// The token of the next page; empty at the end.
    pub next: String,
}

impl TablePage {
    /// Reads a response, which is a list if the API server does not support tables. A row that cannot be decoded has only names.
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

/// Returns an object, or the part of it that can be decoded.
fn named(raw: &RawValue, gvk: &Gvk) -> Value {
    decode::item(raw.get(), gvk).unwrap_or_else(|object| object.stub)
}
