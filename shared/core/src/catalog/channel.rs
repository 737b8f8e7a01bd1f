//! The rules of a channel: its head, the order in which the resolver prefers entries, and which entry updates which.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::Entry;
use crate::go_format::quote;
use crate::version::Version;

/// The edges of an entry. `replaces` and `skips` may name entries that the channel does not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// Name of the entry.
    pub name: &'a str,
    /// The entry that it replaces; empty when none.
    pub replaces: &'a str,
    /// The entries that it skips.
    pub skips: &'a [String],
}

impl<'a> From<&'a Entry> for Node<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self { name: &entry.name, replaces: entry.replaces.as_deref().unwrap_or_default(), skips: &entry.skips }
    }
}

/// Why the entries of a channel cannot be ordered, in OLM's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Every entry is replaced or skipped by another.
    #[error(
        "no channel heads (entries not replaced by another entry) found in channel {} of package {}",
        quote(channel),
        quote(package)
    )]
    NoHeads {
        /// Channel.
        channel: String,
        /// Package.
        package: String,
    },
    /// Following `replaces` from a head reaches an entry a second time.
    #[error(
        "a cycle exists in the chain of replacement beginning with {} in channel {} of package {}",
        quote(head),
        quote(channel),
        quote(package)
    )]
    Cycle {
        /// The head at which the chain begins.
        head: String,
        /// Channel.
        channel: String,
        /// Package.
        package: String,
    },
    /// There are several heads.
    #[error(
        "a unique replacement chain within a channel is required to determine the relative order between channel entries, \
         but {} replacement chains were found in channel {} of package {}: {}",
        chains.len(),
        quote(channel),
        quote(package),
        chains.join(", ")
    )]
    ManyChains {
        /// Channel.
        channel: String,
        /// Package.
        package: String,
        /// Each chain as `head...tail`.
        chains: Vec<String>,
    },
}

/// Returns the entries of one channel from the head down the chain of `replaces`, without the skipped ones
/// (olm-behaviour/subscription.md#channel-order).
///
/// # Errors
/// The entries have no head, contain a cycle, or form several chains.
pub fn order<'a>(entries: &[&'a Entry]) -> Result<Vec<&'a Entry>, OrderError> {
    let Some(first) = entries.first() else { return Ok(Vec::new()) };
    let (channel, package) = (first.channel.clone(), first.package.clone());
    let by_name: BTreeMap<&str, &'a Entry> = entries.iter().map(|e| (e.name.as_str(), *e)).collect();
    let (mut replaced, mut skipped) = (BTreeSet::new(), BTreeSet::new());
    for entry in entries {
        replaced.extend(entry.replaces.as_deref());
        skipped.extend(entry.skips.iter().map(String::as_str));
    }
    let is_head = |e: &&&'a Entry| !replaced.contains(e.name.as_str()) && !skipped.contains(e.name.as_str());
    let heads: Vec<&'a Entry> = entries.iter().filter(is_head).copied().collect();
    if heads.is_empty() {
        return Err(OrderError::NoHeads { channel, package });
    }
    let is_skipped = |entry: &Entry| skipped.contains(entry.name.as_str());
    let mut tails: BTreeMap<&str, Option<&'a Entry>> = BTreeMap::new();
    let mut chains = Vec::new();
    let mut first_chain = Vec::new();
    for head in &heads {
        // Entries that other chains visited are not visited again: where heads share a chain, this avoids quadratic work.
        let (mut chain, mut seen) = (Vec::new(), BTreeSet::new());
        let mut current = Some(*head);
        while let Some(entry) = current.filter(|entry| !tails.contains_key(entry.name.as_str())) {
            if !seen.insert(entry.name.as_str()) {
                return Err(OrderError::Cycle { head: head.name.clone(), channel, package });
            }
            chain.push(entry);
            current = entry.replaces.as_deref().and_then(|name| by_name.get(name)).copied();
        }
        let mut tail = current.and_then(|entry| tails.get(entry.name.as_str()).copied().flatten());
        for entry in chain.iter().rev() {
            tail = tail.or_else(|| Some(*entry).filter(|entry| !is_skipped(entry)));
            tails.insert(&entry.name, tail);
        }
        let tail = tail.filter(|tail| tail.name != head.name);
        chains.push(tail.map_or_else(|| head.name.clone(), |tail| format!("{}...{}", head.name, tail.name)));
        if heads.len() == 1 {
            first_chain = chain;
        }
    }
    if chains.len() > 1 {
        return Err(OrderError::ManyChains { channel, package, chains });
    }
    first_chain.retain(|entry| !is_skipped(entry));
    Ok(first_chain)
}

