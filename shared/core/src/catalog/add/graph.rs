//! Computes the entry of a bundle in a channel, and which versions would lose their update path to the channel's head.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::super::blob::ChannelEntry;
use super::super::channel::{self, Node, Point};
use super::super::graph::{End, Graph};
use super::super::{Channel, Entry};
use super::edit::Edit;
use crate::finding::Finding;
use crate::version::{self, Version};

/// The source of the edges of an added bundle, as in `opm index add --mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// From `spec.replaces`, `spec.skips` and `olm.skipRange` of its CSV.
    #[default]
    Replaces,
    /// Versions: the bundle replaces the next lower version of the channel, and the next higher version replaces the
    /// bundle.
    Semver,
    /// Like `Semver`, and the bundle skips all lower patches of its minor version.
    SemverSkipPatch,
}

impl Mode {
    /// The names of the modes on the command line.
    pub const NAMES: [&'static str; 3] = ["replaces", "semver", "semver-skippatch"];
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "replaces" => Ok(Self::Replaces),
            "semver" => Ok(Self::Semver),
            "semver-skippatch" => Ok(Self::SemverSkipPatch),
            _ => Err(format!("unknown mode {text:?}: expected one of {}", Self::NAMES.join(", "))),
        }
    }
}

/// Versions by the name of the bundle.
pub(super) type Versions = BTreeMap<String, Version>;

/// Adds an entry, which has the edges of its CSV, to a channel. Returns how the existing entries change.
pub(super) fn place(
    mode: Mode,
    entries: &mut Vec<ChannelEntry>,
    mut new: ChannelEntry,
    versions: &Versions,
) -> Result<Vec<Edit>, Finding> {
    let mut edits = Vec::new();
    if mode != Mode::Replaces {
        let of = |name: &str| versions.get(name).ok_or_else(|| unknown_version(name));
        let version = of(&new.name)?;
        let skipped: BTreeSet<&str> = entries.iter().flat_map(|e| e.skips.iter().map(String::as_str)).collect();
        let mut chain: Vec<(Version, usize)> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let known = of(&entry.name)?;
            if version::compare(known, version).is_eq() {
                let message = format!("version {version} already exists, in {}", entry.name);
                return Err(Finding::new("duplicate-version", message).hint("give the bundle another version"));
            }
            if !skipped.contains(entry.name.as_str()) {
                chain.push((known.clone(), at));
            }
        }
        chain.sort_by(|a, b| version::compare(&a.0, &b.0));
        let behind = chain.partition_point(|(known, _)| version::compare(known, version).is_lt());
        let ahead = chain.get(behind).cloned();
        let is_patch = |known: &Version| (known.major, known.minor) == (version.major, version.minor);
        let patches = chain[..behind].iter().rev().take_while(|(known, _)| is_patch(known)).count();
        let lower = |count: usize| chain[..behind].iter().rev().skip(count).map(|(_, at)| &entries[*at]);
        (new.replaces, new.skips) = (lower(0).next().map(|e| e.name.clone()).unwrap_or_default(), Vec::new());
        let skips_patches = mode == Mode::SemverSkipPatch;
        match ahead {
            Some((known, at)) if skips_patches && is_patch(&known) => {
                // A later patch exists: no update needs to stop at this one.
                new.replaces.clear();
                edits.push(Edit::Skip(entries[at].name.clone(), new.name.clone()));
                entries[at].skips.push(new.name.clone());
            }
            _ if skips_patches && patches > 0 => {
                // The lower patches and what they skip; `replaces` is that of the lowest patch.
                let own = lower(0).take(patches).collect::<Vec<_>>();
                let lowest = own.last().map(|e| e.replaces.clone()).unwrap_or_default();
                new.replaces = lower(patches).next().map_or(lowest, |e| e.name.clone());
                let skips = own.iter().flat_map(|e| std::iter::once(&e.name).chain(&e.skips));
                let skips: BTreeSet<&String> = skips.filter(|name| **name != new.replaces).collect();
                new.skips = skips.into_iter().cloned().collect();
            }
            _ => {}
        }
        if let Some((known, at)) = chain.get(behind)
            && !(skips_patches && is_patch(known))
        {
            let replaced = std::mem::replace(&mut entries[*at].replaces, new.name.clone());
            edits.push(Edit::Replaces(entries[*at].name.clone(), new.name.clone()));
            // What the channel does not contain may still be installed.
            let is_elsewhere = !replaced.is_empty() && !entries.iter().any(|e| e.name == replaced);
            if is_elsewhere && replaced != new.name && !entries[*at].skips.contains(&replaced) {
                edits.push(Edit::Skip(entries[*at].name.clone(), replaced.clone()));
                entries[*at].skips.push(replaced);
            }
        }
    }
    edits.push(Edit::Entry(new.to_value()));
    entries.push(new);
    Ok(edits)
}

fn unknown_version(name: &str) -> Finding {
    Finding::new(
        "no-version",
        format!("the version of {name} is unknown, so its edges cannot be derived from versions"),
    )
    .hint("add it with --mode replaces")
}

