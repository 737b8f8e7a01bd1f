//! The preflight of a transfer between upstream OLM and these controllers: an audit, which must find nothing to write.
//!
//! A clean audit means that both agree about every object: after the transfer nothing changes.

use std::time::Duration;

use olm_core::distribution::installation::installations;
use serde_json::Deserializer;

use super::audit::{AuditEvent, AuditType};
pub(crate) use super::guard::require_crds;
use super::{Mode, Options};
use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::DataFormat;
use crate::cli::streams::Buffer;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::installed::installed;
use crate::cluster::upstream;

/// How many writes are printed. `kubectl olm run --audit` prints all.
const MOST_LINES: usize = 20;

/// The time limit of the check at the end of a run.
const LIMIT: Duration = Duration::from_secs(3);

/// Stopping upstream OLM to take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakeOver {
    /// Take over even if the controllers would change objects at once.
    pub allow_changes: bool,
}

/// Checks that these controllers can take over from upstream OLM, if it is running. Returns the outcome if they cannot.
pub(super) fn take_over(
    options: &Options,
    TakeOver { allow_changes }: TakeOver,
    printer: &mut Printer,
) -> Result<Option<Outcome>, CliError> {
    let running =
        block_on(async { Ok::<_, CliError>(upstream::running(&connect(&options.cluster).await?.api).await?) })?;
    if let Some(found) = installations(&running, &[]).iter().find(|found| found.is_openshift()) {
        return Err(openshift(&found.describe()));
    }
    if running.is_empty() || allow_changes { Ok(None) } else { refuse(options, "take over", printer) }
}

/// Warns at the end of a run that upstream OLM is still stopped: then no controllers run.
pub(super) async fn warn_if_stopped(options: &Options, printer: &mut Printer) {
    let found = async {
        let api = connect(&options.cluster).await?.api;
        Ok::<_, CliError>(installed(&api).await?.into_iter().find(|found| found.stopped))
    };
    // The connection may be the reason why the run has ended.
    let described = match tokio::time::timeout(LIMIT, found).await {
        Ok(Ok(None)) => return,
        Ok(Ok(Some(found))) => found.describe(),
        Ok(Err(_)) | Err(_) => "upstream OLM, if this run has stopped it (it cannot be read)".to_owned(),
    };
    printer.warn(format_args!(
        "{described} remains stopped, and these controllers have ended; kubectl olm hand-back starts it again"
    ));
}

/// Returns the error for an OLM that OpenShift manages.
pub(crate) fn openshift(described: &str) -> CliError {
    CliError::new(ErrorKind::Api, format!("{described} is a part of OpenShift"))
        .hint("OpenShift starts it again when it is stopped")
}

/// Runs an audit of the cluster, and reports the writes that the controllers would send. Returns the outcome if there are any, or if the
/// audit was interrupted. `verb` names what the user wants to do.
pub(crate) fn refuse(options: &Options, verb: &str, printer: &mut Printer) -> Result<Option<Outcome>, CliError> {
    printer.talk("checking that the controllers agree with the cluster, as kubectl olm run --audit does");
    let audit =
        Options { mode: Mode::Audit { once: true, timeout: None }, output: Some(DataFormat::Json), ..options.clone() };
    let (out, err) = (Buffer::default(), Buffer::default());
    let outcome = super::run(&audit, &mut Printer::to(out.clone(), err.clone()))?;
    err.text().lines().for_each(|line| printer.talk(line));
    if outcome == Outcome::Interrupted {
        return Ok(Some(outcome));
    }
    let text = out.text();
    let events: Result<Vec<AuditEvent>, _> = Deserializer::from_str(&text).into_iter().collect();
    let events =
        events.map_err(|error| CliError::new(ErrorKind::Internal, format!("cannot read the audit: {error}")))?;
    for event in events.iter().filter(|event| event.r#type == AuditType::Blocked) {
        printer.talk(format_args!("note: blocked: {}", event.message.as_deref().unwrap_or_default()));
    }
    let writes: Vec<&AuditEvent> = events.iter().filter(|event| event.r#type == AuditType::Action).collect();
    if writes.is_empty() {
        return Ok(None);
    }
    writes.iter().take(MOST_LINES).for_each(|write| printer.reason(write.line()));
    if writes.len() > MOST_LINES {
        printer.reason(format_args!("and {} more", writes.len() - MOST_LINES));
    }
    let message = format!(
        "cannot {verb}: the controllers of kubectl olm run would change objects at once ({} writes)",
        writes.len()
    );
    printer.error(
        &CliError::new(ErrorKind::Api, message)
            .hint("repeat the command when installations in progress are complete, which kubectl olm run --once does if no controllers are running")
            .hint("kubectl olm run --audit prints the changes with reasons")
            .hint("--allow-changes proceeds nevertheless"),
    );
    Ok(Some(Outcome::Negative))
}
