//! The stages of a Subscription: its catalog, its resolution, the unpacking of bundles, and its InstallPlan.

use super::needs::has_pod;
use super::{StageName, State, Walk, code, deleting, some};
use crate::api::catalog_source::{CatalogSource, Origin};
use crate::api::conditions::Conditions;
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::{Subscription, condition_type};
use crate::health;
use crate::health::workload::{self, PodState};
use crate::installplan::summary;
use crate::plan::{Reason, Severity};
use crate::world::kind;

/// Label of the pods of a catalog: its name (olm-behaviour/catalogsource.md#catalog-pod-spec).
const CATALOG_LABEL: &str = "olm.catalogSource";

/// Conditions of a Subscription that state a deprecation.
const DEPRECATIONS: [&str; 3] =
    [condition_type::PACKAGE_DEPRECATED, condition_type::CHANNEL_DEPRECATED, condition_type::BUNDLE_DEPRECATED];

impl Walk<'_, '_> {
    /// Walks through the stages from the Subscription to the InstallPlan.
    pub(super) fn subscription(&mut self) {
        self.terminating();
        let Some(subscription) = self.subscription else {
            let message = "there is none, so the operator is not updated";
            self.stage(StageName::Subscription, None, State::Ok, message);
            return;
        };
        self.request(subscription);
        self.catalog(subscription);
        self.resolution(subscription);
        self.unpacking(subscription);
        self.install_plan(subscription);
    }

    /// Reports a namespace that is being deleted.
    fn terminating(&mut self) {
        let Some(namespace) = self.world.json(&kind::NAMESPACE, "", self.namespace()) else { return };
        if object::is_terminating(namespace) {
            let reason = Reason::NamespaceTerminating { namespace: self.namespace().to_owned() };
            self.stage(StageName::Subscription, some(namespace), State::Failed, reason.to_string());
            self.reason(StageName::Subscription, ObjectRef::from_object(namespace), &reason);
        }
    }

    fn request(&mut self, subscription: Subscription<'_>) {
        let channel = match subscription.channel() {
            "" => "its default channel".to_owned(),
            channel => format!("channel {channel}"),
        };
        let (package, approval) = (subscription.package(), &self.operator.approval);
        let wanted = format!(
            "package {package} of {channel} from catalog {}/{}, {approval} approval",
            subscription.source_namespace(),
            subscription.source()
        );
        let object = ObjectRef::from_object(subscription.json);
        let is_new = subscription.current_csv().is_empty() && Conditions::new(subscription.json).json().is_empty();
        let (state, message) = match deleting(subscription.json) {
            Some(deleting) => (State::Waiting, deleting.to_owned()),
            None if is_new && self.scope.controllers == Some(false) => {
                self.problem(
                    &code::NO_CONTROLLERS,
                    StageName::Subscription,
                    object.clone(),
                    "no controllers of OLM are running",
                );
                (State::Failed, format!("{wanted}; no controllers are running"))
            }
            None if is_new => (State::Waiting, format!("{wanted}; no controller has processed it yet")),
            None => (State::Ok, wanted),
        };
        self.stage(StageName::Subscription, Some(object.clone()), state, message);
        for of_type in DEPRECATIONS {
            let message = subscription.conditions().holding(of_type).map(|condition| condition.message().to_owned());
            if let Some(message) = message {
                self.problem(&code::DEPRECATED, StageName::Subscription, object.clone(), message);
            }
        }
    }

    fn catalog(&mut self, subscription: Subscription<'_>) {
        let (namespace, name) = (subscription.source_namespace(), subscription.source());
        let object = kinds::CATALOG_SOURCE.object(namespace, name);
        let is_directory = self.world.catalog(namespace, name).is_some_and(crate::world::CatalogFact::is_local)
            || subscription.conditions().is_true(condition_type::CATALOG_DIRECTORY);
        let source = match self.find(&kind::CATALOG_SOURCE, namespace, name) {
            Ok(Some(source)) => CatalogSource::new(source),
            _ if is_directory => {
                self.stage(StageName::Catalog, None, State::Ok, "it is served from a directory");
                return;
            }
            Ok(None) => {
                let message = format!("CatalogSource {namespace}/{name} does not exist");
                self.stage(StageName::Catalog, Some(object.clone()), State::Failed, message.clone());
                self.problem(&code::CATALOG_MISSING, StageName::Catalog, object, message);
                return;
            }
            Err(why) => {
                self.unknown(StageName::Catalog, Some(object), &why);
                return;
            }
        };
        if let Origin::Invalid(why) = Origin::from_source(source.json)
            && !object::at(source.json, &["spec"]).is_null()
        {
            self.stage(StageName::Catalog, Some(object.clone()), State::Failed, why.clone());
            self.problem(&code::CATALOG_INVALID, StageName::Catalog, object, why);
            return;
        }
        if has_pod(source) && self.stuck_catalog_pod(source, &object) {
            return;
        }
        match (source.connection_state(), object::text(source.json, &["status", "message"])) {
            ("READY", _) => self.stage(StageName::Catalog, Some(object), State::Ok, "it is ready"),
            // Catalogs in ConfigMaps, and those that kubectl olm run reads directly, have no connection.
            ("", "") => self.stage(StageName::Catalog, Some(object), State::Ok, "no error is reported"),
            (state, message) => {
                let state = if state.is_empty() { message } else { state };
                let reason = Reason::CatalogNotReady {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    state: state.to_owned(),
                };
                self.stage(StageName::Catalog, Some(object.clone()), State::Waiting, reason.to_string());
                self.reason(StageName::Catalog, object, &reason);
            }
        }
    }

