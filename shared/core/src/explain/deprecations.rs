//! Deprecations in catalogs.

use super::cluster_copy::ClusterCopy;
use super::document::Deprecation;
use super::simulated_plan::SimulatedPlan;
use crate::api::object;

/// Returns the deprecated packages, channels and bundles among those that were chosen.
pub(super) fn of_chosen(simulated: &SimulatedPlan, copy: &ClusterCopy) -> Vec<Deprecation> {
    let mut deprecations = Vec::new();
    for csv in simulated.csv_names() {
        for name in simulated.subscriptions_of(csv) {
            let Some(subscription) = simulated.subscriptions().find(|s| object::name(s) == name) else { continue };
            let spec = |key| object::text(subscription, &["spec", key]);
            let source = (spec("sourceNamespace").to_owned(), spec("source").to_owned());
            let Some(package) = copy.catalogs.get(&source).and_then(|s| s.package(spec("name"))) else { continue };
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
