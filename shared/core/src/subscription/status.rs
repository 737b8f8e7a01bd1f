//! The status of one Subscription, without what resolution reports (olm-behaviour/subscription.md#plan-conditions,
//! olm-behaviour/subscription.md#catalog-health, olm-behaviour/subscription.md#deprecations, olm-behaviour/subscription.md#state).

use jiff::Timestamp;
use serde_json::{Value, json};

use super::available_catalogs::Source;
use super::conditions::{condition, remove, set};
use super::directory;
use crate::api::conditions::{Conditions, FALSE};
use crate::api::install_plan::{self, InstallPlan, Phase};
use crate::api::object;
use crate::api::subscription::condition_type::{
    self, INSTALL_PLAN_FAILED as FAILED, INSTALL_PLAN_MISSING as MISSING, INSTALL_PLAN_PENDING as PENDING,
};
use crate::api::subscription::{State, Subscription, SubscriptionStatus};
use crate::resolver::RequestedSubscription;
use crate::world::{Reader, kind};

/// A Subscription with its new status.
#[derive(Clone, Debug)]
pub(super) struct Draft<'w> {
    /// The Subscription as it was read.
    pub(super) view: Subscription<'w>,
    /// The new status.
    pub(super) status: Value,
}

impl<'w> Draft<'w> {
    pub(super) fn new(json: &'w Value) -> Self {
        let status = json.get("status").filter(|s| s.is_object()).cloned().unwrap_or_else(|| json!({}));
        Self { view: Subscription::new(json), status }
    }

