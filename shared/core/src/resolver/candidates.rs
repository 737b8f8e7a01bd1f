//! The bundles that catalogs and the namespace offer, in order of preference (olm-behaviour/subscription.md#candidates,
//! olm-behaviour/subscription.md#channel-order, olm-behaviour/subscription.md#constraints).

use std::collections::{BTreeMap, BTreeSet};

use super::{Catalog, Inputs, Installed, RequestedSubscription};
use crate::catalog::channel::{self, OrderError};
use crate::catalog::{Channel, Entry, Package};
use crate::constraint::{Candidate, Constraint, Work};

/// A bundle of a catalog, or an existing ClusterServiceVersion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer<'i> {
    /// The catalog; `None` for an existing ClusterServiceVersion.
    pub(super) catalog: Option<Catalog<'i>>,
    /// The existing ClusterServiceVersion; `None` for a bundle of a catalog.
    pub(super) installed: Option<&'i Installed>,
    pub(super) entry: &'i Entry,
    /// The ClusterServiceVersion that it would replace.
    pub(super) over: Option<&'i str>,
}

impl<'i> Offer<'i> {
    pub(super) fn installed(installed: &'i Installed) -> Self {
        Self { catalog: None, installed: Some(installed), entry: &installed.entry, over: None }
    }

    pub(super) fn new(catalog: Catalog<'i>, entry: &'i Entry) -> Self {
        Self { catalog: Some(catalog), installed: None, entry, over: None }
    }

    /// Returns name and namespace of the catalog.
    pub(super) fn origin(&self) -> Option<(&'i str, &'i str)> {
        self.catalog.map(|c| (c.name, c.namespace))
    }
}

/// Offered bundles, best first.
type Candidates<'i> = Vec<Offer<'i>>;

/// What a Subscription does not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    Catalog,
    Package,
    Channel,
    StartingCsv,
    Candidates,
}

impl Lack {
    pub(super) fn message(self, wanted: &RequestedSubscription<'_>) -> String {
        let RequestedSubscription { name, package, channel, source, source_namespace, starting_csv, .. } = *wanted;
        let what = match self {
            Self::Catalog => {
                return format!(
                    "no operators found from catalog {source} in namespace {source_namespace} referenced by subscription {name}"
                );
            }
            Self::Candidates => return format!("no operators found matching the criteria of subscription {name}"),
            Self::Package => format!("in package {package}"),
            Self::Channel => format!("in channel {channel} of package {package}"),
            Self::StartingCsv => format!("with name {starting_csv} in channel {channel} of package {package}"),
        };
        format!("no operators found {what} in the catalog referenced by subscription {name}")
    }
}

/// All offered bundles.
pub(super) struct Offers<'i> {
    namespace: &'i str,
    catalogs: &'i [Catalog<'i>],
    installed: &'i [Installed],
    /// Channels with a bundle that meets a requirement, by catalog, for each requirement so far.
    channels: BTreeMap<String, Vec<(usize, &'i Channel)>>,
    /// Remaining work budget for constraints.
    pub(super) work: Work,
}

impl<'i> Offers<'i> {
    pub(super) fn new(inputs: &'i Inputs<'_>) -> Self {
        let Inputs { namespace, catalogs, installed, .. } = inputs;
        Self { namespace, catalogs, installed, channels: BTreeMap::new(), work: Work::default() }
    }

    /// Returns the name of an offer in OLM's messages.
    pub(super) fn identifier(&self, offer: Offer<'i>) -> String {
        match offer.catalog {
            Some(catalog) => identifier(catalog, offer.entry),
            None => self.existing(offer.entry),
        }
    }

    /// Returns the name of an existing ClusterServiceVersion in OLM's messages.
    pub(super) fn existing(&self, entry: &Entry) -> String {
        format!("@existing/{}//{}", self.namespace, entry.name)
    }

