//! `olm.template.substitutes`: a catalog, and bundles that replace others in it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::{File, index_files};
use super::{Images, list_of, text_of};
use crate::api::object::{at, list, text};
use crate::bundle::property::PACKAGE;
use crate::finding::Severity;
use crate::go_format::quote;
use crate::version::{self, Version};

pub(super) fn render(template: &Map<String, Value>, images: &mut Images<'_>) -> Result<Vec<Value>, String> {
    let mut blobs = list_of(template, "entries")?.to_vec();
    check(&blobs)?;
    let (mut bases, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (index_files, substitution) in list_of(template, "substitutions")?.iter().enumerate() {
        let (image, base) = (text_of(substitution, "name"), text_of(substitution, "base"));
        for (what, value) in [("name", image), ("base", base)] {
            if value.is_empty() {
                return Err(format!("substitution {index_files} has no {what}"));
            }
        }
        if !names.insert(image) {
            return Err(format!("duplicate substitution name {}", quote(image)));
        }
        if !bases.insert(base) {
            return Err(format!("duplicate substitution base {}", quote(base)));
        }
        let mut rendered = images(image)?.into_iter().filter(|b| text(b, &["schema"]) == "olm.bundle");
        let (Some(substitute), None) = (rendered.next(), rendered.next()) else {
            return Err(format!("the image {image} does not contain exactly one bundle"));
        };
        substitute_in(&mut blobs, base, substitute)?;
    }
    Ok(blobs)
}

/// Checks that the entries of a template are a valid catalog.
fn check(blobs: &[Value]) -> Result<(), String> {
    let text: String = blobs.iter().map(|b| format!("{b}\n")).collect();
    let load = index_files(&[File::new("entries", text.as_bytes())]).load();
    match load.findings.iter().find(|f| f.severity == Severity::Error) {
        Some(finding) => Err(format!("entries are not a valid FBC: {}", finding.message)),
        None => Ok(()),
    }
}

/// Returns the version and release of a bundle, for ordering.
fn version_of(bundle: &Value) -> Result<(Version, Option<Version>), String> {
    let properties = list(bundle, &["properties"]);
    let of = properties.iter().find(|p| text(p, &["type"]) == PACKAGE).map_or(&Value::Null, |p| at(p, &["value"]));
    let bad = |e: version::Error| format!("bundle {}: {e}", quote(text(bundle, &["name"])));
    let version = version::parse(text(of, &["version"])).map_err(bad)?;
    // A release is ordered like a pre-release.
    let release = match text(of, &["release"]) {
        "" => None,
        release => Some(version::parse(&format!("0.0.0-{release}")).map_err(bad)?),
    };
    Ok((version, release))
}

fn substitute_in(blobs: &mut Vec<Value>, base: &str, substitute: Value) -> Result<(), String> {
    let is_bundle = |b: &&Value| text(b, &["schema"]) == "olm.bundle" && text(b, &["name"]) == base;
    let Some(of) = blobs.iter().find(is_bundle) else {
        return Err(format!("base bundle {} not found", quote(base)));
    };
    let (name, package) = (text(&substitute, &["name"]).to_owned(), text(&substitute, &["package"]));
    if text(of, &["package"]) != package {
        return Err(format!("substitute {} does not belong to the package of its base {}", quote(&name), quote(base)));
    }
    let (old, new) = (version_of(of)?, version_of(&substitute)?);
    let order = version::compare(&new.0, &old.0).then_with(|| match (&new.1, &old.1) {
        (Some(new), Some(old)) => version::compare(new, old),
        (new, old) => new.is_some().cmp(&old.is_some()),
    });
    if order.is_le() {
        return Err(format!("substitute {} must have a higher version than its base {}", quote(&name), quote(base)));
    }
    let package = package.to_owned();
    let is_channel = |b: &&mut Value| text(b, &["schema"]) == "olm.channel" && text(b, &["package"]) == package;
    for channel in blobs.iter_mut().filter(is_channel) {
        if let Some(entries) = channel.get_mut("entries").and_then(Value::as_array_mut) {
            substitute_entry(entries, base, &name);
        }
    }
    blobs.push(substitute);
    Ok(())
}

/// The substitute takes over the edges of its base and skips it; entries that replaced or skipped the base use the
/// substitute.
fn substitute_entry(entries: &mut Vec<Value>, base: &str, substitute: &str) {
    let Some(of) = entries.iter_mut().find(|e| text(e, &["name"]) == base) else { return };
    let mut new = std::mem::replace(of, json!({ "name": base }));
    new["name"] = substitute.into();
    skip(&mut new, base);
    for entry in entries.iter_mut() {
        if text(entry, &["replaces"]) == base {
            entry["replaces"] = substitute.into();
            skip(entry, base);
        } else if let Some(skips) = entry.get_mut("skips").and_then(Value::as_array_mut) {
            skips.iter_mut().filter(|s| *s == base).for_each(|s| *s = substitute.into());
        }
    }
    entries.push(new);
}

fn skip(entry: &mut Value, name: &str) {
    match entry.get_mut("skips").and_then(Value::as_array_mut) {
        Some(skips) => skips.push(name.into()),
        None => entry["skips"] = json!([name]),
    }
}
