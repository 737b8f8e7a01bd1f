//! A ClusterServiceVersion from plain manifests: the media type `k8s+v1` (`shared/docs/bundle-format.md`).
//!
//! ```text
//!   manifest files -- manifest --> Manifest ┐
//!   olm.yaml, annotations -- metadata ----> Metadata ├-- synthesize --> ClusterServiceVersion, other objects,
//!   known APIs (cluster, catalog) ------------------┘                   account, findings
//!
//!   synthesize:  workloads   Deployments and their ServiceAccounts
//!                permissions Roles and bindings of these ServiceAccounts -> permissions
//!                serving     APIServices, webhooks, their Services and certificates
//!                apis        provided and required APIs, from CustomResourceDefinitions and the rules
//!                losses, lookups, expectations   what OLM does in another way, and what the cluster must have
//! ```
//!
//! Each part takes the manifests that a ClusterServiceVersion generates, and writes them into its fields; what no part takes stays
//! in the bundle, if a step of an InstallPlan can carry its kind. The [`AccountEntry`]s list every manifest and where it went; what
//! is not carried has a finding.

mod account;
mod apis;
mod entries;
mod expectations;
mod lookups;
mod losses;
mod manifest;
mod metadata;
mod permissions;
mod serving;
#[cfg(test)]
mod tests;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

pub use self::account::{AccountEntry, Destination};
pub use self::apis::KnownApis;
pub use self::manifest::{Manifest, read as read_manifests};
pub use self::metadata::{
    DEFAULT_MODE, INSTALL_MODES, MIN_KUBE_VERSION, Metadata, OLM_YAML, Proposal, REQUIRED_FIELDS,
};
use crate::api::object::{self, text};
use crate::finding::{Finding, Severity};

/// The media type of these bundles.
pub const MEDIA_TYPE: &str = "k8s+v1";
/// The annotation of a ClusterServiceVersion from which consoles take the namespace to install into.
const SUGGESTED_NAMESPACE: &str = "operatorframework.io/suggested-namespace";
/// The annotation of a ClusterServiceVersion from which consoles take the labels and annotations of that namespace.
const SUGGESTED_NAMESPACE_TEMPLATE: &str = "operatorframework.io/suggested-namespace-template";
/// The annotation of a ClusterServiceVersion with examples of the custom resources.
const EXAMPLES: &str = "alm-examples";

/// Maximum number of findings about manifests; more of them help no one.
const MOST_FINDINGS: usize = 1_000;

/// What the manifests of a bundle become.
#[derive(Clone, Debug, Default)]
pub struct Synthesis {
    /// The ClusterServiceVersion.
    pub csv: Value,
    /// The objects that stay in the bundle, without the ClusterServiceVersion, in the order of the input.
    pub objects: Vec<Value>,
    /// Where each object of the input went, in the order of the input.
    pub account: Vec<AccountEntry>,
    /// What is missing, wrong or not carried. The ClusterServiceVersion is usable when none is an error.
    pub findings: Vec<Finding>,
}

impl Synthesis {
    /// Returns whether the bundle cannot be used as it is.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}

/// The state that the parts share: what is taken, and what they found.
struct Work<'a> {
    manifests: &'a [Manifest],
    destinations: Vec<Vec<Destination>>,
    findings: Vec<Finding>,
    /// The manifests with errors: they are not carried.
    faulty: BTreeSet<usize>,
    /// The objects that stay in the bundle in another form than in the input.
    changed: BTreeMap<usize, Value>,
    format: Format,
    /// Whether there are errors that are not listed.
    is_cut: bool,
    csv: Value,
}

