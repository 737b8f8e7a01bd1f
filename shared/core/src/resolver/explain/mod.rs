//! Explains the result of a resolution, as data and as text.
//!
//! ```text
//!   Inputs --explain--> Explanation
//!     chosen    each bundle: what requires it, which newer or other bundle was not chosen, and why
//!     failure   the rules that contradict each other as a derivation, excluded bundles with reasons, and repairs
//! ```
//!
//! *Guarantees*: everything that is reported as impossible was tried, and so was every suggested repair.

mod chosen;
mod failed;
mod repair;
mod text;

use serde::Serialize;

use super::candidates::Offer;
use super::problem::{self, Problem, Variable};
use super::rule::{Formula, Rule};
use super::solve::{self, Unsolved};
use super::{Failure, Inputs, RequestedSubscription};
use crate::catalog::channel::{self, Update};
use crate::catalog::{Entry, Package};

pub use repair::{Edit, Repair, apply};

/// The result of a resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "camelCase")]
pub enum Explanation {
    /// A resolution exists.
    Resolved {
        /// The bundles chosen, by name, without those that are already installed.
        bundles: Vec<Explained>,
        /// Problems that the chosen bundles will have.
        warnings: Vec<Statement>,
    },
    /// No resolution exists.
    Failed {
        /// The message on the Subscriptions, in OLM's words.
        message: String,
        /// The derivation: these contradict each other.
        reasons: Vec<Statement>,
        /// Bundles that might have been chosen, and why they were excluded.
        excluded: Vec<Excluded>,
        /// Changes that make a resolution possible. Each was tried.
        repairs: Vec<Repair>,
    },
}

impl Explanation {
    /// Returns whether a resolution exists.
    pub fn is_resolved(&self) -> bool {
        matches!(self, Self::Resolved { .. })
    }
}

/// A bundle in a channel of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// Package.
    pub package: String,
    /// Name.
    pub name: String,
    /// Version, as in the catalog.
    pub version: String,
    /// Channel; empty for an existing ClusterServiceVersion.
    pub channel: String,
    /// Name of the catalog; empty for an existing ClusterServiceVersion.
    pub catalog: String,
    /// Namespace of the catalog.
    pub catalog_namespace: String,
}

/// A bundle that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The bundle.
    #[serde(flatten)]
    pub bundle: Bundle,
    /// The installed ClusterServiceVersion that it replaces; empty when none.
    pub replaces: String,
    /// What requires it.
    pub reasons: Vec<Statement>,
    /// Bundles that were not chosen instead.
    pub rejected: Vec<Excluded>,
}

/// A bundle that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Excluded {
    /// The bundle.
    #[serde(flatten)]
    pub bundle: Bundle,
    /// The reason.
    pub reason: Statement,
}

/// A machine-readable reason with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// The kind of reason.
    pub reason: Why,
    /// A sentence without a full stop.
    pub text: String,
}

