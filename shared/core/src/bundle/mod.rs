//! Bundles: a directory of manifests and metadata, and its representation in a catalog.
//!
//! ```text
//!   files (path, bytes) --read--> Bundle --render--> Rendered   output of opm render and of the registry server
//!                           --steps--> the steps of an InstallPlan --optional--> optional steps
//!                                                                  --reference--> steps without manifests
//!   image --shell--> unpack: the state of pulling the files
//! ```
//!
//! The format is `registry+v1` (olm-behaviour/opm.md#bundle-format). Nothing here reads the disk: the shell does.

mod content;
pub mod folder;
pub mod optional;
pub mod property;
mod read;
pub mod reference;
mod render;
pub mod steps;
pub mod synthesis;
#[cfg(test)]
mod tests;
mod unpack;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use content::BundleContent;
pub(crate) use content::{decode_data, encoded_again, is_csv};
pub use property::Property;
pub(crate) use render::{blob, related_images};
use serde_json::Value;
pub use unpack::{BundleImage, Unpacked, Unpacking};

use crate::api::object::{Gvk, at, list, text};

/// A file that the shell has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path for messages, with `/` as separator.
    pub path: String,
    /// Content.
    pub bytes: Arc<[u8]>,
}

impl File {
    /// Creates a file.
    pub fn new(path: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { path: path.into(), bytes: bytes.into() }
    }
}

/// A `registry+v1` bundle as in its directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// Directory, for messages.
    pub path: String,
    /// The CSV.
    pub csv: Value,
    /// All objects, including the CSV, in the order of their file names.
    pub objects: Vec<Value>,
    /// `annotations` of the metadata.
    pub annotations: BTreeMap<String, String>,
    /// `dependencies` of the metadata.
    pub dependencies: Vec<Property>,
    /// `properties` of the metadata.
    pub properties: Vec<Property>,
    /// Whether it is of type `k8s+v1`, so that its CSV is synthesized.
    pub is_plain: bool,
}

impl Bundle {
    /// Returns the name of the CSV, which is the name of the bundle.
    pub fn name(&self) -> &str {
        text(&self.csv, &["metadata", "name"])
    }

    /// Returns the package in the annotations.
    pub fn package(&self) -> &str {
        self.annotation("package.v1")
    }

    /// Returns the channels in the annotations.
    pub fn channels(&self) -> Vec<&str> {
        self.annotation("channels.v1").split(',').map(str::trim).filter(|c| !c.is_empty()).collect()
    }

    /// Returns the default channel in the annotations; empty when none.
    pub fn default_channel(&self) -> &str {
        self.annotation("channel.default.v1")
    }

    /// Returns the version of the CSV; empty when it has none.
    pub fn version(&self) -> &str {
        text(&self.csv, &["spec", "version"])
    }

    /// Returns the `olm.skipRange` of the CSV; empty when it has none.
    pub fn skip_range(&self) -> &str {
        text(&self.csv, &["metadata", "annotations", "olm.skipRange"])
    }

    /// Returns every version of every CRD in the bundle, then the owned API services.
    pub fn provided_apis(&self) -> Vec<Gvk> {
        let crds = self.objects.iter().filter(|o| text(o, &["kind"]) == "CustomResourceDefinition");
        crds.flat_map(crd_apis).chain(self.api_services("owned")).collect()
    }

    /// Returns the APIs that the CSV requires.
    pub fn required_apis(&self) -> Vec<Gvk> {
        let crds = list(&self.csv, &["spec", "customresourcedefinitions", "required"]).iter().map(|crd| {
            let group = text(crd, &["name"]).split_once('.').map_or("", |(_, group)| group);
            Gvk::new(group, text(crd, &["version"]), text(crd, &["kind"]))
        });
        crds.chain(self.api_services("required")).collect()
    }

    fn api_services(&self, which: &str) -> impl Iterator<Item = Gvk> {
        list(&self.csv, &["spec", "apiservicedefinitions", which])
            .iter()
            .map(|api| Gvk::new(text(api, &["group"]), text(api, &["version"]), text(api, &["kind"])))
    }

    fn annotation(&self, key: &str) -> &str {
        self.annotations.get(&format!("operators.operatorframework.io.bundle.{key}")).map_or("", String::as_str)
    }
}

/// A bundle in a catalog: an `olm.bundle` blob combined with the registry protocol's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// Name of the bundle.
    pub name: String,
    /// Package.
    pub package: String,
    /// Version in the `olm.package` property.
    pub version: String,
    /// `olm.skipRange` of the CSV; empty when it has none.
    pub skip_range: String,
    /// Properties sorted by type, then value, without those that carry objects.
    pub properties: Vec<Property>,
    /// Dependencies in the form of the registry protocol.
    pub dependencies: Vec<Property>,
    /// APIs that the bundle provides.
    pub provided_apis: Vec<Gvk>,
    /// APIs that the bundle requires.
    pub required_apis: Vec<Gvk>,
    /// Name and reference of every image that the bundle references.
    pub related_images: Vec<(String, String)>,
    /// The objects as JSON.
    pub content: BundleContent,
    /// Whether the bundle is of type `k8s+v1`.
    pub is_plain: bool,
}

/// Returns group, kind and each version of a CRD in either of its API versions.
pub(crate) fn crd_apis(crd: &Value) -> Vec<Gvk> {
    let spec = at(crd, &["spec"]);
    let api = |version: &str| Gvk::new(text(spec, &["group"]), version, text(spec, &["names", "kind"]));
    match list(spec, &["versions"]) {
        [] => vec![api(text(spec, &["version"]))],
        versions => versions.iter().map(|v| api(text(v, &["name"]))).collect(),
    }
}
