//! The Subscriptions of a namespace: their whole status, and the InstallPlans that result from resolving them
//! (olm-behaviour/subscription.md#sync-order).
//!
//! ```text
//!   available_catalogs  the catalogs, and whether they can be used
//!   directory           catalogs that are directories, without an object in the cluster
//!   status              each Subscription: its CSV, its InstallPlan, health of catalogs, deprecations
//!   installed           the existing CSVs, and which of them are about to be deleted
//!   install             resolution -> InstallPlan, and Subscriptions -> the InstallPlan that was created for them
//!   user_plans          InstallPlans that users create, naming ClusterServiceVersions
//!   resolution_input    the inputs of a resolution, for commands that only show what would be installed
//!   selection           catalog, channel and version for a new Subscription
//! ```
//!
//! The key is a namespace, because a resolution covers all of its Subscriptions, and every field of a status has one
//! writer. *Guarantees*: everything is recomputed from the World. An InstallPlan that was created before a crash is
//! recognized by its generation, which no Subscription has recorded yet.

mod available_catalogs;
mod conditions;
mod directory;
mod install;
mod installed;
mod resolution_input;
pub mod selection;
mod status;
#[cfg(test)]
mod tests;
mod user_plans;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::available_catalogs::{Source, Unusable};
use self::conditions::{condition, remove, set_timeless};
use self::install::{Install, Make};
use self::installed::Namespace;
use self::status::Draft;
use crate::api::install_plan::{InstallPlan, Phase, is_generated};
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::api::operator_group::OperatorGroup;
use crate::api::subscription::{self, condition_type, reason};
use crate::bundle::{BundleImage, reference};
use crate::plan::{Action, Emit, Key, Plan, Propagation, Question, Reason, Verb};
use crate::resolver::{self, Failure, Inputs};
use crate::settings::Settings;
use crate::unpack::{Images, Pending, State, Timeouts, UNINSTALLABLE};
use crate::world::{Reader, kind};

pub use resolution_input::NamespaceState;

/// Number of InstallPlans of a namespace that are retained (olm-behaviour/installplan.md#garbage-collection).
const KEPT_PLANS: usize = 5;
/// OLM's advice when the Job of a bundle has failed (olm-behaviour/subscription.md#namespace-resolution).
const JOB_FAILED: &str = "Auto-retry in ~5 min after job cleanup (TTL). Common causes: Missing ICSP (ppc64le/s390x/arm64), auth failure, \
     invalid image. Manual retry: in the CatalogSource namespace, run `kubectl get jobs -l operatorframework.io/bundle-unpack-ref` and \
     delete the specific failing job.";

/// Plans for the Subscriptions of the namespace that is the key's name.
pub fn plan(settings: &Settings, world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let namespace = key.name.as_str();
    let mut plans: Vec<&Value> = world.in_namespace(&kind::INSTALL_PLAN, namespace).map(|o| o.json()).collect();
    plans.retain(|p| !object::is_deleting(p));
    let mut subscriptions: Vec<Draft<'_>> =
        world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|o| Draft::new(o.json())).collect();
    if subscriptions.is_empty() {
        let mut actions = delete_old_plans(&plans, &subscriptions);
        actions.extend(release_unneeded_images(world, namespace, &plans, &BTreeSet::new()));
        return plan_user_install_plans(settings, world, namespace, &plans, now, Plan::act(actions));
    }
    let deletions = delete_old_plans(&plans, &subscriptions);
    let groups: Vec<&Value> = world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| o.json()).collect();
    let group = Group::read(&groups);
    install::link(&mut subscriptions, &plans);
    for subscription in &mut subscriptions {
        subscription.follow(world, &plans, group.fail_forward);
    }
    let mut pass = Pass {
        settings,
        world,
        key,
        now,
        plans,
        filled: None,
        group,
        subscriptions,
        actions: deletions,
        reasons: Vec::new(),
        again: None,
    };
    if groups.len() == 1 {
        pass.resolve();
    } else {
        let names = groups.iter().map(|g| object::name(g).to_owned()).collect();
        let namespace = namespace.to_owned();
        pass.reasons.push(match groups.len() {
            0 => Reason::NoOperatorGroup { namespace },
            _ => Reason::TooManyOperatorGroups { namespace, names },
        });
    }
    let plans = pass.plans.clone();
    plan_user_install_plans(settings, world, namespace, &plans, now, pass.finish())
}

