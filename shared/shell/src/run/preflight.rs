//! The preflight of a transfer between upstream OLM and these controllers: an audit, which must find nothing to write.
//!
//! A clean audit means that both agree about every object: after the transfer nothing changes.

use std::collections::BTreeSet;
use std::time::Duration;

use olm_core::api::object;
use olm_core::distribution::installation::installations;
use olm_core::distribution::transfer::{is_stopped, only_reports_catalogs};
use olm_core::listing::count;
use serde_json::{Deserializer, Value};

use super::audit::{AuditEvent, AuditType};
pub(crate) use super::guard::require_crds;
use super::{Mode, Options};
use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::DataFormat;
use crate::cli::prompt::confirm;
use crate::cli::streams::Buffer;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::installed::upstream_controllers;
use crate::cluster::upstream;

/// How many lines of each kind are printed. `kubectl olm run --audit` prints all.
const MOST_LINES: usize = 20;

/// The time limit of the check at the end of a run.
const LIMIT: Duration = Duration::from_secs(3);

/// Stopping upstream OLM to take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOver {
    /// Take over even if the controllers would change objects at once, which a prompt asks for.
    pub allow_changes: bool,
    /// Skip the prompt.
    pub yes: bool,
}

/// Checks that these controllers can take over from upstream OLM, if it is running. Returns the outcome if they cannot.
pub(super) fn take_over(
    options: &Options,
    TakeOver { allow_changes, yes }: TakeOver,
    printer: &mut Printer,
) -> Result<Option<Outcome>, CliError> {
    let running =
        block_on(async { Ok::<_, CliError>(upstream::running(&connect(&options.cluster).await?.api).await?) })?;
    let found = installations(&running, &[]);
    let Some(first) = found.first() else { return Ok(None) };
    if let Some(found) = found.iter().find(|found| found.is_openshift()) {
        return Err(openshift(&found.describe()));
    }
    match check(options, "take over", allow_changes, printer)? {
        Agreement::Ended(outcome) => Ok(Some(outcome)),
        Agreement::Changes(0) => Ok(None),
        Agreement::Changes(writes) => {
            let question = format!("Stop {}, and take over{}?", first.describe(), with_changes(writes));
            if confirm(printer, &question, yes)? {
                return Ok(None);
            }
            printer.talk("nothing was changed");
            Ok(Some(Outcome::Negative))
        }
    }
}

/// Warns at the end of a run that Deployments of upstream OLM are still stopped: then no controllers run.
pub(super) async fn warn_if_stopped(options: &Options, printer: &mut Printer) {
    let found = async {
        let api = connect(&options.cluster).await?.api;
        Ok::<_, CliError>(upstream_controllers(&api).await?)
    };
    // The connection may be the reason why the run has ended.
    let described = match tokio::time::timeout(LIMIT, found).await {
        Ok(Ok(deployments)) => match stopped(&deployments) {
            None => return,
            Some(described) => described,
        },
        Ok(Err(_)) | Err(_) => {
            "upstream OLM, if this run has stopped it (it cannot be read), remains stopped".to_owned()
        }
    };
    printer.warn(format_args!("{described}, and these controllers have ended; kubectl olm hand-back starts it again"));
}

/// Describes what of upstream OLM is stopped; `None` if nothing is. A run that is interrupted may have stopped only a part.
fn stopped(deployments: &[Value]) -> Option<String> {
    let stopped: Vec<&str> = deployments.iter().filter(|deployment| is_stopped(deployment)).map(object::name).collect();
    let described = installations(deployments, &[]).first()?.describe();
    match stopped.len() {
        0 => None,
        all if all == deployments.len() => Some(format!("{described} remains stopped")),
        _ => Some(format!("{} of {described} remains stopped", stopped.join(", "))),
    }
}

