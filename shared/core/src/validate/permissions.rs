//! Permissions that exceed what operators usually need.

use std::collections::BTreeSet;

use serde_json::Value;

use super::input::Input;
use super::rule::{self, Rule};
use crate::api::cluster_service_version::Csv;
use crate::api::object::{list, text};
use crate::bundle::synthesis::Manifest;
use crate::explain::{self, Escalation};
use crate::rbac::described;

/// The account of Pods that name none.
const DEFAULT: &str = "default";

/// Checks the permissions of the ClusterServiceVersion.
pub(super) fn check(input: &mut Input, csv: &Manifest) {
    let view = Csv::new(&csv.object);
    let account_of = |deployment: &Value| {
        let account = text(deployment, &["spec", "template", "spec", "serviceAccountName"]);
        if account.is_empty() { DEFAULT.to_owned() } else { account.to_owned() }
    };
    let used: BTreeSet<String> = view.deployments().iter().map(account_of).collect();
    for (field, permissions) in
        [("permissions", view.permissions()), ("clusterPermissions", view.cluster_permissions())]
    {
        let namespace = (field == "permissions").then_some("operator");
        for (n, permission) in permissions.iter().enumerate() {
            let n = n.to_string();
            let place = ["spec", "install", "spec", field, n.as_str()];
            let account = text(permission, &["serviceAccountName"]);
            if account == DEFAULT {
                let message = "the ServiceAccount default is also that of other Pods of the namespace";
                input.report(&rule::DEFAULT_ACCOUNT, csv, &place, message);
            } else if !used.contains(account) {
                let message = format!("no Deployment uses the ServiceAccount {account}");
                input.report(&rule::UNUSED_ACCOUNT, csv, &place, message);
            }
            for (m, policy) in list(permission, &["rules"]).iter().enumerate() {
                let m = m.to_string();
                let place = [&place[..], &["rules", m.as_str()]].concat();
                for (rule, message) in problems(account, namespace, policy) {
                    input.report(rule, csv, &place, message);
                }
            }
        }
    }
}

/// Returns the problems of a rule.
fn problems(account: &str, namespace: Option<&str>, policy: &Value) -> Vec<(&'static Rule, String)> {
    let permission = explain::permission(account, namespace, policy);
    let has = |escalation: Escalation| permission.escalations.contains(&escalation);
    let place = if namespace.is_some() { "in its namespaces" } else { "in the whole cluster" };
    let what = || described(policy);
    let mut found: Vec<(&'static Rule, String)> = Vec::new();
    if has(Escalation::Wildcard) {
        found.push((&rule::WILDCARD, format!("{account} may {} {place}", what())));
    }
    const GAINS: [Escalation; 6] = [
        Escalation::Escalate,
        Escalation::Bind,
        Escalation::Impersonate,
        Escalation::Execution,
        Escalation::Certificates,
        Escalation::Admission,
    ];
    let gains: Vec<&str> = GAINS.into_iter().filter(|gain| has(*gain)).map(Escalation::words).collect();
    if !gains.is_empty() && !has(Escalation::Wildcard) {
        found.push((&rule::ESCALATION, format!("{account} may {} {place}: {}", what(), gains.join(", "))));
    }
    let is_named = !permission.resource_names.is_empty();
    if has(Escalation::Secrets) && namespace.is_none() && !is_named && !has(Escalation::Wildcard) {
        found.push((&rule::READS_SECRETS, format!("{account} may {} {place}", what())));
    }
    found
}