/// Returns the plan, and what to do about InstallPlans that users created.
fn plan_user_install_plans(
    settings: &Settings,
    world: &Reader<'_>,
    namespace: &str,
    plans: &[&Value],
    now: Timestamp,
    mut plan: Plan,
) -> Plan {
    let groups: Vec<&Value> = world.in_namespace(&kind::OPERATOR_GROUP, namespace).map(|o| o.json()).collect();
    let group = Group::read(&groups);
    for made in user_plans::unresolved(plans) {
        let Plan { actions, reasons, again, .. } = user_plans::resolve(settings, world, &group, made, now);
        plan.actions.extend(actions);
        plan.reasons.extend(reasons);
        plan.again = plan.again.into_iter().chain(again).min();
    }
    plan
}

/// Annotation of an OperatorGroup: "true" if global catalogs are not used in its namespace.
const EXCLUDES_GLOBAL: &str = "olm.operatorframework.io/exclude-global-namespace-resolution";

/// What the OperatorGroup of the namespace specifies about resolution.
struct Group<'w> {
    /// The OperatorGroup, if there is exactly one.
    object: Option<&'w Value>,
    /// Number of OperatorGroups.
    count: usize,
    fail_forward: bool,
    excludes_global: bool,
}

impl<'w> Group<'w> {
    fn read(groups: &[&'w Value]) -> Self {
        let object = match groups {
            [only] => Some(*only),
            _ => None,
        };
        Self {
            object,
            count: groups.len(),
            fail_forward: object.is_some_and(|group| OperatorGroup::new(group).fails_forward()),
            excludes_global: object.and_then(|group| object::annotation(group, EXCLUDES_GLOBAL)) == Some("true"),
        }
    }
}

/// Deletes the oldest InstallPlans beyond the limit. Unlike OLM it spares those that a Subscription refers to, and
/// unfinished ones that users or other programs created: they have no generation, so OLM deletes them first, executed or
/// not.
fn delete_old_plans(plans: &[&Value], subscriptions: &[Draft<'_>]) -> Vec<Action> {
    let created = |p: &Value| Metadata::new(p).created().to_owned();
    let counted = |p: &Value| Some(InstallPlan::new(p).generation()).filter(|generation| *generation > 0);
    let mut by_age = plans.to_vec();
    by_age.sort_by_cached_key(|p| (created(p), counted(p).is_none(), counted(p), object::name(p).to_owned()));
    let mut newest = 0;
    // An InstallPlan without a generation is ordered after the plans that were created before it.
    let with_generation = |p| {
        let generation = counted(p).unwrap_or(newest);
        newest = newest.max(generation);
        (generation, p)
    };
    let mut oldest: Vec<(i64, &Value)> = by_age.into_iter().map(with_generation).collect();
    oldest.sort_by_key(|(generation, _)| *generation);
    let surplus = plans.len().saturating_sub(KEPT_PLANS);
    let is_spared = |p: &&Value| {
        let is_referred = subscriptions.iter().any(|s| s.planned().plan_name() == object::name(p));
        is_referred || !is_generated(p) && !InstallPlan::new(p).phase().is_final()
    };
    let surplus = oldest.into_iter().take(surplus).map(|(_, p)| p).filter(|p| !is_spared(p));
    surplus.map(|p| Action::delete(p, Propagation::Background)).collect()
}

/// Releases bundle images that neither a resolution nor an InstallPlan needs.
fn release_unneeded_images(
    world: &Reader<'_>,
    namespace: &str,
    plans: &[&Value],
    needed: &BTreeSet<BundleImage>,
) -> Vec<Action> {
    let known = world.bundles_of(namespace);
    if known.is_empty() || user_plans::unresolved(plans).next().is_some() {
        return Vec::new();
    }
    let installing = plans.iter().filter(|p| InstallPlan::new(p).phase() == Phase::Installing);
    let lookups = installing.flat_map(|plan| reference::unmade(plan).into_values().flatten());
    let referred: BTreeSet<BundleImage> = lookups.map(|lookup| lookup.image).collect();
    let unneeded = known.into_iter().filter(|image| !needed.contains(image) && !referred.contains(image));
    unneeded.map(|image| Action::Ask(Question::Forget(image.clone()))).collect()
}

/// Returns OLM's message for a failed Job: OLM's advice follows the Job's message.
fn job_failed(reason: &str, message: &str) -> String {
    let helps = message.contains("Auto-retry") || message.contains("Common causes");
    if helps { format!("{reason}: {message}") } else { format!("{reason}: {message}. {JOB_FAILED}") }
}

/// A plan while it is built.
struct Pass<'w, 'r> {
    settings: &'w Settings,
    world: &'r Reader<'w>,
    key: &'w Key,
    now: Timestamp,
    plans: Vec<&'w Value>,
    /// The InstallPlan whose first status is among the actions.
    filled: Option<Value>,
    group: Group<'w>,
    subscriptions: Vec<Draft<'w>>,
    actions: Vec<Action>,
    reasons: Vec<Reason>,
    again: Option<Timestamp>,
}

impl<'w> Pass<'w, '_> {
    /// Resolves, and creates an InstallPlan for what is new.
    fn resolve(&mut self) {
        let namespace = Namespace::read(self.world, &self.key.name);
        let (busy, leaving) = namespace.under_way(&self.subscriptions, &self.plans, self.group.fail_forward);
        let waits = |(s, busy): (&Draft<'_>, &bool)| {
            *busy || s.planned().state() == subscription::State::UpgradePending && !s.planned().plan_name().is_empty()
        };
        if self.subscriptions.iter().zip(&busy).all(waits) {
            self.report_lost_csvs(&namespace);
            self.actions.extend(release_unneeded_images(self.world, &self.key.name, &self.plans, &BTreeSet::new()));
            return;
        }
        let resolution = self.resolution(&namespace, &leaving, &busy);
        // A catalog that has not been read yet has no effect on them.
        if !matches!(resolution, Err(Unusable::NotYet(_))) {
            self.world.note_resolution(resolution.is_ok());
        }
        match resolution {
            Ok(install) => {
                for subscription in &mut self.subscriptions {
                    remove(&mut subscription.status, &[condition_type::RESOLUTION_FAILED]);
                }
                self.actions.extend(release_unneeded_images(self.world, &self.key.name, &self.plans, &install.images));
                self.reasons.extend(install.reasons.iter().cloned());
                if install.pending.is_empty() {
                    for subscription in &mut self.subscriptions {
                        remove(
                            &mut subscription.status,
                            &[condition_type::BUNDLE_UNPACKING, condition_type::BUNDLE_UNPACK_FAILED],
                        );
                    }
                    self.install(&install);
                } else {
                    self.wait_for(&install.pending);
                }
            }
            Err(Unusable::NotYet(reasons)) => self.reasons.extend(reasons),
            Err(Unusable::Broken(failure)) => self.fail(&failure),
        }
        self.report_lost_csvs(&namespace);
    }

    fn resolution(
        &mut self,
        namespace: &Namespace<'w>,
        leaving: &BTreeSet<&str>,
        busy: &[bool],
    ) -> Result<Install, Unusable> {
        let name = self.key.name.as_str();
        let sources = available_catalogs::sources(self.world, self.settings, name, !self.group.excludes_global);
        let is_named = |source: &Source<'_>| {
            let wanted = |s: &Draft<'_>| s.requested(false).takes_from(source.name, source.namespace);
            self.subscriptions.iter().any(wanted)
        };
        let (catalogs, mut broken) = available_catalogs::catalogs(&sources, is_named)?;
        // This is only called with exactly one OperatorGroup.
        let installed = namespace.installed(name, 1, &self.subscriptions, leaving).unwrap_or_else(|existing| {
            broken.push(existing);
            Vec::new()
        });
        let subscriptions = self.subscriptions.iter().zip(busy).map(|(s, busy)| s.requested(*busy)).collect();
        let inputs = Inputs { namespace: name, subscriptions, catalogs, broken, installed };
        let resolution = resolver::resolve(&inputs).map_err(Unusable::Broken)?;
        let (timeouts, reasons) = Timeouts::read(self.settings, self.group.object);
        let images = Images { world: self.world, settings: self.settings, timeouts, now: self.now };
        let optional = self.settings.optional_manifests;
        let install = Install::new(name, &resolution, &self.subscriptions, optional, |csv| namespace.has(csv), &images);
        let mut install = install.map_err(Unusable::Broken)?;
        if !install.images.is_empty() {
            install.reasons.extend(reasons);
        }
        Ok(install)
    }

