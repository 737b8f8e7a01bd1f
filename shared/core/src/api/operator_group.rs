//! OperatorGroup: the namespaces that the operators of a namespace watch.

use serde_json::Value;

use super::object;
use super::view::object_view;
use super::words::words;

words! {
    /// The strategy for upgrades of failed operators.
    UpgradeStrategy {
        /// Only operators that have succeeded are upgraded.
        Default = "Default",
        /// Failed operators and InstallPlans may be upgraded, too.
        FailForward = "TechPreviewUnsafeFailForward",
    }
}

/// The types of conditions, present only while they are True.
pub mod condition {
    /// The namespace has more than one OperatorGroup.
    pub const MULTIPLE: &str = "MultipleOperatorGroup";
    /// The ServiceAccount was not found.
    pub const SERVICE_ACCOUNT: &str = "OperatorGroupServiceAccount";
}

object_view! {
    /// A view of an OperatorGroup.
    OperatorGroup, conditions
}

impl<'a> OperatorGroup<'a> {
    /// `status.namespaces`: the recorded target namespaces; exactly `""` for all.
    pub fn namespaces(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["status", "namespaces"]).iter().filter_map(Value::as_str)
    }

    /// `spec.targetNamespaces`: the names of target namespaces.
    pub fn target_namespaces(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["spec", "targetNamespaces"]).iter().filter_map(Value::as_str)
    }

    /// `spec.selector`: the labels of the namespaces that it targets, or null.
    pub fn selector(self) -> &'a Value {
        object::at(self.json, &["spec", "selector"])
    }

    /// `spec.serviceAccountName`; empty when none.
    pub fn service_account(self) -> &'a str {
        object::text(self.json, &["spec", "serviceAccountName"])
    }

    /// `status.serviceAccountRef`: the ServiceAccount that was found, or null.
    pub fn service_account_ref(self) -> &'a Value {
        object::at(self.json, &["status", "serviceAccountRef"])
    }

    /// Returns whether a controller has written its status: `status.lastUpdated` is set.
    pub fn has_status(self) -> bool {
        !object::at(self.json, &["status", "lastUpdated"]).is_null()
    }

    /// `spec.staticProvidedAPIs`: whether only users may change its annotation of provided APIs.
    pub fn is_static(self) -> bool {
        object::at(self.json, &["spec", "staticProvidedAPIs"]).as_bool().unwrap_or_default()
    }

    /// `spec.upgradeStrategy`
    pub fn upgrade_strategy(self) -> UpgradeStrategy {
        match object::text(self.json, &["spec", "upgradeStrategy"]) {
            "" => UpgradeStrategy::Default,
            strategy => strategy.into(),
        }
    }

    /// Returns whether failed operators and InstallPlans may be upgraded as well.
    pub fn fails_forward(self) -> bool {
        self.upgrade_strategy() == UpgradeStrategy::FailForward
    }
}
