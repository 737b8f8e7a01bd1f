//! The package manifest of a directory of package manifests, which other tools and people write as well.

use olm_core::api::object::{list, text};
use olm_core::yaml::{self, Document, Step};
use serde_json::{Value, json};

use crate::cli::CliError;

/// A package manifest, as it was read.
pub(super) struct PackageManifest {
    /// The text of the file.
    pub(super) text: String,
    /// Its content.
    pub(super) content: Value,
}

/// Returns the package manifest in which the named channels lead to a ClusterServiceVersion; other channels stay as they are.
pub(super) fn with_channels(
    package: &str,
    csv: &str,
    named: &[String],
    default: Option<&str>,
    known: Option<Value>,
) -> Result<Value, CliError> {
    let mut manifest = known.unwrap_or_else(|| json!({ "packageName": package, "channels": [] }));
    let refused = || CliError::input("the file is not a package manifest").at(format!("{package}.package.yaml"));
    let channels = manifest.get_mut("channels").and_then(Value::as_array_mut).ok_or_else(refused)?;
    for channel in named {
        match channels.iter_mut().find(|known| text(known, &["name"]) == channel) {
            Some(known) => known["currentCSV"] = csv.into(),
            None => channels.push(json!({ "name": channel, "currentCSV": csv })),
        }
    }
    let first = named.first().map(String::as_str).filter(|_| manifest.get("defaultChannel").is_none());
    if let Some(default) = default.or(first) {
        manifest["defaultChannel"] = default.into();
    }
    Ok(manifest)
}

/// Returns the text of the file with only the lines changed that have to change, so that comments and order stay. `None` if the file is
/// written in a way in which this is not possible.
pub(super) fn edited(known: &PackageManifest, wanted: &Value) -> Option<String> {
    let documents = yaml::documents(known.text.as_bytes()).ok()?;
    let [document] = &documents[..] else { return None };
    let mut lines: Vec<String> = known.text.lines().map(str::to_owned).collect();
    let (before, after) = (list(&known.content, &["channels"]), list(wanted, &["channels"]));
    for (n, (old, new)) in before.iter().zip(after).enumerate() {
        let [old, new] = [old, new].map(|channel| text(channel, &["currentCSV"]));
        if old != new {
            replace(&mut lines, line(document, &["channels", &n.to_string(), "currentCSV"]), old, new)?;
        }
    }
    let [old, new] = [&known.content, wanted].map(|manifest| text(manifest, &["defaultChannel"]));
    match (old, new) {
        (old, new) if old == new => {}
        ("", new) => lines.push(format!("defaultChannel: {new}")),
        (old, new) => replace(&mut lines, line(document, &["defaultChannel"]), old, new)?,
    }
    let added = after.get(before.len()..).unwrap_or_default();
    if !added.is_empty() {
        let last = before.len().checked_sub(1)?.to_string();
        let fields = before.last()?.as_object()?.keys();
        let end = fields.map(|field| line(document, &["channels", &last, field])).max()?;
        let first = lines.get(line(document, &["channels", &last]).checked_sub(1)?)?;
        let indentation = first.find('-')?;
        for channel in added.iter().rev() {
            let [name, csv] = ["name", "currentCSV"].map(|field| text(channel, &[field]));
            let indentation = " ".repeat(indentation);
            lines.insert(end, format!("{indentation}  currentCSV: {csv}"));
            lines.insert(end, format!("{indentation}- name: {name}"));
        }
    }
    let edited = lines.join("\n") + "\n";
    yaml::first(edited.as_bytes()).ok().filter(|content| content == wanted)?;
    Some(edited)
}

/// Returns the line of a field, from 1.
fn line(document: &Document<'_>, path: &[&str]) -> usize {
    let step = |part: &&str| part.parse().map_or_else(|_| Step::Field((*part).to_owned()), Step::Item);
    document.line_of(&path.iter().map(step).collect::<Vec<_>>())
}

/// Replaces a value at the end of a line, before a comment.
fn replace(lines: &mut [String], line: usize, old: &str, new: &str) -> Option<()> {
    let line = lines.get_mut(line.checked_sub(1)?)?;
    let at = line.find(':')?;
    let (key, value) = line.split_at(at);
    if !value.contains(old) {
        return None;
    }
    *line = format!("{key}{}", value.replacen(old, new, 1));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOREIGN: &str = "# The package.\npackageName: rose\nchannels:\n  - name: stable # for everyone\n    currentCSV: \"rose.v1.0.0\"\n  - name: beta\n    currentCSV: rose.v1.0.0\n\ndefaultChannel: stable\n";

    fn edit(text: &str, change: impl FnOnce(&mut Value)) -> Option<String> {
        let content = yaml::first(text.as_bytes()).unwrap();
        let mut wanted = content.clone();
        change(&mut wanted);
        edited(&PackageManifest { text: text.to_owned(), content }, &wanted)
    }

    #[test]
    fn only_the_lines_that_have_to_change_are_changed() {
        assert_eq!(edit(FOREIGN, |_| {}).as_deref(), Some(FOREIGN));
        let updated = edit(FOREIGN, |manifest| manifest["channels"][0]["currentCSV"] = "rose.v1.1.0".into());
        assert_eq!(updated.unwrap(), FOREIGN.replace("\"rose.v1.0.0\"", "\"rose.v1.1.0\""));
        let added = edit(FOREIGN, |manifest| {
            let channel = json!({ "name": "fast", "currentCSV": "rose.v2.0.0" });
            manifest["channels"].as_array_mut().unwrap().push(channel);
            manifest["defaultChannel"] = "fast".into();
        });
        let expected = FOREIGN
            .replace("\n\ndefault", "\n  - name: fast\n    currentCSV: rose.v2.0.0\n\ndefault")
            .replace("defaultChannel: stable", "defaultChannel: fast");
        assert_eq!(added.unwrap(), expected);
    }

    #[test]
    fn other_notations_are_not_edited() {
        let flow = "packageName: rose\nchannels: [{name: stable, currentCSV: rose.v1.0.0}]\n";
        let add = |manifest: &mut Value| {
            let channel = json!({ "name": "fast", "currentCSV": "rose.v2.0.0" });
            manifest["channels"].as_array_mut().unwrap().push(channel);
        };
        assert_eq!(edit(flow, add), None);
    }
}
