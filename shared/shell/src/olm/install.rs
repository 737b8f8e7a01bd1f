//! `kubectl olm install` and `upgrade`: apply the objects of a release in stages, and wait until it is ready.
//!
//! ```text
//!   installed --> refuse: another OLM is installed
//!     |
//!     +--> CRDs --served--> namespaces --> access --> resources --> Deployments --healthy--> done
//! ```
//! Objects are applied server-side, so that the command can be repeated, also after an interruption.

use std::time::Duration;

use olm_core::api::custom_resource_definition::{CrdVersion, CustomResourceDefinition};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::installation::Installation;
use olm_core::distribution::state::difference;
use olm_core::distribution::{self, Distribution, PACKAGES_API, Release, Stage, stage};
use olm_core::packages::serve::registration;
use serde_json::Value;

use super::release::{Purpose, ReleaseFlags};
use super::transfer::held;
use super::wait::{self, End, Waiting};
use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::output::{Output, qualified};
use crate::cli::table::{Table, age};
use crate::cli::{CliError, ErrorKind, Outcome, Printer, signal};
use crate::cluster::api::Api;
use crate::cluster::installed::{get, held_leases, installed, list};
use crate::cluster::request_error::{Place, RequestError};

/// What may be on the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing, or the same release.
    Install,
    /// Another release, which is replaced; an older one only with `downgrade`.
    Upgrade {
        /// Whether the release may be older than the installed one.
        downgrade: bool,
    },
}

/// What to install, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The release.
    pub release: ReleaseFlags,
    /// What may be on the cluster.
    pub mode: Mode,
    /// Whether to apply only the CRDs and namespaces.
    pub crds_only: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// How long to wait until the installation is ready; zero: not at all.
    pub timeout: Duration,
    /// The output format.
    pub output: Output,
}

/// Installs or upgrades. The outcome is negative if the installation is not ready in time, or cannot become ready.
///
/// # Errors
/// The manifests cannot be read, another OLM is on the cluster, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(async {
        tokio::select! {
            ended = install(options, printer) => ended,
            _ = signal::received() => Ok(Outcome::Interrupted),
        }
    })
}

async fn install(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let purpose = match options.mode {
        Mode::Install => Purpose::Install,
        Mode::Upgrade { .. } => Purpose::Upgrade,
    };
    // An upgrade first needs an installation; for an installation, what it consists of is checked without a cluster.
    let specified = match purpose {
        Purpose::Upgrade => None,
        _ => Some(options.release.read(options.crds_only, purpose).await?),
    };
    let is_table = matches!(options.output, Output::Table | Output::Wide);
    let api = match connect(&options.cluster).await {
        // Manifests are printed without a cluster.
        _ if options.dry_run == DryRun::Client && !is_table => None,
        Err(error) if options.dry_run == DryRun::Client && error.kind == ErrorKind::NoCluster => None,
        connection => Some(connection?.api),
    };
    let release = match (specified, &api) {
        (Some(release), _) => release,
        (None, Some(api)) if installed(api).await?.is_empty() => return Err(not_installed()),
        (None, _) => options.release.read(options.crds_only, purpose).await?,
    };
    if let Some(api) = &api {
        check(api, options, &release).await?;
    }
    let api = match api {
        Some(api) if options.dry_run != DryRun::Client => api,
        api => return print(api.as_ref(), options, &release.objects, printer).await,
    };
    let mut waiting = Waiting::default();
    let work = apply_and_wait(&api, options, &release, &mut waiting, printer);
    let limit = if options.timeout.is_zero() { Duration::MAX } else { options.timeout };
    let ended = match tokio::time::timeout(limit, work).await {
        Ok(ended) => ended?,
        Err(_) => {
            waiting.lines().for_each(|line| printer.reason(line));
            let message = format!("OLM is not ready after {}", age(options.timeout));
            let mut error = CliError::new(ErrorKind::Api, message).hint(
                "run the command again to continue waiting, or use a longer --timeout; kubectl olm status shows each object",
            );
            let of_controllers = release.stage(Stage::Workloads).next();
            if let Some(deployment) = waiting.deployment(&release).or(of_controllers) {
                let (name, namespace) = (object::name(deployment), object::namespace(deployment));
                error = error.hint(format!(
                    "kubectl describe deployment {name} -n {namespace}, and kubectl logs deployment/{name} -n {namespace}, show what it waits for"
                ));
            }
            printer.error(&error);
            return Ok(Outcome::Negative);
        }
    };
    match ended {
        End::Healthy => {
            printer.talk(done(options, &release));
            let is_ready = options.dry_run == DryRun::None && !options.crds_only && !options.timeout.is_zero();
            if is_ready && list(&api, &kinds::CATALOG_SOURCE, |query| query).await?.is_empty() {
                printer.talk(without_catalog(&release.namespace));
            }
            Ok(Outcome::Done)
        }
        End::Failed(causes) => {
            for cause in &causes {
                printer.reason(cause);
            }
            printer.error(&CliError::new(ErrorKind::Api, "OLM was installed, but is not ready").hint(
                "correct the cause and run the command again; kubectl olm uninstall removes everything that was installed",
            ));
            Ok(Outcome::Negative)
        }
    }
}

