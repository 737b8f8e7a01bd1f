//! What is installed: OLM's objects from files, or from a cluster that is only read.

use std::path::PathBuf;

use olm_core::api::object::{self, Gvk};
use olm_core::api::status::Status;
use olm_core::world::World;
use serde_json::{Value, json};

use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::api::{Api, Resource};
use crate::run::input;

/// Where it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum There {
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

/// How much of it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Subscriptions and ClusterServiceVersions.
    Installed,
    /// Also what says how they are resolved: OperatorGroups and InstallPlans.
    Resolution,
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

const KINDS: [(&str, &str, &str, bool); 4] = [
    ("v1alpha1", "Subscription", "subscriptions", true),
    ("v1alpha1", "ClusterServiceVersion", "clusterserviceversions", true),
    ("v1", "OperatorGroup", "operatorgroups", false),
    ("v1alpha1", "InstallPlan", "installplans", false),
];
const GROUP: &str = "operators.coreos.com";

impl There {
    /// From the files, else from the cluster that the flags choose, else nowhere.
    pub fn of(files: Vec<PathBuf>, cluster: ClusterFlags) -> Result<Self, CliError> {
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
            Self::Files(files) => of_files(files, asked),
            Self::Cluster(flags) => {
                let namespaces = asked.map_or(Namespaces::OfContext, Namespaces::One);
                of_cluster(flags, namespaces, Need::Resolution, printer)
            }
        }
    }

    /// Reads what is installed in one namespace, or in all.
    pub(super) fn of_all(&self, namespace: Option<&str>, printer: &mut Printer) -> Result<Read, CliError> {
        match self {
            Self::Cluster(flags) => {
                let namespaces = namespace.map_or(Namespaces::All, |one| Namespaces::One(one.to_owned()));
                of_cluster(flags, namespaces, Need::Installed, printer)
            }
            Self::Files(files) => of_files(files, Some(namespace.unwrap_or_default().to_owned())),
            Self::Nothing => Ok(Read::default()),
        }
    }
}

/// Objects of files. Of an empty namespace are all.
fn of_files(files: &[PathBuf], asked: Option<String>) -> Result<Read, CliError> {
    let mut objects: Vec<Value> = input::read(files)?.into_iter().map(|given| given.object).collect();
    objects.retain(|o| KINDS.iter().any(|(_, kind, ..)| object::text(o, &["kind"]) == *kind));
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
fn of_cluster(flags: &ClusterFlags, asked: Namespaces, need: Need, printer: &mut Printer) -> Result<Read, CliError> {
    let progress = printer.progress("reading what is installed");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut untold = Vec::new();
    let read = runtime.block_on(async {
        let config = flags.config().await?;
        let namespace = match asked {
            Namespaces::All => None,
            Namespaces::OfContext => Some(config.default_namespace.clone()),
            Namespaces::One(name) => Some(name),
        };
        let api = Api::new(kube::Client::try_from(config)?);
        let mut world = World::new();
        let mut knows_groups = need == Need::Resolution;
        for (version, kind, plural, is_needed) in KINDS {
            if !is_needed && need == Need::Installed {
                continue;
            }
            let gvk = Gvk::new(GROUP, version, kind);
            let resource = Resource { gvk, plural: plural.to_owned(), namespaced: true };
            // Copies of ClusterServiceVersions can be ten thousands, and are of no use here.
            let labels = if kind == "ClusterServiceVersion" { "!olm.copiedFrom" } else { "" };
            let namespace = namespace.as_deref().unwrap_or_default();
            match api.list_whole(&resource, namespace, labels).await {
                Ok(objects) => {
                    for object in objects {
                        world.apply(object);
                    }
                }
                Err(refusal) if !is_needed && refusal.is_forbidden() => {
                    knows_groups &= kind != "OperatorGroup";
                    untold.push(refused(&refusal, plural, namespace));
                }
                Err(refusal) => return Err(refused(&refusal, plural, namespace)),
            }
        }
        Ok(Read { world, namespace, knows_groups })
    });
    drop(progress);
    for refusal in untold {
        printer.warn(format_args!("{refusal}; the answer does without"));
    }
    read
}

/// Why objects cannot be listed, and what to do about it.
fn refused(refusal: &Status, plural: &str, namespace: &str) -> CliError {
    let (place, option) = match namespace {
        "" => ("all namespaces".to_owned(), "-A".to_owned()),
        one => (format!("namespace {one}"), format!("-n {one}")),
    };
    match refusal.code {
        403 => CliError::new(ErrorKind::Api, format!("listing {plural} in {place} is forbidden: {}", refusal.message))
            .hint(format!("see what is allowed with: kubectl auth can-i list {plural}.{GROUP} {option}")),
        404 => CliError::new(ErrorKind::Api, format!("the cluster does not serve {plural}.{GROUP}"))
            .hint("OLM's CRDs are not installed there: is this the right context?"),
        0 => CliError::new(ErrorKind::Unreachable, format!("no answer from the server: {}", refusal.message))
            .hint("is the cluster up, and is this the right context? kubectl config current-context"),
        _ => CliError::new(
            ErrorKind::Api,
            format!("the server refused to list {plural} in {place}: {}", refusal.message),
        ),
    }
}
