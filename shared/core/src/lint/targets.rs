//! Checks the targets of OperatorGroups: whether they are valid, and whether the namespaces exist.

use serde_json::{Value, json};

use super::problem::{Change, Problem};
use super::rule::{EMPTY_SELECTION, INVALID_FIELDS, INVALID_TARGETS, TARGET_MISSING, TARGETS_AND_SELECTOR};
use super::{LintContext, Tenant};
use crate::api::object::{self, ObjectRef};
use crate::finding::Severity;
use crate::listing::shortened;
use crate::membership::Group;
use crate::operatorgroup::compile::Named;
use crate::operatorgroup::spec_errors::{self, SpecError};
use crate::visible::word;
use crate::world::kind;

pub(super) fn check(context: &LintContext<'_>, tenant: &Tenant<'_>, found: &mut Vec<Problem>) {
    for at in &tenant.groups {
        let group = context.group(*at);
        for SpecError { what, hint } in spec_errors::spec_errors(group.json) {
            found.push(Problem::new(&INVALID_FIELDS, group.json, what).advise(hint));
        }
        let named = named(group);
        if !named.is_empty() && has_selector(group) {
            let message = "spec.selector is ignored, as spec.targetNamespaces names namespaces";
            let patch = Change::Patch(ObjectRef::from_object(group.json), json!({ "spec": { "selector": null } }));
            let what = "remove the selector, which has no effect; or remove spec.targetNamespaces, if the selector is intended";
            found.push(Problem::new(&TARGETS_AND_SELECTOR, group.json, message).fix(what, patch));
        }
        match &context.scope(*at).asked {
            Err(message) => found.push(invalid(group, &named, message)),
            Ok(_) if !named.is_empty() => found.extend(missing(context, group, &named)),
            Ok(_) if has_selector(group) => found.extend(selects_nothing(context, tenant, *at)),
            Ok(_) => {}
        }
    }
}

/// Returns the namespaces that the spec names.
fn named(group: Group<'_>) -> Vec<&str> {
    group.target_namespaces().collect()
}

/// Reports whether there is a selector that is not empty.
pub(super) fn has_selector(group: Group<'_>) -> bool {
    let selector = group.selector();
    object::entries(selector, &["matchLabels"]).next().is_some()
        || !object::list(selector, &["matchExpressions"]).is_empty()
}

/// Returns the patch that makes a group target exactly these namespaces, `""` for all.
pub(super) fn retarget(group: Group<'_>, targets: impl IntoIterator<Item = impl AsRef<str>>) -> Change {
    let names: Vec<String> =
        targets.into_iter().map(|name| name.as_ref().to_owned()).filter(|name| !name.is_empty()).collect();
    let mut spec = json!({ "targetNamespaces": if names.is_empty() { Value::Null } else { names.into() } });
    if has_selector(group) {
        spec["selector"] = Value::Null;
    }
    Change::Patch(ObjectRef::from_object(group.json), json!({ "spec": spec }))
}

fn invalid(group: Group<'_>, named: &[&str], message: &str) -> Problem {
    let names: Vec<&str> = named.iter().copied().filter(|name| !name.is_empty()).collect();
    if named.is_empty() {
        let (kind, name, namespace) = ("operatorgroup.operators.coreos.com", group.name(), group.namespace());
        let edit = Change::Command(format!("kubectl edit {kind} {} -n {}", word(name), word(namespace)));
        return Problem::new(&INVALID_TARGETS, group.json, message).propose(
            "correct the selector: In and NotIn require values, Exists and DoesNotExist must not have any",
            edit,
        );
    }
    if names.len() == named.len() {
        let single: Vec<&str> = names.iter().flat_map(|name| name.split(',')).map(str::trim).collect();
        let what = format!("list each namespace as an item of its own: {}", shortened(&single));
        return Problem::new(&INVALID_TARGETS, group.json, message).propose(what, retarget(group, single));
    }
    let beside = if names.is_empty() { String::new() } else { format!(" in addition to {}", shortened(&names)) };
    let problem = Problem::new(
        &INVALID_TARGETS,
        group.json,
        format!("spec.targetNamespaces has an empty name{beside}: {message}"),
    );
    let what = match &names[..] {
        [] => "to target all namespaces, name none".to_owned(),
        names => format!("name only {}; or none, to target all namespaces", shortened(names)),
    };
    problem.propose(what, retarget(group, names))
}

