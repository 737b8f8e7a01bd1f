//! From a resolution to an InstallPlan, and from an InstallPlan back to its Subscriptions (reference/catalog-operator.md §3.8,
//! §5.1).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::status::{Subscription, phase};
use crate::api::object;
use crate::bundle::optional;
use crate::bundle::property::{self, Property};
use crate::bundle::steps::{self, BundleSource};
use crate::plan::Reason;
use crate::resolver::{Chosen, Failure, Resolution};

/// What is to be installed.
#[derive(Debug, Default)]
pub(super) struct Install {
    /// The steps of the InstallPlan.
    steps: Vec<Value>,
    /// Which Subscription gets which new ClusterServiceVersion.
    updates: Vec<(String, String)>,
    /// Why some of it cannot be installed.
    pub(super) reasons: Vec<Reason>,
}

/// A bundle to install.
pub(super) struct Need<'n, 'i, 's> {
    pub(super) chosen: &'n Chosen<'i>,
    /// The Subscriptions that it is for. None: it is a dependency and gets one of its own.
    pub(super) matches: Vec<&'n Subscription<'s>>,
}

/// What of a resolution is not there yet.
pub(super) fn needs<'n, 'i, 's>(
    resolution: &'n Resolution<'i>,
    subscriptions: &'n [Subscription<'s>],
    exists: impl Fn(&str) -> bool,
) -> Vec<Need<'n, 'i, 's>> {
    let need = |chosen: &'n Chosen<'i>| {
        let Chosen { catalog, entry, .. } = chosen;
        let is_match = |s: &&Subscription<'_>| {
            let wanted = s.wanted(false);
            wanted.package == entry.package
                && (wanted.channel.is_empty() || wanted.channel == entry.channel)
                && wanted.takes_from(catalog.name, catalog.namespace)
        };
        let matches: Vec<&Subscription<'s>> = subscriptions.iter().filter(is_match).collect();
        let is_current = matches.iter().all(|s| s.status("currentCSV") == entry.name);
        let is_there = !matches.is_empty() && is_current && exists(&entry.name);
        (!is_there).then_some(Need { chosen, matches })
    };
    resolution.bundles.iter().filter_map(need).collect()
}

/// The next thing to do for an InstallPlan.
pub(super) enum Make {
    /// Create it.
    Create(Value),
    /// Write its first status.
    Fill(Value),
}

impl Install {
    /// The steps for what a resolution chose and is not there yet; those that their bundle calls optional are marked so when
    /// `optional_manifests`.
    pub(super) fn of(
        namespace: &str,
        resolution: &Resolution<'_>,
        subscriptions: &[Subscription<'_>],
        optional_manifests: bool,
        exists: impl Fn(&str) -> bool,
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
            match bundle_steps(&source, namespace, chosen)? {
                Some(mut steps) => {
                    if optional_manifests {
                        install.reasons.extend(mark_optional(&mut steps, chosen));
                    }
                    install.steps.extend(steps);
                }
                None => {
                    let object = format!("bundle {} of catalog {}/{}", entry.name, catalog.namespace, catalog.name);
                    let what = "a bundle that only its image contains".to_owned();
                    return Ok(Self { reasons: vec![Reason::Unsupported { object, what }], ..Self::default() });
                }
            }
            if matches.is_empty() {
                install.steps.push(steps::of_subscription(&source, namespace, &entry.package, &entry.channel));
            }
            let updated = matches.iter().filter(|s| s.status("currentCSV") != entry.name);
            install.updates.extend(updated.map(|s| (s.name().to_owned(), entry.name.clone())));
        }
        steps::order(&mut install.steps);
        Ok(install)
    }

    /// Names of the ClusterServiceVersions, in the order of the steps.
    fn csv_names(&self) -> Vec<&str> {
        let is_csv = |s: &&Value| object::text(s, &["resource", "kind"]) == "ClusterServiceVersion";
        self.steps.iter().filter(is_csv).map(|s| object::text(s, &["resource", "name"])).collect()
    }

