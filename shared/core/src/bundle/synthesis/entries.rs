//! Checks the entries of olm.yaml's lists, and fields that contradict each other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::api::object::text;
use crate::finding::Finding;
use crate::yaml::Step;

/// The fields of the entries of a list.
struct Entries {
    list: &'static str,
    required: &'static [&'static str],
    /// The others; empty if any field is accepted, because OLM's API has them.
    optional: &'static [&'static str],
}

const ENTRIES: [Entries; 5] = [
    Entries {
        list: "requiredAPIs",
        required: &["group", "version", "kind"],
        optional: &["resource", "aggregated", "displayName", "description"],
    },
    Entries { list: "optionalAPIs", required: &["group"], optional: &["resource"] },
    Entries {
        list: "apis",
        required: &["group", "kind"],
        optional: &[
            "version",
            "resource",
            "displayName",
            "description",
            "resources",
            "descriptors",
            "specDescriptors",
            "statusDescriptors",
            "actionDescriptors",
        ],
    },
    Entries { list: "maintainers", required: &[], optional: &["name", "email"] },
    Entries { list: "links", required: &[], optional: &["name", "url"] },
];

/// Returns whether text is base64, with line breaks.
pub(super) fn is_base64(text: &str) -> bool {
    STANDARD.decode(text.split_whitespace().collect::<String>()).is_ok()
}

/// Returns the findings. `line_of` returns the line of a part of the file.
pub(super) fn check(fields: &Map<String, Value>, file: &str, line_of: &dyn Fn(&[Step]) -> usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Entries { list, required, optional } in &ENTRIES {
        let items = fields.get(*list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (n, item) in items.iter().enumerate() {
            let place = |field: Option<&str>| {
                let field = field.map(|field| Step::Field(field.to_owned()));
                let path: Vec<Step> =
                    [Step::Field((*list).to_owned()), Step::Item(n)].into_iter().chain(field).collect();
                line_of(&path)
            };
            let Some(map) = item.as_object() else {
                let known = [*required, *optional].concat().join(", ");
                let finding = Finding::new("field-type", format!("an entry of {list} must be a map"));
                findings.push(finding.at(file, place(None)).hint(format!("its fields are {known}")));
                continue;
            };
            if map.get("aggregated").is_some_and(|value| !value.is_boolean()) {
                let finding = Finding::new("field-type", format!("aggregated of {list} must be true or false"));
                let hint = "true if an APIService provides the API, not a CustomResourceDefinition";
                findings.push(finding.at(file, place(Some("aggregated"))).hint(hint));
            }
            for field in required.iter().filter(|field| text(item, &[field]).is_empty()) {
                let is_core = *field == "group" && map.contains_key("group");
                if !is_core {
                    let finding = Finding::new("required-field", format!("an entry of {list} has no {field}"));
                    findings.push(finding.at(file, place(None)).hint(format!("add {field}")));
                }
            }
            for field in map.keys().filter(|field| ![*required, *optional].concat().contains(&field.as_str())) {
                let near = [*required, *optional].concat();
                let near = near.iter().filter(|known| strsim::damerau_levenshtein(known, field) <= 2).min();
                let hint = near.map_or_else(|| "remove it".to_owned(), |near| format!("did you mean {near}?"));
                let finding = Finding::new("unknown-field", format!("field {field} of {list} is unknown"));
                findings.push(finding.at(file, place(Some(field))).hint(hint));
            }
        }
    }
    let top = |field: &str| line_of(&[Step::Field(field.to_owned())]);
    if fields.get("icon").and_then(Value::as_str).is_some_and(|icon| !is_base64(icon)) {
        let finding = Finding::new("field-value", "icon is not base64, and is left out").warning();
        findings.push(finding.at(file, top("icon")).hint("insert the output of: base64 icon.png"));
    }
    let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
    let replaces = fields.get("replaces").and_then(Value::as_str);
    let skips = fields.get("skips").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for (field, other) in replaces.map(|other| ("replaces", other)).into_iter().chain(skips.map(|s| ("skips", s))) {
        if other == name && !name.is_empty() {
            let finding = Finding::new("field-value", format!("{field} names the bundle itself"));
            findings.push(finding.at(file, top(field)).hint("name an older version"));
        }
    }
    findings
}