/// Returns what follows the last message if the cluster has no CatalogSource: how to add one. Those in the namespace of OLM are global.
fn without_catalog(namespace: &str) -> String {
    format!(
        "the cluster has no catalog yet, from which operators are installed; to add the one of OperatorHub.io:
  kubectl apply -f - <<EOF
  apiVersion: operators.coreos.com/v1alpha1
  kind: CatalogSource
  metadata:
    name: operatorhubio-catalog
    namespace: {namespace}
  spec:
    sourceType: grpc
    image: quay.io/operatorhubio/catalog:latest
    grpcPodConfig:
      securityContextConfig: restricted
  EOF"
    )
}

/// Returns the last message.
fn done(options: &Options, release: &Release) -> String {
    let what = format!("{} {}", release.distribution.as_str(), release.version);
    match (options.dry_run, options.crds_only) {
        (DryRun::Server, _) => format!("{what} can be installed; nothing was changed"),
        (_, true) => "the CRDs of OLM are installed; to run its controllers from here: kubectl olm run".to_owned(),
        _ if options.timeout.is_zero() => format!("{what} is applied; kubectl olm status shows whether it works"),
        _ => format!(
            "{what} is installed; kubectl olm status shows its objects, and kubectl olm catalog list what it offers"
        ),
    }
}

/// Checks that the release can be applied to the cluster.
async fn check(api: &Api, options: &Options, release: &Release) -> Result<(), CliError> {
    let found = installed(api).await?;
    match options.mode {
        Mode::Install if options.crds_only => refuse_crds(&found)?,
        Mode::Install => refuse_others(&found, release)?,
        Mode::Upgrade { downgrade } => require_older(&found, release, downgrade)?,
    }
    // Controllers of kubectl-olm would wait for the Lease, and those of upstream OLM would write at the same time.
    if !found.iter().any(|found| found.distribution == Distribution::Own)
        && !options.crds_only
        && let Some(lease) = held_leases(api).await?.first()
    {
        return Err(held(lease));
    }
    if release.creates_packages_api() {
        require_packages_api(api).await?;
    }
    for namespace in release.stage(Stage::Namespaces) {
        let target = ObjectRef::from_object(namespace);
        if get(api, &target).await?.as_ref().is_some_and(object::is_terminating) {
            return Err(CliError::new(ErrorKind::Api, format!("namespace {} is being deleted", target.name))
                .hint("kubectl olm uninstall finishes the deletion, or reports what it waits for"));
        }
    }
    for crd in release.stage(Stage::Definitions) {
        if let Some(there) = get(api, &ObjectRef::from_object(crd)).await? {
            let offered: Vec<&str> = CustomResourceDefinition::new(crd).versions().map(CrdVersion::name).collect();
            let mut stored = CustomResourceDefinition::new(&there).stored_versions();
            if let Some(lost) = stored.find(|stored| !offered.contains(stored)) {
                let name = object::name(crd);
                return Err(CliError::new(
                    ErrorKind::Api,
                    format!("the release lacks version {lost} of {name}, in which objects may be stored"),
                )
                .hint("a newer OLM has written them: install that version or a newer one"));
            }
        }
    }
    Ok(())
}

