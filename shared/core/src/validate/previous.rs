//! Compatibility with the previous version: what an update from it to the bundle breaks (olm-behaviour/installplan.md#crds,
//! olm-behaviour/csv.md#permissions-evaluation).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::input::{Input, description_gvk, gvk_text};
use super::rule;
use super::schema::{self, Effect};
use crate::api::cluster_service_version::Csv;
use crate::api::custom_resource_definition::CustomResourceDefinition;
use crate::api::object::{annotation, at, list, name, text};
use crate::bundle::synthesis::Manifest;
use crate::bundle::{File, is_csv};
use crate::finding::Severity;
use crate::rbac::{Granted, described, lacking};
use crate::version::{self, Range};

/// The version that the bundle replaces.
#[derive(Clone, Debug, Default)]
pub struct Previous {
    /// Where it comes from, for messages.
    pub named: String,
    /// Its package; empty if unknown.
    pub package: String,
    /// Its default channel; empty if unknown.
    pub default_channel: String,
    /// Its ClusterServiceVersion.
    pub csv: Value,
    /// All of its objects.
    pub objects: Vec<Value>,
    /// The names of all versions of the package, if they are known.
    pub siblings: Option<BTreeSet<String>>,
}

impl Previous {
    /// Reads the previous version from the files of its bundle; `None` if it has no ClusterServiceVersion.
    pub fn read(path: &str, files: &[File]) -> Option<Self> {
        let input = Input::read(path, files);
        Some(Self {
            named: path.to_owned(),
            package: input.package().to_owned(),
            default_channel: input.annotation("channel.default.v1").unwrap_or_default().to_owned(),
            csv: input.csv.as_ref()?.object.clone(),
            objects: input.objects.iter().map(|manifest| manifest.object.clone()).collect(),
            siblings: None,
        })
    }

    /// Returns the previous version of these objects, of a bundle of a catalog; `None` if there is no ClusterServiceVersion.
    pub fn of_objects(named: &str, package: &str, default_channel: &str, objects: Vec<Value>) -> Option<Self> {
        let csv = objects.iter().find(|object| is_csv(object))?.clone();
        let [named, package, default_channel] = [named, package, default_channel].map(str::to_owned);
        Some(Self { named, package, default_channel, csv, objects, siblings: None })
    }

    fn crds(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(|object| text(object, &["kind"]) == "CustomResourceDefinition")
    }
}

