//! `kubectl olm operatorgroup create`: creates an OperatorGroup, unless it conflicts with existing ones.
//!
//! ```text
//!   manifest, or request --compile--> group --read, olm_core create_delete--> here, exists already, elsewhere, or user-managed
//!                                    ^                                 |
//!                                    +---- another client was first ---+--> POST --> was it the first?
//! ```
//!
//! *Guarantees*: user-managed groups are never changed. A namespace gets no second group: if two are created at the
//! same time, the later one is deleted again.

use std::path::PathBuf;

use olm_core::api::metadata::Metadata;
use olm_core::api::{kinds, object};
use olm_core::listing::listed;
use olm_core::membership::Group;
use olm_core::operatorgroup::compile::{Named, Refused, supports};
use olm_core::operatorgroup::create_delete::{self, Creation, Origin, Relation};
use olm_core::operatorgroup::intersection::{self, Clash, Intersections};
use olm_core::operatorgroup::spec_errors;
use olm_core::world::{Reader, kind};
use serde_json::{Value, json};

use super::compile::{self, Answer, Made, PartialGroupRequest};
use super::create_delete::{
    ATTEMPTS, GROUPS, SETTLES, create_first, decides, label, names, print_objects, read_failure, read_state, refuse,
    refused, settled, unlabelled,
};
use super::operator::Known;
use crate::blocking::block_on;
use crate::cli::errors::terminating;
use crate::cli::flags::{DryRun, SourceFlags};
use crate::cli::output::Output;
use crate::cli::prompt::confirm;
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::cluster::api::Api;
use crate::image;
use crate::observe::{ClusterState, ReadFailure, files};

/// The group to create.
#[derive(Clone, Debug)]
pub enum GroupInput {
    /// One from a manifest.
    Manifest(PathBuf),
    /// One to generate.
    Request(PartialGroupRequest),
}

/// What to create, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The group.
    pub given: GroupInput,
    /// Its namespace; if `None`, that of the manifest, or of the context.
    pub namespace: Option<String>,
    /// The namespace for it if another generated group is in the way; if `None`, one derived from the group, after a
    /// prompt.
    pub other_namespace: Option<String>,
    /// Whether to skip the prompt.
    pub yes: bool,
    /// Whether to print only what would be done.
    pub dry_run: DryRun,
    /// The output format; a table stands for one line of text.
    pub output: Output,
    /// The cluster, and catalogs. Files instead of a cluster only allow a dry run.
    pub source: SourceFlags,
    /// How images are pulled.
    pub images: image::Options,
}

/// The requested group, labelled, and its operator.
struct RequestedGroup {
    group: Value,
    operator: Option<Known>,
}

impl RequestedGroup {
    /// Returns the namespace for the group if it cannot be in its own.
    fn place(&self, world: &Reader<'_>, named: Option<&str>) -> String {
        let targets = intersection::targets(world, Group::new(&self.group));
        let following = || create_delete::other_namespace(object::namespace(&self.group), &self.group, &targets);
        named.map_or_else(following, str::to_owned)
    }
}

/// The decision.
enum Decided {
    /// Nothing: an equivalent group exists.
    There(Value),
    /// Nothing: existing groups are in the way.
    Refused { place: String, why: String, hint: String },
    /// Create it.
    Create { group: Value },
    /// Create it in another namespace.
    Elsewhere { group: Value, with_namespace: bool, why: String },
}

/// Creates a group. The outcome is negative if a user-managed group is in the way, or the other namespace is not
/// available either.
///
/// # Errors
/// The group is invalid, the groups of the namespace cannot be read, or the server refuses the request.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if !options.source.from.is_empty() && options.dry_run != DryRun::Client {
        return Err(CliError::usage("with --from nothing can be created")
            .hint("use --dry-run=client to print what would be done"));
    }
    if let Some(other) = &options.other_namespace {
        Named::Namespace.check(other).map_err(compile::refused)?;
    }
    block_on(create(options, printer))
}