    /// Requests missing images, and reports their state in all Subscriptions.
    fn wait_for(&mut self, pending: &[Pending]) {
        let (mut failed, mut reason, mut error) = (Vec::new(), condition_type::BUNDLE_UNPACK_FAILED.to_owned(), None);
        // Of several Jobs the first, as in OLM.
        let mut job = None;
        for Pending { image, state, actions, again, .. } in pending {
            self.actions.extend(actions.iter().cloned());
            self.again = self.again.into_iter().chain(*again).min();
            match state {
                State::Failed(UNINSTALLABLE, message) => {
                    UNINSTALLABLE.clone_into(&mut reason);
                    failed.push(message.clone());
                }
                State::Failed(why, message) => failed.push(format!("{why}: image {image}: {message}")),
                State::JobFailed(why, message) => job = job.or_else(|| Some(job_failed(why, message))),
                State::Waits(Some(why)) => error = Some(format!("Bundle image pull failed. {image}: {why}")),
                State::Waits(None) | State::NotGiven(_) => {}
            }
        }
        let known = self.known(condition_type::BUNDLE_UNPACK_FAILED, pending);
        let failures = known.as_ref().map(|(_, message)| message.as_str());
        let of = |p: &Pending| failures.filter(|message| message.contains(&p.image));
        self.reasons.extend(pending.iter().map(|p| p.reason(of(p))));
        failed.extend(job);
        let message = match (failed.is_empty(), known) {
            (true, None) => return self.set_unpacking(error, pending),
            (true, Some((before, message))) => {
                reason = before;
                message
            }
            (false, _) => format!("Bundle unpacking failed - {}", failed.join("; ")),
        };
        for subscription in &mut self.subscriptions {
            let before = subscription.status.clone();
            remove(&mut subscription.status, &[condition_type::BUNDLE_UNPACKING]);
            set_timeless(
                &mut subscription.status,
                condition(condition_type::BUNDLE_UNPACK_FAILED, true, &reason, &message),
            );
            if before != subscription.status {
                let (regarding, message) = (subscription.view.json.clone(), message.clone());
                let reason = condition_type::BUNDLE_UNPACK_FAILED.to_owned();
                self.actions.push(Action::Emit(Emit { regarding, warning: true, reason, message }));
            }
        }
    }

