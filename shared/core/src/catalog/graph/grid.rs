//! The update graphs of a package as one table: versions are rows, each once, the newest first; channels are columns.
//!
//! ```text
//!   Graph of each channel --cells--> state of each version in each channel, its update, why it has none
//!                         --links--> updates to one version by one kind of edge, drawn as one line in a lane beside the column
//! ```
//!
//! An update to a version from the next older one of its channel is a straight line within the column and needs no lane. Of updates that are
//! only declared, those that need more than [`DECLARED`] lanes are not drawn.

use std::collections::{BTreeMap, BTreeSet};

use super::drawing::{Look, appearance};
use super::{End, Graph, Hop, Node, Update};
use crate::catalog::channel::Point;
use crate::catalog::diff::Installed;
use crate::catalog::{Entry, Package};
use crate::version::{self, Version};

/// Maximum number of lanes of a column for updates that OLM never takes.
const DECLARED: usize = 6;

/// Versions of a package as rows, its channels as columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// The name of the package.
    pub package: String,
    /// The part of the names of versions that all of them begin with, such as `etcd.v`.
    pub prefix: String,
    /// Channels: the default channel, then those with the newest head.
    pub columns: Vec<Column>,
    /// Versions, the newest first.
    pub rows: Vec<Row>,
}

/// A channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Name of the channel.
    pub name: String,
    /// Whether it is the default channel of the package.
    pub is_default: bool,
    /// Whether it is deprecated.
    pub is_deprecated: bool,
    /// Why OLM chooses nothing from the channel.
    pub problem: Option<String>,
    pub(super) links: Vec<Link>,
    /// Number of lanes.
    pub(super) lanes: usize,
    /// Number of declared updates that are not drawn.
    pub(super) hidden: usize,
}

/// A version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Name of the bundle.
    pub name: String,
    /// Version as in the catalog, if the name does not contain it.
    pub version: Option<String>,
    /// Whether it is deprecated.
    pub is_deprecated: bool,
    /// The Subscriptions that have it installed, `namespace/name`.
    pub installed: Vec<String>,
    /// Its state in each channel; `None` if the channel does not mention it.
    pub cells: Vec<Option<Cell>>,
}

/// A version in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The state.
    pub look: Look,
    /// Name of the version that OLM updates it to, and by which edge.
    pub next: Option<(String, Update)>,
    /// The entry that skips it.
    pub skipped_by: Option<String>,
    /// Why its updates do not reach the head: a sentence without a full stop.
    pub reason: Option<String>,
    /// Whether a Subscription to this channel has it installed.
    pub is_installed: bool,
}

/// Updates to one version by one kind of edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) to: usize,
    pub(super) from: BTreeSet<usize>,
    pub(super) by: Update,
    /// Whether OLM takes the updates; otherwise they are only declared.
    pub(super) taken: bool,
    /// The lane; `None` for a straight line within the column.
    pub(super) lane: Option<usize>,
}

impl Grid {
    /// Computes the table of the channels of a package, with those of their versions for which `is_shown` returns true. Installed
    /// versions are marked, and added if no channel mentions them, as are `others`.
    pub fn new(
        package: &Package,
        graphs: &[Graph<'_>],
        is_shown: impl Fn(&Node<'_>) -> bool,
        installed: &[Installed],
        others: &[&Entry],
    ) -> Self {
        let installed: Vec<&Installed> = installed.iter().filter(|one| one.package == package.name).collect();
        let names = names(graphs, is_shown, &installed, others);
        let places: BTreeMap<&str, usize> = names.iter().enumerate().map(|(place, (name, _))| (*name, place)).collect();
        let mut order: Vec<(&Graph<'_>, Option<usize>)> =
            graphs.iter().map(|graph| (graph, places.get(graph.head()).copied())).collect();
        order.sort_by_key(|(graph, head)| {
            let name = graph.channel().name.as_str();
            (name != package.default_channel, head.unwrap_or(usize::MAX), name)
        });
        let mut rows: Vec<Row> = names.iter().map(|(name, _)| row(name, graphs, &installed)).collect();
        let mut columns = Vec::new();
        for (graph, _) in order {
            let channel = graph.channel();
            let is_default = channel.name == package.default_channel;
            for (row, (_, version)) in rows.iter_mut().zip(&names) {
                let here = installed.iter().filter(|one| one.name == row.name);
                let is_installed = here.clone().any(|one| one.channel == channel.name)
                    || is_default && here.clone().any(|one| one.channel.is_empty());
                let cell = cell(graph, &row.name, version.as_ref(), is_installed);
                row.cells.push(cell);
            }
            let mut column = Column {
                name: channel.name.clone(),
                is_default,
                is_deprecated: channel.deprecation.is_some(),
                problem: graph.problem().map(ToString::to_string),
                ..Column::default()
            };
            column.place(links(graph, &places), &rows);
            columns.push(column);
        }
        let prefix = prefix(&rows);
        Self { package: package.name.clone(), prefix, columns, rows }
    }

    /// Computes the table of the hops from one version in one channel, the last one on top.
    pub fn of_walk(package: &str, graph: &Graph<'_>, from: &str, hops: &[Hop<'_>]) -> Self {
        let names: Vec<&str> = hops.iter().rev().map(|hop| hop.to.name.as_str()).chain(std::iter::once(from)).collect();
        let mut rows: Vec<Row> = names.iter().map(|name| row(name, std::slice::from_ref(graph), &[])).collect();
        for (place, row) in rows.iter_mut().enumerate() {
            let next = place.checked_sub(1).map(|above| (names[above].to_owned(), hops[hops.len() - place].by));
            let look = graph.node(names[place]).map_or(Look::Absent, |node| appearance(graph, node));
            row.cells.push(Some(Cell { look, next, skipped_by: None, reason: None, is_installed: false }));
        }
        let link = |(place, hop): (usize, &Hop<'_>)| Link {
            to: place,
            from: BTreeSet::from([place + 1]),
            by: hop.by,
            taken: true,
            lane: None,
        };
        let links = hops.iter().rev().enumerate().map(link).collect();
        let column = Column { name: graph.channel().name.clone(), links, ..Column::default() };
        let prefix = prefix(&rows);
        Self { package: package.to_owned(), prefix, columns: vec![column], rows }
    }

    /// Returns the name of a version without the prefix of all names.
    pub fn label<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.prefix.as_str()).filter(|rest| !rest.is_empty()).unwrap_or(name)
    }

