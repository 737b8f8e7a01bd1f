//! Namespaces that are being deleted: the API server refuses to create anything in them, so nothing is tried, and everything else is done.
//! Nor is anybody asked to create anything there.

use std::collections::BTreeMap;

use crate::api::object;
use crate::plan::{Action, Order, Plan, Reason, Verb};
use crate::world::{Reader, kind};

/// Takes out of a plan what would be created in such a namespace, and what must come after it. Events are left out as well.
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
        // To create one there would not help.
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
        // Events are gone from the batches that are left.
        let left = batches.into_iter().filter(|batch| batch.start < end);
        *sizes = left.map(|batch| batch.filter(|at| barred[*at].is_none()).count()).collect();
    }
    plan.reasons.extend(reasons);
}
