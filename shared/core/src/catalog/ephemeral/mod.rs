//! An ephemeral catalog: the bundles that an author runs on a cluster without publishing them.
//!
//! ```text
//!   bundle --new, with--> package, channel, bundles --parts--> ConfigMaps     their names contain a digest of the content
//!                                                         --> CatalogSource  names the ConfigMaps in an annotation
//!                                             --registry--> Deployment, Service   for controllers that read only registries
//! ```
//!
//! *Guarantees*: a ConfigMap never changes, so that its readers see the catalog before or after a change. The CatalogSource owns
//! all other objects.

mod registry;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub use self::registry::RegistryPod;
use super::parts::{PART_BYTES, PART_KEY, TooLarge, split};
use crate::api::catalog_source::CONFIG_MAPS;
use crate::api::hash::sha256_hex;
use crate::api::kinds;
use crate::api::object;
use crate::bundle::Rendered;

/// The label of all objects that are created to run a bundle: the name of its CatalogSource.
pub const LABEL: &str = "kubectl-olm/run";

/// The annotation with the package that a CatalogSource was created for.
pub const PACKAGE: &str = "kubectl-olm/run-package";

/// The channel of all bundles, unless the user's Subscription names one. Their own channels describe other catalogs.
pub const CHANNEL: &str = "run";

/// The maximum size of the objects of a bundle as strings of JSON, in bytes: the InstallPlan contains all of them, and etcd refuses
/// objects of more than 1.5 MiB.
pub const PLAN_BYTES: usize = 1_300_000;

/// The maximum length of the part of a name that the package determines. Services have at most 63 characters.
const LONGEST_STEM: usize = 40;

/// Why a bundle cannot be in an ephemeral catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It fits into no ConfigMap.
    #[error(transparent)]
    Part(#[from] TooLarge),
    /// It fits into no InstallPlan.
    #[error(
        "the objects of {name} have {bytes} bytes; the InstallPlan, which contains all of them, can hold {PLAN_BYTES}"
    )]
    Plan {
        /// The bundle.
        name: String,
        /// The size of its objects as strings of JSON.
        bytes: usize,
    },
    /// The catalog has another bundle of that name, which is installed.
    #[error("{0} is installed with other content")]
    Installed(String),
}

/// Where a catalog is, and what is named by the user's manifests.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The namespace.
    pub namespace: &'p str,
    /// The name of the CatalogSource; `None` to derive it from the package.
    pub name: Option<&'p str>,
    /// The channel; `None` for [`CHANNEL`].
    pub channel: Option<&'p str>,
}

/// An ephemeral catalog.
#[derive(Clone, Debug, PartialEq)]
pub struct Ephemeral {
    namespace: String,
    name: String,
    package: String,
    blobs: Vec<Value>,
    parts: Vec<Vec<u8>>,
}

impl Ephemeral {
    /// Creates the catalog of one bundle.
    ///
    /// # Errors
    /// The bundle is too large.
    pub fn new(place: Place<'_>, bundle: &Rendered) -> Result<Self, Unfit> {
        let mut blobs = head(&bundle.package, place.channel.unwrap_or(CHANNEL), &[json!({ "name": bundle.name })]);
        blobs.push(fitting(bundle)?);
        let name = place.name.map_or_else(|| name(&bundle.package), str::to_owned);
        Self::of_blobs(place.namespace, name, &bundle.package, blobs)
    }

    /// Creates the catalog with another bundle, which replaces the installed one. `blobs` are those of the catalog before.
    ///
    /// # Errors
    /// The bundle is too large, or is installed already with other content.
    pub fn upgraded(
        (namespace, name): (&str, &str),
        blobs: &[Value],
        bundle: &Rendered,
        installed: &str,
    ) -> Result<Self, Unfit> {
        let is = |blob: &Value, schema: &str| object::text(blob, &["schema"]) == schema;
        let is_bundle = |blob: &Value, name: &str| is(blob, "olm.bundle") && object::text(blob, &["name"]) == name;
        let new = fitting(bundle)?;
        if bundle.name == installed {
            return Err(Unfit::Installed(bundle.name.clone()));
        }
        let entry = |entry: &Value| object::text(entry, &["name"]) != bundle.name;
        let channel = blobs.iter().filter(|blob| is(blob, "olm.channel"));
        let mut entries: Vec<Value> = channel
            .flat_map(|channel| object::list(channel, &["entries"]))
            .filter(|known| entry(known))
            .cloned()
            .collect();
        entries.push(json!({ "name": bundle.name, "replaces": installed }));
        let package = blobs.iter().find(|blob| is(blob, "olm.package"));
        let channel = package.map(|package| object::text(package, &["defaultChannel"])).filter(|name| !name.is_empty());
        let mut all = head(&bundle.package, channel.unwrap_or(CHANNEL), &entries);
        all.extend(blobs.iter().filter(|blob| is(blob, "olm.bundle") && !is_bundle(blob, &bundle.name)).cloned());
        all.push(new);
        Self::of_blobs(namespace, name.to_owned(), &bundle.package, all)
    }

