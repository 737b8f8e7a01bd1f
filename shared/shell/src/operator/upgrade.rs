//! `kubectl olm operator upgrade`: upgrades operators one InstallPlan at a time.
//!
//! ```text
//!   for each operator:  healthy? --explainer--> the plans up to the newest version, or up to one in a range
//!     for each plan:    safe, or agreed to? --> settle: approve, wait for Succeeded --> read again
//! ```
//!
//! *Guarantees*: every plan is explained on the state that its predecessor left. The first operator that is not healthy,
//! and the first plan that is not safe, end the upgrade. A repeated command continues.

use std::time::Duration;

use olm_core::api::subscription::Subscription;
use olm_core::explain::{Explanation, Subject, VerdictResult};
use olm_core::health::{Health, Operator};
pub use olm_core::version::Range;
use olm_core::version::{self, Version};
use olm_core::world::{Reader, kind};

use super::lookup::{self, is_named};
use super::settle::{Target, settle};
use super::watch::state as state_of;
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::prompt::confirm;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
use crate::installplan::explain::{self, summary};
use crate::installplan::policy::{Refusal, Terms};
use crate::observe::{ClusterState, ReadScope};
pub use crate::registry::local::CatalogDirectory;

/// What to upgrade, and how far.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// Catalogs in directories.
    pub catalogs: Vec<CatalogDirectory>,
    /// The namespaces.
    pub namespaces: NamespaceFlags,
    /// The operators; empty for all.
    pub names: Vec<String>,
    /// The versions at which to stop; `None` for the newest.
    pub to: Option<Range>,
    /// Whether to print only the path of the upgrade.
    pub path: bool,
    /// The conditions that each plan must meet.
    pub terms: Terms,
    /// Whether plans that need a decision are approved without a prompt.
    pub accept_risks: bool,
    /// How long to wait for each plan; `None` for as long as it can still succeed.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompts.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// How images are pulled.
    pub images: image::Options,
}

/// Parses a range of versions, or one version.
///
/// # Errors
/// The text is neither.
pub fn range(text: &str) -> Result<Range, String> {
    Range::parse_or_exact(text)
        .map_err(|error| format!("invalid version range: {error}; write it as in catalogs: >=1.2.0 <2.0.0"))
}

/// The plans of an upgrade.
struct Path {
    explanation: Explanation,
    /// The versions of the operator after each plan, and all ClusterServiceVersions of the plan.
    hops: Vec<Hop>,
}

struct Hop {
    /// The ClusterServiceVersion of the operator itself, with its version; `None` if the plan does not change it.
    own: Option<(String, Option<Version>)>,
    csvs: Vec<String>,
}

/// Upgrades the operators. The outcome is negative if the user declines.
///
/// # Errors
/// An operator does not exist, is not healthy or has no such version, or a plan is not safe or does not succeed.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if options.to.is_some() && options.names.len() != 1 {
        return Err(CliError::usage("--to is a range of versions of one operator").hint("specify the operator"));
    }
    block_on(async {
        let state = read(options, &options.namespaces, printer).await?;
        let mut targets: Vec<(String, String)> = Vec::new();
        let operators = lookup::operators(&state)?;
        for name in &options.names {
            let name = bare(name, "subscription")?;
            let found = operators.iter().find(|operator| is_named(operator, name));
            let found = found.ok_or_else(|| lookup::not_found(name, state.namespace.as_deref()))?;
            if !found.subscribed {
                return Err(CliError::new(
                    ErrorKind::Api,
                    format!("operator {name} has no Subscription, so no catalog updates it"),
                )
                .hint("delete it and install its package: kubectl olm operator install PACKAGE"));
            }
            targets.push((found.namespace.clone(), found.name.clone()));
        }
        if options.names.is_empty() {
            let subscribed = operators.iter().filter(|operator| operator.subscribed);
            targets.extend(subscribed.map(|operator| (operator.namespace.clone(), operator.name.clone())));
        }
        if targets.is_empty() {
            printer.talk("No operators with a Subscription found");
        }
        for (namespace, name) in targets {
            if Box::pin(upgrade(options, &namespace, &name, printer)).await? == Outcome::Negative {
                return Ok(Outcome::Negative);
            }
        }
        Ok(Outcome::Done)
    })
}

async fn read(options: &Options, namespaces: &NamespaceFlags, printer: &mut Printer) -> Result<ClusterState, CliError> {
    let source =
        SourceFlags { cluster: options.cluster.clone(), catalogs: options.catalogs.clone(), ..SourceFlags::default() };
    source.read(namespaces, &[], ReadScope::Planning, printer).await
}

