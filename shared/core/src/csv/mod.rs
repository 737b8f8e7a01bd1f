//! The state machine of a ClusterServiceVersion (olm-behaviour/csv.md#phases).
//!
//! ```text
//!   "" -> Pending -> InstallReady -> Installing -> Succeeded -> Replacing -> Deleting -> deleted
//!          ^  requirements   deployments    check     |
//!          +---------------- Failed <-----------------+
//!
//!   gates         preconditions of every phase: one OperatorGroup, supported install modes, no API conflict
//!   requirements  CRDs, APIs, ServiceAccounts and their permissions
//!   deployments   the Deployments of the install strategy, and their availability
//!     config      the settings of a Subscription for them
//!   serving       Service, certificate and permissions of Deployments that the API server calls
//!     pair        reading a certificate
//!   apiservices   APIs that they serve
//!   webhooks      admission and conversion
//!   generated     the fields that are rewritten with every certificate
//!   status        recording a transition
//! ```
//!
//! One plan makes one transition; the next is planned once its write was observed.

mod apiservices;
mod config;
mod deployments;
mod generated;
mod overlay;
mod preconditions;
mod requirements;
mod serving;
mod serving_certificate;
mod siblings;
mod status;
#[cfg(test)]
mod tests;
mod transition;
mod upgrade;
mod webhooks;

use jiff::Timestamp;
use serde_json::Value;

pub use self::generated::{Generated, generated};
pub use self::serving::{Endpoint, endpoints};
pub use self::serving_certificate::ServingCertificate;
pub use self::webhooks::GENERATE_NAME as WEBHOOK_NAME;
use crate::api::cluster_service_version::{Csv, FINALIZER, Phase, reason};
use crate::api::go_json::GoType;
use crate::api::metadata::Metadata;
use crate::api::object;
use crate::membership;
use crate::plan::{Action, Key, Plan, Propagation, Reason};
use crate::world::{IndexKey, Reader, kind};

/// Returns the names of the Secrets with certificates that OLM creates for a ClusterServiceVersion in its namespace.
pub fn certificates(csv: &Value) -> Vec<String> {
    serving::Server::all(Csv::new(csv)).map(serving::Server::secret).collect()
}

/// Plans for one ClusterServiceVersion.
pub fn plan(world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let Some(json) = world.json(&kind::CLUSTER_SERVICE_VERSION, &key.namespace, &key.name) else {
        return Plan::act(apiservices::orphans(world, key));
    };
    let csv = Csv::new(json);
    // A CSV with the label of a copy is trimmed, and ignored by this controller as long as it has the label.
    if csv.copied_from().is_some() {
        return Plan::nothing();
    }
    if object::is_deleting(json) {
        return finalize(world, csv);
    }
    if csv.is_copy() {
        return Plan::nothing();
    }
    let groups = membership::groups(world, csv.namespace());
    if let Some(write) = own(csv, &groups) {
        return Plan::act(vec![write]);
    }
    if csv.reason() == reason::NO_RETRY {
        // Refusals from before the permissions changed are irrelevant to the next attempt.
        let plan = transition::refused_for_good(world, csv, &groups).into_plan(csv, now);
        return Plan { forgets: !plan.actions.is_empty(), ..plan };
    }
    let step = match preconditions::check(world, csv, &groups) {
        preconditions::Verdict::Pass => transition::next(world, csv, key, now),
        preconditions::Verdict::Stop(step) => step,
    };
    scoped(step, &groups).into_plan(csv, now)
}

