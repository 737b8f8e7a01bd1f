//! The container images that operators start or stop using.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::Images;
use super::simulated_plan::SimulatedPlan;
use crate::api::cluster_service_version::Csv;
use crate::api::object;

fn images_of(csv: &Value) -> BTreeSet<String> {
    let mut images = BTreeSet::new();
    for deployment in Csv::new(csv).deployments() {
        let pod = object::at(deployment, &["spec", "template", "spec"]);
        for part in ["initContainers", "containers"] {
            images.extend(object::list(pod, &[part]).iter().map(|c| object::text(c, &["image"]).to_owned()));
        }
    }
    images.extend(Csv::new(csv).related_images().iter().map(|i| object::text(i, &["image"]).to_owned()));
    images.remove("");
    images
}

/// Returns the changes of the operators' images, including their `relatedImages`.
pub(super) fn changes(simulated: &SimulatedPlan) -> Images {
    let (mut new, mut old) = (BTreeSet::new(), BTreeSet::new());
    for (after, before) in simulated.operators() {
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
