//! Namespaces that are being deleted: the API server refuses to create anything in them, so creations are dropped from plans, and hints do
//! not suggest them. All other actions are executed.

use std::collections::BTreeMap;

use crate::api::object;
use crate::plan::{Action, Order, Plan, Reason, Verb};
use crate::world::{Reader, kind};

/// Removes creations in such a namespace from a plan, and the actions that have to follow them. Events are removed as well.
pub(super) fn hold(world: &Reader<'_>, plan: &mut Plan) {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut is_barred = |action: &Action| {
        let namespace = match action.verb() {
            Verb::Create | Verb::Emit => action.target().namespace,
            _ => return None,
        };
        let is_terminating = *known.entry(namespace.clone()).or_insert_with(|| {
            !namespace.is_empty() && world.json(&kind::NAMESPACE, "", &namespace).is_some_and(object::is_terminating)
        });
        is_terminating.then_some(namespace)
    };
    for reason in &mut plan.reasons {
        // Creating an OperatorGroup is not possible.
        if let Reason::NoOperatorGroup { namespace } = reason
            && world.json(&kind::NAMESPACE, "", namespace).is_some_and(object::is_terminating)
        {
            *reason = Reason::NamespaceTerminating { namespace: std::mem::take(namespace) };
        }
    }
    let barred: Vec<Option<String>> = plan.actions.iter().map(&mut is_barred).collect();
    if barred.iter().all(Option::is_none) {
        return;
    }
    let creates = |at: &usize| barred[*at].is_some() && plan.actions[*at].verb() == Verb::Create;
    let mut namespaces: Vec<&String> =
        (0..barred.len()).filter(&creates).filter_map(|at| barred[at].as_ref()).collect();
    namespaces.dedup();
    let reasons = namespaces.into_iter().map(|namespace| Reason::NamespaceTerminating { namespace: namespace.clone() });
    let reasons: Vec<Reason> = reasons.collect();
    let end = match plan.order {
        Order::Any => barred.len(),
        Order::OneByOne | Order::Batches(_) => {
            let batches = plan.order.batches(barred.len());
            batches.into_iter().find(|batch| batch.clone().any(|at| creates(&at))).map_or(barred.len(), |b| b.start)
        }
    };
    let mut at = 0;
    let batches = plan.order.batches(barred.len());
    plan.actions.retain(|_| {
        at += 1;
        at <= end && barred[at - 1].is_none()
    });
    if let Order::Batches(sizes) = &mut plan.order {
        // Events were removed from the remaining batches.
        let left = batches.into_iter().filter(|batch| batch.start < end);
        *sizes = left.map(|batch| batch.filter(|at| barred[*at].is_none()).count()).collect();
    }
    plan.reasons.extend(reasons);
}
