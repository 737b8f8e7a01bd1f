//! `kubectl olm operator upgrade`: upgrades operators one InstallPlan at a time.
//!
//! ```text
//!   for each operator:  healthy? --explainer--> the plans up to the newest version, or up to one in a range
//!     for each plan:    safe, or agreed to? --> settle: approve, wait for Succeeded --> read again
//! ```
//!
//! *Guarantees*: every plan is explained on the state that its predecessor left. The first plan that is not safe, or whose
//! operator is not healthy, ends the upgrade of that operator; the others are still upgraded. A repeated command continues.

use std::time::Duration;

use olm_core::explain::{Explanation, VerdictResult};
use olm_core::health::finality::Patience;
use olm_core::health::{Health, Operator};
use olm_core::listing::listed;
pub use olm_core::version::Range;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::awaiting::{Follower, Judgement, state as state_of};
use super::lookup::{self, is_named};
use super::path::{Hop, last_hop, path, version_of};
use super::publication::Publication;
use super::settle::{Target, settle};
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::prompt::confirm_with;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
use crate::installplan::explain::{differences, summary};
use crate::installplan::policy::{Refusal, Terms};
use crate::observe::{ClusterState, ReadScope};
pub use crate::registry::local::CatalogDirectory;

/// The pause before an operator is read again that is still in progress although a wait for it has ended.
const PAUSE: Duration = Duration::from_secs(1);

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
    /// The output format.
    pub output: Output,
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

/// The upgrade of one operator, so far.
struct Upgrade {
    namespace: String,
    name: String,
    from: String,
    /// The versions of the path, without the first.
    path: Vec<String>,
    /// The versions that were reached.
    reached: Vec<String>,
}

impl Upgrade {
    /// Returns the data of the result.
    fn document(&self, options: &Options, ended: &Result<Outcome, CliError>) -> Value {
        let result = match ended {
            Err(_) => "Blocked",
            Ok(Outcome::Negative) => "Declined",
            Ok(_) if options.path || options.dry_run != DryRun::None && !self.path.is_empty() => "Planned",
            Ok(_) if self.reached.is_empty() => "UpToDate",
            Ok(_) => "Upgraded",
        };
        let mut document = json!({
            "namespace": self.namespace, "name": self.name, "from": self.from, "path": self.path,
            "reached": self.reached, "result": result,
        });
        if let Err(error) = ended {
            document["message"] = error.message.as_str().into();
            document["hints"] = json!(error.hints);
        }
        document
    }
}

/// Upgrades the operators. The outcome is negative if the user declines.
///
/// # Errors
/// An operator does not exist, is not healthy or has no such version, or a plan is not safe or does not succeed. The other
/// operators were upgraded.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(run_with(options, None, printer))
}

/// Does the same. The catalog is published before its plan is approved: `options` name a directory with its content.
pub(super) async fn run_with(
    options: &Options,
    publication: Option<&Publication>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    if options.to.is_some() && options.names.len() != 1 {
        return Err(CliError::usage("--to is a range of versions of one operator").hint("specify the operator"));
    }
    let targets = targets(options, printer).await?;
    if targets.is_empty() {
        printer.talk("No operators with a Subscription found");
    }
    let all = targets.len();
    let (mut documents, mut errors, mut outcome) = (Vec::new(), Vec::new(), Outcome::Done);
    for (namespace, name) in targets {
        let (from, path, reached) = (String::new(), Vec::new(), Vec::new());
        let mut one = Upgrade { namespace, name, from, path, reached };
        let ended = Box::pin(upgrade(options, &mut one, publication, printer)).await;
        documents.push(one.document(options, &ended));
        match ended {
            Ok(Outcome::Done) => {}
            Ok(other) => {
                outcome = other;
                break;
            }
            Err(error) => {
                // Without a connection, and after Ctrl-C, the others cannot be upgraded either.
                let is_last = matches!(error.kind, ErrorKind::Unreachable | ErrorKind::Closed);
                errors.push((one.name, error));
                if is_last {
                    break;
                }
            }
        }
    }
    print(options, &documents, printer)?;
    match &errors[..] {
        [] => Ok(outcome),
        _ if all == 1 => Err(errors.remove(0).1),
        _ => {
            for (_, error) in &errors {
                printer.error(error);
            }
            let names: Vec<&str> = errors.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("{} of {all} operators are not upgraded: {}", names.len(), listed(&names));
            let kind = errors.last().map_or(ErrorKind::Api, |(_, error)| error.kind);
            Err(CliError::new(kind, message).hint("run the command again to continue"))
        }
    }
}

