//! The options of `kubectl olm bundle synthesize`.

use std::path::PathBuf;

use olm_core::bundle::synthesis::Format;

use crate::catalog::Ref;
use crate::cli::flags::{ClusterFlags, CredentialFlags, DataFormat};
use crate::image;

/// What to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// The ClusterServiceVersion alone
    #[default]
    Csv,
    /// A bundle that every OLM installs
    #[value(name = "registry+v1")]
    RegistryV1,
    /// A bundle of plain manifests
    #[value(name = "k8s+v1")]
    PlainV1,
    /// A version of a package in the format before bundles
    #[value(name = "packagemanifests")]
    PackageManifests,
}

impl Target {
    pub(super) fn format(self) -> Format {
        if self == Self::PlainV1 { Format::Plain } else { Format::Registry }
    }
}

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files, directories, or `-`.
    pub paths: Vec<PathBuf>,
    /// The file with the metadata; if `None`, `metadata/olm.yaml` of a directory.
    pub metadata: Option<PathBuf>,
    /// The package; if `None`, taken from the name of the ClusterServiceVersion.
    pub package: Option<String>,
    /// The operator's version, if there is no file with metadata.
    pub version: Option<String>,
    /// The ClusterServiceVersion that this one replaces.
    pub replaces: Option<String>,
    /// The ClusterServiceVersions that updates skip.
    pub skips: Vec<String>,
    /// The channels; if empty, those of the input, else `stable`.
    pub channels: Vec<String>,
    /// The default channel.
    pub default_channel: Option<String>,
    /// What to create.
    pub target: Target,
    /// The directory to write to; if `None`, the ClusterServiceVersion is printed.
    pub output_dir: Option<PathBuf>,
    /// Whether to print the changes of the directory without writing them.
    pub dry_run: bool,
    /// Whether to print where each object went.
    pub account: bool,
    /// The cluster whose APIs are known, if a flag selects one.
    pub cluster: ClusterFlags,
    /// The catalogs whose APIs are known.
    pub catalogs: Vec<Ref>,
    /// How images of catalogs are pulled.
    pub images: image::Options,
    /// The credentials for registries of images of catalogs.
    pub credentials: CredentialFlags,
    /// The output format; by default YAML, and a table for the account.
    pub format: Option<DataFormat>,
}
