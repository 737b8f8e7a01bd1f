//! A ClusterServiceVersion that is there, as a catalog would have it (reference/catalog-operator.md §3.3).

use serde_json::Value;

use super::{Failure, Installed};
use crate::api::object::{self, Gvk};
use crate::bundle::property::{self, Property};
use crate::catalog::Entry;
use crate::version::{self, Version};

impl Installed {
    /// Reads a ClusterServiceVersion. `package` is what its Subscriptions say, when they agree.
    pub fn of(csv: &Value, package: Option<&str>, subscribed: bool) -> Result<Self, Failure> {
        Ok(Self { entry: entry(csv, package)?, subscribed })
    }
}

fn entry(csv: &Value, package: Option<&str>) -> Result<Entry, Failure> {
    let version_text = object::text(csv, &["spec", "version"]);
    let properties = match object::annotation(csv, "operatorframework.io/properties") {
        Some(annotation) => annotated(annotation).map_err(|e| {
            Failure::Error(format!("failed to unmarshal properties annotation of {}: {e}", object::name(csv)))
        })?,
        None => {
            let mut properties = derived(csv)?;
            properties.extend(package.map(|p| Property::package(p, version_text)));
            properties
        }
    };
    let of_package = properties.iter().rfind(|p| p.type_ == property::PACKAGE);
    Ok(Entry {
        name: object::name(csv).to_owned(),
        package: of_package.map_or("", |p| object::text(&p.value, &["packageName"])).to_owned(),
        // One without a version is of the lowest, in Go.
        version: Some(version::parse_tolerant(version_text).unwrap_or(Version::new(0, 0, 0))),
        version_text: version_text.to_owned(),
        properties: properties.into(),
        ..Entry::default()
    })
}

fn annotated(annotation: &str) -> Result<Vec<Property>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Annotation {
        properties: Vec<Property>,
    }
    Ok(serde_json::from_str::<Annotation>(annotation)?.properties)
}

/// The APIs that a CSV owns and requires.
fn derived(csv: &Value) -> Result<Vec<Property>, Failure> {
    let mut properties = Vec::new();
    for (part, type_) in [("owned", property::GVK), ("required", property::GVK_REQUIRED)] {
        for crd in object::list(csv, &["spec", "customresourcedefinitions", part]) {
            let [name, version, kind] = ["name", "version", "kind"].map(|key| object::text(crd, &[key]));
            let Some((_, group)) = name.split_once('.') else {
                return Err(Failure::Error(format!("error parsing crd name: {name}")));
            };
            properties.push(Property::gvk(type_, &Gvk::new(group, version, kind)));
        }
        for api in object::list(csv, &["spec", "apiservicedefinitions", part]) {
            let [group, version, kind] = ["group", "version", "kind"].map(|key| object::text(api, &[key]));
            properties.push(Property::gvk(type_, &Gvk::new(group, version, kind)));
        }
    }
    Ok(properties)
}
