//! `--release-finalizers`: finishes deletions of ClusterServiceVersions that wait for controllers.
//!
//! Every ClusterServiceVersion has the finalizer `operators.coreos.com/csv-cleanup`: OLM's controllers delete the
//! objects that Kubernetes' garbage collector cannot, and remove the finalizer. Without running controllers, the
//! deletion of a ClusterServiceVersion, and of its namespace, never completes. This mode executes the controllers' own
//! plan for such ClusterServiceVersions, and no other plan.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::cluster_service_version::FINALIZER;
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::{kinds, labels};

use olm_core::planner::Planner;
use olm_core::world::trimmed;
use serde_json::Value;

use super::log::{Log, Voice};
use super::report::Report;
use super::timeline::Timeline;
use super::{Options, guard, live, report};
use crate::cli::signal::{self, Signal};
use crate::cli::table::{Table, age};
use crate::cli::{CliError, ErrorKind, Outcome, Printer, errors, prompt};
use crate::cluster::api::{Api, Depth, ListQuery, Resource};
use crate::cluster::catalogs::Catalogs;
use crate::cluster::lease::{Denied, Lease, Permit, describe};
use crate::cluster::live::{End, LoopOptions};
use crate::cluster::metrics::Metrics;
use crate::cluster::request_error::{RequestError, is_terminating};

/// The options of `--release-finalizers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// Print only what would be done.
    pub dry_run: bool,
    /// Skip the prompt.
    pub yes: bool,
    /// Give up after this time.
    pub timeout: Option<Duration>,
}

/// Finishes the deletions that wait for their finalizer.
pub(super) async fn run(options: &Options, release: &Release, printer: &mut Printer) -> Result<Outcome, CliError> {
    let (api, _) = live::connect(options).await?;
    let pending = pending(&api, release).await?;
    if pending.is_empty() {
        printer.talk(format_args!("no ClusterServiceVersion is being deleted{}: nothing to release", within(release)));
        return Ok(Outcome::Done);
    }
    let mut lease = Lease::new(api.clone()).await;
    if !release.dry_run {
        guard::require_none(&api).await?;
    }
    let held = !release.dry_run && claim(&mut lease).await?;
    let released = release_all(options, release, &api, &pending, held.then(|| lease.permit()), printer).await;
    if held {
        lease.release().await;
    }
    released
}

