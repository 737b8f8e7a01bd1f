//! Subscription: a request to install a package and to follow one of its channels.

use super::conditions::Conditions;
use super::object;
use super::view::{object_view, view};
use super::words::words;

words! {
    /// The approval mode of InstallPlans.
    Approval {
        /// Not set, which means Automatic.
        None = "",
        /// InstallPlans are created approved.
        Automatic = "Automatic",
        /// InstallPlans wait until a user approves them.
        Manual = "Manual",
    }
}

words! {
    /// The state of a Subscription.
    State {
        /// Not set yet: nothing was resolved.
        None = "",
        /// Set when an InstallPlan was created, until its ClusterServiceVersion exists.
        UpgradePending = "UpgradePending",
        /// Never set.
        UpgradeAvailable = "UpgradeAvailable",
        /// Set when the ClusterServiceVersion of currentCSV exists, in whatever phase.
        AtLatestKnown = "AtLatestKnown",
        /// Set when the InstallPlan has failed and the OperatorGroup allows failed operators to be upgraded.
        Failed = "UpgradeFailed",
    }
}

/// The types of conditions. They are absent, or False, when they do not hold.
pub mod condition_type {
    /// A CatalogSource of the namespace cannot be read.
    pub const CATALOG_SOURCES_UNHEALTHY: &str = "CatalogSourcesUnhealthy";
    /// The dependencies of the namespace's Subscriptions cannot be resolved.
    pub const RESOLUTION_FAILED: &str = "ResolutionFailed";
    /// The image of a bundle is being unpacked.
    pub const BUNDLE_UNPACKING: &str = "BundleUnpacking";
    /// The image of a bundle could not be unpacked.
    pub const BUNDLE_UNPACK_FAILED: &str = "BundleUnpackFailed";
    /// The InstallPlan does not exist.
    pub const INSTALL_PLAN_MISSING: &str = "InstallPlanMissing";
    /// The InstallPlan is not complete.
    pub const INSTALL_PLAN_PENDING: &str = "InstallPlanPending";
    /// The InstallPlan failed.
    pub const INSTALL_PLAN_FAILED: &str = "InstallPlanFailed";
    /// The catalog is a directory that the controllers read: there is no CatalogSource.
    pub const CATALOG_DIRECTORY: &str = "CatalogDirectory";
    /// The package is deprecated.
    pub const PACKAGE_DEPRECATED: &str = "PackageDeprecated";
    /// The channel is deprecated.
    pub const CHANNEL_DEPRECATED: &str = "ChannelDeprecated";
    /// The installed bundle is deprecated.
    pub const BUNDLE_DEPRECATED: &str = "BundleDeprecated";
    /// The package, channel or bundle is deprecated.
    pub const DEPRECATED: &str = "Deprecated";
}

/// The reasons of the condition [`condition_type::RESOLUTION_FAILED`].
pub mod reason {
    /// No set of bundles satisfies the constraints.
    pub const CONSTRAINTS_NOT_SATISFIABLE: &str = "ConstraintsNotSatisfiable";
    /// The constraints could not be determined.
    pub const ERROR_PREVENTED_RESOLUTION: &str = "ErrorPreventedResolution";
}

object_view! {
    /// A view of a Subscription.
    Subscription, conditions
}

impl<'a> Subscription<'a> {
    /// `spec.name`: the package.
    pub fn package(self) -> &'a str {
        self.spec("name")
    }

    /// `spec.channel`; empty for the package's default channel.
    pub fn channel(self) -> &'a str {
        self.spec("channel")
    }

    /// `spec.source`: the CatalogSource.
    pub fn source(self) -> &'a str {
        self.spec("source")
    }

    /// `spec.sourceNamespace`
    pub fn source_namespace(self) -> &'a str {
        self.spec("sourceNamespace")
    }

    /// `spec.startingCSV`
    pub fn starting_csv(self) -> &'a str {
        self.spec("startingCSV")
    }

    /// `spec.installPlanApproval`
    pub fn approval(self) -> Approval {
        Approval::from(self.approval_text())
    }

    /// `spec.installPlanApproval` as text.
    pub fn approval_text(self) -> &'a str {
        self.spec("installPlanApproval")
    }

    fn spec(self, field: &str) -> &'a str {
        object::text(self.json, &["spec", field])
    }

    /// `status.currentCSV`
    pub fn current_csv(self) -> &'a str {
        self.status().current_csv()
    }

    /// `status.installedCSV`
    pub fn installed_csv(self) -> &'a str {
        self.status().installed_csv()
    }

    /// `status.state`
    pub fn state(self) -> State {
        self.status().state()
    }

    /// `status.state`, including values that OLM does not write.
    pub fn state_text(self) -> &'a str {
        self.status().state_text()
    }

    /// `status.installPlanRef.name`; empty: it refers to none.
    pub fn plan_name(self) -> &'a str {
        self.status().plan_name()
    }

    /// `status`
    pub fn status(self) -> SubscriptionStatus<'a> {
        SubscriptionStatus::new(object::at(self.json, &["status"]))
    }
}

view! {
    /// A view of the status of a Subscription.
    SubscriptionStatus
}

impl<'a> SubscriptionStatus<'a> {
    /// `currentCSV`: what resolution chose last.
    pub fn current_csv(self) -> &'a str {
        object::text(self.json, &["currentCSV"])
    }

    /// `installedCSV`
    pub fn installed_csv(self) -> &'a str {
        object::text(self.json, &["installedCSV"])
    }

    /// `state`
    pub fn state(self) -> State {
        State::from(self.state_text())
    }

    /// `state`, including values that OLM does not write.
    pub fn state_text(self) -> &'a str {
        object::text(self.json, &["state"])
    }

    /// `installPlanRef.name`; empty: it refers to none.
    pub fn plan_name(self) -> &'a str {
        object::text(self.json, &["installPlanRef", "name"])
    }

    /// `installPlanGeneration`; 0 when absent.
    pub fn plan_generation(self) -> i64 {
        object::at(self.json, &["installPlanGeneration"]).as_i64().unwrap_or_default()
    }

    /// `conditions`
    pub fn conditions(self) -> Conditions<'a> {
        Conditions::from_status(self.json)
    }
}