    /// Returns the channels in which updates of the version do not reach the head.
    pub fn stranded_in(&self, row: &Row) -> Vec<&str> {
        let cells = self.columns.iter().zip(&row.cells);
        let is_stranded = |cell: &Option<Cell>| cell.as_ref().is_some_and(|cell| cell.look == Look::Stranded);
        cells.filter(|(_, cell)| is_stranded(cell)).map(|(column, _)| column.name.as_str()).collect()
    }

    /// Returns what there is to note about a version, besides where it is installed.
    pub fn notes(&self, row: &Row) -> Vec<String> {
        let stranded = self.stranded_in(row);
        let mentioned = row.cells.iter().flatten().count();
        let mut notes = Vec::new();
        match &stranded[..] {
            [] => {}
            all if all.len() == mentioned => notes.push("stranded".to_owned()),
            [one] => notes.push(format!("stranded in {one}")),
            some => notes.push(format!("stranded in {} channels", some.len())),
        }
        if row.is_deprecated {
            notes.push("deprecated".to_owned());
        }
        notes.extend(row.version.as_ref().map(|version| format!("version {version}")));
        notes
    }

    /// Returns the number of versions.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no versions.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Column {
    /// Assigns lanes. Lines that need none are split off, and of declared updates only the shortest are shown.
    fn place(&mut self, links: Vec<Link>, rows: &[Row]) {
        let column = rows.first().map_or(0, |row| row.cells.len().saturating_sub(1));
        let members: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].cells[column].is_some()).collect();
        let below: BTreeMap<usize, usize> = members.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut placed = Vec::new();
        let mut others = Vec::new();
        let mut straight = BTreeSet::new();
        for mut link in links {
            if let Some(next) = below.get(&link.to).filter(|next| link.from.contains(next))
                && straight.insert(link.to)
            {
                link.from.remove(next);
                placed.push(Link { from: BTreeSet::from([*next]), lane: None, ..link.clone() });
            }
            if !link.from.is_empty() {
                others.push(link);
            }
        }
        others.sort_by_key(|link| (!link.taken, link.span(), link.to));
        // The rows at which each lane is in use.
        let mut lanes: Vec<Vec<(usize, usize)>> = Vec::new();
        let taken = others.iter().filter(|link| link.taken).count();
        let mut limit = usize::MAX;
        for (n, mut link) in others.into_iter().enumerate() {
            if n == taken {
                limit = lanes.len() + DECLARED;
            }
            let (top, bottom) = link.rows();
            // A line ends above the point at which the next one begins.
            let is_free = |used: &Vec<(usize, usize)>| used.iter().all(|(t, b)| bottom <= *t || *b <= top);
            let lane = lanes.iter().position(is_free).unwrap_or(lanes.len());
            if lane >= limit {
                self.hidden += link.from.len();
                continue;
            }
            if lane == lanes.len() {
                lanes.push(Vec::new());
            }
            lanes[lane].push((top, bottom));
            link.lane = Some(lane);
            placed.push(link);
        }
        self.lanes = lanes.len();
        self.links = placed;
    }
}

impl Link {
    /// Returns the first and the last row.
    pub(super) fn rows(&self) -> (usize, usize) {
        let first = self.from.first().copied().unwrap_or(self.to);
        let last = self.from.last().copied().unwrap_or(self.to);
        (first.min(self.to), last.max(self.to))
    }

