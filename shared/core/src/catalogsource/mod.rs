//! CatalogSources: their connection and status (reference/catalog-operator.md §1).
//!
//! A catalog is dialled by the shell, which keeps its content known as a fact; what is planned here is that it should, and what
//! the object says about it.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::catalog_source::Origin;
use crate::api::object;
use crate::plan::{Action, Key, Plan, Question, Reason};
use crate::world::{CatalogFact, ConnectionState, Reader, kind};

/// Plans for one CatalogSource.
pub fn plan(world: &Reader<'_>, key: &Key, now: Timestamp) -> Plan {
    let (namespace, name) = (key.namespace.clone(), key.name.clone());
    let fact = world.catalog(&namespace, &name);
    // A local directory stays, whatever object there is.
    let dialled = fact.filter(|f| !f.address.is_empty());
    let source = world.json(&kind::CATALOG_SOURCE, &namespace, &name).filter(|s| !object::is_deleting(s));
    let disconnect =
        || dialled.map(|_| Action::Ask(Question::Disconnect { namespace: namespace.clone(), name: name.clone() }));
    let Some(source) = source else {
        return Plan::act(disconnect().into_iter().collect());
    };
    let described = || format!("CatalogSource {namespace}/{name}");
    let mut status = object::at(source, &["status"]).as_object().cloned().unwrap_or_default();
    status.remove("reason");
    status.remove("message");
    let address = match Origin::of(source) {
        Origin::Address(address) => address,
        Origin::Invalid(message) => {
            status.insert("reason".to_owned(), "SpecInvalidError".into());
            status.insert("message".to_owned(), message.as_str().into());
            let actions = disconnect().into_iter().chain(write(source, Value::Object(status)));
            return Plan::act(actions.collect()).because(Reason::Invalid { object: described(), message });
        }
        Origin::Image(_) | Origin::ConfigMap(_) if fact.is_some() && dialled.is_none() => "",
        Origin::Image(_) | Origin::ConfigMap(_) => {
            let what = "a catalog that is not served at an address".to_owned();
            let reason = Reason::Unsupported { object: described(), what };
            return Plan::act(disconnect().into_iter().collect()).because(reason);
        }
    };
    let known = fact.filter(|f| f.address.is_empty() || f.address == address);
    let mut actions = Vec::new();
    if known.is_none() {
        let (namespace, name, address) = (namespace.clone(), name.clone(), address.to_owned());
        actions.push(Action::Ask(Question::Connect { namespace, name, address }));
    }
    if !address.is_empty() {
        if object::at(source, &["status", "registryService"]).is_null() {
            status.insert("registryService".to_owned(), json!({ "protocol": "grpc", "createdAt": object::time(now) }));
        }
        if let Some(fact) = known {
            status.insert("connectionState".to_owned(), connection(source, address, fact));
            actions.extend(write(source, Value::Object(status)));
        }
    }
    let plan = Plan::act(actions);
    match known {
        Some(CatalogFact { snapshot: Some(_), .. }) => plan,
        Some(fact) => {
            let error = fact.error.as_ref().map(|e| format!(", {e}")).unwrap_or_default();
            let state = format!("{}{error}", fact.state.as_str());
            plan.because(Reason::CatalogNotReady { namespace, name, state })
        }
        None => plan.because(Reason::CatalogNotReady { namespace, name, state: "not connected yet".to_owned() }),
    }
}

/// `status.connectionState`: the time is that of the last change of the rest.
fn connection(source: &Value, address: &str, fact: &CatalogFact) -> Value {
    let known = object::at(source, &["status", "connectionState"]);
    let state = fact.state.as_str();
    let here = object::text(known, &["address"]) == address;
    // Controllers that have just started do not know better yet than those before them.
    let unknown = fact.snapshot.is_none() && fact.error.is_none() && fact.state <= ConnectionState::Connecting;
    if here && (unknown || object::text(known, &["lastObservedState"]) == state) {
        return known.clone();
    }
    json!({ "address": address, "lastObservedState": state, "lastConnect": object::time(fact.since) })
}

fn write(source: &Value, status: Value) -> Option<Action> {
    let same = match source.get("status") {
        Some(known) => *known == status,
        None => status == json!({}),
    };
    if same {
        return None;
    }
    let mut new = source.clone();
    new["status"] = status;
    Some(Action::UpdateStatus(new))
}