    /// Reports that images are being unpacked, and why the last attempt to pull one failed.
    fn set_unpacking(&mut self, error: Option<String>, pending: &[Pending]) {
        let message = error
            .or_else(|| self.known(condition_type::BUNDLE_UNPACKING, pending).map(|(_, message)| message))
            .unwrap_or_default();
        for subscription in &mut self.subscriptions {
            remove(&mut subscription.status, &[condition_type::BUNDLE_UNPACK_FAILED]);
            set_timeless(
                &mut subscription.status,
                condition(condition_type::BUNDLE_UNPACKING, true, "UnpackingInProgress", &message),
            );
        }
    }

    /// Returns reason and message about an image that is retried: they stay until the attempt has ended. Controllers that
    /// were just started have no newer state.
    fn known(&self, kind: &str, pending: &[Pending]) -> Option<(String, String)> {
        let waits =
            |message: &str| pending.iter().any(|p| matches!(p.state, State::Waits(_)) && message.contains(&p.image));
        let conditions = self.subscriptions.iter().flat_map(|s| s.planned().conditions().iter());
        let of_kind = conditions.filter(|condition| condition.of_type() == kind);
        let mut said = of_kind.map(|condition| (condition.reason().to_owned(), condition.message().to_owned()));
        said.find(|(_, message)| waits(message))
    }

