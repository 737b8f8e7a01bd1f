//! Finds what the API server calls in vain: aggregated APIs, admission webhooks and conversion webhooks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Context;
use super::rule::{DANGLING_CONVERSION, DANGLING_WEBHOOK, STALE_API_SERVICE};
use crate::api::cluster_service_version::Phase;
use crate::api::conditions::{AVAILABLE, Condition, Conditions};
use crate::api::custom_resource_definition::{CrdVersion, CustomResourceDefinition};
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::distribution::PACKAGES_API;
use crate::finding::Severity;
use crate::lint::{Change, Problem};
use crate::listing::listed;
use crate::packages::serve::registration;
use crate::world::{GroupKind, Reader, kind};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Problem>) {
    found.extend(context.living(&kind::API_SERVICE).filter_map(|service| api_service(context, service)));
    for gk in [kind::VALIDATING_WEBHOOK_CONFIGURATION, kind::MUTATING_WEBHOOK_CONFIGURATION] {
        found.extend(context.living(&gk).filter_map(|configuration| webhook(context, configuration)));
    }
    // The deletion of a definition waits for its conversion webhook, too.
    let definitions = context.all(&kind::CUSTOM_RESOURCE_DEFINITION);
    found.extend(definitions.filter_map(|crd| conversion(context, crd)));
}

/// Returns the Services that APIServices and webhooks name.
pub(super) fn services(world: &Reader<'_>) -> BTreeSet<ObjectRef> {
    let all = |gk: GroupKind| world.all(&gk).map(|object| object.json());
    let of_apis = all(kind::API_SERVICE).map(|api| object::at(api, &["spec", "service"]));
    let webhooks =
        [kind::VALIDATING_WEBHOOK_CONFIGURATION, kind::MUTATING_WEBHOOK_CONFIGURATION].into_iter().flat_map(all);
    let webhooks = webhooks
        .flat_map(|configuration| object::list(configuration, &["webhooks"]))
        .map(|webhook| object::at(webhook, &["clientConfig", "service"]));
    let conversions = all(kind::CUSTOM_RESOURCE_DEFINITION)
        .map(|crd| object::at(crd, &["spec", "conversion", "webhook", "clientConfig", "service"]));
    of_apis.chain(webhooks).chain(conversions).filter_map(named).collect()
}

/// Returns the Service that a client configuration or an APIService names.
fn named(service: &Value) -> Option<ObjectRef> {
    let [namespace, name] = ["namespace", "name"].map(|field| object::text(service, &[field]));
    (!namespace.is_empty() && !name.is_empty()).then(|| kinds::SERVICE.object(namespace, name))
}

fn api_service(context: &Context<'_>, api: &Value) -> Option<Problem> {
    let service = object::at(api, &["spec", "service"]);
    // A group of the API server itself, or of CustomResourceDefinitions.
    if service.is_null() {
        return None;
    }
    let condition = Conditions::new(api).find(AVAILABLE).filter(|condition| !condition.is_true());
    // The API server reports it, too.
    let is_reported = condition.is_some_and(|condition| condition.reason() == "ServiceNotFound");
    let missing = context.missing_service(service).or_else(|| is_reported.then(|| named(service)).flatten());
    let since = condition.and_then(Condition::last_transition);
    let reported = match (&condition, &missing) {
        (None, None) => return None,
        (Some(_), _) if !context.lasts(since) => return None,
        (Some(condition), _) => format!("{}: {}", condition.reason(), condition.message()),
        (None, Some(_)) if !context.is_old(api) => return None,
        (None, Some(service)) => format!("{service} does not exist"),
    };
    let effect = if object::name(api) == PACKAGES_API {
        "PackageManifests cannot be read, and no namespace can be deleted"
    } else {
        "its kinds cannot be read, and no namespace can be deleted"
    };
    let message = format!("it does not respond ({reported}): {effect}");
    let problem = Problem::new(&STALE_API_SERVICE, api, message);
    let delete = Change::Delete(vec![ObjectRef::from_object(api)]);
    Some(match (context.lost_owner(api), missing) {
        (Some(owner), _) => problem.also([owner]).fix("delete it: its operator does not exist", delete),
        (None, Some(service)) => {
            problem.also([service]).propose("delete it, unless what served it is to be installed again", delete)
        }
        (None, None) if registration::is_own(api) => problem.propose(
            "delete it, unless the controllers that served it, kubectl olm run --packages, are to be started again",
            delete,
        ),
        (None, None) => {
            let [namespace, name] = ["namespace", "name"].map(|field| object::text(service, &[field]));
            problem.advise(format!("repair the pods of Service {name} in namespace {namespace}"))
        }
    })
}

fn webhook(context: &Context<'_>, configuration: &Value) -> Option<Problem> {
    let webhooks = object::list(configuration, &["webhooks"]);
    let service = |webhook: &Value| context.missing_service(object::at(webhook, &["clientConfig", "service"]));
    let missing: BTreeSet<ObjectRef> = webhooks.iter().filter_map(service).collect();
    let owner = context.lost_owner(configuration);
    if missing.is_empty() && owner.is_none() || !context.is_old(configuration) {
        return None;
    }
    let refuses = webhooks
        .iter()
        .any(|webhook| service(webhook).is_some() && object::text(webhook, &["failurePolicy"]) != "Ignore");
    let mut reasons: Vec<String> = missing
        .iter()
        .map(|service| format!("it calls Service {}/{}, which does not exist", service.namespace, service.name))
        .collect();
    reasons.extend(owner.iter().map(|owner| {
        format!("it belongs to ClusterServiceVersion {}/{}, which does not exist", owner.namespace, owner.name)
    }));
    if refuses {
        reasons.push("the API server refuses the requests that it concerns".to_owned());
    }
    let severity = if refuses { Severity::Error } else { Severity::Warning };
    let delete = Change::Delete(vec![ObjectRef::from_object(configuration)]);
    let problem = Problem::new(&DANGLING_WEBHOOK, configuration, reasons.join("; ")).severity(severity);
    Some(match owner {
        Some(owner) => problem.also(missing).also([owner]).fix("delete it", delete),
        None => problem.also(missing).propose("delete it, unless what it calls is to be installed again", delete),
    })
}

fn conversion(context: &Context<'_>, json: &Value) -> Option<Problem> {
    let crd = CustomResourceDefinition::new(json);
    if !crd.is_converted_by_webhook() {
        return None;
    }
    let service = object::at(json, &["spec", "conversion", "webhook", "clientConfig", "service"]);
    let missing = context.missing_service(service)?;
    // OLM creates the Service while it installs the ClusterServiceVersion.
    let mut owners = context.csvs().filter(|csv| csv.owned_crd_names().any(|name| name == crd.name()));
    let is_settled = |phase| matches!(phase, Phase::Succeeded | Phase::Failed);
    if owners.any(|csv| !is_settled(csv.phase()) && !context.lasts(csv.last_transition())) {
        return None;
    }
    let versions: Vec<&str> = crd.served().map(CrdVersion::name).collect();
    let message = format!(
        "its conversion webhook calls Service {}/{}, which does not exist: its objects cannot be converted between {}",
        missing.namespace,
        missing.name,
        listed(&versions)
    );
    let patch = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
    let change = Change::Patch(ObjectRef::from_object(json), patch);
    let what = "install the operator again, or set the conversion to None";
    Some(Problem::new(&DANGLING_CONVERSION, json, message).also([missing]).propose(what, change))
}
