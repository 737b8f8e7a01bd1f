//! `kubectl olm bundle build`: an image from the directory of a bundle.
//!
//! *Guarantee.* The digest depends on the files of the bundle and the options only: not on the machine, the user, the time, or modes and
//! order of the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::report::ImageReport;
use super::{directory, push};
use crate::cli::flags::{DataFormat, RegistryFlags};
use crate::cli::{CliError, Outcome, Printer, replace};
use crate::image::{self, Built, Recipe};
pub use crate::image::{MediaTypes, Platform};

/// Where the image goes.
#[derive(Clone, Debug)]
pub enum Destination {
    /// Nowhere: only its digest is printed.
    Nowhere,
    /// An OCI layout, to which it is added.
    Layout(PathBuf),
    /// An archive of an OCI layout.
    Archive(PathBuf),
    /// A registry, under the reference of the image.
    Registry(Box<RegistryFlags>),
}

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
    let name = options.tag.as_deref();
    match &options.destination {
        Destination::Nowhere => {
            printer.talk("the image was not written: pass --push, --oci-layout DIR or --archive FILE");
        }
        Destination::Registry(registries) => {
            let name =
                name.ok_or_else(|| CliError::usage("--push requires the name of the image").hint("pass --tag REF"))?;
            return push::push(&image.into(), name, registries, options.format, printer);
        }
        Destination::Layout(path) => {
            image::write_layout(&image, path, name)?;
            printer.talk(format_args!("image added to {}", path.display()));
        }
        Destination::Archive(path) => {
            // Renaming a file to the path of a device would delete the device.
            let target = replace::target(path).map_err(|e| {
                let hint = "name a regular file, or one that does not exist";
                CliError::from(e).while_doing("cannot write").at(path.display()).hint(hint)
            })?;
            image::write_archive(&image, &target, name)?;
            printer.talk(format_args!("image written to {}", path.display()));
        }
    }
    ImageReport::of_built(&image, name).print(options.format, printer)?;
    Ok(Outcome::Done)
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
