//! Looks up names in the kubeconfig, in the files and catalogs of the line, and on the cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use clap::{ArgAction, Args, Command, FromArgMatches};
use futures::future::join3;
use kube::config::{ExecInteractiveMode, Kubeconfig};
use olm_core::api::install_plan::InstallPlan;
use olm_core::api::kinds::{self, Kind};
use olm_core::api::object::{self, ObjectRef};
use olm_core::catalog::{self, Snapshot};
use serde_json::Value;

use super::Candidate;
use super::line::ParsedLine;
use super::values::Names;
use crate::cli::CliError;
use crate::cli::flags::ClusterFlags;
use crate::cluster::api::{Api, ListQuery, Page, Resource};
use crate::cluster::table::Row;
use crate::observe::files;
use crate::registry::dir;
use crate::registry::local::CatalogDirectory;

/// The kind that OLM's package server serves. It is no custom resource, and controllers do not read it.
const PACKAGE_MANIFEST: Kind = Kind {
    group: "packages.operators.coreos.com",
    version: "v1",
    kind: "PackageManifest",
    plural: "packagemanifests",
    namespaced: true,
};

/// The channel for candidates, sent as they are found.
type Found = Sender<Vec<Candidate>>;

/// Looks up names and sends them. Errors are ignored, because completion cannot report them.
pub(super) fn find(names: Names, given: &ParsedLine, found: &Found) {
    match names {
        Names::Contexts | Names::Clusters | Names::Users => of_kubeconfig(names, given, found),
        Names::Packages | Names::Channels => of_catalogs(names, given, found),
        _ => {}
    }
    let is_known = matches!(names, Names::Contexts | Names::Clusters | Names::Users);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let (false, Ok(runtime)) = (is_known, runtime) {
        let files = given.paths("from");
        if files.is_empty() {
            // On errors there is nothing to offer.
            runtime.block_on(of_cluster(names, given, found)).ok();
        } else {
            of_files(names, &files, given, found);
        }
    }
}

/// Returns the cluster flags of the line.
fn cluster(given: &ParsedLine) -> Option<ClusterFlags> {
    let command = ClusterFlags::augment_args(Command::new("complete").no_binary_name(true)).ignore_errors(true);
    let mut arguments = Vec::new();
    for (id, value) in given.flags() {
        let Some(known) = command.get_arguments().find(|argument| argument.get_id() == id) else { continue };
        let long = known.get_long()?;
        let is_switch = matches!(known.get_action(), ArgAction::SetTrue);
        arguments.push(if is_switch { format!("--{long}") } else { format!("--{long}={value}") });
    }
    ClusterFlags::from_arg_matches(&command.try_get_matches_from(arguments).ok()?).ok()
}

