//! Manifests that an InstallPlan only references: they are read from the ConfigMap that an unpack Job has created, or from the image of
//! their bundle (olm-behaviour/subscription.md#unpacked-bundles).

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::install_plan::{self, Step, is_approved_content};
use crate::api::object;
use crate::bundle::BundleContent;
use crate::bundle::reference::{self, Lookup};
use crate::bundle::steps::{self, BundleSource};
use crate::plan::{Plan, Reason};
use crate::settings::Settings;
use crate::unpack::{Images, Pending, Timeouts};
use crate::world::{Reader, kind};

/// Returns the InstallPlan with all manifests inserted; or the plan that obtains them.
pub(super) fn whole<'p>(
    settings: &Settings,
    world: &Reader<'_>,
    plan: &'p Value,
    now: Timestamp,
) -> Result<Cow<'p, Value>, Plan> {
    let unmade = reference::unmade(plan);
    if unmade.is_empty() {
        return Ok(Cow::Borrowed(plan));
    }
    let namespace = object::namespace(plan);
    let group = world.in_namespace(&kind::OPERATOR_GROUP, namespace).next().map(|o| o.json());
    let images = Images { world, settings, timeouts: Timeouts::read(settings, group).0, now };
    let mut whole = plan.clone();
    let mut waits = Plan::nothing();
    for (csv, lookup) in unmade {
        let made = match &lookup {
            // An existing ConfigMap is used even if its Job does not exist any longer.
            Some(lookup) if let Some((made, content)) = unpacked(world, plan, csv, lookup) => {
                is_approved(plan, csv, lookup, &content).map(|()| made)
            }
            Some(lookup) => match manifests(&images, namespace, csv, lookup) {
                Ok((made, content)) => is_approved(plan, csv, lookup, &content).map(|()| made),
                Err(pending) => Err(wait(*pending)),
            },
            None => Err(missing(plan, &format!("an entry for {csv} in its bundleLookups"))),
        };
        match made {
            Ok(made) => {
                if let Err(what) = fill(&mut whole, csv, &made) {
                    waits.reasons.extend(missing(plan, &what).reasons);
                }
            }
            Err(Plan { actions, reasons, again, .. }) => {
                waits.actions.extend(actions);
                waits.reasons.extend(reasons);
                waits.again = waits.again.into_iter().chain(again).min();
            }
        }
    }
    if waits == Plan::nothing() { Ok(Cow::Owned(whole)) } else { Err(waits) }
}

/// Checks that the content is what was approved. A tag may have been moved since.
fn is_approved(plan: &Value, csv: &str, lookup: &Lookup<'_>, content: &BundleContent) -> Result<(), Plan> {
    let digest = content.digest();
    is_approved_content(plan, csv, &digest).map_err(|approved| {
        let approved = if approved.is_empty() { "unreadable" } else { &approved };
        let name = object::name(plan);
        let message = format!(
            "the digest of its content is {digest}, but the approved digest is {approved}: delete InstallPlan {name}, then explain and \
             approve the one that replaces it"
        );
        let (bundle, image) = (csv.to_owned(), lookup.image.image.clone());
        Plan::wait(Reason::BundleUnpackFailed { bundle, image, message })
    })
}

/// Returns the content digests of the bundles whose manifests a plan only references, by ClusterServiceVersion. The content is read from
/// ConfigMaps; `of_image` returns the digest of an image's content otherwise.
pub fn contents(
    config_map: impl Fn(&str, &str) -> Option<Value>,
    of_image: impl Fn(&str) -> Option<String>,
    plan: &Value,
) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for (csv, lookup) in reference::unmade(plan) {
        let Some(lookup) = lookup else { continue };
        let kept = place(plan, csv, &lookup).and_then(|(namespace, name)| config_map(&namespace, &name));
        let kept = kept.and_then(|config_map| reference::content(&config_map).ok()).map(|content| content.digest());
        contents.extend(kept.or_else(|| of_image(&lookup.image.image)).map(|digest| (csv.to_owned(), digest)));
    }
    contents
}

