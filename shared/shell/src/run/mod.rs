//! `kubectl olm run`: OLM's controllers, on a cluster or on files.
//!
//! ```text
//!   live      on a cluster: live and --audit    guard      checks before writing
//!                                               preflight  an audit before a take-over
//!                                               endpoints  health and metrics
//!                                               packages   the API of PackageManifests
//!                                               log        output while running: log lines, or a timeline
//!                                               causes     lasting reasons, each once
//!   simulate  on a cluster in memory            script     steps, for a folder with a scenario.yaml
//!   crds      --install-crds
//!   release   --release-finalizers
//!
//!   of both:  change_log    what happened, in lines
//!             report        what is blocked, and why
//!             final_states  the final state of the objects
//! ```

pub mod audit;
mod causes;
mod change_log;
mod crds;
mod endpoints;
mod final_states;
mod guard;
mod live;
mod log;
mod packages;
pub(crate) mod preflight;
mod release;
mod report;
mod script;
mod simulate;
mod timeline;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use olm_core::settings::{CatalogPods, Settings};

pub use self::packages::PackagesAddress;
pub use self::preflight::TakeOver;
pub use self::release::Release;
use crate::cli::flags::{ClusterFlags, DataFormat, ImageFlags};
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
pub use crate::registry::local::CatalogDirectory;

/// The options of `kubectl olm run`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The mode.
    pub mode: Mode,
    /// The API server, and the identity to use. Ignored in simulations.
    pub cluster: ClusterFlags,
    /// The global catalog namespace, whose catalogs every namespace can use: `olm`.
    pub namespace: String,
    /// In simulations, the namespace of objects without one: `default`.
    pub objects_namespace: String,
    /// Catalogs that are served from local directories.
    pub catalogs: Vec<CatalogDirectory>,
    /// In simulations, which pull no images, the content of catalog images.
    pub catalog_images: Vec<CatalogImage>,
    /// In simulations, the content of bundle images.
    pub bundle_images: Vec<BundleImage>,
    /// Serve catalogs of images and ConfigMaps from pods, as OLM does.
    pub catalog_pods: bool,
    /// How images are pulled.
    pub images: ImageFlags,
    /// The size limit of a catalog from an image, in bytes, if not the default.
    pub image_size_limit: Option<u64>,
    /// Features that are enabled or disabled.
    pub feature_gates: FeatureGates,
    /// Whether to create skipped optional objects once their API is served.
    pub retry_optional: bool,
    /// Namespaces that get copies of globally offered ClusterServiceVersions even if OLMConfig disables copies.
    pub protected_copied_csv_namespaces: Vec<String>,
    /// Print documents in this format instead of text: the final objects of a simulation, or an [`audit::AuditEvent`]
    /// each of an audit.
    pub output: Option<DataFormat>,
    /// Print log lines also on a terminal.
    pub log_lines: bool,
}

impl Options {
    /// Returns the options of a mode, with the default of everything else.
    pub fn new(mode: Mode, cluster: ClusterFlags, namespace: &str) -> Self {
        Self {
            mode,
            cluster,
            namespace: namespace.to_owned(),
            objects_namespace: "default".to_owned(),
            catalogs: Vec::new(),
            catalog_images: Vec::new(),
            bundle_images: Vec::new(),
            catalog_pods: false,
            images: ImageFlags::default(),
            image_size_limit: None,
            feature_gates: FeatureGates::default(),
            retry_optional: false,
            protected_copied_csv_namespaces: Vec::new(),
            output: None,
            log_lines: false,
        }
    }

    /// Returns how images are pulled, all of which are named by objects of the cluster.
    fn images(&self) -> Result<image::Options, CliError> {
        let mut images = self.images.options()?.for_others();
        // Plans decide when to retry.
        images.limits.attempts = 1;
        if let Some(kept) = self.image_size_limit {
            images.limits.kept = kept;
            images.limits.unpacked = images.limits.unpacked.max(kept);
        }
        Ok(images)
    }
}

/// The modes of the controllers, and the commands that prepare or clean up a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Plan against the cluster and execute.
    Live {
        /// Stop when nothing is left to do.
        once: bool,
        /// With `once`: stop after this time in any case.
        timeout: Option<Duration>,
        /// Stop a real OLM on the cluster first, instead of refusing to run.
        take_over: Option<TakeOver>,
        /// Acquire the Lease that prevents two instances from writing at the same time.
        lease: bool,
        /// The address to serve metrics on.
        metrics: Option<SocketAddr>,
        /// The address to serve `/healthz` and `/readyz` on.
        health: Option<SocketAddr>,
        /// Where the API server reaches this process, to serve PackageManifests.
        packages: Option<PackagesAddress>,
    },
    /// Plan against the cluster, print the actions, execute nothing.
    Audit {
        /// Stop after one pass over the cluster.
        once: bool,
        /// With `once`: stop after this time in any case.
        timeout: Option<Duration>,
    },
    /// Plan against the objects in these files and directories, with a virtual clock.
    Simulate(Vec<PathBuf>),
    /// Only install or update the CRDs of OLM's resources.
    InstallCrds {
        /// Update also those of an upstream OLM.
        allow_changes: bool,
    },
    /// Only finish deletions that wait for OLM's finalizer.
    ReleaseFinalizers(Release),
}

