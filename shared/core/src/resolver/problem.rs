//! Translates Subscriptions, catalogs and installed ClusterServiceVersions to variables and rules
//! (olm-behaviour/subscription.md#candidates,
//! olm-behaviour/subscription.md#constraints).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::candidates::{Lack, Offer, Offers};
use super::rule::{Formula, Rule};
use super::{Failure, Inputs, Installed, RequestedSubscription};
use crate::api::object::{self, Gvk};
use crate::bundle::property;
use crate::catalog::Entry;
use crate::constraint::{Constraint, Work};

/// Weight of rules about APIs: contradictions about packages are easier to understand and are preferred.
const TOLD_LATER: u8 = 1;

/// Variables, by number, and the rules for them.
#[derive(Debug, Default)]
pub(super) struct Problem<'i> {
    /// The object of each variable.
    pub(super) variables: Vec<Variable<'i>>,
    /// The rules, in the order in which their variables were created.
    pub(super) rules: Vec<Rule>,
    /// The subject of each rule.
    pub(super) about: Vec<About>,
}

/// The object that is chosen or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Variable<'i> {
    /// A Subscription, by index in the inputs.
    Subscription(usize),
    /// An existing ClusterServiceVersion.
    Installed(&'i Installed),
    /// A bundle of a catalog.
    Bundle(Offer<'i>),
}

/// The subject of a rule. Subscriptions are given by index in the inputs, others by variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A Subscription exists.
    Subscription(usize),
    /// A Subscription finds nothing, for this reason.
    Nothing(usize, Lack),
    /// A Subscription needs a bundle.
    Needs(usize),
    /// A ClusterServiceVersion exists that no Subscription names as installed.
    Unsubscribed(usize),
    /// A bundle is deprecated by its own properties.
    Deprecated(usize),
    /// A bundle requires another one.
    Requires(usize, String),
    /// The first replaces the second.
    Replaces(usize, usize),
    /// An API can have only one provider.
    OneProvider(Gvk),
    /// A package can have only one operator.
    OnePackage(String),
}

/// Builds the problem of a namespace.
pub(super) fn build<'i>(inputs: &'i Inputs<'_>) -> Result<Problem<'i>, Failure> {
    let mut builder = Builder {
        inputs,
        offers: Offers::new(inputs),
        problem: Problem::default(),
        known: BTreeMap::new(),
        entries: Vec::new(),
        open: VecDeque::new(),
        errors: Vec::new(),
    };
    // Errors of installed CSVs are reported alone.
    let installed: Vec<usize> = inputs.installed.iter().map(|i| builder.installed(i)).collect();
    builder.requirements();
    builder.check()?;
    let order = {
        let mut order: Vec<usize> = (0..inputs.subscriptions.len()).collect();
        order.sort_by_key(|s| inputs.subscriptions[*s].name);
        order
    };
    for subscription in order {
        builder.subscription(subscription);
        builder.requirements();
    }
    for (installed, variable) in inputs.installed.iter().zip(installed).filter(|(i, _)| !i.subscribed) {
        let name = &installed.entry.name;
        let message = format!("clusterserviceversion {name} exists and is not referenced by a subscription");
        builder.rule(Formula::Chosen(variable), About::Unsubscribed(variable), message);
    }
    builder.limits();
    let broken: BTreeSet<String> = inputs.broken.iter().map(ToString::to_string).collect();
    if !broken.is_empty() {
        return Err(aggregate(broken.into_iter().collect()));
    }
    builder.check()?;
    Ok(builder.problem)
}

/// Formats errors as Go's Kubernetes library aggregates them.
fn aggregate(mut errors: Vec<String>) -> Failure {
    let mut seen = BTreeSet::new();
    errors.retain(|e| seen.insert(e.clone()));
    match &errors[..] {
        [only] => Failure::Error(only.clone()),
        _ => Failure::Error(format!("[{}]", errors.join(", "))),
    }
}

