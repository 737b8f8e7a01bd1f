//! Compares two versions of a catalog, and determines which installed versions the change strands.
//!
//! ```text
//!   old, new: Snapshot --changes--> packages, channels, entries, bundles: added, removed, changed
//!                      --stranded-> versions that lose their update path to a head
//!                                   (all that may be installed, or only installed ones)
//! ```
//!
//! Objects of a bundle are compared only when the catalog contains them; otherwise the image is compared.

mod changes;
mod stranded;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use super::Snapshot;
use crate::version::Version;

/// The difference between two catalogs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Packages that differ, by name.
    pub packages: Vec<PackageChange>,
    /// Versions that lose their update path to the head.
    pub stranded: Vec<Stranded>,
}

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Only the new catalog contains it.
    Added,
    /// Only the old catalog contains it.
    Removed,
    /// Both contain it, and it differs.
    Changed,
}

/// A package that differs. All channels and bundles of an added or removed package are added or removed as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageChange {
    /// Name.
    pub name: String,
    /// The kind of change.
    pub change: Change,
    /// `defaultChannel`, `deprecation`
    pub fields: Vec<Field>,
    /// Its channels that differ, by name.
    pub channels: Vec<ChannelChange>,
    /// Its bundles that differ, by name.
    pub bundles: Vec<BundleChange>,
}

/// A channel that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelChange {
    /// Name.
    pub name: String,
    /// The kind of change.
    pub change: Change,
    /// `head`, `deprecation`
    pub fields: Vec<Field>,
    /// Its entries that differ, by name.
    pub entries: Vec<EntryChange>,
}

/// An entry of a channel that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryChange {
    /// Name of the bundle.
    pub name: String,
    /// The kind of change.
    pub change: Change,
    /// `replaces`, `skips`, `skipRange`
    pub fields: Vec<Field>,
}

/// A bundle that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleChange {
    /// Name.
    pub name: String,
    /// Version; that of the new catalog if it contains the bundle.
    pub version: String,
    /// The kind of change.
    pub change: Change,
    /// `version`, `image`, `properties`, `dependencies`, `objects`, `deprecation`
    pub fields: Vec<Field>,
}

/// A field that differs. Of lists only removed and added items are contained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// Name of the field in the catalog.
    pub field: &'static str,
    /// Old values.
    pub old: Vec<String>,
    /// New values.
    pub new: Vec<String>,
}

/// A version that loses its update path to the head of its channel.
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
    pub reason: String,
    /// Other channels of the new catalog in which it has an update path to the head.
    pub alternative_channels: Vec<String>,
    /// The Subscription that installed it, if known.
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

/// The installed version of a Subscription.
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
    /// Version of the CSV, if known.
    pub version: Option<Version>,
}

impl Diff {
    /// Compares two versions of a catalog. Stranded versions are those of `installed`, or all that the old catalog has a
    /// path for.
    pub fn new(old: &Snapshot, new: &Snapshot, installed: Option<&[Installed]>) -> Self {
        let stranded = match installed {
            None => stranded::of_all(old, new),
            Some(installed) => stranded::of_installed(old, new, installed),
        };
        Self { packages: changes::packages(old, new), stranded }
    }
}
