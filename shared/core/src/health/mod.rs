//! The state of operators, derived from the status of their objects, whichever controllers wrote it.
//!
//! ```text
//!   Subscription  conditions ─┐
//!   OperatorGroup, CatalogSource ─┤
//!   InstallPlan   summary ────┼─> the first reason that is not settled --> Operator: installed, next, health, reason, command
//!   ClusterServiceVersion ────┘
//! ```
//!
//! [`finality`] decides when a state cannot end without a user's action.
//!
//! A ClusterServiceVersion without a Subscription is an operator, too: it is not updated. Copies are not operators.
//! `workload` judges Deployments and Pods; [`trimmed`] returns the parts of objects that a list has to keep.

pub mod finality;
#[cfg(test)]
mod tests;
mod trim;
pub mod workload;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
pub use trim::trimmed;

use crate::api::catalog_source::CatalogSource;
use crate::api::cluster_service_version::{Csv, Phase, Requirement, RequirementStatus};
use crate::api::conditions::Conditions;
use crate::api::object;
use crate::api::subscription::{Approval, Subscription, condition_type};
use crate::installplan::summary::{self, PlanSummary};
use crate::plan::{Reason, Severity};
use crate::settings::Settings;
use crate::visible::word;
use crate::world::{ConnectionState, Reader, kind};

/// The health of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Health {
    /// It is installed, and nothing is wrong.
    Healthy,
    /// It is installed, and an upgrade waits for approval.
    Upgradable,
    /// It is being installed or upgraded; no action is required.
    Progressing,
    /// A user has to act.
    Blocked,
}

impl Health {
    /// Returns the word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Upgradable => "Upgradable",
            Self::Progressing => "Progressing",
            Self::Blocked => "Blocked",
        }
    }
}

/// A ClusterServiceVersion of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Version {
    /// Its name.
    pub csv: String,
    /// `spec.version`; empty if it does not exist or has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// `status.phase`; empty if it does not exist.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// An operator: a Subscription with its ClusterServiceVersion, or a ClusterServiceVersion alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// Its namespace.
    pub namespace: String,
    /// The name of the Subscription, or of the ClusterServiceVersion.
    pub name: String,
    /// Whether there is a Subscription.
    pub subscribed: bool,
    /// The package of the Subscription.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// The channel of the Subscription; empty for the default channel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// The catalog of the Subscription, `NAMESPACE/NAME`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub catalog: String,
    /// How InstallPlans are approved: `Automatic` or `Manual`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approval: String,
    /// The installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<Version>,
    /// The version that is being installed, or that waits for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Version>,
    /// The InstallPlan of the Subscription.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub install_plan: String,
    /// Its health.
    pub health: Health,
    /// Why it is not healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The command that solves or shows the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What the state of operators is derived from.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'s> {
    /// The settings of the controllers.
    pub settings: &'s Settings,
    /// Whether all OperatorGroups of the namespaces were read. Otherwise a missing one is unknown.
    pub knows_groups: bool,
    /// Whether all CatalogSources were read. Otherwise a missing one is unknown.
    pub knows_catalogs: bool,
}

/// Returns the operators of a namespace, or of all namespaces, sorted by namespace and name.
pub fn operators(world: &Reader<'_>, scope: Scope<'_>, namespace: Option<&str>) -> Vec<Operator> {
    let is_asked = |object: &&Value| namespace.is_none_or(|namespace| namespace == object::namespace(object));
    let subscriptions = world.all(&kind::SUBSCRIPTION).map(|object| object.json()).filter(is_asked);
    let mut found: Vec<Operator> =
        subscriptions.map(|subscription| of_subscription(world, scope, Subscription::new(subscription))).collect();
    let subscribed: BTreeSet<(String, String)> = found
        .iter()
        .flat_map(|operator| {
            operator.installed.iter().chain(&operator.next).map(|v| (operator.namespace.clone(), v.csv.clone()))
        })
        .collect();
    let csvs = world.all(&kind::CLUSTER_SERVICE_VERSION).map(|object| object.json()).filter(is_asked).map(Csv::new);
    for csv in csvs.filter(|csv| !csv.is_copy()) {
        // One that is replaced belongs to the operator of the one that replaces it.
        let is_replaced = matches!(csv.phase(), Phase::Replacing | Phase::Deleting);
        if !is_replaced && !subscribed.contains(&(csv.namespace().to_owned(), csv.name().to_owned())) {
            found.push(of_csv(world, scope, csv));
        }
    }
    found.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    found
}

