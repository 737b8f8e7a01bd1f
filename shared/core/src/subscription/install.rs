//! Creates an InstallPlan from a resolution, and links Subscriptions to it
//! (olm-behaviour/subscription.md#solution-to-steps,
//! olm-behaviour/subscription.md#bundle-lookups, olm-behaviour/installplan.md#creation).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::status::Draft;
use crate::api::install_plan::{InstallPlan, Phase, Step};
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::api::subscription::Approval;
use crate::bundle::property::{self, Property};
use crate::bundle::steps::{self, BundleSource};
use crate::bundle::{BundleContent, BundleImage, optional, reference};
use crate::catalog::Entry;
use crate::go_format;
use crate::plan::Reason;
use crate::resolver::{Chosen, Failure, Resolution};
use crate::unpack::{Images, Pending};

/// Maximum size of the manifests in one InstallPlan, in bytes. etcd limits objects to 1.5 MiB, in which the quotes of
/// manifests are escaped.
const LARGEST_PLAN: usize = 900_000;

/// What is to be installed.
#[derive(Debug, Default)]
pub(super) struct Install {
    /// The steps of the InstallPlan.
    steps: Vec<Value>,
    /// The bundles that were unpacked from their images.
    lookups: Vec<Value>,
    /// Those of them that Jobs have unpacked, by ClusterServiceVersion: the steps refer to the Job's ConfigMap.
    referred: BTreeSet<String>,
    /// The images that contain parts of it.
    pub(super) images: BTreeSet<BundleImage>,
    /// The bundles whose images are missing: nothing is installed without them.
    pub(super) pending: Vec<Pending>,
    /// The new ClusterServiceVersion of each Subscription.
    updates: Vec<(String, String)>,
    /// Why parts of it cannot be installed.
    pub(super) reasons: Vec<Reason>,
}

/// A bundle to install.
pub(super) struct Need<'n, 'i, 's> {
    pub(super) chosen: &'n Chosen<'i>,
    /// The Subscriptions that it is for; empty for a dependency, which gets a Subscription of its own.
    pub(super) matches: Vec<&'n Draft<'s>>,
}

/// Returns the parts of a resolution that do not exist yet.
pub(super) fn needs<'n, 'i, 's>(
    resolution: &'n Resolution<'i>,
    subscriptions: &'n [Draft<'s>],
    exists: impl Fn(&str) -> bool,
) -> Vec<Need<'n, 'i, 's>> {
    let need = |chosen: &'n Chosen<'i>| {
        let Chosen { catalog, entry, .. } = chosen;
        let is_match = |s: &&Draft<'_>| {
            let wanted = s.requested(false);
            wanted.package == entry.package
                && (wanted.channel.is_empty() || wanted.channel == entry.channel)
                && wanted.takes_from(catalog.name, catalog.namespace)
        };
        let matches: Vec<&Draft<'s>> = subscriptions.iter().filter(is_match).collect();
        let is_current = matches.iter().all(|s| s.planned().current_csv() == entry.name);
        let is_there = !matches.is_empty() && is_current && exists(&entry.name);
        (!is_there).then_some(Need { chosen, matches })
    };
    resolution.bundles.iter().filter_map(need).collect()
}

/// The next action for an InstallPlan.
pub(super) enum Make {
    /// Create it.
    Create(Value),
    /// Write its first status.
    Fill(Value),
}

