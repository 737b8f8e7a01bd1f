//! What is installed: OLM's objects from files, or from a cluster that is only read.

use std::path::PathBuf;

use olm_core::api::object;
use olm_core::sim::Strict;
use olm_core::world::World;
use serde_json::{Value, json};

use crate::cli::connect::{Connection, connect};
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, Printer};
use crate::observe::{self, Gap, KINDS, ReadScope, files, strict};

/// Where it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum InstalledFrom {
    /// Nowhere: nothing is installed.
    #[default]
    Nothing,
    /// From files and folders of objects, as `kubectl get -o yaml` prints them.
    Files(Vec<PathBuf>),
    /// From a cluster.
    Cluster(Box<ClusterFlags>),
}

/// In which namespaces of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Namespaces {
    All,
    /// In the one that the context names.
    OfContext,
    One(String),
}

/// What was read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) world: World,
    /// The namespace that was asked for, else the context's, else the one that all objects are in; none when nothing says.
    pub(super) namespace: Option<String>,
    /// Are its OperatorGroups known? Of a cluster they are, unless listing them is forbidden.
    pub(super) knows_groups: bool,
}

impl InstalledFrom {
    /// From the files, else from the cluster that the flags choose, else nowhere.
    pub fn new(files: Vec<PathBuf>, cluster: ClusterFlags) -> Result<Self, CliError> {
        match (files.is_empty(), cluster.is_given()) {
            (false, true) => {
                Err(CliError::usage("what is installed is read from files or from a cluster, not from both")
                    .hint("leave out either the files or --context and its like"))
            }
            (false, false) => Ok(Self::Files(files)),
            (true, true) => Ok(Self::Cluster(Box::new(cluster))),
            (true, false) => Ok(Self::Nothing),
        }
    }

    /// Reads the objects of one namespace. Without a name it is the context's, or the only one.
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

    /// Reads what is installed in one namespace, or in all.
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

/// Objects of files. Of an empty namespace are all.
fn of_files(paths: &[PathBuf], asked: Option<String>, printer: &mut Printer) -> Result<Read, CliError> {
    let given = files::read(paths)?;
    strict::check(&given, &mut Strict::default(), &mut |words| printer.warn(words))?;
    let mut objects: Vec<Value> = given.into_iter().map(|given| given.object).collect();
    objects.retain(|o| {
        KINDS.iter().any(|known| known.name == object::text(o, &["kind"]) && known.scope <= ReadScope::Resolution)
    });
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
            return Err(refused.hint(format!("choose one with -n: {}", many.join(", "))));
        }
    };
    let mut world = World::new();
    for mut object in objects {
        if object::namespace(&object).is_empty() {
            let own = namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or("default");
            object["metadata"]["namespace"] = own.into();
        }
        // One that somebody wrote down is meant to be there.
        if object::text(&object, &["kind"]) == "ClusterServiceVersion" && object["status"].is_null() {
            object["status"] = json!({ "phase": "Succeeded" });
        }
        world.apply(object);
    }
    Ok(Read { world, namespace, knows_groups: false })
}

/// Objects of a cluster: of all namespaces, of the context's, or of the one that is named.
fn of_cluster(
    flags: &ClusterFlags,
    asked: Namespaces,
    need: ReadScope,
    printer: &mut Printer,
) -> Result<Read, CliError> {
    let progress = printer.progress("reading what is installed");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut gaps = Vec::new();
    let read = runtime.block_on(async {
        let Connection { api, namespace: of_context, .. } = connect(flags).await?;
        let namespace = match asked {
            Namespaces::All => None,
            Namespaces::OfContext => Some(of_context),
            Namespaces::One(name) => Some(name),
        };
        let mut world = World::new();
        gaps = observe::list(&api, namespace.as_deref().unwrap_or_default(), need, &mut world).await?;
        let is_of_groups = |gap: &Gap| gap.resource.starts_with("operatorgroups");
        let knows_groups = need == ReadScope::Resolution && !gaps.iter().any(is_of_groups);
        Ok(Read { world, namespace, knows_groups })
    });
    drop(progress);
    for gap in gaps {
        printer.warn(format_args!("{gap}; the result is incomplete"));
    }
    read
}
