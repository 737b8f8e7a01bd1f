//! Explains why each bundle was chosen, and why newer bundles or those of other catalogs were not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::problem::About;
use super::super::solve::Unsolved;
use super::{
    Context, Excluded, Explained, Formula, Offer, Rule, Statement, Variable, Why, bundle, name, newest_first, solve,
    update,
};
use crate::membership;

/// Maximum number of bundles that were not chosen, for each chosen one.
const TOLD: usize = 8;

/// Explains the bundles of a solution.
pub(super) fn explain(context: &Context<'_, '_>, order: &[usize]) -> Vec<Explained> {
    let mut explained: Vec<Explained> = order
        .iter()
        .enumerate()
        .filter_map(|(at, variable)| match context.problem.variables[*variable] {
            Variable::Bundle(offer) => Some(one(context, &order[..at], *variable, &offer, order)),
            Variable::Installed(_) | Variable::Subscription(_) => None,
        })
        .collect();
    explained.sort_by(|a, b| a.bundle.name.cmp(&b.bundle.name));
    explained
}

fn one<'i>(
    context: &Context<'_, 'i>,
    before: &[usize],
    variable: usize,
    offer: &Offer<'i>,
    order: &[usize],
) -> Explained {
    let mut reasons = Vec::new();
    let mut rejected: BTreeMap<(String, String, String), Excluded> = BTreeMap::new();
    let key = |o: &Offer<'_>| {
        let (catalog, namespace) = o.catalog.map_or(("", ""), |c| (c.name, c.namespace));
        (o.entry.name.clone(), format!("{namespace}/{catalog}"), o.entry.channel.clone())
    };
    for (rule, about) in context.problem.rules.iter().zip(&context.problem.about) {
        let Formula::OneOf(needy, candidates) = &rule.formula else { continue };
        let Some(position) = candidates.iter().position(|c| *c == variable).filter(|_| order.contains(needy)) else {
            continue;
        };
        // A bundle may declare a requirement twice.
        let told = reason(context, about, offer);
        if !reasons.contains(&told) {
            reasons.push(told);
        }
        for better in &candidates[..position] {
            let Variable::Bundle(other) = context.problem.variables[*better] else { continue };
            let told = contradiction(context, before, *better);
            rejected.entry(key(&other)).or_insert_with(|| Excluded { bundle: bundle(&other), reason: told });
        }
        for other in context.of_package(&offer.entry.package) {
            let is_same_catalog = other.origin() == offer.origin();
            let is_newer = newest_first(other.entry, offer.entry).is_lt();
            let is_chosen = std::ptr::eq(other.entry, offer.entry);
            if is_chosen || !is_newer && (is_same_catalog || other.entry.name != offer.entry.name) {
                continue;
            }
            if let Some(told) = not_taken(context, about, offer, &other) {
                rejected.entry(key(&other)).or_insert_with(|| Excluded { bundle: bundle(&other), reason: told });
            }
        }
    }
    let mut rejected: Vec<Excluded> = rejected.into_values().collect();
    rejected.sort_by_cached_key(|e| {
        let version = crate::version::parse_tolerant(&e.bundle.version).ok();
        std::cmp::Reverse(version)
    });
    rejected.truncate(TOLD);
    Explained { bundle: bundle(offer), replaces: offer.over.unwrap_or_default().to_owned(), reasons, rejected }
}

fn reason(context: &Context<'_, '_>, about: &About, offer: &Offer<'_>) -> Statement {
    match about {
        About::Needs(subscription) => {
            let (who, wish) = (context.subscription(*subscription), context.wish(*subscription));
            let wanted = context.requested(*subscription);
            let current = context.inputs.installed.iter().find(|i| i.entry.name == wanted.installed_csv);
            let how = match current {
                Some(current) => update(offer.entry, &current.entry),
                None if wanted.starting_csv == offer.entry.name => "it is the startingCSV".to_owned(),
                None => "it is the first installable bundle of its channel".to_owned(),
            };
            Statement::new(Why::Subscription, format!("{who} requires {wish}; {how}"))
        }
        About::Requires(needy, what) => {
            Statement::new(Why::Requires, format!("{} requires an operator {what}", context.name(*needy)))
        }
        _ => Statement::new(Why::Candidates, "it is required"),
    }
}

