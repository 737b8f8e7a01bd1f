//! The choices of the user that decide how controllers plan.

/// Choices that hold for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace whose catalogs are offered to all namespaces (`--namespace`).
    pub global_catalog_namespace: String,
    /// How long an InstallPlan's failing step is retried before the plan fails (reference/catalog-operator.md §5.3).
    pub install_plan_retry_timeout: jiff::SignedDuration,
    /// Namespaces that get copies of global operators even when OLMConfig switches copies off
    /// (`--protectedCopiedCSVNamespaces`, reference/olm-operator.md §5.4).
    pub protected_copied_csv_namespaces: std::collections::BTreeSet<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            global_catalog_namespace: "olm".to_owned(),
            install_plan_retry_timeout: jiff::SignedDuration::from_mins(1),
            protected_copied_csv_namespaces: std::collections::BTreeSet::new(),
        }
    }
}
