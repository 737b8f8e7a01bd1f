//! Provided and required APIs, from CustomResourceDefinitions, APIServices and the operator's rules (bundle-format.md#what-is-inferred).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Work;
use super::account::Destination;
use super::metadata::{DEPENDENCY, Metadata, RequiredApi};
use super::permissions::BoundRule;
use super::serving::ServedGroup;
use crate::api::kinds::API_EXTENSIONS;
use crate::api::names::guess_plural;
use crate::api::object::{self, Gvk, at, list, text};
use crate::bundle::crd_apis;
use crate::finding::Finding;

/// API groups that Kubernetes serves, beside those that end in `.k8s.io`.
const NATIVE_GROUPS: [&str; 6] = ["", "apps", "autoscaling", "batch", "extensions", "policy"];

/// API groups ending in `.k8s.io` that Kubernetes serves or served itself. The others are of CustomResourceDefinitions or aggregated.
const BUILT_IN_GROUPS: [&str; 20] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "auditregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "imagepolicy.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Maximum number of resources that the rules of an operator name. More than any cluster serves.
const MOST_RESOURCES: usize = 10_000;

/// The kinds and versions behind the plural names of rules, as a cluster or a catalog knows them.
#[derive(Clone, Debug, Default)]
pub struct KnownApis {
    kinds: BTreeMap<(String, String), Gvk>,
    /// The API groups and versions that API servers of extensions serve.
    aggregated: BTreeSet<(String, String)>,
}

impl KnownApis {
    /// Adds an API. Of several versions the most stable one is used, and of those the highest, as in Kubernetes.
    pub fn add(&mut self, gvk: Gvk, plural: &str) {
        let entry = self.kinds.entry((gvk.group.clone(), plural.to_owned())).or_insert_with(|| gvk.clone());
        if stability(&gvk.version) > stability(&entry.version) {
            *entry = gvk;
        }
    }

    /// Returns the version and the kind of a resource of an API group.
    fn find(&self, group: &str, resource: &str) -> Option<&Gvk> {
        self.kinds.get(&(group.to_owned(), resource.to_owned()))
    }

    /// Records that an APIService, and not a CustomResourceDefinition, provides an API group and version.
    pub fn add_aggregated(&mut self, group: &str, version: &str) {
        self.aggregated.insert((group.to_owned(), version.to_owned()));
    }

    fn is_aggregated(&self, gvk: &Gvk) -> bool {
        self.aggregated.contains(&(gvk.group.clone(), gvk.version.clone()))
    }
}

/// Returns the rank of a version: `v1` before `v1beta1` before `v1alpha1`, then by numbers.
fn stability(version: &str) -> Option<(u8, u32, u32)> {
    let version = version.strip_prefix('v')?;
    let (stage, (major, minor)) = match (version.split_once("beta"), version.split_once("alpha")) {
        (Some(parts), _) => (1, parts),
        (_, Some(parts)) => (0, parts),
        _ => (2, (version, "0")),
    };
    Some((stage, major.parse().ok()?, minor.parse().ok()?))
}

/// Returns whether an API group counts as one that Kubernetes serves (bundle-format.md#what-is-inferred).
fn is_native(group: &str) -> bool {
    NATIVE_GROUPS.contains(&group) || group.ends_with(".k8s.io")
}

/// Returns whether Kubernetes itself serves an API group, or served it.
pub(super) fn is_built_in(group: &str) -> bool {
    NATIVE_GROUPS.contains(&group) || BUILT_IN_GROUPS.contains(&group)
}

