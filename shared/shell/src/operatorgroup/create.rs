//! `kubectl olm operatorgroup create`: the OperatorGroup that is needed, where it can be.
//!
//! ```text
//!   manifest, or wish --compile--> group --look, olm_core managed--> here, there already, elsewhere, or theirs to settle
//!                                    ^                                 |
//!                                    +---- somebody else was quicker --+--> POST --> is it the only one?
//! ```
//!
//! *Guarantees*: groups that users look after are never touched; no namespace gets a second group from us, or it is taken back.

use std::path::PathBuf;
use std::time::Duration;

use olm_core::api::object::{self, ObjectRef};
use olm_core::membership::Group;
use olm_core::operatorgroup::compile::supports;
use olm_core::operatorgroup::intersection::{self, Intersections};
use olm_core::operatorgroup::managed::{self, COMPILED_BY, Creation, Origin, Relation};
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::compile::{self, Made, Wanted};
use super::managed::{ATTEMPTS, delete, label, list, listed, look, names, refused};
use super::operator::Known;
use crate::cli::confirm::confirm;
use crate::cli::flags::{DryRun, SourceFlags};
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::cli::wait::block_on;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::image;
use crate::observe::{Seen, files};

const GROUPS: &str = "operatorgroups.operators.coreos.com";

/// So many seconds a group is new.
const NEW: i64 = 5;
/// So often is waited for another group to go that came later than ours.
const LOOKS: usize = 10;
/// And so long each time.
const PAUSE: Duration = Duration::from_millis(200);

/// The group to create.
#[derive(Clone, Debug)]
pub enum Given {
    /// One that the user has written.
    Manifest(PathBuf),
    /// One that is compiled.
    Wish(Wanted),
}

/// What to create, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group.
    pub given: Given,
    /// Its namespace; none: the manifest's, or the context's.
    pub namespace: Option<String>,
    /// The namespace for it if another group of ours stands in its way; none: one that follows from the group, when somebody agrees.
    pub other_namespace: Option<String>,
    /// Go ahead without asking?
    pub yes: bool,
    /// Only say what would be done.
    pub dry_run: DryRun,
    /// The form of the answer; a table stands for a line of words.
    pub output: Output,
    /// The cluster, and catalogs. Files instead of a cluster can only be looked at.
    pub source: SourceFlags,
    /// How images are pulled.
    pub images: image::Options,
}

/// The group that is wished for, labelled, and the operator that is to be in it.
struct Wished {
    group: Value,
    operator: Option<Known>,
}

/// What to do.
enum Decided {
    /// Nothing: one like it is there.
    There(Value),
    /// Nothing: it cannot be.
    Refused { why: String, hint: String },
    /// Create it.
    Create { group: Value, with_namespace: bool },
    /// Create it in another namespace.
    Elsewhere { group: Value, with_namespace: bool, why: String },
}

/// Creates a group. The answer is no when a group stands in its way that is not ours, or the namespace that is left is taken, too.
///
/// # Errors
/// The group makes no sense, what decides cannot be read, or the server refuses.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if !options.source.from.is_empty() && options.dry_run != DryRun::Client {
        return Err(
            CliError::usage("nothing can be created in files").hint("say --dry-run=client to see what would be done")
        );
    }
    block_on(create(options, printer))
}

async fn create(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let wished = wished(options, printer).await?;
    let namespace = object::namespace(&wished.group).to_owned();
    let mut agreed = options.yes || options.other_namespace.is_some() || options.dry_run != DryRun::None;
    for attempt in 1..=ATTEMPTS {
        let seen = look(&options.source, &namespace, printer).await?;
        let (group, with_namespace) = match decide(&seen, &wished, options.other_namespace.as_deref()) {
            // Who came too late takes theirs back.
            Decided::Refused { .. } if attempt < ATTEMPTS && is_settling(&seen, &namespace) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Decided::There(group) => {
                told(options, &[group], "unchanged", printer)?;
                return Ok(Outcome::Done);
            }
            Decided::Refused { why, hint } => {
                printer.line(format_args!("{} not created: {why}", label(object::name(&wished.group))))?;
                printer.talk(format_args!("hint: {hint}"));
                return Ok(Outcome::Negative);
            }
            Decided::Create { group, with_namespace } => (group, with_namespace),
            Decided::Elsewhere { group, with_namespace, why } => {
                printer.talk(&why);
                let place = object::namespace(&group);
                if !agreed {
                    let kind = if with_namespace { "a new namespace" } else { "namespace" };
                    if !confirm(printer, &format!("Create it in {kind} {place} instead?"), false)? {
                        printer.talk("Nothing was created");
                        return Ok(Outcome::Negative);
                    }
                    // The same question is not asked twice.
                    agreed = true;
                    continue;
                }
                (group, with_namespace)
            }
        };
        warn(&seen, &group, wished.operator.as_ref(), printer);
        if let Some(made) = make(&seen, options, group, with_namespace, printer).await? {
            told(options, &made, &format!("created{}", options.dry_run.note()), printer)?;
            return Ok(Outcome::Done);
        }
    }
    Err(CliError::new(
        ErrorKind::Api,
        format!("somebody else creates OperatorGroups in namespace {namespace} all the time"),
    )
    .hint(format!("kubectl get operatorgroups -n {namespace} shows them")))
}

