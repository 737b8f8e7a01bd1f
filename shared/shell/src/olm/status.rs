//! `kubectl olm status`: the state of OLM itself, of its catalogs, and of operators.

use futures::{StreamExt, TryStreamExt, stream};
use olm_core::api::crd;
use olm_core::api::kinds;
use olm_core::api::object::{self, ObjectRef};
use olm_core::distribution::installation::Installation;
use olm_core::distribution::state::{Health, State, health, state};
use olm_core::distribution::{Distribution, PACKAGE_SERVER, PACKAGES_API, Release, own};
use olm_core::listing::{CAUSE, clause, listed};
use serde_json::{Value, json};

use super::release::{Purpose, ReleaseFlags};
use crate::blocking::block_on;
use crate::cli::connect::{Connection, connect};
use crate::cli::flags::{ClusterFlags, NamespaceFlags, OutputFlags, SourceFlags};
use crate::cli::list::ListFlags;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::source::warn_of_gaps;
use crate::cli::table::Table;
use crate::cli::{CliError, Outcome, Printer};
use crate::cluster::api::Api;
use crate::cluster::installed::{HeldLease, get, get_status, held_leases, installed, list};
use crate::observe::ClusterState;
use crate::operator::list as operators;

/// The maximum number of concurrent requests for the objects of an installation.
const REQUESTS: usize = 16;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The release to compare with.
    pub release: ReleaseFlags,
    /// The namespaces of the operators.
    pub namespaces: NamespaceFlags,
    /// The output format.
    pub output: Output,
}

/// The state of OLM itself.
struct Found {
    installations: Vec<Installation>,
    /// The held Leases of `kubectl olm run`.
    leases: Vec<HeldLease>,
    /// Whether the kinds of OLM exist.
    has_crds: bool,
    objects: Vec<(ObjectRef, State, String)>,
    catalogs: Vec<(ObjectRef, State, String)>,
}

/// Shows the state. The outcome is negative if OLM is not installed or not ready.
///
/// # Errors
/// The manifests or the cluster cannot be read.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let (found, operators) = block_on(read(options))?;
    let is_table = matches!(options.output, Output::Table | Output::Wide);
    if is_table {
        print(&found, options.output.is_wide(), printer)?;
    }
    if found.has_crds && is_table {
        printer.line("")?;
        let operators = operators?;
        printer.line(match &operators.namespace {
            Some(namespace) => format!("Operators in namespace {namespace}:"),
            None => "Operators in all namespaces:".to_owned(),
        })?;
        operators::show(&of_operators(options), &[], &operators, printer)?;
    } else if !is_table {
        let operators = if found.has_crds { data(&operators?, printer)? } else { Vec::new() };
        options.output.object(printer, &document(&found, operators), || Table::new([]))?;
    }
    let works = found.objects.iter().all(|(_, state, _)| *state == State::Present);
    let runs = !found.installations.is_empty() || !found.leases.is_empty();
    Ok(if runs && works { Outcome::Done } else { Outcome::Negative })
}

fn of_operators(options: &Options) -> operators::Options {
    operators::Options {
        source: SourceFlags { cluster: options.cluster.clone(), ..SourceFlags::default() },
        namespaces: options.namespaces.clone(),
        names: Vec::new(),
        blocked: false,
        list: ListFlags { output: OutputFlags { output: options.output.clone() }, ..ListFlags::default() },
    }
}

/// Returns the operators as `kubectl olm operator list -o json` prints them.
fn data(state: &ClusterState, printer: &mut Printer) -> Result<Vec<Value>, CliError> {
    warn_of_gaps(state, printer);
    operators::documents(state)
}

/// The state of the operators, or why it cannot be read. Without the CRDs of OLM it is not needed.
type Operators = Result<ClusterState, CliError>;

/// Reads everything, in two rounds of concurrent requests: what is installed, and then the objects of that.
async fn read(options: &Options) -> Result<(Found, Operators), CliError> {
    let desired =
        if options.release.is_upstream() { Some(options.release.read(false, Purpose::Install).await?) } else { None };
    let Connection { api, namespace, .. } = connect(&options.cluster).await?;
    let NamespaceFlags { namespace: given, all_namespaces } = &options.namespaces;
    let namespace = (!all_namespaces).then(|| given.clone().unwrap_or(namespace));
    let (found, operators) = futures::join!(read_state(&api, desired), operators::read(api.clone(), namespace));
    Ok((found?, operators))
}

