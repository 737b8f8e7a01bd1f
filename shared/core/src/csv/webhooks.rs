//! Webhooks that the API server calls: their descriptions, configurations, and conversions of CustomResourceDefinitions
//! (olm-behaviour/csv.md#webhooks).
//!
//! ```text
//!   spec.webhookdefinitions
//!     Validating-, MutatingAdmissionWebhook -> a configuration each, found by labels: its name is generated
//!     ConversionWebhook                     -> spec.conversion of the CustomResourceDefinitions it names
//! ```

use serde_json::{Value, json};

use super::overlay::overlay;
use super::serving::{self, Server};
use super::siblings;
use crate::api::cluster_service_version::{Csv, InstallMode, WEBHOOK_FIELDS, invalid_webhook_rule};
use crate::api::go_json::GoType;
use crate::api::object::{self, ObjectRef};
use crate::api::{hash, labels};
use crate::membership;
use crate::plan::{Action, Propagation};
use crate::world::{IndexKey, Reader, kind};

/// Label of a configuration: the name of its description.
pub const GENERATE_NAME: &str = "olm.webhook-description-generate-name";
/// Label of a configuration: the hash of its description.
const HASH: &str = "olm.webhook-description-hash";

fn name(description: &Value) -> &str {
    object::text(description, &["generateName"])
}

fn is_conversion(description: &Value) -> bool {
    object::text(description, &["type"]) == "ConversionWebhook"
}

fn configurations(csv: Csv<'_>) -> impl Iterator<Item = &Value> {
    csv.webhooks().iter().filter(|d| !is_conversion(d))
}

fn conversions(csv: Csv<'_>) -> impl Iterator<Item = (&Value, &str)> {
    let crds = |d| object::list(d, &["conversionCRDs"]).iter().filter_map(Value::as_str).map(move |crd| (d, crd));
    csv.webhooks().iter().filter(|d| is_conversion(d)).flat_map(crds)
}

/// Returns the names of the CustomResourceDefinitions whose objects are converted.
pub(super) fn converted(csv: Csv<'_>) -> impl Iterator<Item = &str> {
    conversions(csv).map(|(_, crd)| crd)
}

/// Returns what OLM rejects in descriptions, in its words.
pub(super) fn invalid(csv: Csv<'_>) -> Option<&'static str> {
    let webhooks = csv.webhooks();
    if webhooks.iter().enumerate().any(|(n, d)| webhooks[..n].iter().any(|other| name(other) == name(d))) {
        return Some("CSV contains repeated WebhookDescription name");
    }
    webhooks.iter().flat_map(|d| object::list(d, &["rules"])).find_map(invalid_webhook_rule)
}

/// Returns why the webhooks cannot be installed, independent of retries.
pub(super) fn invalid_reason(world: &Reader<'_>, csv: Csv<'_>) -> Option<String> {
    let missing = |d: &&Value| Server::named(csv, d).is_none();
    if let Some(description) = csv.webhooks().iter().find(missing) {
        let deployment = object::text(description, &["deploymentName"]);
        return Some(format!(
            "strategyDetailsDeployment is missing deployment {deployment} for webhook {}",
            name(description)
        ));
    }
    let conversion = csv.webhooks().iter().find(|d| is_conversion(d))?;
    let elsewhere = Csv::new(csv.json).install_modes().iter().any(|mode| {
        let supported = object::at(mode, &["supported"]).as_bool().unwrap_or_default();
        supported != (object::text(mode, &["type"]) == InstallMode::AllNamespaces.as_str())
    });
    if elsewhere {
        let message =
            "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces";
        return Some(message.to_owned());
    }
    if object::list(conversion, &["conversionCRDs"]).is_empty() {
        let message = "unable to manager conversion webhook: conversion webhook must have at least one CRD specified";
        return Some(message.to_owned());
    }
    conversions(csv).find_map(|(_, name)| {
        if !csv.owned_crd_names().any(|owned| owned == name) {
            return Some(format!("csv {} does not own CRD {name}", csv.name()));
        }
        let crd = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name)?;
        let loose = object::at(crd, &["spec", "preserveUnknownFields"]).as_bool().unwrap_or_default();
        let message =
            "crd.Spec.PreserveUnknownFields must be false to let API Server call webhook to do the conversion";
        loose.then(|| message.to_owned())
    })
}