impl<'a> Work<'a> {
    /// Returns the manifests of a kind of an API group, with their numbers.
    fn of_kind(&self, group: &'a str, kind: &'a str) -> impl Iterator<Item = (usize, &'a Manifest)> + use<'a> {
        self.manifests.iter().enumerate().filter(move |(_, manifest)| manifest.is(group, kind))
    }

    /// Records that a manifest went to a place.
    fn record(&mut self, number: usize, destination: Destination) {
        let destinations = &mut self.destinations[number];
        if !destinations.contains(&destination) {
            destinations.push(destination);
        }
    }

    /// Records that a field of the ClusterServiceVersion carries a manifest.
    fn project(&mut self, number: usize, field: impl Into<String>) {
        self.record(number, Destination::Field(field.into()));
    }

    /// Appends an item to a list of the ClusterServiceVersion, and returns the path of the item.
    fn push(&mut self, path: &[&str], item: Value) -> String {
        let (last, parents) = path.split_last().unwrap_or((&"", &[]));
        let list = object::map_mut(&mut self.csv, parents).entry((*last).to_owned()).or_insert_with(|| json!([]));
        let list = list.as_array_mut().map_or(0, |list| {
            list.push(item);
            list.len()
        });
        format!("{}[{}]", path.join("."), list.saturating_sub(1))
    }

    /// Reports a finding about a manifest, at the part of it that `path` names.
    fn report(&mut self, number: usize, path: &[&str], finding: Finding) {
        let manifest = &self.manifests[number];
        if finding.severity == Severity::Error {
            self.faulty.insert(number);
        }
        if self.findings.len() >= MOST_FINDINGS {
            self.is_cut |= finding.severity == Severity::Error;
            return;
        }
        let finding = finding.at(&manifest.file, manifest.line_of(path)).about(manifest.subject());
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// The format of the bundle that a ClusterServiceVersion is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `k8s+v1`: required APIs must be known, so that wildcards in the operator's rules are errors (bundle-format.md#what-is-inferred).
    Plain,
    /// `registry+v1`, whose author states the required APIs: the same are warnings.
    Registry,
}

impl Format {
    /// Returns a finding about an API that cannot be inferred with its severity in this format.
    fn graded(self, finding: Finding) -> Finding {
        match self {
            Self::Plain => finding,
            Self::Registry => finding.warning(),
        }
    }
}

/// Turns manifests and metadata into a ClusterServiceVersion and the objects beside it. Of the same input the result is the same.
pub fn synthesize(manifests: &[Manifest], metadata: &Metadata, known: &KnownApis, format: Format) -> Synthesis {
    let mut work = Work {
        manifests,
        destinations: vec![Vec::new(); manifests.len()],
        findings: Vec::new(),
        faulty: BTreeSet::new(),
        changed: BTreeMap::new(),
        format,
        is_cut: false,
        csv: json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {}, "spec": {},
        }),
    };
    metadata.apply(&mut work);
    object::map_mut(&mut work.csv, &["spec"])
        .insert("install".to_owned(), json!({ "strategy": "deployment", "spec": { "deployments": [] } }));
    let workloads = workloads::project(&mut work);
    refuse_duplicates(&mut work, &workloads.namespace);
    let serving = serving::project(&mut work, &workloads);
    let rules = permissions::project(&mut work, &workloads, &serving);
    apis::infer(&mut work, &rules, &serving.groups, metadata, known);
    lookups::report(&mut work, &workloads, &rules);
    serving::replace_certificates(&mut work, &serving, &workloads);
    expectations::report(&mut work, &workloads);
    namespaces(&mut work, &workloads);
    examples(&mut work);
    remainder(work, &workloads.namespace)
}

/// Reports objects that the input contains more than once: the API server would store only one of them.
fn refuse_duplicates(work: &mut Work<'_>, home: &str) {
    let mut seen = BTreeMap::new();
    for (number, manifest) in work.manifests.iter().enumerate() {
        let gvk = object::gvk(&manifest.object);
        let namespace = object::namespace(&manifest.object);
        let namespace = if namespace == home { "" } else { namespace };
        let key = (gvk.group, gvk.kind, namespace, object::name(&manifest.object));
        if let Some(first) = seen.insert(key, number) {
            let first = &work.manifests[first];
            let finding = Finding::new("duplicate-object", format!("is also defined at {}:{}", first.file, first.line))
                .hint("keep one of the two, or give one another name");
            work.report(number, &["metadata", "name"], finding);
        }
    }
}

/// Turns the operator's Namespace into the annotations from which consoles create it. Other namespaces cannot be carried.
fn namespaces(work: &mut Work<'_>, workloads: &workloads::Workloads) {
    let home = workloads.namespace.clone();
    if !home.is_empty() {
        object::set_annotation(&mut work.csv, SUGGESTED_NAMESPACE, &home);
    }
    for (number, manifest) in work.of_kind("", "Namespace") {
        if object::name(&manifest.object) != home {
            let finding = Finding::new("unsupported-kind", "OLM does not create namespaces")
                .hint("remove it; the operator is installed into the namespace of its Subscription");
            work.report(number, &["kind"], finding);
            continue;
        }
        let metadata = object::at(&manifest.object, &["metadata"]);
        let labels = metadata.get("labels").filter(|labels| !object::at(labels, &[]).is_null());
        if labels.is_some() || metadata.get("annotations").is_some() {
            let mut template = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": home } });
            for part in ["labels", "annotations"] {
                if let Some(map) = metadata.get(part) {
                    template["metadata"][part] = map.clone();
                }
            }
            object::set_annotation(&mut work.csv, SUGGESTED_NAMESPACE_TEMPLATE, &template.to_string());
            work.project(number, format!("metadata.annotations[{SUGGESTED_NAMESPACE_TEMPLATE}]"));
        }
        work.project(number, format!("metadata.annotations[{SUGGESTED_NAMESPACE}]"));
    }
}

