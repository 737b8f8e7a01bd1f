//! Finds fields that OLM maintains and has not updated although it had the time.
//!
//! A single observation cannot show whether OLM is about to write something. So a difference is a warning if the objects that it follows
//! from were not changed recently, according to their `managedFields`. If these are missing, the severity is info. Just after a change
//! nothing is reported, unless a member has lost an annotation, because OLM writes these at once.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::members::{carried, format_targets};
use super::problem::{Change, Problem};
use super::rule::{EMPTY_HOLDS_APIS, STALE_APIS, STALE_MEMBER, STALE_STATUS};
use super::targets::has_selector;
use super::{LintContext, Tenant};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::conditions::Conditions;
use crate::api::labels::PROVIDED_APIS;
use crate::api::object::{self, ObjectRef};
use crate::api::operator_group::condition;
use crate::finding::Severity;
use crate::listing::shortened;
use crate::membership::{self, Apis, Group};
use crate::operatorgroup::intersection::{ApiConflict, MemberEffect, Pair};
use crate::world::kind;

/// Maximum time until OLM processes every OperatorGroup again (olm-behaviour/operatorgroup.md#target-namespaces).
const RESYNC: SignedDuration = SignedDuration::from_mins(15);

pub(super) fn check(context: &LintContext<'_>, tenant: &Tenant<'_>, found: &mut Vec<Problem>) {
    for at in &tenant.groups {
        found.extend(status(context, tenant, *at));
    }
    let Some(at) = tenant.the_group() else { return };
    let group = context.group(at);
    found.extend(tenant.csvs.iter().filter_map(|csv| member(context, group, csv)));
    if !group.is_static() && context.known.within(&kind::CLUSTER_SERVICE_VERSION, tenant.namespace) {
        found.extend(provided(context, tenant, at));
    }
}

/// Returns the severity of a difference that follows from these objects; `None` if they have just changed.
fn severity<'a>(context: &LintContext<'_>, objects: impl IntoIterator<Item = &'a Value>) -> Option<Severity> {
    let mut changed = Vec::new();
    for object in objects {
        let times = object::list(object, &["metadata", "managedFields"]).iter();
        let times = times.filter_map(|entry| object::parse_time(object::text(entry, &["time"])));
        changed.push(times.max());
    }
    let changed: Option<Vec<Timestamp>> = changed.into_iter().collect();
    match changed.and_then(|times| times.into_iter().max()) {
        None => Some(Severity::Info),
        Some(last) => (context.now.duration_since(last) > RESYNC).then_some(Severity::Warning),
    }
}

fn status(context: &LintContext<'_>, tenant: &Tenant<'_>, at: usize) -> Option<Problem> {
    let group = context.group(at);
    let account = group.service_account();
    let waits = !account.is_empty() && context.world.json(&kind::SERVICE_ACCOUNT, tenant.namespace, account).is_none();
    if waits || has_selector(group) && !context.known.all(&kind::NAMESPACE) {
        return None;
    }
    let wanted = context.scope(at).asked.as_ref().ok()?;
    if !group.has_status() {
        // Objects in files need not be of a cluster.
        let is_there = context.known.all(&kind::OPERATOR_GROUP);
        let created = group.metadata().created_at()?;
        let is_old = context.now.duration_since(created) > RESYNC;
        let message = "OLM has never processed it";
        return (is_there && is_old).then(|| Problem::new(&STALE_STATUS, group.json, message).advise(RUNNING));
    }
    let recorded: BTreeSet<String> = group.targets().into_iter().map(str::to_owned).collect();
    let message = if recorded != *wanted {
        let is =
            if recorded.is_empty() { "no namespace".to_owned() } else { format_targets(tenant.namespace, &recorded) };
        let asks = if wanted.is_empty() { "no namespace".to_owned() } else { format_targets(tenant.namespace, wanted) };
        format!("its status states that it targets {is}, but its spec selects {asks}")
    } else if tenant.groups.len() == 1 && has_condition(group, condition::MULTIPLE) {
        "its status states that there are several OperatorGroups in its namespace, but it is the only one".to_owned()
    } else if has_condition(group, condition::SERVICE_ACCOUNT) {
        "its status states that its ServiceAccount does not exist, but it does".to_owned()
    } else {
        return None;
    };
    let differ =
        wanted.symmetric_difference(&recorded).filter_map(|name| context.world.json(&kind::NAMESPACE, "", name));
    let differ: Vec<&Value> = differ.filter(|_| has_selector(group)).collect();
    let severity = severity(context, differ.into_iter().chain([group.json]))?;
    Some(Problem::new(&STALE_STATUS, group.json, message).severity(severity).advise(RUNNING))
}

const RUNNING: &str = "make sure that OLM is running";

fn has_condition(group: Group<'_>, of_type: &str) -> bool {
    Conditions::new(group.json).is_true(of_type)
}

