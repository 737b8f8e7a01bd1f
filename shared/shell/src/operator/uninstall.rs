//! `kubectl olm operator uninstall`: removes an operator, and proves that nothing is left.
//!
//! ```text
//!   state --olm_core removal--> plan --prompt--> backup
//!     Subscription, so that nothing is installed again
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

use olm_core::api::cluster_service_version::{Csv, FINALIZER, Phase};
use olm_core::api::kinds::{self, Kind};
use olm_core::api::labels;
use olm_core::api::object::{self, ObjectRef};
use olm_core::listing::listed;
use olm_core::membership;
use olm_core::operatorgroup::intersection;
use olm_core::removal::{self, OwnedCrd, Removal, Request};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::deletion::{Remaining, delete, described, gone, refused};
use super::lookup;
use super::operands::{self, Operands};
use crate::blocking::block_on;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags, SourceFlags};
use crate::cli::name::bare;
use crate::cli::prompt::confirm;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, ListQuery, Page, Resource};
use crate::observe::{ClusterState, ReadFailure, ReadScope};

/// How long a controller may take to process the deletion of a ClusterServiceVersion. OLM takes a second; after this time, none
/// runs.
const GRACE: Duration = Duration::from_secs(15);

/// How long custom resources may take whose operator does not run, and the garbage collector for what the operator owns.
const SETTLES: Duration = Duration::from_mins(1);

/// The kinds of objects that OLM creates for a ClusterServiceVersion, and labels with their owner.
const OWNED: [Kind; 9] = [
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    kinds::API_SERVICE,
    kinds::CLUSTER_ROLE_BINDING,
    kinds::CLUSTER_ROLE,
    kinds::DEPLOYMENT,
    kinds::ROLE_BINDING,
    kinds::ROLE,
    kinds::SERVICE,
];

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
    /// How long to wait for custom resources; `None` for as long as the operator runs.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
}

/// Removes an operator. The outcome is negative if the user declines, or something is left.
///
/// # Errors
/// The operator does not exist, other operators require it, objects cannot be read, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(uninstall(options, printer))
}

async fn uninstall(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let name = bare(&options.name, "subscription")?.to_owned();
    let source = SourceFlags { cluster: options.cluster.clone(), ..SourceFlags::default() };
    let namespaces = NamespaceFlags { namespace: options.namespace.clone(), all_namespaces: false };
    let mut state = source.read(&namespaces, &[], ReadScope::Planning, printer).await?;
    let namespace = state.namespace.clone().unwrap_or_default();
    lookup::operators(&state)?;
    state.read_kind(&kind::CLUSTER_SERVICE_VERSION, "").await;
    let hides = |failure: &ReadFailure| {
        failure.is_of("clusterserviceversions") || failure.is_unreadable_of("clusterserviceversions")
    };
    let unread = state.read_failures.iter().find(|failure| hides(failure)).map(ToString::to_string);
    let world = Reader::new(&state.world);
    let request =
        Request { namespace: &namespace, name: &name, delete_crds: options.delete_crds, knows_all: unread.is_none() };
    let removal = removal::plan(&world, request);
    if removal.is_empty() {
        return Err(lookup::not_found(&name, Some(&namespace)));
    }
    if let Some(unread) = unread {
        printer.warn(format_args!("{unread}; operators of other namespaces may need what this one provides"));
    }
    let Some(api) = state.api().cloned() else { return Ok(Outcome::Done) };
    let crd_of = |name: &str| world.json(&kind::CUSTOM_RESOURCE_DEFINITION, "", name).cloned();
    let operands =
        operands::read(&api, &removal, &targets(&world, &namespace), options.delete_operands, crd_of).await?;
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
    if options.dry_run != DryRun::None {
        printer.line(format_args!("operator/{name} uninstalled{}", options.dry_run.note()))?;
        return Ok(Outcome::Done);
    }
    if !confirm(printer, &format!("Uninstall {name} from namespace {namespace}?"), options.yes)? {
        printer.talk("Nothing was deleted");
        return Ok(Outcome::Negative);
    }
    if let Some(folder) = &options.backup {
        let files = operands::back_up(folder, &operands)?;
        printer.talk(format_args!("backed up {files} objects in {}", folder.display()));
    }
    let step = Step { api: &api, state: &state, removal: &removal };
    step.delete_subscription(printer).await?;
    step.delete_operands(&operands, options.timeout, printer).await?;
    step.delete_csvs(printer).await?;
    step.delete_definitions(printer).await?;
    let left = step.left(printer).await?;
    if left.is_empty() {
        printer.line(format_args!("operator/{name} uninstalled"))?;
        return Ok(Outcome::Done);
    }
    let error = CliError::new(ErrorKind::Api, format!("{name} is uninstalled, except for {}", listed(&left)));
    printer.error(&error.hint("run the command again; kubectl get and describe show what holds these objects"));
    Ok(Outcome::Negative)
}