/// Writes the provided and required APIs.
pub(super) fn infer(
    work: &mut Work<'_>,
    rules: &[BoundRule<'_>],
    served: &[ServedGroup],
    metadata: &Metadata,
    known: &KnownApis,
) {
    let provided = provided_definitions(work, metadata);
    refuse_wildcards(work, rules);
    let used = used_resources(rules);
    provided_services(work, served, &used, metadata, known);
    let mut required: BTreeMap<String, RequiredApi> = metadata.required().into_iter().collect();
    for Used { group, resource, number, path, is_optional } in used {
        let is_provided = provided.contains(group) || served.iter().any(|served| served.group == group);
        if is_native(group) {
            let is_declared = is_provided
                || is_optional
                || metadata.is_optional(group, resource)
                || required.contains_key(&format!("{resource}.{group}"));
            if group.ends_with(".k8s.io") && !BUILT_IN_GROUPS.contains(&group) && !is_declared {
                report_extension(work, group, resource, number, &path);
            }
            continue;
        }
        if is_provided
            || is_optional
            || metadata.is_optional(group, resource)
            || required.contains_key(&format!("{resource}.{group}"))
        {
            continue;
        }
        match known.find(group, resource) {
            Some(gvk) => {
                let is_aggregated = known.is_aggregated(gvk);
                let api = RequiredApi { gvk: gvk.clone(), is_aggregated, description: Map::new() };
                required.insert(format!("{resource}.{group}"), api);
            }
            None => {
                let finding = Finding::new(
                    "unknown-kind",
                    format!("requires the API {resource}.{group}, whose kind and version the bundle does not state"),
                )
                .hint(format!(
                    "state them under requiredAPIs in metadata/olm.yaml, or look them up with --context or --catalog; if the operator also works without the API, list it under optionalAPIs, or annotate the binding with {DEPENDENCY}=optional"
                ));
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                work.report(number, &path, work.format.graded(finding));
            }
        }
    }
    for (name, RequiredApi { gvk, is_aggregated, description }) in required {
        let mut entry = description;
        entry.insert("version".to_owned(), gvk.version.into());
        entry.insert("kind".to_owned(), gvk.kind.into());
        let field = if is_aggregated {
            let plural = name.strip_suffix(&format!(".{}", gvk.group)).unwrap_or(&name);
            entry.insert("name".to_owned(), plural.into());
            entry.insert("group".to_owned(), gvk.group.into());
            "apiservicedefinitions"
        } else {
            entry.insert("name".to_owned(), name.into());
            "customresourcedefinitions"
        };
        work.push(&["spec", field, "required"], Value::Object(entry));
    }
}

/// Reports an API that counts as one of Kubernetes by the name of its group, but is an extension, as that of the Gateway API.
fn report_extension(work: &mut Work<'_>, group: &str, resource: &str, number: usize, path: &[String]) {
    let message =
        format!("uses the API {resource}.{group}, which Kubernetes itself does not serve; it is not inferred");
    let finding = Finding::new("extension-api", message).warning().hint(format!(
        "if the operator needs it, add {{group: {group}, version: …, kind: …, resource: {resource}}} to requiredAPIs in metadata/olm.yaml, else list it under optionalAPIs"
    ));
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    work.report(number, &path, finding);
}

/// Writes each served version of each CustomResourceDefinition, and returns their API groups.
fn provided_definitions<'a>(work: &mut Work<'a>, metadata: &Metadata) -> BTreeSet<&'a str> {
    let mut groups = BTreeSet::new();
    for (number, manifest) in work.of_kind(API_EXTENSIONS, "CustomResourceDefinition") {
        groups.insert(text(&manifest.object, &["spec", "group"]));
        let versions = list(&manifest.object, &["spec", "versions"]);
        let is_served = |version: &str| {
            !versions.iter().any(|v| text(v, &["name"]) == version && at(v, &["served"]).as_bool() == Some(false))
        };
        // OLM waits for the listed versions to be served.
        for gvk in crd_apis(&manifest.object).into_iter().filter(|gvk| is_served(&gvk.version)) {
            let mut entry = metadata.description_of(&gvk, Some(&manifest.object));
            entry.insert("name".to_owned(), object::name(&manifest.object).into());
            entry.insert("version".to_owned(), gvk.version.into());
            entry.insert("kind".to_owned(), gvk.kind.into());
            let field = work.push(&["spec", "customresourcedefinitions", "owned"], Value::Object(entry));
            work.project(number, field);
        }
        work.record(number, Destination::Bundle);
    }
    groups
}

