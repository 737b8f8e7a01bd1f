//! The writes of a plan, to be sent to an API server as dry runs (`dryRun=All`), and the evaluation of the responses.
//!
//! ```text
//!   writes: the objects of the plan      --Write-->         the caller sends dry runs
//!   add_results: objects, verdict        <--DryRunResult--  one Answer per object
//! ```
//!
//! *Guarantee*: the hash of an explanation covers what the plan would do; responses do not change it. *Caveats*: the caller's
//! permissions differ from those with which the plan is executed, so a missing permission is not a finding; and each object is tried on
//! its own, as if the others did not exist.

use serde_json::Value;

use super::hidden::OF_THE_SERVER;
use super::simulated_plan::SimulatedPlan;
use super::{By, Change, DryRunGap, DryRunRefusal, Explanation, Object, VerdictReason, VerdictResult};
use crate::api::object::{self, ObjectRef};
use crate::api::status::Status;
use crate::bundle::optional::may_be_optional;
use crate::installplan;
use crate::plan::Account;

/// An object that a plan writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The object as it is sent, without the fields that the API server sets.
    pub object: Value,
    /// Whether the object exists, so that the write is an update.
    pub exists: bool,
    /// The ServiceAccount with whose permissions it is written; `None` for the controllers' own permissions.
    pub account: Option<Account>,
}

/// The result of a dry run of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The API server would accept the object, and persist it in this form.
    Accepted(Value),
    /// The API server would reject the object.
    Refused(Status),
    /// The object was not sent, or the response is inconclusive: why.
    NotSent(String),
}

/// The result of a dry run, with its object.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRunResult {
    /// The object.
    pub target: ObjectRef,
    /// The result.
    pub answer: Answer,
}

/// Returns the writes to send as dry runs.
pub(super) fn writes(simulated: &SimulatedPlan, Explanation { plan, objects, .. }: &Explanation) -> Vec<Write> {
    let account = plan.service_account.as_deref().and_then(|account| account.split_once('/'));
    let account = account.map(|(namespace, name)| Account { namespace: namespace.to_owned(), name: name.to_owned() });
    let is_written = |o: &&Object| matches!(o.change, Change::Create | Change::Update);
    // Whether the remaining writes use the ServiceAccount's permissions or OLM's own cannot be determined from the objects.
    let is_known = |o: &&Object| o.by == By::Step || o.by == By::Olm && account.is_none();
    let write = |o: &Object| {
        let mut object = simulated.after.api().find(&o.gvk.group, &o.gvk.kind, &o.namespace, &o.name)?.clone();
        object::map_mut(&mut object, &[]).remove("status");
        let metadata = object::map_mut(&mut object, &["metadata"]);
        // Set by the API server; the values in the copy are generated.
        for field in OF_THE_SERVER.into_iter().chain(["deletionTimestamp"]) {
            metadata.remove(field);
        }
        let is_crd = o.gvk.kind == "CustomResourceDefinition";
        Some(Write { object, exists: o.change == Change::Update, account: account.clone().filter(|_| !is_crd) })
    };
    objects.iter().filter(is_written).filter(is_known).filter_map(write).collect()
}

impl Explanation {
    /// Adds the results of the dry runs, and updates the verdict. `message` states which permissions were missing to send more of them.
    /// Only with `optional_manifests` does a plan skip optional objects that are refused.
    pub fn add_results(&mut self, mut results: Vec<DryRunResult>, message: String, optional_manifests: bool) {
        self.dry_run.message = message;
        results.sort_by_key(|result| self.objects.iter().position(|o| is(o, &result.target)));
        for DryRunResult { target, answer } in results {
            let Some(object) = self.objects.iter_mut().find(|o| is(o, &target)) else { continue };
            let (gvk, namespace, name) = (object.gvk.clone(), object.namespace.clone(), object.name.clone());
            match answer {
                Answer::Accepted(kept) => {
                    self.dry_run.accepted += 1;
                    object.after = self.unshown.stored(&kept, &object.after);
                    if object.after == object.before {
                        (object.before, object.after, object.change) = (Value::Null, Value::Null, Change::Unchanged);
                    }
                }
                Answer::Refused(status) => {
                    let marked = self.optional.iter_mut().find(|o| (&o.gvk, &o.name) == (&gvk, &name));
                    let is_optional = optional_manifests && may_be_optional(&gvk);
                    let skipped = marked.filter(|_| is_optional && installplan::is_about_the_cluster(&status));
                    let (optional, may_pass) = (skipped.is_some(), may_pass(&status));
                    if let Some(skipped) = skipped {
                        (skipped.skipped, skipped.message) = (true, status.message.clone());
                    }
                    if optional || !may_pass {
                        object.change = if optional { Change::Skipped } else { Change::Refused };
                        object.message.clone_from(&status.message);
                    }
                    let Status { code, reason, message } = status;
                    let refusal = DryRunRefusal { gvk, namespace, name, code, reason, message, may_pass, optional };
                    self.dry_run.refused.push(refusal);
                }
                Answer::NotSent(message) => {
                    self.dry_run.not_sent.push(DryRunGap { gvk, namespace, name, message });
                }
            }
        }
        self.dry_run.sent = self.dry_run.accepted > 0 || !self.dry_run.refused.is_empty();
        self.totals = super::identity::totals(self);
        self.judge_refusals();
    }

