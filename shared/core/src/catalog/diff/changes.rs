//! Packages, channels, entries and bundles that differ.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Channel, Entry, Package, Property, Snapshot};
use super::{BundleChange, Change, ChannelChange, EntryChange, Field, PackageChange};
use crate::api::hash;

/// Compares the packages of both snapshots.
pub(super) fn packages(old: &Snapshot, new: &Snapshot) -> Vec<PackageChange> {
    let both =
        both(old.packages().iter().map(|(n, p)| (n.as_str(), p)), new.packages().iter().map(|(n, p)| (n.as_str(), p)));
    let compare = |(name, pair): (&str, Pair<'_, Package>)| {
        let fields = fields([
            one("defaultChannel", pair.map(|p| Some(p.default_channel.as_str()))),
            one("deprecation", pair.map(|p| p.deprecation.as_deref())),
        ]);
        let channels = channels(pair);
        let bundles = bundles(old, new, name, pair);
        let is_same = fields.is_empty() && channels.is_empty() && bundles.is_empty();
        let change = pair.change(is_same)?;
        Some(PackageChange { name: name.to_owned(), change, fields, channels, bundles })
    };
    both.into_iter().filter_map(compare).collect()
}

/// The old and the new version of an object.
struct Pair<'a, T> {
    old: Option<&'a T>,
    new: Option<&'a T>,
}

impl<T> Clone for Pair<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pair<'_, T> {}

impl<'a, T> Pair<'a, T> {
    /// Maps both versions.
    fn map<U>(self, of: impl Fn(&'a T) -> Option<U>) -> [Option<U>; 2] {
        [self.old.and_then(&of), self.new.and_then(&of)]
    }

    fn change(self, is_same: bool) -> Option<Change> {
        match (self.old, self.new) {
            (None, _) => Some(Change::Added),
            (_, None) => Some(Change::Removed),
            _ => Some(Change::Changed).filter(|_| !is_same),
        }
    }
}

fn both<'a, T>(
    old: impl Iterator<Item = (&'a str, &'a T)>,
    new: impl Iterator<Item = (&'a str, &'a T)>,
) -> BTreeMap<&'a str, Pair<'a, T>> {
    let mut both: BTreeMap<&str, Pair<'a, T>> = old.map(|(n, t)| (n, Pair { old: Some(t), new: None })).collect();
    for (name, thing) in new {
        both.entry(name).or_insert(Pair { old: None, new: None }).new = Some(thing);
    }
    both
}

fn channels(package: Pair<'_, Package>) -> Vec<ChannelChange> {
    let [old, new] = [package.old, package.new]
        .map(|p| p.into_iter().flat_map(|p| &p.channels).map(|channel| (channel.name.as_str(), channel)));
    let both = both(old, new);
    let compare = |(name, pair): (&str, Pair<'_, Channel>)| {
        let fields = fields([
            one("head", pair.map(|c| Some(c.head.as_str()))),
            one("deprecation", pair.map(|c| c.deprecation.as_deref())),
        ]);
        let entries = entries(pair);
        let change = pair.change(fields.is_empty() && entries.is_empty())?;
        Some(ChannelChange { name: name.to_owned(), change, fields, entries })
    };
    both.into_iter().filter_map(compare).collect()
}

fn entries(channel: Pair<'_, Channel>) -> Vec<EntryChange> {
    let [old, new] = [channel.old, channel.new]
        .map(|c| c.into_iter().flat_map(|c| &c.entries).map(|entry| (entry.name.as_str(), entry)));
    let both = both(old, new);
    let compare = |(name, pair): (&str, Pair<'_, Entry>)| {
        let skips = |entry: Option<&Entry>| entry.map(|e| e.skips.clone()).unwrap_or_default();
        let fields = fields([
            one("replaces", pair.map(|e| e.replaces.as_deref())),
            many("skips", skips(pair.old), skips(pair.new)),
            one("skipRange", pair.map(|e| e.skip_range.as_deref())),
        ]);
        let change = pair.change(fields.is_empty())?;
        Some(EntryChange { name: name.to_owned(), change, fields })
    };
    both.into_iter().filter_map(compare).collect()
}

/// Compares bundles; a bundle is the same in each channel.
fn bundles(old: &Snapshot, new: &Snapshot, package: &str, pair: Pair<'_, Package>) -> Vec<BundleChange> {
    let [from, to] = [pair.old, pair.new]
        .map(|p| p.into_iter().flat_map(Package::entries).map(|entry| (entry.name.as_str(), entry)));
    let both = both(from, to);
    let compare = |(name, pair): (&str, Pair<'_, Entry>)| {
        let [properties, dependencies] = [
            ("properties", pair.map(|e| Some(&e.bundle_properties[..]))),
            ("dependencies", pair.map(|e| Some(&e.dependencies[..]))),
        ]
        .map(|(field, [old, new])| {
            let described =
                |list: Option<&[Property]>| if old == new { Vec::new() } else { describe(list.unwrap_or_default()) };
            many(field, described(old), described(new))
        });
        let image = |e: &'_ Entry| Some(e.bundle_path.clone()).filter(|image| !image.is_empty());
        let are_inline = pair.map(|e| image(e).is_none().then_some(())) == [Some(()), Some(())];
        let objects_differ = are_inline && !old.has_same_objects(new, package, name);
        let objects = |which: &str| if objects_differ { vec![which.to_owned()] } else { Vec::new() };
        let fields = fields([
            one("version", pair.map(|e| Some(e.version_text.as_str()))),
            many(
                "image",
                pair.old.and_then(image).into_iter().collect(),
                pair.new.and_then(image).into_iter().collect(),
            ),
            properties,
            dependencies,
            many("objects", objects("old objects"), objects("new objects")),
            one("deprecation", pair.map(|e| e.deprecation.as_deref())),
        ]);
        let change = pair.change(fields.is_empty())?;
        let version = pair.new.or(pair.old).map(|e| e.version_text.clone()).unwrap_or_default();
        Some(BundleChange { name: name.to_owned(), version, change, fields })
    };
    both.into_iter().filter_map(compare).collect()
}

/// Renders properties. A long value, such as a description of the ClusterServiceVersion, is reported by its size.
fn describe(properties: &[Property]) -> Vec<String> {
    const LONGEST: usize = 200;
    let one = |property: &Property| {
        let value = property.value.to_string();
        if value.len() > LONGEST {
            let hash = hash::fnv64a(&value);
            return format!("{} ({} bytes, {hash})", property.type_, value.len());
        }
        format!("{} {value}", property.type_)
    };
    properties.iter().map(one).collect()
}

/// Compares a field with one value.
fn one(field: &'static str, [old, new]: [Option<&str>; 2]) -> Field {
    let list = |text: Option<&str>| text.filter(|t| !t.is_empty()).map(str::to_owned).into_iter().collect();
    many(field, list(old), list(new))
}

/// Compares a list, ignoring the order: common items are left out.
fn many(field: &'static str, mut old: Vec<String>, mut new: Vec<String>) -> Field {
    let both: BTreeSet<String> = old.iter().filter(|o| new.contains(o)).cloned().collect();
    old.retain(|o| !both.contains(o));
    new.retain(|n| !both.contains(n));
    Field { field, old, new }
}

fn fields<const N: usize>(fields: [Field; N]) -> Vec<Field> {
    fields.into_iter().filter(|f| !f.old.is_empty() || !f.new.is_empty()).collect()
}
