//! Preconditions of the state machine, checked in every phase (olm-behaviour/csv.md#preconditions): one OperatorGroup whose
//! targets the install modes support, and no other group that provides the same APIs to the same namespaces.

use super::{Step, transition::failed};
use crate::api::cluster_service_version::{Csv, Phase, reason};
use crate::api::{labels, object};
use crate::membership::{self, Group, Provision};
use crate::plan::{Action, Propagation, Reason};
use crate::world::{Reader, kind};

/// Whether the state machine may continue.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Yes.
    Pass,
    /// No: only this step is done.
    Stop(Step),
}

pub(super) fn check(world: &Reader<'_>, csv: Csv<'_>, groups: &[Group<'_>]) -> Verdict {
    match unmet(world, csv, groups) {
        Ok(()) => Verdict::Pass,
        Err(step) => Verdict::Stop(*step),
    }
}

fn unmet(world: &Reader<'_>, csv: Csv<'_>, groups: &[Group<'_>]) -> Result<(), Box<Step>> {
    let group = only_group(csv, groups)?;
    if !group.is_processed(world) {
        // The OperatorGroup's own plan writes its status; then this one is made again.
        return Err(Box::default());
    }
    if group.targets().is_empty() {
        let message = if group.keeps_targets(world) {
            "csv missing olm.targetNamespaces annotation"
        } else {
            "no targetNamespaces are matched operatorgroups namespace selection"
        };
        return stop(csv, Step::to(Phase::Failed, reason::NO_TARGET_NAMESPACES, message));
    }
    let targets = object::annotation(csv.json, labels::TARGET_NAMESPACES).unwrap_or_default();
    if let Err((reason, message)) = membership::supports(csv.json, csv.namespace(), targets) {
        return stop(csv, Step::to(Phase::Failed, reason, message));
    }
    match membership::provision(world, group, csv.json) {
        Provision::Settled => Ok(()),
        Provision::Annotate(apis) => Err(Box::new(Step::stay().after(vec![membership::annotate(group, &apis)]))),
        Provision::Conflict => {
            let message = "intersecting operatorgroups provide the same apis";
            let step = Step::to(Phase::Failed, reason::CONFLICT, message);
            stop(csv, step.after(delete_deployments(world, csv)))
        }
        Provision::Static => {
            let message = "static provided api operatorgroup cannot be modified by these apis";
            let step = Step::to(Phase::Failed, reason::STATIC_PROVIDED_APIS, message);
            stop(csv, step.after(delete_deployments(world, csv)))
        }
    }
}

fn stop(csv: Csv<'_>, step: Step) -> Result<(), Box<Step>> {
    Err(Box::new(failed(csv, step)))
}

fn only_group<'a>(csv: Csv<'_>, groups: &[Group<'a>]) -> Result<Group<'a>, Box<Step>> {
    let namespace = csv.namespace().to_owned();
    match groups {
        [group] => Ok(*group),
        [] => {
            let step = Step::to(Phase::Failed, reason::NO_OPERATOR_GROUP, "csv in namespace with no operatorgroups");
            Err(Box::new(step.because(Reason::NoOperatorGroup { namespace })))
        }
        many => {
            let message = "csv created in namespace with multiple operatorgroups, can't pick one automatically";
            let names = many.iter().map(|g| g.name().to_owned()).collect();
            let step = Step::to(Phase::Failed, reason::TOO_MANY_OPERATOR_GROUPS, message);
            Err(Box::new(step.because(Reason::TooManyOperatorGroups { namespace, names })))
        }
    }
}

/// Stops an operator that may not run: its Deployments are deleted, objects that it created are not.
fn delete_deployments(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    csv.deployments()
        .iter()
        .filter_map(|entry| world.json(&kind::DEPLOYMENT, csv.namespace(), object::text(entry, &["name"])))
        .filter(|d| labels::is_owner(d, csv.json) && !object::is_deleting(d))
        .map(|d| Action::delete(d, Propagation::Background))
        .collect()
}