/// Returns namespace and name of the operators to upgrade.
async fn targets(options: &Options, printer: &mut Printer) -> Result<Vec<(String, String)>, CliError> {
    let state = read(options, &options.namespaces, printer).await?;
    let operators = lookup::operators(&state)?;
    let place = |operator: &Operator| (operator.namespace.clone(), operator.name.clone());
    if options.names.is_empty() {
        return Ok(operators.iter().filter(|operator| operator.subscribed).map(place).collect());
    }
    let mut targets = Vec::new();
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
        targets.push(place(found));
    }
    Ok(targets)
}

fn is_text(options: &Options) -> bool {
    matches!(options.output, Output::Table | Output::Wide)
}

/// Prints the results as data.
fn print(options: &Options, operators: &[Value], printer: &mut Printer) -> Result<(), CliError> {
    match &options.output {
        Output::Table | Output::Wide => Ok(()),
        Output::Name => operators
            .iter()
            .try_for_each(|one| printer.line(format_args!("operator/{}", one["name"].as_str().unwrap_or_default()))),
        output => {
            let document = json!({ "apiVersion": API_VERSION, "kind": "OperatorUpgrade", "operators": operators });
            output.object(printer, &document, || Table::new([]))
        }
    }
}

async fn read(options: &Options, namespaces: &NamespaceFlags, printer: &mut Printer) -> Result<ClusterState, CliError> {
    let source =
        SourceFlags { cluster: options.cluster.clone(), catalogs: options.catalogs.clone(), ..SourceFlags::default() };
    source.read(namespaces, &[], ReadScope::Planning, printer).await
}