fn of_kubeconfig(names: Names, given: &ParsedLine, found: &Found) {
    let config = match given.value("kubeconfig") {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    let Ok(config) = config else { return };
    let names: Vec<Candidate> = match names {
        Names::Contexts => config
            .contexts
            .into_iter()
            .map(|context| {
                let about = context.context.map(|context| format!("cluster {}", context.cluster));
                Candidate::new(context.name, about.unwrap_or_default())
            })
            .collect(),
        Names::Clusters => config.clusters.into_iter().map(|cluster| Candidate::new(cluster.name, "")).collect(),
        _ => config.auth_infos.into_iter().map(|user| Candidate::new(user.name, "")).collect(),
    };
    found.send(names).ok();
}

/// Sends the packages or channels of the catalogs of the line.
fn of_catalogs(names: Names, given: &ParsedLine, found: &Found) {
    let named = given.values("catalogs").chain(given.values("catalog"));
    let named = named.map(|catalog| match catalog.parse::<CatalogDirectory>() {
        Ok(CatalogDirectory { directory, .. }) => directory,
        Err(_) => catalog.into(),
    });
    let operands = given.operands.iter().map(Into::into);
    for directory in named.chain(operands).filter(|path: &PathBuf| path.is_dir()) {
        if let Ok(load) = dir::load(&directory) {
            found.send(of_snapshot(names, given, &load.snapshot)).ok();
        }
    }
}

fn of_snapshot(names: Names, given: &ParsedLine, snapshot: &Snapshot) -> Vec<Candidate> {
    let packages = snapshot.packages().values();
    if names == Names::Packages {
        return packages
            .map(|package| Candidate::new(&package.name, format!("default channel {}", package.default_channel)))
            .collect();
    }
    let wanted = packages_of(given);
    let packages = packages.filter(|package| wanted.is_empty() || wanted.contains(package.name.as_str()));
    let channels = packages.flat_map(|package| &package.channels);
    channels.map(|channel| Candidate::new(&channel.name, format!("head {}", channel.head))).collect()
}

/// Returns the packages of the line.
fn packages_of(given: &ParsedLine) -> BTreeSet<&str> {
    let flags = given.values("package").chain(given.values("packages"));
    let words = flags.chain(given.operands.iter().map(String::as_str));
    words
        .map(|word| word.split('@').next().unwrap_or_default())
        .filter(|word| !word.is_empty() && !word.contains('/') && !Path::new(word).is_dir())
        .collect()
}

/// Returns the kind of the names.
fn resource(names: Names) -> Option<Resource> {
    let kind = match names {
        Names::Namespaces => &kinds::NAMESPACE,
        Names::InstallPlans | Names::PendingInstallPlans => &kinds::INSTALL_PLAN,
        Names::Subscriptions => &kinds::SUBSCRIPTION,
        Names::ClusterServiceVersions => &kinds::CLUSTER_SERVICE_VERSION,
        Names::OperatorGroups => &kinds::OPERATOR_GROUP,
        Names::ServiceAccounts => &kinds::SERVICE_ACCOUNT,
        Names::CatalogSources | Names::CatalogSourcePaths => &kinds::CATALOG_SOURCE,
        Names::Packages | Names::Channels => &PACKAGE_MANIFEST,
        Names::Contexts | Names::Clusters | Names::Users => return None,
    };
    Some(Resource::from(kind))
}

async fn of_cluster(names: Names, given: &ParsedLine, found: &Found) -> Result<(), CliError> {
    let Some(resource) = resource(names) else { return Ok(()) };
    let Some(flags) = cluster(given) else { return Ok(()) };
    let mut config = flags.config().await?;
    // A credential plugin must not prompt during completion.
    if let Some(exec) = &mut config.auth_info.exec {
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    let of_context = config.default_namespace.clone();
    let api = Api::new(kube::Client::try_from(config)?);
    let is_given = |id| given.flags().iter().any(|(known, _)| known == id);
    let everywhere = is_given("all_namespaces") || names == Names::CatalogSourcePaths;
    let namespace = if everywhere { "" } else { given.value("namespace").unwrap_or(&of_context) };
    match names {
        Names::Packages | Names::Channels => packages(&api, names, given, namespace, found).await,
        Names::CatalogSources => {
            // Those of the namespace by name, and those of all namespaces by namespace and name.
            rows(&api, names, &resource, "", given, found).await;
            rows(&api, names, &resource, namespace, given, found).await;
        }
        _ => rows(&api, names, &resource, namespace, given, found).await,
    }
    Ok(())
}

/// Lists objects as tables, page by page, since their full content is not needed.
async fn rows(api: &Api, names: Names, resource: &Resource, namespace: &str, given: &ParsedLine, found: &Found) {
    let mut next = String::new();
    loop {
        let Ok(page) = api.table(resource, namespace, &next).await else { return };
        let shown = page.rows.iter().filter(|row| names != Names::PendingInstallPlans || !is_approved(row));
        let candidates =
            shown.map(|row| candidate(names, row, namespace)).filter(|c| !given.operands.contains(&c.value));
        // The deadline has passed.
        if found.send(candidates.collect()).is_err() || page.next.is_empty() {
            return;
        }
        next = page.next;
    }
}

fn is_approved(row: &Row) -> bool {
    row.cells.iter().any(|(column, value)| column.eq_ignore_ascii_case("approved") && value == "true")
}

fn candidate(names: Names, row: &Row, namespace: &str) -> Candidate {
    let Row { name, namespace: own, cells } = row;
    let with_namespace = |name: &str| if own.is_empty() { name.to_owned() } else { format!("{own}/{name}") };
    let value = match names {
        Names::CatalogSources if namespace.is_empty() => format!("catalogsource/{}", with_namespace(name)),
        Names::CatalogSources => format!("catalogsource/{name}"),
        Names::CatalogSourcePaths => with_namespace(name),
        Names::OperatorGroups if namespace.is_empty() => with_namespace(name),
        _ => name.clone(),
    };
    let unsaid = ["name", "age", "created at", "uid"];
    let cells = cells.iter().filter(|(column, cell)| {
        !cell.is_empty() && cell != "<none>" && !unsaid.contains(&column.to_lowercase().as_str())
    });
    let said = cells.map(|(column, cell)| match cell.as_str() {
        "true" => column.to_lowercase(),
        "false" => format!("not {}", column.to_lowercase()),
        _ => cell.clone(),
    });
    Candidate::new(value, said.collect::<Vec<_>>().join(", "))
}

/// Sends packages or channels: from OLM's package server if there is one, from catalogs in ConfigMaps, and from Subscriptions.
async fn packages(api: &Api, names: Names, given: &ParsedLine, namespace: &str, found: &Found) {
    let served = async {
        let Some(resource) = resource(Names::Packages) else { return };
        if names == Names::Packages {
            return rows(api, names, &resource, namespace, given, found).await;
        }
        for package in packages_of(given) {
            let gvk = resource.gvk.clone();
            let target = ObjectRef { gvk, namespace: namespace.to_owned(), name: package.to_owned() };
            api.register(resource.clone()).await;
            if let Ok(Some(manifest)) = api.get(&target).await {
                let channels = object::list(&manifest, &["status", "channels"]).iter();
                let channels = channels.map(|channel| {
                    let head = object::text(channel, &["currentCSV"]);
                    Candidate::new(object::text(channel, &["name"]), format!("head {head}"))
                });
                found.send(channels.collect()).ok();
            }
        }
    };
    let subscribed = async {
        let Some(resource) = resource(Names::Subscriptions) else { return };
        let listed = api.list(&ListQuery::all(&resource).within(namespace)).await.and_then(Page::readable);
        let Ok((subscriptions, _)) = listed else { return };
        let wanted = packages_of(given);
        let candidates = subscriptions.iter().filter_map(|subscription| {
            let [package, channel] = ["name", "channel"].map(|field| object::text(subscription, &["spec", field]));
            match names {
                Names::Packages => Some(Candidate::new(package, "subscribed to")),
                _ if wanted.is_empty() || wanted.contains(package) => {
                    Some(Candidate::new(channel, format!("of Subscription {}", object::name(subscription))))
                }
                _ => None,
            }
        });
        found.send(candidates.collect()).ok();
    };
    let of_config_maps = async {
        let Some(resource) = resource(Names::CatalogSources) else { return };
        let listed = api.list(&ListQuery::all(&resource)).await.and_then(Page::readable);
        let Ok((sources, _)) = listed else { return };
        for source in &sources {
            let name = object::text(source, &["spec", "configMap"]);
            if name.is_empty() {
                continue;
            }
            let target = kinds::CONFIG_MAP.object(object::namespace(source), name);
            let config_map = api.get(&target).await.ok().flatten();
            if let Some(snapshot) =
                config_map.and_then(|found: Value| catalog::config_map(&found).ok().map(|(snapshot, _)| snapshot))
            {
                found.send(of_snapshot(names, given, &snapshot)).ok();
            }
        }
    };
    join3(served, subscribed, of_config_maps).await;
}

/// Sends the names of objects in files.
fn of_files(names: Names, paths: &[PathBuf], given: &ParsedLine, found: &Found) {
    let Some(resource) = resource(names) else { return };
    // Standard input belongs to the command.
    if paths.iter().any(|path| path == Path::new("-")) {
        return;
    }
    let Ok(gathered) = files::gather(paths) else { return };
    let everywhere = given.value("namespace").is_none();
    let mut candidates = Vec::new();
    for files::InputObject { object, .. } in gathered.given {
        let own = object::namespace(&object);
        if names == Names::Namespaces && !own.is_empty() {
            candidates.push(Candidate::new(own, ""));
        }
        if object::gvk(&object).kind != resource.gvk.kind
            || resource.namespaced && !everywhere && given.value("namespace") != Some(own)
        {
            continue;
        }
        let row = Row { name: object::name(&object).to_owned(), namespace: own.to_owned(), cells: Vec::new() };
        let is_approved = InstallPlan::new(&object).spec_approved();
        if names != Names::PendingInstallPlans || !is_approved {
            candidates.push(candidate(names, &row, given.value("namespace").unwrap_or_default()));
        }
    }
    found.send(candidates).ok();
}