async fn read_state(api: &Api, desired: Option<Release>) -> Result<Found, CliError> {
    let catalogs = list(api, &kinds::CATALOG_SOURCE, |query| query);
    let (installations, leases, catalogs) = futures::join!(installed(api), held_leases(api), catalogs);
    let (installations, leases) = (installations?, leases?);
    let of = |distribution| installations.iter().find(|found| found.distribution == distribution);
    let (own, upstream) = (of(Distribution::Own), of(Distribution::Upstream));
    let (release, is_taken_over) = match (desired, own, upstream) {
        (Some(release), _, _) => (Some(release), false),
        // The rest of the installation is that of upstream OLM, whose controllers are stopped.
        (None, Some(own), Some(upstream)) if upstream.stopped => {
            (Some(own_release(api, own).await?.only_controllers()), true)
        }
        (None, Some(own), _) => (Some(own_release(api, own).await?), false),
        (None, None, _) => (None, false),
    };
    let desired = release.iter().flat_map(|release| &release.objects);
    let mut targets: Vec<(ObjectRef, Option<&Value>)> =
        desired.map(|object| (ObjectRef::from_object(object), Some(object))).collect();
    if release.as_ref().is_some_and(Release::creates_packages_api) {
        targets.push((kinds::API_SERVICE.object("", PACKAGES_API), None));
    }
    if release.is_none() || is_taken_over {
        targets.extend(known(upstream).into_iter().map(|target| (target, None)));
    }
    let states = stream::iter(targets).map(|(target, desired)| state_of(api, target, desired)).buffered(REQUESTS);
    let mut objects: Vec<(ObjectRef, State, String)> = states.try_collect().await?;
    let has_crds = objects.iter().any(|(target, state, _)| is_crd(target) && *state != State::Absent);
    if installations.is_empty() && !has_crds {
        objects.clear();
    }
    let catalogs = if has_crds { catalogs?.iter().map(of_catalog).collect() } else { Vec::new() };
    // The state of catalogs is not that of the installation.
    objects.retain(|(target, _, _)| target.gvk.kind != kinds::CATALOG_SOURCE.kind || release.is_some());
    Ok(Found { installations, leases, has_crds, objects, catalogs })
}

/// Reads an object, and returns its state compared with its manifest, if any.
async fn state_of(
    api: &Api,
    target: ObjectRef,
    desired: Option<&Value>,
) -> Result<(ObjectRef, State, String), CliError> {
    let actual = match desired {
        None if is_crd(&target) => get_status(api, &target).await?,
        _ => get(api, &target).await?,
    };
    let (state, message) = state(desired, actual.as_ref());
    Ok((target, state, message))
}

fn of_catalog(catalog: &Value) -> (ObjectRef, State, String) {
    let (state, message) = match health(catalog) {
        _ if object::is_deleting(catalog) => (State::Deleting, String::new()),
        Health::Healthy => (State::Present, String::new()),
        Health::Waiting(why) | Health::Failed(why) => (State::Unhealthy, why),
    };
    (ObjectRef::from_object(catalog), state, message)
}

fn is_crd(target: &ObjectRef) -> bool {
    target.gvk.kind == kinds::CUSTOM_RESOURCE_DEFINITION.kind
}

/// Returns this project's release with the image and the namespace of the installed one.
async fn own_release(api: &Api, found: &Installation) -> Result<Release, CliError> {
    let name = olm_core::distribution::CONTROLLERS;
    let deployment = get(api, &kinds::DEPLOYMENT.object(&found.namespace, name)).await?.unwrap_or_default();
    let containers = object::list(&deployment, &["spec", "template", "spec", "containers"]);
    let image = containers.first().map_or("", |container| object::text(container, &["image"]));
    let changes = olm_core::distribution::Changes {
        namespace: Some(found.namespace.clone()),
        ..olm_core::distribution::Changes::default()
    };
    Ok(own(env!("CARGO_PKG_VERSION"), Some(image)).with(&changes))
}

/// Returns the objects that every installation has, without manifests to compare with: the CRDs, and those of upstream OLM.
fn known(found: Option<&Installation>) -> Vec<ObjectRef> {
    let mut targets: Vec<ObjectRef> =
        crd::names().iter().map(|name| kinds::CUSTOM_RESOURCE_DEFINITION.object("", name)).collect();
    if let Some(found) = found {
        let namespace = &found.namespace;
        targets.push(kinds::NAMESPACE.object("", namespace));
        let controllers = if found.stopped { [].as_slice() } else { &olm_core::distribution::UPSTREAM };
        let deployments = controllers.iter().copied().chain([PACKAGE_SERVER]);
        targets.extend(deployments.map(|name| kinds::DEPLOYMENT.object(namespace, name)));
        targets.push(kinds::CLUSTER_SERVICE_VERSION.object(namespace, PACKAGE_SERVER));
        targets.push(kinds::API_SERVICE.object("", PACKAGES_API));
    }
    targets
}

/// Returns the summary: what is installed, and what runs it.
fn summary(found: &Found) -> Vec<String> {
    let mut lines = Vec::new();
    for installation in &found.installations {
        lines.push(format!("OLM: {}", installation.describe()));
    }
    if found.installations.is_empty() {
        let crds = if found.has_crds { " (its CRDs are)" } else { "" };
        lines.push(format!("OLM: not installed{crds}"));
    }
    for HeldLease { namespace, name, holder_identity, .. } in &found.leases {
        lines.push(format!("Controllers: kubectl olm run (Lease {namespace}/{name}, held by {holder_identity})"));
    }
    lines
}

