//! PodDisruptionBudgets: how many of the selected pods may be evicted.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::api_server::ApiServer;
use super::super::selector;
use super::number;
use crate::api::conditions::{self, Conditions};
use crate::api::object::{at, generation, is_deleting, map_mut, namespace};

pub(super) fn step(server: &mut ApiServer, now: Timestamp) {
    for budget in server.pick("policy", "PodDisruptionBudget", |budget| !is_deleting(budget)) {
        let (expected, healthy) = pods(server, &budget);
        let desired = desired(&budget, expected);
        let allowed = if expected == 0 { 0 } else { (healthy - desired).max(0) };
        let (status, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        let since = conditions::transition_time(Conditions::new(&budget).json(), "DisruptionAllowed", status, now);
        let mut updated = budget.clone();
        map_mut(&mut updated, &[]).insert(
            "status".into(),
            json!({
                "currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed,
                "expectedPods": expected, "observedGeneration": generation(&budget),
                "conditions": [{
                    "type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": since, "observedGeneration": generation(&budget),
                }],
            }),
        );
        if updated != budget {
            server.write_back(updated, Some("status"), now);
        }
    }
}

/// Returns how many pods the budget's selector should select, and how many of them are ready.
fn pods(server: &ApiServer, budget: &Value) -> (i64, i64) {
    let selected = server.list("apps", "ReplicaSet", Some(namespace(budget))).filter(|set| {
        let labels = at(set, &["spec", "template", "metadata", "labels"]);
        selector::matches(at(budget, &["spec", "selector"]), labels)
    });
    selected.fold((0, 0), |(expected, healthy), set| {
        (expected + number(set, &["spec", "replicas"]), healthy + number(set, &["status", "readyReplicas"]))
    })
}

fn desired(budget: &Value, expected: i64) -> i64 {
    let share = |value: &Value| match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            (percent * expected + 99) / 100
        }
        other => other.as_i64().unwrap_or_default(),
    };
    let (least, most) = (at(budget, &["spec", "minAvailable"]), at(budget, &["spec", "maxUnavailable"]));
    if !most.is_null() {
        (expected - share(most)).max(0)
    } else if least.is_null() {
        0
    } else {
        share(least)
    }
}