/// Returns the configurations of a ClusterServiceVersion, by name.
fn owned<'w>(world: &Reader<'w>, csv: Csv<'_>) -> Vec<&'w Value> {
    let ours = world.indexed(IndexKey::OwnerLabels {
        kind: "ClusterServiceVersion".to_owned(),
        namespace: csv.namespace().to_owned(),
        name: csv.name().to_owned(),
    });
    ours.iter().map(|o| o.json()).filter(|o| object::kind(o).ends_with("WebhookConfiguration")).collect()
}

fn kind_of(description: &Value) -> &'static str {
    match object::text(description, &["type"]) {
        "MutatingAdmissionWebhook" => "MutatingWebhookConfiguration",
        _ => "ValidatingWebhookConfiguration",
    }
}

fn is_of(configuration: &Value, description: &Value) -> bool {
    object::kind(configuration) == kind_of(description)
        && object::label(configuration, GENERATE_NAME) == Some(name(description))
}

/// Returns the writes that remove configurations that are no longer declared, and duplicates.
pub(super) fn surplus(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let owned = owned(world, csv);
    let first_of = |d| owned.iter().find(|o| is_of(o, d)).map(|o| object::uid(o));
    let kept: Vec<&str> = configurations(csv).filter_map(first_of).collect();
    owned
        .iter()
        .filter(|o| !kept.contains(&object::uid(o)) && !object::is_deleting(o))
        .map(|o| Action::delete(o, Propagation::Background))
        .collect()
}

/// Returns the selector for the namespaces that the OperatorGroup targets.
fn namespace_selector(world: &Reader<'_>, csv: Csv<'_>) -> Value {
    let groups = membership::groups(world, csv.namespace());
    let Some(group) = groups.first() else { return json!({}) };
    if group.target_namespaces().next().is_some() {
        let label = format!("olm.operatorgroup.uid/{}", object::uid(group.json));
        return json!({ "matchLabels": { label: "" } });
    }
    match group.selector() {
        Value::Null => json!({}),
        selector => selector.clone(),
    }
}

fn service(csv: Csv<'_>, server: Server<'_>, description: &Value, default_path: Option<&str>) -> Value {
    let mut service = json!({
        "namespace": csv.namespace(), "name": server.service(), "port": serving::port(description),
    });
    if let Some(path) = object::at(description, &["webhookPath"]).as_str().or(default_path) {
        service["path"] = path.into();
    }
    service
}

/// Returns the configuration for a description; `None` as long as its server has no certificate.
fn desired(world: &Reader<'_>, csv: Csv<'_>, description: &Value) -> Option<Value> {
    let server = Server::named(csv, description)?;
    let pair = server.pair(world)?;
    let kind = kind_of(description);
    let mut webhook = json!({
        "name": name(description),
        "clientConfig": { "service": service(csv, server, description, None), "caBundle": pair.bundle },
        "namespaceSelector": namespace_selector(world, csv),
        "objectSelector": {},
    });
    for field in WEBHOOK_FIELDS {
        let value = object::at(description, &[field]);
        if !value.is_null() && (field != "reinvocationPolicy" || kind == "MutatingWebhookConfiguration") {
            webhook[field] = value.clone();
        }
    }
    let mut configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {
            "generateName": format!("{}-", name(description)),
            "labels": {
                labels::MANAGED: "true",
                GENERATE_NAME: name(description),
                HASH: hash::deep_hash(GoType::WEBHOOK_DESCRIPTION, description),
            },
        },
        "webhooks": [webhook],
    });
    labels::set_owner(&mut configuration, csv.json);
    Some(configuration)
}

/// Returns `spec.conversion` for a description, as a merge patch; `None` as long as its server has no certificate.
fn conversion(world: &Reader<'_>, csv: Csv<'_>, description: &Value) -> Option<Value> {
    let server = Server::named(csv, description)?;
    let pair = server.pair(world)?;
    Some(json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": { "service": service(csv, server, description, Some("/")), "caBundle": pair.bundle },
            "conversionReviewVersions": object::at(description, &["admissionReviewVersions"]),
        },
    }))
}

