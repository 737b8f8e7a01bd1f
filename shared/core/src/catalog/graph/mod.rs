//! The updates that a channel offers: to which version OLM updates each version, and which versions have no update.
//!
//! ```text
//!   Channel --order, update (channel.rs)--> Graph: each version has at most one update
//!     walk       the hops from one version in order, and why they end
//!     lanes      the versions as rows of a few columns
//!       text     rows of text
//!       drawing  Graphviz and Mermaid
//!   grid       versions as rows, channels as columns
//!       svg      an SVG image
//! ```
//!
//! *Guarantees*: order and updates are those of the resolver. *Assumptions*: dependencies of a bundle are not considered;
//! the resolver may have to skip a bundle because of them.

mod drawing;
mod grid;
mod lanes;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use drawing::{Drawing, Look, Part};
pub use grid::{Cell, Column, Grid, Row as GridRow};
pub use lanes::{Lanes, Row};
pub use svg::{Picture, STYLE};
pub use text::Text;

#[cfg(test)]
pub(super) use tests::channel as tests_channel;

use super::channel::{self, OrderError, Point, Update};
use super::{Channel, Entry, Package};
use crate::version::{self, Range};

/// The update graph of one channel.
#[derive(Debug)]
pub struct Graph<'a> {
    channel: &'a Channel,
    /// What OLM may choose, the head first; or why it chooses nothing.
    order: Result<Vec<Choice<'a>>, OrderError>,
    nodes: Vec<Node<'a>>,
    /// Indexes into `nodes` by name.
    places: BTreeMap<&'a str, usize>,
}

#[derive(Debug)]
struct Choice<'a> {
    entry: &'a Entry,
    skips: Option<Range>,
}

/// A version that may be installed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node<'a> {
    /// Name of the bundle.
    pub name: &'a str,
    /// Its entry; `None` when the channel only mentions it.
    pub entry: Option<&'a Entry>,
    /// The entry that skips it, so that OLM never chooses it.
    pub skipped_by: Option<&'a str>,
    /// The node to which OLM updates it, and by which edge.
    pub next: Option<(usize, Update)>,
    /// Whether its updates reach the head.
    pub reaches_head: bool,
}

/// An update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop<'a> {
    /// The target.
    pub to: &'a Entry,
    /// The edge.
    pub by: Update,
}

/// The updates from one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk<'a> {
    /// The hops in order.
    pub hops: Vec<Hop<'a>>,
    /// Why the walk ends.
    pub end: End,
}

/// Where updates end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// At the head.
    Head,
    /// At another version, which has no update.
    Stuck {
        /// Name of the bundle.
        at: String,
        /// A sentence without a full stop.
        because: String,
    },
    /// Never: the updates form a cycle that returns to this version.
    Circle {
        /// Name of the bundle.
        at: String,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("it is the head of the channel"),
            Self::Stuck { at, because } => write!(f, "{at} has no update: {because}"),
            Self::Circle { at } => write!(f, "the updates form a cycle that returns to {at}"),
        }
    }
}

/// Returns whether a version is certainly the newest one of a channel, by default of the default channel: it is the head, and has no update.
pub fn is_newest(package: &Package, channel: &str, installed: Point<'_>) -> bool {
    let channel = if channel.is_empty() { &package.default_channel } else { channel };
    package.channel(channel).is_some_and(|channel| {
        let graph = Graph::new(channel);
        graph.problem().is_none() && graph.head() == installed.name && graph.next(installed).is_none()
    })
}

