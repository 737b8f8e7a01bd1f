//! Walks from the Subscription of an operator to its pods and certificates, and names what is wrong on the way.
//!
//! ```text
//!   World, Known --> Walk -- catalog    Subscription, Catalog, Resolution, Unpack, InstallPlan --+
//!                     |----- version    OperatorGroup, ClusterServiceVersion                     |
//!                     |----- workloads  Deployment, Pod                                          +--> Diagnosis { operator, stages, problems }
//!                     '----- serving    APIService, Webhook, Certificate ------------------------+
//!   code     the table of problems: stable codes with cause, fix and command
//!   classify the code for a reason, refined by its message
//!   needs    what has to be read besides the objects that `health` needs
//! ```
//!
//! *Guarantees*: what could not be read, or is not in the files, is `Unknown` and never a problem. The walk reads only status and spec: it
//! makes the same diagnosis whichever controllers serve the cluster.

mod catalog;
mod classify;
mod code;
mod needs;
mod serving;
#[cfg(test)]
mod tests;
mod version;
mod workloads;

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

pub use self::classify::classify;
pub use self::code::{CODES, Code, code};
pub use self::needs::{Needs, needs};
use crate::api::cluster_service_version::Csv;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::health::{self, Health, Operator};
use crate::plan::{Reason, Severity};
use crate::settings::Settings;
use crate::world::{GroupKind, Known, Reader, World, kind};

/// A stage on the way from the Subscription to the running operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum StageName {
    /// The Subscription, or that there is none.
    Subscription,
    /// The CatalogSource of the Subscription.
    Catalog,
    /// The resolution of the namespace.
    Resolution,
    /// The unpacking of bundle images.
    Unpack,
    /// The InstallPlan of the Subscription.
    InstallPlan,
    /// The OperatorGroup of the namespace.
    OperatorGroup,
    /// The new and the installed ClusterServiceVersion.
    ClusterServiceVersion,
    /// The Deployments of the ClusterServiceVersion.
    Deployment,
    /// Their pods.
    Pod,
    /// The aggregated APIs that they serve.
    #[serde(rename = "APIService")]
    ApiService,
    /// The webhooks that they serve.
    Webhook,
    /// Their serving certificates.
    Certificate,
}

impl StageName {
    /// Returns the word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subscription => "Subscription",
            Self::Catalog => "Catalog",
            Self::Resolution => "Resolution",
            Self::Unpack => "Unpack",
            Self::InstallPlan => "InstallPlan",
            Self::OperatorGroup => "OperatorGroup",
            Self::ClusterServiceVersion => "ClusterServiceVersion",
            Self::Deployment => "Deployment",
            Self::Pod => "Pod",
            Self::ApiService => "APIService",
            Self::Webhook => "Webhook",
            Self::Certificate => "Certificate",
        }
    }
}

/// The state of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum State {
    /// Nothing is wrong.
    Ok,
    /// It is in progress, or waits for an earlier stage.
    Waiting,
    /// It does not work, and will not without a change.
    Failed,
    /// What it consists of could not be read.
    Unknown,
}

impl State {
    /// Returns the word in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "Ok",
            Self::Waiting => "Waiting",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// A stage of the walk. A stage with several objects occurs several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The stage.
    pub stage: StageName,
    /// The object, if it is one.
    pub object: Option<ObjectRef>,
    /// Its state.
    pub state: State,
    /// What was found, a clause without a full stop.
    pub message: String,
}

/// A problem of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the problem.
    pub code: &'static Code,
    /// Whether a user has to act.
    pub severity: Severity,
    /// The stage that has the problem.
    pub stage: StageName,
    /// The object that has the problem.
    pub object: ObjectRef,
    /// What was found, a clause without a full stop.
    pub message: String,
    /// The command that fixes it or shows more about it.
    pub command: String,
    /// A suggested next step for exactly this case, if there is one.
    pub hint: Option<String>,
}

/// The diagnosis of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The operator, with its health.
    pub operator: Operator,
    /// The stages, in their order.
    pub stages: Vec<Stage>,
    /// The problems, the most severe first, in the order of the stages.
    pub problems: Vec<Problem>,
}

impl Diagnosis {
    /// Reports whether a user has to act.
    pub fn is_blocked(&self) -> bool {
        self.operator.health == Health::Blocked
            || self.stages.iter().any(|stage| stage.state == State::Failed)
            || self.problems.iter().any(|problem| problem.severity == Severity::Blocked)
    }
}

