//! Versions that had an update path to a head in the old catalog and have none in the new one.

use std::collections::BTreeMap;

use super::super::channel::Point;
use super::super::graph::{End, Graph};
use super::super::{Package, Snapshot};
use super::{Installed, Stranded};

/// Checks every version that the old catalog contains or mentions.
pub(super) fn of_all(old: &Snapshot, new: &Snapshot) -> Vec<Stranded> {
    let mut stranded = Vec::new();
    for package in old.packages().values() {
        let now = Ways::new(new.package(&package.name));
        for channel in &package.channels {
            let before = Graph::new(channel);
            for node in before.nodes().iter().filter(|node| node.reaches_head) {
                let Some(reason) = now.obstacle(&package.name, &channel.name, node.point()) else { continue };
                stranded.push(Stranded {
                    package: package.name.clone(),
                    channel: channel.name.clone(),
                    name: node.name.to_owned(),
                    reason,
                    alternative_channels: now.alternative_channels(&channel.name, node.point()),
                    subscription: None,
                });
            }
        }
    }
    stranded
}

/// Checks the installed versions.
pub(super) fn of_installed(old: &Snapshot, new: &Snapshot, installed: &[Installed]) -> Vec<Stranded> {
    let mut packages: BTreeMap<&str, Vec<&Installed>> = BTreeMap::new();
    for one in installed {
        packages.entry(&one.package).or_default().push(one);
    }
    let mut stranded = Vec::new();
    for (name, installed) in packages {
        let (before, now) = (Ways::new(old.package(name)), Ways::new(new.package(name)));
        for Installed { subscription, package, channel, name, version } in installed {
            // If the version is unknown, the catalogs may contain it.
            let known = [&before, &now].into_iter().find_map(|ways| ways.version(name));
            let point = Point { name, version: version.as_ref().or(known) };
            if before.obstacle(package, channel, point).is_some() {
                continue;
            }
            let Some(reason) = now.obstacle(package, channel, point) else { continue };
            stranded.push(Stranded {
                package: package.clone(),
                channel: channel.clone(),
                name: name.clone(),
                reason,
                alternative_channels: now.alternative_channels(channel, point),
                subscription: Some(subscription.clone()),
            });
        }
    }
    stranded.sort_by(|a, b| (&a.subscription, &a.name).cmp(&(&b.subscription, &b.name)));
    stranded
}

/// The update graphs of a package.
struct Ways<'a> {
    package: Option<&'a Package>,
    graphs: Vec<Graph<'a>>,
}

impl<'a> Ways<'a> {
    fn new(package: Option<&'a Package>) -> Self {
        Self { package, graphs: package.into_iter().flat_map(|p| &p.channels).map(Graph::new).collect() }
    }

    /// Returns why a version has no update path to the head of the channel, or of any channel if the name is empty.
    fn obstacle(&self, package: &str, channel: &str, from: Point<'_>) -> Option<String> {
        let Some(found) = self.package else { return Some(format!("package {package} was removed")) };
        if channel.is_empty() {
            let default = found.channel(&found.default_channel).map_or("", |c| &c.name);
            let arrives = self.graphs.iter().any(|graph| obstacle(graph, from).is_none());
            let first =
                self.graphs.iter().find(|graph| graph.channel().name == default).or_else(|| self.graphs.first());
            return first.and_then(|graph| obstacle(graph, from)).filter(|_| !arrives);
        }
        match self.graphs.iter().find(|graph| graph.channel().name == channel) {
            Some(graph) => obstacle(graph, from),
            None => Some(format!("channel {channel} of package {package} was removed")),
        }
    }

    /// Returns other channels in which the version has an update path to the head.
    fn alternative_channels(&self, channel: &str, from: Point<'_>) -> Vec<String> {
        let others = self.graphs.iter().filter(|graph| graph.channel().name != channel);
        others.filter(|graph| obstacle(graph, from).is_none()).map(|graph| graph.channel().name.clone()).collect()
    }

    fn version(&self, name: &str) -> Option<&'a crate::version::Version> {
        self.package?.entries().find(|e| e.name == name)?.version.as_ref()
    }
}

fn obstacle(graph: &Graph<'_>, from: Point<'_>) -> Option<String> {
    match graph.walk(from).end {
        End::Head => None,
        End::Stuck { at, because } if at == from.name => Some(because),
        end => Some(end.to_string()),
    }
}
