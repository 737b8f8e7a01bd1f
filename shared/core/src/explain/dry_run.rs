//! What a plan writes, for an API server to try without keeping it (`dryRun=All`), and what it says of that.
//!
//! ```text
//!   trial, objects --writes--> Write, … (somebody asks) … Answer --hear--> objects as the server would keep them, verdict
//! ```
//!
//! *Guarantee*: the hash of an explanation is of what the plan would do, and hearing does not change it. *Caveats*: who asks is not
//! who executes, so that rights that are missing say nothing; and each object is tried by itself, as if the others did not come.

use serde_json::Value;

use super::hidden::OF_THE_SERVER;
use super::trial::Trial;
use super::{Because, By, Change, DryRunGap, DryRunRefusal, Explanation, Object, Outcome};
use crate::api::object::{self, ObjectRef};
use crate::api::status::Status;
use crate::bundle::optional::may_be_optional;
use crate::installplan;
use crate::plan::Account;

/// An object that a plan writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The object as it is sent, without what the API server writes itself.
    pub object: Value,
    /// Is there one already, that this is an update of?
    pub exists: bool,
    /// With whose rights it is written, if not with the controllers' own.
    pub account: Option<Account>,
}

/// What came of asking about one.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The API server would take it, and keep it so.
    Taken(Value),
    /// It would not.
    Refused(Status),
    /// It was not asked, or could not answer for what only asking is about: why.
    NotAsked(String),
}

/// The answer about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// The object.
    pub target: ObjectRef,
    /// The answer.
    pub answer: Answer,
}

/// The writes that there are to ask about.
pub(super) fn writes(trial: &Trial, Explanation { plan, objects, .. }: &Explanation) -> Vec<Write> {
    let account = plan.service_account.as_deref().and_then(|account| account.split_once('/'));
    let account = account.map(|(namespace, name)| Account { namespace: namespace.to_owned(), name: name.to_owned() });
    let is_written = |o: &&Object| matches!(o.change, Change::Create | Change::Update);
    // Which of the rest is done with the ServiceAccount's rights, and which with OLM's own, nobody can tell from the objects.
    let is_known = |o: &&Object| o.by == By::Step || o.by == By::Olm && account.is_none();
    let write = |o: &Object| {
        let mut object = trial.after.api().find(&o.gvk.group, &o.gvk.kind, &o.namespace, &o.name)?.clone();
        object::map_mut(&mut object, &[]).remove("status");
        let metadata = object::map_mut(&mut object, &["metadata"]);
        // Only the API server knows these; the copy has made them up.
        for field in OF_THE_SERVER.into_iter().chain(["deletionTimestamp"]) {
            metadata.remove(field);
        }
        let is_crd = o.gvk.kind == "CustomResourceDefinition";
        Some(Write { object, exists: o.change == Change::Update, account: account.clone().filter(|_| !is_crd) })
    };
    objects.iter().filter(is_written).filter(is_known).filter_map(write).collect()
}

impl Explanation {
    /// Takes in what an API server said of the writes; `message` says which rights were missing to ask. Only where
    /// `optional_manifests` is on does a plan go on without what is refused.
    pub fn hear(&mut self, mut heard: Vec<Heard>, message: String, optional_manifests: bool) {
        self.dry_run.message = message;
        heard.sort_by_key(|heard| self.objects.iter().position(|o| is(o, &heard.target)));
        for Heard { target, answer } in heard {
            let Some(object) = self.objects.iter_mut().find(|o| is(o, &target)) else { continue };
            let (gvk, namespace, name) = (object.gvk.clone(), object.namespace.clone(), object.name.clone());
            match answer {
                Answer::Taken(kept) => {
                    self.dry_run.taken += 1;
                    object.after = self.unshown.kept(&kept, &object.after);
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
                Answer::NotAsked(message) => {
                    self.dry_run.not_asked.push(DryRunGap { gvk, namespace, name, message });
                }
            }
        }
        self.dry_run.asked = self.dry_run.taken > 0 || !self.dry_run.refused.is_empty();
        self.judge_refusals();
    }

    /// What the refusals mean for the verdict. Those in the same words are one reason.
    fn judge_refusals(&mut self) {
        let mut groups: Vec<(&DryRunRefusal, Vec<String>)> = Vec::new();
        for refusal in &self.dry_run.refused {
            let object = format!("{} {}", refusal.gvk.kind, refusal.name);
            // The API server begins with what it is about.
            let words = |refusal: &DryRunRefusal| refusal.message.replace(&refusal.name, "");
            let same = |known: &&mut (&DryRunRefusal, Vec<String>)| {
                known.0.optional == refusal.optional && words(known.0) == words(refusal)
            };
            match groups.iter_mut().find(same) {
                Some((_, objects)) => objects.push(object),
                None => groups.push((refusal, vec![object])),
            }
        }
        let reasons: Vec<Because> = groups.into_iter().map(|(refusal, objects)| reason(refusal, &objects)).collect();
        self.verdict.reasons.extend(reasons);
        self.verdict.reasons.sort_by_key(|because| std::cmp::Reverse(because.result));
        self.verdict.result = self.verdict.reasons.iter().map(|because| because.result).max().unwrap_or_default();
    }
}

fn is(object: &Object, target: &ObjectRef) -> bool {
    let ObjectRef { gvk, namespace, name } = target;
    (&object.gvk.group, &object.gvk.kind, &object.namespace, &object.name) == (&gvk.group, &gvk.kind, namespace, name)
}

/// How many objects are named that are refused for the same reason.
const NAMED: usize = 3;

fn reason(refusal: &DryRunRefusal, objects: &[String]) -> Because {
    let named = objects[..objects.len().min(NAMED)].join(", ");
    let objects = match objects.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    };
    let message = &refusal.message;
    let (result, message) = match refusal {
        DryRunRefusal { optional: true, .. } => (
            Outcome::Safe,
            format!("the plan goes on without optional {objects}, which the API server would not take: {message}"),
        ),
        DryRunRefusal { may_pass: true, .. } => {
            (Outcome::Unknown, format!("the API server could not say whether it would take {objects}: {message}"))
        }
        _ => (Outcome::WouldFail, format!("the API server would not take {objects}: {message}")),
    };
    Because { result, reason: "dryRun".to_owned(), message, hint: hint(refusal).to_owned() }
}

/// What a person could do, by the words that the API server uses.
fn hint(DryRunRefusal { message, optional, may_pass, reason, .. }: &DryRunRefusal) -> &'static str {
    let says = |words: &str| message.contains(words);
    match () {
        () if *optional => "",
        () if says("failed calling webhook") => {
            "see whether what serves that webhook runs: nothing of its kind can be written until it does"
        }
        () if says("admission webhook") || says("ValidatingAdmissionPolicy") => {
            "an admission rule of this cluster says so: ask who made it, or change what it objects to"
        }
        () if says("exceeded quota") => "raise the quota, or make room: kubectl describe resourcequota",
        () if says("is being terminated") => "wait until it is gone, then make it anew",
        () if *may_pass => "ask again",
        () if reason == "Invalid" => "the bundle is not made for this cluster: another version of the operator may be",
        () => "",
    }
}

/// May it be answered otherwise with nothing changed?
fn may_pass(status: &Status) -> bool {
    matches!(status.code, 0 | 408 | 429 | 500 | 503 | 504)
}