/// Upgrades one operator.
async fn upgrade(options: &Options, namespace: &str, name: &str, printer: &mut Printer) -> Result<Outcome, CliError> {
    let within = NamespaceFlags { namespace: Some(namespace.to_owned()), all_namespaces: false };
    let target = Target {
        cluster: &options.cluster,
        namespace,
        name,
        csv: None,
        terms: &options.terms,
        images: &options.images,
        wait: true,
        timeout: options.timeout,
        yes: options.yes,
    };
    let terms = options.terms.understood()?;
    let mut is_first = true;
    loop {
        let mut state = read(options, &within, printer).await?;
        let operator = lookup::operators(&state)?.into_iter().find(|operator| operator.name == name);
        let operator = operator.ok_or_else(|| lookup::not_found(name, Some(namespace)))?;
        let installed = version_of(&operator);
        match operator.health {
            Health::Blocked => return Err(unhealthy(&operator)),
            Health::Progressing if options.dry_run == DryRun::None && !options.path => {
                // A plan that needs approval is explained first, so only the other ones are waited for.
                let Some(api) = state.api() else { return Ok(Outcome::Done) };
                settle(api, target, "", printer).await?;
                continue;
            }
            _ => {}
        }
        let path = path(options, &mut state, namespace, name, &operator, printer).await?;
        let Some(last) = last_hop(options, &path, &operator)? else {
            printer.line(format_args!("operator/{name} up to date: {installed}"))?;
            return Ok(Outcome::Done);
        };
        if is_first || options.path {
            let versions = path.hops[..=last].iter().map(Hop::label);
            let versions: Vec<String> = std::iter::once(installed.clone()).chain(versions).collect();
            let words = format!("operator/{name} in namespace {namespace}: {}", versions.join(" -> "));
            if options.path {
                printer.line(words)?;
                return Ok(Outcome::Done);
            }
            printer.talk(words);
        }
        is_first = false;
        summary(&path.explanation).lines().for_each(|line| printer.talk(format_args!("  {line}")));
        if let Some(Refusal { why, hint }) = terms.refusal_in_advance(&path.explanation)? {
            let error = CliError::new(ErrorKind::Api, format!("{name} is not upgraded: {why}"));
            return Err(if hint.is_empty() { error } else { error.hint(hint) });
        }
        let needs_decision = path.explanation.verdict.result != VerdictResult::Safe;
        if options.yes && needs_decision && !options.accept_risks && options.terms.policies.is_empty() {
            return Err(risky(name, namespace, &path.explanation));
        }
        let hop = &path.hops[0];
        if options.dry_run != DryRun::None {
            printer.line(format_args!("operator/{name} upgraded to {}{}", hop.label(), options.dry_run.note()))?;
            return Ok(Outcome::Done);
        }
        if !confirm(printer, &format!("Upgrade {name} to {}?", hop.label()), options.yes)? {
            printer.talk("Nothing was approved");
            return Ok(Outcome::Negative);
        }
        let Some(api) = state.api() else { return Ok(Outcome::Done) };
        let own = hop.own.as_ref().map(|(csv, _)| csv.as_str());
        let target = Target { csv: own, ..target };
        if settle(api, target, &path.explanation.hash, printer).await?.is_none() {
            return Ok(Outcome::Negative);
        }
        printer.line(format_args!("operator/{name} upgraded to {}", hop.label()))?;
        printer.flush()?;
        if last == 0 {
            return Ok(Outcome::Done);
        }
    }
}

impl Hop {
    fn label(&self) -> String {
        match &self.own {
            Some((_, Some(version))) => version.to_string(),
            Some((csv, None)) => csv.clone(),
            None => format!("({})", self.csvs.join(", ")),
        }
    }
}

fn version_of(operator: &Operator) -> String {
    let installed = operator.installed.as_ref();
    let text =
        installed.map(|installed| if installed.version.is_empty() { &installed.csv } else { &installed.version });
    text.cloned().unwrap_or_else(|| "not installed".to_owned())
}

fn unhealthy(operator: &Operator) -> CliError {
    let error = CliError::new(
        ErrorKind::Api,
        format!("{} of namespace {} is not healthy: {}", operator.name, operator.namespace, state_of(operator)),
    );
    let hint = operator.reason.as_ref().and_then(olm_core::plan::Reason::hint);
    hint.into_iter().chain(operator.command.clone()).fold(error, CliError::hint)
}

fn risky(name: &str, namespace: &str, explanation: &Explanation) -> CliError {
    let reasons = explanation.verdict.reasons.iter().filter(|because| because.result != VerdictResult::Safe);
    let reasons: Vec<&str> = reasons.map(|because| because.message.as_str()).collect();
    CliError::new(ErrorKind::Api, format!("{name} is not upgraded: the plan needs a decision: {}", reasons.join("; ")))
        .hint(format!("review it: kubectl olm install-plan explain --subscription {name} -n {namespace}"))
        .hint("to upgrade anyway, pass --accept-risks, or state with --if what is acceptable")
}

/// Computes the plans of the upgrade.
async fn path(
    options: &Options,
    state: &mut ClusterState,
    namespace: &str,
    name: &str,
    operator: &Operator,
    printer: &mut Printer,
) -> Result<Path, CliError> {
    let subject = Subject::Subscription { namespace: namespace.to_owned(), name: name.to_owned() };
    crate::cli::source::read_catalogs(state, namespace, &options.images, printer).await;
    let (explainer, explanation) = explain::explainer(state, &subject, &options.images, printer).await?;
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
        Hop { own, csvs }
    });
    Ok(Path { hops: hops.collect(), explanation })
}

/// Returns the index of the last plan to approve; `None` if the operator is up to date.
///
/// # Errors
/// No plan leads to a version in the range.
fn last_hop(options: &Options, path: &Path, operator: &Operator) -> Result<Option<usize>, CliError> {
    let Some(range) = &options.to else { return Ok(path.hops.len().checked_sub(1)) };
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