fn print(found: &Found, is_wide: bool, printer: &mut Printer) -> Result<(), CliError> {
    for line in summary(found) {
        printer.line(line)?;
    }
    let running: Vec<&Installation> = found.installations.iter().filter(|found| !found.stopped).collect();
    let (upstream, own): (Vec<&Installation>, Vec<&Installation>) =
        running.iter().copied().partition(|found| found.distribution == Distribution::Upstream);
    let is_own_active = !own.is_empty() || !found.leases.is_empty();
    let describe = |found: &[&Installation]| found.iter().map(|found| found.describe()).collect::<Vec<_>>();
    match &running[..] {
        [] if found.leases.is_empty() => {
            let next = match (found.installations.is_empty(), found.has_crds) {
                (false, _) => {
                    "kubectl olm hand-back starts upstream OLM, and kubectl olm run runs the controllers here"
                }
                (true, true) => "kubectl olm run",
                (true, false) => "kubectl olm install, or kubectl olm install --crds-only",
            };
            printer.talk(format_args!("no controllers are running: {next}"));
        }
        _ if upstream.len() > 1 || own.len() > 1 => {
            printer.warn(format_args!("these write at the same time: {}", listed(&describe(&running))));
            printer.talk("hint: remove all but one");
        }
        _ if !upstream.is_empty() && is_own_active => {
            let upstream = listed(&describe(&upstream));
            printer.warn(format_args!("the controllers of kubectl-olm are paused while {upstream} is running"));
            printer.talk("hint: stop one of them: kubectl olm take-over, or kubectl olm hand-back");
        }
        _ => {}
    }
    if !found.objects.is_empty() {
        let wrong = found.objects.iter().filter(|(_, state, _)| *state != State::Present).count();
        let all = found.objects.len();
        printer.line(if wrong == 0 {
            format!("Objects: {all} present")
        } else {
            format!("Objects: {} of {all} present", all - wrong)
        })?;
    }
    let shown: Vec<_> = found.objects.iter().filter(|(_, state, _)| is_wide || *state != State::Present).collect();
    if !shown.is_empty() {
        printer.line("")?;
        printer.data(table(&shown, is_wide))?;
    }
    if !found.catalogs.is_empty() {
        printer.line("")?;
        printer.line("Catalogs:")?;
        printer.data(table(&found.catalogs.iter().collect::<Vec<_>>(), is_wide))?;
    }
    Ok(())
}

fn table(rows: &[&(ObjectRef, State, String)], is_wide: bool) -> Table {
    let mut table = Table::new(["KIND", "NAMESPACE", "NAME", "STATE", "MESSAGE"]);
    for (target, state, message) in rows {
        let message = if is_wide { message.clone() } else { clause(message, CAUSE) };
        table.row([&target.gvk.kind, &target.namespace, &target.name, state.as_str(), &message]);
    }
    table
}

fn document(found: &Found, operators: Vec<Value>) -> Value {
    let item = |(target, state, message): &(ObjectRef, State, String)| {
        let mut item = json!({
            "apiVersion": target.gvk.api_version(), "kind": target.gvk.kind, "name": target.name, "state": state,
        });
        for (key, text) in [("namespace", &target.namespace), ("message", message)] {
            if !text.is_empty() {
                item[key] = text.as_str().into();
            }
        }
        item
    };
    let held = |lease: &HeldLease| json!({ "namespace": lease.namespace, "holderIdentity": lease.holder_identity });
    json!({
        "apiVersion": API_VERSION,
        "kind": "OLMStatus",
        "installations": found.installations,
        "leases": found.leases.iter().map(held).collect::<Vec<_>>(),
        "objects": found.objects.iter().map(item).collect::<Vec<_>>(),
        "catalogs": found.catalogs.iter().map(item).collect::<Vec<_>>(),
        "operators": operators,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::rounds::rounds;

    fn answer(path: &str) -> Option<Value> {
        let name = path.strip_prefix("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/")?;
        let established = ["NamesAccepted", "Established"].map(|name| json!({ "type": name, "status": "True" }));
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name },
            "spec": { "group": "operators.coreos.com" }, "status": { "conditions": established },
        }))
    }

    #[tokio::test]
    async fn the_state_is_read_in_two_rounds_of_requests() {
        let read = async |api: Api| read_state(&api, None).await.map(|found| (found.has_crds, found.objects));
        let (read, rounds) = rounds(answer, read).await;
        let (has_crds, objects) = read.unwrap();
        assert!(has_crds && objects.iter().all(|(_, state, _)| *state == State::Present), "{objects:?}");
        let sizes: Vec<usize> = rounds.iter().map(Vec::len).collect();
        // Deployments of two distributions, a ClusterServiceVersion, Leases and CatalogSources; then the definitions.
        assert_eq!(sizes, [5, crd::names().len()], "{rounds:?}");
    }
}