async fn create(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let requested = match requested(options, printer).await? {
        Ok(requested) => requested,
        Err((name, Refused { message, hint })) => {
            return refuse(&options.output, &not_created(&name, &message), &hint, printer);
        }
    };
    let mut agreed = options.yes || options.other_namespace.is_some() || options.dry_run != DryRun::None;
    let mut said = String::new();
    for attempt in 1..=ATTEMPTS {
        let state = state(options, &requested, printer).await?;
        let (group, with_namespace) = match decide(&state, &requested, options.other_namespace.as_deref())? {
            Decided::There(group) => {
                print_objects(&options.output, vec![group.clone()], "unchanged", printer)?;
                let differing = create_delete::differing(&group, &requested.group);
                if !differing.is_empty() {
                    printer.warn(format_args!(
                        "its {} differs from the requested group; to change it: kubectl edit operatorgroup {} -n {}",
                        listed(&differing),
                        object::name(&group),
                        object::namespace(&group),
                    ));
                }
                return Ok(Outcome::Done);
            }
            Decided::Refused { place, why, hint } => {
                if attempt < ATTEMPTS
                    && is_settling(&state, &place)
                    && let Some(api) = state.api()
                {
                    settled(api, &place).await?;
                    continue;
                }
                let said = not_created(object::name(&requested.group), &why);
                return refuse(&options.output, &said, &hint, printer);
            }
            Decided::Create { group } => (group, false),
            Decided::Elsewhere { group, with_namespace, why } => {
                if why != said {
                    printer.talk(&why);
                    said = why;
                }
                let place = object::namespace(&group);
                if !agreed {
                    let kind = if with_namespace { "a new namespace" } else { "namespace" };
                    if !confirm(printer, &format!("Create it in {kind} {place} instead?"), false)? {
                        printer.talk("Nothing was created");
                        return Ok(Outcome::Negative);
                    }
                    // Do not prompt twice.
                    agreed = true;
                    continue;
                }
                (group, with_namespace)
            }
        };
        warn(&state, &group, requested.operator.as_ref(), printer);
        if let Some(made) = make(&state, options, group, with_namespace, printer).await? {
            let created = format!("created{}", options.dry_run.note());
            print_objects(
                &options.output,
                only_the_group(made, &options.output, &created, printer),
                &created,
                printer,
            )?;
            return Ok(Outcome::Done);
        }
    }
    let namespace = object::namespace(&requested.group);
    Err(CliError::new(ErrorKind::Api, format!("another client keeps creating OperatorGroups in namespace {namespace}"))
        .hint(format!("kubectl get operatorgroups -n {namespace} lists them")))
}

/// Reads the groups that the decision depends on. Without permission for all namespaces, the other namespace is read separately.
async fn state(options: &Options, requested: &RequestedGroup, printer: &mut Printer) -> Result<ClusterState, CliError> {
    let namespace = object::namespace(&requested.group);
    let mut state = read_state(&options.source, namespace, printer).await?;
    let world = Reader::new(&state.world);
    let mut places = vec![namespace.to_owned()];
    if matches!(create_delete::creation(&world, namespace, &requested.group), Creation::Elsewhere { .. }) {
        places.push(requested.place(&world, options.other_namespace.as_deref()));
    }
    if let [_, place] = &places[..]
        && read_failure(&state, GROUPS, "").is_some()
    {
        state.read_kind(&kind::OPERATOR_GROUP, place).await;
        decides(&state, place)?;
    }
    if read_failure(&state, "namespaces", "").is_some() {
        let targets = places.into_iter().map(|name| kinds::NAMESPACE.object("", &name));
        state.read_objects(targets).await;
    }
    Ok(state)
}

/// Returns whether the namespace has several groups, one of them new, of which the later one is about to be deleted.
fn is_settling(state: &ClusterState, namespace: &str) -> bool {
    let world = Reader::new(&state.world);
    let groups = world.in_namespace(&kind::OPERATOR_GROUP, namespace);
    let ages = groups.filter_map(|group| Metadata::new(group.json()).created_at());
    let ages: Vec<_> = ages.map(|created| state.at.duration_since(created).unsigned_abs()).collect();
    ages.len() > 1 && ages.iter().any(|age| *age < SETTLES)
}

