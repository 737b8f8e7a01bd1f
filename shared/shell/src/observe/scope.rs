//! What is read of a cluster: which kinds, for which purpose.

use olm_core::api::object::Gvk;

use crate::cluster::api::Resource;

/// OLM's group.
pub(super) const OLM: &str = "operators.coreos.com";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Which kinds are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadScope {
    /// Subscriptions and ClusterServiceVersions.
    Installed,
    /// Also what says how they are resolved: OperatorGroups and InstallPlans.
    Resolution,
    /// The same, but what has to be there are the InstallPlans.
    Plans,
    /// Also CatalogSources, and what executing InstallPlans reads: CustomResourceDefinitions, ServiceAccounts, and RBAC.
    Planning,
    /// What says which OperatorGroups get into each other's way, of all namespaces whichever is asked about: namespaces,
    /// OperatorGroups, ClusterServiceVersions and Subscriptions.
    Groups,
    /// Also what the controllers make of that: copies of ClusterServiceVersions (as far as they say whose they are), ServiceAccounts,
    /// and RBAC.
    Tenancy,
    /// Also what could be installed: CatalogSources.
    Offers,
}

impl ReadScope {
    /// Is the kind read?
    pub(crate) fn includes(self, kind: &Kind) -> bool {
        const GROUPS: [&str; 4] = ["Namespace", "OperatorGroup", "ClusterServiceVersion", "Subscription"];
        const TENANCY: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
        match self {
            Self::Groups => GROUPS.contains(&kind.name),
            Self::Tenancy => GROUPS.contains(&kind.name) || TENANCY.contains(&kind.name),
            Self::Offers => Self::Tenancy.includes(kind) || kind.name == "CatalogSource",
            Self::Installed | Self::Resolution | Self::Plans | Self::Planning => kind.scope <= self,
        }
    }

    /// Does it matter what is in other namespaces than the one that is asked about?
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::Groups | Self::Tenancy | Self::Offers)
    }
}

/// A kind that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    version: &'static str,
    pub(crate) name: &'static str,
    pub(super) plural: &'static str,
    pub(crate) namespaced: bool,
    /// The smallest scope that includes it.
    pub(crate) scope: ReadScope,
}

const fn kind(
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    scope: ReadScope,
) -> Kind {
    Kind { group, version, name, plural, namespaced: true, scope }
}

impl Kind {
    const fn of_the_cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }

    /// Can nothing that is asked be said without it?
    pub(super) fn is_vital(&self, scope: ReadScope) -> bool {
        match scope {
            ReadScope::Installed | ReadScope::Resolution => {
                ["Subscription", "ClusterServiceVersion"].contains(&self.name)
            }
            ReadScope::Plans => self.name == "InstallPlan",
            ReadScope::Planning => false,
            ReadScope::Groups | ReadScope::Tenancy | ReadScope::Offers => self.name == "OperatorGroup",
        }
    }

    /// Where it lives in the API.
    pub(super) fn located(&self) -> Resource {
        let Self { group, version, name, plural, namespaced, .. } = *self;
        Resource { gvk: Gvk::new(group, version, name), plural: plural.to_owned(), namespaced }
    }

    /// `installplans.operators.coreos.com`
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The kinds that are read.
pub(crate) const KINDS: [Kind; 14] = [
    kind(OLM, "v1alpha1", "Subscription", "subscriptions", ReadScope::Installed),
    kind(OLM, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions", ReadScope::Installed),
    kind(OLM, "v1", "OperatorGroup", "operatorgroups", ReadScope::Resolution),
    kind(OLM, "v1alpha1", "InstallPlan", "installplans", ReadScope::Resolution),
    kind(OLM, "v1alpha1", "CatalogSource", "catalogsources", ReadScope::Planning),
    kind("", "v1", "Namespace", "namespaces", ReadScope::Planning).of_the_cluster(),
    kind("", "v1", "ServiceAccount", "serviceaccounts", ReadScope::Planning),
    kind(RBAC, "v1", "Role", "roles", ReadScope::Planning),
    kind(RBAC, "v1", "RoleBinding", "rolebindings", ReadScope::Planning),
    kind(RBAC, "v1", "ClusterRole", "clusterroles", ReadScope::Planning).of_the_cluster(),
    kind(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", ReadScope::Planning).of_the_cluster(),
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", ReadScope::Planning)
        .of_the_cluster(),
    kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", ReadScope::Planning).of_the_cluster(),
    kind("apps", "v1", "Deployment", "deployments", ReadScope::Planning),
];