    fn install(&mut self, install: &Install) {
        let Some(make) = install.make(&self.key.name, &self.subscriptions, &self.plans) else { return };
        match make {
            Make::Create(plan) => {
                let refusals = self.world.refusals(self.key);
                let refused = refusals.iter().find(|r| r.verb == Verb::Create && r.target.gvk.kind == "InstallPlan");
                if let Some(refused) = refused {
                    let message = format!("error ensuring InstallPlan: {}", refused.status.message);
                    for subscription in &mut self.subscriptions {
                        let condition =
                            condition(condition_type::BUNDLE_UNPACK_FAILED, true, "EnsureInstallPlanFailed", &message);
                        set_timeless(&mut subscription.status, condition);
                    }
                    self.write_statuses();
                }
                // The Subscriptions are written once they can refer to it.
                self.subscriptions.clear();
                self.actions.push(Action::Create(plan));
            }
            Make::Fill(plan) => {
                install.link(&mut self.subscriptions, &plan);
                self.actions.push(Action::UpdateStatus(plan.clone()));
                self.filled = Some(plan);
            }
        }
    }

    /// Reports in all Subscriptions, and in an Event, that they cannot be resolved.
    fn fail(&mut self, failure: &Failure) {
        let message = failure.to_string();
        let namespace = self.key.name.clone();
        let reason = match failure {
            Failure::Unsatisfiable(_) => reason::CONSTRAINTS_NOT_SATISFIABLE,
            Failure::Error(_) => reason::ERROR_PREVENTED_RESOLUTION,
        };
        let mut news = false;
        for subscription in &mut self.subscriptions {
            let before = subscription.status.clone();
            remove(&mut subscription.status, &[condition_type::BUNDLE_UNPACKING]);
            set_timeless(
                &mut subscription.status,
                condition(condition_type::RESOLUTION_FAILED, true, reason, &message),
            );
            news |= before != subscription.status;
        }
        if news {
            let object = self.world.json(&kind::NAMESPACE, "", &namespace);
            let regarding = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": { "name": namespace, "uid": object.map_or("", object::uid) },
            });
            let (warning, reason, message) = (true, condition_type::RESOLUTION_FAILED.to_owned(), message.clone());
            self.actions.push(Action::Emit(Emit { regarding, warning, reason, message }));
        }
        self.reasons.push(Reason::Unsatisfiable { namespace, message });
    }

    /// A CSV that was installed and deleted is not installed again until its InstallPlan is deleted too, as in OLM.
    fn report_lost_csvs(&mut self, namespace: &Namespace<'_>) {
        for subscription in &self.subscriptions {
            let current = subscription.planned().current_csv();
            let plan = self.plans.iter().find(|p| object::name(p) == subscription.planned().plan_name());
            if plan.is_some_and(|p| InstallPlan::new(p).phase() == Phase::Complete)
                && !current.is_empty()
                && !namespace.has(current)
            {
                let object = format!("Subscription {}/{}", self.key.name, subscription.view.name());
                let needs = format!("ClusterServiceVersion {current}");
                self.reasons.push(Reason::Missing { object, needs });
            }
        }
    }

    /// Completes the statuses and writes those that changed.
    fn write_statuses(&mut self) {
        let sources = available_catalogs::sources(self.world, self.settings, &self.key.name, true);
        let filled = self.filled.as_ref();
        let is_filled = |p: &&Value| filled.is_some_and(|f| object::uid(f) == object::uid(p));
        let plans: Vec<&Value> =
            filled.into_iter().chain(self.plans.iter().copied().filter(|p| !is_filled(p))).collect();
        for subscription in &mut self.subscriptions {
            subscription.follow(self.world, &plans, self.group.fail_forward);
            subscription.update_catalog_health(&sources, self.now);
            subscription.update_directory_condition(&sources, self.now);
            subscription.update_plan_conditions(&plans, self.now);
            subscription.update_deprecations(&sources, self.now);
        }
        let changed = self.subscriptions.iter().filter_map(|s| s.changed(self.now));
        self.actions.extend(changed.map(Action::UpdateStatus));
    }

    fn finish(mut self) -> Plan {
        self.write_statuses();
        Plan { actions: self.actions, reasons: self.reasons, again: self.again, ..Plan::default() }
    }
}
