//! `kubectl olm operator run`: runs a bundle that is not published: no image of it is pushed, and no catalog built.
//!
//! ```text
//!   SOURCE --bundle::validate--> bundle --olm_core ephemeral--> catalog of this bundle, in ConfigMaps
//!     manifests that the user supplies --supplied--> instead of generated ones
//!     who runs the cluster? --> publication     kubectl olm run reads the ConfigMaps; for OLM, a registry serves them
//!       --install-->  as `operator install` from that catalog
//!       --upgrade-->  with --upgrade: the bundle is added to the catalog, as the replacement of what is installed
//! ```
//!
//! *Guarantees*: nothing is created before the installation was resolved and shown.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use olm_core::api::kinds;
use olm_core::api::object;
use olm_core::api::subscription::Subscription;
use olm_core::bundle::Rendered;
use olm_core::catalog::ephemeral::{Ephemeral, LABEL, Place, RegistryPod, Unfit};
use olm_core::catalog::parts::PART_KEY;
use olm_core::distribution::installation::{Installation, installations, is_run_by_upstream};
use olm_core::finding::Severity;
pub use olm_core::settings::OPM_IMAGE as REGISTRY_IMAGE;
use olm_core::version;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::group::RequestedMode;
use super::install::{self, CatalogSelection, Extra};
use super::publication::Publication;
use super::supplied::Supplied;
use super::upgrade;
use crate::blocking::block_on;
use crate::bundle::validate;
use crate::catalog::Ref;
use crate::cli::connect::connect_in;
use crate::cli::flags::{ClusterFlags, DryRun, NamespaceFlags};
use crate::cli::output::Output;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, ListQuery};
use crate::cluster::fetch_catalog::{self, Fetched};
use crate::cluster::installed::{get, list, upstream_controllers};
use crate::cluster::lease;
use crate::image;
use crate::installplan::explain;
use crate::installplan::policy::Terms;
pub use crate::registry::local::CatalogDirectory;

/// Whether a registry serves the catalog inside of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Registry {
    /// If OLM runs the cluster, and not kubectl olm run
    #[default]
    Auto,
    /// Always
    Always,
    /// Never: kubectl olm run reads the ConfigMaps
    Never,
}

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The bundle.
    pub bundle: Ref,
    /// Whether it upgrades the operator that was run before.
    pub upgrade: bool,
    /// The namespace; `None` for that of the context.
    pub namespace: Option<String>,
    /// Whether the namespace is created if it does not exist.
    pub create_namespace: bool,
    /// The install mode; `None` to use the existing OperatorGroup, or to derive one.
    pub mode: Option<RequestedMode>,
    /// The ServiceAccount with whose permissions operators of the namespace are installed.
    pub service_account: Option<String>,
    /// Files and directories with manifests to use instead of generated ones.
    pub manifests: Vec<PathBuf>,
    /// Catalogs in directories, for dependencies.
    pub catalogs: Vec<CatalogDirectory>,
    /// Whether a registry serves the catalog.
    pub registry: Registry,
    /// The image of the registry.
    pub registry_image: String,
    /// The conditions that the plan must meet.
    pub terms: Terms,
    /// How long to wait; `None` for as long as it can still succeed.
    pub timeout: Option<Duration>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format.
    pub output: Output,
    /// The cluster.
    pub cluster: ClusterFlags,
    /// How images are pulled.
    pub images: image::Options,
}

/// Runs a bundle. The outcome is negative if the user declines.
///
/// # Errors
/// The source is not a valid bundle, or is too large; the package is installed from another catalog; the plan would fail or does not
/// meet the terms; the server refuses a request; or the operator does not become healthy.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let supplied = Supplied::read(&options.manifests)?;
    if options.upgrade && (!options.manifests.is_empty() || options.mode.is_some() || options.service_account.is_some())
    {
        return Err(CliError::usage("with --upgrade, the objects that exist are used")
            .hint("leave out --manifests, --install-mode and --service-account"));
    }
    let bundle = bundle(options, printer)?;
    block_on(async {
        let (api, namespace) = connect_in(&options.cluster, options.namespace.as_deref()).await?;
        let command = Command { options, api, namespace, bundle };
        if options.upgrade { command.upgrade(printer).await } else { command.install(supplied, printer).await }
    })
}