fn member(context: &LintContext<'_>, group: Group<'_>, csv: &Value) -> Option<Problem> {
    let recorded: BTreeSet<String> = group.targets().into_iter().map(str::to_owned).collect();
    if recorded.is_empty() || Csv::new(csv).phase() == Phase::None {
        return None;
    }
    let wanted = group.annotations();
    let differs = |(key, value): &(&String, &String)| object::annotation(csv, key) != Some(value.as_str());
    let different: Vec<_> = wanted.iter().filter(differs).collect();
    let [(key, value), ..] = different[..] else { return None };
    let is = object::annotation(csv, key).map_or_else(|| "is missing".to_owned(), |text| format!("is {text:?}"));
    let others = if different.len() > 1 {
        format!("; also different: {}", shortened(different[1..].iter().map(|(key, _)| key)))
    } else {
        String::new()
    };
    let message = format!("its annotation {key} {is}, but OperatorGroup {} requires {value:?}{others}", group.name());
    // A member has the annotations from the beginning. A missing one was removed, and operators without targets watch all namespaces, so
    // it is reported at once.
    let is_missing = different.iter().any(|(key, _)| object::annotation(csv, key).is_none());
    let severity = severity(context, [csv, group.json]).or_else(|| is_missing.then_some(Severity::Warning))?;
    let patch = Change::Patch(ObjectRef::from_object(csv), json!({ "metadata": { "annotations": wanted } }));
    let what = "make sure that OLM is running; or write the annotations yourself, after which the Deployments are rolled out again";
    Some(
        Problem::new(&STALE_MEMBER, csv, message)
            .severity(severity)
            .also([ObjectRef::from_object(group.json)])
            .propose(what, patch),
    )
}

/// Compares `olm.providedAPIs` with what the operators of the namespace provide.
fn provided(context: &LintContext<'_>, tenant: &Tenant<'_>, at: usize) -> Option<Problem> {
    let scope = context.scope(at);
    let group = scope.group;
    let annotated = &scope.annotated;
    let originals: Vec<&Value> = membership::originals(&context.world, tenant.namespace).collect();
    let by_all = originals.iter().fold(Apis::default(), |all, csv| all.union(&Apis::from_csv(csv)));
    let arrives = |csv: &&Value| {
        matches!(Csv::new(csv).phase(), Phase::None | Phase::Pending) && !Apis::from_csv(csv).0.is_subset(&annotated.0)
    };
    let prunes = !originals.iter().any(arrives);
    let extra: BTreeSet<&String> = annotated.0.difference(&by_all.0).filter(|_| prunes).collect();
    let blocked = blocked(context, at, &extra);
    if originals.is_empty() && !extra.is_empty() {
        let message =
            format!("it reserves {}, but namespace {} has no operator{blocked}", shortened(&extra), tenant.namespace);
        let severity = if blocked.is_empty() { severity(context, [group.json])? } else { Severity::Warning };
        let patch = json!({ "metadata": { "annotations": { PROVIDED_APIS: null } } });
        let what =
            "remove the annotation; or set spec.staticProvidedAPIs, if the group is intended to reserve these APIs";
        let problem = Problem::new(&EMPTY_HOLDS_APIS, group.json, message).severity(severity);
        return Some(problem.fix(what, Change::Patch(ObjectRef::from_object(group.json), patch)));
    }
    let runs = |csv: &Value| Csv::new(csv).phase() == Phase::Succeeded;
    let effects =
        context.all.member_effects(at).into_iter().filter(|effect| effect.row == ApiConflict::Add && runs(effect.csv));
    let lacked = effects.fold(Apis::default(), |all, effect| all.union(&Apis::from_csv(effect.csv)));
    let lacked: BTreeSet<&String> = lacked.0.difference(&annotated.0).collect();
    let message = match (extra.is_empty(), lacked.is_empty()) {
        (true, true) => return None,
        (false, true) => {
            format!("it names {}, which no operator in its namespace provides any longer{blocked}", shortened(&extra))
        }
        (true, false) => format!("it does not name {}, which its members provide", shortened(&lacked)),
        (false, false) => format!(
            "it names {}, which no operator in its namespace provides any longer{blocked}, and does not name {}, which its members provide",
            shortened(&extra),
            shortened(&lacked)
        ),
    };
    let severity = severity(context, originals.iter().copied().chain([group.json]))?;
    let severity = if blocked.is_empty() { severity } else { Severity::Warning };
    let kept = annotated.0.iter().filter(|api| !extra.contains(api));
    let wanted: BTreeSet<String> = kept.chain(lacked.iter().copied()).cloned().collect();
    let patch = json!({ "metadata": { "annotations": { PROVIDED_APIS: carried(&wanted) } } });
    let problem = Problem::new(&STALE_APIS, group.json, message).severity(severity);
    Some(problem.fix(
        "set the annotation to the value that OLM would write",
        Change::Patch(ObjectRef::from_object(group.json), patch),
    ))
}

/// Returns a suffix that names the operators which the group prevents from providing these APIs.
fn blocked(context: &LintContext<'_>, holder: usize, apis: &BTreeSet<&String>) -> String {
    if apis.is_empty() {
        return String::new();
    }
    let rivals = context.clashes.iter().filter_map(|clash| match clash.pair {
        Pair { a, b } if a == holder => Some(b),
        Pair { a, b } if b == holder => Some(a),
        _ => None,
    });
    let held = |effect: &MemberEffect<'_>| {
        let is_hers = effect.others.contains(&holder) && effect.contested.0.iter().any(|api| apis.contains(api));
        is_hers && effect.row.reason().is_some()
    };
    let effects = rivals.flat_map(|rival| context.all.member_effects(rival)).filter(held);
    let others = effects.map(|effect| format!("{}/{}", object::namespace(effect.csv), object::name(effect.csv)));
    let others: Vec<String> = others.collect();
    if others.is_empty() { String::new() } else { format!(", which prevents {} from running", shortened(&others)) }
}