impl Install {
    /// Returns the steps for the parts of a resolution that do not exist yet. With `optional_manifests`, those that their
    /// bundle declares optional are marked.
    pub(super) fn new(
        namespace: &str,
        resolution: &Resolution<'_>,
        subscriptions: &[Draft<'_>],
        optional_manifests: bool,
        exists: impl Fn(&str) -> bool,
        images: &Images<'_, '_>,
    ) -> Result<Self, Failure> {
        let mut install = Self::default();
        for Need { chosen, matches } in needs(resolution, subscriptions, exists) {
            let Chosen { catalog, entry, replaces } = chosen;
            let source = BundleSource {
                catalog: catalog.name,
                catalog_namespace: catalog.namespace,
                csv: &entry.name,
                replaces,
            };
            let content = inline(chosen);
            if content.is_none() && entry.bundle_path.is_empty() {
                let object = format!("bundle {} of catalog {}/{}", entry.name, catalog.namespace, catalog.name);
                let needs = "objects, or an image, in its catalog".to_owned();
                return Ok(Self { reasons: vec![Reason::Missing { object, needs }], ..Self::default() });
            }
            let properties = json!(properties(entry));
            let steps = match content {
                Some(content) => {
                    Some(steps::of_content(&source, namespace, &content, &properties).map_err(Failure::Error)?)
                }
                None => install.unpack(&source, namespace, entry, &properties, images),
            };
            let mut steps = steps.unwrap_or_default();
            if optional_manifests {
                install.reasons.extend(mark_optional(&mut steps, chosen));
            }
            install.steps.extend(steps);
            if matches.is_empty() {
                install.steps.push(steps::of_subscription(&source, namespace, &entry.package, &entry.channel));
            }
            let updated = matches.iter().filter(|s| s.planned().current_csv() != entry.name);
            install.updates.extend(updated.map(|s| (s.view.name().to_owned(), entry.name.clone())));
        }
        steps::order(&mut install.steps);
        Ok(install)
    }

    /// Returns the steps of a bundle from its image; `None` as long as the image is missing.
    fn unpack(
        &mut self,
        source: &BundleSource<'_>,
        namespace: &str,
        entry: &Entry,
        properties: &Value,
        images: &Images<'_, '_>,
    ) -> Option<Vec<Value>> {
        let image = BundleImage {
            namespace: namespace.to_owned(),
            catalog_namespace: source.catalog_namespace.to_owned(),
            catalog: source.catalog.to_owned(),
            image: entry.bundle_path.clone(),
        };
        let steps = images.content(&entry.name, &image).and_then(|content| {
            let steps = steps::of_content(source, namespace, &content, properties).and_then(|steps| {
                // The CSV that the Subscription waits for would never exist.
                match steps.first().map_or("", |s| Step::new(s).name()) {
                    name if name == entry.name => Ok(steps),
                    other => Err(format!("it holds {other}, but its catalog states {}", entry.name)),
                }
            });
            steps.map_err(|message| images.broken(&entry.name, &image, message))
        });
        if images.has_job(&image) {
            self.referred.insert(entry.name.clone());
        }
        self.images.insert(image);
        let lookup = json!({
            "path": entry.bundle_path,
            "identifier": entry.name,
            "replaces": source.replaces,
            "catalogSourceRef": { "namespace": source.catalog_namespace, "name": source.catalog },
            "properties": go_format::json(&json!({ "properties": properties })),
        });
        match steps {
            Ok(steps) => {
                self.lookups.push(lookup);
                Some(steps)
            }
            Err(pending) => {
                self.pending.push(*pending);
                None
            }
        }
    }

    /// Returns the names of the ClusterServiceVersions, in the order of the steps.
    fn csv_names(&self) -> Vec<&str> {
        let is_csv = |s: &&Value| Step::new(s).is_csv();
        self.steps.iter().filter(is_csv).map(|s| Step::new(s).name()).collect()
    }

    /// Returns the InstallPlan to create, or the one that was created and has no status yet.
    pub(super) fn make(&self, namespace: &str, subscriptions: &[Draft<'_>], plans: &[&Value]) -> Option<Make> {
        if self.updates.is_empty() {
            return None;
        }
        let manual = subscriptions.iter().any(|s| s.view.approval() == Approval::Manual);
        let spec = |generation: i64| {
            json!({
                "clusterServiceVersionNames": self.csv_names(),
                "approval": if manual { Approval::Manual } else { Approval::Automatic },
                "approved": !manual,
                "generation": generation,
            })
        };
        let known = subscriptions.iter().map(|s| s.planned().plan_generation()).max().unwrap_or_default();
        let newest = plans.iter().map(|p| generation(p)).max().unwrap_or_default();
        let owners: Vec<Value> = subscriptions.iter().map(|s| object::owner_reference(s.view.json, false)).collect();
        let is_empty = |p: &&&Value| {
            generation(p) > known
                && InstallPlan::new(p).phase() == Phase::None
                && object::at(p, &["spec"]) == &spec(generation(p))
                && subscriptions.iter().all(|s| is_owned(p, s))
        };
        if let Some(plan) = plans.iter().filter(is_empty).max_by_key(|p| generation(p)) {
            return Some(Make::Fill(self.filled(plan, manual)));
        }
        Some(Make::Create(json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "InstallPlan",
            "metadata": { "generateName": "install-", "namespace": namespace, "ownerReferences": owners },
            "spec": spec(known.max(newest) + 1),
        })))
    }

