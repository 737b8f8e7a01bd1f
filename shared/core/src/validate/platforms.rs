//! The platforms of the images of a bundle (olm-behaviour/opm.md#multiarch).
//!
//! ```text
//!   labels operatorframework.io/os.*, arch.*   --> the platforms that the bundle declares
//!   node affinity of a Deployment              --> the platforms on which its Pods run
//!   images --surroundings--> their platforms   --> findings where these differ
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::input::Input;
use super::{Surroundings, rule};
use crate::api::cluster_service_version::Csv;
use crate::api::object::{entries, list, text};
use crate::bundle::synthesis::Manifest;

/// The prefixes of the labels with the declared platforms.
const OS_LABEL: &str = "operatorframework.io/os.";
const ARCHITECTURE_LABEL: &str = "operatorframework.io/arch.";
/// The labels of nodes with their platforms.
const NODE_OS: &str = "kubernetes.io/os";
const NODE_ARCHITECTURE: &str = "kubernetes.io/arch";
/// The platform of a bundle without labels.
const DEFAULT: (&str, &str) = ("linux", "amd64");
/// The container that operator-sdk generates for the operator itself.
const MANAGER: &str = "manager";
/// A container that operator-sdk generated beside the operator in the past.
const PROXY: &str = "kube-rbac-proxy";
/// Maximum number of uses of images of one bundle that are inspected. The largest published bundle has 60.
const MOST_IMAGES: usize = 200;

/// An operating system and an architecture, as Go names them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Platform {
    /// For example `linux`.
    pub os: String,
    /// For example `amd64`.
    pub architecture: String,
}