impl<'a> Graph<'a> {
    /// Computes the update graph of a channel.
    pub fn new(channel: &'a Channel) -> Self {
        let entries: Vec<&Entry> = channel.entries.iter().collect();
        let choice = |entry: &'a Entry| Choice {
            entry,
            skips: entry.skip_range.as_deref().and_then(|range| Range::parse(range).ok()),
        };
        let order = channel::order(&entries).map(|order| order.into_iter().map(choice).collect());
        let nodes = nodes(channel);
        let places = nodes.iter().enumerate().map(|(place, node)| (node.name, place)).collect();
        let mut graph = Self { channel, order, nodes, places };
        for place in 0..graph.nodes.len() {
            let hop = graph.next(graph.nodes[place].point());
            graph.nodes[place].next = hop.and_then(|h| Some((*graph.places.get(h.to.name.as_str())?, h.by)));
        }
        graph.mark_arrivals();
        graph
    }

    /// Returns the channel.
    pub fn channel(&self) -> &'a Channel {
        self.channel
    }

    /// Returns all versions of the channel, the newest first, followed by those that it only mentions.
    pub fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// Returns the version of that name.
    pub fn node(&self, name: &str) -> Option<&Node<'a>> {
        self.places.get(name).map(|place| &self.nodes[*place])
    }

    /// Returns the head. When OLM cannot order the channel, this is the head that the catalog names.
    pub fn head(&self) -> &'a str {
        let first = self.order.as_ref().ok().and_then(|order| order.first());
        first.map_or(&self.channel.head, |choice| &choice.entry.name)
    }

    /// Returns OLM's error when it chooses nothing from the channel.
    pub fn problem(&self) -> Option<&OrderError> {
        self.order.as_ref().err()
    }

    /// Returns the update of the installed version, if it has one.
    pub fn next(&self, installed: Point<'_>) -> Option<Hop<'a>> {
        let hop = |choice: &Choice<'a>| {
            let skips = |version: &_| choice.skips.as_ref().is_some_and(|range| range.contains(version));
            Some(Hop { to: choice.entry, by: channel::update_by(choice.entry, installed, skips)? })
        };
        // An entry whose skipRange covers itself is chosen again: there is no update.
        self.order.as_ref().ok()?.iter().find_map(hop).filter(|hop| hop.to.name != installed.name)
    }

    /// Returns the updates from the installed version, in order.
    pub fn walk(&self, installed: Point<'_>) -> Walk<'a> {
        let (mut hops, mut seen) = (Vec::new(), BTreeSet::from([installed.name]));
        let mut next = self.next(installed);
        while let Some(hop) = next {
            hops.push(hop);
            if !seen.insert(hop.to.name.as_str()) {
                return Walk { hops, end: End::Circle { at: hop.to.name.clone() } };
            }
            next = self.node(&hop.to.name).and_then(|node| self.hop(node));
        }
        let last = hops.last().map_or(installed, |hop| hop.to.into());
        let is_head = self.order.is_ok() && last.name == self.head();
        let end = if is_head { End::Head } else { self.stuck(last) };
        Walk { hops, end }
    }

    /// Returns the first hop of a node.
    fn hop(&self, node: &Node<'a>) -> Option<Hop<'a>> {
        let (place, by) = node.next?;
        Some(Hop { to: self.nodes[place].entry?, by })
    }

    /// Returns why a version has no update.
    fn stuck(&self, installed: Point<'_>) -> End {
        let at = installed.name.to_owned();
        let because = match &self.order {
            Err(problem) => format!("OLM chooses nothing from this channel: {problem}"),
            Ok(_) => self.nothing_leads_on(installed),
        };
        End::Stuck { at, because }
    }

    fn nothing_leads_on(&self, installed: Point<'_>) -> String {
        let mut others = self.channel.entries.iter().filter(|e| e.name != installed.name);
        let would = others.find_map(|e| Some((e, channel::update(e, installed)?)));
        if let Some((Entry { name, skip_range, .. }, by)) = would {
            let does = match by {
                Update::Replaces => "replaces it".to_owned(),
                Update::Skips => "skips it".to_owned(),
                Update::SkipRange => {
                    format!("covers it with skipRange {:?}", skip_range.as_deref().unwrap_or_default())
                }
            };
            let never = match self.node(name).and_then(|node| node.skipped_by) {
                Some(skipper) => format!("{skipper} skips {name} in turn"),
                None => format!("{name} is not in the replaces chain that begins with the head"),
            };
            return format!("{name} {does}, but OLM never chooses it, because {never}");
        }
        let has_ranges = self.channel.entries.iter().any(|e| e.skip_range.is_some());
        let ranges = match installed.version {
            _ if !has_ranges => String::new(),
            Some(version) => format!(", and no skipRange covers {version}"),
            None => ", and a skipRange cannot cover an unknown version".to_owned(),
        };
        format!("no entry in channel {} replaces or skips it{ranges}", self.channel.name)
    }

    fn mark_arrivals(&mut self) {
        let head = self.order.as_ref().ok().and_then(|_| self.places.get(self.head())).copied();
        // A head that the skipRange of an older entry covers is not the end of the updates.
        let Some(head) = head.filter(|head| self.nodes[*head].next.is_none()) else { return };
        self.nodes[head].reaches_head = true;
        for start in 0..self.nodes.len() {
            let (mut path, mut seen) = (Vec::new(), BTreeSet::new());
            let mut at = start;
            while !self.nodes[at].reaches_head && seen.insert(at) {
                path.push(at);
                match self.nodes[at].next {
                    Some((next, _)) => at = next,
                    None => break,
                }
            }
            if self.nodes[at].reaches_head {
                for place in path {
                    self.nodes[place].reaches_head = true;
                }
            }
        }
    }
}

impl<'a> Node<'a> {
    /// Returns the node as an installed version.
    pub fn point(&self) -> Point<'a> {
        Point { name: self.name, version: self.entry.and_then(|e| e.version.as_ref()) }
    }
}

/// Returns everything that a channel contains or mentions.
fn nodes(channel: &Channel) -> Vec<Node<'_>> {
    let mut skippers: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in &channel.entries {
        for skipped in &entry.skips {
            skippers.entry(skipped).or_insert(&entry.name);
        }
    }
    let mut entries: Vec<&Entry> = channel.entries.iter().collect();
    entries.sort_by(|a, b| newest_first(a, b));
    let held: BTreeSet<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    let mentioned = entries.iter().flat_map(|e| e.replaces.iter().chain(&e.skips)).map(String::as_str);
    let mentioned: BTreeSet<&str> = mentioned.filter(|name| !name.is_empty() && !held.contains(name)).collect();
    let node = |name, entry| {
        let skipped_by = skippers.get(name).copied();
        Node { name, entry, skipped_by, next: None, reaches_head: false }
    };
    let held = entries.iter().map(|entry| node(entry.name.as_str(), Some(*entry)));
    held.chain(mentioned.into_iter().map(|name| node(name, None))).collect()
}

/// The order in which versions are listed: newest first, those without a version last.
pub fn newest_first(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    let versions = match (&a.version, &b.version) {
        (Some(a), Some(b)) => version::compare(b, a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    versions.then_with(|| a.name.cmp(&b.name))
}
