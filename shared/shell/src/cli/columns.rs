//! The format `-o custom-columns=TITLE:PATH,…`: a table of selected fields.

use std::str::FromStr;

use serde_json::Value;

use super::jsonpath::Path;
use super::table::Table;

/// The cell of a missing field, as in kubectl.
const NONE: &str = "<none>";

/// The titles, and the paths of their values in an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns(Vec<(String, Path)>);

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let columns = parts(text).into_iter().map(|column| {
            let wrong = || format!("invalid column {column:?}: write TITLE:PATH, such as NAME:.metadata.name");
            let (title, path) = column.split_once(':').ok_or_else(wrong)?;
            if title.is_empty() {
                return Err(wrong());
            }
            Ok((title.to_owned(), path.parse()?))
        });
        let columns: Vec<_> = columns.collect::<Result<_, String>>()?;
        if columns.is_empty() { Err("custom-columns requires TITLE:PATH,…".to_owned()) } else { Ok(Self(columns)) }
    }
}

impl Columns {
    /// Returns the titles.
    pub fn titles(&self) -> Vec<String> {
        self.0.iter().map(|(title, _)| title.clone()).collect()
    }

    /// Returns the cells of an object.
    pub fn row(&self, object: &Value) -> Vec<String> {
        self.0.iter().map(|(_, path)| cell(&path.values(object))).collect()
    }

    /// Returns the table of these objects.
    pub fn table<'o>(&self, objects: impl IntoIterator<Item = &'o Value>) -> Table {
        let mut table = Table::with(self.titles());
        objects.into_iter().for_each(|object| table.row(self.row(object)));
        table
    }
}

fn cell(values: &[&Value]) -> String {
    let texts: Vec<String> = values
        .iter()
        .map(|value| match value {
            Value::String(text) => text.clone(),
            Value::Null => NONE.to_owned(),
            other => other.to_string(),
        })
        .collect();
    if texts.is_empty() { NONE.to_owned() } else { texts.join(",") }
}

/// Splits at commas outside brackets and quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_kubectls() {
        let pods = [
            json!({"metadata": {"name": "a", "labels": {"x.y/z": "1"}}, "spec": {"c": [{"n": "p"}, {"n": "q"}]}, "n": 3}),
            json!({"metadata": {"name": "b"}, "n": null}),
        ];
        let columns: Columns =
            r"NAME:.metadata.name,C:{.spec.c[*].n},N:n,L:.metadata.labels.x\.y/z,F:.spec.c[?(@.n=='q')].n"
                .parse()
                .unwrap();
        assert_eq!(
            columns.table(&pods).to_string(),
            "NAME   C        N        L        F\na      p,q      3        1        q\nb      <none>   <none>   <none>   <none>\n"
        );
        for wrong in ["", "NAME", ":.a", "A:", "A:.b["] {
            assert!(wrong.parse::<Columns>().is_err(), "{wrong}");
        }
    }
}
