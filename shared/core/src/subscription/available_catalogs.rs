//! The catalogs that are available in a namespace: its own and the global ones.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::directory;
use crate::api::catalog_source::{CatalogSource, Origin, Target};
use crate::api::object;
use crate::api::subscription::{State, Subscription};
use crate::catalog::Snapshot;
use crate::plan::Reason;
use crate::resolver::{Broken, Catalog, Failure};
use crate::settings::Settings;
use crate::world::{CatalogFact, ConnectionState, Reader, kind};

/// A catalog: a CatalogSource, or a directory given on the command line, which has no object.
pub(super) struct Source<'w> {
    pub(super) namespace: &'w str,
    pub(super) name: &'w str,
    pub(super) object: Option<&'w Value>,
    fact: Option<&'w CatalogFact>,
    /// Set when its content is missing because it was a directory, according to Subscriptions that were resolved with it.
    not_given: Option<Reason>,
}

/// Whether a catalog can be used now.
enum Use<'w> {
    Content(&'w Snapshot),
    NotYet(Reason),
    Broken(Broken<'w>),
}

/// Returns the available catalogs, by namespace and name.
pub(super) fn sources<'w>(
    world: &Reader<'w>,
    settings: &'w Settings,
    namespace: &'w str,
    global: bool,
) -> Vec<Source<'w>> {
    let of = namespace;
    let mut namespaces = BTreeSet::from([namespace]);
    if global {
        namespaces.insert(&settings.global_catalog_namespace);
    }
    let mut sources = Vec::new();
    for &namespace in &namespaces {
        for object in world.in_namespace(&kind::CATALOG_SOURCE, namespace) {
            let (namespace, name) = (object::namespace(object.json()), object::name(object.json()));
            let fact = world.catalog(namespace, name);
            sources.push(Source { namespace, name, object: Some(object.json()), fact, not_given: None });
        }
        for (name, fact) in world.local_catalogs(namespace) {
            if !sources.iter().any(|s| (s.namespace, s.name) == (namespace, name)) {
                sources.push(Source { namespace, name, object: None, fact: Some(fact), not_given: None });
            }
        }
    }
    let not_given = not_given(world, settings, of, |namespace, name| {
        !namespaces.contains(namespace) || sources.iter().any(|s| (s.namespace, s.name) == (namespace, name))
    });
    sources.extend(not_given);
    sources.sort_by_key(|s| (s.namespace, s.name));
    sources
}

/// Returns the catalogs that were directories when the Subscriptions of a namespace were resolved, and that are not in
/// `is_known`.
fn not_given<'w>(
    world: &Reader<'w>,
    settings: &Settings,
    namespace: &'w str,
    is_known: impl Fn(&str, &str) -> bool,
) -> Vec<Source<'w>> {
    let subscriptions: Vec<&'w Value> =
        world.in_namespace(&kind::SUBSCRIPTION, namespace).map(|subscription| subscription.json()).collect();
    let mut catalogs: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for subscription in subscriptions.iter().filter(|s| directory::is_noted(s)) {
        let [source, of] = ["source", "sourceNamespace"].map(|key| object::text(subscription, &["spec", key]));
        if !is_known(of, source) {
            catalogs.entry((of, source)).or_default().push(format!("{namespace}/{}", object::name(subscription)));
        }
    }
    let installed = subscriptions.iter().all(|s| Subscription::new(s).state() == State::AtLatestKnown);
    let source = |((namespace, name), subscriptions): ((&'w str, &'w str), Vec<String>)| {
        let is_global = namespace == settings.global_catalog_namespace;
        let flag = if is_global { format!("{name}=DIR") } else { format!("{name}.{namespace}=DIR") };
        let (of, catalog) = (namespace.to_owned(), name.to_owned());
        let reason = Reason::CatalogNotProvided { namespace: of, name: catalog, subscriptions, flag, installed };
        Source { namespace, name, object: None, fact: None, not_given: Some(reason) }
    };
    catalogs.into_iter().map(source).collect()
}

