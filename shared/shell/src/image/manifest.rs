//! Manifests: selection of an image of an index, its labels and its layers.

use std::collections::{BTreeMap, BTreeSet};

use olm_core::api::hash::hex;
use serde::Deserialize;
use sha2::{Digest as _, Sha256, Sha512};

use super::{BUNDLE_LABEL, CATALOG_LABEL, Error, Kind, MANIFESTS_LABEL, METADATA_LABEL, Requested, TESTS_LABEL};

/// A reference to content, with its digest and size.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: String,
    #[serde(default)]
    pub(super) size: u64,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

impl Descriptor {
    pub(super) fn new(media_type: &str, digest: &str, size: u64) -> Self {
        Self { media_type: media_type.to_owned(), digest: digest.to_owned(), size, ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
}

impl Platform {
    /// Returns the names. Attestations have the platform `unknown`.
    fn named(&self) -> Option<(String, String)> {
        let is_known = |name: &str| !name.is_empty() && name != "unknown";
        (is_known(&self.os) && is_known(&self.architecture)).then(|| (self.os.clone(), self.architecture.clone()))
    }
}

/// A manifest of one image, or an index of several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    #[serde(default)]
    schema_version: u32,
    #[serde(default)]
    pub(super) media_type: String,
    config: Option<Descriptor>,
    #[serde(default)]
    pub(super) layers: Vec<Descriptor>,
    pub(super) manifests: Option<Vec<Descriptor>>,
}

impl Manifest {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let manifest: Self = serde_json::from_slice(bytes).map_err(Error::Manifest)?;
        if manifest.schema_version != 2 {
            return Err(Error::ManifestVersion(manifest.schema_version));
        }
        let all = manifest.layers.iter().chain(&manifest.config).chain(manifest.manifests.iter().flatten());
        all.into_iter().try_for_each(|d| check_digest(&d.digest))?;
        Ok(manifest)
    }

    pub(super) fn config(&self) -> Result<&Descriptor, Error> {
        self.config.as_ref().ok_or(Error::NoConfiguration)
    }
}

/// Selects an image of an index: for Linux on this machine's architecture, as opm does. Otherwise any other image of the index,
/// because catalogs and bundles do not depend on the platform.
pub(super) fn choose(manifests: &[Descriptor]) -> Result<&Descriptor, Error> {
    let here = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    };
    let rank = |d: &&Descriptor| match &d.platform {
        Some(p) if p.os == "linux" && p.architecture == here => 0,
        Some(p) if p.os == "linux" && p.architecture == "amd64" => 1,
        Some(p) if p.os == "linux" => 2,
        None => 3,
        // Attestations have the platform `unknown`.
        Some(p) if p.os == "unknown" => 5,
        Some(_) => 4,
    };
    let best = manifests.iter().min_by_key(rank).filter(|best| rank(best) < 5);
    best.ok_or(Error::EmptyIndex)
}

/// Returns the operating systems and architectures of the images of an index.
pub(super) fn platforms(manifests: &[Descriptor]) -> BTreeSet<(String, String)> {
    manifests.iter().filter_map(|descriptor| descriptor.platform.as_ref()?.named()).collect()
}

/// Returns the operating system and the architecture of an image configuration.
pub(super) fn platform(config: &[u8]) -> Result<Option<(String, String)>, Error> {
    let platform: Platform = serde_json::from_slice(config).map_err(Error::Configuration)?;
    Ok(platform.named())
}

/// Returns the labels of an image configuration.
pub(super) fn labels(config: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    #[derive(Deserialize)]
    struct Config {
        #[serde(default)]
        config: Option<Inner>,
    }
    #[derive(Default, Deserialize)]
    struct Inner {
        #[serde(rename = "Labels", default)]
        labels: Option<BTreeMap<String, String>>,
    }
    let config: Config = serde_json::from_slice(config).map_err(Error::Configuration)?;
    Ok(config.config.unwrap_or_default().labels.unwrap_or_default())
}

/// A folder of an image to store.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// Its path in the image, as the label has it.
    pub(super) path: String,
    /// Its name in the content; if `None`, its path in the image.
    pub(super) name: Option<&'static str>,
    /// Whether it may be missing.
    pub(super) is_optional: bool,
}

impl Folder {
    pub(super) fn new(path: impl Into<String>, name: Option<&'static str>) -> Self {
        Self { path: path.into(), name, is_optional: false }
    }
}

/// Returns the kind of an image, and the folders to store (olm-behaviour/opm.md#rendering).
pub(super) fn kind(labels: &BTreeMap<String, String>, wanted: &Requested) -> Result<(Kind, Vec<Folder>), Error> {
    if let Requested::CatalogIn(folder) = wanted {
        return Ok((Kind::Catalog, vec![Folder::new(folder, Some(""))]));
    }
    let label = |name: &str| labels.get(name).filter(|value| !value.is_empty());
    let is_bundle = matches!(wanted, Requested::Bundle | Requested::BundleFiles);
    let catalog = label(CATALOG_LABEL).filter(|_| !is_bundle);
    if let Some(folder) = catalog {
        return Ok((Kind::Catalog, vec![Folder::new(folder, Some(""))]));
    }
    if label(BUNDLE_LABEL).is_some() && *wanted != Requested::Catalog {
        let folder = |name, default: &str| label(name).cloned().unwrap_or_else(|| default.to_owned());
        let manifests = folder(MANIFESTS_LABEL, "manifests/");
        let metadata = folder(METADATA_LABEL, "metadata/");
        if *wanted == Requested::BundleFiles {
            let mut folders = vec![Folder::new(manifests, None), Folder::new(metadata, None)];
            folders.extend(label(TESTS_LABEL).map(|path| Folder { is_optional: true, ..Folder::new(path, None) }));
            return Ok((Kind::Bundle, folders));
        }
        let folders = [Folder::new(manifests, Some("manifests")), Folder::new(metadata, Some("metadata"))];
        return Ok((Kind::Bundle, folders.into()));
    }
    Err(Error::OtherKind { wanted: wanted.clone(), labels: labels.clone() })
}

/// Checks that a digest has a supported algorithm and the correct format. It is then safe as a part of a path or a URL.
pub(super) fn check_digest(digest: &str) -> Result<(), Error> {
    let hex = |text: &str, length| text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let known = match digest.split_once(':') {
        Some(("sha256", rest)) => hex(rest, 64),
        Some(("sha512", rest)) => hex(rest, 128),
        _ => false,
    };
    if known { Ok(()) } else { Err(Error::Digest(digest.to_owned())) }
}

/// Computes a digest incrementally.
pub(super) enum Digester {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Digester {
    /// Returns a digester for the algorithm of a digest that was checked.
    pub(super) fn like(digest: &str) -> Self {
        if digest.starts_with("sha512:") { Self::Sha512(Sha512::new()) } else { Self::Sha256(Sha256::new()) }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    pub(super) fn finish(self) -> String {
        match self {
            Self::Sha256(hasher) => format!("sha256:{}", hex(&hasher.finalize())),
            Self::Sha512(hasher) => format!("sha512:{}", hex(&hasher.finalize())),
        }
    }
}

/// Computes the digest of bytes, with the algorithm of another digest.
pub(super) fn digest_like(other: &str, bytes: &[u8]) -> String {
    let mut digester = Digester::like(other);
    digester.update(bytes);
    digester.finish()
}

/// Checks that bytes have this digest.
pub(super) fn verify(bytes: &[u8], digest: &str) -> Result<(), Error> {
    let found = digest_like(digest, bytes);
    if found == digest { Ok(()) } else { Err(Error::WrongDigest { expected: digest.to_owned(), found }) }
}
