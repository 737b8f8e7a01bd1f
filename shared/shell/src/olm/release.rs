//! The release to install: this project's, or one of upstream OLM from its manifests.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use olm_core::budget;
use olm_core::distribution::{self, Changes, Mirror, Release};
use olm_core::yaml;
use serde_json::Value;

use crate::cli::{CliError, ErrorKind};
use crate::observe::files;
use crate::tls::install_crypto_provider;
use crate::version::OLM;

/// Where the releases of upstream OLM are published.
const RELEASES: &str = "https://github.com/operator-framework/operator-lifecycle-manager/releases/download";
/// The image of the controllers, without a tag: set while a release is built that has one.
const IMAGE: Option<&str> = option_env!("KUBECTL_OLM_IMAGE");
/// The files of a release.
const FILES: [&str; 2] = ["crds.yaml", "olm.yaml"];
/// The maximum size of a downloaded file in bytes. The CRDs of OLM take less than 1 MB.
const MOST_BYTES: usize = 32 << 20;
/// The time limit for a download.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Which release, and changes to its manifests.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Release options")]
pub struct ReleaseFlags {
    /// Version of upstream OLM, such as v0.28.0 [default: the controllers of kubectl-olm]
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Manifests of that release: a folder or URL with crds.yaml and olm.yaml, or a file or URL of one of them (may be
    /// repeated) [default: the release on GitHub]
    #[arg(long, value_name = "DIR|FILE|URL")]
    pub from: Vec<String>,
    /// Namespace of the controllers [default: olm]
    #[arg(long, value_name = "NAME")]
    pub olm_namespace: Option<String>,
    /// The images.
    #[command(flatten)]
    pub images: ControllerImageFlags,
}

/// The images of the controllers.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Release options")]
pub struct ControllerImageFlags {
    /// Image of the controllers [default: that of the release, if it has one]
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Replace a prefix of all images, such as quay.io=registry.example.com (may be repeated)
    #[arg(long, value_name = "FROM=TO")]
    pub image_mirror: Vec<Mirror>,
    /// Secret in the namespace of the controllers to pull images with (may be repeated)
    #[arg(long = "pull-secret", value_name = "NAME")]
    pub pull_secrets: Vec<String>,
}

/// The command that needs an image of the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// `kubectl olm install`
    Install,
    /// `kubectl olm upgrade`
    Upgrade,
    /// `kubectl olm take-over`
    TakeOver,
}

impl ControllerImageFlags {
    /// Returns this project's release with these images, in a namespace.
    ///
    /// # Errors
    /// There is no image.
    pub(super) fn own(&self, namespace: Option<String>, purpose: Purpose) -> Result<Release, CliError> {
        let image = self.image.clone().or_else(|| released(IMAGE)).ok_or_else(|| no_image(purpose))?;
        Ok(distribution::own(env!("CARGO_PKG_VERSION"), Some(&image)).with(&self.changes(namespace)))
    }

    fn changes(&self, namespace: Option<String>) -> Changes {
        let Self { image, image_mirror, pull_secrets } = self.clone();
        Changes { namespace, image, mirrors: image_mirror, pull_secrets }
    }
}

impl ReleaseFlags {
    /// Returns whether a release of upstream OLM is named.
    pub fn is_upstream(&self) -> bool {
        self.version.is_some() || !self.from.is_empty()
    }

    /// Reads the release: from files, from the network, or this project's own.
    pub(super) async fn read(&self, crds_only: bool, purpose: Purpose) -> Result<Release, CliError> {
        let release = if self.is_upstream() {
            let mut objects = Vec::new();
            for place in self.places()? {
                objects.extend(if is_url(&place) { download(&place).await? } else { local(&place)? });
            }
            distribution::upstream(objects, self.version.as_deref(), crds_only)
                .map_err(|error| CliError::input(&error.message).hint(&error.hint))?
        } else if crds_only {
            distribution::own(env!("CARGO_PKG_VERSION"), None)
        } else {
            return self.images.own(self.olm_namespace.clone(), purpose);
        };
        Ok(release.with(&self.images.changes(self.olm_namespace.clone())))
    }

    /// Returns the files, folders and addresses to read.
    fn places(&self) -> Result<Vec<String>, CliError> {
        let Some(version) = self.version.as_ref().filter(|_| self.from.is_empty()) else {
            let both = |base: &String| {
                let is_file = [".yaml", ".yml", ".json"].iter().any(|extension| base.ends_with(extension));
                if is_url(base) && !is_file {
                    FILES.map(|file| format!("{}/{file}", base.trim_end_matches('/'))).to_vec()
                } else {
                    vec![base.clone()]
                }
            };
            return Ok(self.from.iter().flat_map(both).collect());
        };
        if olm_core::version::parse(version.trim_start_matches('v')).is_err() {
            return Err(CliError::usage(format!("--version {version:?} is not a version"))
                .hint("write it as v0.28.0, or specify the manifests with --from"));
        }
        Ok(FILES.map(|file| format!("{RELEASES}/{}/{file}", distribution::with_v(version))).to_vec())
    }
}

