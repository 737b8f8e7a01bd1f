//! Catalogs that are directories on the machine that runs the controllers: the cluster has no CatalogSource for them.
//!
//! A condition of the Subscriptions to such a catalog records it. Controllers that are not given the directory do not
//! change such Subscriptions, because OLM's message about a missing catalog would be wrong. OLM preserves conditions that
//! it does not know.

use serde_json::Value;

use crate::api::subscription::Subscription;
use crate::visible::word;

/// The condition's type.
pub(super) use crate::api::subscription::condition_type::CATALOG_DIRECTORY as CONDITION;

/// Returns whether a Subscription records that its current catalog is a directory.
pub(super) fn is_noted(subscription: &Value) -> bool {
    let view = Subscription::new(subscription);
    let message = message(view.source_namespace(), view.source());
    view.conditions().iter().any(|c| c.of_type() == CONDITION && c.message() == message)
}

/// Returns the message of the condition for that catalog.
pub(super) fn message(namespace: &str, name: &str) -> String {
    let catalog = format!("{name}.{namespace}=DIR");
    format!("catalog {namespace}/{name} is a directory: kubectl olm run --catalog {}", word(&catalog))
}
