//! What may be concluded from what is not there: a list that is not complete proves nothing to be missing.

use std::collections::{BTreeMap, BTreeSet};

use super::{RULES, Rule};
use crate::api::object;
use crate::world::{GroupKind, Reader, World, kind};

/// Of which kinds all objects are known, and of which only some.
#[derive(Clone, Debug, Default)]
pub struct Known {
    limits: BTreeMap<GroupKind, Limit>,
    /// The namespace that is asked about, if it is one.
    asked: Option<String>,
}

/// A kind of which not all objects are known.
#[derive(Clone, Debug)]
struct Limit {
    /// The namespaces in which all of them are known.
    within: BTreeSet<String>,
    /// Are others there for sure that nobody may see?
    hides: bool,
    /// Why not the others, a sentence without a full stop.
    why: String,
}

/// Why files do not tell what is missing.
const FILES: &str = "the files do not say whether they hold all there is (--complete says so)";

/// The kinds that rules conclude from.
const KINDS: [GroupKind; 11] = [
    kind::OPERATOR_GROUP,
    kind::CLUSTER_SERVICE_VERSION,
    kind::SUBSCRIPTION,
    kind::INSTALL_PLAN,
    kind::NAMESPACE,
    kind::SERVICE_ACCOUNT,
    kind::ROLE,
    kind::ROLE_BINDING,
    kind::CLUSTER_ROLE,
    kind::CLUSTER_ROLE_BINDING,
    kind::DEPLOYMENT,
];

impl Known {
    /// All objects of every kind.
    pub fn everything() -> Self {
        Self::default()
    }

    /// What files tell that somebody put together: that they hold all Namespaces when those that every cluster has are among them,
    /// and of other kinds all objects of the namespaces in which they hold any.
    pub fn of_files(world: &World) -> Self {
        let reader = Reader::new(world);
        let mut known = Self::default();
        let has = |kind: &GroupKind, name: &str| reader.json(kind, "", name).is_some();
        for gk in KINDS {
            let complete = match &gk {
                k if *k == kind::NAMESPACE => has(k, "kube-system"),
                k if *k == kind::CLUSTER_ROLE || *k == kind::CLUSTER_ROLE_BINDING => has(k, "cluster-admin"),
                _ => false,
            };
            if complete {
                continue;
            }
            // Who has an account of his own in a file need not have the default one there.
            let counts = |name: &str| gk != kind::SERVICE_ACCOUNT || name == "default";
            let all = reader.all(&gk).map(|o| o.json()).filter(|o| counts(object::name(o)));
            let within = all.map(|o| object::namespace(o).to_owned()).filter(|namespace| !namespace.is_empty());
            let limit = Limit { within: within.collect(), hides: false, why: FILES.to_owned() };
            known.limits.insert(gk, limit);
        }
        known
    }

    /// Of this kind objects could be read only within those namespaces.
    pub fn limit(&mut self, kind: GroupKind, within: BTreeSet<String>, why: impl Into<String>) {
        self.limits.insert(kind, Limit { within, hides: true, why: why.into() });
    }

    /// Only what concerns this namespace is asked.
    #[must_use]
    pub fn about(self, namespace: Option<&str>) -> Self {
        Self { asked: namespace.map(str::to_owned), ..self }
    }

    /// The rules that are checked only in part, by the reason for that.
    pub(super) fn in_part(&self) -> BTreeMap<&str, BTreeSet<&'static str>> {
        let mut by_reason: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
        for (gk, Limit { within, hides, why }) in &self.limits {
            let is_known_here = self.asked.as_ref().is_some_and(|asked| within.contains(asked));
            let concerns = |rule: &&Rule| {
                let here = rule.here.contains(gk) || *hides && rule.reads.contains(gk);
                rule.everywhere.contains(gk) || here && !is_known_here
            };
            by_reason.entry(why).or_default().extend(RULES.into_iter().filter(concerns).map(|rule| rule.code));
        }
        by_reason.retain(|_, codes| !codes.is_empty());
        by_reason
    }

    /// Is it certain that no object of that kind and name is there?
    pub fn has_none(&self, world: &World, kind: &GroupKind, namespace: &str, name: &str) -> bool {
        self.within(kind, namespace) && Reader::new(world).json(kind, namespace, name).is_none()
    }

    /// Are all objects of that kind known?
    pub(super) fn all(&self, kind: &GroupKind) -> bool {
        !self.limits.contains_key(kind)
    }

    /// Are all objects of that kind known that are in the namespace?
    pub(super) fn within(&self, kind: &GroupKind, namespace: &str) -> bool {
        self.limits.get(kind).is_none_or(|limit| limit.within.contains(namespace))
    }
}