/// Returns the group, read or generated; or its name, and why the operator does not support it.
async fn requested(
    options: &Options,
    printer: &mut Printer,
) -> Result<Result<RequestedGroup, (String, Refused)>, CliError> {
    let request = match &options.given {
        GroupInput::Manifest(file) => return written(file, options).await.map(Ok),
        GroupInput::Request(request) => PartialGroupRequest { namespace: options.namespace.clone(), ..request.clone() },
    };
    let Made { compiled, operator, .. } =
        match compile::make(&request, &options.source, &options.images, printer).await? {
            Answer::Made(made) => *made,
            Answer::Unfit(name, why) => return Ok(Err((name, why))),
        };
    let mut group = compiled.group;
    Origin::Ours.mark(&mut group);
    Ok(Ok(RequestedGroup { group, operator }))
}

fn not_created(name: &str, why: &str) -> String {
    format!("{} not created: {why}", label(name))
}

async fn written(file: &PathBuf, options: &Options) -> Result<RequestedGroup, CliError> {
    let mut given = files::read(std::slice::from_ref(file))?;
    let is_group = |object: &Value| {
        kinds::OPERATOR_GROUP.is(object) && ["v1", "v1alpha2"].contains(&object::gvk(object).version.as_str())
    };
    let (Some(only), None) = (given.pop(), given.pop()) else {
        return Err(CliError::input("expected exactly one OperatorGroup").at(file.display()));
    };
    if !is_group(&only.object) {
        return Err(
            CliError::input("this is not an OperatorGroup of apiVersion operators.coreos.com/v1").at(only.place)
        );
    }
    if object::name(&only.object).is_empty() {
        return Err(CliError::input("the OperatorGroup has no name")
            .hint("set metadata.name; with generateName it cannot be checked whether the group exists")
            .at(only.place));
    }
    let mut group = only.object;
    let said = object::namespace(&group).to_owned();
    let refused = |refused| compile::refused(refused).at(&only.place);
    Named::OperatorGroup.check(object::name(&group)).map_err(refused)?;
    let namespace = match (&options.namespace, said.as_str()) {
        (Some(named), said) if !said.is_empty() && named != said => {
            return Err(CliError::usage(format!("the OperatorGroup has namespace {said}, not {named}")).at(only.place));
        }
        (None, said) if !said.is_empty() => said.to_owned(),
        (named, _) => compile::namespace(named.as_deref(), &options.source).await?,
    };
    Named::Namespace.check(&namespace).map_err(refused)?;
    let errors = spec_errors::spec_errors(&group);
    if let Some(first) = errors.first() {
        let what: Vec<&str> = errors.iter().map(|error| error.what.as_str()).collect();
        return Err(CliError::input(what.join("; ")).hint(&first.hint).at(&only.place));
    }
    object::map_mut(&mut group, &["metadata"]).insert("namespace".to_owned(), namespace.into());
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        object::map_mut(&mut group, &["metadata"]).remove(field);
    }
    object::map_mut(&mut group, &[]).remove("status");
    Origin::User.mark(&mut group);
    Ok(RequestedGroup { group, operator: None })
}