/// `--catalog-image REF=DIR`: the file-based catalog to use for an image in a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogImage {
    /// The image reference, as in CatalogSources.
    pub reference: String,
    /// The directory.
    pub directory: PathBuf,
}

impl FromStr for CatalogImage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (reference, directory) = named(text).ok_or("expected IMAGE=DIR")?;
        Ok(Self { reference: reference.to_owned(), directory: directory.into() })
    }
}

/// `--bundle-image REF=PATH`: the bundle to use for an image in a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImage {
    /// The image reference, as in catalogs.
    pub reference: String,
    /// A bundle directory, or an OCI layout or archive of one: `PATH[:NAME]`.
    pub path: String,
}

impl FromStr for BundleImage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (reference, path) = named(text).ok_or("expected IMAGE=PATH")?;
        Ok(Self { reference: reference.to_owned(), path: path.to_owned() })
    }
}

/// Splits `IMAGE=PATH`.
fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(reference, path)| !reference.is_empty() && !path.is_empty())
}

/// `--feature-gates NAME=true|false,…`, as in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<&'static str, bool>);

impl FeatureGates {
    /// The features that have a gate.
    pub const KNOWN: [&'static str; 2] = [Self::OPTIONAL_MANIFESTS, Self::PLAIN_BUNDLES];

    /// The gate of optional manifests.
    pub const OPTIONAL_MANIFESTS: &'static str = "OptionalManifests";

    /// The gate of bundles of type `k8s+v1`.
    pub const PLAIN_BUNDLES: &'static str = "PlainBundles";

    /// Returns whether images of bundles of type `k8s+v1` are unpacked.
    pub fn plain_bundles(&self) -> bool {
        self.0.get(Self::PLAIN_BUNDLES).copied().unwrap_or(true)
    }

    /// Returns whether installs may skip optional manifests. Disabled until the feature is stable; the same for live
    /// runs, simulations and explanations, so that predictions are accurate.
    pub fn optional_manifests(&self) -> bool {
        self.0.get(Self::OPTIONAL_MANIFESTS).copied().unwrap_or_default()
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gates = BTreeMap::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| format!("expected {pair}=true or {pair}=false"))?;
            let name = Self::KNOWN
                .into_iter()
                .find(|known| *known == name)
                .ok_or_else(|| format!("unknown feature gate {name:?}; known gates: {}", Self::KNOWN.join(", ")))?;
            let value =
                value.parse().map_err(|_| format!("invalid value {value:?} of {name}: expected true or false"))?;
            gates.insert(name, value);
        }
        Ok(Self(gates))
    }
}

impl Options {
    /// Returns the settings of the controllers, the same for live runs and simulations.
    fn settings(&self) -> Settings {
        Settings {
            global_catalog_namespace: self.namespace.clone(),
            catalog_pods: self.catalog_pods.then(CatalogPods::default),
            optional_manifests: self.feature_gates.optional_manifests(),
            plain_bundles: self.feature_gates.plain_bundles(),
            retry_optional: self.retry_optional,
            protected_copied_csv_namespaces: self.protected_copied_csv_namespaces.iter().cloned().collect(),
            ..Settings::default()
        }
    }
}

/// Returns whether this process runs in a pod, and is started again when it ends.
fn is_in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// Runs the command until it is done or stopped.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if let Mode::Simulate(paths) = &options.mode {
        return simulate::run(options, paths, printer);
    }
    if let Mode::Live { take_over: Some(take_over), .. } = options.mode
        && let Some(outcome) = preflight::take_over(options, take_over, printer)?
    {
        return Ok(outcome);
    }
    // One thread is enough, since it mostly waits. Plans are computed on another, because they can take long.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| CliError::new(ErrorKind::Internal, format!("cannot start: {e}")))?;
    let ended = runtime.block_on(async {
        match &options.mode {
            Mode::InstallCrds { allow_changes } => crds::install(options, *allow_changes, printer).await,
            Mode::ReleaseFinalizers(release) => release::run(options, release, printer).await,
            &Mode::Audit { once, timeout } => {
                live::Live { once, timeout, ..live::Live::audit(options) }.run(printer).await
            }
            Mode::Live { once, timeout, take_over, lease, metrics, health, packages } => {
                let (once, timeout, take_over, lease) = (*once, *timeout, take_over.is_some(), *lease);
                let (metrics, health, packages) = (*metrics, *health, packages.as_ref());
                let live =
                    live::Live { options, audit: false, once, timeout, take_over, lease, metrics, health, packages };
                live.run(printer).await
            }
            Mode::Simulate(_) => Ok(Outcome::Done),
        }
    });
    if matches!(options.mode, Mode::Live { take_over: Some(_), .. }) {
        runtime.block_on(preflight::warn_if_stopped(options, printer));
    }
    // Do not wait for watches that are still connecting.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_known_and_true_or_false() {
        let gates: FeatureGates = "OptionalManifests=true".parse().unwrap();
        assert!(gates.optional_manifests() && gates.plain_bundles());
        assert!(!"PlainBundles=false".parse::<FeatureGates>().unwrap().plain_bundles());
        for off in ["", "OptionalManifests=false"] {
            assert!(!off.parse::<FeatureGates>().unwrap().optional_manifests(), "{off:?}");
        }
        for wrong in ["OptionalManifests", "OptionalManifests=yes", "Nothing=true"] {
            assert!(wrong.parse::<FeatureGates>().is_err(), "{wrong}");
        }
    }
}
