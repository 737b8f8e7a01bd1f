//! The operators that are installed, upgraded or removed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cluster_copy::ClusterCopy;
use super::document::{Csv, CsvChange};
use super::reasons;
use super::simulated_plan::{CSV as KIND, SimulatedPlan, manifest};
use crate::api::cluster_service_version::{self, Phase, is_copy};
use crate::api::install_plan::Step;
use crate::api::kinds::OLM_GROUP;
use crate::api::object;
use crate::bundle::property;
use crate::plan::Controller;
use crate::version;

/// Returns the ClusterServiceVersions of the plan in the order of its steps, and those that are removed without a replacement.
pub(super) fn changes(simulated: &SimulatedPlan, copy: &ClusterCopy) -> Vec<Csv> {
    let reasons = reasons::chosen(simulated, copy);
    let mut csvs: Vec<Csv> = Vec::new();
    for step in simulated.steps().iter().filter(|s| Step::new(s).kind() == KIND) {
        let name = Step::new(step).name();
        let manifest = manifest(step).unwrap_or_default();
        let after = find(simulated, name, true).unwrap_or(&manifest);
        let before = find(simulated, name, false);
        let replaced = Some(cluster_service_version::Csv::new(after).replaces())
            .filter(|old| find(simulated, old, false).is_some());
        let old = replaced.and_then(|old| find(simulated, old, false));
        let (from, to) = (old.and_then(version_of), version_of(after));
        let subscriptions = simulated.subscriptions_of(name);
        csvs.push(Csv {
            name: name.to_owned(),
            package: package(after).unwrap_or_default(),
            replaces: replaced.map(str::to_owned),
            change: match (before, &from, &to) {
                (Some(_), ..) => CsvChange::None,
                (None, Some(from), Some(to)) if is_older(to, from) => CsvChange::Downgrade,
                _ if replaced.is_some() => CsvChange::Upgrade,
                _ => CsvChange::Install,
            },
            from,
            to,
            bystander: false,
            dependency: is_dependency(simulated, name, &subscriptions),
            subscriptions,
            reasons: reasons.get(name).cloned().unwrap_or_default(),
            phase: find(simulated, name, true)
                .map_or("", |csv| cluster_service_version::Csv::new(csv).phase_text())
                .to_owned(),
            message: message(simulated, name),
        });
    }
    mark_bystanders(simulated, &mut csvs);
    csvs.extend(removed(simulated, &csvs));
    csvs
}

fn find<'t>(simulated: &'t SimulatedPlan, name: &str, afterwards: bool) -> Option<&'t Value> {
    let simulation = if afterwards { &simulated.after } else { &simulated.before };
    simulation.api().find(OLM_GROUP, KIND, &simulated.namespace, name)
}

fn version_of(csv: &Value) -> Option<String> {
    Some(cluster_service_version::Csv::new(csv).version()).filter(|version| !version.is_empty()).map(str::to_owned)
}

fn is_older(one: &str, other: &str) -> bool {
    match (version::parse_tolerant(one), version::parse_tolerant(other)) {
        (Ok(one), Ok(other)) => version::compare(&one, &other).is_lt(),
        _ => false,
    }
}

/// Returns the package that the properties of a ClusterServiceVersion name.
fn package(csv: &Value) -> Option<String> {
    let properties: Value = serde_json::from_str(object::annotation(csv, "operatorframework.io/properties")?).ok()?;
    let mut packages = object::list(&properties, &["properties"]).iter().filter(|p| p["type"] == property::PACKAGE);
    packages.next_back().map(|p| object::text(p, &["value", "packageName"]).to_owned())
}

/// Reports whether a ClusterServiceVersion is only a dependency: this plan or an earlier one has created its Subscription.
fn is_dependency(simulated: &SimulatedPlan, csv: &str, subscriptions: &[String]) -> bool {
    let made = |step: &Value| Step::new(step).kind() == "Subscription" && Step::new(step).resolving() == csv;
    let generated = |name: &String| {
        let subscription = simulated.subscriptions().find(|s| object::name(s) == name);
        subscription.is_some_and(|s| object::annotation(s, "olm.generated-by").is_some())
    };
    if subscriptions.is_empty() { simulated.steps().iter().any(made) } else { subscriptions.iter().all(generated) }
}

/// Marks bystanders: operators that are neither for the Subscription in question nor dependencies. If no Subscription is in question,
/// operators that share a plan without requiring each other are all bystanders.
fn mark_bystanders(simulated: &SimulatedPlan, csvs: &mut [Csv]) {
    let own: BTreeSet<&String> =
        csvs.iter().filter(|csv| !csv.dependency).filter_map(|csv| csv.subscriptions.first()).collect();
    let several = own.len() > 1;
    for csv in csvs.iter_mut().filter(|csv| !csv.dependency) {
        csv.bystander = match &simulated.subscription {
            Some(asked) => !csv.subscriptions.contains(asked),
            None => several,
        };
    }
}

/// Returns what a ClusterServiceVersion waits for in the end, or why it failed.
fn message(simulated: &SimulatedPlan, name: &str) -> String {
    let reasons = simulated.reasons(Controller::ClusterServiceVersion, name);
    if let [reason, ..] = reasons {
        return reason.to_string();
    }
    match find(simulated, name, true) {
        Some(csv) if cluster_service_version::Csv::new(csv).phase() != Phase::Succeeded => {
            cluster_service_version::Csv::new(csv).message().to_owned()
        }
        _ => String::new(),
    }
}

/// Returns the ClusterServiceVersions that are removed without a replacement in the plan.
fn removed(simulated: &SimulatedPlan, csvs: &[Csv]) -> Vec<Csv> {
    let before = simulated.before.api().list(OLM_GROUP, KIND, Some(&simulated.namespace));
    let is_gone = |csv: &&Value| {
        let name = object::name(csv);
        let is_replaced = csvs.iter().any(|new| new.replaces.as_deref() == Some(name) || new.name == name);
        !is_copy(csv) && !object::is_deleting(csv) && !is_replaced && find(simulated, name, true).is_none()
    };
    let gone = before.filter(is_gone).map(|csv| Csv {
        name: object::name(csv).to_owned(),
        package: package(csv).unwrap_or_default(),
        from: version_of(csv),
        change: CsvChange::Remove,
        ..Csv::default()
    });
    gone.collect()
}
