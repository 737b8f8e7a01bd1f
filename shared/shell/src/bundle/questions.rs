//! Asks for the metadata of a bundle on the terminal.

use olm_core::bundle::synthesis::{DEFAULT_MODE, INSTALL_MODES, MIN_KUBE_VERSION, Manifest, Proposal};

use crate::cli::prompt::text;
use crate::cli::{CliError, Printer};

/// Asks for what is not given as a flag.
pub(super) fn ask(
    package: Option<&str>,
    version: Option<&str>,
    manifests: &[Manifest],
    printer: &mut Printer,
) -> Result<Proposal, CliError> {
    let guess = manifests.iter().find(|manifest| manifest.kind() == "Deployment").map(Manifest::name);
    printer.talk("The manifests have no metadata/olm.yaml. It is created from these answers:");
    let package = match package {
        Some(package) => package.to_owned(),
        None => text(printer, "Package", guess, &is_name)?,
    };
    let version = match version {
        Some(version) => version.to_owned(),
        None => text(printer, "Version of the operator", Some("0.1.0"), &is_version)?,
    };
    let display_name = text(printer, "Name shown to users", Some(&package), &|_| Ok(()))?;
    let min_kube_version = text(printer, "Oldest supported Kubernetes version", Some(MIN_KUBE_VERSION), &is_version)?;
    let question = format!("Install modes ({})", INSTALL_MODES.join(", "));
    let modes = text(printer, &question, Some(DEFAULT_MODE), &|answer| match split(answer)
        .find(|mode| !INSTALL_MODES.contains(mode))
    {
        Some(other) => Err(format!("{other:?} is not an install mode")),
        None if answer.is_empty() => Err("at least one install mode is required".to_owned()),
        None => Ok(()),
    })?;
    let install_modes = split(&modes).map(str::to_owned).collect();
    Ok(Proposal { package, version, display_name, min_kube_version, install_modes })
}

fn split(answer: &str) -> impl Iterator<Item = &str> {
    answer.split([',', ' ']).filter(|word| !word.is_empty())
}

fn is_name(answer: &str) -> Result<(), String> {
    if olm_core::api::names::is_subdomain(answer) {
        Ok(())
    } else {
        Err("a package has a name of lower-case letters, digits, '-' and '.'".to_owned())
    }
}

fn is_version(answer: &str) -> Result<(), String> {
    if answer.parse::<olm_core::version::Version>().is_ok() {
        Ok(())
    } else {
        Err(format!("{answer:?} is not a semantic version: write MAJOR.MINOR.PATCH, as in 1.0.0"))
    }
}
