//! `kubectl olm operator outdated`: which operators could be upgraded, from which version to which, and whether that is safe.
//!
//! *Guarantees*: nothing is written. Catalogs are read once. The answer on safety is about the next plan: later ones depend on
//! the state that it leaves.

use std::collections::BTreeMap;

use olm_core::explain::VerdictResult;
use olm_core::health::Operator;
use serde_json::json;

use super::lookup;
use super::path::{Path, is_newest, path, version_of};
use crate::blocking::block_on;
use crate::cli::flags::{NamespaceFlags, SourceFlags};
use crate::cli::list::{Column, Entry, ListFlags, Listing};
use crate::cli::output::API_VERSION;
use crate::cli::source::{read_catalogs, warn_of_gaps};
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
use crate::installplan::policy::Terms;
use crate::observe::{ClusterState, ReadScope};

/// Which operators to check, and what is acceptable.
#[derive(Clone, Debug)]
pub struct Options {
    /// The source of the objects, with catalogs in directories.
    pub source: SourceFlags,
    /// Their namespaces.
    pub namespaces: NamespaceFlags,
    /// The conditions that a plan must meet to be safe.
    pub terms: Terms,
    /// The selection and the output format.
    pub list: ListFlags,
    /// How images are pulled.
    pub images: image::Options,
}

const NAMESPACE: Column = Column::new("NAMESPACE");

const COLUMNS: [Column; 7] = [
    NAMESPACE,
    Column::new("NAME"),
    Column::new("INSTALLED"),
    Column::new("NEXT"),
    Column::new("LATEST"),
    Column::new("HOPS"),
    Column::new("SAFE"),
];

/// Lists the operators that can be upgraded. The outcome is negative if that is unknown for one of them.
///
/// # Errors
/// Subscriptions and ClusterServiceVersions cannot be read, or a policy is invalid.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    options.list.refuse_to_watch("operators that can be upgraded, which are computed from catalogs")?;
    let terms = options.terms.understood()?;
    block_on(async {
        let mut state = options.source.read(&options.namespaces, &[], ReadScope::Planning, printer).await?;
        let is_one = state.namespace.is_some();
        let (mut entries, mut unknown) = (Vec::new(), 0);
        for operator in outdated(&mut state, &options.images, printer).await? {
            let path = match path(&mut state, &operator, &options.images, printer).await {
                Ok(path) if path.hops.is_empty() => {
                    let verdict = &path.explanation.verdict;
                    if verdict.result == VerdictResult::Unknown {
                        unknown += 1;
                        let reasons: Vec<&str> = verdict.reasons.iter().map(|reason| reason.message.as_str()).collect();
                        let place = format!("{}/{}", operator.namespace, operator.name);
                        let error = CliError::new(ErrorKind::Api, format!("{place}: {}", reasons.join("; ")));
                        let hints = verdict.reasons.iter().map(|reason| reason.hint.as_str());
                        printer.error(&hints.filter(|hint| !hint.is_empty()).fold(error, CliError::hint));
                    }
                    continue;
                }
                Ok(path) => path,
                Err(error) => {
                    unknown += 1;
                    printer.error(&error.while_doing(format_args!("{}/{}", operator.namespace, operator.name)));
                    continue;
                }
            };
            let refusal = terms.refusal_in_advance(&path.explanation)?.map(|refusal| refusal.why);
            entries.push(entry(&operator, &path, refusal, !options.terms.policies.is_empty(), is_one));
        }
        warn_of_gaps(&state, printer);
        let columns = COLUMNS.into_iter().filter(|column| !is_one || *column != NAMESPACE);
        let listing = Listing {
            columns: columns.collect(),
            entries,
            document: json!({ "apiVersion": API_VERSION, "kind": "OutdatedOperators" }),
        };
        let listing = listing.arranged(&options.list)?;
        if listing.entries.is_empty() && options.list.wants_table() {
            printer.talk("No operator can be upgraded");
        } else {
            listing.print(&options.list, printer)?;
        }
        Ok(if unknown == 0 { Outcome::Done } else { Outcome::Negative })
    })
}

/// Returns the operators with a Subscription that may have an upgrade: those of a namespace, unless each of them runs the newest version.
async fn outdated(
    state: &mut ClusterState,
    images: &image::Options,
    printer: &Printer,
) -> Result<Vec<Operator>, CliError> {
    let mut namespaces: BTreeMap<String, Vec<Operator>> = BTreeMap::new();
    for operator in lookup::operators(state)?.into_iter().filter(|operator| operator.subscribed) {
        namespaces.entry(operator.namespace.clone()).or_default().push(operator);
    }
    let mut found = Vec::new();
    for (namespace, operators) in namespaces {
        read_catalogs(state, &namespace, images, printer).await;
        if !operators.iter().all(|operator| is_newest(state, operator)) {
            found.extend(operators);
        }
    }
    Ok(found)
}

/// Returns an operator as a row, and as data. `refusal` is why its next plan does not meet the conditions.
fn entry(operator: &Operator, path: &Path, refusal: Option<String>, has_policies: bool, is_one: bool) -> Entry {
    let verdict = &path.explanation.verdict;
    let safe = match verdict.result {
        _ if refusal.is_some() => "no",
        VerdictResult::Safe => "yes",
        // The policies decide.
        VerdictResult::NeedsDecision if has_policies => "yes",
        VerdictResult::NeedsDecision => "review",
        VerdictResult::Unknown => "unknown",
        VerdictResult::WouldFail => "no",
    };
    let (installed, hops) = (version_of(operator), path.hops.len());
    let versions: Vec<String> = path.hops.iter().map(super::path::Hop::label).collect();
    let next = versions.first().cloned().unwrap_or_default();
    let latest = versions.last().cloned().unwrap_or_default();
    let reasons = verdict.reasons.iter().filter(|reason| reason.result != VerdictResult::Safe);
    let reasons = reasons.map(|reason| reason.message.clone());
    let reasons: Vec<String> = refusal.into_iter().chain(reasons).collect();
    let object = json!({
        "metadata": { "namespace": operator.namespace, "name": operator.name },
        "package": operator.package, "channel": operator.channel, "catalog": operator.catalog,
        "installed": installed, "next": next, "latest": latest, "path": versions, "safe": safe, "reasons": reasons,
    });
    let place = if is_one { String::new() } else { format!(" -n {}", operator.namespace) };
    let name = operator.name.clone();
    let mut cells = if is_one { Vec::new() } else { vec![operator.namespace.clone()] };
    cells.extend([name, installed, next, latest, hops.to_string(), safe.to_owned()]);
    Entry { object, cells, name: format!("operator/{}{place}", operator.name) }
}