/// Reads and validates the bundle.
fn bundle(options: &Options, printer: &mut Printer) -> Result<Rendered, CliError> {
    let progress = printer.progress("reading the bundle");
    let (bundle, findings) = validate::checked(&options.bundle, &options.images).map_err(|error| {
        let is_name = matches!(&options.bundle, Ref::Image(name) if !name.split('/').next().is_some_and(|host| host.contains(['.', ':'])));
        if is_name { error.hint("no file or directory has this name; write ./PATH for a directory") } else { error }
    })?;
    drop(progress);
    let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
    if warnings > 0 {
        let findings = if warnings == 1 { "1 warning".to_owned() } else { format!("{warnings} warnings") };
        let named = &options.bundle;
        printer.warn(format_args!("{named} has {findings}; to list them, run kubectl olm bundle validate {named}"));
    }
    let rendered = bundle.render().map_err(|finding| CliError::from(&finding))?;
    explain::require_package(&rendered, &options.bundle)?;
    Ok(rendered)
}

/// A command with its bundle, and the cluster.
struct Command<'o> {
    options: &'o Options,
    api: Api,
    namespace: String,
    bundle: Rendered,
}

impl Command<'_> {
    async fn install(&self, supplied: Supplied, printer: &mut Printer) -> Result<Outcome, CliError> {
        let Self { options, namespace, bundle, .. } = self;
        let supplied = supplied.bound_to(namespace, &bundle.package, &bundle.name)?;
        let place = Place { namespace, name: supplied.catalog(), channel: supplied.channel() };
        let catalog = Ephemeral::new(place, bundle).map_err(|unfit| self.unfit(&unfit))?;
        self.is_replaceable(&catalog).await?;
        let publication = self.publication(&catalog, supplied.source.as_ref()).await?;
        let folder = written(&catalog)?;
        let directory = stand_in(&catalog, namespace, &folder);
        let install = install::Options {
            package: bundle.package.clone(),
            catalog: Some(CatalogSelection::Directory(directory)),
            channel: None,
            approval: None,
            pin: false,
            namespace: Some(namespace.clone()),
            suggested_namespace: false,
            create_namespace: options.create_namespace,
            mode: options.mode.clone(),
            service_account: options.service_account.clone(),
            config: None,
            terms: options.terms.clone(),
            wait: true,
            timeout: options.timeout,
            yes: options.yes,
            dry_run: options.dry_run,
            output: options.output.clone(),
            from: Vec::new(),
            cluster: options.cluster.clone(),
            images: options.images.clone(),
        };
        let extra = Extra {
            publication: Some(&publication),
            catalogs: &options.catalogs,
            group: supplied.group.as_ref(),
            subscription: supplied.subscription.as_ref(),
        };
        let ended = Box::pin(install::install(&install, extra, printer)).await;
        self.end(ended, &publication, printer).await
    }

    async fn upgrade(&self, printer: &mut Printer) -> Result<Outcome, CliError> {
        let Self { options, api, namespace, bundle } = self;
        let (source, subscription) = self.existing().await?;
        let subscription = Subscription::new(&subscription);
        let installed = subscription.installed_csv();
        if installed.is_empty() {
            return Err(CliError::new(ErrorKind::Api, format!("{} is not installed yet", subscription.name())).hint(
                format!("kubectl olm operator describe {} -n {namespace} shows the cause", subscription.name()),
            ));
        }
        let before = match fetch_catalog::fetch(api, &options.images, &source).await? {
            Fetched::Snapshot(snapshot) => snapshot,
            Fetched::Image(_) => {
                return Err(CliError::new(ErrorKind::Internal, "an ephemeral catalog is not an image"));
            }
        };
        let channel = before.package(&bundle.package).map_or("", |package| package.default_channel.as_str());
        let known = before.read_bundle(&bundle.package, channel, &bundle.name).map_err(CliError::input)?;
        if bundle.name == installed && known.is_some_and(|known| known.digest() == bundle.content.digest()) {
            return Box::pin(upgrade::run_with(&self.upgrade_options(subscription.name(), Vec::new()), None, printer))
                .await;
        }
        let of = |name: &str| before.package(&bundle.package)?.entries().find(|entry| entry.name == name);
        let from = of(installed).and_then(|entry| entry.version.as_ref());
        if let (Some(from), Ok(to)) = (from, version::parse(&bundle.version))
            && bundle.name != installed
            && to <= *from
        {
            return Err(CliError::input(format!(
                "{} has version {to}, which is not newer than {from} of {installed}",
                bundle.name
            ))
            .at(&options.bundle)
            .hint("raise spec.version and the name of the ClusterServiceVersion"));
        }
        let blobs: Vec<Value> = before.blobs().map_err(CliError::input)?.into_iter().map(|blob| blob.0).collect();
        let place = (namespace.as_str(), object::name(&source));
        let catalog = Ephemeral::upgraded(place, &blobs, bundle, installed).map_err(|unfit| self.unfit(&unfit))?;
        let base = json!({
            "apiVersion": source["apiVersion"], "kind": source["kind"], "metadata": { "name": source["metadata"]["name"] },
            "spec": source["spec"],
        });
        let publication = self.publication(&catalog, Some(&base)).await?;
        let folder = written(&catalog)?;
        let upgrade = self.upgrade_options(subscription.name(), vec![stand_in(&catalog, namespace, &folder)]);
        let ended = Box::pin(upgrade::run_with(&upgrade, Some(&publication), printer)).await;
        self.end(ended, &publication, printer).await
    }

    /// Returns the options of an upgrade to the newest version, with that catalog.
    fn upgrade_options(&self, subscription: &str, mut catalogs: Vec<CatalogDirectory>) -> upgrade::Options {
        let Self { options, namespace, .. } = self;
        catalogs.extend_from_slice(&options.catalogs);
        upgrade::Options {
            cluster: options.cluster.clone(),
            catalogs,
            namespaces: NamespaceFlags { namespace: Some(namespace.clone()), all_namespaces: false },
            names: vec![subscription.to_owned()],
            to: None,
            path: false,
            terms: options.terms.clone(),
            // The author runs the bundle.
            accept_risks: true,
            timeout: options.timeout,
            yes: options.yes,
            dry_run: options.dry_run,
            output: options.output.clone(),
            images: options.images.clone(),
        }
    }

    /// Deletes what earlier contents have left, or states how everything is deleted.
    async fn end(
        &self,
        ended: Result<Outcome, CliError>,
        publication: &Publication,
        printer: &mut Printer,
    ) -> Result<Outcome, CliError> {
        let cleanup = format!("kubectl olm operator cleanup {} -n {}", self.bundle.package, self.namespace);
        match ended {
            Ok(Outcome::Done) if publication.has_begun() => {
                publication.sweep(&self.api, printer).await?;
                printer.talk(format_args!("hint: {cleanup} removes it"));
                Ok(Outcome::Done)
            }
            Err(error) if publication.has_begun() => Err(error.hint(format!("{cleanup} removes what was created"))),
            ended => ended,
        }
    }

    fn unfit(&self, unfit: &Unfit) -> CliError {
        let error = CliError::input(unfit.to_string()).at(&self.options.bundle);
        match unfit {
            Unfit::Part(_) | Unfit::Plan { .. } => error
                .hint("push an image of the bundle, and install it from a catalog: kubectl olm bundle build, kubectl olm catalog add"),
            Unfit::Installed(_) => error.hint("raise spec.version and the name of the ClusterServiceVersion"),
        }
    }

    /// Checks that the catalog is not one of another origin, and that no other content of it is installed.
    async fn is_replaceable(&self, catalog: &Ephemeral) -> Result<(), CliError> {
        let Self { api, namespace, bundle, .. } = self;
        let target = kinds::CATALOG_SOURCE.object(namespace, catalog.name());
        let Some(existing) = get(api, &target).await? else { return Ok(()) };
        if object::label(&existing, LABEL) != Some(catalog.name()) {
            return Err(CliError::new(
                ErrorKind::Api,
                format!(
                    "CatalogSource {} of namespace {namespace} exists, and does not belong to this command",
                    catalog.name()
                ),
            )
            .hint("run the bundle in another namespace: -n NAMESPACE"));
        }
        let names = catalog.config_map_names().join(",");
        if object::annotation(&existing, olm_core::api::catalog_source::CONFIG_MAPS) == Some(&names) {
            return Ok(());
        }
        let subscriptions = list(api, &kinds::SUBSCRIPTION, |query| query.within(namespace)).await?;
        let is_installed = subscriptions
            .iter()
            .map(Subscription::new)
            .any(|subscription| subscription.source() == catalog.name() && !subscription.current_csv().is_empty());
        if !is_installed {
            return Ok(());
        }
        Err(CliError::new(
            ErrorKind::Api,
            format!("{} is installed in namespace {namespace} already, with other content", bundle.package),
        )
        .hint("to upgrade it to this bundle: --upgrade, with a newer version")
        .hint(format!("to remove it first: kubectl olm operator cleanup {} -n {namespace}", bundle.package)))
    }

    /// Returns the CatalogSource and the Subscription that the command created for the package.
    async fn existing(&self) -> Result<(Value, Value), CliError> {
        let Self { api, namespace, bundle, .. } = self;
        let subscriptions = list(api, &kinds::SUBSCRIPTION, |query| query.within(namespace)).await?;
        let found = subscriptions.into_iter().find(|json| Subscription::new(json).package() == bundle.package);
        let Some(subscription) = found else {
            let message = format!("{} is not installed in namespace {namespace}", bundle.package);
            return Err(CliError::new(ErrorKind::Api, message).hint("run the first version without --upgrade"));
        };
        let view = Subscription::new(&subscription);
        let target = kinds::CATALOG_SOURCE.object(view.source_namespace(), view.source());
        let source = get(api, &target).await?.filter(|source| object::label(source, LABEL) == Some(view.source()));
        match source {
            Some(source) if view.source_namespace() == namespace => Ok((source, subscription)),
            _ => Err(CliError::new(
                ErrorKind::Api,
                format!(
                    "Subscription {} of namespace {namespace} uses catalog {}/{}, which this command has not created",
                    view.name(),
                    view.source_namespace(),
                    view.source()
                ),
            )
            .hint("add the bundle to that catalog: kubectl olm catalog add; or run it in another namespace")),
        }
    }

    async fn publication(&self, catalog: &Ephemeral, base: Option<&Value>) -> Result<Publication, CliError> {
        let choice = self.options.registry;
        let controllers = match upstream_controllers(&self.api).await {
            Ok(controllers) => controllers,
            Err(_) if choice != Registry::Auto => Vec::new(),
            Err(error) => return Err(unknown(error.into())),
        };
        let is_served = match choice {
            Registry::Always => true,
            Registry::Never => false,
            Registry::Auto => {
                let named = |query: ListQuery| ListQuery { fields: format!("metadata.name={}", lease::NAME), ..query };
                let leases = list(&self.api, &kinds::LEASE, named).await.map_err(|error| unknown(error.into()))?;
                is_run_by_upstream(&controllers, &leases, Timestamp::now())
            }
        };
        let is_openshift = installations(&controllers, &[]).iter().any(Installation::is_openshift);
        let pod = RegistryPod { image: &self.options.registry_image, sets_user: !is_openshift };
        Ok(Publication::new(catalog, base, is_served.then_some(pod)))
    }
}

fn unknown(error: CliError) -> CliError {
    error.hint("state who runs the cluster: --registry=never for kubectl olm run, --registry=always for OLM")
}

/// Writes the catalog to a directory, which exists as long as the result.
fn written(catalog: &Ephemeral) -> Result<TempDir, CliError> {
    let folder = tempfile::tempdir()?;
    let text: String = catalog.blobs().iter().map(|blob| format!("{blob}\n")).collect();
    std::fs::write(folder.path().join(PART_KEY.trim_end_matches(".gz")), text)?;
    Ok(folder)
}

fn stand_in(catalog: &Ephemeral, namespace: &str, folder: &TempDir) -> CatalogDirectory {
    CatalogDirectory {
        name: catalog.name().to_owned(),
        namespace: Some(namespace.to_owned()),
        directory: folder.path().to_owned(),
    }
}
