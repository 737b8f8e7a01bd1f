//! Renders a comparison of catalogs as text.

use std::collections::BTreeMap;
use std::fmt;

use super::{BundleChange, Change, ChannelChange, Diff, EntryChange, Field, PackageChange, Stranded};

/// Maximum number of names that are listed for one cause.
const NAMED: usize = 6;

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packages.is_empty() {
            writeln!(f, "The catalogs are equal.")?;
        }
        self.packages.iter().try_for_each(|package| one_package(f, package))?;
        if self.stranded.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nStranded, without the update path to the head that they had:")?;
        let mut alike: BTreeMap<_, Vec<&Stranded>> = BTreeMap::new();
        for one in &self.stranded {
            let namespace = one.subscription.as_ref().map(|s| s.namespace.as_str());
            let key = (&*one.package, &*one.channel, &*one.reason, &one.alternative_channels[..], namespace);
            alike.entry(key).or_default().push(one);
        }
        for ((package, channel, reason, alternative_channels, _), stranded) in alike {
            let names: Vec<String> = stranded.iter().map(|one| named(one)).collect();
            let channel = if channel.is_empty() { String::new() } else { format!(", channel {channel}") };
            writeln!(f, "  {package}{channel}: {}", shortened(&names))?;
            writeln!(f, "    because {reason}")?;
            if !alternative_channels.is_empty() {
                writeln!(f, "    alternative: channel {}", alternative_channels.join(" or "))?;
            }
        }
        Ok(())
    }
}

fn named(stranded: &Stranded) -> String {
    match &stranded.subscription {
        None => stranded.name.clone(),
        Some(subscription) => {
            format!("{} of Subscription {}/{}", stranded.name, subscription.namespace, subscription.name)
        }
    }
}

fn shortened(names: &[String]) -> String {
    if names.len() <= NAMED + 1 {
        return names.join(", ");
    }
    format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED)
}

fn sign(change: Change) -> char {
    match change {
        Change::Added => '+',
        Change::Removed => '-',
        Change::Changed => '~',
    }
}

fn one_package(f: &mut fmt::Formatter<'_>, package: &PackageChange) -> fmt::Result {
    let PackageChange { name, change, fields, channels, bundles } = package;
    if *change != Change::Changed {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let counts = format!("{}, {}", count(channels.len(), "channel"), count(bundles.len(), "bundle"));
        return writeln!(f, "{} package {name}: {counts}", sign(*change));
    }
    writeln!(f, "~ package {name}")?;
    fields.iter().try_for_each(|field| one_field(f, 1, field))?;
    for ChannelChange { name, change, fields, entries } in channels {
        writeln!(f, "  {} channel {name}", sign(*change))?;
        fields.iter().try_for_each(|field| one_field(f, 2, field))?;
        for EntryChange { name, change, fields } in entries {
            writeln!(f, "    {} {name}", sign(*change))?;
            // The edges of a removed entry are irrelevant.
            let shown = fields.iter().filter(|_| *change != Change::Removed);
            shown.clone().try_for_each(|field| one_field(f, 3, field))?;
        }
    }
    for BundleChange { name, version: _, change, fields } in bundles {
        writeln!(f, "  {} bundle {name}", sign(*change))?;
        let shown = fields.iter().filter(|_| *change == Change::Changed);
        shown.clone().try_for_each(|field| one_field(f, 2, field))?;
    }
    Ok(())
}

fn one_field(f: &mut fmt::Formatter<'_>, depth: usize, field: &Field) -> fmt::Result {
    let Field { field, old, new } = field;
    let indent = "  ".repeat(depth);
    let line = |text: &String| text.replace('\n', " ");
    match (&old[..], &new[..]) {
        ([], [new]) => writeln!(f, "{indent}+ {field}: {}", line(new)),
        ([old], []) => writeln!(f, "{indent}- {field}: {}", line(old)),
        ([old], [new]) => writeln!(f, "{indent}~ {field}: {} -> {}", line(old), line(new)),
        (old, new) => {
            old.iter().try_for_each(|old| writeln!(f, "{indent}- {field}: {}", line(old)))?;
            new.iter().try_for_each(|new| writeln!(f, "{indent}+ {field}: {}", line(new)))
        }
    }
}
