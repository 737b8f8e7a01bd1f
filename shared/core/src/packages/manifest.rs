//! The schema of PackageManifests. Empty fields are left out where OLM leaves them out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::forms::{ApiServices, Crds, NativeApi, Spec};
use super::{KIND, api_version};
use crate::api::crd::types::cluster_service_version::InstallMode;

/// A package of a catalog, with its channels and versions. It is read-only: it changes with its catalog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PackageManifest {
    /// The name of the package, its namespace, and labels to select packages by.
    pub metadata: Metadata,
    /// Always empty: a package has no desired state.
    #[schemars(with = "Spec")]
    pub spec: Map<String, Value>,
    /// The package, its channels and its versions, as the catalog states them.
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

/// The name of the package, its namespace, and labels to select packages by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The time at which the CatalogSource was created.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "date-time"))]
    pub creation_timestamp: String,
    /// The labels of the CatalogSource and of the ClusterServiceVersion, with the catalog, the provider and the platforms.
    pub labels: BTreeMap<String, String>,
    /// The name of the package. Packages of several catalogs can have the same name.
    pub name: String,
    /// The namespace of the request, or the namespace of the CatalogSource in a list of all namespaces.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// The package, its channels and its versions, as the catalog states them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The name of the CatalogSource that contains the package: spec.source of a Subscription.
    pub catalog_source: String,
    /// The name of the catalog for users, from its CatalogSource.
    pub catalog_source_display_name: String,
    /// The publisher of the catalog, from its CatalogSource.
    pub catalog_source_publisher: String,
    /// The namespace of the CatalogSource: spec.sourceNamespace of a Subscription.
    pub catalog_source_namespace: String,
    /// The provider of the operator, from the head of the default channel.
    pub provider: AppLink,
    /// The name of the package: spec.name of a Subscription.
    pub package_name: String,
    /// The deprecation of the whole package, if it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    /// The channels of the package, sorted by name.
    pub channels: Vec<Channel>,
    /// The channel of Subscriptions that do not name one.
    pub default_channel: String,
}

/// The deprecation of a package, a channel or a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deprecation {
    /// What the publisher recommends to use instead.
    pub message: String,
}

impl Deprecation {
    /// Returns the deprecation with this message.
    pub(super) fn from_message(message: Option<&String>) -> Option<Self> {
        message.map(|message| Self { message: message.clone() })
    }
}

/// The address of a web page, with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppLink {
    /// The name of the provider or page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address of the web page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A maintainer of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Maintainer {
    /// The name of the maintainer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The e-mail address of the maintainer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
}

/// A channel: a series of versions that a Subscription follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Channel {
    /// The name of the channel: spec.channel of a Subscription.
    pub name: String,
    /// The name of the ClusterServiceVersion at the head of the channel, which a new Subscription installs.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// The description of the version at the head of the channel.
    #[serde(rename = "currentCSVDesc")]
    pub current_csv_desc: Description,
    /// The deprecation of the channel, if it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
    /// The versions in the channel, newest first.
    pub entries: Vec<CatalogEntry>,
}

/// A version of the operator in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CatalogEntry {
    /// The name of the ClusterServiceVersion: spec.startingCSV of a Subscription.
    pub name: String,
    /// The version of the operator, such as 1.2.3.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The deprecation of the version, if it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
}

/// The fields of a ClusterServiceVersion that describe its operator, without the icon, which the subresource icon returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// The name of the operator for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// The version of the operator, such as 1.2.3.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The company or project that provides the operator.
    pub provider: AppLink,
    /// The annotations of the ClusterServiceVersion, such as capabilities and categories.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The keywords to search for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// The web pages about the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<AppLink>,
    /// The maintainers of the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// The maturity of this version, such as alpha or stable.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub maturity: String,
    /// The description of the operator, in Markdown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The sets of namespaces that the operator can watch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<InstallMode>")]
    pub install_modes: Vec<Value>,
    /// The custom resource definitions that the operator provides and needs.
    #[schemars(with = "Crds")]
    pub customresourcedefinitions: Value,
    /// The aggregated APIs that the operator provides and needs.
    #[schemars(with = "ApiServices")]
    pub apiservicedefinitions: Value,
    /// The kinds that the cluster must serve before the operator is installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<NativeApi>")]
    pub native_apis: Vec<Value>,
    /// The oldest version of Kubernetes that the operator supports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_kube_version: String,
    /// The images of the operator and those that it declares to use, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related_images: Vec<String>,
}
