//! Waits for an operator until a condition holds, or can no longer hold.
//!
//! ```text
//!   watch --state--> judge: reached? --no--> olm_core::health::finality: final, or when --> error
//! ```
//!
//! There is no time limit unless the user gives one: the wait ends when the state cannot change without a user's action.

use std::time::Duration;

use olm_core::health::Operator;
use olm_core::health::finality::Patience;
use tokio::time::Instant;

use super::cause::cause;
use super::controllers;
use super::watch::OperatorWatch;
use crate::cli::{CliError, ErrorKind, Printer, signal};
use crate::cluster::api::Api;

/// What a state means for a wait.
pub(super) enum Judgement<T> {
    /// The condition holds.
    Reached(T),
    /// The condition may still become true.
    NotYet,
    /// The condition may still become true, unless the state is final.
    UnlessFinal,
}

/// Follows one operator.
pub(super) struct Follower {
    watch: OperatorWatch,
    patience: Patience,
    /// The state that was reported last.
    reported: String,
    /// The start of the clock of `patience`.
    started: Instant,
    /// Whether it was checked that controllers run.
    is_checked: bool,
    /// The time limit of the command, if a wait has only a part of it.
    limit: Option<Duration>,
}

impl Follower {
    /// Starts to follow the operator of that name.
    pub(super) fn new(api: &Api, namespace: &str, name: &str) -> Self {
        Self {
            watch: OperatorWatch::new(api, namespace, name),
            patience: Patience::default(),
            reported: String::new(),
            started: Instant::now(),
            is_checked: false,
            limit: None,
        }
    }

    /// States the time limit of the command in errors: a wait has what is left of it.
    pub(super) fn with_limit(self, limit: Option<Duration>) -> Self {
        Self { limit, ..self }
    }

    /// Counts a catalog that does not respond as a failure, too.
    pub(super) fn needing_catalog(self) -> Self {
        Self { patience: Patience::needing_catalog(), ..self }
    }

    /// Does not check that controllers run: that was done before.
    pub(super) fn with_controllers(self) -> Self {
        Self { is_checked: true, ..self }
    }

    /// Returns the current state of the operator.
    pub(super) fn operator(&self) -> Option<Operator> {
        self.watch.operator()
    }

    /// Waits until `judge` decides, or the state is final. `what` is the condition as a participle.
    ///
    /// # Errors
    /// The objects cannot be read, the wait was interrupted, the time is up, or the condition can no longer hold.
    pub(super) async fn until<T>(
        &mut self,
        timeout: Option<Duration>,
        what: &str,
        printer: &mut Printer,
        mut judge: impl FnMut(Option<Operator>) -> Judgement<T>,
    ) -> Result<T, CliError> {
        let name = self.watch.name().to_owned();
        let mut end = std::pin::pin!(after(timeout.map(|timeout| Instant::now() + timeout)));
        let mut stopped = std::pin::pin!(signal::stopped());
        let mut final_at: Option<Instant> = None;
        loop {
            let is_final = after(final_at);
            tokio::select! {
                biased;
                changed = self.watch.changed(printer) => changed?,
                () = is_final => {}
                () = &mut end => {
                    let after = self.limit.or(timeout).map(crate::cli::table::age).unwrap_or_default();
                    let last = self.operator().map_or_else(|| "it does not exist".to_owned(), |last| state(&last));
                    return Err(CliError::new(ErrorKind::Api, format!("{name} is not {what} after {after}: {last}"))
                        .hint("run the command again to continue to wait"));
                }
                () = &mut stopped => {
                    return Err(CliError::new(ErrorKind::Unreachable, format!("interrupted before {name} was {what}"))
                        .hint("run the command again to continue"));
                }
            }
            let operator = self.operator();
            self.report(operator.as_ref(), printer);
            let now = Instant::now();
            let final_after = self.patience.final_at(operator.as_ref(), now.duration_since(self.started));
            match judge(operator.clone()) {
                Judgement::Reached(result) => return Ok(result),
                Judgement::NotYet => final_at = None,
                Judgement::UnlessFinal => {
                    final_at = final_after.map(|after| self.started + after);
                    if let Some(operator) = operator.filter(|_| final_at.is_some_and(|at| at <= now)) {
                        return Err(cannot_continue(&operator));
                    }
                }
            }
            if !std::mem::replace(&mut self.is_checked, true) {
                controllers::warn_if_none(self.watch.api(), printer).await;
            }
        }
    }

    /// Reports the state if it differs from the last one.
    fn report(&mut self, operator: Option<&Operator>, printer: &mut Printer) {
        let text = operator.map_or_else(|| "does not exist yet".to_owned(), state);
        if self.reported != text {
            printer.talk(format_args!("{}: {text}", self.watch.name()));
            self.reported = text;
        }
    }
}

/// Resolves at that time; never without one.
async fn after(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns the state of an operator in one line.
pub(super) fn state(operator: &Operator) -> String {
    let version = operator.next.as_ref().or(operator.installed.as_ref());
    let csv = version.map(|version| match version.phase.as_str() {
        "" => version.csv.clone(),
        phase => format!("{} {phase}", version.csv),
    });
    let health = operator.health.as_str();
    let cause = operator.reason.as_ref().map(cause).filter(|cause| !cause.is_empty());
    [Some(csv.unwrap_or_else(|| health.to_owned())), cause].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns the error for a final state.
fn cannot_continue(operator: &Operator) -> CliError {
    let reason = operator.reason.as_ref();
    let why = reason.map(ToString::to_string).unwrap_or_default();
    let error = CliError::new(ErrorKind::Api, format!("{} cannot continue: {why}", operator.name));
    let more = operator.command.clone().map(|command| format!("for more: {command}"));
    let hints = [reason.and_then(olm_core::plan::Reason::hint), more];
    hints.into_iter().flatten().fold(error, CliError::hint)
}
