//! `kubectl olm operatorgroup delete`: away with an OperatorGroup that we compiled and nobody needs.
//!
//! ```text
//!   look --olm_core managed--> a user's, in use: it stays      ours, no members --question--> look again --> DELETE --> really nobody?
//! ```
//!
//! *Guarantees*: groups that users look after are never touched. What is deleted is the group as it was looked at; a member that
//! appears in the very moment gets it back.

use olm_core::api::object;
use olm_core::operatorgroup::managed::{self, COMPILED_BY, Deletion, Origin};
use olm_core::world::Reader;
use serde_json::{Value, json};

use super::compile::namespace;
use super::managed::{ATTEMPTS, delete, label, list, listed, look, names, refused};
use crate::cli::confirm::confirm;
use crate::cli::flags::{DryRun, SourceFlags};
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::cli::wait::block_on;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;

/// What to delete.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group's name; none: the one of the namespace.
    pub name: Option<String>,
    /// Its namespace; none: the context's.
    pub namespace: Option<String>,
    /// Go ahead without asking?
    pub yes: bool,
    /// Only say what would be done.
    pub dry_run: DryRun,
    /// The form of the answer; a table stands for a line of words.
    pub output: Output,
    /// The cluster. Files instead of it can only be looked at.
    pub source: SourceFlags,
}

/// What to do.
enum Decided {
    Nothing,
    Stays { group: Value, why: String, hint: String },
    Goes { group: Value, subscriptions: Vec<String> },
}

/// Deletes a group. The answer is no when it stays because users look after it, or because it has members.
///
/// # Errors
/// There are several, what decides cannot be read, or the server refuses.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if !options.source.from.is_empty() && options.dry_run != DryRun::Client {
        return Err(
            CliError::usage("nothing can be deleted in files").hint("say --dry-run=client to see what would be done")
        );
    }
    block_on(remove(options, printer))
}

async fn remove(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let place = namespace(options.namespace.as_deref(), &options.source).await?;
    let name = options.name.as_deref().map(|name| name.rsplit('/').next().unwrap_or_default());
    let mut agreed = options.yes || options.dry_run != DryRun::None;
    for _ in 0..ATTEMPTS {
        let seen = look(&options.source, &place, printer).await?;
        let (group, subscriptions) = match decide(&Reader::new(&seen.world), &place, name)? {
            Decided::Nothing => {
                let which = name.map(|name| format!(" {name}")).unwrap_or_default();
                printer.talk(format_args!("No OperatorGroup{which} found in {place} namespace: nothing to delete"));
                return Ok(Outcome::Done);
            }
            Decided::Stays { group, why, hint } => {
                printer.line(format_args!("{} not deleted: {why}", label(object::name(&group))))?;
                printer.talk(format_args!("hint: {hint}"));
                return Ok(Outcome::Negative);
            }
            Decided::Goes { group, subscriptions } => (group, subscriptions),
        };
        if !subscriptions.is_empty() {
            printer.talk(format_args!(
                "Without OperatorGroup {} nothing comes of the Subscriptions of namespace {place}: {}",
                object::name(&group),
                listed(&subscriptions)
            ));
            if !agreed {
                if !confirm(printer, &format!("Delete OperatorGroup {}?", object::name(&group)), false)? {
                    printer.talk("Nothing was deleted");
                    return Ok(Outcome::Negative);
                }
                // While somebody thought about it things may have changed.
                agreed = true;
                continue;
            }
        }
        let (DryRun::None | DryRun::Server, Some(api)) = (options.dry_run, seen.api()) else {
            return told(options, &group, printer);
        };
        let is_rehearsal = options.dry_run == DryRun::Server;
        match delete(api, &group, is_rehearsal).await {
            Ok(()) => {}
            // It has changed, or is gone: that is another question.
            Err(refusal) if refusal.is_conflict() || refusal.is_not_found() => continue,
            Err(refusal) => {
                return Err(refused(&refusal, "delete", "operatorgroups.operators.coreos.com", &place));
            }
        }
        if !is_rehearsal && let Some(outcome) = given_back(api, &group, printer).await? {
            return Ok(outcome);
        }
        return told(options, &group, printer);
    }
    Err(CliError::new(ErrorKind::Api, format!("the OperatorGroup of namespace {place} changes all the time"))
        .hint(format!("kubectl get operatorgroups -n {place} -o yaml --watch shows who writes to it")))
}

fn decide(world: &Reader<'_>, namespace: &str, name: Option<&str>) -> Result<Decided, CliError> {
    Ok(match managed::deletion(world, namespace, name) {
        Deletion::Absent => Decided::Nothing,
        Deletion::Several(groups) => {
            return Err(CliError::usage(format!("namespace {namespace} has several OperatorGroups"))
                .hint(format!("name one: {}", names(&groups))));
        }
        Deletion::UserManaged(group) => Decided::Stays {
            group: group.0.clone(),
            why: format!("users look after it: it has no label {COMPILED_BY}={}", Origin::Ours.label()),
            hint: format!(
                "what users have made is theirs to delete: kubectl delete operatorgroup {} -n {namespace}",
                group.name()
            ),
        },
        Deletion::InUse { group, members } => {
            let members: Vec<&str> = members.into_iter().map(object::name).collect();
            Decided::Stays {
                group: group.0.clone(),
                why: format!("without it {} would fail", listed(&members)),
                hint: format!(
                    "uninstall its members first: kubectl get clusterserviceversions -n {namespace} lists them"
                ),
            }
        }
        Deletion::Free { group, subscriptions } => Decided::Goes {
            group: group.0.clone(),
            subscriptions: subscriptions.into_iter().map(|s| object::name(s).to_owned()).collect(),
        },
    })
}

/// Has a member appeared while the group was deleted? Then it gets its group back.
async fn given_back(api: &Api, group: &Value, printer: &mut Printer) -> Result<Option<Outcome>, CliError> {
    let namespace = object::namespace(group);
    let csvs =
        list(api, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions", namespace, "!olm.copiedFrom").await?;
    let mut world = olm_core::world::World::new();
    world.apply(group.clone());
    for csv in csvs {
        world.apply(csv);
    }
    let name = object::name(group);
    let Deletion::InUse { members, .. } = managed::deletion(&Reader::new(&world), namespace, Some(name)) else {
        return Ok(None);
    };
    let members: Vec<&str> = members.into_iter().map(object::name).collect();
    let mut again = json!({
        "apiVersion": group["apiVersion"], "kind": group["kind"],
        "metadata": { "name": name, "namespace": namespace }, "spec": group["spec"],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = object::at(group, &["metadata", field]);
        if !value.is_null() {
            again["metadata"][field] = value.clone();
        }
    }
    match api.create(&again).await {
        Ok(_) => {}
        Err(refusal) if refusal.is_already_exists() => {}
        Err(refusal) => return Err(refused(&refusal, "create", "operatorgroups.operators.coreos.com", namespace)),
    }
    printer.line(format_args!(
        "{} not deleted: {} came meanwhile, and it was created again",
        label(name),
        listed(&members)
    ))?;
    Ok(Some(Outcome::Negative))
}

fn told(options: &Options, group: &Value, printer: &mut Printer) -> Result<Outcome, CliError> {
    match options.output {
        Output::Table | Output::Wide => {
            let place = object::namespace(group);
            let note = options.dry_run.note();
            printer.line(format_args!("{} deleted{note} in namespace {place}", label(object::name(group))))?;
        }
        _ => options.output.object(printer, group, || Table::new([]))?,
    }
    Ok(Outcome::Done)
}
