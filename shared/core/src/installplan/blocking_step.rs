//! Determines the bundle whose step blocks an InstallPlan. A plan may contain the bundles of several Subscriptions, and one failing step
//! blocks all of them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::install_plan::{InstallPlan, Step, StepStatus};
use crate::api::object;
use crate::api::subscription::Subscription;
use crate::plan::BlockingBundle;
use crate::world::{Reader, kind};

/// Returns the bundle of a step of the plan.
pub(super) fn blocking_bundle(world: &Reader<'_>, plan: &Value, step: usize) -> BlockingBundle {
    let namespace = object::namespace(plan);
    let steps = InstallPlan::new(plan).steps_json();
    let resolving = |step: &Value| Step::new(step).resolving().to_owned();
    let Some(csv) = steps.get(step).map(resolving) else { return BlockingBundle::default() };
    let others: BTreeSet<String> =
        steps.iter().map(resolving).filter(|other| *other != csv && !other.is_empty()).collect();
    let subscriptions = world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|s| s.json());
    let asked_for_it = subscriptions.filter(|s| Subscription::new(s).current_csv() == csv);
    let subscriptions = asked_for_it.map(|s| object::name(s).to_owned()).collect();
    BlockingBundle { csv, subscriptions, others: others.into_iter().collect() }
}

/// Returns the bundle whose step failed, according to the status of the plan.
pub(super) fn of_failed(world: &Reader<'_>, plan: &Value) -> BlockingBundle {
    open(plan).map_or_else(BlockingBundle::default, |(index, _)| blocking_bundle(world, plan, index))
}

/// Returns the current step of a plan: of the steps that are not done, the one whose object the message names, or else the first.
pub(super) fn open(plan: &Value) -> Option<(usize, &Value)> {
    let message = InstallPlan::new(plan).message();
    let steps = InstallPlan::new(plan).steps_json();
    let open = || steps.iter().enumerate().filter(|(_, step)| !is_done(step));
    let is_named = |step: &Value| {
        let name = Step::new(step).name();
        let mut words = message.split(|c: char| c.is_whitespace() || matches!(c, '"' | ':' | ','));
        !name.is_empty() && words.any(|word| word == name)
    };
    open().find(|(_, step)| is_named(step)).or_else(|| open().next())
}

/// Reports whether nothing is left to do for the step.
pub(super) fn is_done(step: &Value) -> bool {
    let step = Step::new(step);
    step.is_done() || step.status() == StepStatus::NotCreated
}
