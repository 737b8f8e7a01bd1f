//! The path of an upgrade: the InstallPlans up to the newest version, each after the one before.

use olm_core::api::subscription::Subscription;
use olm_core::catalog::channel::Point;
use olm_core::catalog::graph;
use olm_core::explain::{Explanation, Subject};
use olm_core::health::{Health, Operator};
use olm_core::version::{self, Range, Version};
use olm_core::world::{Reader, kind};

use crate::cli::{CliError, ErrorKind, Printer};
use crate::image;
use crate::installplan::explain;
use crate::observe::ClusterState;

/// The plans of an upgrade.
pub(super) struct Path {
    /// The explanation of the first plan.
    pub(super) explanation: Explanation,
    /// The plans in their order.
    pub(super) hops: Vec<Hop>,
}

/// A plan of an upgrade.
pub(super) struct Hop {
    /// The ClusterServiceVersion of the operator itself, with its version; `None` if the plan does not change it.
    pub(super) own: Option<(String, Option<Version>)>,
    /// All ClusterServiceVersions of the plan.
    pub(super) csvs: Vec<String>,
}

impl Hop {
    /// Returns the version of the operator after the plan.
    pub(super) fn label(&self) -> String {
        match &self.own {
            Some((_, Some(version))) => version.to_string(),
            Some((csv, None)) => csv.clone(),
            None => format!("({})", self.csvs.join(", ")),
        }
    }
}

/// Returns the installed version for messages.
pub(super) fn version_of(operator: &Operator) -> String {
    let installed = operator.installed.as_ref();
    let text =
        installed.map(|installed| if installed.version.is_empty() { &installed.csv } else { &installed.version });
    text.cloned().unwrap_or_else(|| "not installed".to_owned())
}

/// Returns whether an operator certainly has no upgrade of its own, according to catalogs that were read. A simulation of the cluster is then
/// unnecessary, unless another operator of the namespace has one: OLM resolves them together.
pub(super) fn is_newest(state: &ClusterState, operator: &Operator) -> bool {
    let Some(installed) = &operator.installed else { return false };
    let catalogs = explain::catalogs(state, &operator.namespace);
    let source = operator.catalog.split_once('/').map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    let package = source.and_then(|source| catalogs.get(&source)?.package(&operator.package));
    let version = version::parse(&installed.version).ok();
    let installed = Point { name: &installed.csv, version: version.as_ref() };
    operator.health == Health::Healthy
        && operator.next.is_none()
        && package.is_some_and(|package| graph::is_newest(package, &operator.channel, installed))
}

/// Computes the plans of the upgrade of an operator with a Subscription.
///
/// # Errors
/// The next plan cannot be explained.
pub(super) async fn path(
    state: &mut ClusterState,
    operator: &Operator,
    images: &image::Options,
    printer: &mut Printer,
) -> Result<Path, CliError> {
    let (namespace, name) = (operator.namespace.as_str(), operator.name.as_str());
    let subject = Subject::Subscription { namespace: namespace.to_owned(), name: name.to_owned() };
    crate::cli::source::read_catalogs(state, namespace, images, printer).await;
    let (explainer, explanation) = explain::explainer(state, &subject, images, printer).await?;
    let first: Vec<String> =
        explanation.csvs.iter().filter(|csv| csv.to.is_some()).map(|csv| csv.name.clone()).collect();
    let mut plans = Vec::new();
    if !first.is_empty() {
        plans.push(first);
        let next = explainer.following(&subject).map_err(|error| CliError::new(ErrorKind::Api, error.to_string()))?;
        plans.extend(next.into_iter().map(|next| next.csvs));
    }
    let subscription = Reader::new(&state.world).json(&kind::SUBSCRIPTION, namespace, name).map(Subscription::new);
    let catalogs = explain::catalogs(state, namespace);
    let package = subscription.and_then(|subscription| {
        let source = (subscription.source_namespace().to_owned(), subscription.source().to_owned());
        catalogs.get(&source)?.package(&operator.package)
    });
    let own = |csv: &String| package?.entries().find(|entry| entry.name == *csv);
    let hops = plans.into_iter().map(|csvs| {
        let own = csvs.iter().find_map(own).map(|entry| (entry.name.clone(), entry.version.clone()));
        // Without the content of the catalog, the plan that waits states what the Subscription installs next.
        let next = || operator.next.as_ref().filter(|next| csvs.contains(&next.csv));
        Hop { own: own.or_else(|| next().map(|next| (next.csv.clone(), version::parse(&next.version).ok()))), csvs }
    });
    Ok(Path { hops: hops.collect(), explanation })
}

/// Returns the index of the last plan to approve; `None` if the operator is up to date.
///
/// # Errors
/// No plan leads to a version in the range.
pub(super) fn last_hop(to: Option<&Range>, path: &Path, operator: &Operator) -> Result<Option<usize>, CliError> {
    let Some(range) = to else { return Ok(path.hops.len().checked_sub(1)) };
    let is_in_range = |hop: &Hop| matches!(&hop.own, Some((_, Some(version))) if range.contains(version));
    if let Some(last) = path.hops.iter().rposition(is_in_range) {
        return Ok(Some(last));
    }
    let installed = operator.installed.as_ref().and_then(|installed| version::parse(&installed.version).ok());
    if installed.is_some_and(|installed| range.contains(&installed)) {
        return Ok(None);
    }
    let reachable: Vec<String> = path.hops.iter().map(Hop::label).collect();
    let reachable = if reachable.is_empty() { "none".to_owned() } else { reachable.join(", ") };
    Err(CliError::input(format!(
        "no upgrade of {} leads to version {range}; versions on the path: {reachable}",
        operator.name
    ))
    .hint("kubectl olm catalog graph shows the upgrades of a package"))
}
