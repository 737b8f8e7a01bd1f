//! `kubectl olm install-plan wait`: waits until a plan is complete, approved or failed, or can no longer become so.
//!
//! ```text
//!   Subscription --names--> plan --PlanSummary--> judge: reached | never, with the cause | not yet
//! ```

use std::time::Duration;

use clap::ValueEnum;
use jiff::Timestamp;
use olm_core::api::install_plan::Phase;
use olm_core::api::subscription::Subscription;
use olm_core::api::subscription::condition_type::RESOLUTION_FAILED;
use olm_core::api::{kinds, object};
use olm_core::installplan::summary::{self, PlanSummary};
use olm_core::plan::Reason;
use olm_core::settings::Settings;
use olm_core::world::{Reader, World};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::lookup::{self, plan_ref};
use crate::blocking::block_on;
use crate::cli::flags::ClusterFlags;
use crate::cli::name::bare;
use crate::cli::output::API_VERSION;
use crate::cli::{CliError, ErrorKind, Outcome, Printer, signal};
use crate::cluster::api::Api;
use crate::cluster::follow::{self, Sight, follow};
use crate::observe::{self, ReadScope};

/// What to wait for, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The namespace; that of the context if `None`.
    pub namespace: Option<String>,
    /// The plan to wait for.
    pub of: Target,
    /// The condition.
    pub until: Until,
    /// How long to wait; zero checks once.
    pub timeout: Duration,
    /// Whether to print every change as one line of JSON instead of text.
    pub json: bool,
}

/// Selects a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The plan of this name.
    Plan(String),
    /// The plan that the status of this Subscription names, followed when the status names another.
    Subscription(String),
}

/// The condition to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Until {
    /// All its objects are created.
    Complete,
    /// It is approved, or needs no approval.
    Approved,
    /// It has failed.
    Failed,
}

impl Until {
    fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Approved => "approved",
            Self::Failed => "failed",
        }
    }
}

/// The object that the server has, if any.
struct Found(Option<Value>);

/// Whether the condition is met.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judgement {
    Reached,
    /// The condition can no longer be met, for this cause.
    Never(String),
    NotYet,
}

fn judge(until: Until, summary: &PlanSummary) -> Judgement {
    match (until, summary.phase) {
        (Until::Complete, Phase::Complete) | (Until::Failed, Phase::Failed) => Judgement::Reached,
        (Until::Approved, phase) if summary.approved || phase.is_started() => Judgement::Reached,
        (Until::Complete, Phase::Failed) => {
            Judgement::Never(summary.reason.as_ref().map_or_else(|| "it has failed".to_owned(), ToString::to_string))
        }
        (Until::Failed, Phase::Complete) => Judgement::Never("it is complete".to_owned()),
        _ => Judgement::NotYet,
    }
}

/// Waits for the condition. The outcome is negative if the condition can no longer be met, or the time is up.
///
/// # Errors
/// The plan or Subscription does not exist, cannot be read, or the wait was interrupted.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let of = match &options.of {
        Target::Plan(name) => Target::Plan(bare(name, "installplan")?.to_owned()),
        Target::Subscription(name) => Target::Subscription(bare(name, "subscription")?.to_owned()),
    };
    block_on(async {
        let (api, namespace) = lookup::connect(&options.cluster, options.namespace.as_deref()).await?;
        plan(&api, &namespace, &of, options.until, options.timeout, options.json, printer).await
    })
}

/// Waits for the condition on an existing connection.
pub(super) async fn plan(
    api: &Api,
    namespace: &str,
    of: &Target,
    until: Until,
    timeout: Duration,
    json: bool,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let mut world = World::new();
    // Related objects improve the reported reasons, but are not required.
    let failures = observe::list(api, namespace, ReadScope::Resolution, &mut world).await;
    let knows_groups = failures.is_ok_and(|failures| !failures.iter().any(|failure| failure.is_of("operatorgroups")));
    let mut waiting = Waiting {
        namespace,
        until,
        json,
        world,
        knows_groups,
        reported: None,
        last: None,
        trouble: None,
        looked: false,
    };
    let mut plan = None;
    let mut plans = None;
    let mut subscriptions = None;
    match of {
        Target::Plan(name) => plans = Some(waiting.turn_to(api, name, &mut plan)),
        Target::Subscription(name) => {
            subscriptions = Some(follow(api, kinds::SUBSCRIPTION.object(namespace, name)));
        }
    }
    let end = tokio::time::sleep(timeout);
    let (mut end, mut stopped) = (std::pin::pin!(end), std::pin::pin!(signal::stopped()));
    loop {
        let ended = tokio::select! {
            biased;
            Some(sight) = next(&mut subscriptions) => {
                let named = waiting.subscription(of, sight, printer)?;
                if let Some(name) = named.filter(|name| plan.as_ref() != Some(name)) {
                    plans = Some(waiting.turn_to(api, &name, &mut plan));
                }
                None
            }
            Some(sight) = next(&mut plans) => waiting.plan(plan.as_deref().unwrap_or_default(), of, sight, printer)?,
            () = &mut end, if waiting.looked || !timeout.is_zero() => Some(waiting.out_of_time(timeout, printer)?),
            () = &mut stopped => return Err(waiting.interrupted()),
        };
        if let Some(outcome) = ended {
            return Ok(outcome);
        }
    }
}