/// Returns the error for an OLM that OpenShift manages.
pub(crate) fn openshift(described: &str) -> CliError {
    CliError::new(ErrorKind::Api, format!("{described} is a part of OpenShift"))
        .hint("OpenShift starts it again when it is stopped")
}

/// The result of a check whether these controllers agree with the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// This many writes would be sent at once, all of which were printed and may be sent.
    Changes(usize),
    /// The command ends.
    Ended(Outcome),
}

/// Runs an audit of the cluster, and reports the writes that the controllers would send: these end the command unless `allow_changes`.
/// `verb` names what the user wants to do.
pub(crate) fn check(
    options: &Options,
    verb: &str,
    allow_changes: bool,
    printer: &mut Printer,
) -> Result<Agreement, CliError> {
    printer.talk("checking that the controllers agree with the cluster, as kubectl olm run --audit does");
    let audit =
        Options { mode: Mode::Audit { once: true, timeout: None }, output: Some(DataFormat::Json), ..options.clone() };
    let (out, err) = (Buffer::default(), Buffer::default());
    let outcome = super::run(&audit, &mut Printer::to(out.clone(), err.clone()))?;
    some(err.text().lines().map(str::to_owned).collect::<Vec<_>>().into_iter()).for_each(|line| printer.talk(line));
    if outcome == Outcome::Interrupted {
        return Ok(Agreement::Ended(outcome));
    }
    let text = out.text();
    let events: Result<Vec<AuditEvent>, _> = Deserializer::from_str(&text).into_iter().collect();
    let events =
        events.map_err(|error| CliError::new(ErrorKind::Internal, format!("cannot read the audit: {error}")))?;
    let Findings { writes, unread, blocked } = Findings::of(&events, &options.namespace);
    some(unread.into_iter()).for_each(|line| printer.talk(line));
    some(blocked.into_iter()).for_each(|line| printer.talk(line));
    let number = writes.len();
    some(writes.into_iter()).for_each(|line| printer.reason(line));
    if number == 0 || allow_changes {
        return Ok(Agreement::Changes(number));
    }
    let message = format!(
        "cannot {verb}: the controllers of kubectl olm run would change objects at once ({})",
        count(number, "write")
    );
    printer.error(
        &CliError::new(ErrorKind::Api, message)
            .hint("repeat the command when installations in progress are complete, which kubectl olm run --once does if no controllers are running")
            .hint("kubectl olm run --audit prints the changes with reasons")
            .hint("--allow-changes proceeds nevertheless"),
    );
    Ok(Agreement::Ended(Outcome::Negative))
}

/// Returns the part of a question about the writes that are sent at once.
pub(crate) fn with_changes(writes: usize) -> String {
    if writes == 0 { String::new() } else { format!(", which changes objects at once ({})", count(writes, "write")) }
}

/// What an audit has found, as lines.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    writes: Vec<String>,
    /// Catalogs that cannot be read.
    unread: Vec<String>,
    blocked: Vec<String>,
}

impl Findings {
    /// Returns the findings of an audit. `global` is the namespace of global catalogs.
    fn of(events: &[AuditEvent], global: &str) -> Self {
        let mut findings = Self::default();
        let mut catalogs = BTreeSet::new();
        // Each key has its own reason, of which several may be equal.
        let mut reported = BTreeSet::new();
        for event in events.iter().filter(|event| event.r#type != AuditType::Action) {
            if !reported.insert(event.message.as_deref()) {
                continue;
            }
            if let Some(catalog) = event.unavailable_catalog() {
                let message = event.message.as_deref().unwrap_or_default();
                catalogs.insert(catalog);
                findings.unread.push(format!("note: {message}; whether it has upgrades was not checked"));
            } else if event.r#type == AuditType::Blocked {
                findings.blocked.push(format!("note: blocked: {}", event.message.as_deref().unwrap_or_default()));
            }
        }
        // A write that is planned repeatedly, with another content, is sent once.
        let writes: BTreeSet<(&str, String)> = events
            .iter()
            .filter(|event| event.r#type == AuditType::Action)
            .filter(|event| {
                !event.write().is_some_and(|(verb, target)| only_reports_catalogs(verb, &target, &catalogs, global))
            })
            .map(|event| (event.subject.as_deref().unwrap_or_default(), event.line()))
            .collect();
        findings.writes = writes.into_iter().map(|(_, line)| line).collect();
        findings
    }
}

