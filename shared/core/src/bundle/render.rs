//! Renders a bundle as a catalog contains it, as `opm render` does (olm-behaviour/opm.md#bundle-properties,
//! olm-behaviour/opm.md#related-images).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::property::{self, Property};
use super::{Bundle, BundleContent, Rendered};
use crate::api::object::{at, list, text};
use crate::finding::Finding;

impl Bundle {
    /// Renders the bundle.
    ///
    /// # Errors
    /// The annotation `olm.properties` of the ClusterServiceVersion is not a list of properties.
    pub fn render(&self) -> Result<Rendered, Finding> {
        let properties = self.all_properties()?;
        Ok(Rendered {
            name: self.name().to_owned(),
            package: self.package().to_owned(),
            version: properties
                .iter()
                .find(|p| p.type_ == property::PACKAGE)
                .map_or("", |p| text(&p.value, &["version"]))
                .to_owned(),
            skip_range: self.skip_range().to_owned(),
            dependencies: property::dependencies(&properties),
            provided_apis: property::apis(&properties, property::GVK),
            required_apis: property::apis(&properties, property::GVK_REQUIRED),
            related_images: related_images(&self.csv),
            content: BundleContent::of_objects(&self.objects, &self.csv),
            properties,
            is_plain: self.is_plain,
        })
    }

    fn all_properties(&self) -> Result<Vec<Property>, Finding> {
        let mut all = self.properties.clone();
        let mut package = Property::package(self.package(), self.version());
        let release = at(&self.csv, &["spec", "release"]);
        if !release.is_null() {
            package.value["release"] = release.as_str().map_or_else(|| json!(release.to_string()), |r| json!(r));
        }
        all.push(package);
        let annotation = text(&self.csv, &["metadata", "annotations", "olm.properties"]);
        if !annotation.is_empty() {
            let more: Vec<Property> = serde_json::from_str(annotation).map_err(|e| {
                Finding::new("bad-properties", format!("invalid annotation olm.properties: {e}"))
                    .at(&self.path, 0)
                    .about(format!("ClusterServiceVersion/{}", self.name()))
                    .hint("write it as a JSON list of {\"type\", \"value\"}")
            })?;
            all.extend(more);
        }
        all.extend(self.provided_apis().iter().map(|api| Property::gvk(property::GVK, api)));
        all.extend(self.required_apis().iter().map(|api| Property::gvk(property::GVK_REQUIRED, api)));
        all.extend(self.dependencies.iter().map(Property::required));
        // Of several packages the last one is used.
        let last = all.iter().rposition(|p| p.type_ == property::PACKAGE);
        let mut index = 0..;
        all.retain(|p| {
            let at = index.next();
            p.type_ != property::PACKAGE || at == last
        });
        let mut keyed: Vec<(String, String, Property)> =
            all.into_iter().map(|p| (p.type_.clone(), p.value.to_string(), p)).collect();
        keyed.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        keyed.dedup_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1));
        Ok(keyed.into_iter().map(|(_, _, p)| p).collect())
    }
}

/// Returns name and reference of every image that a CSV references: its relatedImages, and those of its Deployments, sorted
/// by reference.
pub(crate) fn related_images(csv: &Value) -> Vec<(String, String)> {
    let mut images: Vec<(String, String)> = list(csv, &["spec", "relatedImages"])
        .iter()
        .map(|i| (text(i, &["name"]).to_owned(), text(i, &["image"]).to_owned()))
        .collect();
    let install = at(csv, &["spec", "install"]);
    let deployments = match text(install, &["strategy"]) {
        "deployment" => list(install, &["spec", "deployments"]),
        _ => &[],
    };
    for deployment in deployments {
        let pod = at(deployment, &["spec", "template", "spec"]);
        for container in ["containers", "initContainers"].iter().flat_map(|key| list(pod, &[key])) {
            let image = text(container, &["image"]);
            if !images.iter().any(|(_, known)| known == image) {
                images.push((String::new(), image.to_owned()));
            }
        }
    }
    images.sort_by(|a, b| a.1.cmp(&b.1));
    images
}

impl Rendered {
    /// Returns the `olm.bundle` blob of the bundle, as opm renders it from that image; empty for a directory.
    ///
    /// The image of a `k8s+v1` bundle is only one of the related images: its objects are installed from the blob, so that an OLM that
    /// cannot unpack the image installs it, too (bundle-format.md#catalogs-and-clusters).
    pub fn blob(&self, image: &str) -> Value {
        let mut blob = blob(&self.name, &self.package, image, &self.properties, &self.related_images, &self.content);
        if self.is_plain {
            blob["image"] = "".into();
        }
        blob
    }
}

/// Returns an `olm.bundle` blob. The image is one of its related images.
pub(crate) fn blob(
    name: &str,
    package: &str,
    image: &str,
    properties: &[Property],
    related_images: &[(String, String)],
    content: &BundleContent,
) -> Value {
    let objects = content
        .objects
        .iter()
        .map(|o| json!({"type": property::BUNDLE_OBJECT, "value": {"data": STANDARD.encode(&**o)}}));
    let properties: Vec<Value> =
        properties.iter().map(|p| json!({"type": p.type_, "value": p.value})).chain(objects).collect();
    let own = (String::new(), image.to_owned());
    let is_listed = image.is_empty() || related_images.iter().any(|(_, listed)| listed == image);
    let mut images: Vec<&(String, String)> = related_images.iter().chain((!is_listed).then_some(&own)).collect();
    images.sort_by(|a, b| a.1.cmp(&b.1));
    let images: Vec<Value> = images.iter().map(|(name, image)| json!({"name": name, "image": image})).collect();
    let mut blob =
        json!({"schema": "olm.bundle", "name": name, "package": package, "image": image, "properties": properties});
    if !images.is_empty() {
        blob["relatedImages"] = images.into();
    }
    blob
}