    /// Returns the bundles that can satisfy a Subscription, best first; or what it does not find.
    pub(super) fn candidates(
        &self,
        wanted: &RequestedSubscription<'i>,
        current: Option<&'i Entry>,
    ) -> Result<Result<Candidates<'i>, Lack>, OrderError> {
        let RequestedSubscription { package, channel, starting_csv, .. } = *wanted;
        let catalogs: Vec<Catalog<'i>> =
            self.preferred(None).into_iter().filter(|c| wanted.takes_from(c.name, c.namespace)).collect();
        let mut offers = Vec::new();
        if wanted.takes_from_all() {
            offers.extend(self.installed.iter().map(Offer::installed));
        }
        if offers.is_empty() && catalogs.iter().all(|c| c.snapshot.packages().is_empty()) {
            return Ok(Err(Lack::Catalog));
        }
        offers.retain(|o| o.entry.package == package);
        for catalog in catalogs {
            let found = catalog.snapshot.package(package).into_iter();
            offers.extend(found.flat_map(Package::entries).map(|e| Offer::new(catalog, e)));
        }
        if offers.is_empty() {
            return Ok(Err(Lack::Package));
        }
        offers.retain(|o| channel.is_empty() || o.entry.channel == channel);
        if offers.is_empty() {
            return Ok(Err(Lack::Channel));
        }
        if current.is_none() && !starting_csv.is_empty() {
            offers.retain(|o| o.entry.name == starting_csv);
            if offers.is_empty() {
                return Ok(Err(Lack::StartingCsv));
            }
        }
        if wanted.busy {
            return Ok(Ok(Vec::new()));
        }
        offers.sort_by_key(|o| (!o.entry.is_default_channel, &o.entry.channel));
        let mut ordered = Vec::new();
        for group in offers.chunk_by(|a, b| a.entry.channel == b.entry.channel) {
            ordered.extend(in_order(group)?);
        }
        if let Some(range) = wanted.range {
            ordered.retain(|o| o.entry.version.as_ref().is_some_and(|v| range.contains(v)));
        }
        if let Some(current) = current {
            ordered.retain(|o| channel::update(o.entry, current.into()).is_some());
        }
        // A bundle is offered in each of its channels.
        let mut candidates: Candidates<'i> = Vec::new();
        for one in ordered {
            let others = offers.iter().copied().filter(|o| o.entry.name == one.entry.name);
            for offer in [one].into_iter().chain(others) {
                if !candidates.iter().any(|known| std::ptr::eq(known.entry, offer.entry)) {
                    candidates.push(offer);
                }
            }
        }
        Ok(Ok(candidates))
    }

    /// Returns the offers that meet a requirement of `needy`, best first; `said` is the requirement in words.
    pub(super) fn providers(
        &mut self,
        requirement: &Constraint,
        said: &str,
        needy: Offer<'i>,
    ) -> Result<Candidates<'i>, OrderError> {
        let all = self.catalogs;
        let catalogs = self.preferred(needy.catalog);
        let work = &self.work;
        let channels = self.channels.entry(said.to_owned()).or_insert_with(|| {
            let of = |(at, catalog): (usize, &'i Catalog<'i>)| {
                let channels = catalog.snapshot.packages().values().flat_map(|p| &p.channels);
                channels.filter(|c| c.entries.iter().any(|e| is_met_by(requirement, e, work))).map(move |c| (at, c))
            };
            all.iter().enumerate().flat_map(of).collect()
        });
        let mut seen = BTreeSet::new();
        // Of the existing CSVs of one package without a Subscription OLM sees only the first.
        let is_seen = |i: &&'i Installed| i.subscribed || seen.insert(&i.entry.package);
        let met = self.installed.iter().filter(|i| is_met_by(requirement, &i.entry, work));
        let installed = met.filter(is_seen).map(Offer::installed);
        let mut groups: Vec<Vec<Offer<'i>>> = by_package(installed.collect());
        for catalog in catalogs {
            let is_of = |at: usize| (all[at].name, all[at].namespace) == (catalog.name, catalog.namespace);
            let mut found: Vec<&'i Channel> = channels.iter().filter(|(at, _)| is_of(*at)).map(|(_, c)| *c).collect();
            found.sort_by_key(|c| {
                let first = c.entries.first();
                (first.map(|e| (!e.is_default_channel, &e.package)), &c.name)
            });
            groups.extend(found.into_iter().map(|c| c.entries.iter().map(|e| Offer::new(catalog, e)).collect()));
        }
        let mut ordered = Vec::new();
        for group in groups {
            ordered.extend(in_order(&group)?);
        }
        ordered.retain(|o| is_met_by(requirement, o.entry, work));
        Ok(ordered)
    }

    /// Returns the catalogs, best first for a bundle of `own`.
    fn preferred(&self, own: Option<Catalog<'i>>) -> Vec<Catalog<'i>> {
        let mut catalogs = self.catalogs.to_vec();
        catalogs.sort_by_key(|c| {
            let is_own = own.is_some_and(|own| (own.name, own.namespace) == (c.name, c.namespace));
            (!is_own, std::cmp::Reverse(c.priority), c.namespace != self.namespace, c.name)
        });
        catalogs
    }
}

/// Installed CSVs have no channel, but are ordered within each package.
fn by_package(mut installed: Vec<Offer<'_>>) -> Vec<Vec<Offer<'_>>> {
    installed.sort_by_key(|o| &o.entry.package);
    installed.chunk_by(|a, b| a.entry.package == b.entry.package).map(<[Offer<'_>]>::to_vec).collect()
}

/// Orders a channel from its head down the chain of `replaces`.
fn in_order<'i>(group: &[Offer<'i>]) -> Result<Vec<Offer<'i>>, OrderError> {
    let entries: Vec<&Entry> = group.iter().map(|o| o.entry).collect();
    let chain = channel::order(&entries)?;
    let offer = |e: &Entry| group.iter().find(|o| std::ptr::eq(o.entry, e)).copied();
    Ok(chain.into_iter().filter_map(offer).collect())
}

fn is_met_by(requirement: &Constraint, entry: &Entry, work: &Work) -> bool {
    let Entry { package, version, properties, .. } = entry;
    requirement.is_met_within(&Candidate { package, version: version.as_ref(), properties }, work)
}

fn identifier(catalog: Catalog<'_>, entry: &Entry) -> String {
    format!("{}/{}/{}/{}", catalog.name, catalog.namespace, entry.channel, entry.name)
}
