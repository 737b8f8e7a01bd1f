//! Why bundles were chosen: what the resolver says when it is asked again, as if the plan had not been made.

use std::collections::BTreeMap;

use serde_json::Value;

use super::copy::{Explainer, OLM};
use super::trial::Trial;
use crate::api::object;
use crate::resolver::explain::{self, Explained, Explanation};
use crate::resolver::{Catalog, Inputs};
use crate::subscription::There;
use crate::world::{Reader, World};

/// Sentences by the names of ClusterServiceVersions.
pub(super) fn chosen(trial: &Trial, explainer: &Explainer) -> BTreeMap<String, Vec<String>> {
    let mut chosen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Explained { bundle, because, .. } in resolved(trial, explainer) {
        chosen.insert(bundle.name, because.into_iter().map(|said| said.text).collect());
    }
    for csv in trial.csv_names() {
        // Without its catalog nobody can ask again.
        chosen.entry(csv.to_owned()).or_insert_with(|| told(trial, csv));
    }
    chosen
}

fn resolved(trial: &Trial, explainer: &Explainer) -> Vec<Explained> {
    let world = World::default();
    let world = without_the_plan(trial, world);
    let reader = Reader::new(&world);
    let Ok(there) = There::read(&reader, &trial.namespace) else { return Vec::new() };
    let priority = |namespace: &str, name: &str| {
        let source = trial.before.api().find(OLM, "CatalogSource", namespace, name);
        source.and_then(|s| object::at(s, &["spec", "priority"]).as_i64()).unwrap_or_default()
    };
    let on_offer = |namespace: &&String| **namespace == trial.namespace || **namespace == explainer.global;
    let catalogs = explainer.catalogs.iter().filter(|((namespace, _), _)| on_offer(&namespace));
    let inputs = Inputs {
        namespace: &trial.namespace,
        subscriptions: there.wanted(),
        catalogs: catalogs
            .map(|((namespace, name), snapshot)| Catalog {
                name,
                namespace,
                priority: priority(namespace, name),
                snapshot,
            })
            .collect(),
        broken: Vec::new(),
        installed: there.installed.clone(),
    };
    match explain::explain(&inputs, there.targets.as_deref()) {
        Explanation::Resolved { bundles, .. } => bundles,
        Explanation::Failed { .. } => Vec::new(),
    }
}

/// The namespace as it would be if the plan had not been made: its Subscriptions want what they wanted.
fn without_the_plan(trial: &Trial, mut world: World) -> World {
    let name = object::name(&trial.plan);
    for kind in ["Subscription", "ClusterServiceVersion", "OperatorGroup", "InstallPlan"] {
        for object in trial.before.api().list(OLM, kind, Some(&trial.namespace)) {
            let mut object = object.clone();
            match kind {
                "InstallPlan" if object::name(&object) == name => continue,
                "Subscription" if object::text(&object, &["status", "installPlanRef", "name"]) == name => {
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
            status.insert("state".to_owned(), "AtLatestKnown".into());
        }
        None => {
            status.remove("currentCSV");
            status.remove("state");
        }
    }
}

/// What the objects say.
fn told(trial: &Trial, csv: &str) -> Vec<String> {
    let gets = |s: &&Value| object::text(s, &["status", "currentCSV"]) == csv;
    let subscriptions = trial.subscriptions().filter(gets).map(|s| {
        let spec = |key| object::text(s, &["spec", key]);
        let channel = match spec("channel") {
            "" => String::new(),
            channel => format!(" from channel {channel}"),
        };
        let (name, package) = (object::name(s), spec("name"));
        let catalog = format!("{}/{}", spec("sourceNamespace"), spec("source"));
        format!("Subscription {}/{name} wants package {package}{channel} of catalog {catalog}", trial.namespace)
    });
    subscriptions.collect()
}
