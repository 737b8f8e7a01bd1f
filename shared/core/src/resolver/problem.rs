//! From Subscriptions, catalogs and installed ClusterServiceVersions to variables and rules (reference/catalog-operator.md
//! §3.4, §3.6).

use std::collections::{BTreeMap, BTreeSet};

use super::solve::{Rule, Says};
use super::{Catalog, Chosen, Failure, Inputs, Installed, Wanted};
use crate::api::object::{self, Gvk};
use crate::bundle::property;
use crate::catalog::{Entry, Package, channel};
use crate::constraint::{Candidate, Constraint};

/// Weight of rules about APIs: what can be told of packages is easier to understand.
const TOLD_LATER: u8 = 1;

/// Variables, by number, and what must hold of them.
#[derive(Debug, Default)]
pub(super) struct Problem<'a> {
    /// What choosing a variable installs: nothing for Subscriptions and for what is installed already.
    pub(super) bundles: Vec<Option<Chosen<'a>>>,
    /// The rules, in the order in which their variables were met.
    pub(super) rules: Vec<Rule>,
}

/// The problem of a namespace.
pub(super) fn build<'a>(inputs: &Inputs<'a>) -> Result<Problem<'a>, Failure> {
    let mut builder = Builder { inputs, problem: Problem::default(), known: BTreeMap::new(), entries: Vec::new() };
    for wanted in &inputs.subscriptions {
        builder.subscription(wanted)?;
    }
    for installed in &inputs.installed {
        let variable = builder.installed(installed)?;
        if !installed.subscribed {
            let name = &installed.entry.name;
            builder.rule(
                Says::Chosen(variable),
                format!("clusterserviceversion {name} exists and is not referenced by a subscription"),
            );
        }
    }
    builder.limits();
    Ok(builder.problem)
}

/// Bundles and where they are from, best first.
type Candidates<'a> = Vec<(Catalog<'a>, &'a Entry)>;

struct Builder<'a, 'i> {
    inputs: &'i Inputs<'a>,
    problem: Problem<'a>,
    /// Variables of bundles by their identifiers.
    known: BTreeMap<String, usize>,
    /// The bundles of variables, for the limits on what they provide.
    entries: Vec<(usize, String, &'i Entry)>,
}

impl<'a: 'i, 'i> Builder<'a, 'i> {
    fn variable(&mut self, bundle: Option<Chosen<'a>>) -> usize {
        self.problem.bundles.push(bundle);
        self.problem.bundles.len() - 1
    }

    fn rule(&mut self, says: Says, message: String) {
        self.problem.rules.push(Rule { says, message, weight: 0 });
    }

    /// The Subscription is there, and needs a bundle.
    fn subscription(&mut self, wanted: &Wanted<'a>) -> Result<(), Failure> {
        let subscription = self.variable(None);
        self.rule(Says::Chosen(subscription), format!("subscription {} exists", wanted.name));
        let current = self.inputs.installed.iter().find(|i| i.entry.name == wanted.installed_csv);
        let candidates = match self.candidates(wanted, current.map(|c| &c.entry))? {
            Ok(candidates) => candidates,
            Err(message) => {
                self.rule(Says::Never(subscription), message);
                return Ok(());
            }
        };
        let mut choices = Vec::new();
        for (catalog, entry) in candidates {
            let variable = self.bundle(catalog, entry)?;
            if let Some(current) = current {
                let installed = self.installed(current)?;
                if let Some(chosen) = &mut self.problem.bundles[variable] {
                    chosen.replaces.clone_from(&current.entry.name);
                }
                let message =
                    format!("{} conflicts with {}", identifier(catalog, entry), self.existing(&current.entry));
                self.rule(Says::NotBoth(variable, installed), message);
            }
            choices.push((variable, identifier(catalog, entry)));
        }
        if let Some(current) = current {
            choices.push((self.installed(current)?, self.existing(&current.entry)));
        }
        if choices.is_empty() {
            let message = format!("no operators found matching the criteria of subscription {}", wanted.name);
            self.rule(Says::Never(subscription), message);
            return Ok(());
        }
        let (variables, names): (Vec<usize>, Vec<String>) = choices.into_iter().unzip();
        let message = match &names[..] {
            [only] => format!("subscription {} requires {only}", wanted.name),
            _ => format!("subscription {} requires at least one of {}", wanted.name, enumerate(&names, "or")),
        };
        self.rule(Says::OneOf(subscription, variables), message);
        Ok(())
    }

