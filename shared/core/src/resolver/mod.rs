//! Which bundles the Subscriptions of a namespace get (reference/catalog-operator.md §3).
//!
//! ```text
//!   Inputs { Subscriptions, catalogs, installed CSVs }
//!     --problem-->  variables and rules   (a bundle may be chosen; a Subscription exists; at most one provider of an API; …)
//!     --solve-->    the variables chosen, or the rules that contradict each other
//!     -->           Resolution { bundles to install } | Failure { OLM's sentences }
//! ```
//!
//! `solve` sees numbers and rules, nothing of bundles; `sat` is the seam for another engine.

mod problem;
mod sat;
mod solve;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::catalog::{Entry, Snapshot};

/// What a resolution is made from.
#[derive(Debug, Default)]
pub struct Inputs<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// Its Subscriptions, by name.
    pub subscriptions: Vec<Wanted<'a>>,
    /// The catalogs on offer.
    pub catalogs: Vec<Catalog<'a>>,
    /// The ClusterServiceVersions of the namespace that are no copies, by name.
    pub installed: Vec<Installed>,
}

/// A Subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// `spec.name`
    pub package: &'a str,
    /// `spec.channel`; empty means any.
    pub channel: &'a str,
    /// `spec.source`
    pub source: &'a str,
    /// `spec.sourceNamespace`
    pub source_namespace: &'a str,
    /// `spec.startingCSV`
    pub starting_csv: &'a str,
    /// `status.installedCSV`
    pub installed_csv: &'a str,
    /// Is its last upgrade still under way, so that it must not be upgraded further?
    pub busy: bool,
}

impl Wanted<'_> {
    /// Does it take bundles from the catalog of that name and namespace? One that names no catalog takes them from all.
    pub fn takes_from(&self, name: &str, namespace: &str) -> bool {
        self.source.is_empty() && self.source_namespace.is_empty()
            || self.source == name && self.source_namespace == namespace
    }
}

/// A catalog.
#[derive(Clone, Copy, Debug)]
pub struct Catalog<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// `spec.priority`: higher is preferred.
    pub priority: i64,
    /// Its content.
    pub snapshot: &'a Snapshot,
}

/// A ClusterServiceVersion that is there.
#[derive(Clone, Debug)]
pub struct Installed {
    /// What it is, as a catalog would have it.
    pub entry: Entry,
    /// Does a Subscription name it as installed?
    pub subscribed: bool,
}

/// What is to be installed, by name.
#[derive(Debug, Default)]
pub struct Resolution<'a> {
    /// The bundles chosen, which may be installed already.
    pub bundles: Vec<Chosen<'a>>,
}

/// A bundle chosen.
#[derive(Clone, Debug)]
pub struct Chosen<'a> {
    /// Where from.
    pub catalog: Catalog<'a>,
    /// What.
    pub entry: &'a Entry,
    /// The installed ClusterServiceVersion that it replaces; empty when none.
    pub replaces: String,
}

/// Why there is no resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The rules contradict each other: the smallest set of them that does, sorted.
    #[error("constraints not satisfiable{}{}", if .0.is_empty() { "" } else { ": " }, .0.join(", "))]
    Unsatisfiable(Vec<String>),
    /// Something could not be read.
    #[error("{0}")]
    Error(String),
}

/// Resolves the Subscriptions of one namespace.
pub fn resolve<'a>(inputs: &Inputs<'a>) -> Result<Resolution<'a>, Failure> {
    let problem = problem::build(inputs)?;
    let chosen = solve::solve(&problem.rules, problem.bundles.len()).map_err(|core| {
        let messages: BTreeSet<&String> = core.iter().map(|rule| &problem.rules[*rule].message).collect();
        Failure::Unsatisfiable(messages.into_iter().cloned().collect())
    })?;
    let mut bundles: Vec<Chosen<'a>> =
        chosen.into_iter().filter_map(|variable| problem.bundles[variable].clone()).collect();
    bundles.sort_by(|a, b| {
        let key =
            |c: &Chosen<'a>| (c.entry.name.as_str(), c.catalog.namespace, c.catalog.name, c.entry.channel.as_str());
        key(a).cmp(&key(b))
    });
    Ok(Resolution { bundles })
}
