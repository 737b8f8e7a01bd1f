//! Where a CatalogSource's content comes from (reference/catalog-operator.md §1.1).

use serde_json::Value;

use crate::api::object;

/// Where the content comes from.
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

/// Reads the spec of a CatalogSource.
pub fn origin(source: &Value) -> Origin<'_> {
    let field = |key| object::text(source, &["spec", key]);
    let source_type = field("sourceType");
    match (source_type, field("configMap"), field("address"), field("image")) {
        ("internal" | "configmap", "", ..) => {
            Origin::Invalid(format!("configmap name unset: must be set for sourcetype: {source_type}"))
        }
        ("internal" | "configmap", config_map, ..) => Origin::ConfigMap(config_map),
        ("grpc", _, "", "") => {
            Origin::Invalid(format!("image and address unset: at least one must be set for sourcetype: {source_type}"))
        }
        // With both, what is dialled is the address.
        ("grpc", _, "", image) => Origin::Image(image),
        ("grpc", _, address, _) => Origin::Address(address),
        _ => Origin::Invalid(format!("unknown sourcetype: {source_type}")),
    }
}
