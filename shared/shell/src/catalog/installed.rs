//! Reads installed objects of OLM, from files or from a cluster.

use std::path::PathBuf;

use olm_core::api::cluster_service_version::{Csv, Phase};
use olm_core::api::{object, subscription};
use olm_core::catalog::diff::{Installed, Subscription};
use olm_core::sim::Strict;
use olm_core::version;
use olm_core::world::{Reader, World, kind};
use serde_json::{Value, json};

use crate::cli::connect::{Connection, connect};
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, Printer};
use crate::observe::{self, ReadFailure, ReadScope, files, strict};

/// The source of installed objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum InstalledFrom {
    /// No source: nothing is installed.
    #[default]
    Nothing,
    /// Files and folders of objects, as `kubectl get -o yaml` prints them.
    Files(Vec<PathBuf>),
    /// A cluster.
    Cluster(Box<ClusterFlags>),
}

/// The namespaces to read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Namespaces {
    All,
    /// The namespace of the context.
    OfContext,
    One(String),
}

/// The objects that were read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) world: World,
    /// The given namespace, else that of the context, else the only one of the objects; `None` if none of these exists.
    pub(super) namespace: Option<String>,
    /// Whether its OperatorGroups are known: on a cluster, unless listing them is forbidden.
    pub(super) knows_groups: bool,
}

impl InstalledFrom {
    /// Returns the files, else the cluster that the flags select, else no source.
    pub fn new(files: Vec<PathBuf>, cluster: ClusterFlags) -> Result<Self, CliError> {
        match (files.is_empty(), cluster.is_given()) {
            (false, true) => {
                Err(CliError::usage("installed objects are read from files or from a cluster, not from both")
                    .hint("leave out either the files or the cluster options such as --context"))
            }
            (false, false) => Ok(Self::Files(files)),
            (true, true) => Ok(Self::Cluster(Box::new(cluster))),
            (true, false) => Ok(Self::Nothing),
        }
    }

    /// Reads the objects of one namespace; by default that of the context, or the only one.
    pub(super) fn of_namespace(&self, namespace: Option<&str>, printer: &mut Printer) -> Result<Read, CliError> {
        let asked = namespace.map(str::to_owned);
        match self {
            Self::Nothing => Ok(Read { namespace: asked, ..Read::default() }),
            Self::Files(files) => of_files(files, asked, printer),
            Self::Cluster(flags) => {
                let namespaces = asked.map_or(Namespaces::OfContext, Namespaces::One);
                of_cluster(flags, namespaces, ReadScope::Resolution, printer)
            }
        }
    }

    /// Reads the objects of one namespace, or of all.
    pub(super) fn of_all(&self, namespace: Option<&str>, printer: &mut Printer) -> Result<Read, CliError> {
        match self {
            Self::Cluster(flags) => {
                let namespaces = namespace.map_or(Namespaces::All, |one| Namespaces::One(one.to_owned()));
                of_cluster(flags, namespaces, ReadScope::Installed, printer)
            }
            Self::Files(files) => of_files(files, Some(namespace.unwrap_or_default().to_owned()), printer),
            Self::Nothing => Ok(Read::default()),
        }
    }
}

