//! `kubectl olm run`: OLM's controllers, against a cluster or against files.
//!
//! ```text
//!   live      a cluster: live and --audit       guard      what must be so before
//!                                               endpoints  health and metrics
//!                                               log        what is said meanwhile: log lines, or a timeline
//!                                               causes     reasons that last, each once
//!   simulate  a cluster in memory               script     steps, when a folder has a scenario.yaml
//!   crds      --install-crds
//!   release   --release-finalizers
//!
//!   of both:  story     what happened, in lines
//!             report    what is blocked, and why
//!             ends      where everything has ended
//! ```

pub mod audit;
mod causes;
mod crds;
mod endpoints;
mod ends;
mod guard;
mod live;
mod log;
mod release;
mod report;
mod script;
mod simulate;
mod story;
mod timeline;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use olm_core::settings::{CatalogPods, Settings};

pub use self::release::Release;
use crate::cli::flags::{ClusterFlags, DataFormat, ImageFlags};
use crate::cli::{CliError, ErrorKind, Outcome, Printer};
use crate::image;
pub use crate::registry::local::CatalogDirectory;

/// What `kubectl olm run` was asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Against what, and how far.
    pub mode: Mode,
    /// Which API server, and as whom. Not looked at when simulating.
    pub cluster: ClusterFlags,
    /// The global catalog namespace, whose catalogs every namespace sees: `olm`.
    pub namespace: String,
    /// The namespace of objects that say none, when simulating: `default`.
    pub objects_namespace: String,
    /// Catalogs that are served from local directories.
    pub catalogs: Vec<CatalogDirectory>,
    /// What catalog images hold when simulating, where no image is pulled.
    pub catalog_images: Vec<CatalogImage>,
    /// What bundle images hold when simulating.
    pub bundle_images: Vec<BundleImage>,
    /// Serve catalogs of images and ConfigMaps from pods, as OLM does.
    pub catalog_pods: bool,
    /// How registries are asked for images.
    pub images: ImageFlags,
    /// Most bytes of a catalog that are taken from an image, if not as many as usual.
    pub image_size_limit: Option<u64>,
    /// Features that are switched on or off.
    pub feature_gates: FeatureGates,
    /// Try optional objects again when their API appears.
    pub retry_optional: bool,
    /// Namespaces that get copies of what is offered in all namespaces even when OLMConfig switches copies off.
    pub protected_copied_csv_namespaces: Vec<String>,
    /// Print documents of this format instead of lines: the final objects when simulating, an [`audit::AuditEvent`] each when auditing.
    pub output: Option<DataFormat>,
    /// Tell what happens as log lines, also on a terminal.
    pub log_lines: bool,
}

impl Options {
    /// How images are pulled, all of which objects of the cluster name.
    fn images(&self) -> Result<image::Options, CliError> {
        let mut images = self.images.options()?.for_others();
        if let Some(kept) = self.image_size_limit {
            images.limits.kept = kept;
            images.limits.unpacked = images.limits.unpacked.max(kept);
        }
        Ok(images)
    }
}

/// The three modes of the one loop, and what prepares a cluster for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Plan against the cluster and execute.
    Live {
        /// Stop when there is nothing left to do.
        once: bool,
        /// With `once`: stop after this time in any case.
        timeout: Option<Duration>,
        /// Go on although a real OLM runs here: stop it first.
        take_over: bool,
        /// Hold the Lease that keeps two of these from writing at a time.
        lease: bool,
        /// Where to serve metrics.
        metrics: Option<SocketAddr>,
        /// Where to serve `/healthz` and `/readyz`.
        health: Option<SocketAddr>,
    },
    /// Plan against the cluster, print the actions, execute nothing.
    Audit {
        /// Stop when the cluster was looked at once.
        once: bool,
        /// With `once`: stop after this time in any case.
        timeout: Option<Duration>,
    },
    /// Plan against the objects in these files and directories, with a virtual clock.
    Simulate(Vec<PathBuf>),
    /// Install or update the CRDs of OLM's resources, and nothing else.
    InstallCrds,
    /// Finish deletions that wait for OLM's finalizer, and nothing else.
    ReleaseFinalizers(Release),
}

/// `--catalog-image REF=DIR`: the file-based catalog that an image stands for in a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogImage {
    /// The image's reference, as CatalogSources have it.
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

/// `--bundle-image REF=PATH`: the bundle that an image holds in a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleImage {
    /// The image's reference, as catalogs have it.
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

/// `IMAGE=PATH`
fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(reference, path)| !reference.is_empty() && !path.is_empty())
}

/// `--feature-gates NAME=true|false,…`, as Kubernetes has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates(BTreeMap<&'static str, bool>);

impl FeatureGates {
    /// The features that have a gate.
    pub const KNOWN: [&'static str; 1] = [Self::OPTIONAL_MANIFESTS];

    /// Of optional manifests.
    pub const OPTIONAL_MANIFESTS: &'static str = "OptionalManifests";

    /// May installs go on without optional manifests? Off until the feature is stable, the same live, simulated and explained: what is
    /// predicted is what happens.
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
                .ok_or_else(|| format!("no feature is called {name:?}; there is {}", Self::KNOWN.join(", ")))?;
            let value = value.parse().map_err(|_| format!("{name} is true or false, not {value:?}"))?;
            gates.insert(name, value);
        }
        Ok(Self(gates))
    }
}

impl Options {
    /// The choices that controllers need: the same live and simulated.
    fn settings(&self) -> Settings {
        Settings {
            global_catalog_namespace: self.namespace.clone(),
            catalog_pods: self.catalog_pods.then(CatalogPods::default),
            optional_manifests: self.feature_gates.optional_manifests(),
            retry_optional: self.retry_optional,
            protected_copied_csv_namespaces: self.protected_copied_csv_namespaces.iter().cloned().collect(),
            ..Settings::default()
        }
    }
}

/// Runs the controllers as asked, until they are done or told to stop.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    if let Mode::Simulate(paths) = &options.mode {
        return simulate::run(options, paths, printer);
    }
    // One thread is enough: it waits. Plans are made on another, because they may take their time.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| CliError::new(ErrorKind::Internal, format!("cannot start: {e}")))?;
    let ended = runtime.block_on(async {
        match &options.mode {
            Mode::InstallCrds => crds::install(options, printer).await,
            Mode::ReleaseFinalizers(release) => release::run(options, release, printer).await,
            &Mode::Audit { once, timeout } => {
                live::Live { once, timeout, ..live::Live::audit(options) }.run(printer).await
            }
            &Mode::Live { once, timeout, take_over, lease, metrics, health } => {
                let live = live::Live { options, audit: false, once, timeout, take_over, lease, metrics, health };
                live.run(printer).await
            }
            Mode::Simulate(_) => Ok(Outcome::Done),
        }
    });
    // Watches that still wait for their API server must not hold up the end.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_known_and_true_or_false() {
        let gates: FeatureGates = "OptionalManifests=true".parse().unwrap();
        assert!(gates.optional_manifests());
        for off in ["", "OptionalManifests=false"] {
            assert!(!off.parse::<FeatureGates>().unwrap().optional_manifests(), "{off:?}");
        }
        for wrong in ["OptionalManifests", "OptionalManifests=yes", "Nothing=true"] {
            assert!(wrong.parse::<FeatureGates>().is_err(), "{wrong}");
        }
    }
}