    /// Adds the refusals to the verdict. Refusals with the same message become one reason.
    fn judge_refusals(&mut self) {
        let mut groups: Vec<(&DryRunRefusal, Vec<String>)> = Vec::new();
        for refusal in &self.dry_run.refused {
            let object = format!("{} {}", refusal.gvk.kind, refusal.name);
            // Messages of the API server contain the name of the object.
            let words = |refusal: &DryRunRefusal| refusal.message.replace(&refusal.name, "");
            let same = |known: &&mut (&DryRunRefusal, Vec<String>)| {
                known.0.optional == refusal.optional && words(known.0) == words(refusal)
            };
            match groups.iter_mut().find(same) {
                Some((_, objects)) => objects.push(object),
                None => groups.push((refusal, vec![object])),
            }
        }
        let reasons: Vec<VerdictReason> =
            groups.into_iter().map(|(refusal, objects)| reason(refusal, &objects)).collect();
        self.verdict.reasons.extend(reasons);
        self.verdict.reasons.sort_by_key(|because| std::cmp::Reverse(because.result));
        self.verdict.result = self.verdict.reasons.iter().map(|because| because.result).max().unwrap_or_default();
    }
}

fn is(object: &Object, target: &ObjectRef) -> bool {
    let ObjectRef { gvk, namespace, name } = target;
    (&object.gvk.group, &object.gvk.kind, &object.namespace, &object.name) == (&gvk.group, &gvk.kind, namespace, name)
}

/// Maximum number of objects that a reason names.
const NAMED: usize = 3;

fn reason(refusal: &DryRunRefusal, objects: &[String]) -> VerdictReason {
    let named = objects[..objects.len().min(NAMED)].join(", ");
    let objects = match objects.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    };
    let message = &refusal.message;
    let (result, message) = match refusal {
        DryRunRefusal { optional: true, .. } => (
            VerdictResult::Safe,
            format!("the plan skips optional {objects}, which the API server would reject: {message}"),
        ),
        DryRunRefusal { may_pass: true, .. } => {
            (VerdictResult::Unknown, format!("the dry run of {objects} was inconclusive: {message}"))
        }
        _ => (VerdictResult::WouldFail, format!("the API server would reject {objects}: {message}")),
    };
    VerdictReason { result, reason: "dryRun".to_owned(), message, hint: hint(refusal).to_owned() }
}

/// Returns a suggested next step, which depends on the API server's message.
fn hint(DryRunRefusal { message, optional, may_pass, reason, .. }: &DryRunRefusal) -> &'static str {
    let says = |words: &str| message.contains(words);
    match () {
        () if *optional => "",
        () if says("failed calling webhook") => {
            "check whether the webhook's backend is running: objects of this kind cannot be written until it is"
        }
        () if says("admission webhook") || says("ValidatingAdmissionPolicy") => {
            "an admission policy of this cluster rejects the object: ask its administrator, or change the object"
        }
        () if says("exceeded quota") => "raise the quota, or free some of it: see kubectl describe resourcequota",
        () if says("is being terminated") => "wait until the namespace is deleted, then create it again",
        () if *may_pass => "try again",
        () if reason == "Invalid" => {
            "the bundle is not compatible with this cluster: try another version of the operator"
        }
        () => "",
    }
}

/// Reports whether a retry may succeed without any change.
fn may_pass(status: &Status) -> bool {
    matches!(status.code, 0 | 408 | 429 | 500 | 503 | 504)
}
