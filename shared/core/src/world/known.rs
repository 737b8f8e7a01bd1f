//! Tracks which kinds are completely known: an object that an incomplete list does not contain is not proven to be missing.

use std::collections::{BTreeMap, BTreeSet};

use super::{GroupKind, Reader, World, kind};
use crate::api::object;

/// The kinds of which all objects are known, and those of which only some are.
#[derive(Clone, Debug, Default)]
pub struct Known {
    limits: BTreeMap<GroupKind, Limit>,
    /// The namespace that is checked; `None` for all.
    asked: Option<String>,
}

/// A kind of which not all objects are known.
#[derive(Clone, Debug)]
pub struct Limit {
    /// The namespaces in which all of them are known.
    pub within: BTreeSet<String>,
    /// Whether the objects of other namespaces could not be read.
    pub hides: bool,
    /// Why the others are not known, a sentence without a full stop.
    pub why: String,
}

/// The kinds whose completeness conclusions depend on.
const KINDS: [GroupKind; 21] = [
    kind::OLM_CONFIG,
    kind::LEASE,
    kind::CATALOG_SOURCE,
    kind::CUSTOM_RESOURCE_DEFINITION,
    kind::API_SERVICE,
    kind::MUTATING_WEBHOOK_CONFIGURATION,
    kind::VALIDATING_WEBHOOK_CONFIGURATION,
    kind::POD,
    kind::SERVICE,
    kind::SECRET,
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

    /// Derives what is known from files of unknown completeness; `why` states that. All Namespaces are known if `kube-system` is among them, and all
    /// ClusterRoles and their bindings if `cluster-admin` is. Of other kinds, all objects are known in each namespace in which the files
    /// contain at least one.
    pub fn of_files(world: &World, why: &str) -> Self {
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
            let limit = Limit { within: within.collect(), hides: false, why: why.to_owned() };
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

    /// Notes that all objects of this kind are known.
    pub fn complete(&mut self, kind: &GroupKind) {
        self.limits.remove(kind);
    }

    /// Returns the limits that concern the checked namespaces, by kind, and whether the kind is known in all of them.
    pub fn limits(&self) -> impl Iterator<Item = (&GroupKind, &Limit, bool)> {
        let is_known = |limit: &Limit| self.asked.as_ref().is_some_and(|asked| limit.within.contains(asked));
        self.limits.iter().map(move |(gk, limit)| (gk, limit, is_known(limit)))
    }

    /// Returns why it is not certain that a namespace (empty for cluster-scoped kinds) contains no further objects of a kind; `None` if
    /// all are known.
    pub fn why_unknown(&self, kind: &GroupKind, namespace: &str) -> Option<&str> {
        self.limits.get(kind).filter(|limit| !limit.within.contains(namespace)).map(|limit| limit.why.as_str())
    }

    /// Reports whether it is certain that no object of that kind and name exists.
    pub fn has_none(&self, world: &World, kind: &GroupKind, namespace: &str, name: &str) -> bool {
        self.within(kind, namespace) && Reader::new(world).json(kind, namespace, name).is_none()
    }

    /// Reports whether all objects of that kind are known.
    pub fn all(&self, kind: &GroupKind) -> bool {
        !self.limits.contains_key(kind)
    }

    /// Reports whether all objects of that kind in the namespace are known.
    pub fn within(&self, kind: &GroupKind, namespace: &str) -> bool {
        self.why_unknown(kind, namespace).is_none()
    }
}
