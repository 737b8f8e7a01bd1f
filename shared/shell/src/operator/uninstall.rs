//! `kubectl olm operator uninstall`: removes an operator, and proves that nothing is left.
//!
//! ```text
//!   state --olm_core removal--> plan --prompt--> backup
//!     Subscription and InstallPlans, so that nothing is installed again
//!     custom resources, while the operator can process their finalizers
//!     ClusterServiceVersions; where no controller runs, also what their finalizer stands for
//!     CustomResourceDefinitions, conversion webhooks, OperatorGroup
//!     --> what is left
//! ```
//!
//! *Guarantees*: objects are deleted by uid, so that a new object of the same name is not. Everything can be interrupted and
//! run again. Finalizers of custom resources are never removed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::listing::listed;
use olm_core::membership;
use olm_core::operatorgroup::intersection;
use olm_core::removal::{self, OwnedCrd, Permission, Removal, Request};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::backup;
use super::left::left;
use super::lookup;
use super::operands::{self, Operands};
use super::steps::Steps;
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::prompt::confirm;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::observe::{ClusterState, ReadFailure};

/// The kinds that state which permissions belong to manifests, and whether these exist.
const PERMISSION_SOURCES: [&Kind; 3] = [&kinds::INSTALL_PLAN, &kinds::CLUSTER_ROLE, &kinds::CLUSTER_ROLE_BINDING];

/// What to remove, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// The operator.
    pub name: String,
    /// Whether its CustomResourceDefinitions are deleted.
    pub delete_crds: bool,
    /// Whether its custom resources are deleted.
    pub delete_operands: bool,
    /// The directory for a backup of what is deleted.
    pub backup: Option<PathBuf>,
    /// Whether an operator is removed that others require.
    pub force: bool,
    /// How long to wait for custom resources and definitions; `None` for as long as the operator runs.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format.
    pub output: Output,
}

/// Removes an operator. The outcome is negative if the user declines, or something is left.
///
/// # Errors
/// The operator does not exist, other operators require it, objects cannot be read, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(async {
        let (state, namespace) = lookup::read(&options.cluster, &[], options.namespace.as_deref(), printer).await?;
        match remove(options, &state, &namespace, printer).await? {
            Some(ended) => ended.print(&options.output, printer),
            None => Err(lookup::not_found(bare(&options.name, "subscription")?, Some(&namespace))),
        }
    })
}

/// Removes an operator of the namespace that [`lookup::read`] has read, and prints what is done, but not the result. Returns `None` if the
/// operator does not exist.
pub(super) async fn remove(
    options: &Options,
    state: &ClusterState,
    namespace: &str,
    printer: &mut Printer,
) -> Result<Option<Removed>, CliError> {
    let name = bare(&options.name, "subscription")?.to_owned();
    let hides = |failure: &ReadFailure| {
        failure.is_of("clusterserviceversions") || failure.is_unreadable_of("clusterserviceversions")
    };
    let unread = state.read_failures.iter().find(|failure| hides(failure)).map(ToString::to_string);
    let world = Reader::new(&state.world);
    let request = Request { namespace, name: &name, delete_crds: options.delete_crds, knows_all: unread.is_none() };
    let removal = removal::plan(&world, request);
    if removal.is_empty() {
        return Ok(None);
    }
    if let Some(unread) = unread {
        printer.warn(format_args!("{unread}; operators of other namespaces may need what this one provides"));
    }
    let states_permissions = |failure: &&ReadFailure| PERMISSION_SOURCES.iter().any(|kind| failure.hides(kind));
    for failure in state.read_failures.iter().filter(states_permissions) {
        printer
            .warn(format_args!("{failure}; ClusterRoles and ClusterRoleBindings of the bundle's manifests may remain"));
    }
    let Some(api) = state.api().cloned() else { return Ok(None) };
    let crd_of = |name: &str| world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name).cloned();
    let operands = operands::read(&api, &removal, &targets(&world, namespace), options.delete_operands, crd_of).await?;
    for line in plan(&removal, &operands) {
        printer.talk(line);
    }
    if !removal.dependents.is_empty() && !options.force {
        return Err(CliError::new(
            ErrorKind::Api,
            format!("nothing was deleted: {} is required by {}", name, listed(&removal.dependents)),
        )
        .hint("uninstall these first, or pass --force"));
    }
    let removed = |deleted: &[ObjectRef], left: Vec<String>| Removed {
        document: document(options, &name, &removal, &operands, deleted, &left),
        name: name.clone(),
        dry_run: options.dry_run,
        is_declined: false,
        left,
    };
    if options.dry_run != DryRun::None {
        return Ok(Some(removed(&planned(&removal, &operands), Vec::new())));
    }
    if !confirm(printer, &format!("Uninstall {name} from namespace {namespace}?"), options.yes)? {
        printer.talk("Nothing was deleted");
        return Ok(Some(Removed { is_declined: true, ..removed(&[], Vec::new()) }));
    }
    if let Some(folder) = &options.backup {
        let files = backup::write(folder, &format!("{namespace}/{name}"), &operands)?;
        printer.talk(format_args!("backed up {files} objects in {}", folder.display()));
    }
    let mut steps = Steps { api: &api, state, removal: &removal, deleted: Vec::new() };
    steps.record(&name, printer).await?;
    steps.delete_subscription(printer).await?;
    steps.delete_operands(&operands, options.timeout, printer).await?;
    steps.delete_csvs(printer).await?;
    steps.delete_definitions(options.timeout, printer).await?;
    let left = left(&steps, printer).await?;
    if left.is_empty() {
        steps.forget(printer).await?;
    }
    Ok(Some(removed(&steps.deleted, left)))
}

