//! The format of a bundle: its directories, annotations, dependencies and kinds (olm-behaviour/opm.md#bundle-format).

use serde_json::Value;

use super::input::{Input, METADATA, PREFIX};
use super::rule;
use crate::api::object::{self, Gvk, list, text};
use crate::bundle::folder::{are_apart, folder};
use crate::bundle::property::{self, Property};
use crate::bundle::steps;
use crate::bundle::synthesis::{MEDIA_TYPE, Manifest};
use crate::constraint::Constraint;
use crate::go_format::quote;
use crate::version::Range;

/// The media type of bundles with a ClusterServiceVersion.
const REGISTRY: &str = "registry+v1";
/// The required annotations, and whether they must not be empty. The default channel is optional.
const REQUIRED: [(&str, bool); 5] = [
    ("mediatype.v1", false),
    ("manifests.v1", false),
    ("metadata.v1", false),
    ("package.v1", false),
    ("channels.v1", true),
];
/// The annotation with the directory of the tests.
const TESTS: &str = "operators.operatorframework.io.test.config.v1";
/// Kinds that bundles may contain, but that OLM does not install.
const NOT_INSTALLED: [&str; 1] = ["PodMonitor"];

/// Checks the directories, the annotations and the dependencies.
pub(super) fn check(input: &mut Input) {
    let (has_manifests, has_metadata) = input.has;
    let path = input.path.clone();
    if !has_manifests {
        let named = input.named_folder().filter(|named| *named != "manifests");
        let message = match named {
            Some(named) => format!("Unable to locate manifests directory {named}/, which the annotations name"),
            None => "Unable to locate manifests directory".to_owned(),
        };
        input.add(rule::NO_MANIFESTS.finding(message).at(&path, 0));
    }
    if !has_metadata {
        input.add(rule::NO_METADATA.finding("Unable to locate metadata directory").at(&path, 0));
    }
    if has_metadata && input.annotations.is_none() {
        input.add(rule::NO_ANNOTATIONS.finding("Could not find annotations file").at(&path, 0));
    }
    if let Some(annotations) = input.annotations.clone() {
        check_annotations(input, &annotations);
    }
    if let Some(dependencies) = input.dependencies.clone() {
        check_dependencies(input, &dependencies);
    }
    check_kinds(input);
    if input.csv.is_none() && has_manifests && !input.is_incomplete {
        let named = if path.is_empty() { "." } else { path.as_str() };
        let message = format!("unable to find a csv in bundle directory {named}");
        input.add(rule::NO_CSV.finding(message).at(&path, 0));
    }
}

fn check_annotations(input: &mut Input, file: &Manifest) {
    let wanted = if input.is_plain { MEDIA_TYPE } else { REGISTRY };
    let keys = REQUIRED.into_iter().chain([("channel.default.v1", true)]);
    for (short, must_be_filled) in keys {
        let key = format!("{PREFIX}{short}");
        let value = file.object["annotations"].get(&key);
        let found = value.and_then(Value::as_str).unwrap_or_default();
        let path = ["annotations", key.as_str()];
        let is_required = short != "channel.default.v1";
        if value.is_none() && is_required {
            input.report(&rule::MISSING_ANNOTATION, file, &path, format!("Missing annotation {}", quote(&key)));
        }
        if short == "mediatype.v1" && found != wanted {
            let message = format!(
                "Expecting annotation {} to have value {} instead of {}",
                quote(&key),
                quote(wanted),
                quote(found)
            );
            input.report(&rule::WRONG_ANNOTATION, file, &path, message);
        } else if value.is_some() && must_be_filled && found.is_empty() {
            let message = format!("Expecting annotation {} to have non-empty value", quote(&key));
            input.report(&rule::WRONG_ANNOTATION, file, &path, message);
        }
    }
    check_folders(input, file);
}