/// Are there several groups in the namespace, and one of them is new?
fn is_settling(seen: &Seen, namespace: &str) -> bool {
    let world = Reader::new(&seen.world);
    let created = |group: &Value| object::parse_time(object::text(group, &["metadata", "creationTimestamp"]));
    let ages = world.in_namespace(&kind::OPERATOR_GROUP, namespace).filter_map(|o| created(o.json()));
    let ages: Vec<_> = ages.map(|created| seen.at.duration_since(created).abs()).collect();
    ages.len() > 1 && ages.iter().any(|age| age.as_secs() < NEW)
}

/// The group: as it is written, or compiled.
async fn wished(options: &Options, printer: &mut Printer) -> Result<Wished, CliError> {
    let wanted = match &options.given {
        Given::Manifest(file) => return written(file, options).await,
        Given::Wish(wanted) => Wanted { namespace: options.namespace.clone(), ..wanted.clone() },
    };
    let Made { compiled, operator, .. } = compile::make(&wanted, &options.source, &options.images, printer).await?;
    let mut group = compiled.group;
    Origin::Ours.mark(&mut group);
    Ok(Wished { group, operator })
}

async fn written(file: &PathBuf, options: &Options) -> Result<Wished, CliError> {
    let mut given = files::read(std::slice::from_ref(file))?;
    let is_group = |object: &Value| {
        let gvk = object::gvk(object);
        (gvk.group.as_str(), gvk.kind.as_str()) == ("operators.coreos.com", "OperatorGroup")
    };
    let (Some(only), None) = (given.pop(), given.pop()) else {
        return Err(CliError::input("one OperatorGroup is expected").at(file.display()));
    };
    if !is_group(&only.object) || object::name(&only.object).is_empty() {
        return Err(CliError::input("this is not an OperatorGroup with a name").at(only.place));
    }
    let mut group = only.object;
    let said = object::namespace(&group).to_owned();
    let namespace = match (&options.namespace, said.as_str()) {
        (Some(named), said) if !said.is_empty() && named != said => {
            return Err(
                CliError::usage(format!("the OperatorGroup is of namespace {said}, not of {named}")).at(only.place)
            );
        }
        (None, said) if !said.is_empty() => said.to_owned(),
        (named, _) => compile::namespace(named.as_deref(), &options.source).await?,
    };
    object::map_mut(&mut group, &["metadata"]).insert("namespace".to_owned(), namespace.into());
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        object::map_mut(&mut group, &["metadata"]).remove(field);
    }
    object::map_mut(&mut group, &[]).remove("status");
    Origin::User.mark(&mut group);
    Ok(Wished { group, operator: None })
}

