//! Images for tests: layers built entry by entry, so that they can be invalid in any way, as OCI layouts and pushed to
//! registries.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use serde_json::{Value, json};
use tar::{EntryType, Header};

use crate::registry::{PASSWORD, USER};
use olm_core::api::hash::sha256_hex;

/// How a layer is compressed.
#[derive(Clone, Copy, Debug)]
pub enum Compression {
    /// Uncompressed.
    None,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// A layer under construction.
pub struct Layer {
    tar: tar::Builder<Vec<u8>>,
}

impl Default for Layer {
    fn default() -> Self {
        Self { tar: tar::Builder::new(Vec::new()) }
    }
}

impl Layer {
    /// Adds a regular file.
    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.member(path, EntryType::Regular, "", content.as_ref())
    }

    /// Adds a folder.
    #[must_use]
    pub fn folder(self, path: &str) -> Self {
        self.member(path, EntryType::Directory, "", &[])
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.member(path, EntryType::Symlink, target, &[])
    }

    /// Adds any member, without validation.
    #[must_use]
    pub fn member(mut self, path: &str, kind: EntryType, target: &str, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        // The crate's own setters refuse the invalid values to be tested.
        if path.len() > 100 {
            self = self.member("././@LongLink", EntryType::GNULongName, "", format!("{path}\0").as_bytes());
        }
        let gnu = header.as_gnu_mut().unwrap_or_else(|| unreachable!("it was made as one"));
        fill(&mut gnu.name, path);
        fill(&mut gnu.linkname, target);
        header.set_cksum();
        self.tar.append(&header, content).unwrap_or_else(|e| unreachable!("writing to memory: {e}"));
        self
    }

    /// Returns the bytes of the layer.
    pub fn finish(self, compression: Compression) -> Vec<u8> {
        let tar = self.tar.into_inner().unwrap_or_else(|e| unreachable!("writing to memory: {e}"));
        compress(&tar, compression)
    }
}

fn fill(field: &mut [u8], text: &str) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
}

/// Compresses bytes.
pub fn compress(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let result = match compression {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).and_then(|()| encoder.finish())
        }
        Compression::Zstd => zstd::encode_all(bytes, 1),
    };
    result.unwrap_or_else(|e| unreachable!("writing to memory: {e}"))
}

/// Returns the sha256 digest of bytes.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// An image or an index, with its blobs.
#[derive(Clone, Debug)]
pub struct Image {
    /// The media type of the manifest.
    pub media_type: &'static str,
    /// The manifest, which a test may change.
    pub manifest: Value,
    /// Blobs by digest, including the manifests of an index.
    pub blobs: BTreeMap<String, Vec<u8>>,
}

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