/// Checks that the controllers, which do not replace the APIService of another server, can create it.
async fn require_packages_api(api: &Api) -> Result<(), CliError> {
    match get(api, &registration::api_service_ref()).await? {
        Some(other) if !registration::is_own(&other) => {
            let of = |field: &str| object::text(&other, &["spec", "service", field]);
            let message = format!(
                "APIService {PACKAGES_API} of another OLM is left, which leads to Service {}/{}",
                of("namespace"),
                of("name")
            );
            Err(CliError::new(ErrorKind::Api, message)
                .hint("remove what is left of that OLM first: kubectl olm uninstall --dry-run shows what it deletes")
                .hint(format!("or delete only the APIService: kubectl delete apiservice {PACKAGES_API}")))
        }
        _ => Ok(()),
    }
}

/// The hint for an OLM that OpenShift manages.
const OPENSHIFT: &str = "it is a part of OpenShift, which upgrades it; kubectl olm operator and catalog work with it";

fn refusal(found: &Installation) -> CliError {
    CliError::new(ErrorKind::Api, format!("OLM is already installed: {}", found.describe()))
}

/// Returns the error for a cluster without OLM.
pub(super) fn not_installed() -> CliError {
    CliError::new(ErrorKind::Api, "OLM is not installed on this cluster").hint("install it: kubectl olm install")
}

fn refuse_others(found: &[Installation], release: &Release) -> Result<(), CliError> {
    let is_taken_over = found.iter().any(|found| found.stopped);
    let Some(found) = found.iter().find(|found| !is_same(found, release)) else { return Ok(()) };
    let is_other = found.distribution != release.distribution || found.namespace != release.namespace;
    Err(refusal(found).hint(match () {
        () if found.is_openshift() => OPENSHIFT.to_owned(),
        () if is_taken_over => "to return to upstream OLM, which is stopped: kubectl olm hand-back".to_owned(),
        () if release.distribution == Distribution::Own && is_other => {
            "to run the controllers of kubectl-olm in its place: kubectl olm take-over; to remove it: kubectl olm uninstall".to_owned()
        }
        () if is_other => {
            "remove it first: kubectl olm uninstall --dry-run shows what that does to operators".to_owned()
        }
        () => format!("to change its version: kubectl olm upgrade --version {}", release.version),
    }))
}

/// Returns whether the release, or a part of it, is installed.
fn is_same(found: &Installation, release: &Release) -> bool {
    let version = found.version.as_deref();
    found.distribution == release.distribution
        && found.namespace == release.namespace
        && version.is_none_or(|version| version == distribution::label_value(&release.version))
}

fn refuse_crds(found: &[Installation]) -> Result<(), CliError> {
    match found.first() {
        Some(found) => {
            Err(refusal(found).hint("it has its CRDs, which belong to its version; kubectl olm status checks them"))
        }
        None => Ok(()),
    }
}

fn require_older(found: &[Installation], release: &Release, downgrade: bool) -> Result<(), CliError> {
    let found = match found {
        [] => return Err(not_installed()),
        [found] => found,
        [first, second, ..] => {
            return Err(CliError::new(
                ErrorKind::Api,
                format!("the cluster has several installations: {}; {}", first.describe(), second.describe()),
            )
            .hint(if first.stopped || second.stopped {
                "to change the image of the controllers that were taken over: kubectl olm take-over --image IMAGE; to return to upstream OLM: kubectl olm hand-back"
            } else {
                "remove one of them first"
            }));
        }
    };
    if found.is_openshift() {
        return Err(refusal(found).hint(OPENSHIFT));
    }
    if found.distribution != release.distribution || found.namespace != release.namespace {
        return Err(refusal(found).hint(match found.distribution {
            Distribution::Upstream => {
                "specify a release of upstream OLM: --version VERSION, with the same --olm-namespace"
            }
            Distribution::Own => "specify --image, without --version and --from, with the same --olm-namespace",
        }));
    }
    let parsed = |version: &str| olm_core::version::parse(version.trim_start_matches('v')).ok();
    let versions = found.version.as_deref().and_then(parsed).zip(parsed(&release.version));
    if versions.is_some_and(|(old, new)| olm_core::version::compare(&new, &old).is_lt()) && !downgrade {
        let message =
            format!("{} is older than the installed {}", release.version, found.version.as_deref().unwrap_or_default());
        return Err(CliError::new(ErrorKind::Api, message)
            .hint("OLM does not support downgrades; to do it anyway: --allow-downgrade"));
    }
    Ok(())
}