/// Reads objects from files. An empty namespace means all.
fn of_files(paths: &[PathBuf], asked: Option<String>, printer: &mut Printer) -> Result<Read, CliError> {
    let given = files::read(paths)?;
    strict::check(&given, &mut Strict::default(), &mut |words| printer.warn(words))?;
    let mut objects: Vec<Value> = given.into_iter().map(|given| given.object).collect();
    objects.retain(|o| ReadScope::Resolution.kinds().any(|known| known.kind == object::kind(o)));
    let mut namespaces: Vec<String> = objects.iter().map(|o| object::namespace(o).to_owned()).collect();
    namespaces.retain(|n| !n.is_empty());
    namespaces.sort();
    namespaces.dedup();
    let namespace = match (asked, &namespaces[..]) {
        (Some(asked), _) => Some(asked),
        (None, []) => None,
        (None, [only]) => Some(only.clone()),
        (None, many) => {
            let refused = CliError::usage(format!("the files have objects of {} namespaces", many.len()));
            return Err(refused.hint(format!("specify one of them with -n: {}", many.join(", "))));
        }
    };
    let mut world = World::new();
    for mut object in objects {
        if object::namespace(&object).is_empty() {
            let own = namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or("default");
            object["metadata"]["namespace"] = own.into();
        }
        // A ClusterServiceVersion without a status in a file counts as installed.
        if object::text(&object, &["kind"]) == "ClusterServiceVersion" && object["status"].is_null() {
            object["status"] = json!({ "phase": Phase::Succeeded });
        }
        world.apply(object);
    }
    Ok(Read { world, namespace, knows_groups: false })
}

/// Reads objects from a cluster: of all namespaces, that of the context, or the given one.
fn of_cluster(
    flags: &ClusterFlags,
    asked: Namespaces,
    need: ReadScope,
    printer: &mut Printer,
) -> Result<Read, CliError> {
    let progress = printer.progress("reading installed objects");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut failures = Vec::new();
    let read = runtime.block_on(async {
        let Connection { api, namespace: of_context, .. } = connect(flags).await?;
        let namespace = match asked {
            Namespaces::All => None,
            Namespaces::OfContext => Some(of_context),
            Namespaces::One(name) => Some(name),
        };
        let mut world = World::new();
        failures = observe::list(&api, namespace.as_deref().unwrap_or_default(), need, &mut world).await?;
        let is_of_groups = |failure: &ReadFailure| failure.resource.starts_with("operatorgroups");
        let knows_groups = need == ReadScope::Resolution && !failures.iter().any(is_of_groups);
        Ok(Read { world, namespace, knows_groups })
    });
    drop(progress);
    for failure in failures {
        printer.warn(format_args!("{failure}; the result is incomplete"));
    }
    read
}

/// Returns the installed version of each Subscription in the namespace, or in all, whose CatalogSource is `source`, or any.
/// If there is none, a warning states the consequence.
pub(super) fn versions(
    there: &InstalledFrom,
    namespace: Option<&str>,
    source: Option<&str>,
    consequence: &str,
    printer: &mut Printer,
) -> Result<Vec<Installed>, CliError> {
    let read = there.of_all(namespace, printer)?;
    let world = Reader::new(&read.world);
    let is_asked = |subscription: &Value| {
        let own = |key| object::text(subscription, &["spec", key]);
        let in_namespace = namespace.is_none_or(|n| n == object::namespace(subscription));
        let of_source = source.is_none_or(|source| match source.split_once('/') {
            Some(source) => source == (own("sourceNamespace"), own("source")),
            None => source == own("source"),
        });
        in_namespace && of_source
    };
    let mut installed = Vec::new();
    let mut seen = 0;
    for subscription in world.all(&kind::SUBSCRIPTION).map(|o| o.json()).filter(|s| is_asked(s)) {
        seen += 1;
        let name = subscription::Subscription::new(subscription).installed_csv();
        if name.is_empty() {
            continue;
        }
        let namespace = object::namespace(subscription);
        let csv = world.json(&kind::CLUSTER_SERVICE_VERSION, namespace, name);
        let version = csv.and_then(|csv| version::parse_tolerant(Csv::new(csv).version()).ok());
        let spec = |key| object::text(subscription, &["spec", key]).to_owned();
        installed.push(Installed {
            subscription: Subscription { namespace: namespace.to_owned(), name: object::name(subscription).to_owned() },
            package: spec("name"),
            channel: spec("channel"),
            name: name.to_owned(),
            version,
        });
    }
    if installed.is_empty() {
        let why = if seen == 0 { "no matching Subscriptions" } else { "no Subscription has an installed version" };
        printer.warn(format_args!("{why}: {consequence}"));
    }
    Ok(installed)
}
