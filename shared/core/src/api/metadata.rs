//! The metadata of an object beyond its name: owners, finalizers, when it was made.

use jiff::Timestamp;
use serde_json::Value;

use super::object;

/// The metadata of an object, read where it lies in its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metadata<'a> {
    object: &'a Value,
}

/// A reference to the owner of an object, read where it lies in its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnerReference<'a> {
    /// The whole.
    pub json: &'a Value,
}

impl<'a> Metadata<'a> {
    /// That of an object.
    pub fn of(object: &'a Value) -> Self {
        Self { object }
    }

    /// `generateName`: what the API server makes a name of.
    pub fn generate_name(self) -> &'a str {
        object::text(self.object, &["metadata", "generateName"])
    }

    /// When the object was made, as it stands; empty before.
    pub fn created(self) -> &'a str {
        object::text(self.object, &["metadata", "creationTimestamp"])
    }

    /// When the object was made.
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

    /// What has to be done before the object is gone.
    pub fn finalizers(self) -> &'a [Value] {
        object::list(self.object, &["metadata", "finalizers"])
    }

    /// The owners, without which the object is deleted.
    pub fn owners(self) -> impl Iterator<Item = OwnerReference<'a>> {
        self.owner_references().iter().map(|json| OwnerReference { json })
    }

    /// The same as they stand.
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
