//! The ClusterServiceVersion, as the operator-framework validates it, in its words.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::input::{Input, description_gvk, gvk_text};
use super::rule;
use crate::api::cluster_service_version::{Csv, InstallMode};
use crate::api::labels;
use crate::api::labels::value_problem;
use crate::api::names::{LONGEST_SUBDOMAIN, SUBDOMAIN_RULE, is_subdomain};
use crate::api::object::{self, at, entries, gvk, list, text};
use crate::bundle::synthesis::Manifest;
use crate::go_format::quote;
use crate::version;

/// The warning about a ClusterServiceVersion without `minKubeVersion`.
const NO_MIN_KUBE_VERSION: &str = "csv.Spec.minKubeVersion is not informed. It is recommended you provide this information. Otherwise, it would mean that your operator project can be distributed and installed in any cluster version available, which is not necessarily the case for all projects.";
/// The annotations of OLM whose keys are compared without case.
const KEYS: [&str; 5] = [
    labels::OPERATOR_GROUP,
    labels::OPERATOR_NAMESPACE,
    labels::TARGET_NAMESPACES,
    labels::PROVIDED_APIS,
    "olm.skipRange",
];
/// The path of the annotations.
const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

/// Checks the ClusterServiceVersion.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
    let view = Csv::new(&csv.object);
    check_names(input, csv);
    check_examples(input, csv);
    check_modes(input, csv, view);
    required_fields(input, csv);
    check_annotations(input, csv);
    if text(&csv.object, &["apiVersion"]).is_empty() {
        input.report(&rule::NO_GVK, csv, &[], "'apiVersion' is missing");
    }
    let version = view.version();
    if let Err(error) = version::parse_tolerant(version)
        && !version.is_empty()
    {
        let message = format!("spec.version {} is invalid: {error}", quote(version));
        input.report(&rule::INVALID_VERSION, csv, &["spec", "version"], message);
    }
}

fn check_names(input: &mut Input, csv: &Manifest) {
    let names = [("metadata.name", ["metadata", "name"]), ("spec.replaces", ["spec", "replaces"])];
    for (field, path) in names {
        let name = text(&csv.object, &path);
        if name.is_empty() && field == "spec.replaces" {
            continue;
        }
        let mut problems = Vec::new();
        if name.len() > LONGEST_SUBDOMAIN {
            problems.push(format!("must be no more than {LONGEST_SUBDOMAIN} bytes"));
        }
        if !is_subdomain(name) {
            problems.push(SUBDOMAIN_RULE.to_owned());
        }
        problems.extend(value_problem(name));
        if !problems.is_empty() {
            let message = format!("{field} {} is invalid: {}", quote(name), problems.join(","));
            input.report(&rule::INVALID_NAME, csv, &path, message);
        }
    }
}

/// Checks that the examples are custom resources of the owned APIs.
fn check_examples(input: &mut Input, csv: &Manifest) {
    let annotations = at(&csv.object, &ANNOTATIONS);
    if annotations.as_object().is_none_or(serde_json::Map::is_empty) {
        input.report(&rule::NO_CSV_ANNOTATIONS, csv, &["metadata"], "annotations not found");
        return;
    }
    let of = |key: &str| annotations.get(key).and_then(Value::as_str);
    let (key, examples) = match (of("alm-examples"), of("olm.examples")) {
        (None, None) => {
            input.report(&rule::NO_EXAMPLES, csv, &ANNOTATIONS, "example annotations not found");
            return;
        }
        (Some(examples), other) => {
            if other.is_some() {
                let message = "both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`";
                input.report(&rule::TWO_EXAMPLES, csv, &["metadata", "annotations", "olm.examples"], message);
            }
            ("alm-examples", examples)
        }
        (None, Some(examples)) => ("olm.examples", examples),
    };
    let path = ["metadata", "annotations", key];
    let examples = match read_examples(examples) {
        Ok(examples) => examples,
        Err(problem) => {
            input.report(&rule::INVALID_EXAMPLES, csv, &path, problem);
            return;
        }
    };
    let given: BTreeSet<_> = examples.iter().map(gvk).collect();
    let mut owned = BTreeMap::new();
    for (n, crd) in Csv::new(&csv.object).owned_crds().iter().enumerate() {
        let place = ["spec".into(), "customresourcedefinitions".into(), "owned".into(), n.to_string()];
        let name = text(crd, &["name"]);
        if !name.contains('.') {
            let message = format!("couldn't parse plural.group from crd name: {name}");
            report_at(input, &rule::UNPARSABLE_CRD_NAME, csv, &place, message);
            continue;
        }
        let (group, version, kind) = description_gvk(crd);
        owned.entry(object::Gvk::new(group, version, kind)).or_insert(place);
    }
    for (n, api) in Csv::new(&csv.object).owned_api_services().iter().enumerate() {
        let place = ["spec".into(), "apiservicedefinitions".into(), "owned".into(), n.to_string()];
        let gvk = object::Gvk::new(text(api, &["group"]), text(api, &["version"]), text(api, &["kind"]));
        owned.entry(gvk).or_insert(place);
    }
    for example in given.iter().filter(|example| !owned.contains_key(*example)) {
        let shown = gvk_text(&example.group, &example.version, &example.kind);
        input.report(&rule::EXAMPLE_OF_OTHERS, csv, &path, format!("{shown}: example must have a provided API"));
    }
    for (api, place) in owned.iter().filter(|(api, _)| !given.contains(api)) {
        let shown = gvk_text(&api.group, &api.version, &api.kind);
        let message = format!("{shown}: provided API should have an example annotation");
        report_at(input, &rule::API_WITHOUT_EXAMPLE, csv, place, message);
    }
}

