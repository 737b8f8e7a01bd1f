//! Short texts from users: versions, ranges, quantities, durations, sizes, times, references, paths and queries.

use std::cmp::Ordering;

use jiff::SignedDuration;
use olm_core::api::{names, object, quantity};
use olm_core::catalog::reference;
use olm_core::go_format;
use olm_core::version::{self, Range, Version};
use olm_core::visible::{lines, one_line};
use olm_shell::cli::columns::Columns;
use olm_shell::cli::flags;
use olm_shell::cli::jsonpath::{Path, Template};
use olm_shell::cli::output::Output;
use olm_shell::cli::selector::LabelQuery;
use olm_shell::image::Location;
use olm_shell::run::{BundleImage, CatalogDirectory, CatalogImage, FeatureGates};
use serde_json::{Value, json};

use super::shown::{harmless, render_error, shown};

/// Maximum number of lines: more find nothing new.
const MOST: usize = 12;

/// Parses each line in every syntax.
///
/// # Panics
/// The formatted value is parsed as a different one.
pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let texts: Vec<&str> = text.split('\n').take(MOST).collect();
    let versions: Vec<Version> = texts.iter().filter_map(|text| read(text)).collect();
    order(&versions);
    let objects = objects();
    for text in texts {
        range(text, &versions);
        amounts(text);
        words(text);
        paths(text, &objects);
    }
}

fn read(text: &str) -> Option<Version> {
    let strict = version::parse(text);
    if let Ok(version) = &strict {
        assert_eq!(version.to_string(), text);
    }
    let tolerant = version::parse_tolerant(text);
    if let Ok(version) = &tolerant {
        assert_eq!(version::parse(&version.to_string()).as_ref(), Ok(version));
    }
    if let (Ok(strict), tolerant) = (&strict, &tolerant) {
        assert_eq!(tolerant.as_ref(), Ok(strict), "{text:?}");
    }
    tolerant.ok()
}

/// Checks the order of versions.
fn order(versions: &[Version]) {
    for a in versions {
        assert_eq!(version::compare(a, a), Ordering::Equal);
        for b in versions {
            assert_eq!(version::compare(a, b), version::compare(b, a).reverse());
            for c in versions.iter().filter(|_| version::compare(a, b).is_le()) {
                assert!(version::compare(b, c).is_gt() || version::compare(a, c).is_le(), "{a} {b} {c}");
            }
        }
    }
}

fn range(text: &str, versions: &[Version]) {
    let Ok(range) = Range::parse(text) else { return };
    assert_eq!(range.as_str(), text);
    // A comparison without a version at its end is ignored if it is the only one, and invalid beside others.
    if !text.ends_with(char::is_alphanumeric) {
        return;
    }
    let either = Range::parse(&format!("{text} || {text}"));
    for version in versions {
        let contains = range.contains(version);
        // Joining a range with itself changes nothing.
        assert_eq!(either.as_ref().map(|either| either.contains(version)), Ok(contains), "{text:?}");
    }
}

fn amounts(text: &str) {
    if let Some(canonical) = quantity::canonical(text) {
        assert_eq!(quantity::canonical(&canonical).as_deref(), Some(canonical.as_str()), "{text:?}");
    }
    if let Ok(duration) = go_format::duration(text) {
        let negated = match text.strip_prefix('-') {
            Some(positive) => positive.to_owned(),
            None => format!("-{}", text.strip_prefix('+').unwrap_or(text)),
        };
        if !text.starts_with(['-', '+']) || text.starts_with('-') && !text[1..].starts_with(['-', '+']) {
            assert_eq!(go_format::duration(&negated), Ok(-duration), "{text:?}");
        }
        let nanos = format!("{}ns", duration.as_nanos());
        if duration.abs() < SignedDuration::from_hours(24) {
            let again =
                go_format::duration(&nanos).map(|again| (again - duration).abs() <= SignedDuration::from_micros(1));
            assert_eq!(again, Ok(true), "{text:?}: {nanos}");
        }
    }
    if let Ok(duration) = flags::duration(text) {
        assert_eq!(flags::duration(&duration.as_secs().to_string()).map(|d| d.as_secs()), Ok(duration.as_secs()));
    }
    if let Ok(bytes) = flags::bytes(text) {
        assert!(bytes > 0);
        assert_eq!(flags::bytes(&bytes.to_string()), Ok(bytes));
    }
    if let Some(time) = object::parse_time(text) {
        let written = object::time(time);
        assert_eq!(object::parse_time(&written).map(object::time), Some(written));
    }
}

fn words(text: &str) {
    assert!(!names::is_label(text) || names::is_subdomain(text) || text.len() > names::LONGEST_SUBDOMAIN, "{text:?}");
    harmless(&one_line(text));
    harmless(&lines(text));
    assert!(!one_line(text).contains('\n'));
    assert_eq!(serde_json::from_str::<String>(&go_format::json(&text)).as_deref().ok(), Some(text));
    let is_reference = reference::check(text).is_ok();
    match text.parse::<Location>() {
        Ok(location @ Location::Registry(_)) => {
            let written = location.to_string();
            // A host in upper case is read as a part of the path when it is formatted.
            if let Ok(again) = written.parse::<Location>() {
                assert_eq!(again, location, "{text:?}: {written:?}");
            }
        }
        Ok(Location::Layout { .. }) => assert!(text.starts_with("oci")),
        Err(error) => {
            // Clients of registries accept less: no IPv6 addresses.
            assert!(!is_reference || text.starts_with('['), "{text:?}: {error}");
            render_error(error);
        }
    }
    if let Ok(CatalogDirectory { name, namespace, directory }) = text.parse() {
        let namespace = namespace.map(|namespace| format!(".{namespace}")).unwrap_or_default();
        assert_eq!(format!("{name}{namespace}={}", directory.display()), text);
    }
    if let Ok(CatalogImage { reference, .. }) = text.parse() {
        assert!(!reference.is_empty());
    }
    if let Ok(BundleImage { reference, path }) = text.parse() {
        assert!(!reference.is_empty() && !path.is_empty());
    }
    let _ = text.parse::<FeatureGates>();
}

fn objects() -> Vec<Value> {
    let labels = json!({ "app": "rose", "a": "", "example.com/b": "c" });
    let metadata = json!({ "name": "rose\u{1b}", "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z" });
    vec![
        json!({ "kind": "Rose", "metadata": metadata, "items": [{ "a": 1 }, { "a": [2.5, null, "\n"] }], "a.b": true }),
    ]
}

fn paths(text: &str, objects: &[Value]) {
    if let Ok(template) = text.parse::<Template>() {
        for object in objects {
            let _ = template.render(object);
        }
    }
    if let Ok(path) = text.parse::<Path>() {
        let written = path.to_string();
        assert_eq!(written.parse::<Path>().as_ref(), Ok(&path), "{text:?}");
        for object in objects {
            assert_eq!(path.values(object), path.values(object));
        }
    }
    let columns = text.parse::<Columns>();
    if let Ok(columns) = &columns {
        for object in objects {
            assert_eq!(columns.row(object).len(), columns.titles().len());
        }
    }
    if let Ok(output) = text.parse::<Output>() {
        let _ = shown(|printer| output.objects(printer, objects, || columns.unwrap_or_else(|_| name()).table(objects)));
    }
    if let Ok(query) = text.parse::<LabelQuery>() {
        for object in objects {
            assert_eq!(query.selects(object), query.selects(object));
        }
    }
}

/// Returns a table of names.
fn name() -> Columns {
    let columns = "NAME:.metadata.name".parse();
    columns.unwrap_or_else(|why| unreachable!("{why}"))
}
