//! `kubectl olm uninstall`: removes OLM in a safe order, and checks that nothing is left.
//!
//! ```text
//!   inventory --Removal--> plan --confirm--> delete, part by part --> release finalizers --> inventory again: nothing left
//! ```
//! The plan is made from what exists, so that an interrupted removal is continued by the same command.

use std::time::{Duration, Instant};

use kube::api::DeleteParams;
use olm_core::api::conditions::{AVAILABLE, Conditions};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::status::Status;
use olm_core::distribution::removal::{Extent, Inventory, Part, Removal, waits_for_controllers};
use olm_core::distribution::state::remaining;
use olm_core::distribution::{NAMESPACE, OPERATORS, PACKAGES_API};
use olm_core::packages::serve::registration;
use serde_json::Value;

use crate::blocking::block_on;
use crate::cli::connect::connect;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::prompt::confirm;
use crate::cli::table::age;
use crate::cli::{CliError, ErrorKind, Outcome, Printer, signal};
use crate::cluster::api::Api;
use crate::cluster::follow::{follow, lasts};
use crate::cluster::installed::{get, installed, list};
use crate::cluster::request_error::{Place, RequestError};
use crate::run::{self, Mode, Release};

/// How long running controllers may take to clean up after ClusterServiceVersions, which takes them seconds. The command does the rest.
const CLEANING: Duration = Duration::from_secs(10);

/// The order of the removal.
const ORDER: [Part; 8] = [
    Part::Subscriptions,
    Part::Versions,
    Part::Resources,
    Part::Controllers,
    Part::Apis,
    Part::Access,
    Part::Namespaces,
    Part::Definitions,
];
/// The number of parts until the controllers are removed.
const CONTROLLERS: usize = 4;

/// What to remove, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// Whether to delete objects of users of OLM's kinds.
    pub delete_user_objects: bool,
    /// Whether to keep the CRDs, and with them all objects of OLM's kinds.
    pub keep_crds: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// How long to wait for the deletions.
    pub timeout: Duration,
}

/// Removes OLM. The outcome is negative if objects of users prevent it, or something is left in the end.
///
/// # Errors
/// The cluster cannot be read, OLM is a part of OpenShift, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let extent = Extent { user_objects: options.delete_user_objects, keep_crds: options.keep_crds };
    let Some(removal) = block_on(plan(options, extent, printer))? else { return Ok(Outcome::Done) };
    if !removal.users.is_empty() && !options.delete_user_objects {
        if options.dry_run != DryRun::None {
            print(&removal, options.dry_run, printer)?;
        }
        return refuse(&removal, printer);
    }
    if options.dry_run == DryRun::Server {
        block_on(dry_run(options, &removal))?;
    }
    if options.dry_run != DryRun::None {
        print(&removal, options.dry_run, printer)?;
        return Ok(Outcome::Done);
    }
    if !options.yes {
        removal.deleted.iter().for_each(|(_, target)| printer.reason(spelled(target)));
    }
    let users = match removal.users.len() {
        0 => String::new(),
        count => format!(", {count} of which are of users: their operators stop"),
    };
    let question = format!("Delete these {} objects{users}?", removal.deleted.len());
    if !confirm(printer, &question, options.yes)? {
        printer.talk("nothing was changed");
        return Ok(Outcome::Negative);
    }
    let mut work = Work { extent, waits_for: Vec::new(), deadline: Instant::now() + options.timeout };
    let (before, after) = ORDER.split_at(CONTROLLERS);
    if let Some(ended) = work.bounded(options, &removal, before, printer)? {
        return Ok(ended);
    }
    if block_on(Work::has_unfinished_versions(options))? {
        run::run(&work.releasing(options), printer)?;
    }
    if let Some(ended) = work.bounded(options, &removal, after, printer)? {
        return Ok(ended);
    }
    block_on(work.prove(options, &removal, printer))
}

/// Reads the inventory and plans; `None` if there is nothing to remove.
async fn plan(options: &Options, extent: Extent, printer: &mut Printer) -> Result<Option<Removal>, CliError> {
    let api = connect(&options.cluster).await?.api;
    let inventory = inventory(&api).await?;
    if let Some(found) = inventory.installations.iter().find(|found| found.is_openshift()) {
        return Err(CliError::new(ErrorKind::Api, format!("{} is a part of OpenShift", found.describe()))
            .hint("OpenShift installs it again; it cannot be removed"));
    }
    let removal = Removal::new(&inventory, extent);
    for (namespace, why) in &removal.kept {
        printer.warn(format_args!("namespace {} remains, because {why}", namespace.name));
    }
    if removal.deleted.is_empty() && removal.users.is_empty() {
        printer.talk("OLM is not installed: nothing to remove");
        return Ok(None);
    }
    Ok(Some(removal))
}

/// Prints the plan.
fn print(removal: &Removal, dry_run: DryRun, printer: &mut Printer) -> Result<(), CliError> {
    for (_, target) in &removal.deleted {
        printer.line(format_args!("{} deleted{}", spelled(target), dry_run.note()))?;
    }
    printer.flush()
}

