//! The values that arguments accept.

use clap::{Arg, ValueHint};

use super::Candidate;
use super::line::value_name;
use crate::cli::output::Output;
use crate::run::FeatureGates;
use olm_core::api::cluster_service_version::InstallMode;

/// A source of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Fixed words.
    Words(Vec<Candidate>),
    /// Files and folders, which the shell completes.
    Files,
    /// Names to look up.
    Names(Names),
}

impl Values {
    pub(super) fn names(self) -> Option<Names> {
        match self {
            Self::Names(names) => Some(names),
            Self::Words(_) | Self::Files => None,
        }
    }
}

/// The kinds of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Contexts of the kubeconfig.
    Contexts,
    /// Clusters of the kubeconfig.
    Clusters,
    /// Users of the kubeconfig.
    Users,
    Namespaces,
    InstallPlans,
    /// InstallPlans that are not approved.
    PendingInstallPlans,
    Subscriptions,
    ClusterServiceVersions,
    OperatorGroups,
    ServiceAccounts,
    /// CatalogSources as `catalogsource/NAME` or `catalogsource/NAMESPACE/NAME`.
    CatalogSources,
    /// CatalogSources as `NAMESPACE/NAME`.
    CatalogSourcePaths,
    /// Packages of catalogs.
    Packages,
    /// Channels of the package named before.
    Channels,
}

/// Arguments that take names, by command and id; an empty command stands for all commands.
const NAMES: [(&str, &str, Names); 25] = [
    ("", "context", Names::Contexts),
    ("", "cluster", Names::Clusters),
    ("", "user", Names::Users),
    ("", "namespace", Names::Namespaces),
    ("", "other_namespace", Names::Namespaces),
    ("", "catalog_namespace", Names::Namespaces),
    ("", "target_namespaces", Names::Namespaces),
    ("", "protected_copied_csv_namespaces", Names::Namespaces),
    ("", "service_account", Names::ServiceAccounts),
    ("", "subscription", Names::Subscriptions),
    ("", "only_csvs", Names::ClusterServiceVersions),
    ("", "package", Names::Packages),
    ("", "packages", Names::Packages),
    ("", "wanted", Names::Packages),
    ("", "channels", Names::Channels),
    ("", "source", Names::CatalogSourcePaths),
    ("approve", "plans", Names::PendingInstallPlans),
    ("", "plans", Names::InstallPlans),
    ("", "plan", Names::InstallPlans),
    ("", "groups", Names::OperatorGroups),
    ("delete", "name", Names::OperatorGroups),
    // Catalogs, preceded by packages.
    ("", "refs", Names::CatalogSources),
    ("", "old", Names::CatalogSources),
    ("", "new", Names::CatalogSources),
    ("", "words", Names::CatalogSources),
];

/// Fixed values of arguments that are not enumerations in clap.
const WORDS: [(&str, &[&str]); 3] = [
    (
        "install_mode",
        &[
            InstallMode::OwnNamespace.as_str(),
            InstallMode::SingleNamespace.as_str(),
            InstallMode::MultiNamespace.as_str(),
            InstallMode::AllNamespaces.as_str(),
        ],
    ),
    ("mode", &["replaces", "semver", "semver-skippatch"]),
    ("migrate_level", &["none", "bundle-object-to-csv-metadata", "all"]),
];

/// The prefixes of the changes of `--what-if`.
const CHANGES: [&str; 7] =
    ["channel:", "package:", "source:", "no-starting-csv:", "delete-subscription:", "delete-csv:", "delete-catalog:"];

/// Returns the values that an argument of a command accepts; empty for free text.
pub(super) fn values(path: &[&str], argument: &Arg) -> Vec<Values> {
    let id = argument.get_id().as_str();
    let command = path.last().copied().unwrap_or_default();
    let possible = argument.get_possible_values();
    if !possible.is_empty() {
        let words = possible.iter().filter(|value| !value.is_hide_set()).map(|value| {
            Candidate::new(value.get_name(), value.get_help().map(ToString::to_string).unwrap_or_default())
        });
        return vec![Values::Words(words.collect())];
    }
    let mut values = Vec::new();
    if let Some((.., names)) = NAMES.iter().find(|(of, known, _)| *known == id && (of.is_empty() || *of == command)) {
        values.push(Values::Names(*names));
    }
    let plain = |words: &[&str]| Values::Words(words.iter().map(|word| Candidate::new(*word, "")).collect());
    match id {
        "words" => values.push(Values::Names(Names::Packages)),
        "output" if command == "explain" => values.push(plain(&["html", "json", "yaml", "markdown", "jsonpath="])),
        "output" if is_page(argument) => {
            values.push(plain(&[&["html"], &Output::FORMS[..]].concat()));
        }
        "output" => values.push(plain(&Output::FORMS)),
        "feature_gates" => {
            let gates = FeatureGates::KNOWN.iter().flat_map(|gate| [format!("{gate}=true"), format!("{gate}=false")]);
            values.push(Values::Words(gates.map(|gate| Candidate::new(gate, "")).collect()));
        }
        "what_if" => values.push(plain(&CHANGES)),
        _ => values.extend(WORDS.iter().find(|(known, _)| *known == id).map(|(_, words)| plain(words))),
    }
    if takes_files(argument) {
        values.push(Values::Files);
    }
    values
}

/// Returns whether the argument accepts `html`, as its help states.
fn is_page(argument: &Arg) -> bool {
    argument.get_help().is_some_and(|help| help.to_string().starts_with("Output format: html,"))
}

/// Returns whether the argument accepts a path.
fn takes_files(argument: &Arg) -> bool {
    const PATHS: [&str; 5] = ["DIR", "FILE", "PATH", "REF", "BUNDLE"];
    let is_path = matches!(argument.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
    let name = value_name(argument);
    is_path
        || PATHS.iter().any(|path| name.contains(path))
        || ["refs", "old", "new"].contains(&argument.get_id().as_str())
}
