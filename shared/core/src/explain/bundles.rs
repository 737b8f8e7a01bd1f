//! The bundles of a plan, and where their manifests are.

use std::collections::BTreeSet;

use super::cluster_copy::ClusterCopy;
use super::document::Bundle;
use super::simulated_plan::{CSV, SimulatedPlan};
use crate::api::install_plan::{self, Step};
use crate::api::object;
use crate::bundle::reference;
use crate::catalog::Snapshot;
use crate::installplan;
use crate::plan::{Controller, Reason};

/// Returns the bundles of the plan, and those that it waits for.
pub(super) fn contents(simulated: &SimulatedPlan, copy: &ClusterCopy) -> Vec<Bundle> {
    let lookups = install_plan::InstallPlan::new(&simulated.plan).bundle_lookups();
    let config_map =
        |namespace: &str, name: &str| simulated.before.api().find("", "ConfigMap", namespace, name).cloned();
    let of_image = |image: &str| copy.contents.get(image).cloned();
    let mut digests = installplan::contents(config_map, of_image, &simulated.plan);
    let mut bundles: Vec<Bundle> = Vec::new();
    for step in simulated.steps().iter().filter(|s| Step::new(s).kind() == CSV) {
        let csv = Step::new(step).resolving();
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
    let unmade: BTreeSet<&str> = reference::unmade(simulated.done()).into_keys().collect();
    let plan = simulated.reasons(Controller::InstallPlan, object::name(&simulated.plan));
    let resolution = simulated.reasons(Controller::Resolution, &simulated.namespace);
    for reason in plan.iter().chain(resolution) {
        let (Reason::BundleUnpacking { bundle, image, message }
        | Reason::BundleUnpackFailed { bundle, image, message }
        | Reason::BundleNotProvided { bundle, image, needs: message }) = reason
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
                catalog: offering(copy, bundle, image),
                image: image.clone(),
                message: message.clone(),
                digest: None,
                unpacked: false,
            }),
        }
    }
    bundles
}

/// Returns the catalog, `namespace/name`, that has a bundle with that image; empty if unknown.
fn offering(copy: &ClusterCopy, csv: &str, image: &str) -> String {
    let offers = |snapshot: &Snapshot| snapshot.entries().any(|e| e.name == csv && e.bundle_path == image);
    let found = copy.catalogs.iter().find(|(_, snapshot)| offers(snapshot));
    found.map(|((namespace, name), _)| format!("{namespace}/{name}")).unwrap_or_default()
}
