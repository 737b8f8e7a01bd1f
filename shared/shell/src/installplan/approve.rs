//! `kubectl olm install-plan approve`: approves exactly the plan that was explained.
//!
//! ```text
//!   plans --state--> cannot be approved? --explain--> terms met? --summary, prompt--> unchanged? --patch--> approved
//! ```
//!
//! *Guarantees*: the plan is approved at the resourceVersion that was read. Its effect is computed before the prompt,
//! and again after the answer. A plan that changes in between is not approved.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::install_plan::{APPROVED_CONTENT, InstallPlan, Phase};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::explain::{Explanation, Subject};
use olm_core::installplan::summary::PlanSummary;
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::explain::{self, Request, explain, summary};
use super::lookup::{self, plan_ref};
use super::policy::{self, Refusal, Terms, Understood};
use super::wait::{self, Target, Until};
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::paint::Paint;
use crate::cli::prompt::confirm_with;
use crate::cli::selector::LabelQuery;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::image;
use crate::observe::{ClusterState, ReadScope};

/// The annotations for the user who approved a plan, the time, and the hash of the explanation.
const APPROVED_BY: &str = "kubectl-olm/approved-by";
const APPROVED_AT: &str = "kubectl-olm/approved-at";
const APPROVED_HASH: &str = "kubectl-olm/approved-hash";

/// What to approve, and under which conditions.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The namespaces.
    pub namespaces: NamespaceFlags,
    /// The plans; empty means all that wait for approval.
    pub plans: Vec<String>,
    /// The labels to select by among all plans.
    pub selector: Option<LabelQuery>,
    /// The conditions that they must meet.
    pub terms: Terms,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// How long to wait until they are complete.
    pub wait: Option<Duration>,
    /// How images of bundles are pulled.
    pub images: image::Options,
    /// Whether the controllers skip optional objects that cannot be created.
    pub optional_manifests: bool,
    /// Whether bundle images of type `k8s+v1` are installed.
    pub plain_bundles: bool,
}

/// A plan that may be approved, as it was read.
struct Candidate {
    target: ObjectRef,
    plan: Value,
    explanation: Explanation,
}

/// How often an approval is sent again because only the metadata of the plan has changed, to which controllers add labels and owners.
const ATTEMPTS: usize = 5;

/// The result for one plan.
enum Approval {
    Approved,
    /// Nothing to approve, with the state of the plan.
    Already(String),
    Refused(Refusal),
    Failed(CliError),
}

/// Approves the plans.
///
/// # Errors
/// A plan does not exist, cannot be explained, or the server refuses the request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let terms = options.terms.understood()?;
    if options.terms.explained.is_some() && options.plans.len() != 1 {
        return Err(
            CliError::usage("--explained is the hash of one explanation").hint("specify the plan that was explained")
        );
    }
    if options.namespaces.all_namespaces && !options.plans.is_empty() {
        return Err(CliError::usage("-A cannot be combined with plan names").hint("use -n NAMESPACE, or -A with --all"));
    }
    block_on(approve(options, &terms, printer))
}

async fn approve(options: &Options, terms: &Understood, printer: &mut Printer) -> Result<Outcome, CliError> {
    let mut cluster = read_state(options, printer).await?;
    vital(&cluster, terms)?;
    let Some(api) = cluster.api().cloned() else { return Ok(Outcome::Done) };
    let plans = chosen(options, &cluster)?;
    if plans.is_empty() {
        printer.talk("No InstallPlan waits for approval");
        return Ok(Outcome::Done);
    }
    let mut approvals: Vec<(ObjectRef, Approval)> = Vec::new();
    let mut candidates = Vec::new();
    // The plans to wait for, including those approved before.
    let mut approved = Vec::new();
    for target in plans {
        match examine(&mut cluster, &target, terms, &options.images, printer).await {
            Ok(candidate) => candidates.push(candidate),
            Err(approval) => {
                if matches!(approval, Approval::Already(_)) {
                    approved.push(target.clone());
                }
                approvals.push((target, approval));
            }
        }
    }
    for candidate in &candidates {
        let Candidate { target, explanation, .. } = candidate;
        printer.talk(format_args!("InstallPlan {} in namespace {}:", target.name, target.namespace));
        summary(explanation).lines().for_each(|line| printer.talk(format_args!("  {line}")));
        printer.talk(format_args!("  {}", explanation.hash));
    }
    let asks = !options.yes && options.dry_run == DryRun::None && !candidates.is_empty();
    if asks {
        if !confirm_with(printer, &question(&candidates), false, |paint| details(&candidates, paint))? {
            printer.talk("Nothing was approved");
            return Ok(Outcome::Negative);
        }
        // The state may have changed since it was read.
        cluster = read_state(options, printer).await?;
        vital(&cluster, terms)?;
    }
    let who = if options.dry_run == DryRun::Client || candidates.is_empty() { None } else { who(&api, printer).await };
    for candidate in candidates {
        let target = candidate.target.clone();
        let approval = if asks && !is_same(&mut cluster, &candidate, &options.images, printer).await {
            Approval::Refused(changed())
        } else {
            give(&api, &candidate, who.as_deref(), options.dry_run).await
        };
        if matches!(approval, Approval::Approved | Approval::Already(_)) {
            approved.push(target.clone());
        }
        approvals.push((target, approval));
    }
    let outcome = print_approvals(approvals, options, printer)?;
    match options.wait {
        Some(timeout) if options.dry_run == DryRun::None => {
            let mut worst = outcome;
            for ObjectRef { namespace, name, .. } in approved {
                let of = Target::Plan(name);
                let ended = wait::plan(&api, &namespace, &of, Until::Complete, timeout, false, printer).await?;
                if ended != Outcome::Done {
                    worst = ended;
                }
            }
            Ok(worst)
        }
        _ => Ok(outcome),
    }
}