    /// The InstallPlan to create, or the one that was created and has no status yet.
    pub(super) fn make(&self, namespace: &str, subscriptions: &[Subscription<'_>], plans: &[&Value]) -> Option<Make> {
        if self.updates.is_empty() {
            return None;
        }
        let manual = subscriptions.iter().any(|s| s.spec("installPlanApproval") == "Manual");
        let spec = |generation: i64| {
            json!({
                "clusterServiceVersionNames": self.csv_names(),
                "approval": if manual { "Manual" } else { "Automatic" },
                "approved": !manual,
                "generation": generation,
            })
        };
        let known = subscriptions.iter().map(Subscription::plan_generation).max().unwrap_or_default();
        let newest = plans.iter().map(|p| generation(p)).max().unwrap_or_default();
        let owners: Vec<Value> = subscriptions.iter().map(|s| object::owner_reference(s.json, false)).collect();
        let is_empty = |p: &&&Value| {
            generation(p) > known
                && phase(p).is_empty()
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

    /// Lets the Subscriptions refer to the InstallPlan that was made for them.
    pub(super) fn link(&self, subscriptions: &mut [Subscription<'_>], plan: &Value) {
        for (name, csv) in &self.updates {
            if let Some(subscription) = subscriptions.iter_mut().find(|s| s.name() == name) {
                subscription.link_generation(plan, csv);
            }
        }
    }

    fn filled(&self, plan: &Value, manual: bool) -> Value {
        let catalogs: BTreeSet<&str> =
            self.steps.iter().map(|s| object::text(s, &["resource", "sourceName"])).collect();
        let mut plan = plan.clone();
        plan["status"] = json!({
            "phase": if manual { "RequiresApproval" } else { "Installing" },
            "catalogSources": catalogs,
            "plan": self.steps,
        });
        plan
    }
}

/// The steps of one bundle; `None` when the catalog does not carry its objects.
fn bundle_steps(
    source: &BundleSource<'_>,
    namespace: &str,
    Chosen { catalog, entry, .. }: &Chosen<'_>,
) -> Result<Option<Vec<Value>>, Failure> {
    let Some(content) = catalog.snapshot.bundle(&entry.package, &entry.channel, &entry.name) else { return Ok(None) };
    let fail = |why: String| Failure::Error(format!("failed to turn bundle into steps: {why}"));
    let read = |json: &str| serde_json::from_str::<Value>(json).map_err(|e| fail(e.to_string()));
    let csv = read(&content.csv_json)?;
    // A catalog of images may carry a stand-in, for people to look at.
    let deployments = object::at(&csv, &["spec", "install", "spec", "deployments"]);
    if !entry.bundle_path.is_empty() && deployments.is_null() {
        return Ok(None);
    }
    let objects = content.objects.iter().map(|o| read(o)).collect::<Result<Vec<Value>, Failure>>()?;
    // The resolver's list has some requirements twice.
    let mut properties: Vec<&Property> = Vec::new();
    for property in entry.properties.iter() {
        if !properties.contains(&property) {
            properties.push(property);
        }
    }
    let properties = json!(properties);
    steps::of_bundle(source, namespace, &csv, &objects, &properties).map(Some).map_err(|e| fail(e.0))
}

/// Marks the steps that the bundle calls optional, and says what of that cannot be read.
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
    object::at(plan, &["spec", "generation"]).as_i64().unwrap_or_default()
}

fn is_owned(plan: &Value, subscription: &Subscription<'_>) -> bool {
    let owners = object::list(plan, &["metadata", "ownerReferences"]);
    owners.iter().any(|o| object::text(o, &["uid"]) == object::uid(subscription.json))
}

/// Lets Subscriptions refer to the InstallPlans that made them, and to one that was made for them and that they do not know of
/// yet: a crash, or a conflict, came between.
pub(super) fn link(subscriptions: &mut [Subscription<'_>], plans: &[&Value]) {
    for subscription in subscriptions.iter_mut() {
        subscription.link_to_maker(plans);
    }
    let written = plans.iter().filter(|p| !phase(p).is_empty());
    let Some(plan) = written.max_by_key(|p| generation(p)) else { return };
    // Several Subscriptions are written one after the other: some may know of it, others not.
    let unaware = |s: &Subscription<'_>| s.plan_generation() < generation(plan) && is_owned(plan, s);
    if !subscriptions.iter().any(unaware) {
        return;
    }
    let steps = object::list(plan, &["status", "plan"]);
    for step in steps.iter().filter(|s| object::text(s, &["resource", "kind"]) == "ClusterServiceVersion") {
        let resource = |key| object::text(step, &["resource", key]);
        let csv = resource("name");
        let Some(package) = package_of(resource("manifest")) else { continue };
        for subscription in subscriptions.iter_mut().filter(|s| unaware(s)) {
            let wanted = subscription.wanted(false);
            let is_match =
                wanted.package == package && wanted.takes_from(resource("sourceName"), resource("sourceNamespace"));
            if is_match && subscription.status("currentCSV") != csv {
                subscription.link_generation(plan, csv);
            }
        }
    }
}

/// The package that the CSV in a manifest says it is of.
fn package_of(manifest: &str) -> Option<String> {
    let csv: Value = serde_json::from_str(manifest).ok()?;
    let properties: Value = serde_json::from_str(object::annotation(&csv, "operatorframework.io/properties")?).ok()?;
    let mut packages = object::list(&properties, &["properties"]).iter().filter(|p| p["type"] == property::PACKAGE);
    packages.next_back().map(|p| object::text(p, &["value", "packageName"]).to_owned())
}