impl Statement {
    fn new(reason: Why, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

/// Kinds of reasons, in the order of a derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// A catalog cannot be used.
    BrokenCatalog,
    /// An object of a catalog or of the namespace cannot be read.
    Unreadable,
    /// A Subscription requires it.
    Subscription,
    /// A Subscription names a catalog that offers nothing.
    NoCatalog,
    /// A Subscription names a package that its catalog does not have.
    NoPackage,
    /// A Subscription names a channel that its package does not have.
    NoChannel,
    /// A Subscription names a startingCSV that its channel does not have.
    NoStartingCsv,
    /// The candidates of a Subscription.
    Candidates,
    /// A ClusterServiceVersion exists that no Subscription manages.
    Unsubscribed,
    /// A bundle requires another one.
    Requires,
    /// A bundle is deprecated by its own properties.
    Deprecated,
    /// A bundle replaces an installed one.
    Replaces,
    /// A package can have only one operator.
    OnePackage,
    /// An API can have only one provider.
    OneProvider,
    /// It is not in the required channel.
    WrongChannel,
    /// It is not in the required catalog.
    WrongCatalog,
    /// A Subscription starts with another one.
    NotStartingCsv,
    /// It does not update what is installed.
    NoPath,
    /// Its version is not requested.
    WrongVersion,
    /// Another entry of its channel skips it.
    Skipped,
    /// It does not meet the requirement.
    DoesNotMeet,
    /// It is available, but the chosen one is preferred.
    LessPreferred,
    /// Choosing it would violate a rule.
    Contradiction,
    /// The last upgrade is still in progress.
    Busy,
    /// The OperatorGroup requires an install mode that it does not support.
    InstallModes,
}

/// Explains the result of [`super::resolve`] for these inputs. `targets` is the OperatorGroup's value of the annotation
/// `olm.targetNamespaces`, if known.
pub fn explain(inputs: &Inputs<'_>, targets: Option<&str>) -> Explanation {
    let problem = match problem::build(inputs) {
        Ok(problem) => problem,
        Err(failure) => return failed::unreadable(inputs, &failure),
    };
    match solve::solve(&problem.rules, problem.variables.len()) {
        Ok(order) => {
            let context = Context { inputs, problem: &problem };
            let bundles = chosen::explain(&context, &order);
            let warnings = targets.map(|t| chosen::warnings(&context, &order, t)).unwrap_or_default();
            Explanation::Resolved { bundles, warnings }
        }
        Err(Unsolved::Contradiction(core)) => failed::contradiction(&Context { inputs, problem: &problem }, &core),
        Err(Unsolved::GaveUp) => failed::unreadable(inputs, &super::failure(&problem, &Unsolved::GaveUp)),
    }
}

/// The inputs of an explanation.
struct Context<'e, 'i> {
    inputs: &'i Inputs<'i>,
    problem: &'e Problem<'i>,
}

impl<'i> Context<'_, 'i> {
    fn requested(&self, subscription: usize) -> &'i RequestedSubscription<'i> {
        &self.inputs.subscriptions[subscription]
    }

    /// Returns the Subscription for messages.
    fn subscription(&self, subscription: usize) -> String {
        format!("Subscription {}/{}", self.inputs.namespace, self.requested(subscription).name)
    }

    /// Returns a variable for messages.
    fn name(&self, variable: usize) -> String {
        match self.problem.variables[variable] {
            Variable::Subscription(subscription) => self.subscription(subscription),
            Variable::Installed(installed) => format!("{} (installed)", installed.entry.name),
            Variable::Bundle(offer) => name(&offer),
        }
    }

    fn names(&self, variables: impl IntoIterator<Item = usize>, word: &str) -> String {
        let mut names: Vec<String> = Vec::new();
        for name in variables.into_iter().map(|v| self.name(v)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        shortened(&names, word)
    }

    /// Returns what a Subscription requires, in words.
    fn wish(&self, subscription: usize) -> String {
        let RequestedSubscription { package, channel, source, source_namespace, starting_csv, .. } =
            *self.requested(subscription);
        let mut wish = format!("package {package}");
        if let Some(range) = self.requested(subscription).range {
            wish += &format!(" in version range {range}");
        }
        if !channel.is_empty() {
            wish += &format!(" from channel {channel}");
        }
        if !source.is_empty() {
            wish += &format!(" of catalog {source_namespace}/{source}");
        }
        if !starting_csv.is_empty() {
            wish += &format!(", starting with {starting_csv}");
        }
        wish
    }

    /// Returns why a bundle of its package is not a candidate of a Subscription; `None` when it is one.
    fn exclusion(&self, subscription: usize, offer: &Offer<'i>) -> Option<Statement> {
        let wanted = self.requested(subscription);
        let entry = offer.entry;
        let catalog = offer.catalog?;
        let who = self.subscription(subscription);
        if !wanted.takes_from(catalog.name, catalog.namespace) {
            let text = format!("{who} is restricted to catalog {}/{}", wanted.source_namespace, wanted.source);
            return Some(Statement::new(Why::WrongCatalog, text));
        }
        if !wanted.channel.is_empty() && entry.channel != wanted.channel {
            return Some(Statement::new(
                Why::WrongChannel,
                format!("{who} is restricted to channel {}", wanted.channel),
            ));
        }
        if let Some(range) = wanted.range.filter(|r| !entry.version.as_ref().is_some_and(|v| r.contains(v))) {
            return Some(Statement::new(Why::WrongVersion, format!("the requested version range is {range}")));
        }
        let installed = self.inputs.installed.iter().find(|i| i.entry.name == wanted.installed_csv);
        let Some(installed) = installed else {
            if !wanted.starting_csv.is_empty() && entry.name != wanted.starting_csv {
                let text = format!("{who} starts with {} (spec.startingCSV)", wanted.starting_csv);
                return Some(Statement::new(Why::NotStartingCsv, text));
            }
            return skipper(offer);
        };
        let current = &installed.entry;
        if wanted.busy {
            let text = format!("the upgrade to {} is still in progress", current.name);
            return Some(Statement::new(Why::Busy, text));
        }
        if channel::update(entry, current.into()).is_none() {
            let text =
                format!("it neither replaces nor skips the installed {}{}", current.name, Self::hop(offer, current));
            return Some(Statement::new(Why::NoPath, text));
        }
        skipper(offer)
    }

    /// Describes the path from the installed version to an entry, when it has several hops.
    fn hop(offer: &Offer<'_>, current: &Entry) -> String {
        let found = offer.catalog.and_then(|c| c.snapshot.channel(&offer.entry.package, &offer.entry.channel));
        let Some(known) = found else { return String::new() };
        let mut next = Some(offer.entry);
        // A path has at most as many hops as the channel has entries.
        for _ in &known.entries {
            let Some(replaced) = next.and_then(|e| e.replaces.as_deref()).and_then(|name| known.entry(name)) else {
                break;
            };
            if channel::update(replaced, current.into()).is_some() {
                return format!("; {} has to be installed first", replaced.name);
            }
            next = Some(replaced);
        }
        String::new()
    }

    /// Returns all bundles of a package in all catalogs, newest first.
    fn of_package(&self, package: &str) -> Vec<Offer<'i>> {
        let mut offers: Vec<Offer<'i>> = Vec::new();
        for catalog in &self.inputs.catalogs {
            let entries = catalog.snapshot.package(package).into_iter().flat_map(Package::entries);
            offers.extend(entries.map(|e| Offer::new(*catalog, e)));
        }
        offers.sort_by(|a, b| newest_first(a.entry, b.entry));
        offers
    }
}

