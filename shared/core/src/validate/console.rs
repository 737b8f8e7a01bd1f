//! Annotations that consoles and pipelines read after a bundle is published: values that they cannot parse are ignored or fail there.

use serde_json::Value;

use super::input::Input;
use super::rule;
use crate::api::object::{annotation, text};
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

/// Checks the annotations of the ClusterServiceVersion.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
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