/// Returns the first lines, and the number of the others.
fn some(lines: impl ExactSizeIterator<Item = String>) -> impl Iterator<Item = String> {
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.take(MOST_LINES).chain((more > 0).then(|| format!("and {more} more")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, fields: serde_json::Value) -> AuditEvent {
        let mut event = json!({ "apiVersion": "kubectl-olm/v1", "kind": "AuditEvent", "type": kind });
        json_patch::merge(&mut event, &fields);
        serde_json::from_value(event).unwrap()
    }

    fn write(subject: &str, verb: &str, kind: &str, namespace: &str, name: &str) -> AuditEvent {
        let object = json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "namespace": namespace, "name": name });
        event("action", json!({ "subject": subject, "verb": verb, "object": object }))
    }

    #[test]
    fn a_part_of_upstream_olm_may_be_stopped() {
        let deployment = |name: &str, replicas: u32| json!({ "metadata": { "name": name, "namespace": "olm", "labels": { "app": name } }, "spec": { "replicas": replicas } });
        let of = |catalog: u32, olm: u32| {
            stopped(&[deployment("catalog-operator", catalog), deployment("olm-operator", olm)])
        };
        assert_eq!((of(1, 2), stopped(&[])), (None, None));
        let described = "upstream OLM (unknown version) in namespace olm";
        assert_eq!(of(0, 0), Some(format!("{described} (stopped) remains stopped")));
        assert_eq!(of(0, 1), Some(format!("catalog-operator of {described} remains stopped")));
    }

    #[test]
    fn an_unreadable_catalog_is_no_disagreement() {
        let why = json!({ "reason": "CatalogUnavailable", "namespace": "olm", "name": "market", "error": "no route", "stale": false });
        let events = [
            write("CatalogSource olm/market", "update status of", "CatalogSource", "olm", "market"),
            write("Resolution garden", "update status of", "Subscription", "garden", "rose"),
            event("blocked", json!({ "reason": why, "message": "catalog olm/market cannot be read: no route" })),
            event("blocked", json!({ "reason": { "reason": "Unsatisfiable" }, "message": "no" })),
            event("blocked", json!({ "reason": { "reason": "Unsatisfiable" }, "message": "no" })),
        ];
        let unread = vec![
            "note: catalog olm/market cannot be read: no route; whether it has upgrades was not checked".to_owned(),
        ];
        let expected = Findings { writes: Vec::new(), unread, blocked: vec!["note: blocked: no".to_owned()] };
        assert_eq!(Findings::of(&events, "olm"), expected);
        // A decision is one.
        let decision = write("Resolution garden", "create", "InstallPlan", "garden", "");
        let events = [&events[..], &[decision]].concat();
        assert_eq!(Findings::of(&events, "olm").writes, ["would create InstallPlan/garden/  (for Resolution garden)"]);
        // If the catalog can be read, so is a status.
        let found = Findings::of(&events[..2], "olm").writes;
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_write_is_counted_once_and_the_output_is_bounded() {
        let update = write("ClusterServiceVersion garden/rose", "update", "ClusterServiceVersion", "garden", "rose");
        assert_eq!(Findings::of(&[update.clone(), update], "olm").writes.len(), 1);
        let lines = |n: usize| some((0..n).map(|n| n.to_string())).collect::<Vec<_>>();
        assert_eq!((lines(3).len(), lines(20).len()), (3, 20));
        assert_eq!((lines(5000).len(), lines(5000).last().unwrap().as_str()), (21, "and 4980 more"));
    }
}