    fn span(&self) -> usize {
        let (first, last) = self.rows();
        last - first
    }
}

/// Returns the names of all versions and their versions, the newest first, and those without a version last.
fn names<'g>(
    graphs: &'g [Graph<'g>],
    is_shown: impl Fn(&Node<'_>) -> bool,
    installed: &[&'g Installed],
    others: &[&'g Entry],
) -> Vec<(&'g str, Option<Version>)> {
    let mut names: BTreeMap<&str, Option<Version>> = BTreeMap::new();
    for node in graphs.iter().flat_map(Graph::nodes).filter(|node| is_shown(node)) {
        let known = names.entry(node.name).or_default();
        if let Some(version) = node.entry.and_then(|entry| entry.version.as_ref()) {
            *known = Some(version.clone());
        }
    }
    for one in installed {
        names.entry(&one.name).or_insert_with(|| one.version.clone());
    }
    for other in others {
        names.entry(&other.name).or_insert_with(|| other.version.clone());
    }
    // What no channel contains is placed by its name.
    let of_name = |name: &str| version::parse_tolerant(name.split_once(".v")?.1).ok();
    let mut names: Vec<(&str, Option<Version>)> =
        names.into_iter().map(|(name, version)| (name, version.or_else(|| of_name(name)))).collect();
    names.sort_by(|(a_name, a), (b_name, b)| {
        let versions = match (a, b) {
            (Some(a), Some(b)) => version::compare(b, a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        versions.then_with(|| a_name.cmp(b_name))
    });
    names
}

fn row(name: &str, graphs: &[Graph<'_>], installed: &[&Installed]) -> Row {
    let entries = || graphs.iter().filter_map(|graph| graph.node(name)?.entry);
    let version = entries().map(|entry| entry.version_text.clone()).find(|version| !name.contains(version.as_str()));
    let here = installed.iter().filter(|one| one.name == name);
    Row {
        name: name.to_owned(),
        version,
        is_deprecated: entries().any(|entry| entry.deprecation.is_some()),
        installed: here.map(|one| format!("{}/{}", one.subscription.namespace, one.subscription.name)).collect(),
        cells: Vec::new(),
    }
}

fn cell(graph: &Graph<'_>, name: &str, version: Option<&Version>, is_installed: bool) -> Option<Cell> {
    let node = graph.node(name);
    let point = match node {
        Some(node) => node.point(),
        // Installed, and not in the channel of its Subscription.
        None if is_installed => Point { name, version },
        None => return None,
    };
    let walk = graph.walk(point);
    let reason = Some(walk.end).filter(|end| *end != End::Head).map(|end| end.to_string());
    let look = match node {
        Some(node) => appearance(graph, node),
        None if reason.is_some() => Look::Stranded,
        None => Look::Absent,
    };
    Some(Cell {
        look,
        next: walk.hops.first().map(|hop| (hop.to.name.clone(), hop.by)),
        skipped_by: node.and_then(|node| node.skipped_by).map(str::to_owned),
        reason,
        is_installed,
    })
}

/// Returns the updates of a channel, by target and kind of edge: first those that OLM takes.
fn links(graph: &Graph<'_>, places: &BTreeMap<&str, usize>) -> Vec<Link> {
    let nodes = graph.nodes();
    let place = |name: &str| places.get(name).copied();
    let mut groups: BTreeMap<(bool, usize, Update), BTreeSet<usize>> = BTreeMap::new();
    for node in nodes {
        let Some(from) = place(node.name) else { continue };
        if let Some((to, by)) = node.next.and_then(|(next, by)| Some((place(nodes[next].name)?, by)))
            && to != from
        {
            groups.entry((false, to, by)).or_default().insert(from);
        }
        let Some(entry) = node.entry else { continue };
        let replaced = entry.replaces.iter().map(|name| (name, Update::Replaces));
        for (older, by) in replaced.chain(entry.skips.iter().map(|name| (name, Update::Skips))) {
            let Some((older, at)) = graph.node(older).zip(place(older)) else { continue };
            let is_taken = older.next.is_some_and(|(next, _)| nodes[next].name == node.name);
            if !is_taken && at != from {
                groups.entry((true, from, by)).or_default().insert(at);
            }
        }
    }
    let mut links = Vec::new();
    for ((is_declared, to, by), from) in groups {
        links.push(Link { to, from, by, taken: !is_declared, lane: None });
    }
    links
}

/// Returns what all names begin with, up to the version.
fn prefix(rows: &[Row]) -> String {
    let Some((first, others)) = rows.split_first() else { return String::new() };
    let Some((package, _)) = first.name.split_once(".v").filter(|_| !others.is_empty()) else { return String::new() };
    let prefix = format!("{package}.v");
    let is_common = others.iter().all(|row| row.name.starts_with(&prefix) && row.name.len() > prefix.len());
    if is_common { prefix } else { String::new() }
}