/// Returns the namespaces that the operator watches.
fn targets(world: &Reader<'_>, namespace: &str) -> BTreeSet<String> {
    let groups = membership::groups(world, namespace);
    groups.into_iter().flat_map(|group| intersection::targets(world, group)).collect()
}

/// Returns what is done, in lines.
fn plan(removal: &Removal, operands: &[Operands]) -> Vec<String> {
    let Removal { namespace, subscription, csvs, crds, dependencies, group, .. } = removal;
    let mut lines = vec![format!("In namespace {namespace}:")];
    lines.extend(subscription.iter().map(|target| format!("  delete Subscription {}", target.name)));
    let csvs = csvs.iter().map(|csv| {
        format!("  delete ClusterServiceVersion {} with its Deployments, permissions, Services and webhooks", csv.name)
    });
    lines.extend(csvs);
    let of = |crd: &OwnedCrd| operands.iter().find(|operands| operands.crd == crd.name);
    for crd in crds {
        let (deleted, kept) = of(crd).map_or((0, 0), |operands| (operands.objects.len(), operands.kept));
        match &crd.kept {
            None => lines.push(format!("  delete CustomResourceDefinition {} with {}", crd.name, objects(deleted))),
            Some(why) => {
                lines.push(format!("  keep CustomResourceDefinition {} with {}: {why}", crd.name, objects(kept)));
                if deleted > 0 {
                    lines.push(format!("  delete {} of CustomResourceDefinition {}", objects(deleted), crd.name));
                }
            }
        }
        if crd.loses_conversion {
            lines.push(format!(
                "  set the conversion of CustomResourceDefinition {} to None: its webhook is removed with the operator",
                crd.name
            ));
        }
    }
    lines.extend(group.iter().map(|group| format!("  delete OperatorGroup {}", group.name)));
    lines.extend(dependencies.iter().map(|name| {
        format!("  keep Subscription {name}, which nothing else requires; to remove it: kubectl olm operator uninstall {name} -n {namespace}")
    }));
    lines
}

fn objects(count: usize) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}

/// The steps of a removal.
struct Step<'s> {
    api: &'s Api,
    state: &'s ClusterState,
    removal: &'s Removal,
}

