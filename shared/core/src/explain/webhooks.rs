//! The webhooks of operators that are created, changed or deleted.

use serde_json::Value;

use super::document::{Change, Webhook};
use super::simulated_plan::SimulatedPlan;
use crate::api::cluster_service_version::Csv;
use crate::api::object;

/// Returns the webhooks of the operators, with their changes.
pub(super) fn changes(simulated: &SimulatedPlan) -> Vec<Webhook> {
    let mut webhooks = Vec::new();
    for (after, before) in simulated.operators() {
        let of = |csv: &Value| Csv::new(csv).webhooks().to_vec();
        let (new, old) = (of(&after), before.map(&of).unwrap_or_default());
        let key = |w: &Value| ["type", "generateName"].map(|key| object::text(w, &[key]).to_owned());
        for webhook in &new {
            let known = old.iter().find(|w| key(w) == key(webhook));
            let change = match known {
                None => Change::Create,
                Some(known) if known == webhook => Change::Unchanged,
                Some(_) => Change::Update,
            };
            webhooks.push(described(webhook, change, object::name(&after)));
        }
        let gone = old.iter().filter(|w| !new.iter().any(|n| key(n) == key(w)));
        webhooks.extend(gone.map(|w| described(w, Change::Delete, before.map_or("", object::name))));
    }
    webhooks
}

fn described(webhook: &Value, change: Change, csv: &str) -> Webhook {
    let text = |key| object::text(webhook, &[key]).to_owned();
    let texts = |rule: &Value, key: &str| -> Vec<String> {
        object::list(rule, &[key]).iter().filter_map(Value::as_str).map(str::to_lowercase).collect()
    };
    let rule = |rule: &Value| {
        let groups = texts(rule, "apiGroups");
        let resources = texts(rule, "resources").into_iter().flat_map(|resource| {
            let named =
                |group: &String| if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
            groups.iter().map(named).collect::<Vec<_>>()
        });
        format!("{} {}", texts(rule, "operations").join(", "), resources.collect::<Vec<_>>().join(", "))
    };
    let is_conversion = object::text(webhook, &["type"]) == "ConversionWebhook";
    let rules = if is_conversion {
        texts(webhook, "conversionCRDs")
    } else {
        object::list(webhook, &["rules"]).iter().map(rule).collect()
    };
    let failure_policy = match text("failurePolicy") {
        policy if policy.is_empty() && !is_conversion => "Fail".to_owned(),
        policy => policy,
    };
    Webhook { name: text("generateName"), r#type: text("type"), change, csv: csv.to_owned(), rules, failure_policy }
}