/// Upgrades one operator.
async fn upgrade(
    options: &Options,
    one: &mut Upgrade,
    publication: Option<&Publication>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let (namespace, name) = (one.namespace.clone(), one.name.clone());
    let within = NamespaceFlags { namespace: Some(namespace.clone()), all_namespaces: false };
    let terms = options.terms.understood()?;
    let is_text = is_text(options);
    let mut is_first = true;
    loop {
        let (mut state, operator) = idle(options, &within, &name, printer).await?;
        let installed = version_of(&operator);
        if operator.health == Health::Blocked {
            return Err(unhealthy(&operator));
        }
        let path = path(&mut state, &operator, &options.images, printer).await?;
        let last = last_hop(options.to.as_ref(), &path, &operator)?;
        if is_first {
            one.from.clone_from(&installed);
            one.path = path.hops.iter().take(last.map_or(0, |last| last + 1)).map(Hop::label).collect();
        }
        let Some(last) = last else {
            if is_text {
                printer.line(format_args!("operator/{name} up to date: {installed}"))?;
            }
            return Ok(Outcome::Done);
        };
        if is_first {
            let versions = [std::slice::from_ref(&installed), &one.path].concat().join(" -> ");
            let words = format!("operator/{name} in namespace {namespace}: {versions}");
            if options.path {
                if is_text {
                    printer.line(words)?;
                }
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
        let risks = risks(&path.explanation, options.terms.allow_failing);
        if options.yes && !risks.is_empty() && !options.accept_risks && options.terms.policies.is_empty() {
            return Err(risky(&name, &namespace, &risks));
        }
        let Some(hop) = path.hops.first() else { return Ok(Outcome::Done) };
        if options.dry_run != DryRun::None {
            if is_text {
                printer.line(format_args!("operator/{name} upgraded to {}{}", hop.label(), options.dry_run.note()))?;
            }
            return Ok(Outcome::Done);
        }
        let question = format!("Upgrade {name} to {}?", hop.label());
        if !confirm_with(printer, &question, options.yes, |paint| differences(&path.explanation, paint))? {
            printer.talk("Nothing was approved");
            return Ok(Outcome::Negative);
        }
        let Some(api) = state.api() else { return Ok(Outcome::Done) };
        if let Some(publication) = publication {
            publication.send(api, false, is_text.then_some(&mut *printer)).await?;
        }
        let target = Target {
            cluster: &options.cluster,
            namespace: &namespace,
            name: &name,
            csv: hop.own.as_ref().map(|(csv, _)| csv.as_str()),
            is_checked: false,
            terms: &options.terms,
            images: &options.images,
            wait: true,
            timeout: options.timeout,
            yes: options.yes,
        };
        if Box::pin(settle(api, target, &path.explanation.hash, printer)).await?.is_none() {
            return Ok(Outcome::Negative);
        }
        one.reached.push(hop.label());
        if is_text {
            printer.line(format_args!("operator/{name} upgraded to {}", hop.label()))?;
            printer.flush()?;
        }
        if last == 0 {
            return Ok(Outcome::Done);
        }
    }
}

/// Reads the cluster and the operator, as soon as nothing is in progress. A plan that needs approval is explained first, so
/// only other ones are waited for.
async fn idle(
    options: &Options,
    within: &NamespaceFlags,
    name: &str,
    printer: &mut Printer,
) -> Result<(ClusterState, Operator), CliError> {
    let namespace = within.namespace.as_deref().unwrap_or_default();
    let end = options.timeout.map(|timeout| Instant::now() + timeout);
    let (started, mut patience, mut is_first) = (Instant::now(), Patience::needing_catalog(), true);
    loop {
        let state = read(options, within, printer).await?;
        let operator = lookup::operators(&state)?.into_iter().find(|operator| operator.name == name);
        let operator = operator.ok_or_else(|| lookup::not_found(name, Some(namespace)))?;
        let is_waited_for = options.dry_run == DryRun::None && !options.path;
        let Some(api) = state.api().filter(|_| is_waited_for && operator.health == Health::Progressing) else {
            return Ok((state, operator));
        };
        let now = Instant::now();
        let final_at = patience.final_at(Some(&operator), now - started);
        if final_at.is_some_and(|at| started + at <= now) || end.is_some_and(|end| end <= now) {
            return Err(unhealthy(&operator));
        }
        let mut follower = Follower::new(api, namespace, name).needing_catalog().with_limit(options.timeout);
        if !std::mem::take(&mut is_first) {
            follower = follower.with_controllers();
            tokio::time::sleep(PAUSE).await;
        }
        let rest = end.map(|end| end.saturating_duration_since(now));
        let judge = |operator: Option<Operator>| match operator {
            Some(operator) if operator.health == Health::Progressing => Judgement::UnlessFinal,
            _ => Judgement::Reached(()),
        };
        follower.until(rest, "ready for an upgrade", printer, judge).await?;
    }
}

fn unhealthy(operator: &Operator) -> CliError {
    let error = CliError::new(
        ErrorKind::Api,
        format!("{} of namespace {} is not healthy: {}", operator.name, operator.namespace, state_of(operator)),
    );
    let hint = operator.reason.as_ref().and_then(olm_core::plan::Reason::hint);
    hint.into_iter().chain(operator.command.clone()).fold(error, CliError::hint)
}

/// Returns what has to be accepted before an upgrade; with `allow_failing` without what would fail.
fn risks(explanation: &Explanation, allow_failing: bool) -> Vec<&str> {
    let is_risk = |result| match result {
        VerdictResult::Safe => false,
        VerdictResult::WouldFail => !allow_failing,
        VerdictResult::NeedsDecision | VerdictResult::Unknown => true,
    };
    let reasons = explanation.verdict.reasons.iter().filter(|reason| is_risk(reason.result));
    reasons.map(|reason| reason.message.as_str()).collect()
}

fn risky(name: &str, namespace: &str, risks: &[&str]) -> CliError {
    CliError::new(ErrorKind::Api, format!("{name} is not upgraded: the plan needs a decision: {}", risks.join("; ")))
        .hint(format!("review it: kubectl olm install-plan explain --subscription {name} -n {namespace}"))
        .hint("to upgrade anyway, pass --accept-risks, or state with --if what is acceptable")
}