    /// Returns a view of the new status.
    pub(super) fn planned(&self) -> SubscriptionStatus<'_> {
        SubscriptionStatus::new(&self.status)
    }

    /// Returns the Subscription as input of the resolver.
    pub(super) fn requested(&self, busy: bool) -> RequestedSubscription<'_> {
        RequestedSubscription {
            name: self.view.name(),
            package: self.view.package(),
            channel: self.view.channel(),
            source: self.view.source(),
            source_namespace: self.view.source_namespace(),
            starting_csv: self.view.starting_csv(),
            installed_csv: self.planned().installed_csv(),
            range: None,
            busy,
        }
    }

    /// Returns the whole object to write; `None` when its status is up to date.
    pub(super) fn changed(&self, now: Timestamp) -> Option<Value> {
        let unchanged = self.view.json.get("status").map_or_else(|| false, |s| *s == self.status);
        if unchanged {
            return None;
        }
        let mut new = self.view.json.clone();
        new["status"] = self.status.clone();
        new["status"]["lastUpdated"] = object::time(now).into();
        Some(new)
    }

    fn put(&mut self, key: &str, value: impl Into<Value>) {
        object::map_mut(&mut self.status, &[]).insert(key.to_owned(), value.into());
    }

    fn forget(&mut self, key: &str) {
        object::map_mut(&mut self.status, &[]).remove(key);
    }

    /// Refers to the InstallPlan that installs `csv`.
    pub(super) fn link(&mut self, plan: &Value, csv: &str) {
        let [api_version, kind, name] = ["apiVersion", "kind", "name"].map(|key| match key {
            "name" => object::name(plan).to_owned(),
            key => object::text(plan, &[key]).to_owned(),
        });
        self.put(
            "installplan",
            json!({ "apiVersion": api_version, "kind": kind, "name": name, "uuid": object::uid(plan) }),
        );
        self.put("installPlanRef", reference(plan));
        self.put("currentCSV", csv);
        self.put("state", State::UpgradePending);
    }

    /// Refers to the InstallPlan that was created for this Subscription and others, with its generation.
    pub(super) fn link_generation(&mut self, plan: &Value, csv: &str) {
        self.link(plan, csv);
        self.put("installPlanGeneration", object::at(plan, &["spec", "generation"]).clone());
    }

    /// Refers to the InstallPlan that created the Subscription.
    pub(super) fn link_to_maker(&mut self, plans: &[&Value]) {
        let Some(maker) = object::annotation(self.view.json, "olm.generated-by") else { return };
        let Some(plan) = plans.iter().find(|p| object::name(p) == maker) else { return };
        if self.planned().plan_name().is_empty() {
            self.link(plan, self.view.starting_csv());
        }
    }

    /// Updates the status for the state of its CSV.
    pub(super) fn follow(&mut self, world: &Reader<'_>, plans: &[&Value], fail_forward: bool) {
        let current = self.planned().current_csv().to_owned();
        if current.is_empty() {
            return;
        }
        if world.object(&kind::CLUSTER_SERVICE_VERSION, object::namespace(self.view.json), &current).is_some() {
            self.put("state", State::AtLatestKnown);
            self.put("installedCSV", current);
            return;
        }
        let plan = plans.iter().copied().find(|p| object::name(p) == self.planned().plan_name());
        let plan_failed = plan.is_some_and(|p| InstallPlan::new(p).phase() == Phase::Failed);
        self.put("state", if fail_forward && plan_failed { State::Failed } else { State::UpgradePending });
        if !self.planned().plan_name().is_empty() && plan.is_none() && self.planned().state() == State::UpgradePending {
            // Users can recover by deleting the plan: the Subscription is then resolved again.
            remove(&mut self.status, &[PENDING, FAILED]);
            for key in ["installPlanRef", "installplan", "currentCSV", "state"] {
                self.forget(key);
            }
        }
    }

    /// Reports the state of its InstallPlan.
    pub(super) fn update_plan_conditions(&mut self, plans: &[&Value], now: Timestamp) {
        if self.planned().plan_name().is_empty() {
            return;
        }
        match plans.iter().find(|p| object::name(p) == self.planned().plan_name()) {
            Some(plan) => self.set_plan_condition(plan, now),
            None => {
                remove(&mut self.status, &[PENDING, FAILED]);
                set(&mut self.status, condition(MISSING, true, "ReferencedInstallPlanNotFound", ""), now);
            }
        }
    }

    fn set_plan_condition(&mut self, plan: &Value, now: Timestamp) {
        let installed = Conditions::new(plan).find(install_plan::condition::INSTALLED);
        let message = installed.map_or("", |c| c.message());
        let (kind, reason) = match InstallPlan::new(plan).phase() {
            Phase::None => (PENDING, "InstallPlanNotYetReconciled"),
            phase @ (Phase::Planning | Phase::Installing | Phase::RequiresApproval) => (PENDING, phase.as_str()),
            Phase::Failed if let Some(why) = installed.filter(|c| c.status() == FALSE) => (FAILED, why.reason()),
            Phase::Failed => (FAILED, FAILED),
            _ => return remove(&mut self.status, &[MISSING, PENDING, FAILED]),
        };
        let others: Vec<&str> = [MISSING, PENDING, FAILED].into_iter().filter(|c| *c != kind).collect();
        remove(&mut self.status, &others);
        set(&mut self.status, condition(kind, true, reason, message), now);
    }

    /// Records whether its catalog is a directory. Without the catalog the record does not change.
    pub(super) fn update_directory_condition(&mut self, sources: &[Source<'_>], now: Timestamp) {
        let (name, namespace) = (self.view.source(), self.view.source_namespace());
        let source = sources.iter().find(|s| (s.name, s.namespace) == (name, namespace));
        match source {
            Some(Source { object: Some(_), .. }) => remove(&mut self.status, &[directory::CONDITION]),
            Some(source) if source.is_local() => {
                let message = directory::message(namespace, name);
                set(&mut self.status, condition(directory::CONDITION, true, "GivenToControllers", &message), now);
            }
            _ => {}
        }
    }

    /// Reports the health of the available catalogs.
    pub(super) fn update_catalog_health(&mut self, sources: &[Source<'_>], now: Timestamp) {
        let known = object::list(&self.status, &["catalogHealth"]).to_vec();
        let summary = |entry: &Value| (entry["catalogSourceRef"]["uid"].clone(), entry["healthy"].clone());
        let is_healthy = |s: &Source<'_>| {
            let uid = s.object.map(object::uid).unwrap_or_default();
            let before = known.iter().find(|entry| entry["catalogSourceRef"]["uid"] == uid);
            s.is_healthy(before.is_some_and(|entry| entry["healthy"] == true))
        };
        let health: Vec<Value> = sources
            .iter()
            .filter_map(|s| {
                let entry = json!({ "catalogSourceRef": reference(s.object?), "healthy": is_healthy(s) });
                Some(known.iter().find(|k| summary(k) == summary(&entry)).cloned().unwrap_or_else(|| {
                    let mut entry = entry;
                    entry["lastUpdated"] = object::time(now).into();
                    entry
                }))
            })
            .collect();
        if health.is_empty() {
            self.forget("catalogHealth");
        } else {
            self.put("catalogHealth", health);
        }
        let (name, namespace) = (self.view.source(), self.view.source_namespace());
        let is_target = |s: &Source<'_>| (s.name, s.namespace) == (name, namespace);
        let target = sources.iter().find(|s| is_target(s));
        let unhealthy = sources.iter().find(|s| !is_healthy(s));
        let found = "UnhealthyCatalogSourceFound";
        let (status, reason, message) = match (target, unhealthy) {
            _ if sources.is_empty() => {
                (true, "NoCatalogSourcesFound", "dependency resolution requires at least one catalogsource".to_owned())
            }
            (None, _) => (true, found, format!("targeted catalogsource {namespace}/{name} missing")),
            (Some(target), _) if !is_healthy(target) => {
                (true, found, format!("targeted catalogsource {namespace}/{name} unhealthy"))
            }
            (_, Some(other)) => (true, found, format!("catalogsource {}/{} unhealthy", other.namespace, other.name)),
            (_, None) => (false, "AllCatalogSourcesHealthy", "all available catalogsources are healthy".to_owned()),
        };
        set(&mut self.status, condition(condition_type::CATALOG_SOURCES_UNHEALTHY, status, reason, &message), now);
    }

    /// Reports deprecations of what is installed. Without a catalog entry nothing is known, and nothing changes.
    pub(super) fn update_deprecations(&mut self, sources: &[Source<'_>], now: Timestamp) {
        let (package, channel) = (self.view.package(), self.view.channel());
        let is_target = |s: &&Source<'_>| (s.name, s.namespace) == (self.view.source(), self.view.source_namespace());
        let found = sources.iter().find(is_target).and_then(Source::content).and_then(|s| s.package(package));
        let Some(package) = found else { return };
        let installed = self.planned().installed_csv();
        let in_channel =
            |e: &&crate::catalog::Entry| e.name == installed && (channel.is_empty() || e.channel == channel);
        let Some(entry) = package.entries().find(in_channel) else { return };
        let channel = package.channel(channel).filter(|_| !channel.is_empty());
        let said = [
            (
                condition_type::PACKAGE_DEPRECATED,
                package.deprecation.as_ref().map(|m| format!("olm.package/{}: {m}", package.name)),
            ),
            (
                condition_type::CHANNEL_DEPRECATED,
                channel.and_then(|c| Some(format!("olm.channel/{}: {}", c.name, c.deprecation.as_ref()?))),
            ),
            (
                condition_type::BUNDLE_DEPRECATED,
                entry.deprecation.as_ref().map(|m| format!("olm.bundle/{}: {m}", entry.name)),
            ),
        ];
        let mut all = Vec::new();
        for (kind, message) in said {
            match message {
                Some(message) => {
                    set(&mut self.status, condition(kind, true, "", &message), now);
                    all.push(message);
                }
                None => remove(&mut self.status, &[kind]),
            }
        }
        if all.is_empty() {
            remove(&mut self.status, &[condition_type::DEPRECATED]);
        } else {
            set(&mut self.status, condition(condition_type::DEPRECATED, true, "", &all.join("; ")), now);
        }
    }
}

/// Returns a complete `ObjectReference`.
fn reference(object: &Value) -> Value {
    json!({
        "apiVersion": object::text(object, &["apiVersion"]),
        "kind": object::kind(object),
        "namespace": object::namespace(object),
        "name": object::name(object),
        "uid": object::uid(object),
        "resourceVersion": object::resource_version(object),
    })
}
