//! Settings of the user that controllers plan with.

/// The message for a bundle whose type is disabled.
pub const PLAIN_DISABLED: &str = "the bundle is of type k8s+v1, which the feature gate PlainBundles disables; enable it with --feature-gates PlainBundles=true, or choose a version of the package whose bundle is of type registry+v1";

/// OLM's default image of opm.
pub const OPM_IMAGE: &str = "quay.io/operator-framework/opm:latest";

/// Settings of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace whose catalogs are offered to all namespaces (`--namespace`).
    pub global_catalog_namespace: String,
    /// How long an InstallPlan's failing step is retried before the plan fails (olm-behaviour/installplan.md#phases).
    pub install_plan_retry_timeout: jiff::SignedDuration,
    /// How long unpacking a bundle image may take, unless the OperatorGroup sets its own timeout; zero means no limit
    /// (olm-behaviour/subscription.md#unpack-jobs).
    pub bundle_unpack_timeout: jiff::SignedDuration,
    /// Namespaces that receive copies of global operators even if OLMConfig disables copied CSVs
    /// (`--protectedCopiedCSVNamespaces`, olm-behaviour/operatorgroup.md#disabled-copies).
    pub protected_copied_csv_namespaces: std::collections::BTreeSet<String>,
    /// Serve catalogs of images and ConfigMaps from pods, as OLM does (`--catalog-pods`). If unset, they are read directly.
    pub catalog_pods: Option<CatalogPods>,
    /// Feature gate `OptionalManifests`: an InstallPlan continues without objects that its bundle marks as optional.
    pub optional_manifests: bool,
    /// Feature gate `PlainBundles`: bundle images of type `k8s+v1` are unpacked.
    pub plain_bundles: bool,
    /// Retry optional objects when their API becomes available after the InstallPlan continued without them
    /// (`--retry-optional`).
    pub retry_optional: bool,
}

/// The images of catalog pods, which OLM's flags of the same names set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPods {
    /// `--opmImage`: serves content extracted from a catalog image.
    pub opm_image: String,
    /// `--util-image`: contains the program that copies content out of an image.
    pub util_image: String,
    /// `--configmapServerImage`: serves ConfigMaps.
    pub config_map_server_image: String,
    /// `--set-workload-user-id`: pods with restricted security run as user 1001.
    pub set_workload_user_id: bool,
}

impl Default for CatalogPods {
    /// Returns OLM's own defaults.
    fn default() -> Self {
        Self {
            opm_image: OPM_IMAGE.to_owned(),
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
            plain_bundles: true,
            retry_optional: false,
        }
    }
}
