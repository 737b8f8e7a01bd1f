//! The form of parts of a PackageManifest that are copied as they are from a ClusterServiceVersion. All fields but those of native APIs are
//! optional.

use schemars::JsonSchema;

/// Always empty.
#[derive(JsonSchema)]
pub struct Spec {}

/// The custom resource definitions that an operator provides and needs.
#[derive(JsonSchema)]
#[schemars(extend("required" = null))]
pub struct Crds {
    /// The CRDs that the operator provides.
    pub owned: Option<Vec<Crd>>,
    /// The CRDs that must be served before the operator is installed. Other operators provide them.
    pub required: Option<Vec<Crd>>,
}

/// A version of a custom resource definition.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("required" = null))]
pub struct Crd {
    /// The name of the CustomResourceDefinition in the form PLURAL.GROUP.
    pub name: Option<String>,
    /// The API version, such as v1.
    pub version: Option<String>,
    /// The kind of the custom resources.
    pub kind: Option<String>,
    /// The name of the kind for users.
    pub display_name: Option<String>,
    /// What the custom resources are for.
    pub description: Option<String>,
}

/// The aggregated APIs that an operator provides and needs.
#[derive(JsonSchema)]
#[schemars(extend("required" = null))]
pub struct ApiServices {
    /// The APIs that the operator provides.
    pub owned: Option<Vec<ApiService>>,
    /// The APIs that must be available before the operator is installed.
    pub required: Option<Vec<ApiService>>,
}

/// A kind of an aggregated API.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", extend("required" = null))]
pub struct ApiService {
    /// The plural name of the resource.
    pub name: Option<String>,
    /// The API group of the kind.
    pub group: Option<String>,
    /// The API version of the kind, such as v1.
    pub version: Option<String>,
    /// The kind of the objects.
    pub kind: Option<String>,
    /// The name of the kind for users.
    pub display_name: Option<String>,
    /// What the objects are for.
    pub description: Option<String>,
}

/// A kind that the cluster must serve.
#[derive(JsonSchema)]
pub struct NativeApi {
    /// The API group of the kind.
    pub group: String,
    /// The API version of the kind, such as v1.
    pub version: String,
    /// The kind of the objects.
    pub kind: String,
}
