//! The names of the package and the channels, and the properties of a bundle: what catalogs reject or ignore
//! (olm-behaviour/opm.md#bundle-properties, olm-behaviour/opm.md#catalog-validation).

use serde_json::Value;

use super::input::{Input, PREFIX};
use super::rule;
use crate::api::names::{LABEL_RULE, LONGEST_LABEL, is_label};
use crate::api::object::{annotation, text};
use crate::bundle::optional;
use crate::bundle::property::{self, Property};
use crate::bundle::synthesis::Manifest;
use crate::constraint::Constraint;
use crate::go_format::quote;
use crate::version::{self, Range};
use crate::visible::is_harmful;

/// The annotation of a ClusterServiceVersion with properties.
const ANNOTATION: &str = "olm.properties";
/// Maximum number of problems of one file that are reported.
const MOST_PROBLEMS: usize = 20;
/// Number of characters of a name or value that messages contain.
const SHOWN: usize = 100;

/// Checks the names in the annotations, and all properties.
pub(super) fn check(input: &mut Input) {
    if let Some(annotations) = input.annotations.clone() {
        names(input, &annotations);
    }
    let bundle = Expected::new(input);
    if let Some(file) = input.properties.clone() {
        for (path, problem) in problems(&file.object["properties"], &bundle) {
            let path: Vec<&str> = ["properties"].into_iter().chain(path.as_deref()).collect();
            input.report(&rule::INVALID_PROPERTY, &file, &path, problem);
        }
    }
    let Some(csv) = input.csv.clone() else { return };
    let Some(text) = annotation(&csv.object, ANNOTATION).filter(|text| !text.is_empty()) else { return };
    let found = match serde_json::from_str::<Value>(text) {
        Ok(properties) => problems(&properties, &bundle).into_iter().map(|(_, problem)| problem).collect(),
        Err(error) => vec![format!("is not JSON: {error}")],
    };
    for problem in found {
        let path = ["metadata", "annotations", ANNOTATION];
        input.report(&rule::INVALID_PROPERTY, &csv, &path, format!("annotation {ANNOTATION}: {problem}"));
    }
}

/// Checks the names of the package and the channels.
fn names(input: &mut Input, file: &Manifest) {
    let of = |key: &str| match file.object["annotations"].get(format!("{PREFIX}{key}"))? {
        Value::String(text) => Some(text.clone()),
        // Readers accept these for a text.
        Value::Bool(_) | Value::Number(_) => None,
        _ => Some(String::new()),
    };
    let mut found = Vec::new();
    if let Some(package) = of("package.v1")
        && (package.len() > LONGEST_LABEL || !is_label(&package))
    {
        let why = if package.len() > LONGEST_LABEL { "must be no more than 63 characters" } else { LABEL_RULE };
        found.push(("package.v1", format!("invalid package name {}: [{why}]", shown(&package))));
    }
    if let Some(channels) = of("channels.v1").filter(|channels| !channels.is_empty()) {
        if channels.split(',').any(|channel| channel.trim().is_empty()) {
            found.push(("channels.v1", format!("the list of channels {} has an empty name", shown(&channels))));
        }
        let wrong = channels.split(',').filter(|channel| !channel.trim().is_empty() && is_odd(channel));
        for channel in wrong.take(MOST_PROBLEMS) {
            found.push(("channels.v1", format!("invalid channel name {}: {ODD}", shown(channel))));
        }
    }
    if let Some(channel) = of("channel.default.v1").filter(|channel| is_odd(channel) || channel.contains(',')) {
        found.push(("channel.default.v1", format!("invalid channel name {}: {ODD}", shown(&channel))));
    }
    for (key, message) in found {
        input.report(&rule::WRONG_ANNOTATION, file, &["annotations", &format!("{PREFIX}{key}")], message);
    }
}

/// What is wrong with an odd name.
const ODD: &str = "it contains a comma, a space, a control character or an invisible character";

/// Returns whether the name of a channel has characters that no channel can be selected by.
fn is_odd(channel: &str) -> bool {
    // Readers remove spaces around a name.
    channel.contains(is_harmful) || channel.trim().contains(char::is_whitespace)
}

/// Returns the first characters of a text in quotes.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", quote(&text[..end])),
        None => quote(text),
    }
}

