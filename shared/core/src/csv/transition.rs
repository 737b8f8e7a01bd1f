//! Transitions between phases (olm-behaviour/csv.md#transitions, olm-behaviour/csv.md#install-check).

use jiff::{SignedDuration, Timestamp};

use super::deployments::{self, Unhealthy};
use super::requirements::{self, Requirements};
use super::siblings::{self, siblings};
use super::webhooks::{self, Broken};
use super::{Step, apiservices, serving, upgrade};
use crate::api::cluster_service_version::{Csv, Phase, reason};
use crate::api::object;
use crate::api::operator_group::OperatorGroup;
use crate::membership;
use crate::plan::{Action, Key, Propagation, Reason, Verb};
use crate::rbac;
use crate::world::{Reader, Refusal, kind};

/// Maximum duration of Installing without available Deployments.
const INSTALL_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Reasons of `Failed` that only a gate sets: when the gates pass again, the state machine starts over.
const OPERATOR_GROUP_REASONS: [&str; 4] = [
    reason::NO_TARGET_NAMESPACES,
    reason::NO_OPERATOR_GROUP,
    reason::TOO_MANY_OPERATOR_GROUPS,
    reason::UNSUPPORTED_OPERATOR_GROUP,
];

/// Number of consecutive refusals of a Deployment until the install fails: the API server applies new permissions with a
/// delay.
const FORBIDDEN_TRIES: u32 = 3;