/// Decides, and says why.
fn decide(seen: &Seen, wished: &Wished, other: Option<&str>) -> Decided {
    let Wished { group, operator } = wished;
    let world = Reader::new(&seen.world);
    let namespace = object::namespace(group);
    match managed::creation(&world, namespace, group) {
        Creation::Here => Decided::Create { group: group.clone(), with_namespace: false },
        Creation::Same(there) => Decided::There(there.0.clone()),
        Creation::UserManaged(there) => users(namespace, &there),
        Creation::Several(there) => several(namespace, &there),
        Creation::Leaving(there) => leaving(there),
        Creation::Elsewhere { group: there, members, relation } => {
            let targets = intersection::targets(&world, Group(group));
            let place = other.map_or_else(|| managed::other_namespace(namespace, group, &targets), str::to_owned);
            if place == namespace {
                return Decided::Refused {
                    why: format!("namespace {namespace} has OperatorGroup {} with other targets", there.name()),
                    hint: "name another namespace: --other-namespace NAMESPACE".to_owned(),
                };
            }
            let members: Vec<&str> = members.into_iter().map(object::name).collect();
            let of = if members.is_empty() { "has no members".to_owned() } else { format!("has {}", listed(&members)) };
            let why = format!(
                "Namespace {namespace} has OperatorGroup {}, which {of}, and {}. A namespace has one group only.",
                there.name(),
                related(relation),
            );
            let mut moved = group.clone();
            object::map_mut(&mut moved, &["metadata"]).insert("namespace".to_owned(), place.as_str().into());
            if let Some(known) = operator
                && let Err(unfit) = supports(&known.csv_in(&place), &place, &targets)
            {
                let why = format!("in another namespace, {place}, {}", unfit.message);
                return Decided::Refused { why, hint: unfit.hint };
            }
            elsewhere(&world, moved, &why)
        }
    }
}

/// The same question for the other namespace.
fn elsewhere(world: &Reader<'_>, group: Value, why: &str) -> Decided {
    let place = object::namespace(&group).to_owned();
    let taken = |there: &[Group<'_>]| Decided::Refused {
        why: format!("namespace {place}, where it would be instead, has OperatorGroup {} already", names(there)),
        hint: "name another namespace: --other-namespace NAMESPACE".to_owned(),
    };
    match managed::creation(world, &place, &group) {
        Creation::Here => {
            let with_namespace = world.json(&kind::NAMESPACE, "", &place).is_none();
            Decided::Elsewhere { group, with_namespace, why: why.to_owned() }
        }
        Creation::Same(there) => Decided::There(there.0.clone()),
        Creation::UserManaged(there) | Creation::Several(there) => taken(&there),
        Creation::Leaving(there) | Creation::Elsewhere { group: there, .. } => taken(&[there]),
    }
}

fn related(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "it targets the same namespaces",
        Relation::Apart => "it targets other namespaces",
        Relation::Within => "it targets more namespaces than are wanted",
        Relation::Around => "it targets fewer namespaces than are wanted",
        Relation::Partly => "it targets only some of the namespaces that are wanted, and others",
    }
}