/// Approves the plan of `options` for another command that has explained it: `expected` is the hash of that explanation.
/// If the plan has another effect, a user is shown it and prompted, unless `options.yes` is set. Returns `false` if the
/// user declines.
///
/// # Errors
/// The plan does not exist, does not meet the terms, or the server refuses the request.
pub(crate) async fn approve_explained(
    options: &Options,
    expected: &str,
    printer: &mut Printer,
) -> Result<bool, CliError> {
    let terms = options.terms.understood()?;
    let mut cluster = read_state(options, printer).await?;
    vital(&cluster, &terms)?;
    let Some(api) = cluster.api().cloned() else { return Ok(false) };
    let namespace = cluster.namespace.clone().unwrap_or_default();
    for name in &options.plans {
        let target = plan_ref(&namespace, name);
        let candidate = match examine(&mut cluster, &target, &terms, &options.images, printer).await {
            Ok(candidate) => candidate,
            Err(Approval::Already(_) | Approval::Approved) => continue,
            Err(Approval::Refused(refusal)) => return Err(not_approved(name, refusal)),
            Err(Approval::Failed(error)) => return Err(error),
        };
        let asks = !options.yes && candidate.explanation.hash != expected;
        if asks {
            printer.talk(format_args!("InstallPlan {name} does not do exactly what was shown:"));
            summary(&candidate.explanation).lines().for_each(|line| printer.talk(format_args!("  {line}")));
            if !is_confirmed(&candidate, printer)? {
                return Ok(false);
            }
            cluster = read_state(options, printer).await?;
            if !is_same(&mut cluster, &candidate, &options.images, printer).await {
                return Err(not_approved(name, changed()));
            }
        }
        let who = who(&api, printer).await;
        match give(&api, &candidate, who.as_deref(), options.dry_run).await {
            Approval::Approved | Approval::Already(_) => {}
            Approval::Refused(refusal) => return Err(not_approved(name, refusal)),
            Approval::Failed(error) => return Err(error),
        }
    }
    Ok(true)
}

fn is_confirmed(candidate: &Candidate, printer: &mut Printer) -> Result<bool, CliError> {
    let candidates = std::slice::from_ref(candidate);
    confirm_with(printer, &question(candidates), false, |paint| details(candidates, paint))
}

/// Renders what `d` shows at the prompt.
fn details(candidates: &[Candidate], paint: Paint) -> String {
    let texts: Vec<String> = candidates.iter().map(|one| explain::differences(&one.explanation, paint)).collect();
    texts.join("\n")
}

fn not_approved(name: &str, refusal: Refusal) -> CliError {
    CliError::new(ErrorKind::Api, format!("InstallPlan {name} is not approved: {}", refusal.why)).hint(refusal.hint)
}

/// Returns an error if objects could not be read that an approval requires.
fn vital(cluster: &ClusterState, terms: &Understood) -> Result<(), CliError> {
    let find = |asked: &Request| cluster.read_failures.iter().find(|failure| explain::is_vital(failure, asked));
    match find(&Request::Plans(Vec::new())) {
        // Without OperatorGroups it is unknown whether the plans would fail.
        Some(failure) if failure.is_of("installplans") => Err(CliError::from(failure)),
        Some(failure) if !terms.allow_failing => {
            let hint = "without this permission it is unknown whether plans would fail; to approve them anyway, pass --allow-failing";
            Err(CliError::from(failure).hint(hint))
        }
        _ => Ok(()),
    }
}

