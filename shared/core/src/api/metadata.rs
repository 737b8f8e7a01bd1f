//! The metadata of an object: owners, finalizers, creation time.

use jiff::Timestamp;
use serde_json::Value;

use super::object;

/// A view of an object's metadata, which borrows its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metadata<'a> {
    object: &'a Value,
}

/// A view of a reference to an object's owner, which borrows its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnerReference<'a> {
    /// The whole reference.
    pub json: &'a Value,
}

impl<'a> Metadata<'a> {
    /// Creates a view of an object's metadata.
    pub fn of(object: &'a Value) -> Self {
        Self { object }
    }

    /// `generateName`: the prefix from which the API server generates a name.
    pub fn generate_name(self) -> &'a str {
        object::text(self.object, &["metadata", "generateName"])
    }

    /// `creationTimestamp` as text; empty before creation.
    pub fn created(self) -> &'a str {
        object::text(self.object, &["metadata", "creationTimestamp"])
    }

    /// The creation time.
    pub fn created_at(self) -> Option<Timestamp> {
        object::parse_time(self.created())
    }

    /// The labels, or null.
    pub fn labels(self) -> &'a Value {
        object::at(self.object, &["metadata", "labels"])
    }

    /// The annotations, or null.
    pub fn annotations(self) -> &'a Value {
        object::at(self.object, &["metadata", "annotations"])
    }

    /// The finalizers, which block the deletion of the object.
    pub fn finalizers(self) -> &'a [Value] {
        object::list(self.object, &["metadata", "finalizers"])
    }

    /// The owners. The object is deleted when none of them exists.
    pub fn owners(self) -> impl Iterator<Item = OwnerReference<'a>> {
        self.owner_references().iter().map(|json| OwnerReference { json })
    }

    /// The owner references as JSON.
    pub fn owner_references(self) -> &'a [Value] {
        object::list(self.object, &["metadata", "ownerReferences"])
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
