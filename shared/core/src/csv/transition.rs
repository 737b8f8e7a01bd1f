//! From one phase to the next (reference/olm-operator.md §1.4, §1.5).

use jiff::{SignedDuration, Timestamp};

use super::deployments::{self, Unhealthy};
use super::model::{Csv, siblings};
use super::requirements::{self, Requirements};
use super::{Step, upgrade};
use crate::api::object;
use crate::plan::{Action, Key, Propagation, Reason, Verb};
use crate::world::{Reader, Refusal, kind};

/// How long Installing may last without the Deployments becoming available.
const INSTALL_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Reasons of `Failed` that only a gate sets: when the gates are passed again, the state machine starts over.
const OPERATOR_GROUP_REASONS: [&str; 4] =
    ["NoTargetNamespaces", "NoOperatorGroup", "TooManyOperatorGroups", "UnsupportedOperatorGroup"];

pub(super) fn next(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Step {
    let installs = matches!(csv.phase(), "InstallReady" | "Installing" | "Succeeded" | "Failed");
    if installs && csv.strategy() != "deployment" {
        let message = "install strategy invalid: unrecognized install strategy";
        return failed(csv, Step::to("Failed", "InvalidInstallStrategy", message));
    }
    match csv.phase() {
        "" => Step::to("Pending", "RequirementsUnknown", "requirements not yet checked"),
        "Pending" => pending(world, csv),
        "InstallReady" => install_ready(world, csv, key, now),
        "Installing" => installing(world, csv, now),
        "Succeeded" => succeeded(world, csv),
        "Failed" => failed_again(world, csv, key, now),
        "Replacing" => replacing(world, csv),
        "Deleting" => Step::stay().after(vec![Action::delete(csv.json, Propagation::Background)]),
        other => Step::stay().because(Reason::Invalid {
            object: csv_ref(csv),
            message: format!("status.phase {other:?} is not a phase of OLM"),
        }),
    }
}

fn csv_ref(csv: Csv<'_>) -> String {
    object::ObjectRef::of(csv.json).to_string()
}

/// With the reason that a report shows for a failure.
pub(super) fn failed(csv: Csv<'_>, step: Step) -> Step {
    let (why, message) =
        step.transition.as_ref().map_or_else(|| (csv.reason(), csv.message()), |t| (t.reason, t.message.as_str()));
    let reason = Reason::CsvFailed {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        why: why.to_owned(),
        message: message.to_owned(),
    };
    step.because(reason)
}

fn misses(csv: Csv<'_>, found: &Requirements) -> Reason {
    Reason::RequirementsNotMet {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        missing: found.unmet.clone(),
    }
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
    failed(csv, Step::to("Failed", "InvalidInstallStrategy", format!("install strategy invalid: {error}")))
}

fn pending(world: &Reader<'_>, csv: Csv<'_>) -> Step {
    let replaced = csv.replaced(world);
    if let Some(old) = replaced
        && let Some(objection) = upgrade::objection(world, old)
    {
        let message = format!("operator is not upgradeable: {objection}");
        return Step::to("Pending", "OperatorConditionNotUpgradeable", message).because(waits_for(csv, old, objection));
    }
    let found = match requirements::check(world, csv) {
        Ok(found) => found,
        Err(error) => return invalid_strategy(csv, error),
    };
    if !found.met() {
        return Step::to("Pending", "RequirementsNotMet", "one or more requirements couldn't be found")
            .with(&found)
            .because(misses(csv, &found));
    }
    if let Some(unsupported) = unsupported(csv) {
        return Step::stay().with(&found).because(unsupported);
    }
    if let Some(owner) = conflicting_owner(world, csv) {
        let step = Step::to("Failed", "OwnerConflict", "conflicting CRD owner in namespace").with(&found);
        return failed(csv, step).because(waits_for(csv, owner, "it owns the same CustomResourceDefinition"));
    }
    if let Some(old) = replaced
        && old.phase() != "Replacing"
    {
        let message = format!("it is {} and has to be Replacing", phase_text(old));
        // What was missing a moment ago is there now: a look at it in between must not leave its text behind.
        let step = match csv.reason() {
            "RequirementsNotMet" => Step::to("Pending", "RequirementsUnknown", "requirements not yet checked"),
            _ => Step::stay(),
        };
        return step.with(&found).because(waits_for(csv, old, message));
    }
    Step::to("InstallReady", "AllRequirementsMet", "all requirements found, attempting install").with(&found)
}

fn phase_text(csv: Csv<'_>) -> &str {
    if csv.phase().is_empty() { "new" } else { csv.phase() }
}

/// Parts of a ClusterServiceVersion that this version of kubectl-olm does not install yet: it says so and leaves it Pending
/// instead of reporting an operator as installed whose webhooks or APIs are missing.
fn unsupported(csv: Csv<'_>) -> Option<Reason> {
    let part = if !csv.webhooks().is_empty() {
        "spec.webhookdefinitions"
    } else if !csv.owned_api_services().is_empty() {
        "spec.apiservicedefinitions.owned"
    } else {
        return None;
    };
    Some(Reason::Unsupported { object: csv_ref(csv), what: part.to_owned() })
}

/// Another ClusterServiceVersion of the namespace, outside the chain of replacements in both directions, that owns one of its CRDs.
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

/// What the API server refused of this ClusterServiceVersion's install, and is not to be tried again yet.
fn install_refusal<'w>(world: &Reader<'w>, key: &Key, now: Timestamp) -> Option<&'w Refusal> {
    let is_install = |r: &&Refusal| r.target.gvk.kind == "Deployment" && matches!(r.verb, Verb::Create | Verb::Update);
    world.refusals(key).iter().filter(is_install).find(|r| !r.is_stale() && r.retry_at > now)
}

