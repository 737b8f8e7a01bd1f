//! `kubectl olm bundle push`: an image of an OCI layout or an archive to a registry.

use std::path::Path;

use super::unpack;
use crate::cli::flags::{DataFormat, RegistryFlags};
use crate::cli::{CliError, Outcome, Printer};
use crate::delivery::push;
use crate::image::{Location, Pushable};

/// The options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The layout or archive, as given by the user.
    pub source: String,
    /// The image in the registry.
    pub target: String,
    /// How the registry is accessed.
    pub registries: RegistryFlags,
    /// The output format; by default only the digest is printed.
    pub format: Option<DataFormat>,
}

/// Pushes the image, and prints its digest.
///
/// # Errors
/// The layout is invalid, the image is not a bundle, or the registry refuses it.
pub fn run(options: &Options, printer: &mut Printer) -> Result<Outcome, CliError> {
    let source = unpack::location(&options.source)?;
    if let Location::Registry(reference) = source {
        return Err(CliError::usage(format!("{reference} is not an OCI layout or an archive"))
            .hint("write ./PATH for a file or directory; skopeo copy copies between registries"));
    }
    let read = Pushable::read(&source, &crate::image::Options::default());
    let is_bundle = Path::new(&options.source).join("metadata").is_dir();
    let read = read.map_err(|error| match CliError::from(error) {
        error if is_bundle => {
            let (directory, target) = (&options.source, &options.target);
            let hint = format!("to push a bundle directory: kubectl olm bundle build {directory} -t {target} --push");
            CliError { hints: vec![hint], ..error }
        }
        error => error,
    })?;
    push(&read, &options.target, &options.registries, options.format, printer)
}
