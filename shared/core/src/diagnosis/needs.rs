//! What a diagnosis needs besides the objects that the state of operators is derived from. Most operators are healthy, so pods are read only
//! where Deployments or catalogs are not.

use std::collections::BTreeSet;

use serde_json::Value;

use super::csvs;
use crate::api::catalog_source::{CatalogSource, Origin};
use crate::api::kinds;
use crate::api::object::{self, ObjectRef};
use crate::api::subscription::Subscription;
use crate::csv;
use crate::health::workload::{Rollout, rollout};
use crate::membership;
use crate::world::{Reader, kind};

/// What has to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The namespaces whose pods are needed.
    pub pods: BTreeSet<String>,
    /// Single objects that are not listed otherwise, such as CatalogSources of other namespaces, Services and Secrets.
    pub objects: BTreeSet<ObjectRef>,
    /// Whether webhook configurations are needed.
    pub webhooks: bool,
}

impl Needs {
    /// Adds what another operator needs.
    pub fn extend(&mut self, other: Self) {
        self.pods.extend(other.pods);
        self.objects.extend(other.objects);
        self.webhooks |= other.webhooks;
    }

    /// Reports whether everything that the other needs is included.
    pub fn includes(&self, other: &Self) -> bool {
        other.pods.is_subset(&self.pods) && other.objects.is_subset(&self.objects) && self.webhooks >= other.webhooks
    }
}

/// Returns what the diagnosis of the operator of that name needs.
pub fn needs(world: &Reader<'_>, namespace: &str, name: &str) -> Needs {
    let mut needs = Needs::default();
    let subscription = world.json(&kind::SUBSCRIPTION, namespace, name).map(Subscription::new);
    if let Some(subscription) = subscription {
        let (of_catalog, catalog) = (subscription.source_namespace(), subscription.source());
        if !of_catalog.is_empty() && !catalog.is_empty() {
            needs.objects.insert(kinds::CATALOG_SOURCE.object(of_catalog, catalog));
        }
        if let Some(source) = world.json(&kind::CATALOG_SOURCE, of_catalog, catalog)
            && has_pod(CatalogSource::new(source))
        {
            needs.pods.insert(of_catalog.to_owned());
        }
    }
    needs.objects.insert(kinds::NAMESPACE.object("", namespace));
    for group in membership::groups(world, namespace) {
        if !group.service_account().is_empty() {
            needs.objects.insert(kinds::SERVICE_ACCOUNT.object(namespace, group.service_account()));
        }
    }
    for csv in csvs(world, namespace, name, subscription) {
        for description in csv.owned_api_services() {
            let text = |field| object::text(description, &[field]);
            needs.objects.insert(kinds::API_SERVICE.object("", &format!("{}.{}", text("version"), text("group"))));
        }
        let converted = csv.webhooks().iter().flat_map(|webhook| object::list(webhook, &["conversionCRDs"]));
        for crd in converted.filter_map(Value::as_str) {
            needs.objects.insert(kinds::CUSTOM_RESOURCE_DEFINITION.object("", crd));
        }
        for endpoint in csv::endpoints(csv.json) {
            needs.objects.insert(kinds::SERVICE.object(namespace, &endpoint.service));
            needs.objects.insert(kinds::SECRET.object(namespace, &endpoint.secret));
        }
        needs.webhooks |= !csv.webhooks().is_empty();
        let mut deployments = csv
            .deployments()
            .iter()
            .filter_map(|entry| world.json(&kind::DEPLOYMENT, namespace, object::text(entry, &["name"])));
        if deployments.any(|deployment| !matches!(rollout(deployment), Rollout::Complete | Rollout::ScaledToZero)) {
            needs.pods.insert(namespace.to_owned());
        }
    }
    needs
}

/// Reports whether a catalog that is not ready is served by a pod.
pub(super) fn has_pod(source: CatalogSource<'_>) -> bool {
    source.connection_state() != "READY"
        && matches!(Origin::from_source(source.json), Origin::Image(_) | Origin::ConfigMap(_))
}
