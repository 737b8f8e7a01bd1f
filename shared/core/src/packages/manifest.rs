//! The schema of PackageManifests. Empty fields are left out where OLM leaves them out.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{KIND, api_version};

/// A package of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PackageManifest {
    /// Name, namespace and labels.
    pub metadata: Metadata,
    /// Always empty.
    pub spec: Map<String, Value>,
    /// The package.
    pub status: Status,
}

impl PackageManifest {
    /// Returns the object.
    pub fn to_json(&self) -> Value {
        // The fields of these types always have a JSON form.
        let mut object = serde_json::to_value(self).unwrap_or_default();
        object["apiVersion"] = api_version().into();
        object["kind"] = KIND.into();
        object
    }

    /// Returns a list of objects.
    pub fn list(items: &[Value]) -> Value {
        json!({ "apiVersion": api_version(), "kind": format!("{KIND}List"), "metadata": {}, "items": items })
    }
}

/// `metadata`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// When the CatalogSource was created.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub creation_timestamp: String,
    /// The labels of the CatalogSource and of the ClusterServiceVersion, with the catalog, the provider and the platforms.
    pub labels: BTreeMap<String, String>,
    /// The package.
    pub name: String,
    /// The namespace of the CatalogSource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// `status`
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Name of the CatalogSource.
    pub catalog_source: String,
    /// Name of the CatalogSource for users.
    pub catalog_source_display_name: String,
    /// Publisher of the CatalogSource.
    pub catalog_source_publisher: String,
    /// Namespace of the CatalogSource.
    pub catalog_source_namespace: String,
    /// Provider of the default channel's ClusterServiceVersion.
    pub provider: AppLink,
    /// The package.
    pub package_name: String,
    /// Deprecation of the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    /// The channels, by name.
    pub channels: Vec<Channel>,
    /// The channel of Subscriptions that name none.
    pub default_channel: String,
}

/// A deprecation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deprecation {
    /// What to do instead.
    pub message: String,
}

impl Deprecation {
    /// Returns the deprecation with this message.
    pub(super) fn from_message(message: Option<&String>) -> Option<Self> {
        message.map(|message| Self { message: message.clone() })
    }
}

/// A link with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AppLink {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A maintainer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Maintainer {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
}

/// A channel of a package.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// Name.
    pub name: String,
    /// Name of the channel head.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// Description of the channel head.
    #[serde(rename = "currentCSVDesc")]
    pub current_csv_desc: Description,
    /// Deprecation of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    /// The versions, newest first.
    pub entries: Vec<CatalogEntry>,
}

/// A version in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CatalogEntry {
    /// Name of the bundle.
    pub name: String,
    /// Version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Deprecation of the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
}

/// The fields of a ClusterServiceVersion that describe its operator, without the icon.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// Name for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// Version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Provider.
    pub provider: AppLink,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Keywords.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<AppLink>,
    /// Maintainers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// Maturity.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub maturity: String,
    /// Description, in Markdown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Supported sets of namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub install_modes: Vec<Value>,
    /// `{owned, required}`: `{name, version, kind, displayName, description}`.
    pub customresourcedefinitions: Value,
    /// `{owned, required}`: `{name, group, version, kind, displayName, description}`.
    pub apiservicedefinitions: Value,
    /// Kinds that the cluster must serve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native_apis: Vec<Value>,
    /// Oldest supported version of Kubernetes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
    /// Images of the operator and those that it declares to use, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_images: Vec<String>,
}