impl<'w> Source<'w> {
    /// Returns whether the catalog can be read, as far as its spec determines that
    /// (olm-behaviour/subscription.md#catalog-health). While this is not decided, as when controllers start, the previous
    /// value is used; a new catalog is not healthy.
    pub(super) fn is_healthy(&self, before: bool) -> bool {
        // A missing directory is not considered unhealthy.
        let Some(object) = self.object else { return true };
        match Origin::from_source(object) {
            _ if self.is_local() => true,
            Origin::Address(_) => true,
            Origin::Image(_) | Origin::ConfigMap(_) | Origin::ConfigMaps(_) => match self.fact {
                Some(CatalogFact { snapshot: Some(_), .. }) => true,
                Some(CatalogFact { error: Some(_), .. }) => false,
                _ => before,
            },
            Origin::Invalid(_) => false,
        }
    }

    /// Returns its content, if it has any.
    pub(super) fn content(&self) -> Option<&'w Snapshot> {
        match self.usable() {
            Use::Content(snapshot) => Some(snapshot),
            _ => None,
        }
    }

    pub(super) fn is_local(&self) -> bool {
        self.fact.is_some_and(CatalogFact::is_local)
    }

    fn usable(&self) -> Use<'w> {
        let Self { namespace, name, ref not_given, .. } = *self;
        if let Some(reason) = not_given {
            return Use::NotYet(reason.clone());
        }
        let broken = |why: String| Use::Broken(Broken { name, namespace, why });
        let fact = match self.object.map(Origin::from_source) {
            _ if self.is_local() => self.fact,
            // A connection to another address is ignored.
            Some(Origin::Address(address)) => {
                self.fact.filter(|f| matches!(&f.target, Target::Address(known) if known == address))
            }
            Some(Origin::Invalid(_)) => {
                return broken(format!("no registry client established for catalogsource {namespace}/{name}"));
            }
            // The previous content is used until there is a newer one.
            Some(Origin::Image(_) | Origin::ConfigMap(_) | Origin::ConfigMaps(_)) | None => self.fact,
        };
        match fact {
            Some(CatalogFact { snapshot: Some(snapshot), .. }) => Use::Content(snapshot),
            // No content was given for it, and none will arrive.
            Some(CatalogFact { state: ConnectionState::Shutdown, error: Some(error), .. }) => {
                let object = format!("CatalogSource {namespace}/{name}");
                Use::NotYet(Reason::Missing { object, needs: error.clone() })
            }
            // Also while the next attempt is in progress.
            Some(CatalogFact { error: Some(error), .. }) => broken(format!("failed to list bundles: {error}")),
            _ => {
                let state = fact.map_or("not connected yet", |f| f.state.as_str()).to_owned();
                Use::NotYet(Reason::CatalogNotReady { namespace: namespace.to_owned(), name: name.to_owned(), state })
            }
        }
    }
}

/// Why the catalogs cannot be used.
pub(super) enum Unusable {
    /// They will be usable later, or are not supported by this version: the Subscriptions do not report it.
    NotYet(Vec<Reason>),
    /// The error prevents every resolution.
    Broken(Failure),
}

/// Returns the catalogs as input of the resolver. Catalogs without content only affect Subscriptions that name them.
pub(super) fn catalogs<'w>(
    sources: &[Source<'w>],
    is_named: impl Fn(&Source<'w>) -> bool,
) -> Result<(Vec<Catalog<'w>>, Vec<Broken<'w>>), Unusable> {
    let (mut catalogs, mut reasons, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for source in sources {
        match source.usable() {
            Use::Content(snapshot) => catalogs.push(Catalog {
                name: source.name,
                namespace: source.namespace,
                priority: source.object.map_or(0, |source| CatalogSource::new(source).priority()),
                snapshot,
            }),
            Use::NotYet(Reason::Missing { .. }) if !is_named(source) => {}
            Use::NotYet(reason) => reasons.push(reason),
            Use::Broken(why) => broken.push(why),
        }
    }
    if reasons.is_empty() { Ok((catalogs, broken)) } else { Err(Unusable::NotYet(reasons)) }
}
