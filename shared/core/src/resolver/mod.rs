//! Determines which bundles the Subscriptions of a namespace get (olm-behaviour/subscription.md#resolution).
//!
//! ```text
//!   Inputs { Subscriptions, catalogs, installed CSVs }
//!     --problem-->  variables and rules   (a bundle may be chosen; a Subscription exists; at most one provider of an API; …)
//!     --solve-->    the variables chosen, or the rules that contradict each other
//!     --explain-->  reasons for and against bundles       (and repairs when there is no resolution)
//!     -->           Resolution { bundles to install } | Failure { OLM's messages }
//! ```
//!
//! `solve` works on numbers and rules without knowledge of bundles; `sat` is the interface for another engine. `search`, on
//! a `logic_circuit` and an `engine` of its own, arrives at OLM's choice where choices conflict.

mod branching;
mod candidates;
mod engine;
pub mod explain;
mod installed;
mod logic_circuit;
mod problem;
mod rule;
mod sat;
mod search;
mod solve;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use self::problem::{Problem, Variable};
use self::solve::Unsolved;
use crate::catalog::{Entry, Snapshot};
use crate::version::Range;

/// The inputs of a resolution.
#[derive(Clone, Debug, Default)]
pub struct Inputs<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// Its Subscriptions, by name.
    pub subscriptions: Vec<RequestedSubscription<'a>>,
    /// The available catalogs.
    pub catalogs: Vec<Catalog<'a>>,
    /// Catalogs that cannot be used. Each of them prevents every resolution, even without a Subscription to it, as in OLM.
    pub broken: Vec<Broken<'a>>,
    /// The ClusterServiceVersions of the namespace that are not copies, by name.
    pub installed: Vec<Installed>,
}

/// A catalog that cannot be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Broken<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The reason: `failed to list bundles: …`.
    pub why: String,
}

impl<'a> Broken<'a> {
    /// Returns the catalog of what is installed in a namespace, as OLM's resolver models it.
    pub fn existing(namespace: &'a str, why: String) -> Self {
        Self { name: "@existing", namespace, why }
    }
}

impl fmt::Display for Broken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, namespace, why } = self;
        write!(f, "error using catalogsource {namespace}/{name}: {why}")
    }
}

/// A Subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestedSubscription<'a> {
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
    /// Requested version range; a Subscription has no such field.
    pub range: Option<&'a Range>,
    /// Whether its last upgrade is still in progress, so that it must not be upgraded further.
    pub busy: bool,
}

impl RequestedSubscription<'_> {
    /// Returns whether it takes bundles from the catalog of that name and namespace. Without a catalog it takes them from
    /// all.
    pub fn takes_from(&self, name: &str, namespace: &str) -> bool {
        self.takes_from_all() || self.source == name && self.source_namespace == namespace
    }

    /// Returns whether it names no catalog.
    fn takes_from_all(&self) -> bool {
        self.source.is_empty() && self.source_namespace.is_empty()
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

/// An existing ClusterServiceVersion.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The ClusterServiceVersion as a catalog entry.
    pub entry: Entry,
    /// Whether a Subscription names it as installed.
    pub subscribed: bool,
}

/// What is to be installed, by name.
#[derive(Debug, Default)]
pub struct Resolution<'a> {
    /// The bundles chosen, which may already be installed.
    pub bundles: Vec<Chosen<'a>>,
}

/// A chosen bundle.
#[derive(Clone, Debug)]
pub struct Chosen<'a> {
    /// Its catalog.
    pub catalog: Catalog<'a>,
    /// Its entry.
    pub entry: &'a Entry,
    /// The ClusterServiceVersion that it replaces: the installed one, or the one in the catalog; empty when none.
    pub replaces: &'a str,
}

/// Why there is no resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The rules contradict each other: a minimal set of contradicting rules, sorted.
    #[error("constraints not satisfiable{}{}", if .0.is_empty() { "" } else { ": " }, .0.join(", "))]
    Unsatisfiable(Vec<String>),
    /// An object could not be read.
    #[error("{0}")]
    Error(String),
}

/// Resolves the Subscriptions of one namespace.
///
/// # Errors
/// The rules contradict each other, or an object could not be read.
pub fn resolve<'i>(inputs: &'i Inputs<'_>) -> Result<Resolution<'i>, Failure> {
    let problem = problem::build(inputs)?;
    let chosen =
        solve::solve(&problem.rules, problem.variables.len()).map_err(|unsolved| failure(&problem, &unsolved))?;
    let mut bundles: Vec<Chosen<'i>> = chosen
        .into_iter()
        .filter_map(|variable| match problem.variables[variable] {
            Variable::Bundle(offer) => Some(Chosen {
                catalog: offer.catalog?,
                entry: offer.entry,
                replaces: offer.over.or(offer.entry.replaces.as_deref()).unwrap_or_default(),
            }),
            Variable::Installed(_) | Variable::Subscription(_) => None,
        })
        .collect();
    bundles.sort_by(|a, b| {
        let key =
            |c: &Chosen<'i>| (c.entry.name.as_str(), c.catalog.namespace, c.catalog.name, c.entry.channel.as_str());
        key(a).cmp(&key(b))
    });
    Ok(Resolution { bundles })
}

/// Returns why there is no resolution.
fn failure(problem: &Problem<'_>, unsolved: &Unsolved) -> Failure {
    match unsolved {
        Unsolved::Contradiction(core) => unsatisfiable(problem, core),
        Unsolved::GaveUp => Failure::Error(format!(
            "the constraints of the bundles that these Subscriptions could get are too hard: no answer was found within {} conflicts",
            sat::CONFLICTS
        )),
    }
}

/// Returns the rules of a contradiction, in OLM's words.
fn unsatisfiable(problem: &Problem<'_>, core: &[usize]) -> Failure {
    let messages: BTreeSet<&String> = core.iter().map(|rule| &problem.rules[*rule].message).collect();
    Failure::Unsatisfiable(messages.into_iter().cloned().collect())
}
