//! What a catalog says of a bundle, as `opm render` derives it (reference: bundles and catalogs §1.7, §1.8).

use serde_json::json;

use super::property::{self, Property};
use super::{Bundle, BundleContent, Rendered};
use crate::api::object::{at, list, text};
use crate::finding::Finding;

impl Bundle {
    /// The bundle as a catalog has it.
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
            related_images: self.related_images(),
            content: BundleContent::of_objects(&self.objects, &self.csv),
            properties,
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
                Finding::new("bad-properties", format!("the annotation olm.properties cannot be read: {e}"))
                    .at(&self.path, 0)
                    .about(format!("ClusterServiceVersion/{}", self.name()))
                    .hint("it is a JSON list of {\"type\", \"value\"}")
            })?;
            all.extend(more);
        }
        all.extend(self.provided_apis().iter().map(|api| Property::gvk(property::GVK, api)));
        all.extend(self.required_apis().iter().map(|api| Property::gvk(property::GVK_REQUIRED, api)));
        all.extend(self.dependencies.iter().map(Property::required));
        // Of several packages the last one said counts.
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

    fn related_images(&self) -> Vec<(String, String)> {
        let mut images: Vec<(String, String)> = list(&self.csv, &["spec", "relatedImages"])
            .iter()
            .map(|i| (text(i, &["name"]).to_owned(), text(i, &["image"]).to_owned()))
            .collect();
        let install = at(&self.csv, &["spec", "install"]);
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
}