/// Checks that a changed channel is valid. `new` are the names of the added entries.
pub(super) fn check(entries: &[ChannelEntry], new: &BTreeSet<String>) -> Result<(), Finding> {
    let nodes: Vec<Node<'_>> = entries.iter().map(Node::from).collect();
    let Err(message) = channel::check(&nodes) else { return Ok(()) };
    let targets: BTreeSet<&str> =
        entries.iter().flat_map(|e| e.skips.iter().chain([&e.replaces])).map(String::as_str).collect();
    let heads: Vec<&ChannelEntry> = entries.iter().filter(|e| !targets.contains(e.name.as_str())).collect();
    let names: Vec<&str> = heads.iter().map(|e| e.name.as_str()).collect();
    match heads[..] {
        [] => {
            Err(Finding::new("cycle", "the channel would have no head: each entry is replaced or skipped by another")
                .hint("correct spec.replaces and spec.skips of the CSV"))
        }
        [_] if message.contains("cycle") => {
            Err(Finding::new("cycle", format!("the channel would have a cycle: {message}"))
                .hint("correct spec.replaces of the CSV"))
        }
        [head] => {
            let stranded = message.rsplit_once(": ").map_or("", |(_, names)| names);
            let message = format!("{stranded} would have no update path to the head {}", head.name);
            Err(Finding::new("stranded", message)
                .hint(format!("make {} skip them, or replace the newest of them", head.name)))
        }
        _ => {
            let added = heads.iter().find(|e| new.contains(&e.name)).or_else(|| heads.first());
            let others: Vec<&str> = names.iter().copied().filter(|n| added.is_none_or(|a| a.name != *n)).collect();
            let (why, name) = added.map_or((String::new(), ""), |e| (why_head(e, entries), &e.name));
            let message = format!("the channel would have {} heads, {}: {why}", heads.len(), names.join(" and "));
            let missing =
                added.map(|e| &e.replaces).filter(|r| !r.is_empty() && !entries.iter().any(|e| e.name == **r));
            let first = missing.map_or_else(String::new, |r| format!("add {r} first, "));
            let hint = format!(
                "{first}make {name} replace or skip {}, or derive edges from versions with --mode semver",
                others.join(", ")
            );
            Err(Finding::new("two-heads", message).hint(hint))
        }
    }
}

/// Returns why the previous head is still a head next to the new entry.
fn why_head(new: &ChannelEntry, entries: &[ChannelEntry]) -> String {
    let ChannelEntry { name, replaces, .. } = new;
    if replaces.is_empty() {
        return match new.skip_range.as_str() {
            "" => format!("{name} replaces nothing"),
            _ => format!("{name} replaces nothing, and a skipRange alone does not make it follow the others"),
        };
    }
    if !entries.iter().any(|e| e.name == *replaces) {
        return format!("{name} replaces {replaces}, which is not in the channel");
    }
    let other = entries.iter().find(|e| e.name != *name && (e.replaces == *replaces || e.skips.contains(replaces)));
    match other {
        Some(other) => format!("{name} replaces {replaces}, which {} replaces already", other.name),
        None => format!("{name} replaces {replaces}"),
    }
}