    fn of_blobs(namespace: &str, name: String, package: &str, blobs: Vec<Value>) -> Result<Self, Unfit> {
        let parts = split(&blobs, PART_BYTES)?;
        Ok(Self { namespace: namespace.to_owned(), name, package: package.to_owned(), blobs, parts })
    }

    /// Returns the name of the CatalogSource.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the package.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// Returns the blobs.
    pub fn blobs(&self) -> &[Value] {
        &self.blobs
    }

    /// Returns the names of the ConfigMaps, in the order of their parts.
    pub fn config_map_names(&self) -> Vec<String> {
        let digest = sha256_hex(self.parts.concat());
        let stem: String = self.name.chars().take(LONGEST_STEM).collect();
        let stem = stem.trim_end_matches(['.', '-']);
        (0..self.parts.len()).map(|n| format!("{stem}-{}-{n}", &digest[..10])).collect()
    }

    /// Returns the ConfigMaps.
    pub fn config_maps(&self) -> Vec<Value> {
        let names = self.config_map_names().into_iter();
        let object = |(name, part): (String, &Vec<u8>)| {
            let mut object = self.object("v1", "ConfigMap", &name);
            object["immutable"] = true.into();
            object["binaryData"] = json!({ PART_KEY: STANDARD.encode(part) });
            object
        };
        names.zip(&self.parts).map(object).collect()
    }

    /// Returns the CatalogSource. `base` is one that the user supplies, without a source of its content.
    pub fn catalog_source(&self, base: Option<&Value>) -> Value {
        let mut source =
            self.object(&kinds::CATALOG_SOURCE.gvk().api_version(), kinds::CATALOG_SOURCE.kind, &self.name);
        if let Some(base) = base {
            let own = std::mem::replace(&mut source, base.clone());
            object::map_mut(&mut source, &["metadata"])
                .insert("namespace".to_owned(), own["metadata"]["namespace"].clone());
            object::set_label(&mut source, LABEL, &self.name);
            object::set_annotation(&mut source, PACKAGE, &self.package);
        }
        object::set_annotation(&mut source, CONFIG_MAPS, &self.config_map_names().join(","));
        let spec = object::map_mut(&mut source, &["spec"]);
        spec.insert("sourceType".to_owned(), "grpc".into());
        spec.insert("address".to_owned(), self.address().into());
        spec.entry("displayName").or_insert_with(|| format!("{} (kubectl olm operator run)", self.package).into());
        source
    }

    fn object(&self, api_version: &str, kind: &str, name: &str) -> Value {
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {
                "name": name, "namespace": self.namespace,
                "labels": { LABEL: self.name }, "annotations": { PACKAGE: self.package },
            },
        })
    }
}

/// Returns the blobs of a package and its channel.
fn head(package: &str, channel: &str, entries: &[Value]) -> Vec<Value> {
    vec![
        json!({ "schema": "olm.package", "name": package, "defaultChannel": channel }),
        json!({ "schema": "olm.channel", "package": package, "name": channel, "entries": entries }),
    ]
}

/// Returns the blob of a bundle that fits into an InstallPlan.
fn fitting(bundle: &Rendered) -> Result<Value, Unfit> {
    let bytes = bundle.content.objects.iter().map(|object| Value::from(&**object).to_string().len()).sum();
    if bytes > PLAN_BYTES {
        return Err(Unfit::Plan { name: bundle.name.clone(), bytes });
    }
    Ok(bundle.blob(""))
}

/// Returns the name of the CatalogSource of a package, which is also that of a Service. Packages have equal names only if they are
/// equal.
pub fn name(package: &str) -> String {
    let allowed = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let text: String = package.chars().map(allowed).take(LONGEST_STEM).collect();
    let text = text.trim_matches('-');
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase());
    let stem = if starts { text.to_owned() } else { format!("p{text}") };
    if stem == package { format!("{stem}-run") } else { format!("{stem}-{}-run", &sha256_hex(package)[..8]) }
}
