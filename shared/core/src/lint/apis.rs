//! Finds APIs that several OperatorGroups provide to the same namespaces, and static groups that do not name the APIs of their members.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::LintContext;
use super::members::fail;
use super::problem::{Change, Problem};
use super::rule::{CONFLICTING_APIS, STATIC_LACKS_API};
use crate::api::labels::PROVIDED_APIS;
use crate::api::object::ObjectRef;
use crate::finding::Severity;
use crate::listing::shortened;
use crate::membership::{self, Apis};
use crate::operatorgroup::intersection::{ApiConflict, Clash, Holder, Pair, Scope};
use crate::operatorgroup::remedy::{self, Remedy};
use crate::world::kind;

pub(super) fn check(context: &LintContext<'_>, found: &mut Vec<Problem>) {
    found.extend(context.clashes.iter().filter_map(|clash| clashes(context, clash)));
    for at in 0..context.all.scopes().len() {
        if context.group(at).is_static() {
            found.extend(static_lacks(context, at));
        }
    }
}

/// Why a group claims an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// A member provides it.
    Member,
    /// The annotation of the group names it, and OLM keeps it there: the group is static, or an operator that is currently not a member
    /// provides the API.
    Annotation,
}

fn claim(context: &LintContext<'_>, at: usize, api: &str) -> Option<Claim> {
    let scope = context.scope(at);
    if scope.members.iter().any(|member| member.provides.0.contains(api)) {
        return Some(Claim::Member);
    }
    let is_provided = || {
        let mut csvs = membership::originals(&context.world, scope.group.namespace());
        csvs.any(|csv| Apis::from_csv(csv).0.contains(api))
    };
    // OLM removes APIs that no operator provides any longer; another rule reports these.
    let stays = || scope.group.is_static() || !is_pruned(context, scope) || is_provided();
    (scope.annotated.0.contains(api) && stays()).then_some(Claim::Annotation)
}

/// Reports whether OLM removes APIs that no operator provides from the annotation. It does not while it cannot determine the targets.
fn is_pruned(context: &LintContext<'_>, Scope { group, asked, .. }: &Scope<'_>) -> bool {
    let account = group.service_account();
    let has_account =
        account.is_empty() || context.world.json(&kind::SERVICE_ACCOUNT, group.namespace(), account).is_some();
    has_account && asked.is_ok()
}

fn clashes(context: &LintContext<'_>, clash: &Clash) -> Option<Problem> {
    let Pair { a, b } = clash.pair;
    let mut claimed: Vec<&str> = Vec::new();
    let mut with_members = BTreeSet::new();
    for api in &clash.apis {
        let (Some(one), Some(other)) = (claim(context, a, api), claim(context, b, api)) else { continue };
        claimed.push(api);
        with_members
            .extend([(a, one), (b, other)].iter().filter(|(_, claim)| *claim == Claim::Member).map(|(at, _)| *at));
    }
    let holder = context.all.holder(clash.pair, claimed.first()?);
    let other_than = |at: usize| if at == a { b } else { a };
    let loser = match (holder, with_members.iter().next()) {
        (Holder::One(holder), _) => other_than(holder),
        (_, Some(only)) if with_members.len() == 1 => *only,
        // The newer group, if that is known.
        _ => context.all.first(clash.pair).map_or(b, other_than),
    };
    let winner = other_than(loser);
    let [won, lost] = [winner, loser].map(|at| context.group(at));
    let won_name = format!("OperatorGroup {}/{}", won.namespace(), won.name());
    let consequence = match holder {
        _ if with_members.is_empty() => "no operator that provides them can run in either group".to_owned(),
        Holder::One(_) => {
            let members = context.scope(loser).members.iter();
            let concerned = members.filter(|member| claimed.iter().any(|api| member.provides.0.contains(*api)));
            let csvs: Vec<&Value> = concerned.map(|member| member.csv).collect();
            format!("that group was first, so {} with InterOperatorGroupOwnerConflict", fail(&csvs))
        }
        Holder::Both => "both name them, and members of the group that OLM processes first fail".to_owned(),
        Holder::None => {
            "members of the group that OLM processes first get them, members of the other group fail".to_owned()
        }
    };
    let place = match context.all.shared(clash.pair).as_deref() {
        None => "all namespaces".to_owned(),
        Some([one]) => format!("namespace {one}"),
        Some(names) => format!("namespaces {}", shortened(names)),
    };
    let message = format!("{won_name} also provides {} to {place}: {consequence}", shortened(&claimed));
    let severity = if with_members.is_empty() { Severity::Warning } else { Severity::Error };
    let problem =
        Problem::new(&CONFLICTING_APIS, lost.json, message).also([ObjectRef::from_object(won.json)]).severity(severity);
    let apis = claimed.into_iter().map(str::to_owned).collect();
    let remedies = remedy::remedies(&context.world, &context.all, &Clash { pair: clash.pair, apis });
    let what = "give the groups targets that have no namespace in common, or remove one of the operators";
    Some(match remedies.into_iter().find(|remedy| !remedy.command.is_empty()) {
        Some(Remedy { description, command }) => {
            problem.propose(format!("{what}; for example, {description}"), Change::Command(command))
        }
        None => problem.advise(what),
    })
}

fn static_lacks(context: &LintContext<'_>, at: usize) -> Vec<Problem> {
    let group = context.group(at);
    let annotated = group.provided();
    let effects = context.all.member_effects(at).into_iter().map(|effect| (Apis::from_csv(effect.csv), effect));
    effects
        .filter(|(provides, _)| !provides.0.is_subset(&annotated.0))
        .map(|(provides, effect)| {
            let missing = Apis(provides.0.difference(&annotated.0).cloned().collect());
            // While another group provides them, the ClusterServiceVersion fails because of that.
            let fails = if effect.row == ApiConflict::Conflict { "would fail" } else { "fails" };
            let message = format!(
                "OperatorGroup {} is static and does not name {}, so it {fails} with CannotModifyStaticOperatorGroupProvidedAPIs",
                group.name(),
                shortened(&missing.0)
            );
            let all = annotated.clone().union(&missing).to_string();
            let patch = json!({ "metadata": { "annotations": { PROVIDED_APIS: all } } });
            Problem::new(&STATIC_LACKS_API, effect.csv, message)
                .also([ObjectRef::from_object(group.json)])
                .propose(
                    "name them, if the operator is intended to run in this namespace",
                    Change::Patch(ObjectRef::from_object(group.json), patch),
                )
        })
        .collect()
}
