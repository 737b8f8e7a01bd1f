//! Where built images go: a registry, an OCI layout, or an archive of one.

mod report;

use std::path::PathBuf;

pub(crate) use self::report::ImageReport;
use crate::blocking::block_on;
use crate::cli::flags::{DataFormat, RegistryFlags};
use crate::cli::{CliError, Outcome, Printer, registries, replace, signal};
use crate::image::{self, Built, Location, Pushable};

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

/// Writes an image, and prints its digest.
///
/// # Errors
/// The image has no name for a registry, or cannot be written.
pub(crate) fn deliver(
    image: Built,
    name: Option<&str>,
    destination: &Destination,
    format: Option<DataFormat>,
    printer: &mut Printer,
) -> Result<Outcome, CliError> {
    match destination {
        Destination::Nowhere => {
            printer.talk("the image was not written: pass --push, --oci-layout DIR or --archive FILE");
        }
        Destination::Registry(registries) => {
            let name =
                name.ok_or_else(|| CliError::usage("--push requires the name of the image").hint("pass --tag REF"))?;
            return push(&image.into(), name, registries, format, printer);
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
    ImageReport::of_built(&image, name).print(format, printer)?;
    Ok(Outcome::Done)
}

/// Pushes an image, and prints its digest.
///
/// # Errors
/// The registry cannot be reached, or refuses the image.
pub(crate) fn push(
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
        Ok(image.push(&target, &options, &progress.watch()).await?)
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
pub(crate) fn reference(text: &str) -> Result<oci_spec::distribution::Reference, CliError> {
    match text.parse()? {
        Location::Registry(reference) => Ok(reference),
        Location::Layout { .. } => Err(CliError::usage(format!("{text} is not an image in a registry"))
            .hint("write an image as registry.example.com/name:tag")),
    }
}

/// Runs a future until it ends, or returns nothing after a signal: temporary files are then deleted.
pub(crate) fn interruptible<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<Option<T>, CliError> {
    block_on(async {
        tokio::select! {
            ended = future => ended.map(Some),
            () = signal::stopped() => Ok(None),
        }
    })
}