impl Image {
    /// Creates an image with labels and layers.
    pub fn new(labels: &[(&str, &str)], layers: Vec<Vec<u8>>) -> Self {
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        let ids: Vec<String> = layers.iter().map(|l| digest(l)).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": { "Labels": labels },
            "rootfs": { "type": "layers", "diff_ids": ids },
        });
        let config = config.to_string().into_bytes();
        let descriptor = |media_type: &str, blob: &[u8]| json!({ "mediaType": media_type, "digest": digest(blob), "size": blob.len() });
        let layer = "application/vnd.oci.image.layer.v1.tar+gzip";
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": layers.iter().map(|l| descriptor(layer, l)).collect::<Vec<_>>(),
        });
        let blobs = layers.into_iter().chain([config]).map(|blob| (digest(&blob), blob)).collect();
        Self { media_type: MANIFEST, manifest, blobs }
    }

    /// Creates a file-based catalog in one layer, from files below `configs`.
    pub fn catalog(files: &[(&str, &str)]) -> Self {
        let layer =
            files.iter().fold(Layer::default(), |layer, (name, text)| layer.file(&format!("configs/{name}"), text));
        Self::new(
            &[("operators.operatorframework.io.index.configs.v1", "/configs")],
            vec![layer.finish(Compression::Gzip)],
        )
    }

    /// Creates a bundle in one layer, from files of `manifests` and `metadata` by their paths.
    pub fn bundle(package: &str, files: &[(impl AsRef<str>, impl AsRef<[u8]>)]) -> Self {
        let add = |layer: Layer, (path, content): &(_, _)| layer.file(AsRef::<str>::as_ref(path), content);
        let layer = files.iter().fold(Layer::default(), add);
        let labels = [
            ("operators.operatorframework.io.bundle.package.v1", package),
            ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
            ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
        ];
        Self::new(&labels, vec![layer.finish(Compression::Gzip)])
    }

    /// Creates an index of images for `os/architecture`.
    pub fn index(images: &[(&str, &Self)]) -> Self {
        let mut blobs = BTreeMap::new();
        let mut manifests = Vec::new();
        for (platform, image) in images {
            let (os, architecture) = platform.split_once('/').unwrap_or((platform, ""));
            let bytes = image.bytes();
            manifests.push(json!({
                "mediaType": image.media_type, "digest": digest(&bytes), "size": bytes.len(),
                "platform": { "os": os, "architecture": architecture },
            }));
            blobs.extend(image.blobs.clone());
            blobs.insert(digest(&bytes), bytes);
        }
        let manifest = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        Self { media_type: INDEX, manifest, blobs }
    }

    /// Returns the bytes of the manifest.
    pub fn bytes(&self) -> Vec<u8> {
        self.manifest.to_string().into_bytes()
    }

    /// Returns the digest of the manifest.
    pub fn digest(&self) -> String {
        digest(&self.bytes())
    }

    /// Writes an OCI layout with this image only.
    pub fn write_layout(&self, folder: &Path) -> Result<()> {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        let manifest = self.bytes();
        for (digest, blob) in self.blobs.iter().chain([(&self.digest(), &manifest)]) {
            fs::write(blobs.join(digest.trim_start_matches("sha256:")), blob)?;
        }
        let descriptor = json!({
            "mediaType": self.media_type, "digest": self.digest(), "size": manifest.len(),
            "annotations": { "org.opencontainers.image.ref.name": "latest" },
        });
        fs::write(folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        fs::write(folder.join("index.json"), json!({ "schemaVersion": 2, "manifests": [descriptor] }).to_string())?;
        Ok(())
    }

    /// Pushes the image to a registry as `reference`, with `authority` as trusted certificate authority and the user's
    /// credentials.
    pub async fn push(&self, reference: &str, authority: &[u8]) -> Result<()> {
        olm_shell::tls::install_crypto_provider();
        let reference: Reference = reference.parse()?;
        let mut config = ClientConfig::default();
        if authority.is_empty() {
            config.protocol = ClientProtocol::HttpsExcept(vec![reference.registry().to_owned()]);
        } else {
            let authority = Certificate { encoding: CertificateEncoding::Pem, data: authority.to_vec() };
            config.extra_root_certificates = vec![authority];
        }
        let client = Client::try_from(config)?;
        let auth = RegistryAuth::Basic(USER.to_owned(), PASSWORD.to_owned());
        client.auth(&reference, &auth, RegistryOperation::Push).await?;
        let is_manifest = |blob: &[u8]| serde_json::from_slice::<Value>(blob).is_ok_and(|v| v.get("layers").is_some());
        for (digest, blob) in self.blobs.iter().filter(|(_, blob)| !is_manifest(blob)) {
            client.push_blob(&reference, blob.clone(), digest).await.with_context(|| format!("blob {digest}"))?;
        }
        let push = async |reference: &Reference, bytes: Vec<u8>, media_type: &str| {
            let media_type = media_type.parse()?;
            client.push_manifest_raw(reference, bytes, media_type).await.context("manifest")
        };
        for (digest, blob) in self.blobs.iter().filter(|(_, blob)| is_manifest(blob)) {
            push(&reference.clone_with_digest(digest.clone()), blob.clone(), MANIFEST).await?;
        }
        push(&reference, self.bytes(), self.media_type).await?;
        Ok(())
    }
}
