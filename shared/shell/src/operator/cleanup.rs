//! `kubectl olm operator cleanup`: removes what `operator run` has created.
//!
//! ```text
//!   objects with the label of a catalog --> for each: uninstall its operator --> OperatorGroup without members
//!                                            --> CatalogSource and what it owns, last: it is the record of what is left to do
//! ```
//!
//! *Guarantees*: only objects with the label are deleted, and what `uninstall` deletes of an operator whose Subscription uses the
//! catalog. Namespaces are retained. Everything can be interrupted and run again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use olm_core::api::cluster_service_version::Csv;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::subscription::Subscription;
use olm_core::catalog::ephemeral::{LABEL, PACKAGE};
use olm_core::listing::listed;
use serde_json::{Value, json};

use super::deletion::{delete, described, gone};
use super::steps::{SETTLES, delete_group};
use super::uninstall::reference;
use super::{lookup, uninstall};
use crate::blocking::block_on;
use crate::cli::connect::connect_in;
use crate::cli::flags::{ClusterFlags, DryRun};
use crate::cli::name::bare;
use crate::cli::output::{API_VERSION, Output};
use crate::cli::prompt::confirm;
use crate::cli::table::Table;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, ListQuery, Resource};
use crate::cluster::installed::list;

/// The kinds of objects that a catalog consists of, in the order of their deletion.
const OF_CATALOG: [&Kind; 4] = [&kinds::DEPLOYMENT, &kinds::SERVICE, &kinds::CONFIG_MAP, &kinds::CATALOG_SOURCE];

/// What to remove.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cluster.
    pub cluster: ClusterFlags,
    /// The namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// The operators, by package, Subscription or CatalogSource; empty for all.
    pub names: Vec<String>,
    /// Whether the CustomResourceDefinitions that they own are deleted.
    pub delete_crds: bool,
    /// Whether their custom resources are deleted.
    pub delete_operands: bool,
    /// Whether operators are removed that others require.
    pub force: bool,
    /// How long to wait for custom resources; `None` for as long as the operator runs.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompts.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format.
    pub output: Output,
}

/// What was created for one bundle.
#[derive(Default)]
struct Created {
    package: String,
    /// The Subscriptions that use the catalog.
    subscriptions: Vec<String>,
    /// The objects of the catalog, by kind.
    objects: Vec<(&'static Kind, Value)>,
    group: Option<Value>,
}

/// Removes what was created. The outcome is negative if the user declines, or something is left.
///
/// # Errors
/// Nothing of that name was created, other operators require the operator, objects cannot be read, or the server refuses a request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    block_on(async {
        let (api, namespace) = connect_in(&options.cluster, options.namespace.as_deref()).await?;
        let cleanup = Cleanup { options, api, namespace };
        let selected = cleanup.selected().await?;
        if selected.is_empty() {
            printer.talk(format_args!(
                "Nothing was created by kubectl olm operator run in namespace {}",
                cleanup.namespace
            ));
        }
        let (mut outcome, mut documents, mut failed) = (Outcome::Done, Vec::new(), None);
        for (catalog, created) in selected {
            let mut cleaned = Cleaned { catalog, package: created.package.clone(), ..Cleaned::default() };
            let ended = Box::pin(cleanup.one(&created, &mut cleaned, printer)).await;
            documents.push(cleaned.document(options, &ended));
            match ended {
                Ok(Outcome::Done) => {}
                Ok(other) => outcome = other,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        cleanup.print(&documents, printer)?;
        failed.map_or(Ok(outcome), Err)
    })
}

/// The cleanup of what was created for one bundle, so far.
#[derive(Default)]
struct Cleaned {
    catalog: String,
    package: String,
    /// The removals of its operators, as data.
    removals: Vec<Value>,
    /// The objects that this command deleted or would delete by itself.
    deleted: Vec<ObjectRef>,
    is_declined: bool,
}

impl Cleaned {
    fn document(&self, options: &Options, ended: &Result<Outcome, CliError>) -> Value {
        let result = match ended {
            Err(_) => "Failed",
            Ok(Outcome::Done) if options.dry_run != DryRun::None => "Planned",
            Ok(Outcome::Done) => "CleanedUp",
            Ok(_) if self.is_declined => "Declined",
            Ok(_) => "Incomplete",
        };
        let mut document = json!({
            "catalog": self.catalog, "package": self.package, "removals": self.removals,
            "deleted": self.deleted.iter().map(reference).collect::<Vec<_>>(), "result": result,
        });
        if let Err(error) = ended {
            document["message"] = error.message.as_str().into();
            document["hints"] = json!(error.hints);
        }
        document
    }
}

struct Cleanup<'o> {
    options: &'o Options,
    api: Api,
    namespace: String,
}