/// Returns the objects that the removal deletes by itself.
fn planned(removal: &Removal, operands: &[Operands]) -> Vec<ObjectRef> {
    let Removal { subscription, plans, csvs, crds, group, .. } = removal;
    let crds = crds.iter().filter(|crd| crd.kept.is_none());
    let crds = crds.map(|crd| kinds::CUSTOM_RESOURCE_DEFINITION.object("", &crd.name));
    let operands = operands.iter().flat_map(|operands| &operands.objects).map(ObjectRef::from_object);
    let mut all: Vec<ObjectRef> =
        subscription.iter().chain(plans).cloned().chain(operands).chain(csvs.iter().cloned()).collect();
    let permissions = removal.permissions.iter().filter(|permission| permission.kept.is_none());
    all.extend(crds.chain(permissions.filter_map(Permission::target)).chain(group.iter().cloned()));
    all
}

/// The result of a removal.
pub(super) struct Removed {
    name: String,
    /// The result as data.
    document: Value,
    dry_run: DryRun,
    is_declined: bool,
    /// What is left.
    left: Vec<String>,
}

impl Removed {
    /// Returns whether the user declined, or something is left.
    pub(super) fn outcome(&self) -> Outcome {
        if self.is_declined || !self.left.is_empty() { Outcome::Negative } else { Outcome::Done }
    }

    /// Returns whether the user declined.
    pub(super) fn is_declined(&self) -> bool {
        self.is_declined
    }

    /// Returns the result as data, as part of another document.
    pub(super) fn into_document(self) -> Value {
        let mut document = self.document;
        let fields = object::map_mut(&mut document, &[]);
        fields.remove("apiVersion");
        fields.remove("kind");
        document
    }

    /// Prints the result, and what is left.
    pub(super) fn print(&self, output: &Output, printer: &mut Printer) -> Result<Outcome, CliError> {
        let Self { name, document, dry_run, left, is_declined } = self;
        match output {
            _ if *is_declined => {}
            Output::Table | Output::Wide if left.is_empty() => {
                printer.line(format_args!("operator/{name} uninstalled{}", dry_run.note()))?;
            }
            Output::Table | Output::Wide => {}
            Output::Name => printer.line(format_args!("operator/{name}"))?,
            output => output.object(printer, document, || Table::new([]))?,
        }
        self.report(printer);
        Ok(self.outcome())
    }

    /// Reports what is left.
    pub(super) fn report(&self, printer: &mut Printer) {
        let Self { name, left, .. } = self;
        if !left.is_empty() {
            let error = CliError::new(ErrorKind::Api, format!("{name} is uninstalled, except for {}", listed(left)));
            printer.error(&error.hint("run the command again; kubectl get and describe show what holds these objects"));
        }
    }
}

