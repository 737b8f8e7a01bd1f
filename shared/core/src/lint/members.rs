//! Checks which ClusterServiceVersions are members of which OperatorGroup, and which cannot be.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::problem::{Change, Problem};
use super::rule::{INSTALL_MODES, NO_GROUP, OWN_NAMESPACE_MISSING, SEVERAL_GROUPS, UNUSED};
use super::targets::{has_selector, retarget};
use super::{LintContext, Tenant};
use crate::api::cluster_service_version::{Csv, Phase, reason};
use crate::api::kinds;
use crate::api::labels::OPERATOR_GROUP;
use crate::api::metadata::Metadata;
use crate::api::object::{self, ObjectRef};
use crate::finding::Severity;
use crate::listing::shortened;
use crate::membership::{self, Apis};
use crate::visible::word;
use crate::world::kind;

/// Groups that are installed with OLM, for operators that are installed later.
const STOCK: [&str; 2] = ["global-operators", "olm-operators"];

pub(super) fn check(context: &LintContext<'_>, tenant: &Tenant<'_>, found: &mut Vec<Problem>) {
    match &tenant.groups[..] {
        [] => found.extend(no_group(context, tenant)),
        [only] => {
            install_modes(context, tenant, *only, found);
            found.extend(unused(context, tenant, *only));
        }
        several => several_groups(context, tenant, several, found),
    }
}

fn several_groups(context: &LintContext<'_>, tenant: &Tenant<'_>, several: &[usize], found: &mut Vec<Problem>) {
    let users = |at: &usize| {
        let name = context.group(*at).name();
        tenant.csvs.iter().filter(|csv| object::annotation(csv, OPERATOR_GROUP) == Some(name)).count()
    };
    let created = |at: &usize| {
        let time = Metadata::new(context.group(*at).json).created();
        // Groups that do not exist yet sort last.
        (time.is_empty(), time)
    };
    let Some(kept) = several.iter().min_by_key(|at| (Reverse(users(at)), created(at))).copied() else { return };
    let first = context.group(kept).name();
    let consequence = match (&tenant.csvs[..], &tenant.subscriptions[..]) {
        ([], []) => "operators in this namespace would fail with TooManyOperatorGroups".to_owned(),
        ([], subscriptions) => format!("{} not resolved", are(subscriptions, "Subscription")),
        (csvs, _) => format!("{} with TooManyOperatorGroups", fail(csvs)),
    };
    for at in several.iter().filter(|at| **at != kept) {
        let group = context.group(*at);
        let why = match users(&kept) {
            0 if created(&kept) < created(at) => ", which was first,",
            0 => "",
            _ => ", which its operators name,",
        };
        let message =
            format!("there is also OperatorGroup {first}{why} in namespace {}: {consequence}", tenant.namespace);
        let what = format!("keep only one of them: {first}, unless this one is intended");
        let delete = Change::Delete(vec![ObjectRef::from_object(group.json)]);
        let also = [ObjectRef::from_object(context.group(kept).json)];
        found.push(Problem::new(&SEVERAL_GROUPS, group.json, message).also(also).propose(what, delete));
    }
}

/// Formats `ClusterServiceVersion a fails`.
pub(super) fn fail(csvs: &[&Value]) -> String {
    let names = shortened(csvs.iter().map(|csv| object::name(csv)));
    match csvs {
        [_] => format!("ClusterServiceVersion {names} fails"),
        _ => format!("ClusterServiceVersions {names} fail"),
    }
}

/// Formats `Subscription a is`.
fn are(objects: &[&Value], kind: &str) -> String {
    let names = shortened(objects.iter().map(|object| object::name(object)));
    match objects {
        [_] => format!("{kind} {names} is"),
        _ => format!("{kind}s {names} are"),
    }
}