/// Decides what to do, with the reason.
///
/// # Errors
/// The namespace does not exist.
fn decide(state: &ClusterState, requested: &RequestedGroup, other: Option<&str>) -> Result<Decided, CliError> {
    let RequestedGroup { group, operator } = requested;
    let world = Reader::new(&state.world);
    let namespace = object::namespace(group);
    let refused = |why: String, hint: String| Ok(Decided::Refused { place: namespace.to_owned(), why, hint });
    match create_delete::creation(&world, namespace, group) {
        Creation::Here if is_absent(state, namespace) && state.api().is_some() => {
            Err(CliError::new(ErrorKind::Api, format!("namespace {namespace} does not exist"))
                .hint(format!("create it first: kubectl create namespace {namespace}")))
        }
        Creation::Here if is_leaving(&world, namespace) => {
            refused(format!("namespace {namespace} is being deleted"), terminating(namespace))
        }
        Creation::Here => Ok(Decided::Create { group: group.clone() }),
        Creation::Same(there) => Ok(Decided::There(there.json.clone())),
        Creation::UserManaged(there) => refused(
            format!(
                "namespace {namespace} has OperatorGroup {}, which is managed by users: {}",
                names(&there),
                unlabelled()
            ),
            "use that group, or another namespace (-n); groups managed by users are never changed".to_owned(),
        ),
        Creation::Several(there) => refused(
            format!(
                "namespace {namespace} already has several OperatorGroups ({}): OLM installs no operator in it",
                names(&there)
            ),
            format!("delete all but one: kubectl olm operatorgroup delete NAME -n {namespace}"),
        ),
        Creation::Leaving(there) => refused(
            format!("OperatorGroup {} is being deleted", there.name()),
            format!(
                "wait until it is deleted, and try again: kubectl wait --for=delete operatorgroup/{} -n {namespace}",
                there.name()
            ),
        ),
        Creation::Elsewhere { group: there, members, relation } => {
            let place = requested.place(&world, other);
            if place == namespace {
                return refused(
                    format!("namespace {namespace} has OperatorGroup {} with other targets", there.name()),
                    "specify another namespace with --other-namespace NAMESPACE".to_owned(),
                );
            }
            let members: Vec<&str> = members.into_iter().map(object::name).collect();
            let of = if members.is_empty() { "has no members".to_owned() } else { format!("has {}", listed(&members)) };
            let why = format!(
                "Namespace {namespace} has OperatorGroup {}, which {of}, and {}. A namespace can have only one group.",
                there.name(),
                related(relation),
            );
            if let Some(known) = operator
                && let Err(unfit) =
                    supports(&known.csv_in(&place), &place, &intersection::targets(&world, Group::new(group)))
            {
                return refused(format!("in another namespace, {place}, {}", unfit.message), unfit.hint);
            }
            let mut moved = group.clone();
            object::map_mut(&mut moved, &["metadata"]).insert("namespace".to_owned(), place.into());
            Ok(elsewhere(state, moved, why))
        }
    }
}

/// Decides for the other namespace.
fn elsewhere(state: &ClusterState, group: Value, why: String) -> Decided {
    let world = Reader::new(&state.world);
    let place = object::namespace(&group).to_owned();
    let taken = |how: String| Decided::Refused {
        why: format!("the other namespace {place} {how}"),
        hint: "specify another namespace with --other-namespace NAMESPACE".to_owned(),
        place: place.clone(),
    };
    match create_delete::creation(&world, &place, &group) {
        Creation::Here if is_leaving(&world, &place) => taken("is being deleted".to_owned()),
        Creation::Here => Decided::Elsewhere { group, with_namespace: is_absent(state, &place), why },
        Creation::Same(there) => Decided::There(there.json.clone()),
        Creation::UserManaged(there) | Creation::Several(there) => {
            taken(format!("has OperatorGroup {} already", names(&there)))
        }
        Creation::Leaving(there) | Creation::Elsewhere { group: there, .. } => {
            taken(format!("has OperatorGroup {} already", there.name()))
        }
    }
}

/// Returns whether the namespace is known not to exist.
pub(crate) fn is_absent(state: &ClusterState, namespace: &str) -> bool {
    let is_unseen =
        |failure: &ReadFailure| failure.verb == "get" && failure.resource == "Namespace" && failure.name == namespace;
    Reader::new(&state.world).json(&kind::NAMESPACE, "", namespace).is_none()
        && !state.read_failures.iter().any(is_unseen)
}

fn is_leaving(world: &Reader<'_>, namespace: &str) -> bool {
    world.json(&kind::NAMESPACE, "", namespace).is_some_and(object::is_deleting)
}

fn related(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "it targets the same namespaces",
        Relation::Apart => "it targets other namespaces",
        Relation::Within => "it targets more namespaces than requested",
        Relation::Around => "it targets fewer namespaces than requested",
        Relation::Partly => "it targets only some of the requested namespaces, and others",
    }
}

