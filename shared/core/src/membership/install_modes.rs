//! Determines which targets a ClusterServiceVersion supports, by its install modes
//! (olm-behaviour/operatorgroup.md#install-modes).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::cluster_service_version::{Csv, InstallMode, reason};
use crate::api::object;

/// Checks that the ClusterServiceVersion supports these targets (the value of `olm.targetNamespaces`) when it runs in
/// `namespace`.
///
/// # Errors
/// It does not: reason and message of OLM's status.
pub fn supports(csv: &Value, namespace: &str, targets: &str) -> Result<(), (&'static str, String)> {
    let Modes { listed, inferred } = modes(csv).map_err(|message| ("InvalidInstallModes", message))?;
    let modes: BTreeSet<&str> = listed.union(&inferred).copied().collect();
    let targets: Vec<&str> = targets.split(',').collect();
    check(&modes, namespace, &targets).map_err(|message| (reason::UNSUPPORTED_OPERATOR_GROUP, message))
}

/// Like [`supports`], but as released OLM versions check it, which infer no mode from another.
///
/// # Errors
/// The message of [`supports`].
pub fn supports_as_listed(csv: &Value, namespace: &str, targets: &str) -> Result<(), String> {
    let targets: Vec<&str> = targets.split(',').collect();
    check(&modes(csv)?.listed, namespace, &targets)
}

/// Returns the install modes that a ClusterServiceVersion supports, listed or inferred; empty if they contradict each
/// other.
pub fn supported_modes(csv: &Value) -> BTreeSet<&str> {
    modes(csv).map(|Modes { listed, inferred }| &listed | &inferred).unwrap_or_default()
}

/// Supported install modes.
struct Modes<'a> {
    listed: BTreeSet<&'a str>,
    inferred: BTreeSet<&'a str>,
}

/// Inferred modes: a CSV that watches several namespaces can watch one, and that one may be its own.
const IMPLIED: [(InstallMode, InstallMode); 2] = [
    (InstallMode::MultiNamespace, InstallMode::SingleNamespace),
    (InstallMode::SingleNamespace, InstallMode::OwnNamespace),
];

/// Returns the supported install modes. A mode that is not listed is supported when another one implies it, as in OLM's
/// design (released versions never infer, olm-behaviour/README.md#design-and-code); a mode that is listed as unsupported is
/// not.
fn modes(csv: &Value) -> Result<Modes<'_>, String> {
    let listed: Vec<(&str, bool)> = Csv::new(csv)
        .install_modes()
        .iter()
        .map(|m| (object::text(m, &["type"]), object::at(m, &["supported"]).as_bool().unwrap_or_default()))
        .collect();
    let types: BTreeSet<&str> = listed.iter().map(|(mode, _)| *mode).collect();
    if types.len() < listed.len() {
        let listed: Vec<String> = listed.iter().map(|(mode, supported)| format!("{{{mode} {supported}}}")).collect();
        return Err(format!("InstallMode list contains duplicates, cannot make set: [{}]", listed.join(" ")));
    }
    let listed: BTreeSet<&str> = listed.into_iter().filter(|(_, supported)| *supported).map(|(mode, _)| mode).collect();
    let mut inferred = BTreeSet::new();
    for (mode, implied) in IMPLIED.map(|(mode, implied)| (mode.as_str(), implied.as_str())) {
        if (listed.contains(mode) || inferred.contains(mode)) && !types.contains(implied) {
            inferred.insert(implied);
        }
    }
    Ok(Modes { listed, inferred })
}

fn check(modes: &BTreeSet<&str>, namespace: &str, targets: &[&str]) -> Result<(), String> {
    let needs = |mode: InstallMode, what: &str| {
        if modes.contains(mode.as_str()) {
            return Ok(());
        }
        Err(format!("{mode} InstallModeType not supported, cannot configure to watch {what}"))
    };
    match targets {
        [] => {
            Err("operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces".to_owned())
        }
        [own] if *own == namespace => needs(InstallMode::OwnNamespace, "own namespace"),
        [""] => needs(InstallMode::AllNamespaces, "all namespaces"),
        [_] => needs(InstallMode::SingleNamespace, "one namespace"),
        many => {
            needs(InstallMode::MultiNamespace, &format!("{} namespaces", many.len()))?;
            for target in many {
                if *target == namespace {
                    needs(InstallMode::OwnNamespace, "own namespace")?;
                } else if target.is_empty() {
                    return Err("operatorgroup has invalid selected namespaces, NamespaceAll found when \
                                |selected namespaces| > 1"
                        .to_owned());
                }
            }
            Ok(())
        }
    }
}