    /// The bundles that a Subscription may get, best first; or why there are none.
    fn candidates(
        &self,
        wanted: &Wanted<'a>,
        current: Option<&Entry>,
    ) -> Result<Result<Candidates<'a>, String>, Failure> {
        let Wanted { name, package, channel, source, source_namespace, starting_csv, .. } = *wanted;
        let catalogs: Vec<Catalog<'a>> =
            self.preferred(None).filter(|c| wanted.takes_from(c.name, c.namespace)).collect();
        let mut entries: Candidates<'a> = Vec::new();
        let is_empty = catalogs.iter().all(|c| c.snapshot.packages().is_empty());
        for catalog in catalogs {
            let package = catalog.snapshot.package(package).into_iter();
            entries.extend(package.flat_map(Package::entries).map(|e| (catalog, e)));
        }
        if is_empty {
            return Ok(Err(format!(
                "no operators found from catalog {source} in namespace {source_namespace} referenced by subscription {name}"
            )));
        }
        let found = |what: String| {
            Ok(Err(format!("no operators found {what} in the catalog referenced by subscription {name}")))
        };
        if entries.is_empty() {
            return found(format!("in package {package}"));
        }
        entries.retain(|(_, e)| channel.is_empty() || e.channel == channel);
        if entries.is_empty() {
            return found(format!("in channel {channel} of package {package}"));
        }
        if current.is_none() && !starting_csv.is_empty() {
            entries.retain(|(_, e)| e.name == starting_csv);
            if entries.is_empty() {
                return found(format!("with name {starting_csv} in channel {channel} of package {package}"));
            }
        }
        if wanted.busy {
            return Ok(Ok(Vec::new()));
        }
        let mut ordered = Self::ordered(&entries)?;
        if let Some(current) = current {
            ordered.retain(|(_, e)| {
                e.replaces.as_deref() == Some(current.name.as_str())
                    || e.skips.contains(&current.name)
                    || current.version.as_ref().is_some_and(|v| e.skips_version(v))
            });
        }
        Ok(Ok(ordered))
    }

    /// Entries catalog by catalog, the default channels first, each channel from its head down.
    fn ordered(entries: &[(Catalog<'a>, &'a Entry)]) -> Result<Candidates<'a>, Failure> {
        let mut groups: Vec<(Catalog<'a>, Vec<&'a Entry>)> = Vec::new();
        for (catalog, entry) in entries {
            let same = |(c, group): &&mut (Catalog<'a>, Vec<&'a Entry>)| {
                (c.name, c.namespace) == (catalog.name, catalog.namespace)
                    && group[0].package == entry.package
                    && group[0].channel == entry.channel
            };
            match groups.iter_mut().find(same) {
                Some((_, group)) => group.push(entry),
                None => groups.push((*catalog, vec![entry])),
            }
        }
        let position = |catalog: &Catalog<'a>| {
            entries.iter().position(|(c, _)| (c.name, c.namespace) == (catalog.name, catalog.namespace))
        };
        groups.sort_by_key(|(catalog, group)| {
            let first = group[0];
            (position(catalog), !first.is_default_channel, &first.package, &first.channel)
        });
        let mut ordered = Vec::new();
        for (catalog, group) in groups {
            let chain = channel::order(&group).map_err(|e| Failure::Error(e.to_string()))?;
            ordered.extend(chain.into_iter().map(|e| (catalog, e)));
        }
        Ok(ordered)
    }

    /// The catalogs, best first for a bundle of `own`.
    fn preferred(&self, own: Option<Catalog<'a>>) -> impl Iterator<Item = Catalog<'a>> + use<'a> {
        let mut catalogs = self.inputs.catalogs.clone();
        let namespace = self.inputs.namespace;
        catalogs.sort_by_key(|c| {
            let is_own = own.is_some_and(|own| (own.name, own.namespace) == (c.name, c.namespace));
            (!is_own, std::cmp::Reverse(c.priority), c.namespace != namespace, c.name)
        });
        catalogs.into_iter()
    }

    /// The variable of a bundle in a catalog.
    fn bundle(&mut self, catalog: Catalog<'a>, entry: &'a Entry) -> Result<usize, Failure> {
        let id = identifier(catalog, entry);
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let variable = self.variable(Some(Chosen { catalog, entry, replaces: String::new() }));
        self.requirements(variable, id, Some(catalog), entry)?;
        Ok(variable)
    }

    /// The variable of an installed ClusterServiceVersion.
    fn installed(&mut self, installed: &'i Installed) -> Result<usize, Failure> {
        let id = self.existing(&installed.entry);
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let variable = self.variable(None);
        self.requirements(variable, id, None, &installed.entry)?;
        Ok(variable)
    }

    fn requirements(
        &mut self,
        variable: usize,
        id: String,
        own: Option<Catalog<'a>>,
        entry: &'i Entry,
    ) -> Result<(), Failure> {
        self.known.insert(id.clone(), variable);
        if entry.properties.iter().any(|p| p.type_ == "olm.deprecated") {
            self.rule(Says::Never(variable), format!("bundle {id} is deprecated"));
        }
        self.entries.push((variable, id, entry));
        for property in entry.properties.iter() {
            let read = Constraint::of(property).map_err(|e| Failure::Error(e.to_string()))?;
            let Some(requirement) = read else { continue };
            let mut providers = Vec::new();
            for installed in self.inputs.installed.iter().filter(|i| is_met_by(&requirement, &i.entry)) {
                providers.push(self.installed(installed)?);
            }
            for (catalog, provider) in self.providers(&requirement, own)? {
                providers.push(self.bundle(catalog, provider)?);
            }
            let message = format!("bundle {} requires an operator {requirement}", entry.name);
            let weight = if requirement.is_api() { TOLD_LATER } else { 0 };
            self.problem.rules.push(Rule { says: Says::OneOf(variable, providers), message, weight });
        }
        Ok(())
    }

    /// The bundles that meet a requirement, best first.
    fn providers(&self, requirement: &Constraint, own: Option<Catalog<'a>>) -> Result<Candidates<'a>, Failure> {
        let mut channels = Vec::new();
        for catalog in self.preferred(own) {
            let all = catalog.snapshot.packages().values().flat_map(|p| &p.channels);
            for channel in all.filter(|c| c.entries.iter().any(|e| is_met_by(requirement, e))) {
                channels.extend(channel.entries.iter().map(|e| (catalog, e)));
            }
        }
        let mut ordered = Self::ordered(&channels)?;
        ordered.retain(|(_, e)| is_met_by(requirement, e));
        Ok(ordered)
    }

    fn existing(&self, entry: &Entry) -> String {
        format!("@existing/{}//{}", self.inputs.namespace, entry.name)
    }

    /// An API has one provider, a package one operator.
    fn limits(&mut self) {
        let mut apis: BTreeMap<Gvk, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut packages: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for (variable, id, entry) in &self.entries {
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
        let limit =
            |members: &BTreeMap<&str, usize>| Says::AtMost(1, members.values().copied().collect::<BTreeSet<_>>());
        let mut rules = Vec::new();
        for (Gvk { group, version, kind }, members) in apis.iter().filter(|(_, m)| m.len() > 1) {
            let message = format!("{} provide {kind} ({group}/{version})", names(members));
            rules.push(Rule { says: limit(members), message, weight: TOLD_LATER });
        }
        for (package, members) in packages.iter().filter(|(_, m)| m.len() > 1) {
            let message = format!("{} originate from package {package}", names(members));
            rules.push(Rule { says: limit(members), message, weight: 0 });
        }
        self.problem.rules.append(&mut rules);
    }
}

fn is_met_by(requirement: &Constraint, entry: &Entry) -> bool {
    let Entry { package, version, properties, .. } = entry;
    requirement.is_met_by(&Candidate { package, version: version.as_ref(), properties })
}

/// `a, b and c`
fn enumerate(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}

fn identifier(catalog: Catalog<'_>, entry: &Entry) -> String {
    format!("{}/{}/{}/{}", catalog.name, catalog.namespace, entry.channel, entry.name)
}
