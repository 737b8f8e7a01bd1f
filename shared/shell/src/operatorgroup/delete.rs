//! `kubectl olm operatorgroup delete`: deletes a generated OperatorGroup that no operator needs.
//!
//! ```text
//!   read --olm_core create_delete--> user-managed or in use: keep      generated, no members --prompt--> read again --> DELETE --> still no members?
//! ```
//!
//! *Guarantees*: user-managed groups are never changed. The group is deleted at the resourceVersion that was read. If a
//! member appears during the deletion, the group is created again.

use kube::api::{DeleteParams, Preconditions};
use olm_core::api::object::{self, ObjectRef};
use olm_core::api::{kinds, labels};
use olm_core::listing::listed;
use olm_core::membership;
use olm_core::operatorgroup::compile::Named;
use olm_core::operatorgroup::create_delete::{self, Deletion};
use olm_core::world::{Reader, World};
use serde_json::{Value, json};

use super::compile::{self, namespace};
use super::create_delete::{
    ATTEMPTS, CSVS, GROUPS, create_first, label, names, print_objects, read_failure, read_state, refuse, refused,
    unlabelled,
};
use crate::blocking::block_on;
use crate::cli::flags::{DryRun, SourceFlags};
use crate::cli::output::Output;
use crate::cli::prompt::confirm;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::{Api, ListQuery, Page, Resource};
use crate::observe::ClusterState;

/// What to delete.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name; if `None`, the only group of the namespace.
    pub name: Option<String>,
    /// The namespace; if `None`, that of the context.
    pub namespace: Option<String>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format; a table stands for one line of text.
    pub output: Output,
    /// The cluster. Files instead of it only allow a dry run.
    pub source: SourceFlags,
}

/// The decision.
enum Decided {
    /// Nothing, with the reason.
    Nothing { why: String },
    /// Keep the group.
    Stays { group: Value, why: String, hint: String },
    /// Delete the group; these Subscriptions can then not be resolved.
    Goes { group: Value, subscriptions: Vec<String> },
}

/// Deletes a group. The outcome is negative if it is retained because users manage it, or because it has members.
///
/// # Errors
/// There are several groups, they cannot be read, or the server refuses the request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if !options.source.from.is_empty() && options.dry_run != DryRun::Client {
        return Err(CliError::usage("with --from nothing can be deleted")
            .hint("use --dry-run=client to print what would be done"));
    }
    block_on(remove(options, printer))
}

async fn remove(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let place = namespace(options.namespace.as_deref(), &options.source).await?;
    Named::Namespace.check(&place).map_err(compile::refused)?;
    let name = options.name.as_deref().map(named).transpose()?;
    let mut agreed = options.yes || options.dry_run != DryRun::None;
    let mut said = String::new();
    for _ in 0..ATTEMPTS {
        let state = read_state(&options.source, &place, printer).await?;
        let (group, subscriptions) = match decide(&Reader::new(&state.world), &place, name)? {
            Decided::Nothing { why } => {
                printer.talk(why);
                return Ok(Outcome::Done);
            }
            Decided::Stays { group, why, hint } => {
                let said = format!("{} not deleted: {why}", label(object::name(&group)));
                return refuse(&options.output, &said, &hint, printer);
            }
            Decided::Goes { group, subscriptions } => (group, subscriptions),
        };
        let why = who_waits(&state, &group, &subscriptions);
        if why != said {
            printer.talk(&why);
            said.clone_from(&why);
        }
        if !why.is_empty() && !agreed {
            if !confirm(printer, &format!("Delete OperatorGroup {}?", object::name(&group)), false)? {
                printer.talk("Nothing was deleted");
                return Ok(Outcome::Negative);
            }
            // The state may have changed during the prompt.
            agreed = true;
            continue;
        }
        let deleted = format!("deleted{}", options.dry_run.note());
        let (DryRun::None | DryRun::Server, Some(api)) = (options.dry_run, state.api()) else {
            print_objects(&options.output, vec![group], &deleted, printer)?;
            return Ok(Outcome::Done);
        };
        let dry_run = options.dry_run == DryRun::Server;
        let preconditions = Preconditions {
            uid: Some(object::uid(&group).to_owned()),
            resource_version: Some(object::resource_version(&group).to_owned()),
        };
        let params = DeleteParams { dry_run, preconditions: Some(preconditions), ..DeleteParams::default() };
        let left = match api.delete(&ObjectRef::from_object(&group), &params).await {
            Ok(left) => left,
            // It has changed or is deleted: decide again.
            Err(refusal) if refusal.is_conflict() || refusal.is_not_found() => continue,
            Err(refusal) => return Err(refused(&refusal, "delete", GROUPS, &place)),
        };
        if !dry_run && let Some(outcome) = given_back(api, &group, options, printer).await? {
            return Ok(outcome);
        }
        print_objects(&options.output, vec![group], &deleted, printer)?;
        let finalizers = left.iter().flat_map(|left| object::list(left, &["metadata", "finalizers"]));
        let finalizers: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
        if !finalizers.is_empty() {
            printer.talk(format_args!("The group stays until its finalizers are removed: {}", listed(&finalizers)));
        }
        return Ok(Outcome::Done);
    }
    Err(CliError::new(ErrorKind::Api, format!("the OperatorGroup of namespace {place} keeps changing")).hint(format!(
        "kubectl get operatorgroups -n {place} -o yaml --show-managed-fields shows which clients write to it"
    )))
}