/// Refuses to delete objects of users.
fn refuse(removal: &Removal, printer: &mut Printer) -> Result<Outcome, CliError> {
    let of = |target: &ObjectRef| format!("{} in namespace {}", spelled(target), target.namespace);
    removal.users.iter().for_each(|target| printer.reason(of(target)));
    let count = removal.users.len();
    printer.error(
        &CliError::new(ErrorKind::Api, format!("OLM is in use: {count} objects of its kinds would be deleted with its CRDs"))
            .hint("uninstall the operators first: kubectl olm operator list -A")
            .hint("--keep-crds removes the controllers and leaves the operators running; --delete-user-objects deletes these objects, and so stops the operators"),
    );
    Ok(Outcome::Negative)
}

/// Reads everything that the removal depends on.
async fn inventory(api: &Api) -> Result<Inventory, CliError> {
    let installations = installed(api).await?;
    let all = |kind: &'static Kind| list(api, kind, |query| query);
    let mut resources = Vec::new();
    for kind in [&kinds::SUBSCRIPTION, &kinds::CLUSTER_SERVICE_VERSION, &kinds::CATALOG_SOURCE, &kinds::OPERATOR_GROUP]
    {
        resources.extend(all(kind).await?);
    }
    let mut access = Vec::new();
    for kind in [&kinds::CLUSTER_ROLE, &kinds::CLUSTER_ROLE_BINDING] {
        access.extend(all(kind).await?);
    }
    access.extend(list(api, &kinds::ROLE_BINDING, |query| query.within("kube-system")).await?);
    let mut namespaces: Vec<&str> = installations.iter().map(|found| found.namespace.as_str()).collect();
    namespaces.extend([NAMESPACE, OPERATORS]);
    namespaces.sort_unstable();
    namespaces.dedup();
    let mut workloads = Vec::new();
    for namespace in &namespaces {
        for kind in [&kinds::DEPLOYMENT, &kinds::STATEFUL_SET, &kinds::DAEMON_SET, &kinds::PERSISTENT_VOLUME_CLAIM] {
            workloads.extend(list(api, kind, |query| query.within(namespace)).await?);
        }
    }
    let mut serving = Vec::new();
    for kind in registration::KINDS {
        let found = list(api, kind, |query| query.labelled(&registration::selector())).await?;
        serving.extend(found.into_iter().filter(|object| registration::belongs_to(object, &namespaces)));
    }
    Ok(Inventory {
        resources,
        crds: all(&kinds::CUSTOM_RESOURCE_DEFINITION).await?,
        access,
        namespaces: all(&kinds::NAMESPACE).await?,
        api: get(api, &kinds::API_SERVICE.object("", PACKAGES_API)).await?,
        serving,
        workloads,
        installations,
    })
}

/// Returns `kind.group/name`.
fn spelled(target: &ObjectRef) -> String {
    crate::cli::output::qualified(&target.to_object())
}

/// Submits all deletions as dry run.
async fn dry_run(options: &Options, removal: &Removal) -> Result<(), CliError> {
    let api = connect(&options.cluster).await?.api;
    let params = DeleteParams { dry_run: true, ..DeleteParams::foreground() };
    for (_, target) in &removal.deleted {
        match api.delete(target, &params).await {
            Err(refusal) if !refusal.is_not_found() && !refusal.is_conflict() => {
                return Err(refused("delete", target, refusal));
            }
            _ => {}
        }
    }
    Ok(())
}

fn refused(verb: &'static str, target: &ObjectRef, refusal: Status) -> CliError {
    let resource =
        kinds::find(&target.gvk.group, &target.gvk.kind).map_or_else(|| target.gvk.kind.to_lowercase(), Kind::resource);
    let error = RequestError::new(verb, resource, &target.namespace, refusal);
    let is_cluster = target.namespace.is_empty();
    CliError::from(if is_cluster { RequestError { place: Place::Cluster, ..error } } else { error })
}

/// Deletes an object, if it exists.
async fn delete(api: &Api, target: &ObjectRef, printer: &mut Printer) -> Result<(), CliError> {
    match api.delete(target, &DeleteParams::foreground()).await {
        Ok(_) => printer.line(format_args!("{} deleted", spelled(target))),
        Err(refusal) if refusal.is_not_found() => Ok(()),
        // A namespace that is being deleted already.
        Err(refusal) if refusal.is_conflict() => Ok(()),
        Err(refusal) => Err(refused("delete", target, refusal)),
    }
}

/// A removal in progress.
struct Work {
    deadline: Instant,
    extent: Extent,
    /// The objects whose deletion is awaited.
    waits_for: Vec<ObjectRef>,
}

impl Work {
    /// Removes parts within the time; returns the outcome if the command ends here.
    fn bounded(
        &mut self,
        options: &Options,
        removal: &Removal,
        parts: &[Part],
        printer: &mut Printer,
    ) -> Result<Option<Outcome>, CliError> {
        let rest = self.deadline.saturating_duration_since(Instant::now());
        let is_late = block_on(async {
            // A connection belongs to the runtime of its caller.
            let api = connect(&options.cluster).await?.api;
            tokio::select! {
                ended = tokio::time::timeout(rest, self.remove(&api, removal, parts, printer)) => match ended {
                    Ok(ended) => ended.map(|()| None),
                    Err(_) => Ok(Some(true)),
                },
                _ = signal::received() => Ok(Some(false)),
            }
        })?;
        match is_late {
            None => Ok(None),
            Some(false) => Ok(Some(Outcome::Interrupted)),
            Some(true) => block_on(self.late(options, printer)).map(Some),
        }
    }

