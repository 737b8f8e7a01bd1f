//! Annotations that consoles and pipelines read after a bundle is published: values that they cannot parse are ignored or fail there.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::Value;

use super::input::Input;
use super::rule::{self, Rule};
use crate::api::names::is_image_reference;
use crate::api::object::{annotation, list, text};
use crate::bundle::synthesis::Manifest;
use crate::go_format::quote;

/// The label of a bundle with the OpenShift versions whose catalogs contain it.
const OPENSHIFT_VERSIONS: &str = "com.redhat.openshift.versions";

/// What a console expects of an annotation.
#[derive(Clone, Copy)]
enum Shape {
    /// A JSON object of a kind.
    Object,
    /// A JSON object of the kind Namespace.
    Namespace,
    /// A JSON list of strings.
    Texts,
}

/// The annotations of a ClusterServiceVersion that consoles parse as JSON.
const ANNOTATIONS: [(&str, Shape); 4] = [
    ("operatorframework.io/initialization-resource", Shape::Object),
    ("operatorframework.io/suggested-namespace-template", Shape::Namespace),
    ("operators.openshift.io/infrastructure-features", Shape::Texts),
    ("operators.operatorframework.io/internal-objects", Shape::Texts),
];

/// Largest icon, in bytes.
const ICON_BYTES: usize = 200 << 10;

/// Checks what consoles show of the ClusterServiceVersion.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
    for (n, icon) in list(&csv.object, &["spec", "icon"]).iter().enumerate() {
        if let Some(problem) = icon_problem(text(icon, &["base64data"])) {
            let path = ["spec", "icon", &n.to_string(), "base64data"];
            input.report(&rule::ICON_CONTENT, csv, &path, format!("the icon {problem}"));
        }
    }
    let mut report = |key: &str, rule: &'static Rule, is_valid: fn(&str) -> bool, what: &str| {
        let Some(value) = annotation(&csv.object, key).filter(|value| !is_valid(value)) else { return };
        let message = format!("annotation {key}: {} is not {what}", quote(value));
        input.report(rule, csv, &["metadata", "annotations", key], message);
    };
    report("createdAt", &rule::CREATED_AT, is_date, "a date");
    report("containerImage", &rule::CONTAINER_IMAGE, is_image_reference, "an image");
    for (key, shape) in ANNOTATIONS {
        let Some(value) = annotation(&csv.object, key) else { continue };
        if let Some(problem) = problem(value, shape) {
            let path = ["metadata", "annotations", key];
            input.report(&rule::CONSOLE_ANNOTATION, csv, &path, format!("annotation {key}: {problem}"));
        }
    }
}

/// Checks the annotations of `metadata/annotations.yaml`.
pub(super) fn check_bundle(input: &mut Input) {
    let Some(annotations) = input.annotations.clone() else { return };
    let Some(versions) = annotations.object.get("annotations").and_then(|all| all.get(OPENSHIFT_VERSIONS)) else {
        return;
    };
    if versions.as_str().is_some_and(is_versions) {
        return;
    }
    let shown = versions.as_str().map_or_else(|| versions.to_string(), quote);
    let message = format!("{OPENSHIFT_VERSIONS} {shown} is not a version, a list or a range of OpenShift versions");
    input.report(&rule::OPENSHIFT_VERSIONS, &annotations, &["annotations", OPENSHIFT_VERSIONS], message);
}

fn icon_problem(data: &str) -> Option<String> {
    let data: String = data.split_whitespace().collect();
    match BASE64_STANDARD.decode(data) {
        Err(error) => Some(format!("is not base64: {error}")),
        Ok(image) if image.len() > ICON_BYTES => Some(format!("has {} KiB", image.len() >> 10)),
        Ok(_) => None,
    }
}

/// Returns whether browsers read the text as a date.
fn is_date(text: &str) -> bool {
    let text = text.trim();
    text.parse::<Timestamp>().is_ok() || text.parse::<DateTime>().is_ok()
}

fn problem(value: &str, shape: Shape) -> Option<&'static str> {
    let Ok(parsed) = serde_json::from_str::<Value>(value) else { return Some("the value is not JSON") };
    let is_object = !text(&parsed, &["apiVersion"]).is_empty() && !text(&parsed, &["kind"]).is_empty();
    let is_texts = || parsed.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    match shape {
        Shape::Object if !is_object => Some("the value is not an object with apiVersion and kind"),
        Shape::Namespace if text(&parsed, &["kind"]) != "Namespace" => Some("the value is not a Namespace"),
        Shape::Texts if !is_texts() => Some("the value is not a list of strings"),
        _ => None,
    }
}

/// Returns whether the text is a version (`v4.12`), exactly one (`=v4.12`), a range (`v4.12-v4.15`), or a list of versions.
fn is_versions(text: &str) -> bool {
    let is_version = |text: &str| {
        let parts = text.trim().strip_prefix('v').unwrap_or_default().split_once('.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    if let Some(exact) = text.strip_prefix('=') {
        return is_version(exact);
    }
    match text.split_once('-') {
        Some((first, last)) => is_version(first) && is_version(last),
        None => text.split(',').all(is_version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_openshift() {
        for valid in ["v4.12", "=v4.12", "v4.12-v4.15", "v4.5,v4.6"] {
            assert!(is_versions(valid), "{valid}");
        }
        for invalid in ["", "4.12", "v4", "v4.12.0", ">=v4.12", "v4.12-", "v4.x", "v4.5;v4.6"] {
            assert!(!is_versions(invalid), "{invalid}");
        }
    }

    #[test]
    fn dates_and_icons() {
        for valid in ["2026-01-31T12:00:00Z", "2026-01-31", "2026-01-31 12:00:00", "2026-01-31T12:00:00+01:00"] {
            assert!(is_date(valid), "{valid}");
        }
        for invalid in ["", "<date>", "31.01.2026", "2026-13-01"] {
            assert!(!is_date(invalid), "{invalid}");
        }
        let icon = |bytes: usize| icon_problem(&BASE64_STANDARD.encode(vec![0; bytes]));
        assert_eq!(icon(ICON_BYTES), None);
        assert_eq!(icon(ICON_BYTES + 1024), Some("has 201 KiB".to_owned()));
        assert_eq!(icon_problem("AAAA\n AAAA"), None, "lines are joined");
        assert!(icon_problem("<svg/>").unwrap().starts_with("is not base64: "));
    }

    #[test]
    fn values_of_annotations() {
        let object = r#"{"apiVersion": "v1", "kind": "Namespace"}"#;
        assert_eq!(problem(object, Shape::Object), None);
        assert_eq!(problem(object, Shape::Namespace), None);
        assert_eq!(problem(r#"["disconnected"]"#, Shape::Texts), None);
        assert_eq!(problem("disconnected", Shape::Texts), Some("the value is not JSON"));
        assert_eq!(
            problem(r#"{"kind": "Rose"}"#, Shape::Object),
            Some("the value is not an object with apiVersion and kind")
        );
        assert_eq!(
            problem(r#"{"apiVersion": "v1", "kind": "Pod"}"#, Shape::Namespace),
            Some("the value is not a Namespace")
        );
        assert_eq!(problem("[1]", Shape::Texts), Some("the value is not a list of strings"));
    }
}