fn users(namespace: &str, there: &[Group<'_>]) -> Decided {
    Decided::Refused {
        why: format!(
            "namespace {namespace} has OperatorGroup {}, which users look after: it has no label {COMPILED_BY}={}",
            names(there),
            Origin::Ours.label(),
        ),
        hint: "use that group, or another namespace (-n); what users have made is theirs to change".to_owned(),
    }
}

fn several(namespace: &str, there: &[Group<'_>]) -> Decided {
    Decided::Refused {
        why: format!(
            "namespace {namespace} has several OperatorGroups already ({}): no operator runs in it",
            names(there)
        ),
        hint: "delete all but one: kubectl olm operatorgroup delete NAME".to_owned(),
    }
}

fn leaving(there: Group<'_>) -> Decided {
    Decided::Refused {
        why: format!("OperatorGroup {} is being deleted", there.name()),
        hint: format!(
            "when it is gone, try again: kubectl wait --for=delete operatorgroup/{} -n {}",
            there.name(),
            there.namespace()
        ),
    }
}

/// Tells of groups that claim what the operator provides in the same namespaces.
fn warn(seen: &Seen, group: &Value, operator: Option<&Known>, printer: &mut Printer) {
    let Some(known) = operator else { return };
    let (namespace, name) = (object::namespace(group), object::name(group));
    let mut world = seen.world.clone();
    world.apply(group.clone());
    world.apply(known.csv_in(namespace));
    let reader = Reader::new(&world);
    let all = Intersections::of(&reader);
    let Some(ours) = all.find(namespace, name) else { return };
    for clash in all.clashes().iter().filter(|clash| [clash.pair.a, clash.pair.b].contains(&ours)) {
        let other = if clash.pair.a == ours { clash.pair.b } else { clash.pair.a };
        let other = all.scopes()[other].group;
        printer.warn(format_args!(
            "in namespaces that both target, OperatorGroup {}/{} claims {}, too, and one of the operators will fail: kubectl olm \
             operatorgroup intersect {}/{} {namespace}/{name} tells what would help",
            other.namespace(),
            other.name(),
            listed(&clash.apis),
            other.namespace(),
            other.name(),
        ));
    }
}

/// Creates it. `None`: somebody else was quicker.
async fn make(
    seen: &Seen,
    options: &Options,
    group: Value,
    with_namespace: bool,
    printer: &mut Printer,
) -> Result<Option<Vec<Value>>, CliError> {
    let namespace = object::namespace(&group).to_owned();
    let mut made = Vec::new();
    let place = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let (DryRun::None | DryRun::Server, Some(api)) = (options.dry_run, seen.api()) else {
        made.extend(with_namespace.then_some(place));
        made.push(group);
        return Ok(Some(made));
    };
    let is_rehearsal = options.dry_run == DryRun::Server;
    if with_namespace {
        let answer = if is_rehearsal { api.rehearse_create(&place).await } else { api.create(&place).await };
        match answer {
            Ok(namespace) => made.push(namespace),
            Err(refusal) if refusal.is_already_exists() => {}
            Err(refusal) => return Err(refused(&refusal, "create", "namespaces", &namespace)),
        }
        if is_rehearsal {
            printer.talk(format_args!(
                "The server cannot say whether it would take the group: namespace {namespace} is not there"
            ));
            made.push(group);
            return Ok(Some(made));
        }
    }
    let answer = if is_rehearsal { api.rehearse_create(&group).await } else { api.create(&group).await };
    match answer {
        Ok(group) if is_rehearsal || is_alone(api, &group, printer).await? => {
            made.push(group);
            Ok(Some(made))
        }
        Ok(_) => Ok(None),
        Err(refusal) if refusal.is_already_exists() => Ok(None),
        Err(refusal) => Err(refused(&refusal, "create", GROUPS, &namespace)),
    }
}

/// Is it the only group in its namespace? With two no operator runs: whoever came later takes its own back, and who came first waits
/// for that a moment. If the other one stays ours goes.
async fn is_alone(api: &Api, group: &Value, printer: &mut Printer) -> Result<bool, CliError> {
    let namespace = object::namespace(group);
    for _ in 0..=LOOKS {
        let there = list(api, "v1", "OperatorGroup", "operatorgroups", namespace, "").await?;
        let others: Vec<&Value> = there.iter().filter(|other| object::uid(other) != object::uid(group)).collect();
        if others.is_empty() {
            return Ok(true);
        }
        if others.iter().any(|other| is_earlier(other, group)) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    printer.talk(format_args!(
        "Meanwhile somebody else created an OperatorGroup in namespace {namespace}: ours is taken back"
    ));
    // Its controller may have written to it.
    let ours = api.get(&ObjectRef::of(group)).await.map_err(|refusal| refused(&refusal, "get", GROUPS, namespace))?;
    if let Some(ours) = ours.filter(|ours| object::uid(ours) == object::uid(group))
        && let Err(refusal) = delete(api, &ours, false).await
        && !refusal.is_not_found()
    {
        return Err(refused(&refusal, "delete", GROUPS, namespace));
    }
    Ok(false)
}

/// Was the one created before the other? Within a second the versions tell, which grow from write to write.
fn is_earlier(one: &Value, other: &Value) -> bool {
    let key = |group: &Value| {
        let version = object::resource_version(group).parse::<u64>().unwrap_or_default();
        (object::text(group, &["metadata", "creationTimestamp"]).to_owned(), version)
    };
    key(one) < key(other)
}

/// Tells what was done, or shows the objects.
fn told(options: &Options, made: &[Value], what: &str, printer: &mut Printer) -> Result<(), CliError> {
    if matches!(options.output, Output::Table | Output::Wide) {
        for object in made {
            let name = object::name(object);
            match object::namespace(object) {
                "" => printer.line(format_args!("namespace/{name} {what}"))?,
                namespace => printer.line(format_args!("{} {what} in namespace {namespace}", label(name)))?,
            }
        }
        return Ok(());
    }
    match made {
        [one] => options.output.object(printer, one, || Table::new([])),
        several => options.output.objects(printer, several, || Table::new([])),
    }
}