impl Cleanup<'_> {
    /// Returns what was created, by catalog.
    async fn created(&self) -> Result<BTreeMap<String, Created>, CliError> {
        let mut all: BTreeMap<String, Created> = BTreeMap::new();
        for kind in OF_CATALOG.into_iter().chain([&kinds::OPERATOR_GROUP]) {
            let found = list(&self.api, kind, |query| query.within(&self.namespace).labelled(LABEL)).await?;
            for object in found {
                let catalog = object::label(&object, LABEL).unwrap_or_default().to_owned();
                let created = all.entry(catalog).or_default();
                if let Some(package) = object::annotation(&object, PACKAGE) {
                    package.clone_into(&mut created.package);
                }
                if kind.kind == kinds::OPERATOR_GROUP.kind {
                    created.group = Some(object);
                } else {
                    created.objects.push((kind, object));
                }
            }
        }
        let subscriptions = list(&self.api, &kinds::SUBSCRIPTION, |query| query.within(&self.namespace)).await?;
        for json in &subscriptions {
            let subscription = Subscription::new(json);
            // One with the label outlives its catalog if another client deletes that.
            let labelled = object::label(json, LABEL).filter(|catalog| *catalog == subscription.source());
            let is_here = subscription.source_namespace() == self.namespace;
            if let Some(catalog) = labelled.filter(|_| is_here) {
                all.entry(catalog.to_owned()).or_default();
            }
            if let Some(created) = all.get_mut(subscription.source()).filter(|_| is_here) {
                created.subscriptions.push(subscription.name().to_owned());
                if created.package.is_empty() {
                    subscription.package().clone_into(&mut created.package);
                }
            }
        }
        Ok(all)
    }

    async fn selected(&self) -> Result<BTreeMap<String, Created>, CliError> {
        let mut all = self.created().await?;
        if self.options.names.is_empty() {
            return Ok(all);
        }
        let mut selected = BTreeSet::new();
        for name in &self.options.names {
            let name = bare(name, "subscription")?;
            let is_named = |(catalog, created): &(&String, &Created)| {
                *catalog == name || created.package == name || created.subscriptions.iter().any(|known| known == name)
            };
            match all.iter().find(is_named) {
                Some((catalog, _)) => drop(selected.insert(catalog.clone())),
                None => return Err(self.unknown(name, &all)),
            }
        }
        all.retain(|catalog, _| selected.contains(catalog));
        Ok(all)
    }

    fn unknown(&self, name: &str, all: &BTreeMap<String, Created>) -> CliError {
        let error = CliError::new(
            ErrorKind::Api,
            format!("kubectl olm operator run has created nothing for {name:?} in namespace {}", self.namespace),
        );
        let packages = all.values().map(|created| created.package.as_str()).filter(|package| !package.is_empty());
        let packages: Vec<&str> = packages.collect();
        let error = if packages.is_empty() { error } else { error.hint(format!("it has for {}", listed(&packages))) };
        error
            .hint(format!("other operators are removed by kubectl olm operator uninstall {name} -n {}", self.namespace))
    }

    fn is_text(&self) -> bool {
        matches!(self.options.output, Output::Table | Output::Wide)
    }

    /// Prints the results as data.
    fn print(&self, catalogs: &[Value], printer: &mut Printer) -> Result<(), CliError> {
        match &self.options.output {
            Output::Table | Output::Wide => Ok(()),
            Output::Name => catalogs.iter().try_for_each(|one| {
                printer.line(format_args!("catalogsource/{}", one["catalog"].as_str().unwrap_or_default()))
            }),
            output => {
                let document = json!({
                    "apiVersion": API_VERSION, "kind": "OperatorCleanup",
                    "namespace": self.namespace, "dryRun": self.options.dry_run != DryRun::None, "catalogs": catalogs,
                });
                output.object(printer, &document, || Table::new([]))
            }
        }
    }

    /// Removes what was created for one bundle.
    async fn one(&self, created: &Created, cleaned: &mut Cleaned, printer: &mut Printer) -> Result<Outcome, CliError> {
        let Self { options, namespace, .. } = self;
        let mut is_agreed = options.yes || options.dry_run != DryRun::None;
        for name in self.operators(created).await? {
            let uninstall = uninstall::Options {
                cluster: options.cluster.clone(),
                namespace: Some(namespace.clone()),
                name: name.clone(),
                delete_crds: options.delete_crds,
                delete_operands: options.delete_operands,
                backup: None,
                force: options.force,
                timeout: options.timeout,
                yes: options.yes,
                dry_run: options.dry_run,
                output: Output::Table,
            };
            let (state, _) = lookup::read(&options.cluster, &[], Some(namespace.as_str()), printer).await?;
            let Some(removed) = uninstall::remove(&uninstall, &state, namespace, printer).await? else { continue };
            if self.is_text() {
                removed.print(&options.output, printer)?;
            } else {
                removed.report(printer);
            }
            let outcome = removed.outcome();
            cleaned.is_declined = removed.is_declined();
            cleaned.removals.push(removed.into_document());
            // Otherwise the record of what is left to do stays.
            if outcome != Outcome::Done {
                return Ok(outcome);
            }
            is_agreed = true;
        }
        let what = if created.package.is_empty() { &cleaned.catalog } else { &created.package };
        let question = format!("Delete what was created for {what} in namespace {namespace}?");
        if !is_agreed && !confirm(printer, &question, false)? {
            printer.talk("Nothing was deleted");
            cleaned.is_declined = true;
            return Ok(Outcome::Negative);
        }
        if let Some(group) = &created.group {
            self.delete_group(group, cleaned, printer).await?;
        }
        self.delete_catalog(&created.objects, cleaned, printer).await?;
        if self.is_text() {
            printer.line(format_args!("catalogsource/{} cleaned up{}", cleaned.catalog, options.dry_run.note()))?;
        }
        Ok(Outcome::Done)
    }

    /// Returns the names of the operators to uninstall. Without a Subscription, it is that of the package, whose removal may have been
    /// interrupted; unless another catalog provides the package in the namespace.
    async fn operators(&self, created: &Created) -> Result<Vec<String>, CliError> {
        if !created.subscriptions.is_empty() || created.package.is_empty() {
            return Ok(created.subscriptions.clone());
        }
        let subscriptions = list(&self.api, &kinds::SUBSCRIPTION, |query| query.within(&self.namespace)).await?;
        let is_used = subscriptions.iter().any(|json| {
            let subscription = Subscription::new(json);
            subscription.package() == created.package || subscription.name() == created.package
        });
        Ok(if is_used { Vec::new() } else { vec![created.package.clone()] })
    }

    /// Deletes the OperatorGroup if it has no members.
    async fn delete_group(&self, group: &Value, cleaned: &mut Cleaned, printer: &mut Printer) -> Result<(), CliError> {
        let name = object::name(group);
        let subscriptions = list(&self.api, &kinds::SUBSCRIPTION, |query| query.within(&self.namespace)).await?;
        let csvs = list(&self.api, &kinds::CLUSTER_SERVICE_VERSION, |query| query.within(&self.namespace)).await?;
        let members = csvs.iter().map(Csv::new).filter(|csv| !csv.is_copy()).map(|csv| csv.name().to_owned());
        let members: Vec<String> =
            members.chain(subscriptions.iter().map(|json| object::name(json).to_owned())).collect();
        if self.options.dry_run != DryRun::None {
            // The members are those of the operator that would be removed.
            return Ok(());
        }
        if !members.is_empty() {
            printer.talk(format_args!("OperatorGroup {name} is retained: it is used by {}", listed(&members)));
            return Ok(());
        }
        let target = ObjectRef::from_object(group);
        if delete_group(&self.api, &target, Some(object::uid(group))).await? {
            cleaned.deleted.push(target);
            printer.talk(format_args!("deleted OperatorGroup {}/{name}", self.namespace));
        }
        Ok(())
    }

    /// Deletes the objects of a catalog, and waits for that.
    async fn delete_catalog(
        &self,
        objects: &[(&'static Kind, Value)],
        cleaned: &mut Cleaned,
        printer: &mut Printer,
    ) -> Result<(), CliError> {
        if self.options.dry_run != DryRun::None {
            for (kind, object) in objects {
                cleaned.deleted.push(ObjectRef::from_object(object));
                printer.talk(format_args!("  delete {} {}", kind.kind, object::name(object)));
            }
            return Ok(());
        }
        for kind in OF_CATALOG {
            let mut uids = BTreeSet::new();
            for (_, object) in objects.iter().filter(|(of, _)| of.kind == kind.kind) {
                let uid = object::uid(object);
                let target = ObjectRef::from_object(object);
                if delete(&self.api, &target, Some(uid)).await? {
                    cleaned.deleted.push(target);
                    printer.talk(format_args!("deleted {} {}/{}", kind.kind, self.namespace, object::name(object)));
                }
                uids.insert(uid.to_owned());
            }
            if uids.is_empty() {
                continue;
            }
            let query = ListQuery::all(&Resource::from(kind)).within(&self.namespace).labelled(LABEL);
            let remaining = gone(&self.api, query, &uids, Some(SETTLES), printer).await?;
            if !remaining.is_empty() {
                return Err(CliError::new(ErrorKind::Api, format!("not deleted: {}", described(&remaining)))
                    .hint("the owners of these finalizers have to remove them; then run the command again"));
            }
        }
        Ok(())
    }
}
