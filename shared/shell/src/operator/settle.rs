//! Brings a Subscription to a running operator: approves the plan that was shown, and waits for `Succeeded`.

use std::time::Duration;

use olm_core::api::cluster_service_version::Phase;
use olm_core::health::Operator;
use olm_core::plan::Reason;

use super::awaiting::{Follower, Judgement};
use crate::cli::CliError;
use crate::cli::Printer;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags};
use crate::cluster::api::Api;
use crate::image;
use crate::installplan::approve::{self, approve_explained};
use crate::installplan::policy::Terms;

/// The Subscription, and what to reach.
#[derive(Clone, Copy)]
pub(super) struct Target<'t> {
    pub(super) cluster: &'t ClusterFlags,
    pub(super) namespace: &'t str,
    pub(super) name: &'t str,
    /// The ClusterServiceVersion that has to run; `None` for any.
    pub(super) csv: Option<&'t str>,
    /// Whether it was checked that controllers run.
    pub(super) is_checked: bool,
    pub(super) terms: &'t Terms,
    pub(super) images: &'t image::Options,
    /// Whether to wait until the operator runs, or only until its plan is approved.
    pub(super) wait: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) yes: bool,
}

/// The next thing to do.
enum Next {
    Approve(String),
    Done(Box<Operator>),
}

/// Approves the plan whose explanation has the hash, and waits. Returns `None` if the user declines.
///
/// # Errors
/// The plan cannot be approved, the operator cannot become healthy, or the time is up.
pub(super) async fn settle(
    api: &Api,
    target: Target<'_>,
    hash: &str,
    printer: &mut Printer,
) -> Result<Option<Operator>, CliError> {
    let follower = Follower::new(api, target.namespace, target.name);
    let mut follower = if target.is_checked { follower.with_controllers() } else { follower };
    let mut approved: Option<String> = None;
    loop {
        let judge = |operator: Option<Operator>| {
            operator.map_or(Judgement::NotYet, |operator| judge(operator, target, approved.as_deref()))
        };
        match follower.until(target.timeout, "installed", printer, judge).await? {
            Next::Done(operator) => return Ok(Some(*operator)),
            Next::Approve(plan) => {
                if !Box::pin(approve_explained(&options(target, &plan), hash, printer)).await? {
                    printer.talk("Nothing was approved; the Subscription waits for approval of its plan");
                    return Ok(None);
                }
                if !target.wait {
                    return Ok(follower.operator());
                }
                approved = Some(plan);
            }
        }
    }
}

fn judge(operator: Operator, target: Target<'_>, approved: Option<&str>) -> Judgement<Next> {
    let is_running = |operator: &Operator| {
        let installed = operator.installed.as_ref().filter(|version| version.phase == Phase::Succeeded.as_str());
        installed.is_some_and(|version| target.csv.is_none_or(|csv| csv == version.csv) || operator.next.is_none())
    };
    if is_running(&operator) {
        return Judgement::Reached(Next::Done(Box::new(operator)));
    }
    if let Some(Reason::ApprovalNeeded { name, csvs, .. }) = &operator.reason
        && approved != Some(name)
    {
        let is_wanted = target.csv.is_none_or(|wanted| csvs.is_empty() || csvs.iter().any(|csv| csv == wanted));
        if is_wanted {
            return Judgement::Reached(Next::Approve(name.clone()));
        }
    }
    if !target.wait && operator.installed.is_some() {
        return Judgement::Reached(Next::Done(Box::new(operator)));
    }
    Judgement::UnlessFinal
}

fn options(target: Target<'_>, plan: &str) -> approve::Options {
    approve::Options {
        cluster: target.cluster.clone(),
        namespaces: NamespaceFlags { namespace: Some(target.namespace.to_owned()), all_namespaces: false },
        plans: vec![plan.to_owned()],
        selector: None,
        terms: target.terms.clone(),
        yes: target.yes,
        dry_run: DryRun::None,
        wait: None,
        images: target.images.clone(),
        optional_manifests: false,
        plain_bundles: true,
    }
}