/// Makes all writes of a step before its own status use the permissions of the ServiceAccount that the OperatorGroup names,
/// if any (olm-behaviour/operatorgroup.md#serviceaccount), except writes to the OperatorGroup.
fn scoped(mut step: Step, groups: &[membership::Group<'_>]) -> Step {
    let [group] = groups else { return step };
    let installs = |action: &Action| {
        action.writes() && !matches!(action.target().gvk.kind.as_str(), "ClusterServiceVersion" | "OperatorGroup")
    };
    if !step.before.iter().any(installs) {
        return step;
    }
    match group.account() {
        Ok(account) => {
            let scoped =
                |action: Action| if installs(&action) { action.with_permissions_of(account.as_ref()) } else { action };
            step.before = step.before.into_iter().map(scoped).collect();
            step
        }
        Err(name) => Step::stay().because(Reason::Missing {
            object: object::ObjectRef::from_object(group.json).to_string(),
            needs: format!("ServiceAccount {name}"),
        }),
    }
}

/// The result of one pass of the state machine.
#[derive(Debug, Default, PartialEq)]
struct Step {
    /// Writes before the status.
    before: Vec<Action>,
    /// The next phase.
    transition: Option<status::Transition>,
    /// `status.requirementStatus`, if checked.
    requirements: Option<Vec<Value>>,
    /// Since when certificates are valid and when they are renewed, if they were installed.
    certificates: Option<(Timestamp, Timestamp)>,
    /// Why it does not continue.
    reasons: Vec<Reason>,
    /// When to plan again.
    again: Option<Timestamp>,
}

impl Step {
    fn stay() -> Self {
        Self::default()
    }

    fn to(phase: Phase, reason: &'static str, message: impl Into<String>) -> Self {
        Self { transition: Some(status::Transition::to(phase, reason, message)), ..Self::default() }
    }

    fn after(mut self, before: Vec<Action>) -> Self {
        self.before = before;
        self
    }

    fn because(mut self, reason: Reason) -> Self {
        self.reasons.push(reason);
        self
    }

    fn with(mut self, requirements: &requirements::Requirements) -> Self {
        self.requirements = Some(requirements.statuses.clone());
        self
    }

    fn certified(mut self, validity: Option<(Timestamp, Timestamp)>) -> Self {
        self.certificates = validity;
        self
    }

    fn again_at(mut self, at: Option<Timestamp>) -> Self {
        self.again = at;
        self
    }

    fn into_plan(mut self, csv: Csv<'_>, now: Timestamp) -> Plan {
        let mut actions = std::mem::take(&mut self.before);
        actions.extend(status::record(csv, &self, now));
        Plan { actions, reasons: self.reasons, again: self.again, ..Plan::nothing() }
    }
}

/// Returns the write that takes ownership of the ClusterServiceVersion: the finalizer, and the OperatorGroup that it is a
/// member of. Like OLM's write, it formats the object as Go does; an object that needs neither is not written.
fn own(csv: Csv<'_>, groups: &[membership::Group<'_>]) -> Option<Action> {
    let mut new = csv.json.clone();
    if !object::has_finalizer(csv.json, FINALIZER) {
        let mut finalizers = Metadata::new(csv.json).finalizers().to_vec();
        finalizers.push(FINALIZER.into());
        object::map_mut(&mut new, &["metadata"]).insert("finalizers".to_owned(), finalizers.into());
    }
    if let [group] = groups {
        for (key, value) in group.annotations() {
            object::set_annotation(&mut new, &key, &value);
        }
    }
    (new != *csv.json).then(|| Action::Update(GoType::CLUSTER_SERVICE_VERSION.normalise(&new)))
}

/// Removes what Kubernetes' garbage collector cannot (cluster-scoped objects have no namespaced owners), then the finalizer
/// (olm-behaviour/csv.md#deletion).
fn finalize(world: &Reader<'_>, csv: Csv<'_>) -> Plan {
    if !object::has_finalizer(csv.json, FINALIZER) {
        return Plan::nothing();
    }
    const CLEANED: [&str; 5] = [
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let owned = world.indexed(IndexKey::OwnerLabels {
        kind: "ClusterServiceVersion".to_owned(),
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
    });
    let left: Vec<&Value> = owned.iter().map(|o| o.json()).filter(|o| CLEANED.contains(&object::kind(o))).collect();
    let deletions: Vec<Action> =
        left.iter().filter(|o| !object::is_deleting(o)).map(|o| Action::delete(o, Propagation::Background)).collect();
    if !left.is_empty() {
        let plan = Plan::act(deletions);
        return if plan.actions.is_empty() {
            plan.because(Reason::NotHealthy {
                namespace: csv.namespace().to_owned(),
                name: csv.name().to_owned(),
                message: format!("waiting for {} cluster-scoped objects to be deleted", left.len()),
            })
        } else {
            plan
        };
    }
    let mut actions = webhooks::disable_conversion(world, csv);
    actions.extend(serving::remove_objects(world, csv));
    if !actions.is_empty() {
        return Plan::act(actions);
    }
    let mut new = csv.json.clone();
    let finalizers = Metadata::new(csv.json).finalizers();
    let rest: Vec<Value> = finalizers.iter().filter(|f| *f != FINALIZER).cloned().collect();
    let metadata = object::map_mut(&mut new, &["metadata"]);
    if rest.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), rest.into());
    }
    Plan::act(vec![Action::Update(new)])
}