fn install_ready(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Step {
    if let Some(refusal) = install_refusal(world, key, now) {
        let message = format!("install strategy failed: {}", refusal.status.message);
        return failed(csv, Step::to("Failed", "InstallComponentFailed", message));
    }
    Step::to("Installing", "InstallSucceeded", "waiting for install components to report healthy")
        .after(deployments::install(world, csv))
}

fn not_healthy(csv: Csv<'_>, message: &str) -> Reason {
    Reason::NotHealthy {
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
        message: message.to_owned(),
    }
}

/// The check of what was installed; what is not good goes to `phase` with `reason`.
fn check(world: &Reader<'_>, csv: Csv<'_>, phase: &'static str, reason: &'static str) -> Step {
    match deployments::check(world, csv) {
        Ok(()) => Step::to("Succeeded", "InstallSucceeded", "install strategy completed with no errors"),
        Err(Unhealthy::Timeout(why)) => {
            failed(csv, Step::to("Failed", "InstallCheckFailed", format!("install failed: {why}")))
        }
        Err(Unhealthy::Changed(why)) => Step::to("InstallReady", reason, format!("installing: {why}")),
        Err(unhealthy) => Step::to(phase, reason, format!("installing: {}", unhealthy.message()))
            .because(not_healthy(csv, unhealthy.message())),
    }
}

fn installing(world: &Reader<'_>, csv: Csv<'_>, now: Timestamp) -> Step {
    let step = check(world, csv, "Installing", "InstallWaiting");
    let waits = step.transition.as_ref().is_some_and(|t| t.phase == "Installing");
    let Some(deadline) = csv.last_transition().map(|t| t + INSTALL_TIMEOUT).filter(|_| waits) else { return step };
    if now >= deadline {
        return failed(csv, Step::to("Failed", "InstallCheckFailed", "install timeout"));
    }
    step.again_at(Some(deadline))
}

fn succeeded(world: &Reader<'_>, csv: Csv<'_>) -> Step {
    if let Some(new) = csv.replacements(world).first() {
        return Step::to("Replacing", "BeingReplaced", format!("being replaced by csv: {}", new.name()));
    }
    let found = match requirements::check(world, csv) {
        Ok(found) => found,
        Err(error) => return invalid_strategy(csv, error),
    };
    if !found.met() {
        return Step::to("Failed", "RequirementsNotMet", "requirements no longer met")
            .with(&found)
            .because(misses(csv, &found));
    }
    check(world, csv, "Failed", "ComponentUnhealthy").with(&found)
}

fn failed_again(world: &Reader<'_>, csv: Csv<'_>, key: &Key, now: Timestamp) -> Step {
    if fails_forward(world, csv)
        && let Some(new) = upgrade::newest(world, csv)
    {
        let message = format!("Fail Forward is enabled, allowing Failed csv to be replaced by csv: {}", new.name());
        return Step::to("Replacing", "BeingReplaced", message);
    }
    match csv.reason() {
        reason if OPERATOR_GROUP_REASONS.contains(&reason) => {
            return Step::to("Pending", "RequirementsUnknown", "InstallModes now support target namespaces");
        }
        "InterOperatorGroupOwnerConflict" => {
            let message = "OperatorGroup no longer intersecting with conflicting owner";
            return Step::to("Pending", "RequirementsUnknown", message);
        }
        "CannotModifyStaticOperatorGroupProvidedAPIs" => {
            let message = "static OperatorGroup and intersecting groups now support providedAPIs";
            return Step::to("Pending", "RequirementsUnknown", message);
        }
        _ => {}
    }
    let found = match requirements::check(world, csv) {
        Ok(found) => found,
        Err(error) => return invalid_strategy(csv, error),
    };
    if csv.reason() == "OwnerConflict" && conflicting_owner(world, csv).is_some() {
        return failed(csv, Step::stay().with(&found));
    }
    if !found.met() {
        return Step::to("Pending", "RequirementsNotMet", "requirements not met")
            .with(&found)
            .because(misses(csv, &found));
    }
    if let Some(refusal) = install_refusal(world, key, now) {
        return failed(csv, Step::stay().with(&found)).again_at(Some(refusal.retry_at));
    }
    check(world, csv, "Pending", "NeedsReinstall").with(&found)
}

/// Does the namespace's OperatorGroup let failed ClusterServiceVersions be replaced?
fn fails_forward(world: &Reader<'_>, csv: Csv<'_>) -> bool {
    world
        .in_namespace(&kind::OPERATOR_GROUP, csv.namespace())
        .any(|g| object::text(g.json(), &["spec", "upgradeStrategy"]) == "TechPreviewUnsafeFailForward")
}

fn replacing(world: &Reader<'_>, csv: Csv<'_>) -> Step {
    if let Some(older) = csv.replaced(world) {
        return Step::stay().because(waits_for(csv, older, "the older one has to go first"));
    }
    let replacements = csv.replacements(world);
    let target = if fails_forward(world, csv) { upgrade::newest(world, csv) } else { replacements.first().copied() };
    match target {
        Some(new) if new.phase() == "Succeeded" => {
            let message = "has been replaced by a newer ClusterServiceVersion that has successfully installed.";
            Step::to("Deleting", "Replaced", message)
        }
        Some(new) => Step::stay().because(waits_for(csv, new, format!("it is {}", phase_text(new)))),
        None => Step::stay().because(Reason::Missing {
            object: csv_ref(csv),
            needs: "the ClusterServiceVersion that replaces it".to_owned(),
        }),
    }
}
