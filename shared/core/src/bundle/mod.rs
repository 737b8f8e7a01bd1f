//! Bundles: a directory of manifests and metadata, and what a catalog says of it.
//!
//! ```text
//!   files (path, bytes) --read--> Bundle --render--> Rendered   what opm render and the registry server answer
//!                           --steps--> the steps of an InstallPlan --optional--> those it may go on without
//!                                                                  --reference--> those that have no manifests
//!   image --shell--> unpack: what is known of getting the files
//! ```
//!
//! The format is `registry+v1` (olm-behaviour/opm.md#bundle-format). Nothing here reads the disk: the shell does.

mod content;
pub mod optional;
pub mod property;
mod read;
pub mod reference;
mod render;
pub mod steps;
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
    /// Path as people should see it in messages, with `/` between its parts.
    pub path: String,
    /// Content.
    pub bytes: Arc<[u8]>,
}

impl File {
    /// A file.
    pub fn new(path: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { path: path.into(), bytes: bytes.into() }
    }
}

/// A `registry+v1` bundle as its directory holds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// Directory, as people should see it in messages.
    pub path: String,
    /// The CSV.
    pub csv: Value,
    /// All objects, the CSV among them, in the order of their files' names.
    pub objects: Vec<Value>,
    /// `annotations` of the metadata.
    pub annotations: BTreeMap<String, String>,
    /// `dependencies` of the metadata.
    pub dependencies: Vec<Property>,
    /// `properties` of the metadata.
    pub properties: Vec<Property>,
}

impl Bundle {
    /// Name of the CSV, which is the name of the bundle.
    pub fn name(&self) -> &str {
        text(&self.csv, &["metadata", "name"])
    }

    /// Package that the annotations name.
    pub fn package(&self) -> &str {
        self.annotation("package.v1")
    }

    /// Channels that the annotations name.
    pub fn channels(&self) -> Vec<&str> {
        self.annotation("channels.v1").split(',').map(str::trim).filter(|c| !c.is_empty()).collect()
    }

    /// Default channel that the annotations name; empty when none.
    pub fn default_channel(&self) -> &str {
        self.annotation("channel.default.v1")
    }

    /// Version of the CSV; empty when it has none.
    pub fn version(&self) -> &str {
        text(&self.csv, &["spec", "version"])
    }

    /// `olm.skipRange` of the CSV; empty when it has none.
    pub fn skip_range(&self) -> &str {
        text(&self.csv, &["metadata", "annotations", "olm.skipRange"])
    }

    /// Every version of every CRD in the bundle, then the owned API services.
    pub fn provided_apis(&self) -> Vec<Gvk> {
        let crds = self.objects.iter().filter(|o| text(o, &["kind"]) == "CustomResourceDefinition");
        crds.flat_map(crd_apis).chain(self.api_services("owned")).collect()
    }

    /// The APIs that the CSV requires.
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

/// What a catalog says of a bundle: an `olm.bundle` blob and the registry protocol's fields, taken together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// Name of the bundle.
    pub name: String,
    /// Package.
    pub package: String,
    /// Version as the `olm.package` property has it.
    pub version: String,
    /// `olm.skipRange` of the CSV; empty when it has none.
    pub skip_range: String,
    /// Properties sorted by type, then value, without those that carry objects.
    pub properties: Vec<Property>,
    /// Dependencies in the registry protocol's words.
    pub dependencies: Vec<Property>,
    /// APIs that the bundle provides.
    pub provided_apis: Vec<Gvk>,
    /// APIs that the bundle requires.
    pub required_apis: Vec<Gvk>,
    /// Name and reference of every image that the bundle mentions.
    pub related_images: Vec<(String, String)>,
    /// The objects as JSON.
    pub content: BundleContent,
}

/// Group, kind and each version of a CRD in either of its API versions.
pub(crate) fn crd_apis(crd: &Value) -> Vec<Gvk> {
    let spec = at(crd, &["spec"]);
    let api = |version: &str| Gvk::new(text(spec, &["group"]), version, text(spec, &["names", "kind"]));
    match list(spec, &["versions"]) {
        [] => vec![api(text(spec, &["version"]))],
        versions => versions.iter().map(|v| api(text(v, &["name"]))).collect(),
    }
}