/// Returns the operator of that name: of its Subscription, or of its ClusterServiceVersion.
pub fn operator(world: &Reader<'_>, scope: Scope<'_>, namespace: &str, name: &str) -> Option<Operator> {
    if let Some(subscription) = world.json(&kind::SUBSCRIPTION, namespace, name) {
        return Some(of_subscription(world, scope, Subscription::new(subscription)));
    }
    let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name).map(Csv::new)?;
    (!csv.is_copy()).then(|| of_csv(world, scope, csv))
}

fn version(world: &Reader<'_>, namespace: &str, name: &str) -> Option<Version> {
    if name.is_empty() {
        return None;
    }
    let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name).map(Csv::new);
    let text = |of: fn(Csv<'_>) -> &str| csv.map(|csv| of(csv).to_owned()).unwrap_or_default();
    Some(Version { csv: name.to_owned(), version: text(|csv| csv.version()), phase: text(|csv| csv.phase_text()) })
}

fn of_subscription(world: &Reader<'_>, scope: Scope<'_>, subscription: Subscription<'_>) -> Operator {
    let namespace = subscription.namespace();
    let plan = world.json(&kind::INSTALL_PLAN, namespace, subscription.plan_name());
    let summary = plan.map(|plan| summary::summarize(scope.settings, world, plan)).map(|mut summary| {
        if !scope.knows_groups {
            summary.without_groups();
        }
        summary
    });
    let installed = subscription.installed_csv();
    let current = subscription.current_csv();
    let planned =
        summary.as_ref().filter(|summary| !summary.is_final() && !summary.left_over).map_or(current, |summary| {
            let is_own = |change: &&summary::Change| change.to == current || change.from.as_deref() == Some(installed);
            summary.csvs.iter().find(is_own).map_or(current, |change| change.to.as_str())
        });
    let next = if planned == installed { "" } else { planned };
    let installed = version(world, namespace, installed);
    let reason = reason_of_subscription(world, scope, subscription, summary.as_ref(), installed.as_ref());
    let approval = match subscription.approval_text() {
        "" => Approval::Automatic.as_str(),
        text => text,
    };
    let next = version(world, namespace, next);
    let is_running = installed.as_ref().is_some_and(|version| version.phase == Phase::Succeeded.as_str());
    Operator {
        namespace: namespace.to_owned(),
        name: subscription.name().to_owned(),
        subscribed: true,
        package: subscription.package().to_owned(),
        channel: subscription.channel().to_owned(),
        catalog: format!("{}/{}", subscription.source_namespace(), subscription.source()),
        approval: approval.to_owned(),
        health: health(reason.as_ref(), is_running),
        command: reason.as_ref().and_then(|reason| command(reason, subscription.json)),
        install_plan: subscription.plan_name().to_owned(),
        installed,
        next,
        reason,
    }
}

fn of_csv(world: &Reader<'_>, scope: Scope<'_>, csv: Csv<'_>) -> Operator {
    let reason = no_single_group(world, scope, csv.namespace()).or_else(|| reason_of_csv(csv));
    Operator {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        subscribed: false,
        package: String::new(),
        channel: String::new(),
        catalog: String::new(),
        approval: String::new(),
        installed: version(world, csv.namespace(), csv.name()),
        next: None,
        install_plan: String::new(),
        health: health(reason.as_ref(), false),
        command: reason.as_ref().and_then(|reason| command(reason, csv.json)),
        reason,
    }
}