async fn read_state(options: &Options, printer: &mut Printer) -> Result<ClusterState, CliError> {
    let source = SourceFlags { cluster: options.cluster.clone(), ..SourceFlags::default() };
    let mut cluster = source.read(&options.namespaces, &[], ReadScope::Planning, printer).await?;
    cluster.settings.optional_manifests = options.optional_manifests;
    cluster.settings.plain_bundles = options.plain_bundles;
    Ok(cluster)
}

/// Returns the selected plans.
fn chosen(options: &Options, cluster: &ClusterState) -> Result<Vec<ObjectRef>, CliError> {
    let world = Reader::new(&cluster.world);
    let namespace = cluster.namespace.as_deref().unwrap_or_default();
    let plans = world.all(&kind::INSTALL_PLAN).map(|o| o.json()).filter(|plan| cluster.is_requested(plan));
    if options.plans.is_empty() {
        let waits = |plan: &&Value| lookup::summary_in(cluster, plan).is_pending();
        let labels = |plan: &&Value| options.selector.as_ref().is_none_or(|query| query.selects(plan));
        return Ok(plans.filter(waits).filter(labels).map(ObjectRef::from_object).collect());
    }
    let mut targets: Vec<ObjectRef> = Vec::new();
    for name in &options.plans {
        let name = bare(name, "installplan")?;
        let target = plan_ref(namespace, name);
        if world.json(&kind::INSTALL_PLAN, namespace, name).is_none() {
            return Err(lookup::not_found("InstallPlan", name, namespace));
        }
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    Ok(targets)
}

/// Explains a plan, and checks whether it may be approved.
async fn examine(
    cluster: &mut ClusterState,
    target: &ObjectRef,
    terms: &Understood,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<Candidate, Approval> {
    let gone = || Approval::Failed(lookup::not_found("InstallPlan", &target.name, &target.namespace));
    let plan = plan_in(cluster, target).ok_or_else(gone)?;
    let summary = lookup::summary_in(cluster, &plan);
    if summary.approved || summary.phase.is_started() {
        return Err(Approval::Already(already(&plan, &summary)));
    }
    if let Some(refusal) = policy::summary_refusal(&target.name, &summary) {
        return Err(Approval::Refused(refusal));
    }
    let asks = explain::DryRun::Server;
    let explanation = explained(cluster, target, images, asks, printer).await.map_err(Approval::Failed)?;
    if let Some(refusal) = terms.refusal(&summary, &explanation).map_err(Approval::Failed)? {
        return Err(Approval::Refused(refusal));
    }
    Ok(Candidate { target: target.clone(), plan, explanation })
}

fn plan_in(cluster: &ClusterState, target: &ObjectRef) -> Option<Value> {
    Reader::new(&cluster.world).json(&kind::INSTALL_PLAN, &target.namespace, &target.name).cloned()
}

async fn explained(
    cluster: &mut ClusterState,
    target: &ObjectRef,
    images: &image::Options,
    dry_run: explain::DryRun,
    printer: &mut Printer,
) -> Result<Explanation, CliError> {
    let subject = Subject::Plan { namespace: target.namespace.clone(), name: target.name.clone() };
    explain(cluster, &subject, images, dry_run, printer).await
}

/// Returns whether the plan and its effect are unchanged.
async fn is_same(
    cluster: &mut ClusterState,
    candidate: &Candidate,
    images: &image::Options,
    printer: &mut Printer,
) -> bool {
    let now = plan_in(cluster, &candidate.target);
    if !now.is_some_and(|plan| is_unchanged(&candidate.plan, &plan)) {
        return false;
    }
    let explanation = explained(cluster, &candidate.target, images, explain::DryRun::None, printer).await;
    explanation.is_ok_and(|explanation| explanation.hash == candidate.explanation.hash)
}

fn changed() -> Refusal {
    Refusal::new("the plan or its effect has changed since it was read", "run the command again and review the plan")
}

fn question(candidates: &[Candidate]) -> String {
    match candidates {
        [Candidate { target, .. }] => format!("Approve InstallPlan {} in namespace {}?", target.name, target.namespace),
        several => format!("Approve these {} InstallPlans?", several.len()),
    }
}

/// Approves one plan, at the resourceVersion that was read.
/// Returns whether two versions of a plan differ at most in metadata.
fn is_unchanged(before: &Value, now: &Value) -> bool {
    object::uid(before) == object::uid(now) && ["spec", "status"].iter().all(|part| before.get(part) == now.get(part))
}

async fn give(api: &Api, candidate: &Candidate, who: Option<&str>, dry_run: DryRun) -> Approval {
    let Candidate { target, plan, explanation } = candidate;
    let mut annotations = json!({ APPROVED_AT: object::time(Timestamp::now()), APPROVED_HASH: explanation.hash });
    if let Some(who) = who {
        annotations[APPROVED_BY] = who.into();
    }
    let contents: BTreeMap<&str, &str> = explanation
        .bundles
        .iter()
        .filter_map(|bundle| Some((bundle.csv.as_str(), bundle.digest.as_deref()?)))
        .collect();
    if !contents.is_empty() {
        annotations[APPROVED_CONTENT] = json!(contents).to_string().into();
    }
    let mut version = object::resource_version(plan).to_owned();
    for _ in 0..ATTEMPTS {
        let patch = json!({
            "metadata": { "uid": object::uid(plan), "resourceVersion": version, "annotations": annotations },
            "spec": { "approved": true },
        });
        let answer = match dry_run {
            DryRun::Client => return Approval::Approved,
            DryRun::Server => api.dry_run_merge(target, &patch).await,
            DryRun::None => api.merge(target, &patch).await,
        };
        let Err(refusal) = answer else { return Approval::Approved };
        if refusal.is_not_found() {
            return Approval::Failed(lookup::not_found("InstallPlan", &target.name, &target.namespace));
        }
        if !refusal.is_conflict() {
            return Approval::Failed(lookup::refused(&refusal, "patch", "installplans", &target.namespace));
        }
        match api.get(target).await {
            Ok(Some(now)) if InstallPlan::new(&now).spec_approved() => {
                return Approval::Already(format!("was approved already{}", by_whom(&now)));
            }
            Ok(Some(now)) if is_unchanged(plan, &now) => object::resource_version(&now).clone_into(&mut version),
            _ => break,
        }
    }
    Approval::Refused(changed())
}

/// Returns ` by jane at 2026-…`, as far as the annotations of the plan contain it.
fn by_whom(plan: &Value) -> String {
    let part =
        |key, word: &str| object::annotation(plan, key).map(|text| format!(" {word} {text}")).unwrap_or_default();
    part(APPROVED_BY, "by") + &part(APPROVED_AT, "at")
}

/// Returns `was approved already by jane at 2026-…, it is Complete`.
fn already(plan: &Value, summary: &PlanSummary) -> String {
    let approved = if summary.approved { "was approved already" } else { "needs no approval" };
    let phase = match summary.phase {
        Phase::RequiresApproval | Phase::None => String::new(),
        phase => format!(", it is {phase}"),
    };
    format!("{approved}{}{phase}", by_whom(plan))
}

/// Returns the user name by which the server authenticates this client.
async fn who(api: &Api, printer: &mut Printer) -> Option<String> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    match api.create(&review).await {
        Ok(answer) => {
            Some(object::text(&answer, &["status", "userInfo", "username"]).to_owned()).filter(|n| !n.is_empty())
        }
        Err(Status { message, .. }) => {
            printer.warn(format_args!("the annotation kubectl-olm/approved-by is not set, because the server does not report the user name: {message}"));
            None
        }
    }
}

/// Prints one line for each plan.
fn print_approvals(
    approvals: Vec<(ObjectRef, Approval)>,
    options: &Options,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let mut outcome = Outcome::Done;
    let alone = approvals.len() == 1;
    let mut failures = 0;
    for (ObjectRef { namespace, name, .. }, approval) in approvals {
        let place =
            if options.namespaces.all_namespaces { format!(" in namespace {namespace}") } else { String::new() };
        let mut line = |what: &str| printer.line(format_args!("installplan.operators.coreos.com/{name}{place} {what}"));
        let hints = match approval {
            Approval::Approved => {
                line(&format!("approved{}", options.dry_run.note()))?;
                continue;
            }
            Approval::Already(how) => {
                line(&how)?;
                continue;
            }
            Approval::Refused(Refusal { why, hint }) => {
                outcome = Outcome::Negative;
                line(&format!("not approved: {why}"))?;
                vec![hint]
            }
            Approval::Failed(error) if alone => return Err(error),
            Approval::Failed(error) => {
                failures += 1;
                line(&format!("not approved: {error}"))?;
                error.hints
            }
        };
        for hint in hints {
            printer.talk(format_args!("hint: {hint}"));
        }
    }
    if failures > 0 {
        return Err(CliError::new(ErrorKind::Api, format!("{failures} plans could not be approved")));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::client::Body;
    use olm_core::api::kinds;

    use super::*;
    use crate::cluster::api::Resource;

    /// Returns an API server with a plan, and the requests that it receives. As Kubernetes it refuses to change another version.
    async fn server(plan: Value) -> (Api, Arc<Mutex<Vec<String>>>) {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = sent.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (log, plan) = (log.clone(), plan.clone());
            async move {
                let is_patch = request.method() == http::Method::PATCH;
                let body = String::from_utf8(request.into_body().collect_bytes().await.unwrap().to_vec()).unwrap();
                let version = format!("\"resourceVersion\":\"{}\"", object::resource_version(&plan));
                let is_conflict = is_patch && !body.contains(&version);
                log.lock().unwrap().push(body);
                let (status, answer) = if is_conflict {
                    (
                        409,
                        json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict", "message": "no"}),
                    )
                } else {
                    (200, plan)
                };
                http::Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()))
            }
        });
        let api = Api::new(kube::Client::new(service, "default"));
        api.register(Resource::from(&kinds::INSTALL_PLAN)).await;
        (api, sent)
    }

    /// Approves version 7 of a plan, which was changed since then. Returns the result and the requests.
    async fn given(change: impl FnOnce(&mut Value)) -> (Approval, Vec<String>) {
        let plan = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": {"name": "a", "namespace": "garden", "uid": "u", "resourceVersion": "7"},
            "spec": {"approved": false}, "status": {"phase": "RequiresApproval"},
        });
        let mut now = plan.clone();
        change(&mut now);
        let (api, sent) = server(now).await;
        let explanation = Explanation { hash: "sha256:0".to_owned(), ..Explanation::default() };
        let candidate = Candidate { target: plan_ref("garden", "a"), plan, explanation };
        let approval = give(&api, &candidate, Some("jane"), DryRun::None).await;
        let sent = sent.lock().unwrap().clone();
        (approval, sent)
    }

    #[tokio::test]
    async fn a_plan_is_approved_at_the_version_that_was_read() {
        let (approval, sent) = given(|_| {}).await;
        assert!(matches!(approval, Approval::Approved));
        let patch: Value = serde_json::from_str(&sent[0]).unwrap();
        let metadata = &patch["metadata"];
        assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&json!("u"), &json!("7")));
        let annotations = &metadata["annotations"];
        assert_eq!((&annotations[APPROVED_BY], &annotations[APPROVED_HASH]), (&json!("jane"), &json!("sha256:0")));
        assert_eq!(patch["spec"], json!({"approved": true}));
    }

    #[tokio::test]
    async fn a_changed_plan_is_not_approved_unless_another_user_approved_it() {
        let (approval, sent) = given(|plan| {
            plan["metadata"]["resourceVersion"] = "8".into();
            plan["status"]["plan"] = json!([{ "resolving": "thorn.v1" }]);
        })
        .await;
        assert!(matches!(approval, Approval::Refused(_)));
        assert_eq!(sent.len(), 2, "{sent:?}");
        let (approval, _) = given(|plan| {
            plan["metadata"]["resourceVersion"] = "8".into();
            plan["metadata"]["annotations"] = json!({APPROVED_BY: "joe"});
            plan["spec"]["approved"] = true.into();
        })
        .await;
        assert!(matches!(approval, Approval::Already(how) if how == "was approved already by joe"));
    }

    #[tokio::test]
    async fn a_plan_to_which_a_controller_added_metadata_is_approved() {
        let (approval, sent) = given(|plan| {
            plan["metadata"]["resourceVersion"] = "8".into();
            plan["metadata"]["labels"] = json!({"operators.coreos.com/rose.garden": ""});
        })
        .await;
        assert!(matches!(approval, Approval::Approved));
        assert_eq!(sent.len(), 3, "{sent:?}");
        assert!(sent[2].contains("\"resourceVersion\":\"8\""), "{sent:?}");
        let (approval, _) = given(|plan| {
            plan["metadata"]["resourceVersion"] = "8".into();
            plan["metadata"]["uid"] = "another".into();
        })
        .await;
        assert!(matches!(approval, Approval::Refused(_)));
    }
}
