//! The choices of the user that decide how controllers plan.

/// Choices that hold for one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace whose catalogs are offered to all namespaces (`--namespace`).
    pub global_catalog_namespace: String,
    /// How long an InstallPlan's failing step is retried before the plan fails (olm-behaviour/installplan.md#phases).
    pub install_plan_retry_timeout: jiff::SignedDuration,
    /// How long a bundle's image may take, unless the OperatorGroup says otherwise; zero: as long as it takes
    /// (olm-behaviour/subscription.md#unpack-jobs).
    pub bundle_unpack_timeout: jiff::SignedDuration,
    /// Namespaces that get copies of global operators even when OLMConfig switches copies off (`--protectedCopiedCSVNamespaces`,
    /// olm-behaviour/operatorgroup.md#disabled-copies).
    pub protected_copied_csv_namespaces: std::collections::BTreeSet<String>,
    /// Serve catalogs of images and ConfigMaps from pods, as OLM does (`--catalog-pods`); without, they are read directly.
    pub catalog_pods: Option<CatalogPods>,
    /// Feature gate `OptionalManifests`: an InstallPlan goes on without objects that its bundle calls optional.
    pub optional_manifests: bool,
    /// Try optional objects again when their API appears after the InstallPlan has gone on without them (`--retry-optional`).
    pub retry_optional: bool,
}

/// The programs in the pods of catalogs, which OLM's flags of these names choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPods {
    /// `--opmImage`: serves content that was extracted from an image.
    pub opm_image: String,
    /// `--util-image`: has the program that copies content out of an image.
    pub util_image: String,
    /// `--configmapServerImage`: serves ConfigMaps.
    pub config_map_server_image: String,
    /// `--set-workload-user-id`: restricted pods run as user 1001.
    pub set_workload_user_id: bool,
}

impl Default for CatalogPods {
    /// OLM's own defaults.
    fn default() -> Self {
        Self {
            opm_image: "quay.io/operator-framework/opm:latest".to_owned(),
            util_image: "quay.io/operator-framework/olm:latest".to_owned(),
            config_map_server_image: "quay.io/operator-framework/configmap-operator-registry:latest".to_owned(),
            set_workload_user_id: false,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            global_catalog_namespace: "olm".to_owned(),
            install_plan_retry_timeout: jiff::SignedDuration::from_mins(1),
            bundle_unpack_timeout: jiff::SignedDuration::from_mins(10),
            protected_copied_csv_namespaces: std::collections::BTreeSet::new(),
            catalog_pods: None,
            optional_manifests: false,
            retry_optional: false,
        }
    }
}
