//! Operators that look up their own webhook configurations by name: OLM generates other names (olm-behaviour/csv.md#serving-objects).

use serde_json::Value;

use super::Work;
use super::permissions::BoundRule;
use super::workloads::Workloads;
use crate::api::kinds::ADMISSION_REGISTRATION;
use crate::api::object::{self, list, text};
use crate::finding::Finding;

/// The kinds of webhook configurations, and the resources of rules about them.
const CONFIGURATIONS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
];

/// Reports arguments, values of environment variables, and rules that name a webhook configuration of the input.
pub(super) fn report(work: &mut Work<'_>, workloads: &Workloads, rules: &[BoundRule<'_>]) {
    for (kind, resource) in CONFIGURATIONS {
        let names: Vec<&str> =
            work.of_kind(ADMISSION_REGISTRATION, kind).map(|(_, manifest)| object::name(&manifest.object)).collect();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            let finding = Finding::new(
                "webhook-lookup",
                format!("names {kind} {name}, but OLM generates the names of webhook configurations"),
            )
            .warning()
            .hint("OLM sets caBundle itself: turn off what the operator does with its webhook configurations, or let it find them by the label olm.webhook-description-generate-name");
            for workload in &workloads.all {
                in_containers(work, workload.number, name, &finding);
            }
            for BoundRule { number, path, rule, .. } in rules {
                let has = |field: &str, value: &str| list(rule, &[field]).iter().any(|item| item == value);
                if has("apiGroups", ADMISSION_REGISTRATION) && has("resources", resource) && has("resourceNames", name)
                {
                    let path: Vec<&str> = path.iter().map(String::as_str).chain(["resourceNames"]).collect();
                    work.report(*number, &path, finding.clone());
                }
            }
        }
    }
}

/// Reports the arguments and environment variables of a Deployment that name a webhook configuration.
fn in_containers(work: &mut Work<'_>, number: usize, name: &str, finding: &Finding) {
    // The operator's name is also that of other objects, and then an argument with it need not be about webhooks.
    let is_of_others = work
        .manifests
        .iter()
        .any(|other| object::name(&other.object) == name && !CONFIGURATIONS.iter().any(|(k, _)| *k == other.kind()));
    let names_it = |context: &str, value: &str| {
        let is_about_webhooks = || format!("{context} {value}").to_lowercase().contains("webhook");
        value.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.')).any(|word| word == name)
            && (!is_of_others || is_about_webhooks())
    };
    let template = ["spec", "template", "spec"];
    for field in ["initContainers", "containers"] {
        for (c, container) in
            list(&work.manifests[number].object, &[&template[..], &[field]].concat()).iter().enumerate()
        {
            let parts = ["command", "args", "env"]
                .into_iter()
                .flat_map(|part| list(container, &[part]).iter().enumerate().map(move |(n, item)| (part, n, item)));
            for (part, n, item) in parts {
                let (context, value) = match item {
                    Value::String(argument) => ("", argument.as_str()),
                    variable => (text(variable, &["name"]), text(variable, &["value"])),
                };
                if names_it(context, value) {
                    let [c, n] = [c, n].map(|number| number.to_string());
                    let path = [&template[..], &[field, &c, part, &n]].concat();
                    work.report(number, &path, finding.clone());
                }
            }
        }
    }
}