/// Returns the writes that create or update all webhooks.
pub(super) fn install(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let mut actions = surplus(world, csv);
    let owned = owned(world, csv);
    for description in configurations(csv) {
        let Some(wanted) = desired(world, csv, description) else { continue };
        let live = owned.iter().find(|o| is_of(o, description)).copied();
        let is_old = |live: &Value| object::label(live, HASH) != object::label(&wanted, HASH);
        actions.extend(match live {
            // Fields that the description no longer contains must be removed.
            Some(live) if is_old(live) => {
                let mut bare = live.clone();
                bare["webhooks"] = json!([]);
                overlay(Some(&bare), wanted)
            }
            live => overlay(live, wanted),
        });
    }
    for (description, crd) in conversions(csv) {
        let (Some(live), Some(wanted)) =
            (world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", crd), conversion(world, csv, description))
        else {
            continue;
        };
        if !object::covers(object::at(live, &["spec", "conversion"]), &wanted) {
            let mut wanted = wanted;
            // A previous conversion may have had a URL.
            wanted["webhook"]["clientConfig"]["url"] = Value::Null;
            actions.push(convert(live, wanted));
        }
    }
    actions
}

fn convert(crd: &Value, conversion: Value) -> Action {
    Action::Patch {
        target: ObjectRef::from_object(crd),
        uid: object::uid(crd).to_owned(),
        patch: json!({ "spec": { "conversion": conversion } }),
    }
}

/// Why webhooks are not as desired.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A configuration is missing or outdated.
    Missing,
    /// Another part has to be installed again.
    Failed(String),
}

/// Checks that all webhooks exist, match their descriptions, and trust the certificates. Other changes by an administrator,
/// such as to resolve an outage, are preserved until the next install.
pub(super) fn check(world: &Reader<'_>, csv: Csv<'_>) -> Result<(), Broken> {
    for description in csv.webhooks() {
        let problems = Server::named(csv, description).map_or_else(Vec::new, |server| server.problems(world));
        if let Some(problem) = problems.into_iter().next() {
            return Err(Broken::Failed(problem));
        }
    }
    let owned = owned(world, csv);
    for description in configurations(csv) {
        let Some(wanted) = desired(world, csv, description) else { return Err(Broken::Missing) };
        let client = |configuration: &Value| configuration["webhooks"][0]["clientConfig"].clone();
        let is_it = |live: &&&Value| {
            is_of(live, description)
                && object::label(live, HASH) == object::label(&wanted, HASH)
                && object::covers(&client(live), &client(&wanted))
                && !object::is_deleting(live)
        };
        owned.iter().find(is_it).ok_or(Broken::Missing)?;
    }
    for (description, crd) in conversions(csv) {
        let live = world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", crd);
        let converts = live
            .zip(conversion(world, csv, description))
            .is_some_and(|(live, wanted)| object::covers(object::at(live, &["spec", "conversion"]), &wanted));
        if !converts {
            return Err(Broken::Failed("conversionWebhook not ready".to_owned()));
        }
    }
    Ok(())
}

/// Returns the writes that disable conversion when the converting ClusterServiceVersion is deleted, unless another one has
/// taken over. Otherwise the custom resources could not even be deleted.
pub(super) fn disable_conversion(world: &Reader<'_>, csv: Csv<'_>) -> Vec<Action> {
    let replacements = siblings::replacements(world, csv);
    let is_taken_over = |crd: &str| replacements.iter().any(|new| conversions(*new).any(|(_, name)| name == crd));
    let is_ours = |description: &Value, crd: &Value| {
        let path = ["spec", "conversion", "webhook", "clientConfig", "service"];
        let server = Server::named(csv, description);
        object::text(object::at(crd, &path), &["namespace"]) == csv.namespace()
            && server.is_some_and(|s| object::text(object::at(crd, &path), &["name"]) == s.service())
    };
    conversions(csv)
        .filter(|(_, name)| !is_taken_over(name))
        .filter_map(|(d, name)| Some((d, world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name)?)))
        .filter(|(d, crd)| is_ours(d, crd) && !object::is_deleting(crd))
        .map(|(_, crd)| convert(crd, json!({ "strategy": "None", "webhook": null })))
        .collect()
}
