//! Catalogs that are directories on the machine of whoever runs the controllers: the cluster has no CatalogSource for them.
//!
//! A condition of the Subscriptions that take from one says so. Controllers that are not given the directory leave such Subscriptions
//! as they are, where OLM's sentence about a catalog that does not exist would be wrong. OLM keeps conditions that it does not know.

use serde_json::Value;

use crate::api::subscription::Subscription;
use crate::visible::word;

/// The condition's type.
pub(super) const CONDITION: &str = "CatalogDirectory";

/// Does a Subscription say that the catalog which it names now is a directory?
pub(super) fn is_noted(subscription: &Value) -> bool {
    let view = Subscription::of(subscription);
    let message = message(view.source_namespace(), view.source());
    view.conditions().iter().any(|c| c.of_type() == CONDITION && c.message() == message)
}

/// What the condition says of that catalog.
pub(super) fn message(namespace: &str, name: &str) -> String {
    let catalog = format!("{name}.{namespace}=DIR");
    format!("catalog {namespace}/{name} is a directory: kubectl olm run --catalog {}", word(&catalog))
}