/// Returns the next state of the followed object; pending if none is followed.
async fn next(followed: &mut Option<UnboundedReceiver<Sight>>) -> Option<Sight> {
    match followed {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

struct Waiting<'a> {
    namespace: &'a str,
    until: Until,
    json: bool,
    /// The plan, and the related objects as of the start.
    world: World,
    /// Whether the OperatorGroups could be read.
    knows_groups: bool,
    /// The event reported last, to report each only once.
    reported: Option<Value>,
    /// The last state of the plan.
    last: Option<(String, PlanSummary)>,
    /// The server error reported last.
    trouble: Option<String>,
    /// Whether the objects were read at least once.
    looked: bool,
}

impl Waiting<'_> {
    /// Follows this plan from now on.
    fn turn_to(&self, api: &Api, name: &str, plan: &mut Option<String>) -> UnboundedReceiver<Sight> {
        *plan = Some(name.to_owned());
        follow(api, plan_ref(self.namespace, name))
    }

    /// Returns the plan that the Subscription names now.
    fn subscription(&mut self, of: &Target, sight: Sight, printer: &mut Printer) -> Result<Option<String>, CliError> {
        let (Target::Subscription(name) | Target::Plan(name)) = of;
        let Some(Found(found)) = self.found(sight, "subscriptions", printer)? else { return Ok(None) };
        let Some(subscription) = found else {
            return Err(lookup::not_found("Subscription", name, self.namespace));
        };
        self.world.apply(subscription.clone());
        let of_status = [&["status", "installPlanRef", "name"][..], &["status", "installplan", "name"]];
        let plan = of_status.into_iter().map(|path| object::text(&subscription, path)).find(|name| !name.is_empty());
        self.looked |= plan.is_none();
        if plan.is_none() && self.last.is_none() {
            let why = match Subscription::new(&subscription).conditions().holding(RESOLUTION_FAILED) {
                Some(failed) => format!("it cannot be resolved: {}", failed.message()),
                None => "it has no InstallPlan yet".to_owned(),
            };
            self.report(
                json!({ "subscription": name, "message": why }),
                &format!("Subscription {name}: {why}"),
                printer,
            )?;
        }
        Ok(plan.map(str::to_owned))
    }

    /// Evaluates the state of the plan.
    fn plan(
        &mut self,
        name: &str,
        of: &Target,
        sight: Sight,
        printer: &mut Printer,
    ) -> Result<Option<Outcome>, CliError> {
        let Some(Found(found)) = self.found(sight, "installplans", printer)? else { return Ok(None) };
        let Some(plan) = found else {
            let was_there = self.last.as_ref().is_some_and(|(last, _)| last == name);
            return match of {
                Target::Plan(_) if was_there => {
                    let why = "it was deleted";
                    self.report(
                        json!({ "name": name, "deleted": true, "message": why }),
                        &format!("{name}: {why}"),
                        printer,
                    )?;
                    Ok(Some(Outcome::Negative))
                }
                Target::Plan(_) => Err(lookup::not_found("InstallPlan", name, self.namespace)),
                // The Subscription will name another plan.
                Target::Subscription(_) => {
                    self.looked = true;
                    Ok(None)
                }
            };
        };
        self.looked = true;
        self.world.apply(plan.clone());
        let mut summary = summary::summarize(&Settings::default(), &Reader::new(&self.world), &plan);
        if !self.knows_groups {
            summary.without_groups();
        }
        let judgement = judge(self.until, &summary);
        self.report_plan(name, &summary, &judgement, printer)?;
        self.last = Some((name.to_owned(), summary));
        match judgement {
            Judgement::NotYet => Ok(None),
            Judgement::Reached => {
                if !self.json {
                    printer.line(format_args!("installplan.operators.coreos.com/{name} {}", self.until.word()))?;
                }
                Ok(Some(Outcome::Done))
            }
            Judgement::Never(cause) => {
                let hint = self.last.as_ref().and_then(|(_, s)| s.reason.as_ref()).and_then(Reason::hint);
                let never = CliError::new(
                    ErrorKind::Api,
                    format!("InstallPlan {name} will not be {}: {cause}", self.until.word()),
                );
                printer.error(&hint.into_iter().fold(never, CliError::hint));
                Ok(Some(Outcome::Negative))
            }
        }
    }

    /// Returns the state; `None` on a server error, which is reported once.
    fn found(&mut self, sight: Sight, plural: &str, printer: &mut Printer) -> Result<Option<Found>, CliError> {
        match sight {
            Ok(object) => {
                self.trouble = None;
                Ok(Some(Found(object)))
            }
            Err(refusal) if follow::lasts(&refusal) => {
                // A watch begins with a list.
                let verb = if self.looked && self.trouble.is_none() { "watch" } else { "list" };
                Err(lookup::refused(&refusal, verb, plural, self.namespace))
            }
            Err(refusal) => {
                self.looked = true;
                if self.trouble.as_ref() != Some(&refusal.message) {
                    printer.warn(format_args!("no answer from the server, retrying: {}", refusal.message));
                    self.trouble = Some(refusal.message);
                }
                Ok(None)
            }
        }
    }

    fn report_plan(
        &mut self,
        name: &str,
        summary: &PlanSummary,
        judgement: &Judgement,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        let (done, all) = summary.steps;
        let message = summary.reason.as_ref().map(ToString::to_string);
        let mut event = serde_json::to_value(summary).unwrap_or_default();
        event["name"] = name.into();
        event["steps"] = json!({ "done": done, "all": all });
        if let Some(message) = &message {
            event["message"] = message.clone().into();
        }
        event["reached"] = (*judgement == Judgement::Reached).into();
        event["final"] = (*judgement != Judgement::NotYet).into();
        let phase = if summary.phase == Phase::None { "no phase" } else { summary.phase.as_str() };
        let why = message.map(|message| format!("; {message}")).unwrap_or_default();
        self.report(event, &format!("{name}: {phase}, {done} of {all} steps{why}"), printer)
    }

    /// Reports a change: as a line of JSON on stdout, or as text on stderr.
    fn report(&mut self, what: Value, words: &str, printer: &mut Printer) -> Result<(), CliError> {
        if self.reported.as_ref() == Some(&what) {
            return Ok(());
        }
        self.reported = Some(what.clone());
        if !self.json {
            printer.talk(words);
            return Ok(());
        }
        let mut event = json!({
            "apiVersion": API_VERSION,
            "kind": "InstallPlanEvent",
            "time": Timestamp::now().to_string(),
            "namespace": self.namespace,
        });
        if let (Some(event), Value::Object(what)) = (event.as_object_mut(), what) {
            event.extend(what);
        }
        printer.line(event)?;
        // Readers of the stream get every event at once.
        printer.flush()
    }

    /// Returns the last state of the plan, for errors.
    fn summary(&self) -> String {
        match &self.last {
            None => "no InstallPlan was seen".to_owned(),
            Some((name, summary)) => {
                let why = summary.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                let phase = if summary.phase == Phase::None { "without a phase" } else { summary.phase.as_str() };
                format!("InstallPlan {name} is {phase}{why}")
            }
        }
    }

    fn out_of_time(&mut self, timeout: Duration, printer: &mut Printer) -> Result<Outcome, CliError> {
        let after =
            if timeout.is_zero() { String::new() } else { format!(" after {}", crate::cli::table::age(timeout)) };
        if let (None, Some(trouble)) = (&self.last, &self.trouble) {
            let message = format!("no answer from the server{after}: {trouble}");
            let hint = "check that the cluster is running and the context is correct: kubectl config current-context";
            return Err(CliError::new(ErrorKind::Unreachable, message).hint(hint));
        }
        if self.json {
            let event = json!({ "timedOut": true, "message": self.summary() });
            self.report(event, "", printer)?;
        }
        let error = CliError::new(ErrorKind::Api, format!("not {}{after}: {}", self.until.word(), self.summary()));
        let hint = self.last.as_ref().and_then(|(_, s)| s.reason.as_ref()).and_then(Reason::hint);
        printer.error(&hint.into_iter().fold(error, CliError::hint));
        Ok(Outcome::Negative)
    }

    fn interrupted(&self) -> CliError {
        CliError::new(
            ErrorKind::Unreachable,
            format!("interrupted before the plan was {}: {}", self.until.word(), self.summary()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(phase: &str, approved: bool) -> PlanSummary {
        let plan = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan", "metadata": {"namespace": "garden", "name": "p"},
            "spec": {"approved": approved, "approval": "Manual", "clusterServiceVersionNames": ["rose"]},
            "status": {"phase": phase, "message": "no"},
        });
        summary::summarize(&Settings::default(), &Reader::new(&World::new()), &plan)
    }

    #[test]
    fn terminal_phases_end_the_wait() {
        use Until::{Approved, Complete, Failed};
        for (until, phase, approved, reached) in [
            (Complete, "RequiresApproval", false, None),
            (Complete, "Installing", true, None),
            (Complete, "Complete", true, Some(true)),
            (Complete, "Failed", true, Some(false)),
            (Approved, "RequiresApproval", false, None),
            (Approved, "RequiresApproval", true, Some(true)),
            (Approved, "Complete", true, Some(true)),
            (Failed, "Installing", true, None),
            (Failed, "Failed", true, Some(true)),
            (Failed, "Complete", true, Some(false)),
        ] {
            let judged = match judge(until, &summary(phase, approved)) {
                Judgement::Reached => Some(true),
                Judgement::Never(cause) => {
                    assert!(!cause.is_empty());
                    Some(false)
                }
                Judgement::NotYet => None,
            };
            assert_eq!(judged, reached, "{until:?} {phase} {approved}");
        }
    }
}