/// Compares the bundle with the previous version.
pub(super) fn check(input: &mut Input, csv: &Manifest, previous: &Previous) {
    let (old, new) = (Csv::new(&previous.csv), Csv::new(&csv.object));
    let package = input.package().to_owned();
    if !previous.package.is_empty() && !package.is_empty() && previous.package != package {
        let message = format!("{} is of package {}, the bundle of package {package}", previous.named, previous.package);
        return input.report(&rule::OTHER_PACKAGE, csv, &[], message);
    }
    if old.name() == new.name() {
        if previous.csv != csv.object {
            let message = format!("{} has the same name and other content", previous.named);
            input.report(&rule::SAME_NAME, csv, &["metadata", "name"], message);
        }
    } else {
        edges(input, csv, previous);
    }
    modes(input, csv, old, new);
    definitions(input, csv, previous);
    permissions(input, csv, old, new);
    requirements(input, csv, old, new);
    let default = input.annotation("channel.default.v1").unwrap_or_default().to_owned();
    if !previous.default_channel.is_empty() && previous.default_channel != default {
        let message = format!("the default channel changes from {} to {}", previous.default_channel, or_none(&default));
        if let Some(file) = input.annotations.clone() {
            let path = ["annotations", "operators.operatorframework.io.bundle.channel.default.v1"];
            input.report(&rule::DEFAULT_CHANNEL_CHANGED, &file, &path, message);
        }
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// Checks the version, and that the bundle updates the previous one.
fn edges(input: &mut Input, csv: &Manifest, previous: &Previous) {
    let (old, new) = (Csv::new(&previous.csv), Csv::new(&csv.object));
    let parsed = |csv: Csv<'_>| version::parse_tolerant(csv.version()).ok();
    let (before, after) = (parsed(old), parsed(new));
    if let (Some(before), Some(after)) = (&before, &after)
        && version::compare(after, before).is_le()
    {
        let message = format!("version {} is not higher than {}, that of {}", new.version(), old.version(), old.name());
        input.report(&rule::VERSION_NOT_HIGHER, csv, &["spec", "version"], message);
    }
    let range = annotation(&csv.object, "olm.skipRange").and_then(|range| Range::parse(range).ok());
    let is_skipped = list(&csv.object, &["spec", "skips"]).iter().any(|skipped| skipped == old.name());
    let is_in_range = range.zip(before).is_some_and(|(range, before)| range.contains(&before));
    if new.replaces() != old.name() && !is_skipped && !is_in_range {
        let replaced = if new.replaces().is_empty() { "nothing".to_owned() } else { new.replaces().to_owned() };
        let message = format!("the bundle replaces {replaced}; {} is not updated to it", old.name());
        input.report(&rule::NOT_AN_UPDATE, csv, &["spec", "replaces"], message);
    }
    if let Some(siblings) = &previous.siblings
        && !new.replaces().is_empty()
        && !siblings.contains(new.replaces())
    {
        let message = format!("{} has no version {}", previous.named, new.replaces());
        input.report(&rule::REPLACES_UNKNOWN, csv, &["spec", "replaces"], message);
    }
}

fn modes(input: &mut Input, csv: &Manifest, old: Csv<'_>, new: Csv<'_>) {
    let supported = |csv: Csv<'_>| -> BTreeSet<String> {
        let modes = csv.install_modes().iter().filter(|mode| at(mode, &["supported"]) == &Value::Bool(true));
        modes.map(|mode| text(mode, &["type"]).to_owned()).collect()
    };
    for mode in supported(old).difference(&supported(new)) {
        let message = format!("install mode {mode} is no longer supported, but {} supports it", old.name());
        input.report(&rule::INSTALL_MODE_DROPPED, csv, &["spec", "installModes"], message);
    }
}

fn definitions(input: &mut Input, csv: &Manifest, previous: &Previous) {
    let crds: Vec<Arc<Manifest>> = input.crds().cloned().collect();
    for old in previous.crds() {
        let Some(new) = crds.iter().find(|crd| name(&crd.object) == name(old)) else {
            let message = format!("CustomResourceDefinition {} is no longer in the bundle", name(old));
            input.report(&rule::CRD_DROPPED, csv, &["spec", "customresourcedefinitions"], message);
            continue;
        };
        definition(input, old, new);
    }
}

fn definition(input: &mut Input, old: &Value, new: &Manifest) {
    for path in [&["spec", "scope"][..], &["spec", "names", "kind"], &["spec", "group"]] {
        let (before, after) = (text(old, path), text(&new.object, path));
        if !before.is_empty() && !after.is_empty() && before != after {
            let message = format!("{} changes from {before} to {after}, which the API server rejects", path.join("."));
            input.report(&rule::CRD_IMMUTABLE, new, path, message);
        }
    }
    let (old_view, new_view) = (CustomResourceDefinition::new(old), CustomResourceDefinition::new(&new.object));
    for version in old_view.versions() {
        let found = new_view.versions().enumerate().find(|(_, v)| v.name() == version.name());
        let message = |words: &str| format!("version {} {words}", version.name());
        let Some((n, kept)) = found else {
            if version.is_stored() {
                let words = "is removed, but custom resources are stored in it";
                input.report(&rule::STORED_VERSION_DROPPED, new, &["spec", "versions"], message(words));
            } else if version.is_served() {
                input.report(&rule::SERVED_VERSION_DROPPED, new, &["spec", "versions"], message("is removed"));
            }
            continue;
        };
        let n = n.to_string();
        if version.is_served() && !kept.is_served() {
            let path = ["spec", "versions", &n, "served"];
            input.report(&rule::SERVED_VERSION_DROPPED, new, &path, message("is no longer served"));
        }
        if !version.is_served() || !kept.is_served() {
            continue;
        }
        let before = schema_of(old, version.json);
        let after = schema_of(&new.object, kept.json);
        let place = ["spec", "versions", n.as_str(), "schema", "openAPIV3Schema"];
        for change in schema::changes(before, after) {
            let rule = match change.effect {
                Effect::Rejects => &rule::SCHEMA_STRICTER,
                Effect::Drops => &rule::FIELD_DROPPED,
                Effect::MayReject => &rule::SCHEMA_CONDITION,
            };
            let path: Vec<&str> = place.into_iter().chain(change.path.iter().map(String::as_str)).collect();
            let text = format!("version {}: {}", version.name(), change.message);
            // OLM only warns if a webhook may convert the custom resources.
            let is_converted = new_view.is_converted_by_webhook() && change.effect == Effect::Rejects;
            let severity = if is_converted { Severity::Warning } else { rule.severity };
            input.report_as(severity, rule, new, &path, text);
        }
    }
}

/// Returns the schema of a version, or that of all versions.
fn schema_of<'a>(crd: &'a Value, version: &'a Value) -> &'a Value {
    match at(version, &["schema", "openAPIV3Schema"]) {
        Value::Null => at(crd, &["spec", "validation", "openAPIV3Schema"]),
        schema => schema,
    }
}

/// Reports the permissions that the operator did not have, regardless of which of its ServiceAccounts has them.
fn permissions(input: &mut Input, csv: &Manifest, old: Csv<'_>, new: Csv<'_>) {
    fn rules<'a>(permissions: impl Iterator<Item = &'a Value>) -> Vec<&'a Value> {
        permissions.flat_map(|permission| list(permission, &["rules"])).collect()
    }
    let everywhere = Granted::from_rules(rules(old.cluster_permissions().iter()));
    let in_namespace = Granted::from_rules(rules(old.permissions().iter().chain(old.cluster_permissions())));
    let lists = [
        ("permissions", new.permissions(), &in_namespace, "in its namespaces"),
        ("clusterPermissions", new.cluster_permissions(), &everywhere, "in the whole cluster"),
    ];
    for (field, permissions, granted, place) in lists {
        for (n, permission) in permissions.iter().enumerate() {
            for (m, policy) in list(permission, &["rules"]).iter().enumerate() {
                let is_granted = |rule: &Value| granted.allows(rule).is_ok_and(|granted| granted);
                let added: Vec<String> = lacking(policy, is_granted).iter().map(described).collect();
                if added.is_empty() {
                    continue;
                }
                let message = format!("the operator may now {} {place}", added.join("; "));
                let path = ["spec", "install", "spec", field, &n.to_string(), "rules", &m.to_string()];
                input.report(&rule::PERMISSION_ADDED, csv, &path, message);
            }
        }
    }
}

fn requirements(input: &mut Input, csv: &Manifest, old: Csv<'_>, new: Csv<'_>) {
    let min = |csv: Csv<'_>| version::parse_tolerant(text(csv.json, &["spec", "minKubeVersion"])).ok();
    if let Some(after) = min(new)
        && min(old).is_none_or(|before| version::compare(&after, &before).is_gt())
    {
        let before = or_none(text(old.json, &["spec", "minKubeVersion"]));
        let message = format!("minKubeVersion changes from {before} to {after}");
        input.report(&rule::MIN_KUBE_VERSION_RAISED, csv, &["spec", "minKubeVersion"], message);
    }
    let known: BTreeSet<_> = old.required_crds().iter().map(description_gvk).collect();
    for (n, required) in new.required_crds().iter().enumerate() {
        let (group, version, kind) = description_gvk(required);
        if !known.contains(&(group, version, kind)) {
            let message = format!("the bundle now requires {}", gvk_text(group, version, kind));
            let path = ["spec", "customresourcedefinitions", "required", &n.to_string()];
            input.report(&rule::REQUIREMENT_ADDED, csv, &path, message);
        }
    }
}
