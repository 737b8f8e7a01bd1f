//! Prompts for the metadata of a bundle on the terminal: for all of it, or for the required fields that olm.yaml lacks.

use olm_core::bundle::synthesis::{DEFAULT_MODE, INSTALL_MODES, MIN_KUBE_VERSION, Manifest, Proposal};
use serde_json::{Map, Value, json};

use crate::cli::prompt::{optional, text};
use crate::cli::{CliError, Printer};

/// Prompts for the fields that are missing and that no flag states, and returns them.
pub(super) fn ask(
    fields: &Map<String, Value>,
    package: Option<&str>,
    version: Option<&str>,
    manifests: &[Manifest],
    printer: &mut Printer,
) -> Result<Map<String, Value>, CliError> {
    let is_new = fields.is_empty();
    let lacks = |field: &str| is_missing(fields, field);
    printer.talk(if is_new {
        "The manifests have no metadata/olm.yaml. It is created from these answers:"
    } else {
        "metadata/olm.yaml lacks required fields. They are added from these answers:"
    });
    let mut answers = Map::new();
    let mut package = package.map(str::to_owned);
    if lacks("name") && package.is_none() {
        let guess = manifests.iter().find(|manifest| manifest.kind() == "Deployment").map(Manifest::name);
        package = Some(text(printer, "Package", guess, &is_name)?);
    }
    let stated = fields.get("version").and_then(Value::as_str).filter(|text| !text.is_empty());
    let version = match version.or(stated) {
        Some(version) => version.to_owned(),
        None => text(printer, "Version of the operator", Some("0.1.0"), &is_version)?,
    };
    let mut proposal = Proposal::new(package.as_deref().unwrap_or_default(), &version);
    if is_new {
        let default = proposal.display_name.clone();
        proposal.display_name = text(printer, "Name shown to users", Some(&default), &|_| Ok(()))?;
    }
    if lacks("minKubeVersion") {
        let question = "Oldest supported Kubernetes version";
        proposal.min_kube_version = text(printer, question, Some(MIN_KUBE_VERSION), &is_version)?;
    }
    if lacks("installModes") {
        let question = format!("Install modes ({})", INSTALL_MODES.join(", "));
        let modes = text(printer, &question, Some(DEFAULT_MODE), &are_modes)?;
        proposal.install_modes = split(&modes).map(str::to_owned).collect();
    }
    if let Value::Object(proposed) = proposal.olm_yaml() {
        let is_wanted = |field: &str| lacks(field) && (is_new || field != "displayName");
        answers.extend(proposed.into_iter().filter(|(field, _)| is_wanted(field)));
    }
    if is_new {
        printer.talk("The following is optional; Enter skips it:");
        if let Some(description) = optional(printer, "Description", &|_| Ok(()))? {
            answers.insert("description".to_owned(), description.into());
        }
        if let Some(provider) = optional(printer, "Provider", &|_| Ok(()))? {
            answers.insert("provider".to_owned(), json!({ "name": provider }));
        }
        if let Some(maintainer) = optional(printer, "Maintainer (NAME <EMAIL>)", &is_maintainer)? {
            let (name, email) = maintainer_of(&maintainer).unwrap_or((&maintainer, ""));
            answers.insert("maintainers".to_owned(), json!([{ "name": name, "email": email }]));
        }
    }
    Ok(answers)
}

/// Returns whether a required field is missing.
pub(super) fn is_missing(fields: &Map<String, Value>, field: &str) -> bool {
    match fields.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn split(answer: &str) -> impl Iterator<Item = &str> {
    answer.split([',', ' ']).filter(|word| !word.is_empty())
}

fn are_modes(answer: &str) -> Result<(), String> {
    match split(answer).find(|mode| !INSTALL_MODES.contains(mode)) {
        Some(other) => Err(format!("{other:?} is not an install mode")),
        None if split(answer).next().is_none() => Err("at least one install mode is required".to_owned()),
        None => Ok(()),
    }
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

/// Splits `NAME <EMAIL>`.
fn maintainer_of(answer: &str) -> Option<(&str, &str)> {
    let (name, rest) = answer.split_once('<')?;
    let email = rest.strip_suffix('>')?;
    let is_address = email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
    (is_address && !name.trim().is_empty()).then_some((name.trim(), email))
}

fn is_maintainer(answer: &str) -> Result<(), String> {
    maintainer_of(answer).map(|_| ()).ok_or_else(|| "write it as NAME <EMAIL>".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maintainer_has_a_name_and_an_address() {
        assert_eq!(maintainer_of("The gardeners <g@example.com>"), Some(("The gardeners", "g@example.com")));
        for wrong in ["gardeners", "<g@example.com>", "g <example.com>", "g <@>", "g <a@b"] {
            assert!(is_maintainer(wrong).is_err(), "{wrong}");
        }
    }
}