async fn release_all(
    options: &Options,
    release: &Release,
    api: &Api,
    pending: &[Value],
    permit: Option<Permit>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    printer.data(table(pending))?;
    printer.flush()?;
    if !release.dry_run {
        let question = format!(
            "Delete the objects of {} from the cluster, and remove the finalizer?",
            if pending.len() == 1 {
                "this ClusterServiceVersion".to_owned()
            } else {
                format!("these {} ClusterServiceVersions", pending.len())
            }
        );
        if !prompt::confirm(printer, &question, release.yes)? {
            printer.talk("nothing was changed");
            return Ok(Outcome::Negative);
        }
    }
    let names: BTreeSet<(String, String)> = pending.iter().map(named).collect();
    let planner = Planner::releasing(options.settings(), names.clone());
    let catalogs = Catalogs::read(&[], &options.namespace, options.images()?, errors::hint)?;
    let loop_options =
        LoopOptions { audit: release.dry_run, once: true, without_missing_kinds: true, ..LoopOptions::default() };
    let timeline = !options.log_lines && printer.is_read_on_a_terminal();
    let voice = match (release.dry_run, timeline) {
        (true, _) => Voice::Audit(&mut *printer, None),
        (false, true) => Voice::Timeline(Box::new(Timeline::new(&mut *printer, true))),
        (false, false) => Voice::Lines,
    };
    let mut log = Log::new(voice, true, Metrics::default());
    let mut stopped = None;
    let stop = async { stopped = Some(stop(release.timeout).await) };
    let permit = permit.unwrap_or_else(Permit::always);
    let end = crate::cluster::live::run(api.clone(), planner, catalogs, permit, &loop_options, &mut log, stop).await;
    drop(log);
    let reasons = match end {
        End::Unreadable(gvk, refusal) => {
            return Err(live::unreadable(&gvk, refusal));
        }
        End::Stopped(_) if stopped == Some(Signal::Interrupt) => return Ok(Outcome::Interrupted),
        End::Stopped(reasons) | End::Quiet(reasons) => reasons,
    };
    if release.dry_run {
        for (namespace, name) in &names {
            printer.line(format_args!("would remove the finalizer of ClusterServiceVersion/{namespace}/{name}"))?;
        }
        return Ok(Outcome::Done);
    }
    let report = Report::from_reasons(&reasons);
    report::lines(&report.open).for_each(|line| printer.reason(line));
    let left = left(api, &names).await?;
    for csv in &left {
        let finalizers: Vec<&str> =
            object::list(csv, &["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect();
        let (namespace, name) = named(csv);
        printer.reason(format_args!(
            "blocked: ClusterServiceVersion {namespace}/{name} still exists, with the finalizers {}",
            finalizers.join(", ")
        ));
    }
    printer.talk(format_args!("released {} of {}", names.len() - left.len(), names.len()));
    Ok(if left.is_empty() { Outcome::Done } else { Outcome::Negative })
}

/// Resolves when the run has to end.
async fn stop(timeout: Option<Duration>) -> Signal {
    match timeout {
        Some(timeout) => tokio::select! {
            signal = signal::received() => signal,
            () = tokio::time::sleep(timeout) => Signal::Terminate,
        },
        None => signal::received().await,
    }
}

/// Acquires the Lease, so that no controllers start in the meantime. Returns `false` if its namespace does not exist,
/// and so no process can hold it.
async fn claim(lease: &mut Lease) -> Result<bool, CliError> {
    match lease.claim_abandoned().await {
        Ok(()) => Ok(true),
        Err(Denied::Refused(refusal)) if refusal.is_not_found() || is_terminating(&refusal) => Ok(false),
        Err(Denied::Refused(refusal)) => Err(live::lease_refused(refusal).while_doing(format_args!(
            "cannot acquire the Lease {}, which prevents controllers from starting",
            lease.name()
        ))),
        Err(Denied::Held(record)) => {
            let message = format!("controllers are running: {} holds the Lease {}", describe(&record), lease.name());
            Err(CliError::new(ErrorKind::Api, message)
                .hint("they remove the finalizer themselves; to release it without them, stop them first"))
        }
    }
}

fn csvs() -> Resource {
    Resource::from(&kinds::CLUSTER_SERVICE_VERSION)
}

fn namespaces() -> Resource {
    Resource::from(&kinds::NAMESPACE)
}

/// Returns which of the selected namespaces are being deleted: Kubernetes deletes their objects some seconds later.
async fn terminating(api: &Api, release: &Release) -> Result<BTreeSet<String>, CliError> {
    let mut terminating = BTreeSet::new();
    for name in &release.namespaces {
        let target = kinds::NAMESPACE.object("", name);
        match api.get(&target).await.map_err(|status| RequestError::about("get", &namespaces(), "", status))? {
            Some(namespace) if object::is_deleting(&namespace) => drop(terminating.insert(name.clone())),
            Some(_) => {}
            None => {
                return Err(CliError::new(ErrorKind::Api, format!("namespace {name} does not exist"))
                    .hint("kubectl get namespaces lists them; a deleted namespace has nothing to release"));
            }
        }
    }
    if !release.namespaces.is_empty() {
        return Ok(terminating);
    }
    let mut token = String::new();
    loop {
        let page = api.page(&ListQuery::all(&namespaces()).depth(Depth::Metadata), &token).await;
        let page = page.map_err(|status| RequestError::about("list", &namespaces(), "", status))?;
        let deleting = page.objects.iter().filter(|namespace| object::is_deleting(namespace));
        terminating.extend(deleting.map(|namespace| object::name(namespace).to_owned()));
        if page.next.is_empty() {
            return Ok(terminating);
        }
        token = page.next;
    }
}

/// Returns the ClusterServiceVersions, trimmed, that have the finalizer and are being deleted or are in a namespace
/// that is being deleted.
async fn pending(api: &Api, release: &Release) -> Result<Vec<Value>, CliError> {
    let terminating = terminating(api, release).await?;
    let is_going = |csv: &Value| object::is_deleting(csv) || terminating.contains(object::namespace(csv));
    let is_meant =
        |csv: &Value| release.namespaces.is_empty() || release.namespaces.iter().any(|n| n == object::namespace(csv));
    let query = ListQuery::all(&csvs()).labelled(labels::NOT_COPIED).depth(Depth::Metadata);
    let mut pending = Vec::new();
    let mut token = String::new();
    loop {
        let page = api.page(&query, &token).await;
        let page = match page {
            Ok(page) => page,
            // The kind is not served, so there are no objects.
            Err(refusal) if refusal.is_not_found() => return Ok(pending),
            Err(refusal) => return Err(RequestError::about("list", &csvs(), "", refusal).into()),
        };
        let waits = |csv: &&Value| is_going(csv) && object::has_finalizer(csv, FINALIZER) && is_meant(csv);
        pending.extend(page.objects.iter().filter(waits).map(trimmed));
        if page.next.is_empty() {
            return Ok(pending);
        }
        token = page.next;
    }
}

/// Returns those that still exist.
async fn left(api: &Api, names: &BTreeSet<(String, String)>) -> Result<Vec<Value>, CliError> {
    let mut left = Vec::new();
    for (namespace, name) in names {
        let target = ObjectRef { gvk: csvs().gvk, namespace: namespace.clone(), name: name.clone() };
        match api.get(&target).await {
            Ok(Some(csv)) => left.push(csv),
            Ok(None) => {}
            Err(refusal) if refusal.is_not_found() => {}
            Err(refusal) => return Err(RequestError::about("get", &csvs(), namespace, refusal).into()),
        }
    }
    Ok(left)
}

fn named(csv: &Value) -> (String, String) {
    (object::namespace(csv).to_owned(), object::name(csv).to_owned())
}

fn within(release: &Release) -> String {
    match &release.namespaces[..] {
        [] => String::new(),
        names => format!(" in {}", names.join(", ")),
    }
}

fn table(pending: &[Value]) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new(["NAMESPACE", "CLUSTERSERVICEVERSION", "DELETED"]);
    for csv in pending {
        let deleted = object::parse_time(object::text(csv, &["metadata", "deletionTimestamp"]));
        let since = deleted.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
        let (namespace, name) = named(csv);
        table.row([namespace, name, since.map_or_else(|| "with its namespace".to_owned(), age)]);
    }
    table
}
