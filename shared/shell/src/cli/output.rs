//! The formats of `-o`: tables, data and templates.

use std::str::FromStr;

use olm_core::api::object::{self, ObjectRef};
use serde_json::{Value, json};

use super::columns::Columns;
use super::jsonpath::Template;
use super::table::Table;
use super::{CliError, Printer};

/// The `apiVersion` of documents that kubectl olm defines, which are not objects of a cluster, such as `kubectl olm
/// version -o json`. It changes when a field is removed or changes its meaning.
pub const API_VERSION: &str = "kubectl-olm/v1";

/// A format of `-o`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Output {
    /// A table.
    #[default]
    Table,
    /// A table with more columns.
    Wide,
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
    /// `kind/name`, one per line, as other commands accept it.
    Name,
    /// A template in kubectl's JSONPath.
    JsonPath(Template),
    /// A table of chosen fields.
    CustomColumns(Columns),
}

impl FromStr for Output {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some(("jsonpath", template)) => template.parse().map(Self::JsonPath),
            Some(("custom-columns", columns)) => columns.parse().map(Self::CustomColumns),
            _ => match text {
                "" => Ok(Self::Table),
                "wide" => Ok(Self::Wide),
                "json" => Ok(Self::Json),
                "yaml" => Ok(Self::Yaml),
                "name" => Ok(Self::Name),
                _ => {
                    Err("expected json, yaml, name, wide, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…".to_owned())
                }
            },
        }
    }
}

/// A format of `-o` of commands that can also write a page.
#[derive(Clone, Debug, PartialEq)]
pub enum PageOutput {
    /// A page: one HTML file without scripts.
    Html,
    /// Another format.
    Output(Output),
}

impl Default for PageOutput {
    fn default() -> Self {
        Self::Output(Output::default())
    }
}

impl FromStr for PageOutput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "html" => Ok(Self::Html),
            other => match other.parse() {
                Ok(output) => Ok(Self::Output(output)),
                Err(error) => Err(error.replacen("expected json,", "expected html, json,", 1)),
            },
        }
    }
}

impl Output {
    /// The values of `-o`, for completion. A template follows an equals sign.
    pub const FORMS: [&str; 6] = ["json", "yaml", "name", "wide", "jsonpath=", "custom-columns="];

    /// Returns whether the format is the wide table.
    pub fn is_wide(&self) -> bool {
        *self == Self::Wide
    }

    /// Prints one object. `table` builds the table.
    pub fn object(&self, printer: &mut Printer, object: &Value, table: impl FnOnce() -> Table) -> Result<(), CliError> {
        match self {
            Self::Table | Self::Wide => printer.data(table()),
            Self::Json => printer.json(object),
            Self::Yaml => printer.yaml(object),
            Self::Name => printer.line(name(object)),
            Self::JsonPath(template) => printer.data(template.render(object)?),
            Self::CustomColumns(columns) => printer.data(columns.table([object])),
        }
    }

    /// Prints several objects, as data in one `List`, as kubectl does. `table` builds the table.
    pub fn objects(
        &self,
        printer: &mut Printer,
        objects: &[Value],
        table: impl FnOnce() -> Table,
    ) -> Result<(), CliError> {
        match self {
            Self::Table | Self::Wide => printer.data(table()),
            Self::CustomColumns(columns) => printer.data(columns.table(objects)),
            Self::Name => objects.iter().try_for_each(|object| printer.line(name(object))),
            Self::Json | Self::Yaml | Self::JsonPath(_) => {
                let list = json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects });
                self.object(printer, &list, table)
            }
        }
    }
}

/// Returns `kind/name` in lower case, as kubectl and the other commands accept it.
pub fn name(object: &Value) -> String {
    format!("{}/{}", object::gvk(object).kind.to_lowercase(), object::name(object))
}

/// Returns `kind.group/name` in lower case, as kubectl prints what it did.
pub fn qualified(object: &Value) -> String {
    let ObjectRef { gvk, name, .. } = ObjectRef::from_object(object);
    let group = if gvk.group.is_empty() { String::new() } else { format!(".{}", gvk.group) };
    format!("{}{group}/{name}", gvk.kind.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::streams::Buffer;

    fn printed(output: &str) -> String {
        let out = Buffer::default();
        let mut printer = Printer::to(out.clone(), Buffer::default());
        let objects = [
            json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "tea"}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pot"}}),
        ];
        let output: Output = output.parse().unwrap();
        output.objects(&mut printer, &objects, || Table::new(["NAME"])).unwrap();
        out.text()
    }

    #[test]
    fn every_format_prints_every_object() {
        assert_eq!(printed(""), "NAME\n");
        assert_eq!(printed("name"), "subscription/tea\npod/pot\n");
        assert_eq!(printed("jsonpath={.items[*].metadata.name}"), "tea pot");
        assert!(printed("json").starts_with("{\n    \"apiVersion\": \"v1\""));
        assert!(printed("yaml").contains("\n- apiVersion: operators.coreos.com/v1alpha1\n"));
        assert!("xml".parse::<Output>().is_err());
    }
}