/// Warns about groups that provide the operator's APIs in the same namespaces.
fn warn(state: &ClusterState, group: &Value, operator: Option<&Known>, printer: &mut Printer) {
    let Some(known) = operator else { return };
    let namespace = object::namespace(group);
    for conflict in conflicts(state, group, known.csv_in(namespace)) {
        printer.warn(conflict);
    }
}

/// Returns a sentence for each group that provides the same APIs as the operator in namespaces of its group.
pub(crate) fn conflicts(state: &ClusterState, group: &Value, csv: Value) -> Vec<String> {
    let (namespace, name) = (object::namespace(group), object::name(group));
    let mut world = state.world.clone();
    world.apply(group.clone());
    world.apply(csv);
    let reader = Reader::new(&world);
    let all = Intersections::from_world(&reader);
    let Some(ours) = all.find(namespace, name) else { return Vec::new() };
    let clashes = all.clashes();
    let own = clashes.iter().filter(|clash| [clash.pair.a, clash.pair.b].contains(&ours));
    let sentence = |clash: &Clash| {
        let other = if clash.pair.a == ours { clash.pair.b } else { clash.pair.a };
        let other = all.scopes()[other].group;
        format!(
            "OperatorGroup {}/{} also provides {} in the common namespaces, so one of the operators will fail; to resolve this: \
             kubectl olm operatorgroup intersect {}/{} {namespace}/{name}",
            other.namespace(),
            other.name(),
            listed(&clash.apis),
            other.namespace(),
            other.name(),
        )
    };
    own.map(sentence).collect()
}

/// Returns what a format prints of the created objects: documents contain only the OperatorGroup, not a created namespace.
fn only_the_group(mut made: Vec<Value>, output: &Output, created: &str, printer: &mut Printer) -> Vec<Value> {
    if !matches!(output, Output::Table | Output::Wide | Output::Name) && made.len() > 1 {
        for namespace in made.drain(..made.len() - 1) {
            printer.talk(format_args!("namespace/{} {created}", object::name(&namespace)));
        }
    }
    made
}

/// Creates the group. Returns `None` if another client was first.
async fn make(
    state: &ClusterState,
    options: &Options,
    group: Value,
    with_namespace: bool,
    printer: &mut Printer,
) -> Result<Option<Vec<Value>>, CliError> {
    let namespace = object::namespace(&group).to_owned();
    let mut made = Vec::new();
    let place = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let (DryRun::None | DryRun::Server, Some(api)) = (options.dry_run, state.api()) else {
        made.extend(with_namespace.then_some(place));
        made.push(group);
        return Ok(Some(made));
    };
    let is_dry_run = options.dry_run == DryRun::Server;
    if with_namespace {
        let answer = if is_dry_run { api.dry_run_create(&place).await } else { api.create(&place).await };
        match answer {
            Ok(namespace) => made.push(namespace),
            Err(refusal) if refusal.is_already_exists() => {}
            Err(refusal) if refusal.is_forbidden() => {
                return Err(refused(&refusal, "create", "namespaces", &namespace)
                    .hint("specify an existing namespace with --other-namespace NAMESPACE"));
            }
            Err(refusal) => return Err(refused(&refusal, "create", "namespaces", &namespace)),
        }
        if is_dry_run {
            printer.talk(format_args!("The server cannot dry-run the group: namespace {namespace} does not exist"));
            made.push(group);
            return Ok(Some(made));
        }
    }
    let answer = if is_dry_run { dry_run_create(api, &group).await } else { create_first(api, &group, printer).await };
    if !matches!(answer, Ok(Some(_))) && !made.is_empty() {
        printer.talk(format_args!("Namespace {namespace} was created for it and is not deleted"));
    }
    Ok(answer?.map(|group| {
        made.push(group);
        made
    }))
}

/// Creates the group as a dry run. Returns `None` if another client was first.
async fn dry_run_create(api: &Api, group: &Value) -> Result<Option<Value>, CliError> {
    match api.dry_run_create(group).await {
        Ok(group) => Ok(Some(group)),
        Err(refusal) if refusal.is_already_exists() => Ok(None),
        Err(refusal) => Err(refused(&refusal, "create", GROUPS, object::namespace(group))),
    }
}