fn missing(context: &LintContext<'_>, group: Group<'_>, named: &[&str]) -> Option<Problem> {
    if !context.known.all(&kind::NAMESPACE) {
        return None;
    }
    let there = |name: &&&str| context.world.json(&kind::NAMESPACE, "", name);
    let absent: Vec<&str> = named.iter().filter(|name| there(name).is_none()).copied().collect();
    let leaving: Vec<&str> =
        named.iter().filter(|name| there(name).is_some_and(object::is_terminating)).copied().collect();
    let (first, message) = match (&absent[..], &leaving[..]) {
        ([], []) => return None,
        ([], [_]) => return Some(leaves(group, named, &leaving, "is being deleted")),
        ([], _) => return Some(leaves(group, named, &leaving, "are being deleted")),
        ([one], _) => (*one, format!("target namespace {one} does not exist")),
        ([first, ..], _) => (*first, format!("target namespaces {} do not exist", shortened(&absent))),
    };
    let namespace = |name: &&str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": *name } });
    let problem = Problem::new(&TARGET_MISSING, group.json, message);
    let impossible: Vec<&str> = absent.iter().copied().filter(|name| Named::Namespace.check(name).is_err()).collect();
    Some(match (&absent[..], similar(context, first, named)) {
        ([_], Some(other)) => {
            let names = named.iter().map(|name| if *name == first { other } else { name });
            problem.propose(
                format!("name {other} instead, if that is intended; or create {first}"),
                retarget(group, names),
            )
        }
        _ if !impossible.is_empty() => {
            problem.advise(format!("correct {}: not a valid name of a namespace", shortened(&impossible)))
        }
        ([_], None) => problem.propose("create it, or correct its name", Change::Apply(vec![namespace(&first)])),
        _ => problem
            .propose("create them, or correct their names", Change::Apply(absent.iter().map(namespace).collect())),
    })
}

fn leaves(group: Group<'_>, named: &[&str], leaving: &[&str], how: &str) -> Problem {
    let message = format!("{} {how}, but still a target", shortened(leaving));
    let problem = Problem::new(&TARGET_MISSING, group.json, message);
    let rest: Vec<&&str> = named.iter().filter(|name| !leaving.contains(name)).collect();
    let what = format!("remove {} from spec.targetNamespaces, unless it is created again", shortened(leaving));
    // Without any name the group would target all namespaces.
    if rest.is_empty() { problem.advise(what) } else { problem.propose(what, retarget(group, rest)) }
}

/// Returns a namespace with a similar name, which may be the intended one.
fn similar<'a>(context: &LintContext<'a>, name: &str, named: &[&str]) -> Option<&'a str> {
    let known =
        context.world.all(&kind::NAMESPACE).map(|o| object::name(o.json())).filter(|known| !named.contains(known));
    let close = known.map(|known| (strsim::damerau_levenshtein(known, name), known)).filter(|(d, _)| *d <= 2);
    // Short names are too similar to each other to suggest one.
    close.filter(|(d, _)| d * 3 < name.len()).min().map(|(_, known)| known)
}

fn selects_nothing(context: &LintContext<'_>, tenant: &Tenant<'_>, at: usize) -> Option<Problem> {
    if !context.known.all(&kind::NAMESPACE) {
        return None;
    }
    let group = context.group(at);
    let targets = context.targets(at);
    let there = targets.iter().filter_map(|name| context.world.json(&kind::NAMESPACE, "", name));
    if targets.is_empty() {
        let problem =
            Problem::new(&EMPTY_SELECTION, group.json, "spec.selector matches no namespace").advise(label(group));
        let stands_still = tenant.the_group().is_some() && !tenant.csvs.is_empty();
        return Some(problem.severity(if stands_still { Severity::Error } else { Severity::Warning }));
    }
    let leaving: Vec<&str> = there.filter(|namespace| object::is_terminating(namespace)).map(object::name).collect();
    (leaving.len() == targets.len()).then(|| {
        let message = format!("spec.selector matches only namespaces that are being deleted: {}", shortened(&leaving));
        Problem::new(&EMPTY_SELECTION, group.json, message).advise(label(group))
    })
}

/// Returns the fix for a selector without matches, with a command if the selector has only `matchLabels`.
fn label(group: Group<'_>) -> String {
    let selector = group.selector();
    let labels: Vec<String> = object::entries(selector, &["matchLabels"])
        .map(|(key, value)| word(&format!("{key}={value}")).into_owned())
        .collect();
    let is_all = object::list(selector, &["matchExpressions"]).is_empty();
    let command =
        if is_all { format!(" (kubectl label namespace NAMESPACE {})", labels.join(" ")) } else { String::new() };
    format!("label the intended namespaces{command}, or correct the selector")
}
