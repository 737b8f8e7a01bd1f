//! The kinds that are read from a cluster for each purpose.

use olm_core::api::kinds::{self, Kind};

/// A set of kinds to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadScope {
    /// Nothing: the command lists what it needs.
    Nothing,
    /// Subscriptions and ClusterServiceVersions.
    Installed,
    /// Also OperatorGroups and InstallPlans, which determine their resolution.
    Resolution,
    /// The same kinds, but the required kind is InstallPlan.
    Plans,
    /// Also CatalogSources, and the kinds that the execution of InstallPlans reads: CustomResourceDefinitions, ServiceAccounts, and RBAC.
    Planning,
    /// Subscriptions, ClusterServiceVersions, OperatorGroups, InstallPlans and CatalogSources, of each only what the state of operators is
    /// derived from.
    Operators,
    /// The same kinds, whole, and Deployments: what a diagnosis of operators begins with.
    Diagnosis,
    /// The kinds that determine conflicts of OperatorGroups, in all namespaces regardless of the requested one: namespaces, OperatorGroups,
    /// ClusterServiceVersions and Subscriptions.
    Groups,
    /// Also the objects that the controllers derive from them: copies of ClusterServiceVersions (only their origin), ServiceAccounts, and
    /// RBAC.
    Tenancy,
    /// Also CatalogSources, which offer bundles to install.
    Offers,
}

/// The kinds that are read, each with the smallest of the narrow scopes that includes it.
static KINDS: [(Kind, ReadScope); 14] = [
    (kinds::SUBSCRIPTION, ReadScope::Installed),
    (kinds::CLUSTER_SERVICE_VERSION, ReadScope::Installed),
    (kinds::OPERATOR_GROUP, ReadScope::Resolution),
    (kinds::INSTALL_PLAN, ReadScope::Resolution),
    (kinds::CATALOG_SOURCE, ReadScope::Planning),
    (kinds::NAMESPACE, ReadScope::Planning),
    (kinds::SERVICE_ACCOUNT, ReadScope::Planning),
    (kinds::ROLE, ReadScope::Planning),
    (kinds::ROLE_BINDING, ReadScope::Planning),
    (kinds::CLUSTER_ROLE, ReadScope::Planning),
    (kinds::CLUSTER_ROLE_BINDING, ReadScope::Planning),
    (kinds::CUSTOM_RESOURCE_DEFINITION, ReadScope::Planning),
    (kinds::API_SERVICE, ReadScope::Planning),
    (kinds::DEPLOYMENT, ReadScope::Planning),
];

/// Returns the kinds that any scope includes.
pub(crate) fn all() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().map(|(kind, _)| kind)
}

/// Returns the kind of that group and name, if any scope includes it.
pub(crate) fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    all().find(|known| (known.group, known.kind) == (group, kind))
}

impl ReadScope {
    /// Returns the kinds that are read.
    pub(crate) fn kinds(self) -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(move |(kind, smallest)| self.includes(kind, *smallest)).map(|(kind, _)| kind)
    }

    fn includes(self, kind: &Kind, smallest: Self) -> bool {
        const GROUPS: [Kind; 4] =
            [kinds::NAMESPACE, kinds::OPERATOR_GROUP, kinds::CLUSTER_SERVICE_VERSION, kinds::SUBSCRIPTION];
        const TENANCY: [Kind; 5] = [
            kinds::SERVICE_ACCOUNT,
            kinds::ROLE,
            kinds::ROLE_BINDING,
            kinds::CLUSTER_ROLE,
            kinds::CLUSTER_ROLE_BINDING,
        ];
        match self {
            Self::Operators => smallest <= Self::Resolution || *kind == kinds::CATALOG_SOURCE,
            Self::Diagnosis => {
                smallest <= Self::Resolution || [kinds::CATALOG_SOURCE, kinds::DEPLOYMENT].contains(kind)
            }
            Self::Groups => GROUPS.contains(kind),
            Self::Tenancy => GROUPS.contains(kind) || TENANCY.contains(kind),
            Self::Offers => Self::Tenancy.includes(kind, smallest) || *kind == kinds::CATALOG_SOURCE,
            Self::Nothing | Self::Installed | Self::Resolution | Self::Plans | Self::Planning => smallest <= self,
        }
    }

    /// Returns whether other namespaces than the requested one are read, too.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::Groups | Self::Tenancy | Self::Offers)
    }

    /// Returns whether the CatalogSources that are available in a namespace are read, too: those of the global namespaces.
    pub(super) fn needs_global_catalogs(self) -> bool {
        matches!(self, Self::Planning | Self::Operators | Self::Diagnosis)
    }

    /// Returns whether the request fails when the kind cannot be listed.
    pub(super) fn requires(self, kind: &Kind) -> bool {
        match self {
            Self::Installed | Self::Resolution | Self::Diagnosis => {
                [kinds::SUBSCRIPTION, kinds::CLUSTER_SERVICE_VERSION].contains(kind)
            }
            Self::Plans => *kind == kinds::INSTALL_PLAN,
            Self::Nothing | Self::Planning | Self::Operators => false,
            Self::Groups | Self::Tenancy | Self::Offers => *kind == kinds::OPERATOR_GROUP,
        }
    }
}
