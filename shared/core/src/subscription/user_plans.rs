//! InstallPlans that users create: they name ClusterServiceVersions, and get the steps for those and their dependencies, as
//! if subscribed to. OLM's design includes them; OLM itself ignores them (olm-behaviour/README.md#design-and-code). Other
//! programs may therefore create one and write its steps themselves, in a second request: a new one is not changed for a
//! moment.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::available_catalogs::{self, Unusable};
use super::install::Install;
use super::installed::Namespace;
use super::status::Draft;
use super::{Group, NamespaceState};
use crate::api::conditions::{self, Conditions};
use crate::api::install_plan::{self, InstallPlan, Phase, is_approved, is_generated};
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::catalog::Entry;
use crate::plan::{Action, Plan, Reason};
use crate::resolver::{self, Broken, Catalog, Failure, Inputs};
use crate::settings::Settings;
use crate::unpack::{Images, Timeouts};
use crate::world::Reader;

/// How long another program has to write the steps of a new InstallPlan.
const LEFT_ALONE: SignedDuration = SignedDuration::from_secs(2);

/// Returns the InstallPlans of a namespace that users created and that have no steps yet.
pub(super) fn unresolved<'w>(plans: &[&'w Value]) -> impl Iterator<Item = &'w Value> {
    plans.iter().copied().filter(|plan| {
        let has_steps = !InstallPlan::new(plan).steps_json().is_empty();
        matches!(InstallPlan::new(plan).phase(), Phase::None | Phase::Planning)
            && !named(plan).is_empty()
            && !has_steps
            && !is_generated(plan)
    })
}

fn named(plan: &Value) -> Vec<&str> {
    InstallPlan::new(plan).csv_names().collect()
}

/// Writes the steps of the plan, or why it has none.
pub(super) fn resolve(
    settings: &Settings,
    world: &Reader<'_>,
    group: &Group<'_>,
    plan: &Value,
    now: jiff::Timestamp,
) -> Plan {
    let namespace = object::namespace(plan);
    let made = object::parse_time(Metadata::new(plan).created());
    if let Some(until) = made.map(|made| made + LEFT_ALONE).filter(|until| now < *until) {
        let object = format!("InstallPlan {namespace}/{}", object::name(plan));
        let message = "it is new, and its creator may still write its steps".to_owned();
        return Plan::wait(Reason::StatusWaits { object, message }).again_at(until);
    }
    if group.count > 1 {
        let why = format!("found {} operatorGroups, expected 1", group.count);
        return failed(plan, &Failure::Error(Broken::existing(namespace, why).to_string()), now);
    }
    let there = Namespace::read(world, namespace);
    let missing: Vec<&str> = named(plan).into_iter().filter(|csv| !there.has(csv)).collect();
    if missing.is_empty() {
        return failed(plan, &Failure::Error("all ClusterServiceVersions that it names already exist".to_owned()), now);
    }
    let sources = available_catalogs::sources(world, settings, namespace, !group.excludes_global);
    let (catalogs, broken) = match available_catalogs::catalogs(&sources, |_| true) {
        Ok(catalogs) => catalogs,
        Err(Unusable::NotYet(reasons)) => return Plan { reasons, ..Plan::nothing() },
        Err(Unusable::Broken(failure)) => return failed(plan, &failure, now),
    };
    let mut wishes = Vec::new();
    for csv in missing {
        match wish(plan, csv, &catalogs) {
            Some(wish) => wishes.push(wish),
            None => return failed(plan, &Failure::Error(format!("no catalog has ClusterServiceVersion {csv}")), now),
        }
    }
    let wishes: Vec<Draft<'_>> = wishes.iter().map(Draft::new).collect();
    let installed = match NamespaceState::read(world, namespace) {
        Ok(there) => there.installed,
        Err(failure) => return failed(plan, &failure, now),
    };
    let subscriptions = wishes.iter().map(|wish| wish.requested(false)).collect();
    let inputs = Inputs { namespace, subscriptions, catalogs, broken, installed };
    let (timeouts, mut reasons) = Timeouts::read(settings, group.object);
    let images = Images { world, settings, timeouts, now };
    let install = resolver::resolve(&inputs).and_then(|resolution| {
        Install::new(namespace, &resolution, &wishes, settings.optional_manifests, |csv| there.has(csv), &images)
    });
    let install = match install {
        Ok(install) => install,
        Err(failure) => return failed(plan, &failure, now),
    };
    reasons.extend(install.reasons.iter().cloned());
    reasons.extend(install.pending.iter().map(|pending| pending.reason(None)));
    if !install.pending.is_empty() || install.is_empty() {
        let again = install.pending.iter().filter_map(|pending| pending.again).min();
        let actions = install.pending.into_iter().flat_map(|pending| pending.actions).collect();
        return Plan { actions, reasons, again, ..Plan::nothing() };
    }
    Plan { reasons, ..Plan::act(vec![Action::UpdateStatus(install.filled(plan, !is_approved(plan)))]) }
}

/// Returns a Subscription, which is never written, to the bundle of that name: from the catalog that the plan names, or
/// else from the best that contains it.
fn wish(plan: &Value, csv: &str, catalogs: &[Catalog<'_>]) -> Option<Value> {
    let [source, of] = ["source", "sourceNamespace"].map(|key| object::text(plan, &["spec", key]));
    let is_meant = |c: &&Catalog<'_>| (source.is_empty() || c.name == source) && (of.is_empty() || c.namespace == of);
    let entry = |c: &Catalog<'_>| -> Option<Entry> { c.snapshot.entries().find(|e| e.name == csv).cloned() };
    let mut found: Vec<(&Catalog<'_>, Entry)> =
        catalogs.iter().filter(is_meant).filter_map(|c| Some((c, entry(c)?))).collect();
    found.sort_by_key(|(catalog, _)| -catalog.priority);
    let (catalog, entry) = found.first()?;
    Some(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": csv, "namespace": object::namespace(plan) },
        "spec": {
            "name": entry.package, "channel": entry.channel, "startingCSV": csv,
            "source": catalog.name, "sourceNamespace": catalog.namespace,
        },
    }))
}

/// Reports in the plan that it cannot be resolved.
fn failed(plan: &Value, failure: &Failure, now: jiff::Timestamp) -> Plan {
    let message = failure.to_string();
    let known = Conditions::new(plan).iter().any(|c| c.message() == message);
    let mut actions = Vec::new();
    if !known {
        let reason = match failure {
            Failure::Unsatisfiable(_) => "DependenciesConflict",
            Failure::Error(_) => "PlanUnknown",
        };
        let time = object::time(now);
        let mut new = plan.clone();
        new["status"] = json!({
            "phase": Phase::Planning, "catalogSources": [],
            "conditions": [{
                "type": install_plan::condition::RESOLVED, "status": conditions::FALSE, "reason": reason, "message": message,
                "lastUpdateTime": time, "lastTransitionTime": time,
            }],
        });
        actions.push(Action::UpdateStatus(new));
    }
    let object = object::ObjectRef::from_object(plan).to_string();
    Plan::act(actions).because(Reason::Invalid { object, message })
}