    async fn remove(
        &mut self,
        api: &Api,
        removal: &Removal,
        parts: &[Part],
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        for part in parts {
            let targets: Vec<ObjectRef> = removal.part(*part).cloned().collect();
            for target in &targets {
                delete(api, target, printer).await?;
            }
            if *part == Part::Versions {
                // Without controllers the finalizer remains, and is removed later.
                if removal.part(Part::Controllers).next().is_some()
                    && let Ok(ended) =
                        tokio::time::timeout(CLEANING, self.wait_until_deleted(api, targets, printer)).await
                {
                    ended?;
                }
            } else {
                self.wait_until_deleted(api, targets, printer).await?;
            }
        }
        Ok(())
    }

    /// Checks that nothing is left.
    async fn prove(&self, options: &Options, removal: &Removal, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(&options.cluster).await?.api;
        let left = Removal::new(&inventory(&api).await?, self.extent);
        if left.deleted.is_empty() {
            printer.talk(match (self.extent.keep_crds, removal.kept.is_empty()) {
                (true, _) => "the controllers of OLM are removed; its CRDs and their objects remain",
                (false, true) => "OLM is removed: nothing is left of it",
                (false, false) => "OLM is removed, except for the namespaces named above",
            });
            return Ok(Outcome::Done);
        }
        left.deleted.iter().for_each(|(_, target)| printer.reason(format_args!("{} is left", spelled(target))));
        printer.error(
            &CliError::new(ErrorKind::Api, "OLM is not removed completely: other clients create its objects again")
                .hint("stop them, and run the command again"),
        );
        Ok(Outcome::Negative)
    }

    /// Waits until these objects do not exist: one after the other, since their deletion is requested already.
    async fn wait_until_deleted(
        &mut self,
        api: &Api,
        targets: Vec<ObjectRef>,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        self.waits_for = targets;
        let mut reported = String::new();
        while let Some(target) = self.waits_for.first().cloned() {
            let mut sights = follow(api, target.clone());
            while let Some(sight) = sights.recv().await {
                match sight {
                    Ok(Some(object)) => {
                        let why = remaining(&object);
                        if !why.is_empty() && why != reported {
                            printer.talk(format_args!("waiting for {}: {why}", spelled(&target)));
                            reported = why;
                        }
                    }
                    Ok(None) => break,
                    // The definition of its kind is deleted.
                    Err(refusal) if refusal.is_not_found() => break,
                    Err(refusal) if lasts(&refusal) => return Err(refused("get", &target, refusal)),
                    // The watch is retried.
                    Err(_) => {}
                }
            }
            self.waits_for.remove(0);
        }
        Ok(())
    }

    /// Returns whether ClusterServiceVersions that are being deleted wait for controllers.
    async fn has_unfinished_versions(options: &Options) -> Result<bool, CliError> {
        let api = connect(&options.cluster).await?.api;
        let csvs = list(&api, &kinds::CLUSTER_SERVICE_VERSION, |query| query).await?;
        Ok(csvs.iter().any(waits_for_controllers))
    }

    /// Returns the options for doing the rest of the work of the controllers.
    fn releasing(&self, options: &Options) -> run::Options {
        let timeout = Some(self.deadline.saturating_duration_since(Instant::now()));
        let release = Release { namespaces: Vec::new(), dry_run: false, yes: true, timeout };
        run::Options::new(Mode::ReleaseFinalizers(release), options.cluster.clone(), NAMESPACE)
    }

    /// Reports what the deletion waits for.
    async fn late(&self, options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
        let api = connect(&options.cluster).await?.api;
        for target in &self.waits_for {
            let Some(object) = get(&api, target).await? else { continue };
            let why = Some(remaining(&object)).filter(|why| !why.is_empty());
            printer.reason(format_args!(
                "{} still exists{}",
                spelled(target),
                why.map(|w| format!(": {w}")).unwrap_or_default()
            ));
        }
        let services = list(&api, &kinds::API_SERVICE, |query| query).await?;
        let is_served = |service: &&Value| Conditions::new(service).is_true(AVAILABLE);
        for service in services.iter().filter(|service| !is_served(service)) {
            let name = object::name(service);
            printer.reason(format_args!(
                "apiservice/{name} is not available, and blocks the deletion of every namespace: restore its server, or kubectl delete apiservice {name}"
            ));
        }
        let message = format!("OLM is not removed after {}", age(options.timeout));
        printer.error(&CliError::new(ErrorKind::Api, message).hint(
            "objects with finalizers wait for the controller that set them: start it, or remove the finalizer; then run the command again to continue",
        ));
        Ok(Outcome::Negative)
    }
}
