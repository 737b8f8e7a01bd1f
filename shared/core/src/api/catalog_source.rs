//! CatalogSource: where bundles come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::crd::kubernetes::{Affinity, Quantity, Toleration};
use super::object;
use super::parts::{Condition, Time, texts};
use super::raw::{Carried, Raw};
use super::resource::View;

/// A source of packages: an image, an address, or a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["metadata", "spec"]))]
pub struct CatalogSource {
    /// What is asked for.
    pub spec: CatalogSourceSpec,
    /// What was observed.
    pub status: CatalogSourceStatus,
}

impl View for CatalogSource {
    const KIND: &'static str = "CatalogSource";
}

texts! {
    /// How a catalog is served.
    SourceType {
        /// Not said.
        None = "",
        /// From an image or at an address, over gRPC.
        Grpc = "grpc",
        /// From a ConfigMap.
        ConfigMap = "configmap",
        /// From a ConfigMap, the older name.
        Internal = "internal",
    }
}

/// What a CatalogSource asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["sourceType"]))]
pub struct CatalogSourceSpec {
    /// How the catalog is served.
    pub source_type: SourceType,
    /// Higher is preferred when a dependency could come from several catalogs.
    #[schemars(extend("format" = null))]
    pub priority: i64,
    /// The ConfigMap with the content, for source types configmap and internal.
    pub config_map: String,
    /// host:port of a registry server that is already there.
    pub address: String,
    /// The image that holds the catalog.
    pub image: String,
    /// How the pod that serves the image is run.
    pub grpc_pod_config: Option<GrpcPodConfig>,
    /// How newer catalog images are found.
    pub update_strategy: Option<UpdateStrategy>,
    /// Pull secrets in the catalog's namespace.
    pub secrets: Vec<String>,
    /// Name for people.
    pub display_name: String,
    /// What is in it.
    pub description: Carried<String>,
    /// Who publishes it.
    pub publisher: String,
    /// A picture.
    pub icon: Carried<Icon>,
}

/// How the pod of a catalog image is run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct GrpcPodConfig {
    /// The pod's tolerations.
    pub tolerations: Vec<Raw<Toleration>>,
    /// The pod's node selector.
    pub node_selector: Option<BTreeMap<String, String>>,
    /// The pod's affinity.
    pub affinity: Option<Raw<Affinity>>,
    /// The pod's priority class.
    pub priority_class_name: Option<String>,
    /// Which pod security standard the pod meets.
    #[schemars(extend("enum" = ["legacy", "restricted"]))]
    pub security_context_config: Option<String>,
    /// How much memory the server should need; becomes its request.
    pub memory_target: Option<Raw<Quantity>>,
    /// Where in the image the catalog lies, when the image has no server.
    pub extract_content: Option<ExtractContent>,
}

/// Where in a catalog image the content lies.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["catalogDir"]))]
pub struct ExtractContent {
    /// The folder of a cache made for the content.
    pub cache_dir: String,
    /// The folder of the content.
    pub catalog_dir: String,
}

/// How newer catalog images are found.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// By looking at the registry from time to time.
    pub registry_poll: Option<RegistryPoll>,
}

/// How often a registry is looked at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RegistryPoll {
    /// A Go duration such as 30m.
    pub interval: Option<String>,
}

/// A picture.
#[derive(JsonSchema)]
pub struct Icon {
    /// The picture in base64.
    pub base64data: String,
    /// Its media type.
    pub mediatype: String,
}

/// What was observed of a CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogSourceStatus {
    /// What is wrong, for people.
    pub message: String,
    /// What is wrong, one word.
    pub reason: String,
    /// The ConfigMap in use.
    pub config_map_reference: Option<ConfigMapReference>,
    /// The server in use.
    pub registry_service: Option<RegistryService>,
    /// The connection to the server.
    pub connection_state: Option<ConnectionState>,
    /// When the registry was last looked at.
    pub latest_image_registry_poll: Time,
    /// Conditions.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The ConfigMap that a catalog was read from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct ConfigMapReference {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
    /// When it was read.
    pub last_update_time: Time,
}

/// The server of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RegistryService {
    /// Always grpc.
    pub protocol: String,
    /// The Service's name.
    pub service_name: String,
    /// The Service's namespace.
    pub service_namespace: String,
    /// The Service's port.
    pub port: String,
    /// When it was made.
    pub created_at: Time,
}

/// The connection to a catalog's server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["lastObservedState"]))]
pub struct ConnectionState {
    /// host:port.
    pub address: String,
    /// IDLE, CONNECTING, READY, TRANSIENT_FAILURE or SHUTDOWN.
    pub last_observed_state: String,
    /// When it last changed.
    pub last_connect: Time,
}

/// Where the content of a CatalogSource comes from (reference/catalog-operator.md §1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// A registry that is served at this address.
    Address(&'a str),
    /// A catalog image.
    Image(&'a str),
    /// A ConfigMap.
    ConfigMap(&'a str),
    /// Nowhere: the spec makes no sense, for this reason.
    Invalid(String),
}

impl<'a> Origin<'a> {
    /// Reads the spec of a CatalogSource.
    pub fn of(source: &'a Value) -> Self {
        let field = |key| object::text(source, &["spec", key]);
        let source_type = field("sourceType");
        match (source_type, field("configMap"), field("address"), field("image")) {
            ("internal" | "configmap", "", ..) => {
                Self::Invalid(format!("configmap name unset: must be set for sourcetype: {source_type}"))
            }
            ("internal" | "configmap", config_map, ..) => Self::ConfigMap(config_map),
            ("grpc", _, "", "") => Self::Invalid(format!(
                "image and address unset: at least one must be set for sourcetype: {source_type}"
            )),
            // With both, what is dialled is the address.
            ("grpc", _, "", image) => Self::Image(image),
            ("grpc", _, address, _) => Self::Address(address),
            _ => Self::Invalid(format!("unknown sourcetype: {source_type}")),
        }
    }
}

/// Where a catalog's content is read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A directory that was given on the command line: it stays, whatever object there is.
    Directory,
    /// A registry at `host:port`.
    Address(String),
    /// An image, read without a server.
    Image {
        /// Its reference.
        reference: String,
        /// The folder of the catalog in it, where the image's label does not count.
        catalog_dir: Option<String>,
        /// The pull secrets in the catalog's namespace, best first.
        secrets: Vec<String>,
    },
    /// A ConfigMap in the catalog's namespace, read without a server.
    ConfigMap(String),
}

impl std::fmt::Display for Target {
    /// As `status.connectionState.address` shows it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory => Ok(()),
            Self::Address(address) => f.write_str(address),
            Self::Image { reference, .. } => f.write_str(reference),
            Self::ConfigMap(name) => write!(f, "configmap/{name}"),
        }
    }
}

/// `spec.grpcPodConfig.extractContent.catalogDir`: where in its image the catalog of a CatalogSource lies.
pub fn catalog_dir(source: &Value) -> Option<String> {
    let extracted = object::at(source, &["spec", "grpcPodConfig", "extractContent"]);
    extracted.is_object().then(|| object::text(extracted, &["catalogDir"])).filter(|d| !d.is_empty()).map(str::to_owned)
}

/// When the image of a container is pulled: what a digest names never changes (reference/catalog-operator.md §1.4).
pub fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') { "IfNotPresent" } else { "Always" }
}

/// The names of the Secrets, in its namespace, with which the images of a CatalogSource and of its bundles are pulled.
pub fn pull_secrets(source: &Value) -> Vec<String> {
    let names = object::list(source, &["spec", "secrets"]).iter().filter_map(Value::as_str);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