fn health(reason: Option<&Reason>, is_running: bool) -> Health {
    match reason {
        Some(Reason::ApprovalNeeded { .. }) if is_running => Health::Upgradable,
        Some(reason) => match reason.severity() {
            Severity::Settled => Health::Healthy,
            Severity::Waiting => Health::Progressing,
            Severity::Blocked => Health::Blocked,
        },
        None => Health::Healthy,
    }
}

/// Returns the reason if the namespace does not have exactly one OperatorGroup.
fn no_single_group(world: &Reader<'_>, scope: Scope<'_>, namespace: &str) -> Option<Reason> {
    let groups = world.in_namespace(&kind::OPERATOR_GROUP, namespace);
    let mut names: Vec<String> = groups.map(|group| object::name(group.json()).to_owned()).collect();
    names.sort();
    let namespace = namespace.to_owned();
    match names.len() {
        0 if scope.knows_groups => Some(Reason::NoOperatorGroup { namespace }),
        0 | 1 => None,
        _ => Some(Reason::TooManyOperatorGroups { namespace, names }),
    }
}

fn reason_of_subscription(
    world: &Reader<'_>,
    scope: Scope<'_>,
    subscription: Subscription<'_>,
    plan: Option<&PlanSummary>,
    installed: Option<&Version>,
) -> Option<Reason> {
    let namespace = subscription.namespace();
    let object = || format!("Subscription {namespace}/{}", subscription.name());
    if let Some(reason) = no_single_group(world, scope, namespace) {
        return Some(reason);
    }
    let csv_of = |name: &str| world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name).map(Csv::new);
    // What is being installed comes first: its failure is the cause of everything else.
    let current = csv_of(subscription.current_csv()).and_then(reason_of_csv);
    if let Some(reason) = &current
        && reason.severity() == Severity::Blocked
    {
        return current;
    }
    let of_plan =
        plan.filter(|plan| plan.superseded_by.is_none() && !plan.left_over).and_then(|plan| plan.reason.clone());
    let resolution = || resolution(subscription).or_else(|| catalog(world, scope, subscription));
    let reason = of_plan.or_else(resolution).or(current);
    if reason.is_some() {
        return reason;
    }
    match installed {
        Some(version) if csv_of(&version.csv).is_none() => {
            Some(Reason::Missing { object: object(), needs: format!("ClusterServiceVersion {}", version.csv) })
        }
        Some(_) => None,
        None if subscription.current_csv().is_empty() => {
            let message = "no controller has resolved it yet".to_owned();
            Some(Reason::StatusWaits { object: object(), message })
        }
        None => {
            let message = format!("ClusterServiceVersion {} does not exist yet", subscription.current_csv());
            Some(Reason::StatusWaits { object: object(), message })
        }
    }
}

/// Returns why the Subscription is not resolved, according to its conditions.
pub(crate) fn resolution(subscription: Subscription<'_>) -> Option<Reason> {
    let conditions = Conditions::new(subscription.json);
    let message = |of_type| conditions.holding(of_type).map(|condition| condition.message().to_owned());
    let namespace = subscription.namespace().to_owned();
    if let Some(message) = message(condition_type::RESOLUTION_FAILED) {
        return Some(Reason::Unsatisfiable { namespace, message });
    }
    let (bundle, image) = (subscription.package().to_owned(), String::new());
    if let Some(message) = message(condition_type::BUNDLE_UNPACK_FAILED) {
        return Some(Reason::BundleUnpackFailed { bundle, image, message });
    }
    message(condition_type::BUNDLE_UNPACKING).map(|message| Reason::StatusWaits {
        object: format!("Subscription {namespace}/{}", subscription.name()),
        message: if message.is_empty() { "a bundle image is being pulled".to_owned() } else { message },
    })
}

