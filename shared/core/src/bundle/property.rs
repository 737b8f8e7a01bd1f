//! Properties and dependencies: a type, and a value whose meaning depends on the type.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::object::{Gvk, text};

/// The package and version of a bundle.
pub const PACKAGE: &str = "olm.package";
/// An API that a bundle provides; as a dependency, one that it requires.
pub const GVK: &str = "olm.gvk";
/// A package that a bundle requires.
pub const PACKAGE_REQUIRED: &str = "olm.package.required";
/// An API that a bundle requires.
pub const GVK_REQUIRED: &str = "olm.gvk.required";
/// A label that a bundle requires (in dependencies) or carries.
pub const LABEL: &str = "olm.label";
/// A label that a bundle requires.
pub const LABEL_REQUIRED: &str = "olm.label.required";
/// A compound constraint.
pub const CONSTRAINT: &str = "olm.constraint";
/// A whole object of the bundle.
pub const BUNDLE_OBJECT: &str = "olm.bundle.object";
/// The manifests without which a bundle can be installed (enhancement `optional-manifest`).
pub const MANIFESTS_OPTIONAL: &str = "olm.manifests.optional";
/// The descriptive part of the CSV, in catalogs without objects.
pub const CSV_METADATA: &str = "olm.csv.metadata";

/// A property or dependency of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    /// Type, which determines the form of the value: `olm.gvk`.
    #[serde(rename = "type", default)]
    pub type_: String,
    /// Value.
    #[serde(default)]
    pub value: Value,
}

impl Property {
    /// Creates a property.
    pub fn new(type_: &str, value: Value) -> Self {
        Self { type_: type_.to_owned(), value }
    }

    /// Creates a property with the value `{group, kind, version}`.
    pub fn gvk(type_: &str, gvk: &Gvk) -> Self {
        Self::new(type_, json!({"group": gvk.group, "kind": gvk.kind, "version": gvk.version}))
    }

    /// Creates an `olm.package` property.
    pub fn package(name: &str, version: &str) -> Self {
        Self::new(PACKAGE, json!({"packageName": name, "version": version}))
    }

    /// Reads the value as group, version and kind.
    pub fn as_gvk(&self) -> Gvk {
        Gvk::new(text(&self.value, &["group"]), text(&self.value, &["version"]), text(&self.value, &["kind"]))
    }

    /// Returns the requirement that a dependency stands for: `olm.gvk` becomes `olm.gvk.required`, `olm.package` with
    /// `version` becomes `olm.package.required` with `versionRange`; others are not changed.
    pub fn required(&self) -> Self {
        match self.type_.as_str() {
            GVK => Self::gvk(GVK_REQUIRED, &self.as_gvk()),
            PACKAGE => {
                let [name, range] = ["packageName", "version"].map(|key| text(&self.value, &[key]));
                Self::new(PACKAGE_REQUIRED, json!({"packageName": name, "versionRange": range}))
            }
            _ => self.clone(),
        }
    }

    /// Returns the list of properties or dependencies at a key of an object, without entries that have no type.
    pub(crate) fn list(object: &Value, key: &str) -> Vec<Self> {
        let items = object.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| Some(Self::new(item.get("type")?.as_str()?, item.get("value")?.clone()))).collect()
    }
}

/// Returns the APIs of properties of a type, in order and without duplicates.
pub fn apis(properties: &[Property], type_: &str) -> Vec<Gvk> {
    let mut apis: Vec<Gvk> = properties.iter().filter(|p| p.type_ == type_).map(Property::as_gvk).collect();
    let mut seen = std::collections::BTreeSet::new();
    apis.retain(|api| seen.insert(api.clone()));
    apis
}

/// Returns the dependencies in the form of the registry protocol, from the requirements among properties:
/// `olm.gvk.required` becomes `olm.gvk`, and `olm.package.required` becomes `olm.package` with `version`
/// (olm-behaviour/opm.md#registry-protocol).
pub fn dependencies(properties: &[Property]) -> Vec<Property> {
    let dependency = |p: &Property| match p.type_.as_str() {
        GVK_REQUIRED => Some(Property::new(GVK, p.value.clone())),
        PACKAGE_REQUIRED => {
            let [name, range] = ["packageName", "versionRange"].map(|key| text(&p.value, &[key]));
            Some(Property::new(PACKAGE, json!({"packageName": name, "version": range})))
        }
        _ => None,
    };
    properties.iter().filter_map(dependency).collect()
}