/// Handles an install that was refused for lack of permissions: it starts over when those of the namespace, or its
/// OperatorGroup, change.
pub(super) fn refused_for_good(world: &Reader<'_>, csv: Csv<'_>, groups: &[membership::Group<'_>]) -> Step {
    let is_changed =
        rbac::changed_since(world, csv.json) || groups.iter().any(|group| rbac::is_later(group.json, csv.json));
    if is_changed {
        Step::to(Phase::Pending, reason::DETECTED_CHANGE, "Cluster resources changed state")
    } else {
        failed(csv, Step::stay())
    }
}

pub(super) fn next(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Step {
    let installs = matches!(
        csv.phase(),
        Phase::Pending | Phase::InstallReady | Phase::Installing | Phase::Succeeded | Phase::Failed
    );
    if installs && csv.strategy() != "deployment" {
        let message = "install strategy invalid: unrecognized install strategy";
        return failed(csv, Step::to(Phase::Failed, reason::INVALID_INSTALL_STRATEGY, message));
    }
    match csv.phase() {
        Phase::None => Step::to(Phase::Pending, reason::REQUIREMENTS_UNKNOWN, "requirements not yet checked"),
        Phase::Pending => pending(world, csv),
        Phase::InstallReady => install_ready(world, csv, key, now),
        Phase::Installing => installing(world, csv, now),
        Phase::Succeeded => succeeded(world, csv, now),
        Phase::Failed => failed_again(world, csv, key, now),
        Phase::Replacing => replacing(world, csv),
        Phase::Deleting => Step::stay().after(vec![Action::delete(csv.json, Propagation::Background)]),
        Phase::Unknown | Phase::Other => Step::stay().because(Reason::Invalid {
            object: csv_ref(csv),
            message: format!("status.phase {:?} is not a phase of OLM", csv.phase_text()),
        }),
    }
}

fn csv_ref(csv: Csv<'_>) -> String {
    object::ObjectRef::from_object(csv.json).to_string()
}

/// Adds the reason that a report shows for a failure.
pub(super) fn failed(csv: Csv<'_>, step: Step) -> Step {
    let (failure_reason, message) =
        step.transition.as_ref().map_or_else(|| (csv.reason(), csv.message()), |t| (t.reason, t.message.as_str()));
    let reason = Reason::CsvFailed {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        failure_reason: failure_reason.to_owned(),
        message: message.to_owned(),
    };
    step.because(reason)
}

fn waits_for(csv: Csv<'_>, other: Csv<'_>, message: impl Into<String>) -> Reason {
    Reason::WaitsForCsv {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        other: other.name().to_owned(),
        message: message.into(),
    }
}

fn invalid_strategy(csv: Csv<'_>, error: crate::rbac::InvalidRule) -> Step {
    failed(csv, Step::to(Phase::Failed, reason::INVALID_INSTALL_STRATEGY, format!("install strategy invalid: {error}")))
}

/// Checks the requirements, and calls `then` with the result. Nothing is done before all external facts are known.
fn checked(world: &Reader<'_>, csv: Csv<'_>, then: impl FnOnce(&Requirements) -> Step) -> Step {
    match requirements::check(world, csv) {
        Err(error) => invalid_strategy(csv, error),
        Ok(found) if !found.questions.is_empty() => Step::stay().after(found.questions),
        Ok(found) => {
            let step = then(&found).with(&found);
            found.reasons(csv).into_iter().fold(step, Step::because)
        }
    }
}

fn pending(world: &Reader<'_>, csv: Csv<'_>) -> Step {
    let replaced = siblings::replaced(world, csv);
    if let Some(old) = replaced
        && let Some(objection) = upgrade::objection(world, old)
    {
        let message = format!("operator is not upgradeable: {objection}");
        return Step::to(Phase::Pending, reason::OPERATOR_CONDITION_NOT_UPGRADEABLE, message)
            .because(waits_for(csv, old, objection));
    }
    checked(world, csv, |found| satisfied(world, csv, replaced, found))
}

/// Continues from Pending, with the requirements that were found.
fn satisfied(world: &Reader<'_>, csv: Csv<'_>, replaced: Option<Csv<'_>>, found: &Requirements) -> Step {
    if !found.met() {
        return Step::to(Phase::Pending, reason::REQUIREMENTS_NOT_MET, "one or more requirements couldn't be found");
    }
    if let Some(step) = invalid_webhooks(csv) {
        return step;
    }
    if let Some(owner) = conflicting_owner(world, csv) {
        let step = Step::to(Phase::Failed, reason::OWNER_CONFLICT, "conflicting CRD owner in namespace");
        return failed(csv, step).because(waits_for(csv, owner, "it owns the same CustomResourceDefinition"));
    }
    if apiservices::unadoptable(world, csv).is_some() {
        return failed(csv, Step::to(Phase::Failed, reason::OWNER_CONFLICT, "unable to adopt APIService"));
    }
    if let Some(old) = replaced
        && old.phase() != Phase::Replacing
    {
        let message = format!("it is {}, and has to be Replacing first", phase_text(old));
        // What was missing exists now: the intermediate state must not leave its message behind.
        let step = match csv.reason() {
            reason::REQUIREMENTS_NOT_MET => {
                Step::to(Phase::Pending, reason::REQUIREMENTS_UNKNOWN, "requirements not yet checked")
            }
            _ => Step::stay(),
        };
        return step.because(waits_for(csv, old, message));
    }
    Step::to(Phase::InstallReady, reason::ALL_REQUIREMENTS_MET, "all requirements found, attempting install")
}

fn phase_text(csv: Csv<'_>) -> &str {
    if csv.phase() == Phase::None { "new" } else { csv.phase_text() }
}

/// Returns another ClusterServiceVersion of the namespace, outside the chain of replacements in both directions, that owns
/// one of its CRDs.
fn conflicting_owner<'w>(world: &Reader<'w>, csv: Csv<'w>) -> Option<Csv<'w>> {
    let owned: Vec<&str> = csv.owned_crd_names().collect();
    if owned.is_empty() {
        return None;
    }
    let all: Vec<Csv<'w>> = siblings(world, csv.namespace()).collect();
    let mut chain = vec![csv.name()];
    let mut grown = true;
    while grown {
        let related: Vec<&str> = all
            .iter()
            .flat_map(|c| {
                let (name, replaces) = (c.name(), c.replaces());
                let older = chain.contains(&name).then_some(replaces).filter(|r| !r.is_empty());
                let newer = chain.contains(&replaces).then_some(name);
                older.into_iter().chain(newer)
            })
            .filter(|name| !chain.contains(name))
            .collect();
        grown = !related.is_empty();
        chain.extend(related);
        chain.sort_unstable();
        chain.dedup();
    }
    all.into_iter()
        .filter(|c| !chain.contains(&c.name()))
        .find(|c| c.owned_crd_names().any(|name| owned.contains(&name)))
}

fn invalid_webhooks(csv: Csv<'_>) -> Option<Step> {
    let problem = webhooks::invalid(csv)?;
    Some(failed(csv, Step::to(Phase::Failed, reason::INVALID_WEBHOOK_DESCRIPTION, problem)))
}

/// Returns the refusal of this ClusterServiceVersion's install that is not retried yet.
fn install_refusal<'w>(world: &Reader<'w>, key: &Key, now: Timestamp) -> Option<&'w Refusal> {
    let is_install = |r: &&Refusal| {
        let own = [kind::CLUSTER_SERVICE_VERSION, kind::OPERATOR_GROUP].iter().any(|k| k.kind == r.target.gvk.kind);
        !own && matches!(r.verb, Verb::Create | Verb::Update | Verb::Patch)
    };
    world.refusals(key).iter().filter(is_install).find(|r| !r.is_stale() && r.retry_at > now)
}