/// Returns what is wrong with the catalog of a Subscription.
fn catalog(world: &Reader<'_>, scope: Scope<'_>, subscription: Subscription<'_>) -> Option<Reason> {
    let (namespace, name) = (subscription.source_namespace(), subscription.source());
    match world.json(&kind::CATALOG_SOURCE, namespace, name) {
        // A catalog that is served from a directory has no CatalogSource.
        None if world.catalog(namespace, name).is_some() || !scope.knows_catalogs => None,
        None if Conditions::new(subscription.json).is_true(condition_type::CATALOG_DIRECTORY) => None,
        None => Some(Reason::Missing {
            object: format!("Subscription {}/{}", subscription.namespace(), subscription.name()),
            needs: format!("CatalogSource {namespace}/{name}"),
        }),
        Some(source) => {
            let state = CatalogSource::new(source).connection_state();
            let is_unhealthy = Conditions::new(subscription.json).is_true(condition_type::CATALOG_SOURCES_UNHEALTHY);
            (is_unhealthy && !state.is_empty() && state != ConnectionState::Ready.as_str()).then(|| {
                Reason::CatalogNotReady {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                    state: state.to_owned(),
                }
            })
        }
    }
}

/// Returns why a ClusterServiceVersion is not `Succeeded`.
pub(crate) fn reason_of_csv(csv: Csv<'_>) -> Option<Reason> {
    let (namespace, name, message) = (csv.namespace().to_owned(), csv.name().to_owned(), csv.message().to_owned());
    match csv.phase() {
        Phase::Succeeded => None,
        Phase::Failed => Some(Reason::CsvFailed { namespace, name, failure_reason: csv.reason().to_owned(), message }),
        Phase::Pending => {
            let missing = unmet_requirements(csv);
            if missing.is_empty() {
                return Some(Reason::NotHealthy {
                    namespace,
                    name,
                    message: or(&message, "its requirements are being checked"),
                });
            }
            Some(Reason::RequirementsNotMet { namespace, name, missing })
        }
        Phase::None => {
            Some(Reason::NotHealthy { namespace, name, message: or(&message, "no controller has processed it yet") })
        }
        _ => Some(Reason::NotHealthy { namespace, name, message }),
    }
}

fn or(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
}

/// Returns the requirements in the status that are not met, each `Kind name: message`.
pub(crate) fn unmet_requirements(csv: Csv<'_>) -> Vec<String> {
    csv.requirements().filter(|requirement| !requirement.is_met()).map(described).collect()
}

/// Formats a requirement: `Kind name: message`.
fn described(requirement: Requirement<'_>) -> String {
    let unmet = requirement.dependents().find(|dependent| dependent.status() != RequirementStatus::Satisfied);
    let message = unmet.unwrap_or(requirement).message();
    format!("{} {}: {message}", requirement.kind(), requirement.name())
}

/// Returns the command that solves a problem, or that shows more about it. `asked` is the Subscription or the ClusterServiceVersion.
fn command(reason: &Reason, asked: &Value) -> Option<String> {
    let plan = |verb: &str, namespace: &str, name: &str| {
        Some(format!("kubectl olm install-plan {verb} {} -n {}", word(name), word(namespace)))
    };
    let (namespace, name) = (word(object::namespace(asked)), word(object::name(asked)));
    match reason {
        Reason::ApprovalNeeded { namespace, name, .. } => plan("approve", namespace, name),
        Reason::InstallPlanFailed { namespace, name, .. } | Reason::InstallPlanRetries { namespace, name, .. } => {
            plan("explain", namespace, name)
        }
        Reason::NoOperatorGroup { namespace } => {
            Some(format!("kubectl olm operatorgroup create -n {}", word(namespace)))
        }
        Reason::TooManyOperatorGroups { namespace, .. } => {
            Some(format!("kubectl olm operatorgroup lint -n {}", word(namespace)))
        }
        _ => {
            let is_described =
                reason.severity() == Severity::Blocked || matches!(reason, Reason::CatalogNotReady { .. });
            is_described.then(|| format!("kubectl olm operator describe {name} -n {namespace}"))
        }
    }
}
