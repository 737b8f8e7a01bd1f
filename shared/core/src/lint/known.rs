//! Tracks which kinds are completely known: an object that an incomplete list does not contain is not proven to be missing.

use std::collections::{BTreeMap, BTreeSet};

use super::{RULES, Rule};
use crate::api::object;
use crate::world::{GroupKind, Reader, World, kind};

/// The kinds of which all objects are known, and those of which only some are.
#[derive(Clone, Debug, Default)]
pub struct Known {
    limits: BTreeMap<GroupKind, Limit>,
    /// The namespace that is checked; `None` for all.
    asked: Option<String>,
}

/// A kind of which not all objects are known.
#[derive(Clone, Debug)]
struct Limit {
    /// The namespaces in which all of them are known.
    within: BTreeSet<String>,
    /// Whether the objects of other namespaces could not be read.
    hides: bool,
    /// Why the others are not known, a sentence without a full stop.
    why: String,
}

/// Why nothing can be concluded from objects that are missing in files.
const FILES: &str = "the files may not contain all objects of the cluster (--complete states that they do)";

/// The kinds whose completeness rules depend on.
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
    /// All objects of every kind are known.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Derives what is known from files of unknown completeness. All Namespaces are known if `kube-system` is among them, and all
    /// ClusterRoles and their bindings if `cluster-admin` is. Of other kinds, all objects are known in each namespace in which the files
    /// contain at least one.
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
            // Manifests may contain a ServiceAccount of their own without the default one.
            let counts = |name: &str| gk != kind::SERVICE_ACCOUNT || name == "default";
            let all = reader.all(&gk).map(|o| o.json()).filter(|o| counts(object::name(o)));
            let within = all.map(|o| object::namespace(o).to_owned()).filter(|namespace| !namespace.is_empty());
            let limit = Limit { within: within.collect(), hides: false, why: FILES.to_owned() };
            known.limits.insert(gk, limit);
        }
        known
    }

    /// Notes that objects of this kind could be read only within those namespaces.
    pub fn limit(&mut self, kind: GroupKind, within: BTreeSet<String>, why: impl Into<String>) {
        self.limits.insert(kind, Limit { within, hides: true, why: why.into() });
    }

    /// Limits the check to this namespace.
    #[must_use]
    pub fn about(self, namespace: Option<&str>) -> Self {
        Self { asked: namespace.map(str::to_owned), ..self }
    }

    /// Returns the rules that are checked only in part, by the reason for that.
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

    /// Reports whether it is certain that no object of that kind and name exists.
    pub fn has_none(&self, world: &World, kind: &GroupKind, namespace: &str, name: &str) -> bool {
        self.within(kind, namespace) && Reader::new(world).json(kind, namespace, name).is_none()
    }

    /// Reports whether all objects of that kind are known.
    pub(super) fn all(&self, kind: &GroupKind) -> bool {
        !self.limits.contains_key(kind)
    }

    /// Reports whether all objects of that kind in the namespace are known.
    pub(super) fn within(&self, kind: &GroupKind, namespace: &str) -> bool {
        self.limits.get(kind).is_none_or(|limit| limit.within.contains(namespace))
    }
}
