//! What changes from one content of a catalog to another, and whom that strands.
//!
//! ```text
//!   old, new: Snapshot --changes--> packages, channels, entries, bundles: added, removed, changed
//!                      --stranded-> versions whose updates came to a head and no longer do
//!                                   (of all that may be installed, or of what is)
//! ```
//!
//! Objects of a bundle are compared only when the catalog carries them inline: else its image decides.

mod changes;
mod stranded;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use super::Snapshot;
use crate::version::Version;

/// What changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Packages that are not what they were, by name.
    pub packages: Vec<Package>,
    /// Versions without a way to the head that had one.
    pub stranded: Vec<Stranded>,
}

/// What happened to a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Only the new catalog has it.
    Added,
    /// Only the old catalog has it.
    Removed,
    /// Both have it, and it is not the same.
    Changed,
}

/// A package that is not what it was. Of one that came or went all channels and bundles did so, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// Name.
    pub name: String,
    /// What happened to it.
    pub change: Change,
    /// `defaultChannel`, `deprecation`
    pub fields: Vec<Field>,
    /// Its channels that are not what they were, by name.
    pub channels: Vec<Channel>,
    /// Its bundles that are not what they were, by name.
    pub bundles: Vec<Bundle>,
}

/// A channel that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// Name.
    pub name: String,
    /// What happened to it.
    pub change: Change,
    /// `head`, `deprecation`
    pub fields: Vec<Field>,
    /// Its entries that are not what they were, by name.
    pub entries: Vec<Entry>,
}

/// An entry of a channel that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Name of the bundle.
    pub name: String,
    /// What happened to it.
    pub change: Change,
    /// `replaces`, `skips`, `skipRange`
    pub fields: Vec<Field>,
}

/// A bundle that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// Name.
    pub name: String,
    /// Version, in the new catalog if it is there.
    pub version: String,
    /// What happened to it.
    pub change: Change,
    /// `version`, `image`, `properties`, `dependencies`, `objects`, `deprecation`
    pub fields: Vec<Field>,
}

/// What changed about a thing. Of lists only what went and what came is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// What it is called in the catalog.
    pub field: &'static str,
    /// What it was.
    pub old: Vec<String>,
    /// What it is.
    pub new: Vec<String>,
}

/// A version whose updates came to the head of its channel and no longer do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stranded {
    /// Package.
    pub package: String,
    /// Channel; empty for a Subscription that names none.
    pub channel: String,
    /// Name of the bundle.
    pub name: String,
    /// Why, in a sentence without a full stop.
    pub because: String,
    /// Other channels of the new catalog whose head it comes to.
    pub ways_out: Vec<String>,
    /// The Subscription of which it is installed, when that is known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<Subscription>,
}

/// A Subscription.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    #[serde(rename = "subscription")]
    pub name: String,
}

/// What is installed of a Subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The Subscription.
    pub subscription: Subscription,
    /// `spec.name`
    pub package: String,
    /// `spec.channel`; empty means any.
    pub channel: String,
    /// `status.installedCSV`
    pub name: String,
    /// Version of that, when it is known.
    pub version: Option<Version>,
}

impl Diff {
    /// Compares two contents of a catalog. Stranded can be all that the old one has a way for, or only what is installed.
    pub fn of(old: &Snapshot, new: &Snapshot, installed: Option<&[Installed]>) -> Self {
        let stranded = match installed {
            None => stranded::of_all(old, new),
            Some(installed) => stranded::of_installed(old, new, installed),
        };
        Self { packages: changes::packages(old, new), stranded }
    }
}
