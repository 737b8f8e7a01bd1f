//! OperatorGroup: which namespaces the operators of a namespace watch.

use serde_json::Value;

use super::conditions::Conditions;
use super::object;
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

/// An OperatorGroup, read where it lies in its JSON.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatorGroup<'a> {
    /// The whole.
    pub json: &'a Value,
}

impl<'a> OperatorGroup<'a> {
    /// Reads it where it lies.
    pub const fn of(json: &'a Value) -> Self {
        Self { json }
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        object::name(self.json)
    }

    /// Its namespace: the one its members run in.
    pub fn namespace(self) -> &'a str {
        object::namespace(self.json)
    }

    /// `status.namespaces`: the namespaces that it targets, as recorded; exactly `""` for all.
    pub fn target_namespaces(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["status", "namespaces"]).iter().filter_map(Value::as_str)
    }

    /// `spec.targetNamespaces`: the namespaces that it names.
    pub fn wanted_namespaces(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["spec", "targetNamespaces"]).iter().filter_map(Value::as_str)
    }

    /// `spec.selector`: the labels of the namespaces that it targets, or null.
    pub fn selector(self) -> &'a Value {
        object::at(self.json, &["spec", "selector"])
    }

    /// `spec.serviceAccountName`; empty: none.
    pub fn service_account(self) -> &'a str {
        object::text(self.json, &["spec", "serviceAccountName"])
    }

    /// `status.serviceAccountRef.name`: the ServiceAccount that was found; empty: none.
    pub fn found_service_account(self) -> &'a str {
        object::text(self.json, &["status", "serviceAccountRef", "name"])
    }

    /// `spec.staticProvidedAPIs`: may its annotation of provided APIs be changed only by people?
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

    /// May failed operators and InstallPlans be upgraded, too?
    pub fn fails_forward(self) -> bool {
        self.upgrade_strategy() == UpgradeStrategy::FailForward
    }

    /// `status.conditions`
    pub fn conditions(self) -> Conditions<'a> {
        Conditions::of(self.json)
    }
}