/// Returns why the install cannot continue now.
fn install_failure(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Option<Step> {
    let is_forbidden = |r: &Refusal| r.status.is_forbidden() && r.target.gvk.kind == "Deployment";
    let refusal = install_refusal(world, key, now).filter(|r| !is_forbidden(r) || r.attempts >= FORBIDDEN_TRIES);
    let why = webhooks::invalid_reason(world, csv).or_else(|| refusal.map(|r| r.status.message.clone()))?;
    if let Some(refusal) = refusal.filter(|r| is_forbidden(r)) {
        // Two layers of OLM add the prefix.
        let message = format!("install strategy failed: install strategy failed: {}", refusal.status.message);
        return Some(failed(csv, Step::to(Phase::Failed, reason::NO_RETRY, message)));
    }
    let step = Step::to(Phase::Failed, reason::INSTALL_COMPONENT_FAILED, format!("install strategy failed: {why}"));
    Some(failed(csv, step).again_at(refusal.map(|r| r.retry_at)))
}

/// Creates certificates first: nothing else can be written without them.
fn install_ready(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Step {
    if let Some(failure) = install_failure(world, csv, key, now) {
        return failure;
    }
    let mut actions = serving::prepare(world, csv, now);
    if serving::is_rotation_due(world, csv, now) {
        return Step::stay().after(actions).because(not_healthy(csv, "its certificates are being created"));
    }
    actions.extend(deployments::install(world, csv));
    actions.extend(apiservices::install(world, csv));
    actions.extend(apiservices::clear_old_names(world, csv));
    actions.extend(webhooks::install(world, csv));
    Step::to(Phase::Installing, reason::INSTALL_SUCCEEDED, "waiting for install components to report healthy")
        .after(actions)
        .certified(serving::validity(world, csv))
}

fn not_healthy(csv: Csv<'_>, message: &str) -> Reason {
    Reason::NotHealthy {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        message: message.to_owned(),
    }
}

/// Checks what was installed. A problem leads to `phase` with `reason` (olm-behaviour/csv.md#install-check). Webhooks that
/// are no longer declared are deleted.
fn check(world: &Reader<'_>, csv: Csv<'_>, phase: Phase, reason: &'static str) -> Step {
    let deployments = deployments::check(world, csv);
    match &deployments {
        Err(Unhealthy::Timeout(why)) => {
            return failed(
                csv,
                Step::to(Phase::Failed, reason::INSTALL_CHECK_FAILED, format!("install failed: {why}")),
            );
        }
        Err(Unhealthy::Changed(why)) => return Step::to(Phase::InstallReady, reason, format!("installing: {why}")),
        Err(unknown @ Unhealthy::Unknown) => {
            return Step::to(Phase::Pending, reason::NEEDS_REINSTALL, unknown.message());
        }
        Ok(()) | Err(Unhealthy::Missing(_) | Unhealthy::Waiting(_)) => {}
    }
    let waits = |message: &str, why: &str| Step::to(phase, reason, message).because(not_healthy(csv, why));
    if let Some(why) = apiservices::unavailable(world, csv) {
        return waits("apiServices not installed", &why);
    }
    match webhooks::check(world, csv) {
        Err(Broken::Failed(why)) => {
            return Step::to(Phase::InstallReady, reason, format!("Webhook install failed: {why}"));
        }
        Err(Broken::Missing) => return waits("webhooks not installed", "webhooks not installed"),
        Ok(()) => {}
    }
    let step = match deployments {
        Ok(()) => Step::to(Phase::Succeeded, reason::INSTALL_SUCCEEDED, "install strategy completed with no errors"),
        Err(unhealthy) => waits(&format!("installing: {}", unhealthy.message()), unhealthy.message()),
    };
    step.after(webhooks::surplus(world, csv))
}

fn installing(world: &Reader<'_>, csv: Csv<'_>, now: Timestamp) -> Step {
    let step = check(world, csv, Phase::Installing, reason::INSTALL_WAITING);
    let waits = step.transition.as_ref().is_some_and(|t| t.phase == Phase::Installing);
    let Some(deadline) = csv.last_transition().map(|t| t + INSTALL_TIMEOUT).filter(|_| waits) else { return step };
    if now >= deadline {
        return failed(csv, Step::to(Phase::Failed, reason::INSTALL_CHECK_FAILED, "install timeout"));
    }
    step.again_at(Some(deadline))
}

fn succeeded(world: &Reader<'_>, csv: Csv<'_>, now: Timestamp) -> Step {
    if let Some(new) = siblings::replacements(world, csv).first() {
        return Step::to(Phase::Replacing, reason::BEING_REPLACED, format!("being replaced by csv: {}", new.name()));
    }
    if let Some(problems) = api_service_problems(world, csv) {
        return failed(csv, Step::to(Phase::Failed, reason::API_SERVICE_RESOURCE_ISSUE, problems));
    }
    if serving::is_rotation_due(world, csv, now) {
        return Step::to(Phase::Pending, reason::NEEDS_CERT_ROTATION, "CSV owns resources that require a cert refresh");
    }
    checked(world, csv, |found| {
        if !found.met() {
            return Step::to(Phase::Failed, reason::REQUIREMENTS_NOT_MET, "requirements no longer met");
        }
        let rotation = serving::validity(world, csv).map(|(_, rotates_at)| rotates_at);
        check(world, csv, Phase::Failed, reason::COMPONENT_UNHEALTHY).again_at(rotation)
    })
}

/// Returns what is wrong with owned APIServices, joined as Go joins errors.
fn api_service_problems(world: &Reader<'_>, csv: Csv<'_>) -> Option<String> {
    let problems = apiservices::problems(world, csv);
    match &problems[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

fn failed_again(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Step {
    if fails_forward(world, csv)
        && let Some(new) = upgrade::newest(world, csv)
    {
        let message = format!("Fail Forward is enabled, allowing Failed csv to be replaced by csv: {}", new.name());
        return Step::to(Phase::Replacing, reason::BEING_REPLACED, message);
    }
    match csv.reason() {
        why if OPERATOR_GROUP_REASONS.contains(&why) => {
            return Step::to(
                Phase::Pending,
                reason::REQUIREMENTS_UNKNOWN,
                "InstallModes now support target namespaces",
            );
        }
        reason::CONFLICT => {
            let message = "OperatorGroup no longer intersecting with conflicting owner";
            return Step::to(Phase::Pending, reason::REQUIREMENTS_UNKNOWN, message);
        }
        reason::STATIC_PROVIDED_APIS => {
            let message = "static OperatorGroup and intersecting groups now support providedAPIs";
            return Step::to(Phase::Pending, reason::REQUIREMENTS_UNKNOWN, message);
        }
        _ => {}
    }
    checked(world, csv, |found| {
        let conflict = csv.reason() == reason::OWNER_CONFLICT && conflicting_owner(world, csv).is_some();
        if conflict || apiservices::unadoptable(world, csv).is_some() {
            return failed(csv, Step::stay());
        }
        if !found.met() {
            return Step::to(Phase::Pending, reason::REQUIREMENTS_NOT_MET, "requirements not met");
        }
        if let Some(step) = invalid_webhooks(csv).or_else(|| install_failure(world, csv, key, now)) {
            return step;
        }
        if let Some(problems) = api_service_problems(world, csv) {
            return Step::to(Phase::Pending, reason::API_SERVICE_RESOURCES_NEED_REINSTALL, problems);
        }
        if serving::is_rotation_due(world, csv, now) {
            return Step::to(Phase::Pending, reason::NEEDS_CERT_ROTATION, "owned APIServices need cert refresh");
        }
        check(world, csv, Phase::Pending, reason::NEEDS_REINSTALL)
    })
}

/// Returns whether the namespace's OperatorGroup lets failed ClusterServiceVersions be replaced.
fn fails_forward(world: &Reader<'_>, csv: Csv<'_>) -> bool {
    world.in_namespace(&kind::OPERATOR_GROUP, csv.namespace()).any(|g| OperatorGroup::new(g.json()).fails_forward())
}

fn replacing(world: &Reader<'_>, csv: Csv<'_>) -> Step {
    if let Some(older) = siblings::replaced(world, csv) {
        return Step::stay().because(waits_for(csv, older, "the older ClusterServiceVersion has to be deleted first"));
    }
    let replacements = siblings::replacements(world, csv);
    let target = if fails_forward(world, csv) { upgrade::newest(world, csv) } else { replacements.first().copied() };
    match target {
        Some(new) if new.phase() == Phase::Succeeded => {
            let message = "has been replaced by a newer ClusterServiceVersion that has successfully installed.";
            Step::to(Phase::Deleting, reason::REPLACED, message)
        }
        Some(new) => Step::stay().because(waits_for(csv, new, format!("it is {}", phase_text(new)))),
        None => Step::stay().because(Reason::Missing {
            object: csv_ref(csv),
            needs: "the ClusterServiceVersion that replaces it".to_owned(),
        }),
    }
}