impl Stage {
    /// Returns the stage as a JSON document.
    pub fn document(&self) -> Value {
        let mut document = json!({ "stage": self.stage, "state": self.state, "message": self.message });
        if let Some(object) = &self.object {
            document["object"] = reference(object);
        }
        document
    }
}

impl Problem {
    /// Returns the word for the severity: `blocked`, `waiting` or `notice`.
    pub fn severity_word(&self) -> &'static str {
        code::severity_word(self.severity)
    }

    /// Returns the problem as a JSON document.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "code": self.code.code, "name": self.code.name, "severity": self.severity_word(), "stage": self.stage,
            "object": reference(&self.object), "message": self.message, "cause": self.code.cause, "fix": self.code.fix,
            "command": self.command, "explain": self.code.explain_command(),
        });
        if let Some(hint) = &self.hint {
            document["hint"] = hint.as_str().into();
        }
        document
    }
}

fn reference(object: &ObjectRef) -> Value {
    let mut document = json!({ "apiVersion": object.gvk.api_version(), "kind": object.gvk.kind, "name": object.name });
    if !object.namespace.is_empty() {
        document["namespace"] = object.namespace.as_str().into();
    }
    document
}

/// What a diagnosis is based on.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'s> {
    /// The settings of the controllers.
    pub settings: &'s Settings,
    /// Of which kinds all objects are known.
    pub known: &'s Known,
    /// Whether controllers of OLM are running, if that is known.
    pub controllers: Option<bool>,
    /// The time.
    pub now: Timestamp,
}

/// Why nothing can be concluded from objects that are missing in files.
const FILES: &str = "not in the files, which may not contain all objects of the cluster";

/// Derives what is known from files of unknown completeness: all Subscriptions, ClusterServiceVersions, InstallPlans and OperatorGroups if
/// they contain objects of that kind; of other kinds, all objects of each namespace of which they contain at least one.
pub fn known_of_files(world: &World) -> Known {
    let mut known = Known::of_files(world, FILES);
    let reader = Reader::new(world);
    for gk in [kind::SUBSCRIPTION, kind::CLUSTER_SERVICE_VERSION, kind::INSTALL_PLAN, kind::OPERATOR_GROUP] {
        if reader.all(&gk).next().is_some() {
            known.complete(&gk);
        }
    }
    known
}

/// Returns the diagnosis of the operator whose Subscription or ClusterServiceVersion has that name.
pub fn diagnose(world: &Reader<'_>, scope: Scope<'_>, namespace: &str, name: &str) -> Option<Diagnosis> {
    let subscription = world.json(&kind::SUBSCRIPTION, namespace, name).map(Subscription::new);
    let of_catalog = subscription.map_or(namespace, Subscription::source_namespace);
    let seen = health::Scope {
        settings: scope.settings,
        knows_groups: scope.known.within(&kind::OPERATOR_GROUP, namespace),
        knows_catalogs: scope.known.within(&kind::CATALOG_SOURCE, of_catalog),
    };
    let operator = health::operator(world, seen, namespace, name)?;
    let csvs = csvs(world, namespace, name, subscription);
    let mut walk =
        Walk { world, scope, operator: &operator, subscription, csvs, stages: Vec::new(), problems: Vec::new() };
    // A problem of the OperatorGroup is the cause of others.
    walk.group();
    walk.subscription();
    walk.versions();
    walk.workloads();
    walk.serving();
    walk.rest();
    let Walk { mut stages, mut problems, .. } = walk;
    stages.sort_by_key(|stage| stage.stage);
    problems.sort_by_key(|problem| (Reverse(problem.severity), problem.stage));
    Some(Diagnosis { operator, stages, problems })
}

/// Returns the existing ClusterServiceVersions of an operator: the new one, then the installed one.
fn csvs<'w>(world: &Reader<'w>, namespace: &str, name: &str, subscription: Option<Subscription<'_>>) -> Vec<Csv<'w>> {
    let names = match subscription {
        Some(subscription) => vec![subscription.current_csv(), subscription.installed_csv()],
        None => vec![name],
    };
    let mut found: Vec<Csv<'w>> = Vec::new();
    for name in names {
        let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name).map(Csv::new);
        found.extend(csv.filter(|csv| !csv.is_copy() && found.iter().all(|known| known.name() != csv.name())));
    }
    found
}