/// Returns a message about Subscriptions that need the group; empty if there are none.
fn who_waits(state: &ClusterState, group: &Value, subscriptions: &[String]) -> String {
    let (namespace, name) = (object::namespace(group), object::name(group));
    match read_failure(state, "subscriptions.operators.coreos.com", namespace) {
        Some(failure) => format!("Whether Subscriptions need OperatorGroup {name} is unknown: {failure}"),
        None if subscriptions.is_empty() => String::new(),
        None => format!(
            "Without OperatorGroup {name} these Subscriptions of namespace {namespace} are not resolved: {}",
            listed(subscriptions)
        ),
    }
}

/// Parses a name, also with its kind as kubectl prints it.
fn named(name: &str) -> Result<&str, CliError> {
    let bare = match name.split_once('/') {
        Some((kind, bare)) if kind.starts_with("operatorgroup") => bare,
        _ => name,
    };
    Named::OperatorGroup.check(bare).map_err(compile::refused)?;
    Ok(bare)
}

fn decide(world: &Reader<'_>, namespace: &str, name: Option<&str>) -> Result<Decided, CliError> {
    Ok(match create_delete::deletion(world, namespace, name) {
        Deletion::Absent => {
            let which = name.map(|name| format!(" {name}")).unwrap_or_default();
            let others = match &membership::groups(world, namespace)[..] {
                [] => String::new(),
                others => format!("; there is {}", names(others)),
            };
            Decided::Nothing {
                why: format!("No OperatorGroup{which} found in {namespace} namespace, nothing to delete{others}"),
            }
        }
        Deletion::Leaving(group) => Decided::Nothing {
            why: format!("OperatorGroup {} of namespace {namespace} is already being deleted", group.name()),
        },
        Deletion::Several(groups) => {
            return Err(CliError::usage(format!("namespace {namespace} has several OperatorGroups"))
                .hint(format!("specify one of: {}", names(&groups))));
        }
        Deletion::UserManaged(group) => Decided::Stays {
            group: group.json.clone(),
            why: format!("it is managed by users: {}", unlabelled()),
            hint: format!(
                "groups managed by users are never deleted here; to delete it: kubectl delete operatorgroup {} -n {namespace}",
                group.name()
            ),
        },
        Deletion::InUse { group, members } => {
            let members: Vec<&str> = members.into_iter().map(object::name).collect();
            Decided::Stays {
                group: group.json.clone(),
                why: format!("{} would fail without it", listed(&members)),
                hint: uninstall(namespace),
            }
        }
        Deletion::Free { group, subscriptions } => Decided::Goes {
            group: group.json.clone(),
            subscriptions: subscriptions.into_iter().map(|s| object::name(s).to_owned()).collect(),
        },
    })
}

/// Creates the group again if a member appeared during the deletion, unless another client created one.
async fn given_back(
    api: &Api,
    group: &Value,
    options: &Options,
    printer: &mut Printer,
) -> Result<Option<Outcome>, CliError> {
    let (namespace, name) = (object::namespace(group), object::name(group));
    let csvs = Resource::from(&kinds::CLUSTER_SERVICE_VERSION);
    let csvs =
        api.list(&ListQuery::all(&csvs).within(namespace).labelled(labels::NOT_COPIED)).await.and_then(Page::readable);
    let mut world = World::new();
    world.apply(group.clone());
    for csv in csvs.map_err(|refusal| refused(&refusal, "list", CSVS, namespace))?.0 {
        world.apply(csv);
    }
    let Deletion::InUse { members, .. } = create_delete::deletion(&Reader::new(&world), namespace, Some(name)) else {
        return Ok(None);
    };
    let members: Vec<&str> = members.into_iter().map(object::name).collect();
    let mut again = json!({
        "apiVersion": group["apiVersion"], "kind": group["kind"],
        "metadata": { "name": name, "namespace": namespace }, "spec": group["spec"],
    });
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let value = object::at(group, &["metadata", field]);
        if !value.is_null() {
            again["metadata"][field] = value.clone();
        }
    }
    let what = match create_first(api, &again, printer).await? {
        Some(_) => "it was created again",
        None => "another one exists now",
    };
    let said = format!("{} not deleted: {} appeared in the meantime, and {what}", label(name), listed(&members));
    refuse(&options.output, &said, &uninstall(namespace), printer).map(Some)
}

/// Returns the hint about members.
fn uninstall(namespace: &str) -> String {
    format!("uninstall its members first; to list them: kubectl get clusterserviceversions -n {namespace}")
}
