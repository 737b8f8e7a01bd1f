//! Smaller parts of an explanation: images, webhooks, optional objects, bundles, deprecations, and what does not come back.

use std::collections::BTreeSet;

use serde_json::Value;

use super::copy::{Explainer, OLM};
use super::trial::Trial;
use super::{
    Bundle, By, Change, CsvChange, Deprecation, Explanation, Images, Irreversible, Object, Optional, Webhook, csvs,
};
use crate::api::labels;
use crate::api::object;
use crate::bundle::reference;
use crate::catalog::Snapshot;
use crate::installplan::{self, kind_made};
use crate::plan::{Controller, Reason};

const CSV: &str = "ClusterServiceVersion";

/// The ClusterServiceVersions that the plan brings, and those whose place they take.
pub(super) fn operators(trial: &Trial) -> Vec<(Value, Option<&Value>)> {
    let find = |name: &str| trial.before.api().find(OLM, CSV, &trial.namespace, name);
    let steps = trial.steps().iter().filter(|s| object::text(s, &["resource", "kind"]) == CSV);
    let pairs = steps.filter_map(|step| {
        let name = object::text(step, &["resource", "name"]);
        let made = trial.after.api().find(OLM, CSV, &trial.namespace, name).cloned();
        let new = made.or_else(|| csvs::manifest(step))?;
        let old = find(object::text(&new, &["spec", "replaces"])).or_else(|| find(name));
        Some((new, old))
    });
    pairs.collect()
}

fn images_of(csv: &Value) -> BTreeSet<String> {
    let mut images = BTreeSet::new();
    for deployment in object::list(csv, &["spec", "install", "spec", "deployments"]) {
        let pod = object::at(deployment, &["spec", "template", "spec"]);
        for part in ["initContainers", "containers"] {
            images.extend(object::list(pod, &[part]).iter().map(|c| object::text(c, &["image"]).to_owned()));
        }
    }
    images.extend(object::list(csv, &["spec", "relatedImages"]).iter().map(|i| object::text(i, &["image"]).to_owned()));
    images.remove("");
    images
}

/// The images of the operators, and those that they name as what they may run.
pub(super) fn images(trial: &Trial) -> Images {
    let (mut new, mut old) = (BTreeSet::new(), BTreeSet::new());
    for (after, before) in operators(trial) {
        new.extend(images_of(&after));
        old.extend(before.map(images_of).unwrap_or_default());
    }
    let added: Vec<String> = new.difference(&old).cloned().collect();
    Images {
        by_tag: added.iter().filter(|image| !image.contains('@')).cloned().collect(),
        removed: old.difference(&new).cloned().collect(),
        added,
    }
}

