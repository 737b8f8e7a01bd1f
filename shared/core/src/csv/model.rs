//! A ClusterServiceVersion as the state machine reads it.

use serde_json::Value;

use crate::api::object::{self, Gvk};
use crate::membership;
use crate::world::{Reader, kind};

/// A ClusterServiceVersion, read where it lies in its JSON.
#[derive(Clone, Copy)]
pub(super) struct Csv<'a> {
    pub(super) json: &'a Value,
}

/// A CustomResourceDefinition that a ClusterServiceVersion owns or requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CrdDescription<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) owned: bool,
}

impl<'a> Csv<'a> {
    pub(super) fn name(self) -> &'a str {
        object::name(self.json)
    }

    pub(super) fn namespace(self) -> &'a str {
        object::namespace(self.json)
    }

    pub(super) fn uid(self) -> &'a str {
        object::uid(self.json)
    }

    pub(super) fn phase(self) -> &'a str {
        object::text(self.json, &["status", "phase"])
    }

    pub(super) fn reason(self) -> &'a str {
        object::text(self.json, &["status", "reason"])
    }

    pub(super) fn message(self) -> &'a str {
        object::text(self.json, &["status", "message"])
    }

    pub(super) fn replaces(self) -> &'a str {
        object::text(self.json, &["spec", "replaces"])
    }

    pub(super) fn strategy(self) -> &'a str {
        object::text(self.json, &["spec", "install", "strategy"])
    }

    /// The entries of the install strategy: `{name, label, spec}`.
    pub(super) fn deployments(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "deployments"])
    }

    /// Permissions in the operator's namespace: `{serviceAccountName, rules}`.
    pub(super) fn permissions(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "permissions"])
    }

    /// Permissions in the whole cluster.
    pub(super) fn cluster_permissions(self) -> &'a [Value] {
        object::list(self.json, &["spec", "install", "spec", "clusterPermissions"])
    }

    pub(super) fn webhooks(self) -> &'a [Value] {
        object::list(self.json, &["spec", "webhookdefinitions"])
    }

    pub(super) fn owned_api_services(self) -> &'a [Value] {
        object::list(self.json, &["spec", "apiservicedefinitions", "owned"])
    }

    pub(super) fn required_api_services(self) -> &'a [Value] {
        object::list(self.json, &["spec", "apiservicedefinitions", "required"])
    }

    /// Owned and required CustomResourceDefinitions by name; one that is both counts as owned.
    pub(super) fn crds(self) -> Vec<CrdDescription<'a>> {
        let read =
            |part: &str, owned| {
                object::list(self.json, &["spec", "customresourcedefinitions", part]).iter().map(move |d| {
                    CrdDescription { name: object::text(d, &["name"]), version: object::text(d, &["version"]), owned }
                })
            };
        let mut crds: Vec<CrdDescription<'_>> = read("owned", true).chain(read("required", false)).collect();
        crds.sort_by_key(|d| (d.name, !d.owned));
        crds.dedup_by_key(|d| d.name);
        crds
    }

    pub(super) fn owned_crd_names(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["spec", "customresourcedefinitions", "owned"])
            .iter()
            .map(|d| object::text(d, &["name"]))
    }

    /// `spec.nativeAPIs`
    pub(super) fn native_apis(self) -> impl Iterator<Item = Gvk> + use<'a> {
        object::list(self.json, &["spec", "nativeAPIs"])
            .iter()
            .map(|a| Gvk::new(object::text(a, &["group"]), object::text(a, &["version"]), object::text(a, &["kind"])))
    }

    /// When the phase last changed.
    pub(super) fn last_transition(self) -> Option<jiff::Timestamp> {
        object::parse_time(object::text(self.json, &["status", "lastTransitionTime"]))
    }

    /// The one this replaces, if it is there.
    pub(super) fn replaced<'w>(self, world: &Reader<'w>) -> Option<Csv<'w>> {
        let replaces = self.replaces();
        if replaces.is_empty() || replaces == self.name() {
            return None;
        }
        let json = world.json(&kind::CLUSTER_SERVICE_VERSION, self.namespace(), replaces)?;
        Some(Csv { json })
    }

    /// The ones that replace this, by name.
    pub(super) fn replacements<'w>(self, world: &Reader<'w>) -> Vec<Csv<'w>> {
        siblings(world, self.namespace()).filter(|c| c.replaces() == self.name() && c.name() != self.name()).collect()
    }
}

/// The ClusterServiceVersions of a namespace that are not copies, by name.
pub(super) fn siblings<'w>(world: &Reader<'w>, namespace: &str) -> impl Iterator<Item = Csv<'w>> + use<'w> {
    membership::originals(world, namespace).map(|json| Csv { json })
}