fn no_group(context: &LintContext<'_>, tenant: &Tenant<'_>) -> Option<Problem> {
    let Tenant { namespace, csvs, subscriptions, .. } = tenant;
    if !context.known.within(&kind::OPERATOR_GROUP, namespace) {
        return None;
    }
    let consequence = match (&csvs[..], &subscriptions[..]) {
        ([], []) => return None,
        ([], subscriptions) => format!("{} not resolved", are(subscriptions, "Subscription")),
        (csvs, _) => format!("{} with NoOperatorGroup", fail(csvs)),
    };
    let place = ObjectRef { gvk: kinds::NAMESPACE.gvk(), namespace: String::new(), name: (*namespace).to_owned() };
    let operators = csvs.iter().chain(subscriptions).map(|object| ObjectRef::from_object(object));
    let problem =
        Problem::about(&NO_GROUP, place, format!("there is no OperatorGroup in this namespace: {consequence}"))
            .also(operators);
    let fitting = fitting(context, None, namespace, &BTreeSet::new(), csvs).filter(|_| !csvs.is_empty());
    Some(match fitting {
        Some(targets) => {
            let names: Vec<&String> = targets.iter().filter(|name| !name.is_empty()).collect();
            let spec = if names.is_empty() { json!({}) } else { json!({ "targetNamespaces": names }) };
            let group = json!({
                "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
                "metadata": { "name": namespace, "namespace": namespace }, "spec": spec,
            });
            let what = format!("create one that targets {}", format_targets(namespace, &targets));
            problem.propose(what, Change::Apply(vec![group]))
        }
        None => {
            let packages = subscriptions.iter().map(|subscription| object::text(subscription, &["spec", "name"]));
            let package = packages.filter(|package| !package.is_empty()).min().unwrap_or("PACKAGE");
            problem.advise(format!(
                "create one whose targets the operator supports: kubectl olm operatorgroup lint -n {} --package \
                 {} shows them",
                word(namespace),
                word(package)
            ))
        }
    })
}

fn install_modes(context: &LintContext<'_>, tenant: &Tenant<'_>, at: usize, found: &mut Vec<Problem>) {
    let group = context.group(at);
    let targets = context.targets(at);
    if targets.is_empty() || context.scope(at).asked.is_err() {
        // Other rules report that.
        return;
    }
    if has_selector(group) && !context.known.all(&kind::NAMESPACE) && group.targets().is_empty() {
        // The namespaces that match the selector are unknown.
        return;
    }
    let namespace = tenant.namespace;
    let carried = carried(targets);
    let mut fitting_for_all: Option<Option<BTreeSet<String>>> = None;
    for csv in &tenant.csvs {
        let Err((reason, why)) = membership::supports(csv, namespace, &carried) else {
            found.extend(inferred(context, at, csv, &carried));
            continue;
        };
        let fitting =
            fitting_for_all.get_or_insert_with(|| fitting(context, Some(at), namespace, targets, &tenant.csvs));
        let lacks_own = !targets.contains("")
            && !targets.contains(namespace)
            && fitting.as_ref().is_some_and(|targets| targets.contains(namespace));
        let rule = if lacks_own { &OWN_NAMESPACE_MISSING } else { &INSTALL_MODES };
        let message = format!(
            "OperatorGroup {} targets {}, so it fails with {reason}: {why}",
            group.name(),
            format_targets(namespace, targets)
        );
        let problem = Problem::new(rule, csv, message).also([ObjectRef::from_object(group.json)]);
        let alone = || self::fitting(context, Some(at), namespace, targets, &[csv]);
        found.push(match fitting {
            Some(targets) => {
                let what = format!("let OperatorGroup {} target {}", group.name(), format_targets(namespace, targets));
                problem.propose(what, retarget(group, targets.iter()))
            }
            None => problem.advise(match alone() {
                Some(targets) => format!(
                    "move it to a namespace of its own: it supports {}, which other operators in this namespace do not",
                    format_targets(namespace, &targets)
                ),
                None => format!("it supports no targets: its install modes support {}", modes(csv)),
            }),
        });
    }
}

