//! `kubectl olm bundle build`: an image from the directory of a bundle.
//!
//! *Guarantee.* The digest depends on the files of the bundle and the options only: not on the machine, the user, the time, or modes and
//! order of the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::directory;
use crate::cli::flags::DataFormat;
use crate::cli::{CliError, Outcome, Printer};
pub use crate::delivery::Destination;
use crate::delivery::deliver;
use crate::image::{self, Built, Recipe};
pub use crate::image::{MediaTypes, Platform};

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory with the manifests and metadata.
    pub directory: PathBuf,
    /// The reference of the image.
    pub tag: Option<String>,
    /// Where the image goes.
    pub destination: Destination,
    /// The platform in its configuration.
    pub platform: Platform,
    /// Its media types.
    pub media_types: MediaTypes,
    /// Labels in addition to the annotations of the bundle.
    pub labels: BTreeMap<String, String>,
    /// Annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
    /// The output format; by default only the digest is printed.
    pub format: Option<DataFormat>,
}

/// Builds the image, writes it, and prints its digest.
///
/// # Errors
/// The bundle cannot be read or is incomplete, or the image cannot be written.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let (image, warnings) = built(options)?;
    for warning in warnings {
        printer.warn(warning);
    }
    deliver(image, options.tag.as_deref(), &options.destination, options.format, printer)
}

/// Returns the image, and warnings about what is not part of it.
fn built(options: &Options) -> Result<(Built, Vec<String>), CliError> {
    let bundle = directory::read(&options.directory)?;
    let mut labels = bundle.annotations;
    for (key, value) in &options.labels {
        if labels.get(key).is_some_and(|of_bundle| of_bundle != value) {
            return Err(CliError::usage(format!("the bundle has another value for the label {key}"))
                .at(Path::new(&options.directory).join("metadata").display())
                .hint("labels of the image are the annotations of the bundle: change the annotation"));
        }
        labels.insert(key.clone(), value.clone());
    }
    let recipe = Recipe {
        files: bundle.files,
        labels,
        annotations: options.annotations.clone(),
        platform: options.platform.clone(),
        media_types: options.media_types,
        ..Recipe::default()
    };
    Ok((image::build(&recipe)?, bundle.warnings))
}

/// Parses `KEY=VALUE` of a label or an annotation.
///
/// # Errors
/// There is no key, or no equals sign.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !key.contains(char::is_control) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}