impl Platform {
    /// Returns the platform with these names.
    pub fn new(os: impl Into<String>, architecture: impl Into<String>) -> Self {
        Self { os: os.into(), architecture: architecture.into() }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// A use of an image.
struct Use {
    image: String,
    /// The fields of the ClusterServiceVersion that lead to it.
    place: Vec<String>,
    /// The number of its Deployment; `None` for a related image.
    deployment: Option<usize>,
    is_operator: bool,
}

impl Use {
    fn place(&self) -> Vec<&str> {
        self.place.iter().map(String::as_str).collect()
    }
}

/// Compares the platforms of the images with the labels and the node affinity.
pub(super) fn check(input: &mut Input, csv: &Manifest, surroundings: &mut dyn Surroundings) {
    let view = Csv::new(&csv.object);
    let declared = declared(&csv.object);
    let uses = uses(&csv.object, view);
    let images: BTreeSet<&str> = uses.iter().map(|used| used.image.as_str()).take(MOST_IMAGES).collect();
    let inspected = surroundings.platforms(&images);
    let mut reported = BTreeSet::new();
    for used in uses.iter().filter(|used| !matches!(inspected.get(&used.image), Some(Ok(_)))) {
        let message = match inspected.get(&used.image) {
            Some(Err(why)) => format!("unable to inspect the image ({}) : {why}", used.image),
            _ => format!("the image {} was not inspected", used.image),
        };
        if reported.insert(&used.image) {
            input.report(&rule::UNINSPECTED_IMAGE, csv, &used.place(), message);
        }
    }
    let of = |used: &Use| inspected.get(&used.image).and_then(|platforms| platforms.as_ref().ok());
    for used in &uses {
        let Some(has) = of(used) else { continue };
        let lacks: Vec<String> = declared.iter().filter(|p| !has.contains(p)).map(ToString::to_string).collect();
        if !lacks.is_empty() {
            let message = format!(
                "the labels of the ClusterServiceVersion declare {}, which the image {} does not support; it supports {}",
                lacks.join(", "),
                used.image,
                joined(has)
            );
            input.report(&rule::UNSUPPORTED_PLATFORM, csv, &used.place(), message);
        }
    }
    undeclared(input, csv, &declared, &uses.iter().filter(|u| u.is_operator).filter_map(of).collect::<Vec<_>>());
    for (n, deployment) in view.deployments().iter().enumerate() {
        let of_deployment = uses.iter().filter(|used| used.deployment == Some(n));
        affinity(input, csv, (n, deployment), &declared, &of_deployment.filter_map(of).collect::<Vec<_>>());
    }
}

fn joined(platforms: &BTreeSet<Platform>) -> String {
    platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the platforms that the labels declare.
fn declared(csv: &Value) -> BTreeSet<Platform> {
    let values = |prefix: &str, default: &str| {
        let labels = entries(csv, &["metadata", "labels"]);
        let found: BTreeSet<String> = labels
            .filter(|(_, value)| *value == "supported")
            .filter_map(|(label, _)| Some(label.strip_prefix(prefix)?.to_owned()))
            .collect();
        if found.is_empty() { BTreeSet::from([default.to_owned()]) } else { found }
    };
    let architectures = values(ARCHITECTURE_LABEL, DEFAULT.1);
    let pair = |os: &String| architectures.iter().map(|arch| Platform::new(os, arch)).collect::<Vec<_>>();
    values(OS_LABEL, DEFAULT.0).iter().flat_map(pair).collect()
}

/// Returns the uses of images, in the order of the ClusterServiceVersion.
fn uses(json: &Value, csv: Csv<'_>) -> Vec<Use> {
    let mut found = Vec::new();
    let owned = |place: &[&str]| place.iter().map(|part| (*part).to_owned()).collect();
    for (n, deployment) in csv.deployments().iter().enumerate() {
        let pod = &["spec", "template", "spec"];
        let is_named = |c: &Value| text(c, &["name"]) == MANAGER;
        let has_manager = list(deployment, &[&pod[..], &["containers"]].concat()).iter().any(is_named);
        for containers in ["initContainers", "containers"] {
            for (m, container) in list(deployment, &[&pod[..], &[containers]].concat()).iter().enumerate() {
                let (n_text, m) = (n.to_string(), m.to_string());
                let place = ["spec", "install", "spec", "deployments", &n_text, "spec", "template", "spec"];
                let image = text(container, &["image"]);
                let is_operator = containers == "containers"
                    && if has_manager { is_named(container) } else { !image.contains(PROXY) };
                if !image.is_empty() {
                    let place = owned(&[&place[..], &[containers, &m, "image"]].concat());
                    found.push(Use { image: image.to_owned(), place, deployment: Some(n), is_operator });
                }
            }
        }
    }
    for (n, related) in list(json, &["spec", "relatedImages"]).iter().enumerate() {
        let image = text(related, &["image"]);
        if !image.is_empty() {
            let place = owned(&["spec", "relatedImages", &n.to_string(), "image"]);
            found.push(Use { image: image.to_owned(), place, deployment: None, is_operator: false });
        }
    }
    found
}

/// Returns the platforms that all images support.
fn common(images: &[&BTreeSet<Platform>]) -> BTreeSet<Platform> {
    let Some((first, others)) = images.split_first() else { return BTreeSet::new() };
    first.iter().filter(|platform| others.iter().all(|has| has.contains(platform))).cloned().collect()
}

/// Reports the platforms of the operator's own images that no label declares.
fn undeclared(input: &mut Input, csv: &Manifest, declared: &BTreeSet<Platform>, operator: &[&BTreeSet<Platform>]) {
    let more: BTreeSet<Platform> = common(operator).difference(declared).cloned().collect();
    if more.is_empty() {
        return;
    }
    let labels: BTreeSet<String> = more
        .iter()
        .flat_map(|p| [format!("{OS_LABEL}{}", p.os), format!("{ARCHITECTURE_LABEL}{}", p.architecture)])
        .filter(|label| text(&csv.object, &["metadata", "labels", label]) != "supported")
        .collect();
    let message = format!(
        "the operator's images support {}, which no label declares: {}: supported",
        joined(&more),
        labels.into_iter().collect::<Vec<_>>().join(": supported, ")
    );
    input.report(&rule::UNDECLARED_PLATFORM, csv, &["metadata", "labels"], message);
}

/// Reports differences between the node affinity of a Deployment, its images and the labels.
fn affinity(
    input: &mut Input,
    csv: &Manifest,
    (n, deployment): (usize, &Value),
    declared: &BTreeSet<Platform>,
    images: &[&BTreeSet<Platform>],
) {
    if images.is_empty() {
        return;
    }
    let supported = common(images);
    let fields = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    let pod = ["spec", "template", "spec"];
    let terms = list(deployment, &[&pod[..], &fields[..]].concat());
    // Pods run on nodes that match any of the terms.
    let runs_on = |platform: &Platform| {
        terms.is_empty() || terms.iter().any(|term| matches_term(term, &platform.os, &platform.architecture))
    };
    let name = text(deployment, &["name"]);
    let n = n.to_string();
    let place = ["spec", "install", "spec", "deployments", n.as_str(), "spec", "template", "spec"];
    let mut report = |message: String| input.report(&rule::NODE_AFFINITY, csv, &place, message);
    let excluded: BTreeSet<Platform> =
        declared.iter().filter(|p| supported.contains(p) && !runs_on(p)).cloned().collect();
    if !excluded.is_empty() {
        let of = joined(&excluded);
        report(format!(
            "the node affinity of the Deployment {name} excludes {of}, which the labels declare and its images support"
        ));
    }
    let mentioned = named(terms);
    let unsupported: Vec<&str> = mentioned
        .iter()
        .filter(|architecture| !supported.iter().any(|p| p.architecture == **architecture))
        .copied()
        .collect();
    if !unsupported.is_empty() {
        let of = unsupported.join(", ");
        report(format!(
            "the node affinity of the Deployment {name} allows nodes of the architecture {of}, which its images do not support"
        ));
    }
}

/// Returns the architectures that terms of a node selector list.
fn named(terms: &[Value]) -> BTreeSet<&str> {
    let expressions = terms.iter().flat_map(|term| list(term, &["matchExpressions"]));
    let listed = expressions
        .filter(|e| text(e, &["key"]) == NODE_ARCHITECTURE && text(e, &["operator"]) == "In")
        .flat_map(|e| list(e, &["values"]));
    listed.filter_map(Value::as_str).collect()
}

/// Returns whether nodes of a platform can match a term of a node selector. Requirements of other labels count as met.
fn matches_term(term: &Value, os: &str, architecture: &str) -> bool {
    list(term, &["matchExpressions"]).iter().all(|expression| {
        let value = match text(expression, &["key"]) {
            NODE_OS => os,
            NODE_ARCHITECTURE => architecture,
            _ => return true,
        };
        let has = list(expression, &["values"]).iter().any(|v| v.as_str() == Some(value));
        match text(expression, &["operator"]) {
            "In" => has,
            "NotIn" => !has,
            "DoesNotExist" => false,
            _ => true,
        }
    })
}