    /// Reports a pod of a catalog that cannot start. Returns whether there is one.
    fn stuck_catalog_pod(&mut self, source: CatalogSource<'_>, object: &ObjectRef) -> bool {
        let pods = self.world.in_namespace(&kind::POD, source.namespace()).map(|pod| pod.json());
        let mut pods =
            pods.filter(|pod| object::label(pod, CATALOG_LABEL) == Some(source.name()) && !object::is_deleting(pod));
        let stuck = pods.find_map(|pod| match workload::pod(pod) {
            PodState::Stuck(trouble) => Some((ObjectRef::from_object(pod), trouble)),
            PodState::Ready | PodState::Waiting(_) => None,
        });
        let Some((pod, trouble)) = stuck else { return false };
        let message = format!("pod {}: {trouble}", pod.name);
        self.stage(StageName::Catalog, Some(object.clone()), State::Failed, message.clone());
        self.problem(&code::CATALOG_POD, StageName::Catalog, pod, message);
        true
    }

    fn resolution(&mut self, subscription: Subscription<'_>) {
        let object = ObjectRef::from_object(subscription.json);
        let current = subscription.current_csv();
        let (state, message) = match health::resolution(subscription) {
            Some(reason @ Reason::Unsatisfiable { .. }) => {
                self.reason(StageName::Resolution, object, &reason);
                let Reason::Unsatisfiable { message, .. } = reason else { return };
                (State::Failed, message)
            }
            _ if current.is_empty() => (State::Waiting, "nothing is resolved yet".to_owned()),
            _ if current == subscription.installed_csv() => {
                (State::Ok, format!("{current} is the latest known version"))
            }
            _ => (State::Ok, format!("{current} is the next version")),
        };
        self.stage(StageName::Resolution, None, state, message);
    }

    fn unpacking(&mut self, subscription: Subscription<'_>) {
        let object = ObjectRef::from_object(subscription.json);
        let (state, message) = match health::resolution(subscription) {
            Some(Reason::Unsatisfiable { .. }) => (State::Waiting, "it follows the resolution".to_owned()),
            Some(reason @ (Reason::BundleUnpackFailed { .. } | Reason::StatusWaits { .. })) => {
                let is_failed = matches!(reason, Reason::BundleUnpackFailed { .. });
                let is_stuck = super::classify(&reason).iter().any(|(code, _)| code.severity == Severity::Blocked);
                if is_stuck {
                    self.reason(StageName::Unpack, object, &reason);
                }
                let message = match &reason {
                    Reason::BundleUnpackFailed { message, .. } | Reason::StatusWaits { message, .. } => message.clone(),
                    other => other.to_string(),
                };
                (if is_failed || is_stuck { State::Failed } else { State::Waiting }, message)
            }
            _ if subscription.current_csv().is_empty() => (State::Waiting, "it follows the resolution".to_owned()),
            _ => (State::Ok, "no bundle is being unpacked".to_owned()),
        };
        self.stage(StageName::Unpack, None, state, message);
    }

    fn install_plan(&mut self, subscription: Subscription<'_>) {
        let (namespace, name) = (subscription.namespace(), subscription.plan_name());
        if name.is_empty() {
            let (state, message) = if self.operator.installed.is_some() {
                (State::Ok, "the Subscription refers to none")
            } else {
                (State::Waiting, "it follows the resolution")
            };
            self.stage(StageName::InstallPlan, None, state, message);
            return;
        }
        let object = kinds::INSTALL_PLAN.object(namespace, name);
        let plan = match self.find(&kind::INSTALL_PLAN, namespace, name) {
            Ok(Some(plan)) => plan,
            Ok(None) if self.is_installed() => {
                let message = "it was deleted after it was executed";
                self.stage(StageName::InstallPlan, Some(object), State::Ok, message);
                return;
            }
            Ok(None) => {
                let message = format!("InstallPlan {namespace}/{name} does not exist");
                self.stage(StageName::InstallPlan, Some(object.clone()), State::Failed, message.clone());
                self.problem(&code::PLAN_MISSING, StageName::InstallPlan, object, message);
                return;
            }
            Err(why) => return self.unknown(StageName::InstallPlan, Some(object), &why),
        };
        let mut summary = summary::summarize(self.scope.settings, self.world, plan);
        if !self.scope.known.within(&kind::OPERATOR_GROUP, namespace) {
            summary.without_groups();
        }
        let (done, all) = summary.steps;
        let (state, message) = match (&summary.reason, &summary.superseded_by) {
            _ if summary.left_over => (State::Ok, "left over from operators that were uninstalled".to_owned()),
            (_, Some(newer)) => (State::Ok, format!("InstallPlan {newer} supersedes it")),
            (None, None) => (State::Ok, format!("{}: {done} of {all} steps are done", summary.phase)),
            (Some(reason), None) => {
                let is_upgradable = self.operator.health == health::Health::Upgradable;
                let state = match reason.severity() {
                    Severity::Settled => State::Ok,
                    Severity::Blocked if !is_upgradable => State::Failed,
                    Severity::Blocked | Severity::Waiting => State::Waiting,
                };
                if reason.severity() != Severity::Waiting {
                    self.reason(StageName::InstallPlan, object.clone(), reason);
                }
                (state, reason.cause())
            }
        };
        self.stage(StageName::InstallPlan, Some(object), state, message);
    }

    /// Reports whether the version that was resolved last is installed, or being installed.
    fn is_installed(&self) -> bool {
        let current = self.subscription.map(Subscription::current_csv).unwrap_or_default();
        self.csvs.iter().any(|csv| csv.name() == current)
    }
}