/// The walk through the stages of one operator.
struct Walk<'a, 'w> {
    world: &'a Reader<'w>,
    scope: Scope<'a>,
    operator: &'a Operator,
    subscription: Option<Subscription<'w>>,
    csvs: Vec<Csv<'w>>,
    stages: Vec<Stage>,
    problems: Vec<Problem>,
}

impl<'w> Walk<'_, 'w> {
    fn namespace(&self) -> &str {
        &self.operator.namespace
    }

    /// Returns the Subscription or the ClusterServiceVersion of the operator.
    fn asked(&self) -> ObjectRef {
        let kind = if self.operator.subscribed {
            &crate::api::kinds::SUBSCRIPTION
        } else {
            &crate::api::kinds::CLUSTER_SERVICE_VERSION
        };
        kind.object(&self.operator.namespace, &self.operator.name)
    }

    /// Adds a stage.
    fn stage(&mut self, stage: StageName, object: Option<ObjectRef>, state: State, message: impl Into<String>) {
        self.stages.push(Stage { stage, object, state, message: message.into() });
    }

    /// Adds a stage of objects that could not be read.
    fn unknown(&mut self, stage: StageName, object: Option<ObjectRef>, why: &str) {
        self.stage(stage, object, State::Unknown, why);
    }

    /// Adds a problem, unless the object has it already.
    fn problem(&mut self, code: &'static Code, stage: StageName, object: ObjectRef, message: impl Into<String>) {
        self.add(code, code.severity, stage, object, message.into(), None);
    }

    /// Adds the problem for a reason, unless it is known: several objects state the same cause.
    fn reason(&mut self, stage: StageName, object: ObjectRef, reason: &Reason) {
        // An installed operator works while its upgrade waits for approval.
        let is_upgradable =
            self.operator.health == Health::Upgradable && matches!(reason, Reason::ApprovalNeeded { .. });
        for (code, message) in classify(reason) {
            if self.problems.iter().any(|known| known.code == code) {
                continue;
            }
            let severity = if is_upgradable { Severity::Waiting } else { code.severity };
            self.add(code, severity, stage, object.clone(), message, reason.hint());
        }
    }

    fn add(
        &mut self,
        code: &'static Code,
        severity: Severity,
        stage: StageName,
        object: ObjectRef,
        message: String,
        hint: Option<String>,
    ) {
        if self.problems.iter().any(|known| known.code == code && known.object == object) {
            return;
        }
        // Of a namespace and other cluster-scoped objects, the operator's namespace is meant.
        let namespace = match (object.namespace.as_str(), object.gvk.kind.as_str()) {
            ("", "Namespace") => object.name.as_str(),
            ("", _) => self.operator.namespace.as_str(),
            (namespace, _) => namespace,
        };
        let command = code.command(namespace, &object.name, &self.operator.name);
        self.problems.push(Problem { code, severity, stage, object, message, command, hint });
    }

    /// Returns an object, or why it is unknown whether it exists; `Ok(None)` if it does not exist.
    fn find(&self, gk: &GroupKind, namespace: &str, name: &str) -> Result<Option<&'w Value>, String> {
        match (self.world.json(gk, namespace, name), self.scope.known.why_unknown(gk, namespace)) {
            (Some(found), _) => Ok(Some(found)),
            (None, Some(why)) => Err(why.to_owned()),
            (None, None) => Ok(None),
        }
    }

    /// Adds the problem of the operator's health, if no stage found it.
    fn rest(&mut self) {
        let Some(reason) = self.operator.reason.clone() else { return };
        let is_known = |code: &Code| self.problems.iter().any(|problem| problem.code == code);
        if classify(&reason).iter().any(|(code, _)| is_known(code)) {
            return;
        }
        // What is in progress is stated by the stages, and problems are its cause.
        if reason.severity() != Severity::Blocked && !self.problems.is_empty() {
            return;
        }
        let object = self.asked();
        self.reason(StageName::Subscription, object, &reason);
    }
}

/// Returns the reference of an object that may be `None`.
fn some(object: &Value) -> Option<ObjectRef> {
    Some(ObjectRef::from_object(object))
}

/// Returns the finalizers and conditions that a deletion waits for, as a suffix.
fn deleting(object: &Value) -> Option<&'static str> {
    object::is_deleting(object).then_some("it is being deleted")
}