/// Returns why a preferred candidate was not chosen: what it would contradict.
fn contradiction(context: &Context<'_, '_>, before: &[usize], better: usize) -> Statement {
    let problem = context.problem;
    let mut rules = problem.rules.clone();
    let forced = |variable: usize, message: String| Rule { formula: Formula::Chosen(variable), message, weight: 0 };
    // The previous choices, with their own kind of rule last, so that rules of the problem are reported first.
    rules.push(forced(better, String::new()));
    for chosen in before {
        rules.push(forced(*chosen, format!("{} was chosen earlier", context.name(*chosen))));
    }
    match solve::solve(&rules, problem.variables.len()) {
        Ok(_) | Err(Unsolved::GaveUp) => Statement::new(Why::LessPreferred, "another choice has precedence"),
        Err(Unsolved::Contradiction(core)) => {
            if let Some(About::Deprecated(_)) =
                core.iter().filter_map(|r| problem.about.get(*r)).find(|a| **a == About::Deprecated(better))
            {
                return Statement::new(Why::Deprecated, "it is deprecated by its own properties (olm.deprecated)");
            }
            let said: BTreeSet<&str> =
                core.iter().map(|r| rules[*r].message.as_str()).filter(|m| !m.is_empty()).collect();
            let said: Vec<&str> = said.into_iter().collect();
            Statement::new(Why::Contradiction, format!("it would contradict: {}", said.join("; ")))
        }
    }
}

/// Returns why another bundle of the same package, which is newer or of another catalog, was not chosen.
fn not_taken<'i>(context: &Context<'_, 'i>, about: &About, chosen: &Offer<'i>, other: &Offer<'i>) -> Option<Statement> {
    let prefers = |other: &Offer<'_>| {
        let entry = chosen.entry;
        let catalog = chosen.catalog.map_or_else(String::new, |c| format!("{}/{}", c.namespace, c.name));
        let why = if chosen.origin() != other.origin() {
            let priorities = chosen.catalog.zip(other.catalog).map(|(a, b)| (a.priority, b.priority));
            let (first, second) = priorities.unwrap_or_default();
            let needs_it = match about {
                About::Requires(needy, _) => match context.problem.variables[*needy] {
                    Variable::Bundle(needy) => needy.origin() == chosen.origin(),
                    _ => false,
                },
                _ => false,
            };
            if needs_it {
                format!("catalog {catalog} has precedence: it contains the bundle that requires it")
            } else if first > second {
                format!("catalog {catalog} has precedence: its priority is {first}, not {second}")
            } else {
                format!("catalog {catalog} has precedence")
            }
        } else if entry.is_default_channel && !other.entry.is_default_channel {
            format!("channel {} is the default channel of package {}", entry.channel, entry.package)
        } else {
            format!("{} has precedence", name(chosen))
        };
        Statement::new(Why::LessPreferred, why)
    };
    match about {
        About::Needs(subscription) => {
            let excluded = context.exclusion(*subscription, other);
            Some(excluded.unwrap_or_else(|| prefers(other)))
        }
        About::Requires(_, what) => {
            let rule = |(rule, a): (&'_ Rule, &About)| match &rule.formula {
                Formula::OneOf(_, candidates) if a == about => {
                    candidates.iter().any(|c| match &context.problem.variables[*c] {
                        Variable::Bundle(candidate) => std::ptr::eq(candidate.entry, other.entry),
                        _ => false,
                    })
                }
                _ => false,
            };
            let is_candidate = context.problem.rules.iter().zip(&context.problem.about).any(rule);
            if is_candidate {
                return Some(prefers(other));
            }
            Some(
                super::skipper(other)
                    .unwrap_or_else(|| Statement::new(Why::DoesNotMeet, format!("required is an operator {what}"))),
            )
        }
        _ => None,
    }
}

/// Reports chosen bundles whose install modes do not support the OperatorGroup.
pub(super) fn warnings(context: &Context<'_, '_>, order: &[usize], targets: &str) -> Vec<Statement> {
    let mut warnings = Vec::new();
    for variable in order {
        let Variable::Bundle(offer) = context.problem.variables[*variable] else { continue };
        let entry = offer.entry;
        let content = offer.catalog.and_then(|c| c.snapshot.bundle(&entry.package, &entry.channel, &entry.name));
        let csv = content.and_then(|c| serde_json::from_str::<Value>(&c.csv_json).ok());
        let Some(csv) = csv.filter(|c| c["spec"]["installModes"].is_array()) else { continue };
        if let Err((_, message)) = membership::supports(&csv, context.inputs.namespace, targets) {
            let text =
                format!("{} will fail with the OperatorGroup of {}: {message}", entry.name, context.inputs.namespace);
            warnings.push(Statement::new(Why::InstallModes, text));
        }
    }
    warnings
}