    /// Links the Subscriptions to the InstallPlan that was created for them.
    pub(super) fn link(&self, subscriptions: &mut [Draft<'_>], plan: &Value) {
        for (name, csv) in &self.updates {
            if let Some(subscription) = subscriptions.iter_mut().find(|s| s.view.name() == name) {
                subscription.link_generation(plan, csv);
            }
        }
    }

    /// Returns whether there is nothing to install.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the InstallPlan with its first status.
    pub(super) fn filled(&self, plan: &Value, manual: bool) -> Value {
        let catalogs: BTreeSet<&str> = self.steps.iter().map(|s| Step::new(s).source()).collect();
        let mut plan = plan.clone();
        plan["status"] = json!({
            "phase": if manual { Phase::RequiresApproval } else { Phase::Installing },
            "catalogSources": catalogs,
            "plan": self.steps,
        });
        if !self.lookups.is_empty() {
            plan["status"]["bundleLookups"] = json!(self.lookups);
            self.refer(&mut plan);
        }
        plan
    }
}

impl Install {
    /// Makes the steps refer to the manifests that Jobs have put into ConfigMaps, as OLM's do; and to those in images, when
    /// the InstallPlan would be too large with them.
    fn refer(&self, plan: &mut Value) {
        let size = |step: &Value| Step::new(step).manifest().len();
        let is_large = self.steps.iter().map(size).sum::<usize>() > LARGEST_PLAN;
        for lookup in &self.lookups {
            let text = |path: &[&str]| object::text(lookup, path);
            if !is_large && !self.referred.contains(text(&["identifier"])) {
                continue;
            }
            let source = BundleSource {
                catalog: text(&["catalogSourceRef", "name"]),
                catalog_namespace: text(&["catalogSourceRef", "namespace"]),
                csv: text(&["identifier"]),
                replaces: text(&["replaces"]),
            };
            let manifest = reference::to_manifest(text(&["path"]), &source, text(&["properties"]));
            for step in plan["status"]["plan"].as_array_mut().into_iter().flatten() {
                // The Subscription of a dependency is generated here; optional objects may be created much later.
                let is_subscription = Step::new(step).kind() == "Subscription";
                let stays = is_subscription || Step::new(step).is_optional();
                if Step::new(step).resolving() == source.csv && !stays {
                    step["resource"]["manifest"] = manifest.as_str().into();
                }
            }
        }
    }
}

/// Returns the objects of a bundle that its catalog contains; `None` if only its image can contain them.
fn inline(Chosen { catalog, entry, .. }: &Chosen<'_>) -> Option<BundleContent> {
    let content = catalog.snapshot.bundle(&entry.package, &entry.channel, &entry.name)?;
    // A catalog of images may contain a generated CSV, for display.
    let is_whole = || {
        let csv: Value = serde_json::from_str(&content.csv_json).unwrap_or_default();
        !object::at(&csv, &["spec", "install", "spec", "deployments"]).is_null()
    };
    (entry.bundle_path.is_empty() || is_whole()).then_some(content)
}

/// Returns the properties of a bundle without duplicates: the resolver's list contains some requirements twice.
fn properties(entry: &Entry) -> Vec<&Property> {
    let mut properties: Vec<&Property> = Vec::new();
    for property in entry.properties.iter() {
        if !properties.contains(&property) {
            properties.push(property);
        }
    }
    properties
}

/// Marks the steps that the bundle declares optional. Returns what cannot be read of the declaration.
fn mark_optional(steps: &mut [Value], Chosen { catalog, entry, .. }: &Chosen<'_>) -> Vec<Reason> {
    let properties: Vec<Value> = entry.properties.iter().map(|p| json!(p)).collect();
    let object = format!("bundle {} of catalog {}/{}", entry.name, catalog.namespace, catalog.name);
    let ignored = |why: String| {
        let message = format!("its property {} is ignored: {why}", property::MANIFESTS_OPTIONAL);
        Reason::Ignored { object: object.clone(), message }
    };
    optional::mark(steps, &properties).into_iter().map(ignored).collect()
}

fn generation(plan: &Value) -> i64 {
    InstallPlan::new(plan).generation()
}

fn is_owned(plan: &Value, subscription: &Draft<'_>) -> bool {
    let owners = Metadata::new(plan).owner_references();
    owners.iter().any(|o| object::text(o, &["uid"]) == object::uid(subscription.view.json))
}

/// Links Subscriptions to the InstallPlans that created them, and to one that was created for them and is not recorded yet,
/// because of a crash or a conflict.
pub(super) fn link(subscriptions: &mut [Draft<'_>], plans: &[&Value]) {
    for subscription in subscriptions.iter_mut() {
        subscription.link_to_maker(plans);
    }
    let written = plans.iter().filter(|p| InstallPlan::new(p).phase() != Phase::None);
    let Some(plan) = written.max_by_key(|p| generation(p)) else { return };
    // Several Subscriptions are written one after another: some may have recorded it, others not.
    let unaware = |s: &Draft<'_>| s.planned().plan_generation() < generation(plan) && is_owned(plan, s);
    if !subscriptions.iter().any(unaware) {
        return;
    }
    let steps = InstallPlan::new(plan).steps_json();
    for step in steps.iter().filter(|s| Step::new(s).is_csv()) {
        let resource = |key| object::text(step, &["resource", key]);
        let csv = resource("name");
        let Some(package) = package_of(resource("manifest")) else { continue };
        for subscription in subscriptions.iter_mut().filter(|s| unaware(s)) {
            let wanted = subscription.requested(false);
            let is_match =
                wanted.package == package && wanted.takes_from(resource("sourceName"), resource("sourceNamespace"));
            if is_match && subscription.planned().current_csv() != csv {
                subscription.link_generation(plan, csv);
            }
        }
    }
}

/// Returns the package that the CSV in a manifest, or a reference to it, belongs to.
fn package_of(manifest: &str) -> Option<String> {
    let properties = reference::properties(manifest).or_else(|| {
        let csv: Value = serde_json::from_str(manifest).ok()?;
        let annotation = object::annotation(&csv, "operatorframework.io/properties")?;
        let properties: Value = serde_json::from_str(annotation).ok()?;
        Some(object::at(&properties, &["properties"]).clone())
    })?;
    let mut packages = properties.as_array()?.iter().filter(|p| p["type"] == property::PACKAGE);
    packages.next_back().map(|p| object::text(p, &["value", "packageName"]).to_owned())
}
