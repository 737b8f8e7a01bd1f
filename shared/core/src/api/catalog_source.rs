//! CatalogSource: a source of bundles.

use serde_json::Value;

use super::names::is_subdomain;
use super::object;
use super::view::object_view;

/// The annotation of a CatalogSource with the names of ConfigMaps of its namespace, separated by commas, in which its content is
/// stored as compressed blobs. Upstream OLM ignores it and connects to `spec.address`.
pub const CONFIG_MAPS: &str = "kubectl-olm/catalog-config-maps";

/// The maximum number of ConfigMaps of a catalog.
const MOST_CONFIG_MAPS: usize = 32;

object_view! {
    /// A view of a CatalogSource.
    CatalogSource, conditions
}

impl<'a> CatalogSource<'a> {
    /// `spec.sourceType`
    pub fn source_type(self) -> &'a str {
        object::text(self.json, &["spec", "sourceType"])
    }

    /// `spec.image`
    pub fn image(self) -> &'a str {
        object::text(self.json, &["spec", "image"])
    }

    /// `spec.priority`: of several catalogs that contain a package, the one with the highest priority is preferred.
    pub fn priority(self) -> i64 {
        object::at(self.json, &["spec", "priority"]).as_i64().unwrap_or_default()
    }

    /// `spec.secrets`: the names of the pull secrets for its images.
    pub fn secrets(self) -> impl Iterator<Item = &'a str> {
        object::list(self.json, &["spec", "secrets"]).iter().filter_map(Value::as_str).filter(|name| !name.is_empty())
    }

    /// `status.message`
    pub fn message(self) -> &'a str {
        object::text(self.json, &["status", "message"])
    }

    /// `status.reason`
    pub fn reason(self) -> &'a str {
        object::text(self.json, &["status", "reason"])
    }

    /// `status.connectionState.lastObservedState`
    pub fn connection_state(self) -> &'a str {
        object::text(self.json, &["status", "connectionState", "lastObservedState"])
    }
}

/// The source of a CatalogSource's content (olm-behaviour/catalogsource.md#validation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// A registry that is served at this address.
    Address(&'a str),
    /// A catalog image.
    Image(&'a str),
    /// A ConfigMap.
    ConfigMap(&'a str),
    /// ConfigMaps with the blobs of a catalog, from the annotation [`CONFIG_MAPS`].
    ConfigMaps(Vec<&'a str>),
    /// None: the spec is invalid, for this reason.
    Invalid(String),
}

impl<'a> Origin<'a> {
    /// Reads the spec of a CatalogSource.
    pub fn from_source(source: &'a Value) -> Self {
        let field = |key| object::text(source, &["spec", key]);
        let source_type = field("sourceType");
        if let Some(names) = object::annotation(source, CONFIG_MAPS).filter(|_| source_type == "grpc") {
            return Self::config_maps(names);
        }
        match (source_type, field("configMap"), field("address"), field("image")) {
            ("internal" | "configmap", "", ..) => {
                Self::Invalid(format!("configmap name unset: must be set for sourcetype: {source_type}"))
            }
            ("internal" | "configmap", config_map, ..) => Self::ConfigMap(config_map),
            ("grpc", _, "", "") => Self::Invalid(format!(
                "image and address unset: at least one must be set for sourcetype: {source_type}"
            )),
            // With both an image and an address, the address is connected to.
            ("grpc", _, "", image) => Self::Image(image),
            ("grpc", _, address, _) => Self::Address(address),
            _ => Self::Invalid(format!("unknown sourcetype: {source_type}")),
        }
    }

    fn config_maps(names: &'a str) -> Self {
        let all: Vec<&str> = names.split(',').map(str::trim).collect();
        if all.len() > MOST_CONFIG_MAPS {
            return Self::Invalid(format!("annotation {CONFIG_MAPS} names more than {MOST_CONFIG_MAPS} ConfigMaps"));
        }
        match all.iter().find(|name| !is_subdomain(name)) {
            Some(name) => Self::Invalid(format!("annotation {CONFIG_MAPS}: {name:?} is not the name of a ConfigMap")),
            None => Self::ConfigMaps(all),
        }
    }
}

/// The source from which a catalog's content is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A directory that was given on the command line, independent of the CatalogSource.
    Directory,
    /// A registry at `host:port`.
    Address(String),
    /// An image, read without a server.
    Image {
        /// The image reference.
        reference: String,
        /// The folder of the catalog in the image, if it overrides the image's label.
        catalog_dir: Option<String>,
        /// The pull secrets in the catalog's namespace, best first.
        secrets: Vec<String>,
    },
    /// A ConfigMap in the catalog's namespace, read without a server.
    ConfigMap(String),
    /// ConfigMaps in the catalog's namespace with the blobs of a catalog, read without a server.
    ConfigMaps(Vec<String>),
}

impl Target {
    /// Returns the target of those ConfigMaps.
    pub fn config_maps(names: &[&str]) -> Self {
        Self::ConfigMaps(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Returns whether the content is in this ConfigMap.
    pub fn reads_config_map(&self, name: &str) -> bool {
        match self {
            Self::ConfigMap(known) => known == name,
            Self::ConfigMaps(names) => names.iter().any(|known| known == name),
            Self::Directory | Self::Address(_) | Self::Image { .. } => false,
        }
    }
}

impl std::fmt::Display for Target {
    /// Formats the target as in `status.connectionState.address`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory => Ok(()),
            Self::Address(address) => f.write_str(address),
            Self::Image { reference, .. } => f.write_str(reference),
            Self::ConfigMap(name) => write!(f, "configmap/{name}"),
            Self::ConfigMaps(names) => write!(f, "configmaps/{}", names.join(",")),
        }
    }
}

/// `spec.grpcPodConfig.extractContent.catalogDir`: the folder of the catalog in the CatalogSource's image.
pub fn catalog_dir(source: &Value) -> Option<String> {
    let extracted = object::at(source, &["spec", "grpcPodConfig", "extractContent"]);
    extracted.is_object().then(|| object::text(extracted, &["catalogDir"])).filter(|d| !d.is_empty()).map(str::to_owned)
}

/// Returns the pull policy of a container's image: the content of a digest never changes
/// (olm-behaviour/catalogsource.md#catalog-pod-spec).
pub fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') { "IfNotPresent" } else { "Always" }
}

/// Returns the names of the pull secrets, in its namespace, for the images of a CatalogSource and of its bundles.
pub fn pull_secrets(source: &Value) -> Vec<String> {
    CatalogSource::new(source).secrets().map(str::to_owned).collect()
}
