//! The metadata of an object: owners, finalizers, creation time.

use jiff::Timestamp;
use serde_json::Value;

use super::object;
use super::view::view;

view! {
    /// A view of the metadata of an object.
    Metadata
}

view! {
    /// A view of an owner reference.
    OwnerReference
}

impl<'a> Metadata<'a> {
    /// `generateName`: the prefix from which the API server generates a name.
    pub fn generate_name(self) -> &'a str {
        object::text(self.json, &["metadata", "generateName"])
    }

    /// `creationTimestamp` as text; empty before creation.
    pub fn created(self) -> &'a str {
        object::text(self.json, &["metadata", "creationTimestamp"])
    }

    /// The creation time.
    pub fn created_at(self) -> Option<Timestamp> {
        object::parse_time(self.created())
    }

    /// The labels, or null.
    pub fn labels(self) -> &'a Value {
        object::at(self.json, &["metadata", "labels"])
    }

    /// The annotations, or null.
    pub fn annotations(self) -> &'a Value {
        object::at(self.json, &["metadata", "annotations"])
    }

    /// The finalizers, which block the deletion of the object.
    pub fn finalizers(self) -> &'a [Value] {
        object::list(self.json, &["metadata", "finalizers"])
    }

    /// The owners. The object is deleted when none of them exists.
    pub fn owners(self) -> impl Iterator<Item = OwnerReference<'a>> {
        self.owner_references().iter().map(OwnerReference::new)
    }

    /// The owner references as JSON.
    pub fn owner_references(self) -> &'a [Value] {
        object::list(self.json, &["metadata", "ownerReferences"])
    }
}

impl<'a> OwnerReference<'a> {
    /// The owner's kind.
    pub fn kind(self) -> &'a str {
        object::text(self.json, &["kind"])
    }

    /// The owner's name.
    pub fn name(self) -> &'a str {
        object::text(self.json, &["name"])
    }

    /// The owner's uid.
    pub fn uid(self) -> &'a str {
        object::text(self.json, &["uid"])
    }
}