/// The webhooks of the operators.
pub(super) fn webhooks(trial: &Trial) -> Vec<Webhook> {
    let mut webhooks = Vec::new();
    for (after, before) in operators(trial) {
        let of = |csv: &Value| object::list(csv, &["spec", "webhookdefinitions"]).to_vec();
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

/// The steps that are marked optional.
pub(super) fn optional(trial: &Trial, objects: &[Object]) -> Vec<Optional> {
    let marked = trial.steps().iter().filter(|s| object::at(s, &["optional"]) == &Value::Bool(true));
    let told = marked.map(|step| {
        let (gvk, name) = (kind_made(step), object::text(step, &["resource", "name"]));
        let found = objects.iter().find(|o| o.gvk == gvk && o.name == name);
        Optional {
            gvk,
            name: name.to_owned(),
            csv: object::text(step, &["resolving"]).to_owned(),
            skipped: found.is_some_and(|o| o.change == Change::Skipped),
            message: found.map(|o| o.message.clone()).unwrap_or_default(),
        }
    });
    told.collect()
}

/// Where the manifests of the plan's bundles are, and of those that it waits for.
pub(super) fn bundles(trial: &Trial, explainer: &Explainer) -> Vec<Bundle> {
    let lookups = object::list(&trial.plan, &["status", "bundleLookups"]);
    let config_map = |namespace: &str, name: &str| trial.before.api().find("", "ConfigMap", namespace, name).cloned();
    let of_image = |image: &str| explainer.contents.get(image).cloned();
    let mut digests = installplan::contents(config_map, of_image, &trial.plan);
    let mut bundles: Vec<Bundle> = Vec::new();
    for step in trial.steps().iter().filter(|s| object::text(s, &["resource", "kind"]) == CSV) {
        let csv = object::text(step, &["resolving"]);
        let lookup = lookups.iter().find(|l| object::text(l, &["identifier"]) == csv);
        let source = |key| object::text(step, &["resource", key]);
        bundles.push(Bundle {
            csv: csv.to_owned(),
            image: lookup.map_or("", |l| object::text(l, &["path"])).to_owned(),
            digest: digests.remove(csv),
            catalog: format!("{}/{}", source("sourceNamespace"), source("sourceName")),
            unpacked: true,
            message: String::new(),
        });
    }
    let unmade: BTreeSet<&str> = reference::unmade(trial.done()).into_keys().collect();
    let plan = trial.reasons(Controller::InstallPlan, object::name(&trial.plan));
    let resolution = trial.reasons(Controller::Resolution, &trial.namespace);
    for reason in plan.iter().chain(resolution) {
        let (Reason::BundleUnpacking { bundle, image, message }
        | Reason::BundleUnpackFailed { bundle, image, message }
        | Reason::BundleNotGiven { bundle, image, needs: message }) = reason
        else {
            continue;
        };
        match bundles.iter_mut().find(|known| known.csv == *bundle) {
            Some(known) if unmade.contains(bundle.as_str()) => {
                known.unpacked = false;
                message.clone_into(&mut known.message);
            }
            Some(_) => {}
            None => bundles.push(Bundle {
                csv: bundle.clone(),
                catalog: offering(explainer, bundle, image),
                image: image.clone(),
                message: message.clone(),
                digest: None,
                unpacked: false,
            }),
        }
    }
    bundles
}

/// The catalog, `namespace/name`, that has a bundle with that image; empty when none is known.
fn offering(explainer: &Explainer, csv: &str, image: &str) -> String {
    let offers = |snapshot: &Snapshot| snapshot.entries().any(|e| e.name == csv && e.bundle_path == image);
    let found = explainer.catalogs.iter().find(|(_, snapshot)| offers(snapshot));
    found.map(|((namespace, name), _)| format!("{namespace}/{name}")).unwrap_or_default()
}

/// What catalogs say is deprecated of what is chosen.
pub(super) fn deprecations(trial: &Trial, explainer: &Explainer) -> Vec<Deprecation> {
    let mut deprecations = Vec::new();
    for csv in trial.csv_names() {
        for name in trial.subscriptions_of(csv) {
            let Some(subscription) = trial.subscriptions().find(|s| object::name(s) == name) else { continue };
            let spec = |key| object::text(subscription, &["spec", key]);
            let source = (spec("sourceNamespace").to_owned(), spec("source").to_owned());
            let Some(package) = explainer.catalogs.get(&source).and_then(|s| s.package(spec("name"))) else { continue };
            let channel = match spec("channel") {
                "" => package.default_channel.as_str(),
                channel => channel,
            };
            let entry = package.channel(channel).and_then(|c| c.entry(csv));
            let said = [
                ("package", package.name.as_str(), package.deprecation.as_ref()),
                ("channel", channel, package.channel(channel).and_then(|c| c.deprecation.as_ref())),
                ("bundle", csv, entry.and_then(|e| e.deprecation.as_ref())),
            ];
            deprecations.extend(said.into_iter().filter_map(|(what, of, message)| {
                Some(Deprecation {
                    what: what.to_owned(),
                    name: of.to_owned(),
                    subscription: name.clone(),
                    message: message?.clone(),
                })
            }));
        }
    }
    deprecations
}

/// What does not come back when the operator is deleted, or its older version wanted.
pub(super) fn irreversible(trial: &Trial, explanation: &Explanation) -> Vec<Irreversible> {
    let mut all = Vec::new();
    let mut add = |object: String, message: String| all.push(Irreversible { object, message });
    for csv in explanation.csvs.iter().filter(|csv| matches!(csv.change, CsvChange::Upgrade | CsvChange::Downgrade)) {
        let old = csv.replaces.as_deref().unwrap_or_default();
        add(format!("{CSV} {}", csv.name), format!("has no way back to {old} by OLM"));
    }
    let is_reached = |name: &str| {
        let found = explanation.objects.iter().find(|o| o.gvk.kind == "CustomResourceDefinition" && o.name == name);
        found.is_some_and(|o| matches!(o.change, Change::Create | Change::Update))
    };
    for crd in explanation.crds.iter().filter(|crd| is_reached(&crd.name)) {
        let object = format!("CustomResourceDefinition {}", crd.name);
        match (&crd.change, &crd.storage) {
            (Change::Create, _) => {
                add(object, "stays when the operator is deleted, with its custom resources".to_owned());
            }
            (_, Some((_, new))) => {
                add(object, format!("stores what is written from then on in version {new}, unknown to the one before"));
            }
            (_, None) if !crd.removed_versions.is_empty() => {
                let versions = crd.removed_versions.join(", ");
                add(object, format!("is not served in version {versions} any more"));
            }
            _ => {}
        }
    }
    for object in &explanation.objects {
        let is_crd = object.gvk.kind == "CustomResourceDefinition";
        if object.change == Change::Create && object.by == By::Step && !is_crd && stays(trial, object) {
            let message = "stays when the operator is deleted, for nothing owns it".to_owned();
            add(format!("{} {}", object.gvk.kind, object.name), message);
        }
    }
    all
}

/// Does nobody delete the object with its operator?
fn stays(trial: &Trial, Object { gvk, namespace, name, .. }: &Object) -> bool {
    if matches!(gvk.kind.as_str(), CSV | "Subscription") {
        return false;
    }
    let made = trial.after.api().find(&gvk.group, &gvk.kind, namespace, name);
    made.is_some_and(|o| {
        object::list(o, &["metadata", "ownerReferences"]).is_empty() && object::label(o, labels::OWNER).is_none()
    })
}