/// Returns the image of this version, whose tag is the one of the release. Workflows set an empty variable if there is none.
fn released(image: Option<&str>) -> Option<String> {
    let image = image.filter(|image| !image.is_empty())?;
    Some(format!("{image}:v{}", env!("CARGO_PKG_VERSION")))
}

/// Returns the error for this project's controllers without an image.
fn no_image(purpose: Purpose) -> CliError {
    let error = CliError::usage("--image is required: this build of kubectl-olm has no published image of the controllers")
        .hint(concat!(
            "build one with krew/image, or specify one that has kubectl-olm-run on its PATH: --image registry.example.com/kubectl-olm:v",
            env!("CARGO_PKG_VERSION")
        ));
    match purpose {
        Purpose::Install => error
            .hint("or install only the CRDs, and run the controllers from outside: kubectl olm install --crds-only && kubectl olm run")
            .hint(format!("or install a release of upstream OLM: --version {OLM}")),
        Purpose::Upgrade => error.hint(format!("or upgrade upstream OLM: --version {OLM}")),
        Purpose::TakeOver => error.hint("or run the controllers on this machine in place of upstream OLM: kubectl olm run --take-over"),
    }
}

fn is_url(place: &str) -> bool {
    place.starts_with("https://") || place.starts_with("http://")
}

fn local(place: &str) -> Result<Vec<Value>, CliError> {
    Ok(files::read(&[Path::new(place).to_owned()])?.into_iter().map(|given| given.object).collect())
}

/// Downloads a file of manifests.
async fn download(url: &str) -> Result<Vec<Value>, CliError> {
    let bytes = tokio::time::timeout(TIMEOUT, fetch(url)).await.unwrap_or_else(|_| {
        Err(CliError::new(ErrorKind::Unreachable, format!("no answer within {} s", TIMEOUT.as_secs())))
    });
    let offline =
        "without access to the network, download crds.yaml and olm.yaml of the release elsewhere, and pass --from DIR";
    let bytes = bytes.map_err(|error| error.at(url).hint(offline))?;
    let invalid = |error: yaml::Error| CliError::input(error.to_string()).at(url);
    let mut objects = Vec::new();
    for document in yaml::documents(&bytes).map_err(invalid)? {
        let (value, _) = document.parse_within(budget::Document::FILE).map_err(invalid)?;
        if value.is_object() {
            objects.push(value);
        }
    }
    Ok(objects)
}

async fn fetch(url: &str) -> Result<Vec<u8>, CliError> {
    install_crypto_provider();
    let failed = |error: reqwest::Error| {
        CliError::new(ErrorKind::Unreachable, crate::causes::innermost(&error)).caused_by(&error)
    };
    let client = reqwest::Client::builder()
        .user_agent(concat!("kubectl-olm/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(failed)?;
    let mut response = client.get(url).send().await.map_err(failed)?;
    let status = response.status();
    if !status.is_success() {
        let error = CliError::new(ErrorKind::Unreachable, format!("the server responds with {status}"));
        return Err(if status.as_u16() == 404 { error.hint("check that this release exists") } else { error });
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            return Err(CliError::input(format!("the file is larger than {} MiB", MOST_BYTES >> 20)));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Purpose, no_image, released};

    #[test]
    fn each_command_names_what_it_can_do_without_an_image() {
        for (purpose, alternative) in [
            (Purpose::Install, "kubectl olm install --crds-only"),
            (Purpose::Upgrade, "or upgrade upstream OLM: --version v0."),
            (Purpose::TakeOver, "kubectl olm run --take-over"),
        ] {
            let hints = no_image(purpose).hints;
            assert!(hints[0].ends_with(concat!("kubectl-olm:v", env!("CARGO_PKG_VERSION"))), "{hints:?}");
            assert!(hints[1].contains(alternative), "{hints:?}");
        }
    }

    #[test]
    fn a_release_with_an_image_is_its_default() {
        let expected = concat!("registry.example.com/olm/run:v", env!("CARGO_PKG_VERSION"));
        assert_eq!(released(Some("registry.example.com/olm/run")).as_deref(), Some(expected));
        assert_eq!((released(Some("")), released(None)), (None, None));
    }
}