/// Returns the result as data.
fn document(
    options: &Options,
    name: &str,
    removal: &Removal,
    operands: &[Operands],
    deleted: &[ObjectRef],
    left: &[String],
) -> Value {
    let kept = removal.crds.iter().filter_map(|crd| {
        let of = operands.iter().find(|operands| operands.crd == crd.name);
        let objects = of.filter(|operands| operands.unread.is_none()).map(|operands| operands.kept);
        Some(json!({ "name": crd.name, "reason": crd.kept.as_ref()?, "objects": objects }))
    });
    let is_repaired = |crd: &&OwnedCrd| crd.loses_conversion && crd.kept.is_some();
    let repaired = removal.crds.iter().filter(is_repaired).map(|crd| crd.name.as_str());
    json!({
        "apiVersion": API_VERSION, "kind": "OperatorRemoval",
        "namespace": removal.namespace, "name": name, "package": removal.package,
        "dryRun": options.dry_run != DryRun::None,
        "deleted": deleted.iter().map(reference).collect::<Vec<_>>(),
        "retainedDefinitions": kept.collect::<Vec<_>>(),
        "retainedPermissions": removal.permissions.iter().filter_map(|permission| {
            let Permission { kind, name, kept, .. } = permission;
            Some(json!({ "kind": kind, "name": name, "reason": kept.as_ref()? }))
        }).collect::<Vec<_>>(),
        "conversionsSetToNone": repaired.collect::<Vec<_>>(),
        "dependents": removal.dependents, "dependencies": removal.dependencies,
        "backup": options.backup.as_ref().map(|folder| folder.display().to_string()),
        "left": left,
    })
}

/// Returns a reference to an object, for documents.
pub(super) fn reference(target: &ObjectRef) -> Value {
    let mut reference = json!({ "apiVersion": target.gvk.api_version(), "kind": target.gvk.kind, "name": target.name });
    if !target.namespace.is_empty() {
        reference["namespace"] = target.namespace.as_str().into();
    }
    reference
}

/// Returns the namespaces that the operator watches.
pub(super) fn targets(world: &Reader<'_>, namespace: &str) -> BTreeSet<String> {
    let groups = membership::groups(world, namespace);
    groups.into_iter().flat_map(|group| intersection::targets(world, group)).collect()
}

/// Returns what is done, in lines.
fn plan(removal: &Removal, operands: &[Operands]) -> Vec<String> {
    let Removal { namespace, subscription, plans, csvs, crds, permissions, dependencies, group, .. } = removal;
    let mut lines = vec![format!("In namespace {namespace}:")];
    if removal.interrupted.is_some() {
        lines.push("  continue the removal that was interrupted".to_owned());
    }
    lines.extend(subscription.iter().map(|target| format!("  delete Subscription {}", target.name)));
    lines.extend(
        plans.iter().map(|target| format!("  delete InstallPlan {}, which installs only this operator", target.name)),
    );
    let csvs = csvs.iter().map(|csv| {
        format!("  delete ClusterServiceVersion {} with its Deployments, permissions, Services and webhooks", csv.name)
    });
    lines.extend(csvs);
    let of = |crd: &OwnedCrd| operands.iter().find(|operands| operands.crd == crd.name);
    for crd in crds {
        let deleted = of(crd).map_or(0, |operands| operands.objects.len());
        let kept = of(crd).map_or_else(
            || objects(0),
            |operands| match &operands.unread {
                Some(why) => format!("objects that cannot be read ({why})"),
                None => objects(operands.kept),
            },
        );
        match &crd.kept {
            None => lines.push(format!("  delete CustomResourceDefinition {} with {}", crd.name, objects(deleted))),
            Some(why) => {
                lines.push(format!("  keep CustomResourceDefinition {} with {kept}: {why}", crd.name));
                if deleted > 0 {
                    lines.push(format!("  delete {} of CustomResourceDefinition {}", objects(deleted), crd.name));
                }
            }
        }
        if crd.loses_conversion && crd.kept.is_some() {
            lines.push(format!(
                "  set the conversion of CustomResourceDefinition {} to None: its webhook is removed with the operator",
                crd.name
            ));
        }
    }
    lines.extend(permissions.iter().map(|Permission { kind, name, kept, .. }| match kept {
        None => format!("  delete {kind} {name}"),
        Some(why) => format!("  keep {kind} {name}: {why}"),
    }));
    lines.extend(group.iter().map(|group| format!("  delete OperatorGroup {}", group.name)));
    lines.extend(dependencies.iter().map(|name| {
        format!("  keep Subscription {name}, which nothing else requires; to remove it: kubectl olm operator uninstall {name} -n {namespace}")
    }));
    lines
}

fn objects(count: usize) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}