/// Restores the references in steps before they are written to the status.
pub(super) fn refer(plan: &Value, steps: &mut [Value]) {
    for (step, known) in steps.iter_mut().zip(install_plan::InstallPlan::new(plan).steps_json()) {
        if reference::is_reference(Step::new(known).manifest()) {
            step["resource"]["manifest"] = known["resource"]["manifest"].clone();
        }
    }
}

/// Returns the steps of a bundle from the ConfigMap that their manifests reference; `None` if it does not exist, or has other content.
fn unpacked(world: &Reader<'_>, plan: &Value, csv: &str, lookup: &Lookup<'_>) -> Option<(Vec<Value>, BundleContent)> {
    let (namespace, name) = place(plan, csv, lookup)?;
    let config_map = world.json(&kind::CONFIG_MAP, &namespace, &name)?;
    let content = reference::content(config_map).ok()?;
    let Lookup { image, replaces, properties } = lookup;
    let source = BundleSource { catalog: &image.catalog, catalog_namespace: &image.catalog_namespace, csv, replaces };
    let steps = steps::of_content(&source, object::namespace(plan), &content, properties).ok()?;
    Some((steps, content))
}

/// Returns namespace and name of the ConfigMap that the steps of a bundle reference.
fn place(plan: &Value, csv: &str, lookup: &Lookup<'_>) -> Option<(String, String)> {
    let steps = install_plan::InstallPlan::new(plan).steps_json().iter();
    let mut manifests = steps.filter(|step| Step::new(step).resolving() == csv).map(|step| Step::new(step).manifest());
    let (namespace, name) = manifests.find_map(reference::config_map)?;
    // Only ConfigMaps of the bundle's own catalog are accepted, because a plan may be written by an untrusted user.
    let is_its = namespace == lookup.image.catalog_namespace && name == reference::config_map_name(&lookup.image.image);
    is_its.then_some((namespace, name))
}

/// Returns the steps of a bundle with their manifests, from its image.
fn manifests(
    images: &Images<'_, '_>,
    namespace: &str,
    csv: &str,
    Lookup { image, replaces, properties }: &Lookup<'_>,
) -> Result<(Vec<Value>, BundleContent), Box<Pending>> {
    let content = images.content(csv, image)?;
    let source = BundleSource { catalog: &image.catalog, catalog_namespace: &image.catalog_namespace, csv, replaces };
    let steps = steps::of_content(&source, namespace, &content, properties);
    match steps {
        Ok(steps) => Ok((steps, content)),
        Err(message) => Err(images.broken(csv, image, message)),
    }
}

/// Replaces references by the manifests of a bundle. The error names an object that is missing in the image.
fn fill(plan: &mut Value, csv: &str, made: &[Value]) -> Result<(), String> {
    let same = |a: &Value, b: &Value| {
        ["group", "version", "kind", "name"].iter().all(|key| a["resource"][*key] == b["resource"][*key])
    };
    for step in plan["status"]["plan"].as_array_mut().into_iter().flatten() {
        let manifest = Step::new(step).manifest();
        if Step::new(step).resolving() != csv || !reference::is_reference(manifest) {
            continue;
        }
        let Some(found) = made.iter().find(|made| same(made, step)) else {
            let resource = |key| object::text(step, &["resource", key]);
            return Err(format!("{} {} in the image of {csv}", resource("kind"), resource("name")));
        };
        step["resource"]["manifest"] = found["resource"]["manifest"].clone();
    }
    Ok(())
}

fn wait(pending: Pending) -> Plan {
    Plan { reasons: vec![pending.reason(None)], actions: pending.actions, again: pending.again, ..Plan::nothing() }
}

fn missing(plan: &Value, needs: &str) -> Plan {
    let object = format!("InstallPlan {}/{}", object::namespace(plan), object::name(plan));
    Plan::wait(Reason::Missing { object, needs: needs.to_owned() })
}
