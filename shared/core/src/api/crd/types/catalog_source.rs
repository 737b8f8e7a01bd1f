//! CatalogSource: a source of bundles.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::super::kubernetes::{Affinity, Quantity, Toleration};
use super::carried::Carried;
use super::parts::{Condition, Time};

/// A catalog of operator packages. Subscriptions of its namespace can use it; a catalog in the global catalog namespace serves all
/// namespaces.
#[derive(Default, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct CatalogSource {
    /// The source of the catalog and the configuration of its server. Written by users.
    pub spec: CatalogSourceSpec,
    /// The observed state of the catalog. Written by the controllers.
    pub status: CatalogSourceStatus,
}

/// The source of a catalog and the configuration of its server.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["sourceType"]))]
pub struct CatalogSourceSpec {
    /// The type of the source: grpc for a catalog image or the address of a registry server, configmap (or its older name internal) for a
    /// ConfigMap. Any other value is invalid and sets status.reason to SpecInvalidError.
    pub source_type: String,
    /// The priority of the catalog when several catalogs can satisfy a dependency: a higher number is preferred. Defaults to 0. The
    /// catalog of the bundle that has the dependency is always preferred to others.
    #[schemars(extend("format" = null))]
    pub priority: i64,
    /// The name of the ConfigMap, in the namespace of the CatalogSource, that holds the content. Required for the types configmap and
    /// internal, ignored for grpc. The ConfigMap's keys are clusterServiceVersions, customResourceDefinitions and packages, each a YAML
    /// list.
    pub config_map: String,
    /// The address of a registry server as HOST:PORT, dialed with gRPC and without TLS. The type grpc requires address or image; if both
    /// are set, content is read from address.
    pub address: String,
    /// The reference of the catalog image, by tag or digest. The type grpc requires image or address. Written by users, or by the
    /// controllers if the annotation olm.catalogImageTemplate is set.
    pub image: String,
    /// The configuration of the pod that serves the catalog image. Without catalog pods (kubectl olm run --catalog-pods) only
    /// extractContent.catalogDir has an effect.
    pub grpc_pod_config: Option<GrpcPodConfig>,
    /// The strategy for detecting a newer image behind the same tag. If not set, the registry is not polled.
    pub update_strategy: Option<UpdateStrategy>,
    /// The names of image pull Secrets in the namespace of the CatalogSource, in order of preference. They are used for the catalog image
    /// and for the bundle images that it refers to.
    pub secrets: Vec<String>,
    /// The name of the catalog in listings and consoles. Informational.
    pub display_name: String,
    /// The description of the catalog's content for consoles. Informational.
    pub description: Carried<String>,
    /// The publisher of the catalog. Informational.
    pub publisher: String,
    /// The icon of the catalog for consoles. Informational.
    pub icon: Carried<Icon>,
}

/// The configuration of a pod that serves a catalog image.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GrpcPodConfig {
    /// The tolerations of the catalog pod. Defaults to none.
    pub tolerations: Vec<Carried<Toleration>>,
    /// The node selector of the catalog pod. Defaults to kubernetes.io/os: linux, which a value here replaces.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// The affinity of the catalog pod. Defaults to none.
    pub affinity: Option<Carried<Affinity>>,
    /// The name of the PriorityClass of the catalog pod. The annotation operatorframework.io/priorityclass of the CatalogSource overrides
    /// it.
    pub priority_class_name: Option<String>,
    /// The security context of the catalog pod: restricted meets the restricted Pod Security Standard, legacy sets none. Defaults to
    /// restricted if the namespace enforces that standard, else to legacy.
    #[schemars(extend("enum" = ["legacy", "restricted"]))]
    pub security_context_config: Option<String>,
    /// The memory request of the catalog server and, as GOMEMLIMIT, its soft limit: a quantity such as 100Mi. Defaults to a request of
    /// 50Mi without limit.
    pub memory_target: Option<Carried<Quantity>>,
    /// The location of the content in a catalog image that contains no server. If not set, the image's label
    /// operators.operatorframework.io.index.configs.v1 names the directory.
    pub extract_content: Option<ExtractContent>,
}

/// The location of the content in a catalog image.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogDir"]))]
pub struct ExtractContent {
    /// The directory in the image with a cache that opm generated from the content. Used by catalog pods only; if empty, the server
    /// generates the cache at its start.
    pub cache_dir: String,
    /// The directory in the image with the file-based catalog, such as /configs.
    pub catalog_dir: String,
}

/// The strategy for detecting newer catalog images.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// The polling of the image registry. Applies to the type grpc with an image only.
    pub registry_poll: Option<RegistryPoll>,
}

/// The polling of an image registry.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RegistryPoll {
    /// The time between polls as a Go duration, such as 30m or 1h. An interval that cannot be parsed sets status.reason to
    /// InvalidIntervalError and counts as 15m; without one the registry is not polled.
    pub interval: Option<String>,
}

/// An icon for consoles.
#[derive(JsonSchema)]
pub struct Icon {
    /// The content of the image file, encoded in base64.
    pub base64data: String,
    /// The media type of the image, such as image/svg+xml or image/png.
    pub mediatype: String,
}

/// The observed state of a catalog.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogSourceStatus {
    /// The human-readable explanation of reason. Empty if no problem is known.
    pub message: String,
    /// The machine-readable cause of a problem: SpecInvalidError, ConfigMapError, RegistryServerError or InvalidIntervalError. Empty if
    /// no problem is known.
    pub reason: String,
    /// The revision of the ConfigMap from which the content was read. Set for the types configmap and internal.
    pub config_map_reference: Option<ConfigMapReference>,
    /// The registry server of the catalog. Without catalog pods at most protocol and createdAt are set.
    pub registry_service: Option<RegistryService>,
    /// The state of the connection to the catalog's server, image or ConfigMap.
    pub connection_state: Option<ConnectionState>,
    /// The time at which the image registry was last polled.
    pub latest_image_registry_poll: Time,
    /// The conditions TemplatesHaveResolved and ResolvedImage. Set if the annotation olm.catalogImageTemplate is set.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The revision of a ConfigMap from which a catalog was read.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct ConfigMapReference {
    /// The name of the ConfigMap.
    pub name: String,
    /// The namespace of the ConfigMap, which is that of the CatalogSource.
    pub namespace: String,
    /// The UID that the ConfigMap had when it was read.
    pub uid: String,
    /// The resourceVersion that the ConfigMap had when it was read.
    pub resource_version: String,
    /// The time at which this revision was recorded.
    pub last_update_time: Time,
}

/// The registry server of a catalog.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RegistryService {
    /// The protocol of the server. Always grpc.
    pub protocol: String,
    /// The name of the Service of the catalog pod: that of the CatalogSource with hyphens in place of dots.
    pub service_name: String,
    /// The namespace of the Service, which is that of the CatalogSource.
    pub service_namespace: String,
    /// The port of the Service as a string, always 50051.
    pub port: String,
    /// The time at which the server was created or last replaced.
    pub created_at: Time,
}

/// The state of the connection to a catalog.
#[derive(Default, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastObservedState"]))]
pub struct ConnectionState {
    /// The address that content is read from: HOST:PORT of a server, or, if it is read without a server, the reference of the image or
    /// configmap/NAME.
    pub address: String,
    /// The state that was last observed: IDLE, CONNECTING, READY, TRANSIENT_FAILURE or SHUTDOWN, as in gRPC. Subscriptions are resolved
    /// again when it becomes READY.
    pub last_observed_state: String,
    /// The time at which address or lastObservedState last changed, or at which the connection was last re-established.
    pub last_connect: Time,
}