impl Step<'_> {
    fn uid(&self, target: &ObjectRef) -> Option<String> {
        let known = olm_core::world::GroupKind::new(&target.gvk.group, &target.gvk.kind);
        let json = Reader::new(&self.state.world).json(&known, &target.namespace, &target.name)?;
        Some(object::uid(json).to_owned()).filter(|uid| !uid.is_empty())
    }

    async fn delete(&self, target: &ObjectRef, uid: Option<&str>, printer: &mut Printer) -> Result<(), CliError> {
        if delete(self.api, target, uid).await? {
            let place = if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) };
            printer.talk(format_args!("deleted {} {place}{}", target.gvk.kind, target.name));
        }
        Ok(())
    }

    async fn delete_subscription(&self, printer: &mut Printer) -> Result<(), CliError> {
        let Some(target) = &self.removal.subscription else { return Ok(()) };
        self.delete(target, self.uid(target).as_deref(), printer).await
    }

    /// Returns whether the operator runs, so that it processes finalizers of its custom resources.
    fn is_running(&self) -> bool {
        let csvs = self.removal.csvs.iter().filter_map(|target| {
            Reader::new(&self.state.world).json(&kind::CLUSTER_SERVICE_VERSION, &target.namespace, &target.name)
        });
        csvs.map(Csv::new).any(|csv| csv.phase() == Phase::Succeeded)
    }

    /// Deletes custom resources while the operator can process their finalizers.
    async fn delete_operands(
        &self,
        all: &[Operands],
        timeout: Option<Duration>,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        for operands in all {
            for object in &operands.objects {
                self.delete(&ObjectRef::from_object(object), Some(object::uid(object)), printer).await?;
            }
        }
        let limit = timeout.or_else(|| (!self.is_running()).then_some(SETTLES));
        for operands in all.iter().filter(|operands| !operands.objects.is_empty()) {
            let remaining = gone(self.api, operands.query(), &operands.uids(), limit, printer).await?;
            if !remaining.is_empty() {
                return Err(hanging(operands, &remaining, self.is_running()));
            }
        }
        Ok(())
    }

    /// Deletes the ClusterServiceVersions. If no controller processes their finalizer, deletes what it stands for.
    async fn delete_csvs(&self, printer: &mut Printer) -> Result<(), CliError> {
        let mut uids = BTreeSet::new();
        for target in &self.removal.csvs {
            let uid = self.uid(target);
            self.delete(target, uid.as_deref(), printer).await?;
            uids.extend(uid);
        }
        let query = ListQuery::all(&Resource::from(&kinds::CLUSTER_SERVICE_VERSION)).within(&self.removal.namespace);
        let remaining = gone(self.api, query.clone(), &uids, Some(GRACE), printer).await?;
        for target in &self.removal.csvs {
            self.delete_owned(target, printer).await?;
        }
        if remaining.is_empty() {
            return Ok(());
        }
        printer.talk("no controller processes the deletion: removing OLM's finalizer of the ClusterServiceVersions");
        for target in &self.removal.csvs {
            self.release(target, &uids).await?;
        }
        let remaining = gone(self.api, query, &uids, Some(GRACE), printer).await?;
        if remaining.is_empty() {
            return Ok(());
        }
        Err(CliError::new(ErrorKind::Api, format!("not deleted: ClusterServiceVersions {}", described(&remaining)))
            .hint("the owners of these finalizers have to remove them"))
    }

    /// Deletes what the garbage collector cannot: cluster-scoped objects, and copies in other namespaces.
    async fn delete_owned(&self, csv: &ObjectRef, printer: &mut Printer) -> Result<(), CliError> {
        for kind in OWNED.iter().filter(|kind| !kind.namespaced) {
            for object in self.owned(kind, csv).await? {
                self.delete(&ObjectRef::from_object(&object), Some(object::uid(&object)), printer).await?;
            }
        }
        let copies = format!("{}={}", labels::COPIED_FROM, csv.namespace);
        let query = ListQuery::all(&Resource::from(&kinds::CLUSTER_SERVICE_VERSION)).labelled(&copies);
        let (copies, _) = self.list(&query).await?;
        for copy in copies.iter().filter(|copy| object::name(copy) == csv.name) {
            delete(self.api, &ObjectRef::from_object(copy), Some(object::uid(copy))).await?;
        }
        for name in &self.removal.api_services {
            self.delete_api_service(name, printer).await?;
        }
        Ok(())
    }

    /// Deletes an APIService whose Service is in the namespace of the operator.
    async fn delete_api_service(&self, name: &str, printer: &mut Printer) -> Result<(), CliError> {
        let target = kinds::API_SERVICE.object("", name);
        match self.api.get(&target).await {
            Ok(Some(object)) if object::text(&object, &["spec", "service", "namespace"]) == self.removal.namespace => {
                self.delete(&target, Some(object::uid(&object)), printer).await
            }
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_not_found() => Ok(()),
            Err(refusal) => Err(refused("get", &target, refusal)),
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<(Vec<Value>, String), CliError> {
        self.api.list(query).await.and_then(Page::readable).map_err(|refusal| {
            let target =
                ObjectRef { gvk: query.resource.gvk.clone(), namespace: query.namespace.clone(), name: String::new() };
            refused("list", &target, refusal)
        })
    }

    /// Returns the objects of a kind with the labels of an owner.
    async fn owned(&self, kind: &Kind, owner: &ObjectRef) -> Result<Vec<Value>, CliError> {
        let labels = format!(
            "{}={},{}={},{}={}",
            labels::OWNER,
            owner.name,
            labels::OWNER_NAMESPACE,
            owner.namespace,
            labels::OWNER_KIND,
            owner.gvk.kind
        );
        let namespace = if kind.namespaced { owner.namespace.as_str() } else { "" };
        let query = ListQuery::all(&Resource::from(kind)).within(namespace).labelled(&labels);
        Ok(self.list(&query).await?.0)
    }

    /// Removes OLM's finalizer of a ClusterServiceVersion that is being deleted.
    async fn release(&self, target: &ObjectRef, uids: &BTreeSet<String>) -> Result<(), CliError> {
        let csv = match self.api.get(target).await {
            Ok(Some(csv)) if uids.contains(object::uid(&csv)) && object::is_deleting(&csv) => csv,
            Ok(_) => return Ok(()),
            Err(refusal) => return Err(refused("get", target, refusal)),
        };
        let finalizers = object::list(&csv, &["metadata", "finalizers"]).iter();
        let others: Vec<&Value> = finalizers.filter(|finalizer| finalizer.as_str() != Some(FINALIZER)).collect();
        let patch = json!({ "metadata": {
            "uid": object::uid(&csv), "resourceVersion": object::resource_version(&csv), "finalizers": others,
        } });
        match self.api.merge(target, &patch).await {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.is_not_found() || refusal.is_conflict() => Ok(()),
            Err(refusal) => Err(refused("patch", target, refusal)),
        }
    }

    /// Deletes CustomResourceDefinitions and the OperatorGroup, and repairs conversions.
    async fn delete_definitions(&self, printer: &mut Printer) -> Result<(), CliError> {
        let mut uids = BTreeSet::new();
        for crd in &self.removal.crds {
            let target = kinds::CUSTOM_RESOURCE_DEFINITION.object("", &crd.name);
            if crd.kept.is_none() {
                let uid = self.uid(&target);
                self.delete(&target, uid.as_deref(), printer).await?;
                uids.extend(uid);
            } else if crd.loses_conversion {
                let patch = json!({ "spec": { "conversion": { "strategy": "None", "webhook": null } } });
                match self.api.merge(&target, &patch).await {
                    Ok(_) => printer.talk(format_args!("set the conversion of {} to None", crd.name)),
                    Err(refusal) if refusal.is_not_found() => {}
                    Err(refusal) => return Err(refused("patch", &target, refusal)),
                }
            }
        }
        if !uids.is_empty() {
            let query = ListQuery::all(&Resource::from(&kinds::CUSTOM_RESOURCE_DEFINITION));
            let remaining = gone(self.api, query, &uids, Some(SETTLES), printer).await?;
            if !remaining.is_empty() {
                return Err(CliError::new(
                    ErrorKind::Api,
                    format!("not deleted: CustomResourceDefinitions {}", described(&remaining)),
                )
                .hint("custom resources with finalizers block the deletion; kubectl get lists them"));
            }
        }
        if let Some(group) = &self.removal.group {
            self.delete(group, self.uid(group).as_deref(), printer).await?;
            for role in self.owned(&kinds::CLUSTER_ROLE, group).await? {
                delete(self.api, &ObjectRef::from_object(&role), Some(object::uid(&role))).await?;
            }
        }
        let Removal { package, namespace, crds, .. } = self.removal;
        if !package.is_empty() && crds.iter().all(|crd| crd.kept.is_none()) {
            // Nothing is a component of it any more, so that OLM does not create it again.
            delete(self.api, &kinds::OPERATOR.object("", &format!("{package}.{namespace}")), None).await?;
        }
        Ok(())
    }

    /// Returns what exists of the operator after the removal.
    async fn left(&self, printer: &mut Printer) -> Result<Vec<String>, CliError> {
        let mut left = Vec::new();
        let csvs: Vec<&ObjectRef> = self.removal.csvs.iter().chain(&self.removal.replaced).collect();
        for kind in &OWNED {
            let mut owned = Vec::new();
            if kind.namespaced {
                // The garbage collector deletes these. Not all of them have labels.
                let query = ListQuery::all(&Resource::from(kind)).within(&self.removal.namespace);
                owned.extend(self.list(&query).await?.0.into_iter().filter(|object| is_owned(object, &csvs)));
            } else {
                for csv in &csvs {
                    owned.extend(self.owned(kind, csv).await?);
                }
            }
            if owned.is_empty() {
                continue;
            }
            let uids = owned.iter().map(|object| object::uid(object).to_owned()).collect();
            let namespace = if kind.namespaced { self.removal.namespace.as_str() } else { "" };
            let query = ListQuery::all(&Resource::from(kind)).within(namespace);
            let remaining = gone(self.api, query, &uids, Some(SETTLES), printer).await?;
            left.extend(remaining.values().map(|(name, _)| format!("{} {name}", kind.kind)));
        }
        Ok(left)
    }
}

/// Returns whether one of the ClusterServiceVersions owns the object.
fn is_owned(object: &Value, csvs: &[&ObjectRef]) -> bool {
    object::list(object, &["metadata", "ownerReferences"]).iter().any(|owner| {
        object::text(owner, &["kind"]) == kinds::CLUSTER_SERVICE_VERSION.kind
            && csvs.iter().any(|csv| csv.name == object::text(owner, &["name"]))
    })
}

/// Returns the error for custom resources whose finalizers are not removed.
fn hanging(operands: &Operands, remaining: &Remaining, is_running: bool) -> CliError {
    let why = if is_running { "the operator has not removed them in time" } else { "the operator does not run" };
    let first = remaining.values().next().map(|(name, _)| name.as_str()).unwrap_or_default();
    let (namespace, name) = first.split_once('/').unwrap_or(("", first));
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    CliError::new(
        ErrorKind::Api,
        format!(
            "objects of {} are not deleted, because finalizers block them and {why}: {}",
            operands.crd,
            described(remaining)
        ),
    )
    .hint(
        "repair the operator, or remove the finalizers if what they stand for is not needed, and run the command again",
    )
    .hint(format!(
        "kubectl patch {} {name}{place} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'",
        operands.resource.qualified()
    ))
}
