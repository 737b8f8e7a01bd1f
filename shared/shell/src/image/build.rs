//! Builds images: one layer of files, a configuration and a manifest, reproducible to the byte; and indexes of them, for several platforms.
//!
//! *Guarantee.* The result depends on the arguments only. Documents are serialized from types with a fixed order of fields, the members
//! of the layer are sorted and have no owner, time or extended attributes, and gzip's header has no time and no operating system.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::str::FromStr;

use flate2::{Compression, GzBuilder};
use olm_core::api::hash::sha256_hex;
use serde::Serialize;
use tar::{EntryType, Header};

use super::Error;

/// The gzip level. Another level changes the digest of every image.
const LEVEL: u32 = 9;
/// The media type of an index.
pub(super) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The operating system in gzip's header: unknown.
const NO_SYSTEM: u8 = 255;
/// Longest path of a file, in bytes, which readers of images support.
const LONGEST_PATH: usize = 4096;
/// The name of extended headers and of members whose path is in one: longer than 100 bytes, or with other characters than ASCII.
const EXTENDED: &str = "PaxHeaders.0/path";
/// The time of creation: a real one would make two builds differ.
const CREATED: &str = "1970-01-01T00:00:00Z";
/// The creator in the history of bundle images.
const CREATED_BY: &str = "kubectl olm bundle build";

/// The family of media types of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum MediaTypes {
    /// Those of the OCI image specification
    #[default]
    Oci,
    /// Those of docker's image manifest, version 2, schema 2, for registries without OCI support
    Docker,
}

impl MediaTypes {
    pub(super) const fn manifest(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.manifest.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.v2+json",
        }
    }

    const fn config(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.config.v1+json",
            Self::Docker => "application/vnd.docker.container.image.v1+json",
        }
    }

    const fn layer(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Docker => "application/vnd.docker.image.rootfs.diff.tar.gzip",
        }
    }
}

/// A platform: `linux/amd64`, `linux/arm/v7`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Platform {
    os: String,
    architecture: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

impl Default for Platform {
    /// Returns `linux/amd64`. Bundles do not depend on the platform: clients pull an image that is in no index regardless of it.
    fn default() -> Self {
        Self { os: "linux".to_owned(), architecture: "amd64".to_owned(), variant: None }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_word = |part: &&str| {
            !part.is_empty() && part.len() <= 32 && part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        match parts[..] {
            [os, architecture, ref variant @ ..] if parts.iter().all(is_word) && variant.len() < 2 => {
                let variant = variant.first().map(|&variant| variant.to_owned());
                Ok(Self { os: os.to_owned(), architecture: architecture.to_owned(), variant })
            }
            _ => Err("expected OS/ARCHITECTURE or OS/ARCHITECTURE/VARIANT, as in linux/amd64".to_owned()),
        }
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

/// The content of an image to build.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// Files by their paths in the image, without a leading slash.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Modes of files and folders that are not 0644 and 0755. The path of a folder ends with a slash; a folder that is named here exists
    /// even if it is empty.
    pub modes: BTreeMap<String, u32>,
    /// How a container of the image is started. Images of catalogs and bundles are data.
    pub process: Option<Process>,
    /// Labels of the configuration.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the manifest. Docker's manifests cannot have any.
    pub annotations: BTreeMap<String, String>,
    /// The platform of the configuration.
    pub platform: Platform,
    /// The media types.
    pub media_types: MediaTypes,
    /// The creator in the image's history; by default that of bundles.
    pub created_by: Option<&'static str>,
}

/// The defaults for the process of a container.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Process {
    /// User and group, as numbers: `65532:65532`. Kubernetes cannot verify that a user with a name is not root.
    pub user: String,
    /// Environment variables: `NAME=value`.
    pub env: Vec<String>,
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// The working directory.
    pub working_dir: String,
}

/// A manifest, a configuration or a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The media type.
    pub media_type: &'static str,
    /// The digest: `sha256:…`.
    pub digest: String,
    /// The content.
    pub bytes: Vec<u8>,
}

impl Blob {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        Self { media_type, digest: digest(&bytes), bytes }
    }

    fn descriptor(&self) -> Descriptor<'_> {
        Descriptor { media_type: self.media_type, digest: &self.digest, size: self.bytes.len() }
    }
}

/// A built image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The manifest, whose digest is the image's.
    pub manifest: Blob,
    /// The configuration.
    pub config: Blob,
    /// The only layer.
    pub layer: Blob,
    /// The platform of the configuration.
    platform: Platform,
}