/// Reports a finding at a path with computed parts.
fn report_at(input: &mut Input, rule: &rule::Rule, csv: &Manifest, path: &[String], message: String) {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    input.report(rule, csv, &path, message);
}

fn read_examples(text_of: &str) -> Result<Vec<Value>, String> {
    if text_of.is_empty() {
        return Ok(Vec::new());
    }
    let value: Value = serde_json::from_str(text_of).map_err(|e| format!("invalid example: {e}"))?;
    let refused = |why: &str| format!("error decoding example CustomResource: {why}");
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => match items.iter().find(|item| text(item, &["kind"]).is_empty()) {
            Some(item) if item.is_object() => Err(refused("an item has no kind")),
            Some(_) => Err(refused("an item is not an object")),
            None => Ok(items),
        },
        _ => Err(refused("the annotation is not a list")),
    }
}

fn check_modes(input: &mut Input, csv: &Manifest, view: Csv<'_>) {
    let modes = view.install_modes();
    let is_supported = |mode: &Value| at(mode, &["supported"]) == &Value::Bool(true);
    let path = ["spec", "installModes"];
    if modes.is_empty() {
        input.report(&rule::NO_INSTALL_MODES, csv, &path, "install modes not found");
        return min_kube_version(input, csv);
    }
    let only_all =
        modes.iter().all(|mode| is_supported(mode) == (text(mode, &["type"]) == InstallMode::AllNamespaces.as_str()));
    for (n, webhook) in view.webhooks().iter().enumerate() {
        if !list(webhook, &["conversionCRDs"]).is_empty() && !only_all {
            let message = "only AllNamespaces InstallModeType is supported when conversionCRDs is present";
            let place = ["spec", "webhookdefinitions", &n.to_string(), "conversionCRDs"];
            input.report(&rule::CONVERSION_MODES, csv, &place, message);
        }
    }
    if !modes.iter().any(is_supported) {
        input.report(&rule::NO_SUPPORTED_MODE, csv, &path, "none of InstallModeTypes are supported");
    }
    min_kube_version(input, csv);
}

/// Checks `minKubeVersion`. The validators of OperatorHub check it as well.
pub(super) fn min_kube_version(input: &mut Input, csv: &Manifest) {
    let version = text(&csv.object, &["spec", "minKubeVersion"]);
    if version.trim().is_empty() {
        input.report(&rule::NO_MIN_KUBE_VERSION, csv, &["spec"], NO_MIN_KUBE_VERSION);
    } else if version::parse(version).is_err() {
        let message = format!("csv.Spec.MinKubeVersion has an invalid value: {version}");
        input.report(&rule::INVALID_MIN_KUBE_VERSION, csv, &["spec", "minKubeVersion"], message);
    }
}

/// Reports the fields without which Go's type of a ClusterServiceVersion has a zero value in a required field.
fn required_fields(input: &mut Input, csv: &Manifest) {
    let spec = at(&csv.object, &["spec"]);
    let mut missing = |field: &str, path: &[&str]| {
        input.report(&rule::REQUIRED_FIELD, csv, path, format!("{field}: required field missing"));
    };
    if is_zero(spec) {
        return missing("Spec", &[]);
    }
    let install = at(spec, &["install"]);
    if is_zero(install) {
        missing("Spec.InstallStrategy", &["spec"]);
    } else {
        if text(install, &["strategy"]).is_empty() {
            missing("Spec.InstallStrategy.StrategyName", &["spec", "install"]);
        }
        let strategy = at(install, &["spec"]);
        if !is_zero(strategy) && at(strategy, &["deployments"]).is_null() {
            missing("Spec.InstallStrategy.StrategySpec.DeploymentSpecs", &["spec", "install", "spec"]);
        }
    }
    if text(spec, &["displayName"]).is_empty() {
        missing("Spec.DisplayName", &["spec"]);
    }
}

/// Returns whether Go decodes the value to a zero value: lists are not zero even when empty.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
        _ => false,
    }
}

fn check_annotations(input: &mut Input, csv: &Manifest) {
    for (key, _) in entries(&csv.object, &ANNOTATIONS) {
        let path = ["metadata", "annotations", key];
        if let Some(known) = KEYS.into_iter().find(|known| known.eq_ignore_ascii_case(key) && *known != key) {
            let message = format!("provided annotation {key} uses wrong case and should be {known} instead");
            input.report(&rule::ANNOTATION_CASE, csv, &path, message);
        }
        if key == "olm.properties" {
            let message =
                "found olm.properties annotation, please define these properties in metadata/properties.yaml instead";
            input.report(&rule::PROPERTIES_ANNOTATION, csv, &path, message);
        }
    }
}
