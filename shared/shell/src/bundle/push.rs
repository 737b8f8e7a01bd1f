//! `kubectl olm bundle push`: an image of an OCI layout or an archive to a registry.

use std::path::Path;
use std::sync::Arc;

use super::report::ImageReport;
use super::{interruptible, registries, unpack};
use crate::cli::flags::{DataFormat, RegistryFlags};
use crate::cli::{CliError, Outcome, Printer};
use crate::image::{Location, Pushable, Sent};

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

/// Pushes an image, and prints its digest.
pub(super) fn push(
    image: &Pushable,
    target: &str,
    registries: &RegistryFlags,
    format: Option<DataFormat>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    let target = reference(target)?;
    let pushed = interruptible(async {
        let options = registries::options(registries, printer).await?;
        let progress = printer.progress(format!("pushing {target}"));
        let watch = Arc::new(move |sent: Sent| progress.bytes(sent.done, sent.total));
        let watch: crate::image::Watch = watch;
        Ok(image.push(&target, &options, &watch).await?)
    })?;
    if pushed.is_none() {
        return Ok(Outcome::Interrupted);
    }
    printer.talk(format_args!("image pushed to {target}"));
    ImageReport::of_pushable(image, Some(&target.to_string())).print(format, printer)?;
    Ok(Outcome::Done)
}

/// Parses the reference of an image in a registry.
///
/// # Errors
/// It is a path, or not a reference.
pub(super) fn reference(text: &str) -> Result<oci_spec::distribution::Reference, CliError> {
    match text.parse()? {
        Location::Registry(reference) => Ok(reference),
        Location::Layout { .. } => Err(CliError::usage(format!("{text} is not an image in a registry"))
            .hint("write an image as registry.example.com/name:tag")),
    }
}