/// Writes each kind of each APIService. An APIService states no kinds: they come from olm.yaml, else from the rules.
fn provided_services(
    work: &mut Work<'_>,
    served: &[ServedGroup],
    used: &[Used<'_>],
    metadata: &Metadata,
    known: &KnownApis,
) {
    for ServedGroup { number, group, version, endpoint } in served {
        let mut kinds: Vec<(String, Option<String>)> = metadata.kinds_of(group, version);
        if kinds.is_empty() {
            let from_rules = used.iter().filter(|used| used.group == group);
            let gvks = from_rules.filter_map(|used| {
                known.find(group, used.resource).map(|gvk| (gvk.kind.clone(), Some(used.resource.to_owned())))
            });
            kinds = gvks.collect();
            kinds.sort();
            kinds.dedup();
        }
        if kinds.is_empty() {
            let finding = Finding::new("unknown-kind", format!("serves {group}/{version}, but the bundle does not state which kinds"))
                .hint(format!("state each under apis in metadata/olm.yaml: {{group: {group}, version: {version}, kind: …, resource: …}}"));
            work.report(*number, &["spec"], finding);
        }
        for (kind, resource) in kinds {
            let mut entry: Map<String, Value> = metadata.description_of(&Gvk::new(group, version, &kind), None);
            entry.extend(endpoint.clone());
            let plural = resource.unwrap_or_else(|| guess_plural(&kind));
            entry.insert("name".to_owned(), plural.into());
            entry.insert("group".to_owned(), group.as_str().into());
            entry.insert("version".to_owned(), version.as_str().into());
            entry.insert("kind".to_owned(), kind.into());
            // The description of an APIService has no target port: OLM's Service uses the container's port.
            if let Some(target) = entry.remove("targetPort").and_then(|target| target.as_i64()) {
                entry.insert("containerPort".to_owned(), target.into());
            }
            let field = work.push(&["spec", "apiservicedefinitions", "owned"], Value::Object(entry));
            work.project(*number, field);
        }
    }
}

/// A resource that a rule names.
struct Used<'a> {
    group: &'a str,
    resource: &'a str,
    number: usize,
    path: Vec<String>,
    is_optional: bool,
}

/// Returns the resources of the rules, each once, in their order: optional only if every binding states it.
fn used_resources<'a>(rules: &[BoundRule<'a>]) -> Vec<Used<'a>> {
    let mut used: Vec<Used<'a>> = Vec::new();
    let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for BoundRule { number, path, rule, is_optional } in rules {
        for group in list(rule, &["apiGroups"]).iter().filter_map(Value::as_str).filter(|group| *group != "*") {
            for resource in list(rule, &["resources"]).iter().filter_map(Value::as_str) {
                // Subresources are served with their resource.
                let resource = resource.split('/').next().unwrap_or_default();
                if resource == "*" || resource.is_empty() {
                    continue;
                }
                match numbers.get(&(group, resource)) {
                    Some(known) => used[*known].is_optional &= is_optional,
                    None if used.len() >= MOST_RESOURCES => return used,
                    None => {
                        numbers.insert((group, resource), used.len());
                        used.push(Used {
                            group,
                            resource,
                            number: *number,
                            path: path.clone(),
                            is_optional: *is_optional,
                        });
                    }
                }
            }
        }
    }
    used
}

/// Reports wildcards: which APIs such a rule requires cannot be inferred.
fn refuse_wildcards(work: &mut Work<'_>, rules: &[BoundRule<'_>]) {
    for BoundRule { number, path, rule, .. } in rules {
        for field in ["apiGroups", "resources"] {
            let is_wildcard = |value: &Value| value.as_str().is_some_and(|text| text == "*" || text.starts_with("*/"));
            if list(rule, &[field]).iter().any(is_wildcard) {
                let finding = Finding::new("wildcard-rule", format!("grants the operator any of {field} (\"*\")"))
                    .hint(format!(
                        "list the {field} that the operator uses; from a wildcard its required APIs cannot be inferred"
                    ));
                let path: Vec<&str> = path.iter().map(String::as_str).chain([field]).collect();
                work.report(*number, &path, work.format.graded(finding));
            }
        }
        if !at(rule, &["nonResourceURLs"]).is_null() {
            // Native APIs: served by every API server. The field nativeAPIs lists kinds, and OLM waits for those, so
            // URLs are not in it (differences.md).
            work.project(*number, "spec.install.spec.clusterPermissions (nonResourceURLs: native APIs)");
        }
    }
}