/// Returns the names of versions that had an update path to the head before the change and have none after it.
pub(super) fn stranded(before: &[ChannelEntry], after: &[ChannelEntry], versions: &Versions) -> Vec<String> {
    let (before, after) = (channel_of(before, versions), channel_of(after, versions));
    let (before, after) = (Graph::new(&before), Graph::new(&after));
    let arrives =
        |graph: &Graph<'_>, name: &str| graph.walk(Point { name, version: versions.get(name) }).end == End::Head;
    let names = before.nodes().iter().map(|node| node.name).chain(versions.keys().map(String::as_str));
    let names: BTreeSet<&str> = names.filter(|name| arrives(&before, name) && !arrives(&after, name)).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Builds a channel from the parts of its entries that determine updates.
fn channel_of(entries: &[ChannelEntry], versions: &Versions) -> Channel {
    let some = |text: &str| Some(text.to_owned()).filter(|t| !t.is_empty());
    let entry = |entry: &ChannelEntry| Entry {
        name: entry.name.clone(),
        version: versions.get(&entry.name).cloned(),
        replaces: some(&entry.replaces),
        skips: entry.skips.clone(),
        skip_range: some(&entry.skip_range),
        ..Entry::default()
    };
    Channel { entries: entries.iter().map(entry).collect(), ..Channel::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &[(&str, &str, &[&str], &str)]) -> Vec<ChannelEntry> {
        let entry = |(name, replaces, skips, range): &(&str, &str, &[&str], &str)| ChannelEntry {
            name: (*name).to_owned(),
            replaces: (*replaces).to_owned(),
            skips: skips.iter().map(|s| (*s).to_owned()).collect(),
            skip_range: (*range).to_owned(),
        };
        text.iter().map(entry).collect()
    }

    fn versions(entries: &[ChannelEntry]) -> Versions {
        let version =
            |e: &ChannelEntry| (e.name.clone(), version::parse_tolerant(e.name.trim_start_matches('r')).unwrap());
        entries.iter().map(version).collect()
    }

    /// Returns the channel after versions were added one after the other.
    fn added(mode: Mode, names: &[&str]) -> String {
        let mut channel = Vec::new();
        for name in names {
            let new = entries(&[(name, "", &[], "")]);
            let mut known = versions(&channel);
            known.extend(versions(&new));
            let before = channel.clone();
            place(mode, &mut channel, new[0].clone(), &known).unwrap();
            assert_eq!(check(&channel, &BTreeSet::new()), Ok(()), "{name} of {names:?}");
            assert_eq!(stranded(&before, &channel, &known), [""; 0], "{name} of {names:?}");
        }
        channel.sort_by_key(|e| versions(std::slice::from_ref(e)).into_values().next());
        let shown = |e: &ChannelEntry| format!("{}>{} {}", e.name, e.replaces, e.skips.join(","));
        channel.iter().map(shown).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn versions_make_a_chain_in_whatever_order_they_come() {
        let chain = "r1.0.0> ; r1.0.1>r1.0.0 ; r1.1.0>r1.0.1 ; r2.0.0>r1.1.0 ";
        for order in [["r1.0.0", "r1.0.1", "r1.1.0", "r2.0.0"], ["r2.0.0", "r1.0.1", "r1.0.0", "r1.1.0"]] {
            assert_eq!(added(Mode::Semver, &order), chain);
        }
    }

    #[test]
    fn the_last_patch_skips_the_others() {
        let patches = |order: &[&str]| added(Mode::SemverSkipPatch, order);
        assert_eq!(
            patches(&["r1.0.0", "r1.1.0", "r1.1.1", "r1.1.2", "r1.2.0"]),
            "r1.0.0> ; r1.1.0>r1.0.0 ; r1.1.1>r1.0.0 r1.1.0; r1.1.2>r1.0.0 r1.1.0,r1.1.1; r1.2.0>r1.1.2 "
        );
        assert_eq!(patches(&["r1.0.0", "r1.2.0", "r1.0.2"]), "r1.0.0> ; r1.0.2> r1.0.0; r1.2.0>r1.0.2 ");
        assert_eq!(patches(&["r1.0.0", "r1.1.3", "r1.1.2"]), "r1.0.0> ; r1.1.2> ; r1.1.3>r1.0.0 r1.1.2");
    }

    #[test]
    fn a_missing_replaced_entry_is_skipped_instead() {
        let mut channel = entries(&[("r2.0.0", "r1.9.0", &[], "")]);
        let before = channel.clone();
        let new = entries(&[("r1.0.0", "", &[], "")]);
        let known = versions(&[&channel[..], &new[..]].concat());
        let edits = place(Mode::Semver, &mut channel, new[0].clone(), &known).unwrap();
        assert_eq!(edits[1], Edit::Skip("r2.0.0".to_owned(), "r1.9.0".to_owned()));
        assert_eq!((channel[0].replaces.as_str(), stranded(&before, &channel, &known)), ("r1.0.0", vec![]));
    }

    #[test]
    fn versions_with_a_path_to_the_head_keep_one() {
        let before = entries(&[("r2", "r1", &["r0"], ""), ("r1", "", &[], "")]);
        let known = versions(&before);
        let after = |skips: &[&str], range| {
            let mut after = before.clone();
            after.extend(entries(&[("r3", "r1", skips, range)]));
            stranded(&before, &after, &known)
        };
        // r2 is skipped, so no entry skips r0.
        assert_eq!(after(&["r2"], ""), ["r0"]);
        assert_eq!(after(&["r2", "r0"], ""), [""; 0]);
        assert_eq!(after(&[], ""), ["r0", "r1", "r2"]);
    }

    #[test]
    fn an_invalid_channel_is_refused_with_its_reason() {
        let before = [("r1", "r0", &[][..], ""), ("r2", "r1", &[], "")];
        for (new, code, words) in [
            (("r3", "", &[][..], ""), "two-heads", "r3 replaces nothing"),
            (("r3", "", &[], "<3.0.0"), "two-heads", "skipRange alone"),
            (("r3", "r9", &[], ""), "two-heads", "replaces r9, which is not in the channel"),
            (("r3", "r1", &[], ""), "two-heads", "replaces r1, which r2 replaces already"),
            (("r0", "r2", &[], ""), "cycle", "no head"),
            (("r3", "r9", &["r2"], ""), "stranded", "r1 would have no update path to the head r3"),
        ] {
            let channel = entries(&[before[0], before[1], new]);
            let finding = check(&channel, &BTreeSet::from([new.0.to_owned()])).unwrap_err();
            assert!(finding.code == code && finding.message.contains(words), "{finding:?}");
        }
    }
}
