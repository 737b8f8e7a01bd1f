//! Compiles OperatorGroups from an install mode and a set of namespaces
//! (olm-behaviour/README.md#design-and-code).
//!
//! *Guarantee*: the targets of a compiled group are those that the install mode means for an operator in the group's
//! namespace.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::cluster_service_version::InstallMode;
use crate::api::names::{LONGEST_LABEL, LONGEST_SUBDOMAIN, is_label, is_subdomain};
use crate::api::object;
use crate::membership;

/// Returns the mode of an operator in `namespace` that watches these namespaces; `None` if it watches none.
pub fn mode_for_targets(namespace: &str, targets: &BTreeSet<String>) -> Option<InstallMode> {
    let mut names = targets.iter().map(String::as_str);
    match (names.next(), names.next()) {
        (None, _) => None,
        (Some(""), None) => Some(InstallMode::AllNamespaces),
        (Some(one), None) if one == namespace => Some(InstallMode::OwnNamespace),
        (Some(_), None) => Some(InstallMode::SingleNamespace),
        (Some(_), Some(_)) => Some(InstallMode::MultiNamespace),
    }
}

/// The input of [`compile`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRequest {
    /// The group's name.
    pub name: String,
    /// The operator's namespace, which is that of the group.
    pub namespace: String,
    /// The install mode; `None` to derive it from the namespaces.
    pub mode: Option<InstallMode>,
    /// The namespaces to watch, or `""` for all; empty to derive them from the mode.
    pub targets: Vec<String>,
    /// The ServiceAccount with whose permissions members are installed.
    pub service_account: Option<String>,
}

/// A compiled group.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// Its install mode.
    pub mode: InstallMode,
    /// The OperatorGroup.
    pub group: Value,
}

/// Why the input is invalid, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// What is invalid.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

fn refused(message: impl Into<String>, hint: impl Into<String>) -> Refused {
    Refused { message: message.into(), hint: hint.into() }
}

/// Compiles a group: without mode and namespaces one for the operator's own namespace; otherwise the namespaces are checked
/// against the mode and the operator's namespace. If only one of the two is given, the other one follows from it.
///
/// # Errors
/// The namespaces do not match the mode, or a name is invalid.
pub fn compile(request: &GroupRequest) -> Result<Compiled, Refused> {
    let GroupRequest { name, namespace, mode, targets, service_account } = request;
    check_names(request)?;
    let given: BTreeSet<String> = targets.iter().cloned().collect();
    if given.len() > 1 && given.contains("") {
        return Err(refused(
            "all namespaces (\"\") and individual namespaces are mutually exclusive",
            "use either all namespaces or individual ones: --target-namespaces '' or --target-namespaces A,B",
        ));
    }
    let own = BTreeSet::from([namespace.clone()]);
    let mode = mode.or_else(|| mode_for_targets(namespace, &given)).unwrap_or(InstallMode::OwnNamespace);
    let targets = match mode {
        InstallMode::OwnNamespace if given.is_empty() || given == own => own,
        InstallMode::AllNamespaces if given.is_empty() || given.contains("") => BTreeSet::from([String::new()]),
        InstallMode::SingleNamespace | InstallMode::MultiNamespace
            if mode_for_targets(namespace, &given) == Some(mode) =>
        {
            given
        }
        _ => return Err(unfit(mode, namespace, &given)),
    };
    let mut spec = json!({});
    if mode != InstallMode::AllNamespaces {
        spec["targetNamespaces"] = targets.iter().map(String::as_str).collect::<Vec<_>>().into();
    }
    if let Some(account) = service_account {
        spec["serviceAccountName"] = account.as_str().into();
    }
    let group = json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": { "name": name, "namespace": namespace },
        "spec": spec,
    });
    Ok(Compiled { mode, group })
}

fn check_names(request: &GroupRequest) -> Result<(), Refused> {
    let GroupRequest { name, namespace, targets, service_account, .. } = request;
    let mut namespaces = std::iter::once(namespace).chain(targets.iter().filter(|target| !target.is_empty()));
    namespaces.try_for_each(|name| Named::Namespace.check(name))?;
    Named::OperatorGroup.check(name)?;
    service_account.iter().try_for_each(|name| Named::ServiceAccount.check(name))
}

/// A kind of object with its rules for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A DNS label.
    Namespace,
    /// DNS labels separated by dots.
    OperatorGroup,
    /// DNS labels separated by dots.
    ServiceAccount,
}

impl Named {
    /// Checks a name.
    ///
    /// # Errors
    /// The API server would reject the name.
    pub fn check(self, name: &str) -> Result<(), Refused> {
        let (what, fits, longest): (_, fn(&str) -> bool, _) = match self {
            Self::Namespace => ("a namespace", is_label, LONGEST_LABEL),
            Self::OperatorGroup => ("an OperatorGroup", is_subdomain, LONGEST_SUBDOMAIN),
            Self::ServiceAccount => ("a ServiceAccount", is_subdomain, LONGEST_SUBDOMAIN),
        };
        if name.len() <= longest && fits(name) {
            return Ok(());
        }
        let message = format!("{name:?} is not a valid name of {what}");
        let hint = format!("up to {longest} lower-case letters, digits and '-', with a letter or digit at both ends");
        Err(Refused { message, hint })
    }
}

/// Returns the error for namespaces that do not match the mode.
fn unfit(mode: InstallMode, namespace: &str, given: &BTreeSet<String>) -> Refused {
    let means = match mode {
        InstallMode::OwnNamespace => format!("watches only the operator's own namespace, {namespace}"),
        InstallMode::SingleNamespace => format!("watches one namespace other than the operator's own, {namespace}"),
        InstallMode::MultiNamespace => "watches at least two namespaces".to_owned(),
        InstallMode::AllNamespaces => "watches all namespaces, and takes no names".to_owned(),
    };
    let names: Vec<&str> = given.iter().map(|name| if name.is_empty() { "all" } else { name }).collect();
    let message = match names[..] {
        [] => format!("{mode} {means}: no namespace was given"),
        _ => format!("{mode} {means}: not {}", names.join(", ")),
    };
    let hint = match mode_for_targets(namespace, given) {
        None if mode == InstallMode::SingleNamespace => {
            "specify the namespace to watch: --target-namespaces NAMESPACE".to_owned()
        }
        None => "specify the namespaces to watch: --target-namespaces A,B".to_owned(),
        Some(other) => format!("for these namespaces use --install-mode {other}"),
    };
    refused(message, hint)
}

/// Checks that the ClusterServiceVersion can be a member of a group in `namespace` with these targets.
///
/// # Errors
/// Its install modes do not support them.
pub fn supports(csv: &Value, namespace: &str, targets: &BTreeSet<String>) -> Result<(), Refused> {
    let carried = targets.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let Err((_, message)) = membership::supports(csv, namespace, &carried) else { return Ok(()) };
    let supported = membership::supported_modes(csv);
    let all = InstallMode::ALL.map(|mode| mode.to_string()).into_iter();
    let supported: Vec<String> = all.filter(|mode| supported.contains(mode.as_str())).collect();
    let hint = match &supported[..] {
        [] => "it supports no install mode".to_owned(),
        [one] => format!("it supports --install-mode {one}"),
        [others @ .., last] => format!("it supports --install-mode {} or {last}", others.join(", ")),
    };
    Err(refused(format!("{} cannot be a member: {message}", object::name(csv)), hint))
}
