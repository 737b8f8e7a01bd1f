//! Operators that look up their own webhook configurations and Services by name: OLM generates other names
//! (olm-behaviour/csv.md#serving-objects).

use serde_json::Value;

use super::Work;
use super::account::Destination;
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

/// Reports arguments and values of environment variables that name a webhook configuration or a Service of the input, and rules that name
/// a webhook configuration.
pub(super) fn report(work: &mut Work<'_>, workloads: &Workloads, rules: &[BoundRule<'_>]) {
    services(work, workloads);
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
            // The operator's name is also that of other objects, and then an argument with it need not be about webhooks.
            let is_of_others = work.manifests.iter().any(|other| {
                object::name(&other.object) == name && !CONFIGURATIONS.iter().any(|(k, _)| *k == other.kind())
            });
            let names_it = |context: &str, value: &str| {
                let is_about_webhooks = || format!("{context} {value}").to_lowercase().contains("webhook");
                words(value).any(|word| word == name) && (!is_of_others || is_about_webhooks())
            };
            for workload in &workloads.all {
                in_containers(work, workload.number, &finding, &names_it);
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

/// Reports arguments and environment variables with the DNS name of a Service in whose place OLM creates its own.
fn services(work: &mut Work<'_>, workloads: &Workloads) {
    let replaced: Vec<(String, String)> = work
        .of_kind("", "Service")
        .filter(|(number, _)| {
            let destinations = &work.destinations[*number];
            !destinations.is_empty() && !destinations.contains(&Destination::Bundle)
        })
        .map(|(_, service)| (service.name().to_owned(), object::namespace(&service.object).to_owned()))
        .collect();
    for (name, namespace) in replaced {
        let finding = Finding::new(
            "service-lookup",
            format!("names Service {name}, in whose place OLM creates DEPLOYMENT-service"),
        )
        .warning()
        .hint("add a second Service for the other clients of these pods, with another name, or use the name of OLM's Service");
        let names_it = |context: &str, value: &str| {
            let is_about_services = context.to_lowercase().contains("service") || value.contains("service");
            words(value).any(|word| match word.strip_prefix(name.as_str()) {
                Some("") => is_about_services,
                Some(".") => true,
                Some(rest) => {
                    let domain = rest.strip_prefix('.').and_then(|rest| rest.split('.').next());
                    domain.is_some_and(|domain| domain == "svc" || domain == namespace)
                }
                None => false,
            })
        };
        for workload in &workloads.all {
            in_containers(work, workload.number, &finding, &names_it);
        }
    }
}

/// Returns the words of a value that can be names of objects.
fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.'))
}

/// Reports the arguments and environment variables of a Deployment that name an object. `names_it` is given the name of a variable, and
/// the value.
fn in_containers(work: &mut Work<'_>, number: usize, finding: &Finding, names_it: &dyn Fn(&str, &str) -> bool) {
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
