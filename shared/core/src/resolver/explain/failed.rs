//! Explains a failed resolution: the derivation, excluded bundles, and repairs.

use std::collections::BTreeSet;

use super::super::candidates::Lack;
use super::super::problem::About;
use super::super::unsatisfiable;
use super::{
    Context, Excluded, Explanation, Failure, Formula, Inputs, Offer, Statement, Variable, Why, bundle, repair,
    shortened,
};

/// Maximum number of excluded bundles.
const TOLD: usize = 20;

/// Explains a contradiction by its rules.
pub(super) fn contradiction(context: &Context<'_, '_>, core: &[usize]) -> Explanation {
    let abouts: Vec<&About> = core.iter().map(|rule| &context.problem.about[*rule]).collect();
    let mut reasons: Vec<Statement> = core.iter().map(|rule| sentence(context, *rule)).collect();
    reasons.sort_by(|a, b| (a.reason, &a.text).cmp(&(b.reason, &b.text)));
    reasons.dedup();
    let mut excluded = Vec::new();
    for about in &abouts {
        match about {
            About::Nothing(subscription, _) | About::Needs(subscription) => {
                left_out(context, *subscription, &mut excluded);
            }
            About::Requires(_, what) => near_misses(context, what, &mut excluded),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    excluded.retain(|e| seen.insert(e.bundle.clone()));
    excluded.truncate(TOLD);
    let subscriptions = abouts.iter().filter_map(|about| match about {
        About::Subscription(s) | About::Nothing(s, _) | About::Needs(s) => Some(*s),
        _ => None,
    });
    let subscriptions: BTreeSet<usize> = subscriptions.collect();
    let unsubscribed = abouts.iter().filter_map(|about| match about {
        About::Unsubscribed(variable) => match context.problem.variables[*variable] {
            Variable::Installed(installed) => Some(installed.entry.name.as_str()),
            _ => None,
        },
        _ => None,
    });
    Explanation::Failed {
        message: unsatisfiable(context.problem, core).to_string(),
        reasons,
        excluded,
        repairs: repair::find(context.inputs, &subscriptions, &unsubscribed.collect()),
    }
}

/// Explains what could not be read.
pub(super) fn unreadable(inputs: &Inputs<'_>, failure: &Failure) -> Explanation {
    let mut reasons: Vec<Statement> = inputs
        .broken
        .iter()
        .map(|b| {
            let text = format!(
                "catalog {}/{} cannot be used, which prevents every resolution: {}",
                b.namespace, b.name, b.why
            );
            Statement::new(Why::BrokenCatalog, text)
        })
        .collect();
    if reasons.is_empty() {
        reasons.push(Statement::new(Why::Unreadable, failure.to_string()));
    }
    let all = (0..inputs.subscriptions.len()).collect();
    Explanation::Failed {
        message: failure.to_string(),
        reasons,
        excluded: Vec::new(),
        repairs: repair::find(inputs, &all, &BTreeSet::new()),
    }
}

/// Renders a rule.
fn sentence(context: &Context<'_, '_>, rule: usize) -> Statement {
    let candidates = || match &context.problem.rules[rule].formula {
        Formula::OneOf(_, candidates) => candidates.clone(),
        Formula::AtMost(_, members) => members.clone(),
        _ => Vec::new(),
    };
    match &context.problem.about[rule] {
        About::Subscription(s) => {
            Statement::new(Why::Subscription, format!("{} requires {}", context.subscription(*s), context.wish(*s)))
        }
        About::Nothing(s, lack) => nothing(context, *s, *lack),
        About::Needs(s) => {
            let can = context.names(candidates(), "or");
            Statement::new(Why::Candidates, format!("{} can only be satisfied by {can}", context.subscription(*s)))
        }
        About::Unsubscribed(v) => {
            let text = format!("{} must stay, because no Subscription manages it", context.name(*v));
            Statement::new(Why::Unsubscribed, text)
        }
        About::Deprecated(v) => {
            let text = format!("{} is deprecated by its own properties (olm.deprecated)", context.name(*v));
            Statement::new(Why::Deprecated, text)
        }
        About::Requires(v, what) => {
            let providers = match candidates() {
                none if none.is_empty() => "which no catalog offers".to_owned(),
                some => format!("which only {} provides", context.names(some, "or")),
            };
            Statement::new(Why::Requires, format!("{} requires an operator {what}, {providers}", context.name(*v)))
        }
        About::Replaces(a, b) => {
            Statement::new(Why::Replaces, format!("{} would replace {}", context.name(*a), context.name(*b)))
        }
        About::OneProvider(api) => {
            let (kind, group, version) = (&api.kind, &api.group, &api.version);
            let members = context.names(candidates(), "and");
            Statement::new(
                Why::OneProvider,
                format!(
                    "only one of {members} can be installed, because all of them provide {kind} ({group}/{version})"
                ),
            )
        }
        About::OnePackage(package) => {
            let members = context.names(candidates(), "and");
            Statement::new(
                Why::OnePackage,
                format!("only one of {members} can be installed, because all of them belong to package {package}"),
            )
        }
    }
}

fn nothing(context: &Context<'_, '_>, subscription: usize, lack: Lack) -> Statement {
    let wanted = context.requested(subscription);
    let catalog = format!("{}/{}", wanted.source_namespace, wanted.source);
    let mine = context.inputs.catalogs.iter().filter(|c| wanted.takes_from(c.name, c.namespace));
    let packages = mine.clone().flat_map(|c| c.snapshot.packages().keys());
    let package = mine.clone().find_map(|c| c.snapshot.package(wanted.package));
    let there = |names: Vec<String>| match names {
        none if none.is_empty() => String::new(),
        names => format!("; available: {}", shortened(&names, "and")),
    };
    match lack {
        Lack::Catalog => {
            let known = context.inputs.catalogs.iter().map(|c| format!("{}/{}", c.namespace, c.name)).collect();
            Statement::new(Why::NoCatalog, format!("catalog {catalog} does not exist or is empty{}", there(known)))
        }
        Lack::Package => {
            let similar = packages.filter(|p| repair::is_similar(p, wanted.package)).cloned().collect();
            Statement::new(
                Why::NoPackage,
                format!("catalog {catalog} has no package {}{}", wanted.package, there(similar)),
            )
        }
        Lack::Channel => {
            let known = package.into_iter().flat_map(|p| p.channels.iter().map(|c| c.name.clone())).collect();
            let text = format!("package {} has no channel {}{}", wanted.package, wanted.channel, there(known));
            Statement::new(Why::NoChannel, text)
        }
        Lack::StartingCsv => {
            let channel = package.and_then(|p| p.channel(wanted.channel));
            let known = channel.into_iter().flat_map(|c| c.entries.iter().map(|e| e.name.clone())).collect();
            let text = format!(
                "channel {} of package {} has no {}{}",
                wanted.channel,
                wanted.package,
                wanted.starting_csv,
                there(known)
            );
            Statement::new(Why::NoStartingCsv, text)
        }
        Lack::Candidates => {
            Statement::new(Why::Candidates, format!("no bundle satisfies {}", context.subscription(subscription)))
        }
    }
}

/// Lists bundles of the package of a Subscription that are not candidates.
fn left_out(context: &Context<'_, '_>, subscription: usize, excluded: &mut Vec<Excluded>) {
    for offer in context.of_package(context.requested(subscription).package) {
        if let Some(reason) = context.exclusion(subscription, &offer) {
            excluded.push(Excluded { bundle: bundle(&offer), reason });
        }
    }
}

/// Lists bundles of a package that a requirement names and that do not meet it.
fn near_misses(context: &Context<'_, '_>, what: &str, excluded: &mut Vec<Excluded>) {
    let Some(rest) = what.strip_prefix("with package: ") else { return };
    let Some((package, _)) = rest.split_once(" and with version in range: ") else { return };
    let is_candidate = |offer: &Offer<'_>| {
        context.problem.variables.iter().any(|v| matches!(v, Variable::Bundle(b) if std::ptr::eq(b.entry, offer.entry)))
    };
    for offer in context.of_package(package).into_iter().filter(|o| !is_candidate(o)) {
        let reason = super::skipper(&offer)
            .unwrap_or_else(|| Statement::new(Why::DoesNotMeet, format!("required is an operator {what}")));
        excluded.push(Excluded { bundle: bundle(&offer), reason });
    }
}