/// A built index, with its images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIndex {
    /// The index, whose digest is that of the image for all platforms.
    pub index: Blob,
    /// The image of each platform.
    pub images: Vec<Built>,
}

/// An image or an index, with everything that it refers to.
pub trait Assembled {
    /// Returns the manifest or the index that refers to the rest.
    fn root(&self) -> &Blob;
    /// Returns all blobs, in the order in which they must be stored: each one after those that it refers to.
    fn blobs(&self) -> Vec<&Blob>;
}

impl Assembled for Built {
    fn root(&self) -> &Blob {
        &self.manifest
    }

    fn blobs(&self) -> Vec<&Blob> {
        vec![&self.layer, &self.config, &self.manifest]
    }
}

impl Assembled for BuiltIndex {
    fn root(&self) -> &Blob {
        &self.index
    }

    fn blobs(&self) -> Vec<&Blob> {
        self.images.iter().flat_map(Assembled::blobs).chain([&self.index]).collect()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor<'a> {
    media_type: &'static str,
    digest: &'a str,
    size: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    schema_version: u32,
    media_type: &'static str,
    config: Descriptor<'a>,
    layers: [Descriptor<'a>; 1],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'a> {
    schema_version: u32,
    media_type: &'static str,
    manifests: Vec<IndexEntry<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct IndexEntry<'a> {
    #[serde(flatten)]
    image: Descriptor<'a>,
    platform: &'a Platform,
}

#[derive(Serialize)]
struct Configuration<'a> {
    created: &'static str,
    architecture: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<&'a str>,
    os: &'a str,
    config: ContainerConfig<'a>,
    rootfs: RootFs,
    history: [History; 1],
}

#[derive(Serialize)]
struct ContainerConfig<'a> {
    #[serde(flatten)]
    process: Option<&'a Process>,
    #[serde(rename = "Labels")]
    labels: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct RootFs {
    r#type: &'static str,
    diff_ids: [String; 1],
}

#[derive(Serialize)]
struct History {
    created: &'static str,
    created_by: &'static str,
}

/// Builds an image.
///
/// # Errors
/// A path does not fit into a tar header, or there are annotations for a docker manifest.
pub fn build(recipe: &Recipe) -> Result<Built, Error> {
    let Recipe { files, modes, process, labels, annotations, platform, media_types, created_by } = recipe;
    if *media_types == MediaTypes::Docker && !annotations.is_empty() {
        return Err(Error::DockerAnnotations);
    }
    let tar = tar_with(files, modes)?;
    let diff_id = digest(&tar);
    let layer = Blob::new(media_types.layer(), gzip(&tar)?);
    let config = Configuration {
        created: CREATED,
        architecture: &platform.architecture,
        variant: platform.variant.as_deref(),
        os: &platform.os,
        config: ContainerConfig { process: process.as_ref(), labels },
        rootfs: RootFs { r#type: "layers", diff_ids: [diff_id] },
        history: [History { created: CREATED, created_by: created_by.unwrap_or(CREATED_BY) }],
    };
    let config = Blob::new(media_types.config(), json(&config)?);
    let manifest = Manifest {
        schema_version: 2,
        media_type: media_types.manifest(),
        config: config.descriptor(),
        layers: [layer.descriptor()],
        annotations,
    };
    let manifest = Blob::new(media_types.manifest(), json(&manifest)?);
    Ok(Built { manifest, config, layer, platform: platform.clone() })
}

/// Builds an index of images, of which clients pull the one of their platform.
///
/// # Errors
/// The images have docker's media types.
pub fn build_index(images: Vec<Built>, annotations: &BTreeMap<String, String>) -> Result<BuiltIndex, Error> {
    if images.iter().any(|image| image.manifest.media_type != MediaTypes::Oci.manifest()) {
        return Err(Error::DockerIndex);
    }
    let entries =
        images.iter().map(|image| IndexEntry { image: image.manifest.descriptor(), platform: &image.platform });
    let index = Index { schema_version: 2, media_type: INDEX_TYPE, manifests: entries.collect(), annotations };
    let index = Blob::new(INDEX_TYPE, json(&index)?);
    Ok(BuiltIndex { index, images })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(value)?)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let builder = GzBuilder::new().mtime(0).operating_system(NO_SYSTEM);
    let mut encoder = builder.write(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Returns a tar archive of the files and of their folders, sorted by path.
pub(super) fn tar(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, Error> {
    tar_with(files, &BTreeMap::new())
}

/// Does the same with other modes than the usual ones for some files and folders.
fn tar_with(files: &BTreeMap<String, Vec<u8>>, modes: &BTreeMap<String, u32>) -> Result<Vec<u8>, Error> {
    let folders: BTreeSet<String> = files
        .keys()
        .chain(modes.keys())
        .flat_map(|path| path.match_indices('/').map(|(end, _)| format!("{}/", &path[..end])).collect::<Vec<_>>())
        .collect();
    let members: BTreeMap<&str, Option<&Vec<u8>>> = folders
        .iter()
        .map(|folder| (folder.as_str(), None))
        .chain(files.iter().map(|(path, bytes)| (path.as_str(), Some(bytes))))
        .collect();
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in members {
        let kind = if bytes.is_some() { EntryType::Regular } else { EntryType::Directory };
        let bytes = bytes.map_or(&[][..], Vec::as_slice);
        let mut header = header(kind, bytes.len());
        if let Some(mode) = modes.get(path) {
            header.set_mode(*mode);
        }
        if !path.is_ascii() || header.set_path(path).is_err() {
            if path.len() > LONGEST_PATH {
                return Err(Error::LongPath(path.to_owned()));
            }
            let record = pax_record("path", path);
            let mut extended = self::header(EntryType::XHeader, record.len());
            extended.set_path(EXTENDED)?;
            extended.set_cksum();
            archive.append(&extended, record.as_bytes())?;
            // Readers use the path of the extended header.
            header.set_path(EXTENDED)?;
        }
        header.set_cksum();
        archive.append(&header, bytes)?;
    }
    Ok(archive.into_inner()?)
}

/// Returns a header without a path, owner or time.
fn header(kind: EntryType, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(if kind == EntryType::Directory { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size as u64);
    header
}

/// Returns a record of an extended header, which begins with its own length.
fn pax_record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        let files = [("metadata/annotations.yaml", "a: b\n"), ("manifests/z.yaml", "z"), ("manifests/a.yaml", "")];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let labels = [("operators.operatorframework.io.bundle.package.v1".to_owned(), "rose".to_owned())];
        Recipe { files: files.into(), labels: labels.into(), ..Recipe::default() }
    }

    /// The digests are constants: a change of a dependency that compresses or serializes differently must be noticed, because it
    /// changes the digest of every image.
    #[test]
    fn the_same_files_have_the_same_digest_everywhere() {
        let built = build(&recipe()).unwrap();
        assert_eq!(built, build(&recipe()).unwrap());
        let digests: Vec<&str> = built.blobs().into_iter().map(|blob| blob.digest.as_str()).collect();
        assert_eq!(
            digests,
            [
                "sha256:86d5c7d36fa11f69781242b9f9927f770e2d72fc016ff4b291183b1945a304b6",
                "sha256:9fc2aea89deaeb8332954c50ba06be7967993973529f161e0feb8740d600c30d",
                "sha256:6cbe9e11de9acf28e70ff6f1e7b10601fc93c1757a556fe38b3bbc9da1c3c270",
            ]
        );
        let docker = build(&Recipe { media_types: MediaTypes::Docker, ..recipe() }).unwrap();
        assert_eq!(docker.layer.bytes, built.layer.bytes);
        assert_eq!(docker.manifest.digest, "sha256:d0c3b4cd4fa0911dc7bce9c7cb38b44f6f4791b6e184e2736308afa9ea516eda");
    }

    #[test]
    fn members_are_sorted_and_have_neutral_headers() {
        let bytes = tar(&recipe().files).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let members: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
                assert_eq!((header.username_bytes().unwrap(), header.groupname_bytes().unwrap()), (&[][..], &[][..]));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let members: Vec<(&str, u32)> = members.iter().map(|(path, mode)| (path.as_str(), *mode)).collect();
        let expected = [
            ("manifests/", 0o755),
            ("manifests/a.yaml", 0o644),
            ("manifests/z.yaml", 0o644),
            ("metadata/", 0o755),
            ("metadata/annotations.yaml", 0o644),
        ];
        assert_eq!(members, expected);
    }

    #[test]
    fn programs_have_a_mode_and_the_settings_of_their_process() {
        let modes = [("manifests/a.yaml".to_owned(), 0o755), ("tmp/".to_owned(), 0o1777)].into();
        let process = Process {
            user: "65532:65532".to_owned(),
            env: vec!["PATH=/bin".to_owned()],
            entrypoint: vec!["a".to_owned()],
            working_dir: "/".to_owned(),
        };
        let recipe = Recipe { modes, process: Some(process), ..recipe() };
        let bytes = tar_with(&recipe.files, &recipe.modes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let of = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let entry = entry.unwrap();
            (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap())
        };
        let members: Vec<(String, u32)> = archive.entries().unwrap().map(of).collect();
        assert!(members.contains(&("manifests/a.yaml".to_owned(), 0o755)), "{members:?}");
        assert_eq!(members.last(), Some(&("tmp/".to_owned(), 0o1777)));
        let config = String::from_utf8(build(&recipe).unwrap().config.bytes).unwrap();
        let expected =
            r#""config":{"User":"65532:65532","Env":["PATH=/bin"],"Entrypoint":["a"],"WorkingDir":"/","Labels":{"#;
        assert!(config.contains(expected), "{config}");
    }

    #[test]
    fn an_index_refers_to_the_image_of_each_platform() {
        let of = |platform: &str| build(&Recipe { platform: platform.parse().unwrap(), ..recipe() }).unwrap();
        let images = vec![of("linux/amd64"), of("linux/arm/v7")];
        let annotations = [("a".to_owned(), "b".to_owned())].into();
        let built = build_index(images.clone(), &annotations).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&built.index.bytes).unwrap();
        let entry = |image: &Built, platform: serde_json::Value| {
            serde_json::json!({
                "mediaType": MediaTypes::Oci.manifest(), "digest": image.manifest.digest,
                "size": image.manifest.bytes.len(), "platform": platform,
            })
        };
        let expected = serde_json::json!({
            "schemaVersion": 2, "mediaType": INDEX_TYPE, "annotations": { "a": "b" },
            "manifests": [
                entry(&images[0], serde_json::json!({ "os": "linux", "architecture": "amd64" })),
                entry(&images[1], serde_json::json!({ "os": "linux", "architecture": "arm", "variant": "v7" })),
            ],
        });
        assert_eq!(index, expected);
        assert_eq!(built.blobs().last(), Some(&built.root()));
        let docker = build(&Recipe { media_types: MediaTypes::Docker, ..recipe() }).unwrap();
        assert!(matches!(build_index(vec![docker], &annotations), Err(Error::DockerIndex)));
    }

    #[test]
    fn what_an_image_cannot_have_is_refused() {
        let annotations = [("a".to_owned(), "b".to_owned())].into();
        let annotated = Recipe { annotations, ..recipe() };
        let text = |built: Built| String::from_utf8(built.manifest.bytes).unwrap();
        assert!(text(build(&annotated).unwrap()).ends_with(r#","annotations":{"a":"b"}}"#));
        let docker = build(&Recipe { media_types: MediaTypes::Docker, ..annotated });
        assert!(matches!(docker, Err(Error::DockerAnnotations)), "{docker:?}");
        let files = [(format!("manifests/{}", "x".repeat(LONGEST_PATH)), Vec::new())].into();
        let long = build(&Recipe { files, ..recipe() });
        assert!(matches!(long, Err(Error::LongPath(_))), "{long:?}");
    }

    #[test]
    fn long_and_foreign_names_are_in_extended_headers() {
        for length in (1..12).chain(85..120).chain(980..1010) {
            let record = pax_record("path", &"x".repeat(length));
            let (said, _) = record.split_once(' ').unwrap();
            assert_eq!(said.parse::<usize>().unwrap(), record.len());
        }
        let names = [format!("manifests/{}.yaml", "x".repeat(150)), "manifests/Blümchen.yaml".to_owned()];
        let files = names.clone().map(|name| (name, b"a".to_vec())).into();
        let bytes = tar(&files).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let found: Vec<String> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(found, ["manifests/", &names[1], &names[0]]);
    }

    #[test]
    fn platforms_are_parsed() {
        for text in ["linux/amd64", "linux/arm/v7", "windows/amd64"] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
        for text in ["", "linux", "linux/", "linux/a/b/c", "Linux/amd64", "linux/amd64 "] {
            assert!(text.parse::<Platform>().is_err(), "{text:?}");
        }
        assert_eq!(Platform::default().to_string(), "linux/amd64");
    }
}
