//! Determines why bundles were chosen, by running the resolver again as if the plan did not exist.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cluster_copy::{CATALOG, ClusterCopy};
use super::simulated_plan::{self, SimulatedPlan};
use crate::api::catalog_source::CatalogSource;
use crate::api::kinds::OLM_GROUP;
use crate::api::object;
use crate::api::subscription::{State, Subscription};
use crate::catalog::Entry;
use crate::constraint::{Candidate, Constraint};
use crate::resolver::explain::{self, Explained, Explanation};
use crate::resolver::{Catalog, Inputs, Installed};
use crate::subscription::NamespaceState;
use crate::world::{Reader, World};

/// Returns the reasons by the names of ClusterServiceVersions.
pub(super) fn chosen(simulated: &SimulatedPlan, copy: &ClusterCopy) -> BTreeMap<String, Vec<String>> {
    let mut chosen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Explained { bundle, reasons: because, .. } in resolved(simulated, copy) {
        chosen.insert(bundle.name, because.into_iter().map(|reason| reason.text).collect());
    }
    let requested = simulated.offered.as_ref().map(|offered| offered.csv.as_str());
    for csv in simulated.csv_names() {
        if requested == Some(csv) {
            chosen.insert(csv.to_owned(), vec!["it is the requested bundle".to_owned()]);
            continue;
        }
        // The resolver finds no reasons if the catalog is unknown.
        let because = chosen.entry(csv.to_owned()).or_default();
        if because.is_empty() {
            *because = object_reasons(simulated, csv);
        }
    }
    chosen
}

fn resolved(simulated: &SimulatedPlan, copy: &ClusterCopy) -> Vec<Explained> {
    let world = World::default();
    let world = without_the_plan(simulated, world);
    let reader = Reader::new(&world);
    let Ok(there) = NamespaceState::read(&reader, &simulated.namespace) else { return Vec::new() };
    let priority = |namespace: &str, name: &str| {
        let source = simulated.before.api().find(OLM_GROUP, "CatalogSource", namespace, name);
        source.map_or(0, |source| CatalogSource::new(source).priority())
    };
    let on_offer = |namespace: &&String| **namespace == simulated.namespace || **namespace == copy.global;
    let catalogs = copy.catalogs.iter().filter(|((namespace, _), _)| on_offer(&namespace));
    let catalogs = catalogs.map(|((namespace, name), snapshot)| Catalog {
        name,
        namespace,
        priority: priority(namespace, name),
        snapshot,
    });
    let offered = simulated.offered.iter().map(|offered| Catalog {
        name: CATALOG,
        namespace: &simulated.namespace,
        priority: 0,
        snapshot: &offered.snapshot,
    });
    let inputs = Inputs {
        namespace: &simulated.namespace,
        subscriptions: there.requested(),
        catalogs: catalogs.chain(offered).collect(),
        broken: Vec::new(),
        installed: there.installed.clone(),
    };
    match explain::explain(&inputs, there.targets.as_deref()) {
        Explanation::Resolved { bundles, .. } => bundles,
        Explanation::Failed { .. } => Vec::new(),
    }
}

/// Returns the namespace as it would be without the plan: its Subscriptions are not linked to it.
fn without_the_plan(simulated: &SimulatedPlan, mut world: World) -> World {
    let name = object::name(&simulated.plan);
    for kind in ["Subscription", "ClusterServiceVersion", "OperatorGroup", "InstallPlan"] {
        for object in simulated.before.api().list(OLM_GROUP, kind, Some(&simulated.namespace)) {
            let mut object = object.clone();
            match kind {
                "InstallPlan" if object::name(&object) == name => continue,
                "Subscription" if Subscription::new(&object).plan_name() == name => {
                    unlink(&mut object);
                }
                _ => {}
            }
            world.apply(object);
        }
    }
    world
}

fn unlink(subscription: &mut Value) {
    let status = object::map_mut(subscription, &["status"]);
    let installed = status.get("installedCSV").cloned();
    for field in ["installPlanRef", "installplan", "installPlanGeneration"] {
        status.remove(field);
    }
    match installed {
        Some(installed) => {
            status.insert("currentCSV".to_owned(), installed);
            status.insert("state".to_owned(), State::AtLatestKnown.into());
        }
        None => {
            status.remove("currentCSV");
            status.remove("state");
        }
    }
}

/// Returns the reasons that follow from the objects alone.
fn object_reasons(simulated: &SimulatedPlan, csv: &str) -> Vec<String> {
    let gets = |s: &&Value| Subscription::new(s).current_csv() == csv;
    let subscriptions = simulated.subscriptions().filter(gets).map(|s| {
        let spec = |key| object::text(s, &["spec", key]);
        let channel = match spec("channel") {
            "" => String::new(),
            channel => format!(" from channel {channel}"),
        };
        let (name, package) = (object::name(s), spec("name"));
        let catalog = format!("{}/{}", spec("sourceNamespace"), spec("source"));
        format!("Subscription {}/{name} wants package {package}{channel} of catalog {catalog}", simulated.namespace)
    });
    let mut because: Vec<String> = subscriptions.chain(required_by(simulated, csv)).collect();
    let makes_subscription = |step: &Value| {
        let text = |path: &[&str]| object::text(step, path);
        text(&["resource", "kind"]) == "Subscription" && text(&["resolving"]) == csv
    };
    if because.is_empty() && simulated.steps().iter().any(makes_subscription) {
        because
            .push("the plan creates a Subscription for it, as OLM does for dependencies of other operators".to_owned());
    }
    because
}

/// Returns the operators of the plan whose manifests require what a ClusterServiceVersion provides, as reasons.
fn required_by(simulated: &SimulatedPlan, csv: &str) -> Vec<String> {
    let entry = |name: &str| {
        let of_step = |step: &&Value| {
            let of = |key| object::text(step, &["resource", key]);
            of("kind") == "ClusterServiceVersion" && of("name") == name
        };
        let manifest = || simulated.steps().iter().find(of_step).and_then(simulated_plan::manifest);
        let made = simulated.after.api().find(OLM_GROUP, "ClusterServiceVersion", &simulated.namespace, name).cloned();
        Some(Installed::from_csv(&made.or_else(manifest)?, None, false).ok()?.entry)
    };
    let Some(provider) = entry(csv) else { return Vec::new() };
    let Entry { package, version, properties, .. } = &provider;
    let candidate = Candidate { package, version: version.as_ref(), properties };
    let mut because = Vec::new();
    for needy in simulated.csv_names().into_iter().filter(|needy| *needy != csv) {
        let Some(entry) = entry(needy) else { continue };
        let required =
            entry.properties.iter().filter_map(|property| Constraint::from_property(property).ok().flatten());
        let met =
            required.filter(|constraint| !matches!(constraint, Constraint::Not(_)) && constraint.is_met_by(&candidate));
        for constraint in met {
            let text = format!("{needy} requires an operator {constraint}");
            // A bundle may contain a requirement twice.
            if !because.contains(&text) {
                because.push(text);
            }
        }
    }
    because
}
