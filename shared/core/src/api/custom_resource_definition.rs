//! CustomResourceDefinition: a kind that is defined in a cluster.

use serde_json::Value;

use super::conditions::{ESTABLISHED, NAMES_ACCEPTED};
use super::object;
use super::view::{object_view, view};

object_view! {
    /// A view of a CustomResourceDefinition.
    CustomResourceDefinition, conditions
}

view! {
    /// A view of a version of a CustomResourceDefinition.
    CrdVersion
}

impl<'a> CustomResourceDefinition<'a> {
    /// `spec.group`
    pub fn group(self) -> &'a str {
        object::text(self.json, &["spec", "group"])
    }

    /// `spec.names.kind`
    pub fn kind(self) -> &'a str {
        object::text(self.json, &["spec", "names", "kind"])
    }

    /// `spec.names.plural`
    pub fn plural(self) -> &'a str {
        object::text(self.json, &["spec", "names", "plural"])
    }

    /// Whether its objects are namespaced.
    pub fn is_namespaced(self) -> bool {
        object::text(self.json, &["spec", "scope"]) != "Cluster"
    }

    /// Whether a webhook converts its objects between versions.
    pub fn is_converted_by_webhook(self) -> bool {
        object::text(self.json, &["spec", "conversion", "strategy"]) == "Webhook"
    }

    /// The versions, served or not.
    pub fn versions(self) -> impl Iterator<Item = CrdVersion<'a>> {
        object::list(self.json, &["spec", "versions"]).iter().map(CrdVersion::new)
    }

    /// The versions that are served.
    pub fn served(self) -> impl Iterator<Item = CrdVersion<'a>> {
        self.versions().filter(|version| version.is_served())
    }

    /// The name of the storage version; empty when none.
    pub fn storage_version(self) -> &'a str {
        self.versions().find(|version| version.is_stored()).map_or("", CrdVersion::name)
    }

    /// `status.storedVersions`: the versions in which objects may be stored.
    pub fn stored_versions(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["status", "storedVersions"]).iter().filter_map(Value::as_str)
    }

    /// Whether the API server serves it under the requested names.
    pub fn is_established(self) -> bool {
        let conditions = self.conditions();
        conditions.is_true(ESTABLISHED) && conditions.is_true(NAMES_ACCEPTED)
    }
}

impl<'a> CrdVersion<'a> {
    /// `v1`
    pub fn name(self) -> &'a str {
        object::text(self.json, &["name"])
    }

    /// Whether it is served.
    pub fn is_served(self) -> bool {
        object::at(self.json, &["served"]) == &Value::Bool(true)
    }

    /// Whether it is the storage version.
    pub fn is_stored(self) -> bool {
        object::at(self.json, &["storage"]) == &Value::Bool(true)
    }
}