/// Returns the value of `olm.targetNamespaces` for a member of a group with these targets.
pub(super) fn carried(targets: &BTreeSet<String>) -> String {
    targets.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

/// Returns the targets closest to these that all of the operators support, preferably targets to which no other group provides the same
/// APIs.
fn fitting(
    context: &LintContext<'_>,
    at: Option<usize>,
    namespace: &str,
    targets: &BTreeSet<String>,
    csvs: &[&Value],
) -> Option<BTreeSet<String>> {
    let own = || namespace.to_owned();
    let is_some = !targets.contains("") && !targets.is_empty();
    let without_own = targets.iter().filter(|name| *name != namespace).cloned().collect::<BTreeSet<_>>();
    let with_own: BTreeSet<String> = targets.iter().cloned().chain([own()]).collect();
    let some = [without_own, with_own].into_iter().filter(|_| is_some);
    let candidates = some.chain([BTreeSet::from([own()]), BTreeSet::from([String::new()])]);
    let mut fitting: Vec<BTreeSet<String>> = candidates
        .filter(|candidate| !candidate.is_empty() && candidate != targets)
        .filter(|candidate| csvs.iter().all(|csv| membership::supports(csv, namespace, &carried(candidate)).is_ok()))
        .collect();
    let apis = csvs.iter().fold(Apis::default(), |all, csv| all.union(&Apis::from_csv(csv)));
    let rivals: BTreeSet<usize> =
        apis.0.iter().flat_map(|api| context.all.providers(api)).filter(|other| Some(*other) != at).collect();
    let clashes = |candidate: &BTreeSet<String>| {
        let reach = |name: &String| candidate.contains(name) || candidate.contains("") || name == namespace;
        rivals.iter().map(|other| context.scope(*other)).any(|other| {
            let own = other.group.namespace().to_owned();
            other.is_global() || other.targets.iter().chain([&own]).any(reach)
        })
    };
    let peaceful = fitting.iter().position(|candidate| !clashes(candidate)).unwrap_or_default();
    (!fitting.is_empty()).then(|| fitting.swap_remove(peaceful))
}

/// Describes targets in words.
pub(super) fn format_targets(namespace: &str, targets: &BTreeSet<String>) -> String {
    if targets.contains("") {
        return "all namespaces".to_owned();
    }
    if targets.iter().eq([namespace]) {
        return format!("its own namespace {namespace}");
    }
    let what = if targets.len() == 1 { "namespace" } else { "namespaces" };
    format!("{what} {}", shortened(targets))
}

/// Lists the install modes that are supported.
fn modes(csv: &Value) -> String {
    let names = shortened(membership::supported_modes(csv));
    if names.is_empty() { "nothing".to_owned() } else { names }
}

/// Returns a problem if the member supports the targets only through a mode that is implied, not listed. OLM does not infer modes.
fn inferred(context: &LintContext<'_>, at: usize, csv: &Value, carried: &str) -> Option<Problem> {
    let group = context.group(at);
    let namespace = group.namespace();
    let why = membership::supports_as_listed(csv, namespace, carried).err()?;
    let is_refused =
        Csv::new(csv).reason() == reason::UNSUPPORTED_OPERATOR_GROUP && Csv::new(csv).phase() == Phase::Failed;
    let message = format!(
        "it supports {}, the targets of OperatorGroup {}, only because an install mode that it lists implies one that it does not list: \
         OLM's own controllers do not infer modes, and fail it with UnsupportedOperatorGroup: {why}",
        format_targets(namespace, context.targets(at)),
        group.name()
    );
    let what = "use a version that lists the mode; or run the controllers of kubectl olm, which infer it";
    let severity = if is_refused { Severity::Warning } else { Severity::Info };
    Some(
        Problem::new(&INSTALL_MODES, csv, message)
            .severity(severity)
            .also([ObjectRef::from_object(group.json)])
            .advise(what),
    )
}

fn unused(context: &LintContext<'_>, tenant: &Tenant<'_>, at: usize) -> Option<Problem> {
    let group = context.group(at);
    let namespace = tenant.namespace;
    let is_unused = context.known.within(&kind::SUBSCRIPTION, namespace)
        && tenant.subscriptions.is_empty()
        && context.known.within(&kind::CLUSTER_SERVICE_VERSION, namespace)
        && membership::originals(&context.world, namespace).next().is_none();
    // Other rules report groups that reserve APIs.
    if !is_unused || group.is_static() || !group.provided().0.is_empty() || STOCK.contains(&group.name()) {
        return None;
    }
    let message = format!("namespace {namespace} has no operator, and none is being installed");
    let delete = Change::Delete(vec![ObjectRef::from_object(group.json)]);
    Some(
        Problem::new(&UNUSED, group.json, message)
            .propose("delete it, if no operator will be installed in the namespace", delete),
    )
}