struct Builder<'i, 'c> {
    inputs: &'i Inputs<'c>,
    offers: Offers<'i>,
    problem: Problem<'i>,
    /// Variables of bundles by their identifiers.
    known: BTreeMap<String, usize>,
    /// The bundles of variables, for the limits on what they provide.
    entries: Vec<(usize, String, &'i Entry)>,
    /// Variables whose requirements have not been added yet.
    open: VecDeque<(usize, Offer<'i>)>,
    errors: Vec<String>,
}

impl<'i> Builder<'i, '_> {
    fn check(&mut self) -> Result<(), Failure> {
        if self.offers.work.is_spent() {
            return Err(Failure::Error(Work::SPENT.to_owned()));
        }
        if self.errors.is_empty() { Ok(()) } else { Err(aggregate(std::mem::take(&mut self.errors))) }
    }

    fn variable(&mut self, variable: Variable<'i>) -> usize {
        self.problem.variables.push(variable);
        self.problem.variables.len() - 1
    }

    fn rule(&mut self, formula: Formula, about: About, message: String) {
        let is_of_api = match &about {
            About::OneProvider(_) => true,
            About::Requires(_, what) => what.starts_with("providing an API with "),
            _ => false,
        };
        let weight = if is_of_api { TOLD_LATER } else { 0 };
        self.problem.rules.push(Rule { formula, message, weight });
        self.problem.about.push(about);
    }

    /// Adds the rules of a Subscription: it exists, and requires a bundle.
    fn subscription(&mut self, at: usize) {
        let wanted: &'i RequestedSubscription<'_> = &self.inputs.subscriptions[at];
        let current = self.inputs.installed.iter().find(|i| i.entry.name == wanted.installed_csv);
        let candidates = match self.offers.candidates(wanted, current.map(|c| &c.entry)) {
            Ok(candidates) => candidates,
            Err(error) => return self.errors.push(error.to_string()),
        };
        let subscription = self.variable(Variable::Subscription(at));
        self.rule(
            Formula::Chosen(subscription),
            About::Subscription(at),
            format!("subscription {} exists", wanted.name),
        );
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(lack) => {
                let message = lack.message(wanted);
                return self.rule(Formula::Never(subscription), About::Nothing(at, lack), message);
            }
        };
        let mut choices = Vec::new();
        for offer in candidates {
            let variable = self.offered(offer);
            let id = self.offers.identifier(offer);
            if let Some(current) = current {
                let installed = self.installed(current);
                if let Variable::Bundle(offer) = &mut self.problem.variables[variable] {
                    offer.over = Some(&current.entry.name);
                }
                let message = format!("{id} conflicts with {}", self.offers.existing(&current.entry));
                self.rule(Formula::NotBoth(variable, installed), About::Replaces(variable, installed), message);
            }
            choices.push((variable, id));
        }
        if let Some(current) = current {
            choices.push((self.installed(current), self.offers.existing(&current.entry)));
        }
        if choices.is_empty() {
            let message = Lack::Candidates.message(wanted);
            return self.rule(Formula::Never(subscription), About::Nothing(at, Lack::Candidates), message);
        }
        let (variables, names): (Vec<usize>, Vec<String>) = choices.into_iter().unzip();
        let message = match &names[..] {
            [only] => format!("subscription {} requires {only}", wanted.name),
            _ => format!("subscription {} requires at least one of {}", wanted.name, enumerate(&names, "or")),
        };
        self.rule(Formula::OneOf(subscription, variables), About::Needs(at), message);
    }

    /// Returns the variable of an offer.
    fn offered(&mut self, offer: Offer<'i>) -> usize {
        match offer.installed {
            Some(installed) => self.installed(installed),
            None => self.known_or_new(offer, Variable::Bundle(offer)),
        }
    }

    /// Returns the variable of an installed ClusterServiceVersion.
    fn installed(&mut self, installed: &'i Installed) -> usize {
        self.known_or_new(Offer::installed(installed), Variable::Installed(installed))
    }

    fn known_or_new(&mut self, offer: Offer<'i>, variable: Variable<'i>) -> usize {
        let id = self.offers.identifier(offer);
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let variable = self.variable(variable);
        self.known.insert(id.clone(), variable);
        let entry = offer.entry;
        if entry.properties.iter().any(|p| p.type_ == "olm.deprecated") {
            self.rule(Formula::Never(variable), About::Deprecated(variable), format!("bundle {id} is deprecated"));
        }
        self.entries.push((variable, id, entry));
        self.open.push_back((variable, offer));
        variable
    }

    /// Adds the requirements of new variables, transitively.
    fn requirements(&mut self) {
        while let Some((variable, offer)) = self.open.pop_front() {
            if self.offers.work.is_spent() {
                return;
            }
            self.requirements_of(variable, offer);
        }
    }

    fn requirements_of(&mut self, variable: usize, offer: Offer<'i>) {
        let entry = offer.entry;
        let read: Result<Vec<Option<Constraint>>, _> =
            entry.properties.iter().map(|p| Constraint::of_within(p, &self.offers.work)).collect();
        let requirements = match read {
            Ok(requirements) => requirements,
            Err(error) => return self.errors.push(error.to_string()),
        };
        for requirement in requirements.into_iter().flatten() {
            if self.offers.work.is_spent() {
                return;
            }
            let said = requirement.to_string();
            let providers = match self.offers.providers(&requirement, &said, offer) {
                Ok(providers) => providers,
                Err(error) => {
                    self.errors.push(error.to_string());
                    continue;
                }
            };
            let providers = providers.into_iter().map(|p| self.offered(p)).collect();
            let message = format!("bundle {} requires an operator {said}", entry.name);
            self.rule(Formula::OneOf(variable, providers), About::Requires(variable, said), message);
        }
    }

    /// Adds the limits: an API has one provider, a package one operator.
    fn limits(&mut self) {
        let mut apis: BTreeMap<Gvk, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut packages: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        let entries = std::mem::take(&mut self.entries);
        for (variable, id, entry) in &entries {
            for property in entry.properties.iter() {
                if property.type_ == property::GVK {
                    apis.entry(property.as_gvk()).or_default().insert(id, *variable);
                } else if property.type_ == property::PACKAGE {
                    let package = object::text(&property.value, &["packageName"]);
                    packages.entry(package).or_default().insert(id, *variable);
                }
            }
        }
        let names = |members: &BTreeMap<&str, usize>| {
            enumerate(&members.keys().map(|id| (*id).to_owned()).collect::<Vec<_>>(), "and")
        };
        let limit = |members: &BTreeMap<&str, usize>| {
            let members: BTreeSet<usize> = members.values().copied().collect();
            Formula::AtMost(1, members.into_iter().collect())
        };
        for (api, members) in apis.into_iter().filter(|(_, m)| m.len() > 1) {
            let Gvk { group, version, kind } = &api;
            let message = format!("{} provide {kind} ({group}/{version})", names(&members));
            self.rule(limit(&members), About::OneProvider(api), message);
        }
        for (package, members) in packages.iter().filter(|(_, m)| m.len() > 1) {
            let message = format!("{} originate from package {package}", names(members));
            self.rule(limit(members), About::OnePackage((*package).to_owned()), message);
        }
    }
}

/// `a, b and c`
pub(super) fn enumerate(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}