/// What the property `olm.package` of the bundle has to state; empty texts if unknown.
struct Expected {
    package: String,
    version: String,
}

impl Expected {
    fn new(input: &Input) -> Self {
        let identity = input.identity();
        Self { package: identity.package, version: identity.version }
    }
}

/// Returns the problems of a list of properties, each with the index of the entry.
fn problems(properties: &Value, bundle: &Expected) -> Vec<(Option<String>, String)> {
    let entries = match properties {
        Value::Null => return Vec::new(),
        Value::Array(entries) => entries,
        _ => return vec![(None, "properties is not a list of maps with type and value".to_owned())],
    };
    let of = |(n, entry): (usize, &Value)| {
        let found = entry_problems(entry, bundle).into_iter();
        found.map(move |problem| (Some(n.to_string()), format!("properties[{n}]{problem}"))).collect::<Vec<_>>()
    };
    entries.iter().enumerate().flat_map(of).take(MOST_PROBLEMS).collect()
}

/// Returns the problems of an entry, each as the end of a sentence that begins with the entry.
fn entry_problems(entry: &Value, bundle: &Expected) -> Vec<String> {
    if !entry.is_object() {
        return vec![" is not a map with type and value".to_owned()];
    }
    let type_ = match entry.get("type") {
        Some(Value::String(type_)) if !type_.is_empty() => type_,
        None | Some(Value::Null | Value::String(_)) => return vec![" has no type".to_owned()],
        Some(other) => return vec![format!(".type is {}, which is not a string", shown(&other.to_string()))],
    };
    let Some(value) = entry.get("value").filter(|value| !value.is_null()) else {
        return vec![" has no value".to_owned()];
    };
    let required: &[&str] = match type_.as_str() {
        property::GVK | property::GVK_REQUIRED => &["group", "version", "kind"],
        property::PACKAGE => &["packageName", "version"],
        property::PACKAGE_REQUIRED => &["packageName", "versionRange"],
        property::LABEL | property::LABEL_REQUIRED => &["label"],
        property::CONSTRAINT => {
            let error = Constraint::from_property(&Property::new(type_, value.clone())).err();
            return error.map(|error| format!(": {error}")).into_iter().collect();
        }
        property::MANIFESTS_OPTIONAL => {
            return optional::read(value).err().map(|problem| format!(": {problem}")).into_iter().collect();
        }
        _ => return Vec::new(),
    };
    if !value.is_object() {
        return vec![format!(".value of {type_} is not a map with {}", required.join(", "))];
    }
    let missing = |key: &&str| match value.get(*key) {
        Some(Value::String(text)) if !text.is_empty() => None,
        None | Some(Value::Null | Value::String(_)) => Some(format!(".value.{key} of {type_} is missing")),
        Some(other) => Some(format!(".value.{key} of {type_} is {}, which is not a string", shown(&other.to_string()))),
    };
    let found: Vec<String> = required.iter().filter_map(missing).collect();
    if !found.is_empty() {
        return found;
    }
    let of = |key: &str| text(value, &[key]);
    match type_.as_str() {
        property::PACKAGE => package_problems(of("packageName"), of("version"), bundle),
        property::PACKAGE_REQUIRED => Range::parse(of("versionRange"))
            .err()
            .map(|error| format!(".value.versionRange {} is not a range: {error}", shown(of("versionRange"))))
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// Compares the property `olm.package` with the bundle.
fn package_problems(package: &str, version: &str, bundle: &Expected) -> Vec<String> {
    let differs = |field: &str, stated: &str, expected: &str, whose: &str| {
        format!(".value.{field} of olm.package is {}, that of the {whose} {}", shown(stated), shown(expected))
    };
    let mut found = Vec::new();
    if !bundle.package.is_empty() && package != bundle.package {
        found.push(differs("packageName", package, &bundle.package, "annotations"));
    }
    let is_same = match (version::parse_tolerant(version), version::parse_tolerant(&bundle.version)) {
        (Ok(a), Ok(b)) => a == b,
        _ => version == bundle.version,
    };
    if !bundle.version.is_empty() && !is_same {
        found.push(differs("version", version, &bundle.version, "ClusterServiceVersion"));
    }
    found
}