/// Lists custom resources of the bundle's own kinds as examples: OLM does not create them.
fn examples(work: &mut Work<'_>) {
    let defined: Vec<_> = work
        .of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        .map(|(_, crd)| (text(&crd.object, &["spec", "group"]), text(&crd.object, &["spec", "names", "kind"])))
        .collect();
    let mut examples = Vec::new();
    for (number, manifest) in work.manifests.iter().enumerate() {
        let gvk = object::gvk(&manifest.object);
        if !work.destinations[number].is_empty() || !defined.contains(&(gvk.group.as_str(), gvk.kind.as_str())) {
            continue;
        }
        let mut words = "OLM does not create custom resources; it becomes an example";
        if object::annotation(&work.csv, EXAMPLES).is_some() {
            words = "OLM does not create custom resources, and olm.yaml states the examples";
            work.record(number, Destination::Generated("nothing: olm.yaml states the examples".to_owned()));
        } else {
            examples.push(manifest.object.clone());
            work.project(number, format!("metadata.annotations[{EXAMPLES}]"));
        }
        let finding = Finding::new("custom-resource", words)
            .warning()
            .hint("let the operator create it, or instruct users to apply it after the installation");
        work.report(number, &["kind"], finding);
    }
    let annotations = object::map_mut(&mut work.csv, &["metadata", "annotations"]);
    if !examples.is_empty() && !annotations.contains_key(EXAMPLES) {
        annotations.insert(EXAMPLES.to_owned(), Value::Array(examples).to_string().into());
    }
}

/// Leaves what no part took in the bundle, reports what the bundle cannot carry, and closes the account.
fn remainder(mut work: Work<'_>, home: &str) -> Synthesis {
    let mut objects = Vec::new();
    for (number, manifest) in work.manifests.iter().enumerate() {
        let mut destinations = std::mem::take(&mut work.destinations[number]);
        if destinations.is_empty() && !work.faulty.contains(&number) {
            if manifest.kind() == "ClusterServiceVersion" {
                let message = "the input has a ClusterServiceVersion, which is created from the manifests";
                let finding = Finding::new("has-csv", message);
                work.report(number, &["kind"], finding.hint("remove it, or use it as a bundle of type registry+v1"));
            } else if super::steps::is_supported(object::kind(&manifest.object)) {
                destinations.push(Destination::Bundle);
            } else {
                let kind = object::kind(&manifest.object);
                let finding = Finding::new("unsupported-kind", format!("OLM does not install objects of kind {kind}"))
                    .hint("let the operator create it, or remove it and document it for users");
                work.report(number, &["kind"], finding);
            }
        }
        if destinations.contains(&Destination::Bundle) {
            let mut object = work.changed.remove(&number).unwrap_or_else(|| manifest.object.clone());
            let namespace = object::namespace(&object).to_owned();
            if !namespace.is_empty() && namespace == home {
                object::map_mut(&mut object, &["metadata"]).remove("namespace");
            } else if !namespace.is_empty() {
                let finding = Finding::new(
                    "other-namespace",
                    format!("is in namespace {namespace}, but OLM creates it in the namespace of the Subscription"),
                )
                .hint("let the operator create it, or move it to the operator's namespace");
                work.report(number, &["metadata", "namespace"], finding);
            }
            objects.push(object);
        }
        work.destinations[number] = destinations;
    }
    if work.is_cut {
        let message = format!("there are more than {MOST_FINDINGS} findings, and errors among the others");
        work.findings.push(Finding::new("too-many-findings", message).hint("correct these first"));
    }
    let account = account::close(work.manifests, work.destinations);
    let mut findings = work.findings;
    findings.sort_by(|a, b| (a.severity, &a.file, a.line, a.code).cmp(&(b.severity, &b.file, b.line, b.code)));
    Synthesis { csv: without_empty(work.csv), objects, account, findings }
}

/// Removes empty maps and lists from the ClusterServiceVersion's `metadata`: none of them is required there.
fn without_empty(mut csv: Value) -> Value {
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    object::map_mut(&mut csv, &["metadata"]).retain(|_, value| !is_empty(value));
    csv
}
