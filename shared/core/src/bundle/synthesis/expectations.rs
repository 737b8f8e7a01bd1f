//! What the bundle expects of a cluster and does not contain: definitions of the objects that stay in it, priority classes, and API
//! versions that Kubernetes has removed. OLM fails the InstallPlan, or the Deployments do not become available.

use std::collections::BTreeSet;

use super::apis::is_built_in;
use super::workloads::Workloads;
use super::{Manifest, Work};
use crate::api::kinds::API_EXTENSIONS;
use crate::api::object::{self, Gvk, list, text};
use crate::finding::{Finding, Severity};

/// The group of OLM's own kinds, which every cluster with OLM serves.
const OLM: &str = "operators.coreos.com";
/// What the names of the PriorityClasses begin with that exist in every cluster.
const SYSTEM: &str = "system-";
/// The first version of Kubernetes without CustomResourceDefinitions of v1beta1.
const WITHOUT_BETA: semver::Version = semver::Version::new(1, 22, 0);

/// Reports a CustomResourceDefinition of an API version that Kubernetes has removed.
fn definition(work: &mut Work<'_>, number: usize, manifest: &Manifest) {
    let Gvk { version, .. } = object::gvk(&manifest.object);
    if version == "v1" {
        return;
    }
    let message = format!("the API version {API_EXTENSIONS}/{version} was removed in Kubernetes {WITHOUT_BETA}");
    let mut finding = Finding::new("removed-api", message).hint(
        "convert it to apiextensions.k8s.io/v1: list spec.versions, each with a schema; controller-gen writes this version",
    );
    let oldest = text(&work.csv, &["spec", "minKubeVersion"]).trim_start_matches('v');
    if semver::Version::parse(oldest).is_ok_and(|oldest| oldest < WITHOUT_BETA) {
        finding.severity = Severity::Warning;
    }
    work.report(number, &["apiVersion"], finding);
}

/// Reports removed API versions, objects that stay in the bundle whose kind another operator defines, each kind once, and missing priority
/// classes.
pub(super) fn report(work: &mut Work<'_>, workloads: &Workloads) {
    for (number, manifest) in work.of_kind(API_EXTENSIONS, "CustomResourceDefinition") {
        definition(work, number, manifest);
    }
    foreign_objects(work);
    let classes: BTreeSet<&str> =
        work.of_kind("scheduling.k8s.io", "PriorityClass").map(|(_, class)| object::name(&class.object)).collect();
    let path = ["spec", "template", "spec", "priorityClassName"];
    for workload in &workloads.all {
        let class = text(&work.manifests[workload.number].object, &path);
        if !class.is_empty() && !class.starts_with(SYSTEM) && !classes.contains(class) {
            let message = format!("its pods have the PriorityClass {class}, which is not in the input");
            let finding = Finding::new("missing-priority-class", message).warning();
            let hint = "add the PriorityClass to the manifests: without it no pod is created";
            work.report(workload.number, &path, finding.hint(hint));
        }
    }
}

fn foreign_objects(work: &mut Work<'_>) {
    let mut known: BTreeSet<(&str, &str)> = work
        .of_kind(API_EXTENSIONS, "CustomResourceDefinition")
        .map(|(_, crd)| (text(&crd.object, &["spec", "group"]), text(&crd.object, &["spec", "names", "kind"])))
        .collect();
    let required: Vec<(String, String)> = list(&work.csv, &["spec", "customresourcedefinitions", "required"])
        .iter()
        .map(|api| {
            let group = text(api, &["name"]).split_once('.').map_or("", |(_, group)| group);
            (group.to_owned(), text(api, &["kind"]).to_owned())
        })
        .collect();
    known.extend(required.iter().map(|(group, kind)| (group.as_str(), kind.as_str())));
    for (number, manifest) in work.manifests.iter().enumerate() {
        let Gvk { group, version, kind } = object::gvk(&manifest.object);
        let is_carried = work.destinations[number].is_empty() && crate::bundle::steps::is_supported(&kind);
        if !is_carried || is_built_in(&group) || group == OLM || known.contains(&(group.as_str(), kind.as_str())) {
            continue;
        }
        let api_version = text(&manifest.object, &["apiVersion"]);
        let group = api_version.split('/').next().unwrap_or_default();
        known.insert((group, manifest.kind()));
        let message = format!("OLM fails the installation on clusters that do not serve {kind} of {group}/{version}");
        let finding = Finding::new("foreign-kind", message).warning().hint(format!(
            "add {{group: {group}, version: {version}, kind: {kind}, resource: …}} to requiredAPIs in metadata/olm.yaml, so that the operator is installed only with the one that defines it; or leave out these objects"
        ));
        work.report(number, &["kind"], finding);
    }
}