async fn apply_and_wait(
    api: &Api,
    options: &Options,
    release: &Release,
    waiting: &mut Waiting,
    printer: &mut Printer,
) -> Result<End, CliError> {
    let is_dry = options.dry_run == DryRun::Server;
    let mut applied = Vec::new();
    let mut before = Stage::Definitions;
    for object in &release.objects {
        let now = stage(object);
        if now > Stage::Definitions && before == Stage::Definitions && !is_dry {
            wait::served(api, release, waiting, printer).await?;
        }
        before = now;
        let (after, what) = apply(api, object, is_dry).await?;
        if matches!(options.output, Output::Table | Output::Wide) {
            printer.line(format_args!("{} {what}{}", qualified(object), options.dry_run.note()))?;
        }
        applied.push(after);
    }
    printer.flush()?;
    if !matches!(options.output, Output::Table | Output::Wide) {
        options.output.objects(printer, &applied, || Table::new([]))?;
    }
    if is_dry || options.timeout.is_zero() && !options.crds_only {
        return Ok(End::Healthy);
    }
    if options.crds_only {
        return wait::served(api, release, waiting, printer).await;
    }
    wait::healthy(api, release, waiting, printer).await
}

/// Applies an object, and returns it with what was done. In a dry run, an object whose kind or namespace does not exist yet
/// cannot be checked.
pub(super) async fn apply(api: &Api, object: &Value, is_dry: bool) -> Result<(Value, &'static str), CliError> {
    let target = ObjectRef::from_object(object);
    let before = get(api, &target).await?;
    let answer = if is_dry { api.dry_run_apply(object).await } else { api.apply(object).await };
    let after = match answer {
        Ok(after) => after,
        Err(refusal) if is_dry && refusal.is_not_found() => {
            return Ok((object.clone(), "not checked, its kind or namespace is missing"));
        }
        Err(refusal) => return Err(refused(&target, refusal)),
    };
    let what = match &before {
        None => "created",
        Some(before) if object::resource_version(before) == object::resource_version(&after) => "unchanged",
        Some(_) => "configured",
    };
    Ok((after, what))
}

fn refused(target: &ObjectRef, refusal: Status) -> CliError {
    let resource = resource(target);
    let error = RequestError::new("patch", resource, &target.namespace, refusal);
    let error = if target.namespace.is_empty() { RequestError { place: Place::Cluster, ..error } } else { error };
    CliError::from(error).while_doing(format_args!("cannot apply {}/{}", target.gvk.kind, target.name))
}

fn resource(target: &ObjectRef) -> String {
    kinds::find(&target.gvk.group, &target.gvk.kind).map_or_else(|| target.gvk.kind.to_lowercase(), Kind::resource)
}

/// Returns what applying an object would do, without a request to write.
pub(super) async fn foreseen(api: &Api, object: &Value) -> Result<&'static str, CliError> {
    Ok(match get(api, &ObjectRef::from_object(object)).await? {
        None => "created",
        Some(actual) if difference(&actual, object).is_none() => "unchanged",
        Some(_) => "configured",
    })
}

/// Prints the objects of a dry run, compared with those of the cluster, if there is one.
async fn print(
    api: Option<&Api>,
    options: &Options,
    objects: &[Value],
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    match &options.output {
        Output::Table | Output::Wide => {
            for object in objects {
                let what = match api {
                    Some(api) => foreseen(api, object).await?,
                    None => "created",
                };
                printer.line(format_args!("{} {what}{}", qualified(object), options.dry_run.note()))?;
            }
        }
        output => output.objects(printer, objects, || Table::new([]))?,
    }
    Ok(Outcome::Done)
}