/// An installed version: its name, and its version when that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point<'a> {
    /// Name of the ClusterServiceVersion.
    pub name: &'a str,
    /// Version.
    pub version: Option<&'a Version>,
}

impl<'a> From<&'a Entry> for Point<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self { name: &entry.name, version: entry.version.as_ref() }
    }
}

/// The edge by which an entry updates an installed version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Update {
    /// The entry replaces it by name.
    Replaces,
    /// The entry skips it by name.
    Skips,
    /// The entry's skipRange covers its version.
    SkipRange,
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replaces => "replaces",
            Self::Skips => "skips",
            Self::SkipRange => "skipRange",
        })
    }
}

/// Returns the edge by which the entry updates the installed version (olm-behaviour/opm.md#upgrade-edges).
pub fn update(entry: &Entry, installed: Point<'_>) -> Option<Update> {
    update_by(entry, installed, |version| entry.skips_version(version))
}

/// Like [`update`], with a skip range that is already parsed.
pub(super) fn update_by(entry: &Entry, installed: Point<'_>, skips: impl Fn(&Version) -> bool) -> Option<Update> {
    if entry.replaces.as_deref() == Some(installed.name) {
        Some(Update::Replaces)
    } else if entry.skips.iter().any(|name| name == installed.name) {
        Some(Update::Skips)
    } else {
        installed.version.filter(|v| skips(v)).map(|_| Update::SkipRange)
    }
}

/// Returns the head of a channel: the only entry that no other entry replaces or skips.
///
/// # Errors
/// No entry, or more than one, is a head: the message is that of opm.
pub fn head<'a>(nodes: &[Node<'a>]) -> Result<&'a str, String> {
    let targets: BTreeSet<&str> =
        nodes.iter().flat_map(|n| n.skips.iter().map(String::as_str).chain([n.replaces])).collect();
    let mut heads: Vec<&str> = nodes.iter().map(|n| n.name).filter(|name| !targets.contains(name)).collect();
    heads.sort_unstable();
    match heads[..] {
        [] => Err("no channel head found in graph".to_owned()),
        [head] => Ok(head),
        _ => Err(format!("multiple channel heads found in graph: {}", heads.join(", "))),
    }
}

/// Checks the graph as opm does: it has one head, no cycle, and no entry outside the chain
/// (olm-behaviour/opm.md#upgrade-edges).
///
/// # Errors
/// The graph has no single head, a cycle, or entries outside the chain: the message is that of opm.
pub fn check(nodes: &[Node<'_>]) -> Result<(), String> {
    let head = head(nodes)?;
    let by_name: BTreeMap<&str, &Node<'_>> = nodes.iter().map(|n| (n.name, n)).collect();
    let skipped: BTreeSet<&str> = nodes.iter().flat_map(|n| n.skips.iter().map(String::as_str)).collect();
    let mut chain = vec![head];
    let mut places = BTreeMap::from([(head, 0)]);
    while let Some(node) = chain.last().and_then(|last| by_name.get(last)) {
        if node.replaces.is_empty() || skipped.contains(node.replaces) {
            break;
        }
        let known = places.insert(node.replaces, chain.len());
        chain.push(node.replaces);
        if let Some(known) = known {
            let cycle = chain[known..].join(" -> ");
            return Err(format!("detected cycle in replaces chain of upgrade graph: {cycle}"));
        }
    }
    let stranded: BTreeSet<&str> =
        nodes.iter().map(|n| n.name).filter(|n| !places.contains_key(n) && !skipped.contains(n)).collect();
    if stranded.is_empty() {
        return Ok(());
    }
    let stranded: Vec<&str> = stranded.into_iter().collect();
    Err(format!("channel contains one or more stranded bundles: {}", stranded.join(", ")))
}
