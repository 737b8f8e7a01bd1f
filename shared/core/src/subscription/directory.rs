//! Catalogs that are directories on the machine of whoever runs the controllers: the cluster has no CatalogSource for them.
//!
//! A condition of the Subscriptions that take from one says so. Controllers that are not given the directory leave such Subscriptions
//! as they are, where OLM's sentence about a catalog that does not exist would be wrong. OLM keeps conditions that it does not know.

use serde_json::Value;

use super::conditions::{condition, remove, set};
use super::offer::Source;
use super::status::Subscription;
use crate::api::object;

/// The condition's type.
const DIRECTORY: &str = "CatalogDirectory";

/// Does a Subscription say that the catalog which it names now is a directory?
pub(super) fn is_noted(subscription: &Value) -> bool {
    let [name, namespace] = ["source", "sourceNamespace"].map(|key| object::text(subscription, &["spec", key]));
    object::list(subscription, &["status", "conditions"])
        .iter()
        .any(|c| object::text(c, &["type"]) == DIRECTORY && object::text(c, &["message"]) == message(namespace, name))
}

fn message(namespace: &str, name: &str) -> String {
    format!("catalog {namespace}/{name} is a directory: kubectl olm run --catalog {name}.{namespace}=DIR")
}

/// Notes whether the catalog of a Subscription is a directory. Of a catalog that is not here nothing new is known.
pub(super) fn note(subscription: &mut Subscription<'_>, sources: &[Source<'_>], now: jiff::Timestamp) {
    let (name, namespace) = (subscription.spec("source"), subscription.spec("sourceNamespace"));
    let source = sources.iter().find(|s| (s.name, s.namespace) == (name, namespace));
    match source {
        Some(Source { object: Some(_), .. }) => remove(&mut subscription.status, &[DIRECTORY]),
        Some(source) if source.is_local() => {
            let noted = condition(DIRECTORY, true, "GivenToControllers", &message(namespace, name));
            set(&mut subscription.status, noted, now);
        }
        _ => {}
    }
}
