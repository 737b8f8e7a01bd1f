//! An existing ClusterServiceVersion as a catalog entry (olm-behaviour/subscription.md#installed-csvs).

use serde_json::Value;

use super::Installed;
use crate::api::cluster_service_version::Csv;
use crate::api::object::{self, Gvk};
use crate::bundle::property::{self, Property};
use crate::catalog::Entry;
use crate::version::{self, Version};

impl Installed {
    /// Reads a ClusterServiceVersion. `package` is that of its Subscriptions, when they agree.
    ///
    /// # Errors
    /// The name of an API or the annotation with properties is invalid: the message is that of OLM.
    pub fn from_csv(csv: &Value, package: Option<&str>, subscribed: bool) -> Result<Self, String> {
        Ok(Self { entry: entry(csv, package)?, subscribed })
    }
}

fn entry(csv: &Value, package: Option<&str>) -> Result<Entry, String> {
    let version_text = Csv::new(csv).version();
    // OLM also reads the APIs of a CSV that has the annotation.
    let mut derived = derived(csv)?;
    let properties = match object::annotation(csv, "operatorframework.io/properties") {
        Some(annotation) => annotated(annotation).map_err(|e| {
            let name = object::name(csv);
            format!("failed to retrieve properties of csv {name:?}: failed to unmarshal properties annotation: {e}")
        })?,
        None => {
            derived.extend(package.map(|p| Property::package(p, version_text)));
            derived
        }
    };
    let of_package = properties.iter().rfind(|p| p.type_ == property::PACKAGE);
    Ok(Entry {
        name: object::name(csv).to_owned(),
        package: of_package.map_or("", |p| object::text(&p.value, &["packageName"])).to_owned(),
        // As in Go, a missing version is the lowest one.
        version: Some(version::parse_tolerant(version_text).unwrap_or(Version::new(0, 0, 0))),
        version_text: version_text.to_owned(),
        properties: properties.into(),
        ..Entry::default()
    })
}

fn annotated(annotation: &str) -> Result<Vec<Property>, serde_json::Error> {
    #[derive(Default, serde::Deserialize)]
    struct Annotation {
        properties: Option<Vec<Property>>,
    }
    let annotation: Option<Annotation> = serde_json::from_str(annotation)?;
    Ok(annotation.unwrap_or_default().properties.unwrap_or_default())
}

/// Returns the APIs that a CSV owns and requires.
fn derived(csv: &Value) -> Result<Vec<Property>, String> {
    let csv = Csv::new(csv);
    let mut properties = Vec::new();
    for (crds, services, type_) in [
        (csv.owned_crds(), csv.owned_api_services(), property::GVK),
        (csv.required_crds(), csv.required_api_services(), property::GVK_REQUIRED),
    ] {
        for crd in crds {
            let [name, version, kind] = ["name", "version", "kind"].map(|key| object::text(crd, &[key]));
            let Some((_, group)) = name.split_once('.') else {
                return Err(format!("error parsing crd name: {name}"));
            };
            properties.push(Property::gvk(type_, &Gvk::new(group, version, kind)));
        }
        for api in services {
            let [group, version, kind] = ["group", "version", "kind"].map(|key| object::text(api, &[key]));
            properties.push(Property::gvk(type_, &Gvk::new(group, version, kind)));
        }
    }
    Ok(properties)
}