fn newest_first(a: &Entry, b: &Entry) -> std::cmp::Ordering {
    match (&a.version, &b.version) {
        (Some(a), Some(b)) => crate::version::compare(b, a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

/// Returns a bundle for messages: its name and origin.
fn name(offer: &Offer<'_>) -> String {
    let entry = offer.entry;
    match offer.catalog {
        Some(catalog) => {
            format!("{} (channel {} of {}/{})", entry.name, entry.channel, catalog.namespace, catalog.name)
        }
        None => format!("{} (installed)", entry.name),
    }
}

fn bundle(offer: &Offer<'_>) -> Bundle {
    let (catalog, catalog_namespace) = offer.catalog.map_or(("", ""), |c| (c.name, c.namespace));
    let entry = offer.entry;
    Bundle {
        package: entry.package.clone(),
        name: entry.name.clone(),
        version: entry.version_text.clone(),
        channel: entry.channel.clone(),
        catalog: catalog.to_owned(),
        catalog_namespace: catalog_namespace.to_owned(),
    }
}

/// Describes an update.
fn update(entry: &Entry, current: &Entry) -> String {
    let name = &current.name;
    match channel::update(entry, current.into()) {
        Some(Update::Replaces) => format!("it replaces the installed {name}"),
        Some(Update::Skips) => format!("it skips the installed {name}"),
        Some(Update::SkipRange) => {
            let range = entry.skip_range.as_deref().unwrap_or_default();
            format!("its skipRange {range:?} covers the installed {name}")
        }
        None => format!("{name} is installed"),
    }
}

/// Joins names; of many only the first ones.
fn shortened(names: &[String], word: &str) -> String {
    const SHOWN: usize = 6;
    if names.len() <= SHOWN + 1 {
        return problem::enumerate(names, word);
    }
    format!("{} {word} {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
}

/// Returns the entry of its channel that skips it, if any.
fn skipper(offer: &Offer<'_>) -> Option<Statement> {
    let entry = offer.entry;
    let channel = offer.catalog?.snapshot.channel(&entry.package, &entry.channel)?;
    let skipper = channel.entries.iter().find(|e| e.skips.contains(&entry.name))?;
    Some(Statement::new(Why::Skipped, format!("{} skips it", skipper.name)))
}