/// Checks that the annotations name directories of the bundle: others are not part of its image.
fn check_folders(input: &mut Input, file: &Manifest) {
    let manifests = input.manifests.clone();
    let problem = |key: &str, named: Option<&str>| match named {
        None => Some("is not a directory of the bundle"),
        Some(named) if key.ends_with("metadata.v1") => {
            (named != METADATA).then_some("is another directory than metadata/, which every reader of bundles expects")
        }
        Some(named) if !are_apart(named, METADATA) => Some("must be another directory than that of the metadata"),
        Some(named) if key == TESTS && !are_apart(named, &manifests) => {
            Some("must be another directory than that of the manifests")
        }
        Some(_) => None,
    };
    for key in [format!("{PREFIX}manifests.v1"), format!("{PREFIX}metadata.v1"), TESTS.to_owned()] {
        let Some(value) = file.object["annotations"].get(&key) else { continue };
        let value = value.as_str().unwrap_or_default();
        if key == TESTS && value.is_empty() {
            continue;
        }
        if let Some(problem) = problem(&key, folder(value)) {
            let message = format!("the annotation {key} names {}, which {problem}", quote(value));
            input.report(&rule::WRONG_ANNOTATION, file, &["annotations", &key], message);
        }
    }
}

fn check_dependencies(input: &mut Input, file: &Manifest) {
    for (n, entry) in list(&file.object, &["dependencies"]).iter().enumerate() {
        let property = Property::new(text(entry, &["type"]), entry["value"].clone());
        for problem in dependency_problems(&property) {
            input.report(&rule::INVALID_DEPENDENCY, file, &["dependencies", &n.to_string()], problem);
        }
    }
}

/// Returns the problems of a dependency, in opm's words where it has them.
fn dependency_problems(dependency: &Property) -> Vec<String> {
    let of = |key: &str| text(&dependency.value, &[key]);
    let empty = |keys: &[(&str, &str)]| -> Vec<String> {
        keys.iter().filter(|(key, _)| of(key).is_empty()).map(|(_, words)| (*words).to_owned()).collect()
    };
    match dependency.type_.as_str() {
        property::PACKAGE => {
            let mut found = empty(&[("packageName", "Package name is empty"), ("version", "Package version is empty")]);
            if !of("version").is_empty() && Range::parse(of("version")).is_err() {
                found.push("Invalid semver format version".to_owned());
            }
            found
        }
        property::GVK => empty(&[
            ("group", "API Group is empty"),
            ("version", "API Version is empty"),
            ("kind", "API Kind is empty"),
        ]),
        property::LABEL => empty(&[("label", "Label information is missing")]),
        property::CONSTRAINT => match Constraint::from_property(dependency) {
            Ok(Some(_)) => Vec::new(),
            Ok(None) => vec!["the constraint is empty".to_owned()],
            Err(error) => vec![error.to_string()],
        },
        other => vec![format!("unsupported dependency type {other}")],
    }
}

/// Checks the kinds and the names of all objects but the ClusterServiceVersion.
fn check_kinds(input: &mut Input) {
    for manifest in input.objects.clone() {
        let Gvk { group, version, kind } = object::gvk(&manifest.object);
        let is_known = steps::is_supported(&kind);
        if NOT_INSTALLED.contains(&kind.as_str()) {
            let message = format!("OLM does not install objects of kind {kind}");
            input.report(&rule::NOT_INSTALLED, &manifest, &["kind"], message);
        } else if !is_known && !input.is_plain {
            let shown = super::input::gvk_text(&group, &version, &kind);
            let message = format!("{shown}: unsupported media type registry+v1 for bundle object");
            input.report(&rule::UNSUPPORTED_KIND, &manifest, &["kind"], message);
        }
        if kind == "CustomResourceDefinition" && !matches!(version.as_str(), "v1" | "v1beta1") {
            let message = format!("Unsupported api version of CRD: {group}/{version}");
            input.report(&rule::UNPARSABLE_OBJECT, &manifest, &["apiVersion"], message);
        }
    }
}

/// Returns the key of a file in the ConfigMap into which OLM unpacks bundles.
pub(super) fn config_map_key(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    name.chars().map(|c| if allowed(c) { c } else { '-' }).collect()
}
