//! `kubectl olm bundle validate`: problems of bundles before they are published.
//!
//! ```text
//!   files --input--> objects with places
//!                      default              format, csv, definitions        what operator-sdk always checks
//!                      olm                  installation, console, sizes,   what OLM, catalogs, consoles and the API server
//!                                           properties                      reject
//!                      good-practices, …    good_practices, operator_hub, removed_apis, stability
//!                      permissions          permissions                     permissions beyond the usual
//!                      multiarch            platforms                       platforms of images, which surroundings return
//!                      previous             previous                        compatibility with another version
//!                    --> findings; their rules are in the table of rule
//! ```
//!
//! Messages of rules that operator-sdk has are those of operator-sdk.

mod console;
mod csv;
mod definitions;
mod format;
mod good_practices;
mod input;
mod installation;
mod operator_hub;
mod permissions;
mod platforms;
mod previous;
mod properties;
#[cfg(test)]
mod recorded;
mod removed_apis;
mod rule;
mod schema;
mod selection;
mod sizes;
mod stability;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::input::Input;
pub use self::input::manifests_folder;
pub use self::operator_hub::custom_categories;
pub use self::platforms::Platform;
pub use self::previous::Previous;
pub use self::rule::{RULES, Rule, Validator, rule};
pub use self::selection::Selection;
use crate::bundle::File;
use crate::finding::Finding;
use crate::version::Version;

/// What to check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The validators to run, and the rules to report.
    pub selection: Selection,
    /// The Kubernetes version for which removed API versions are errors.
    pub kubernetes: Option<Version>,
    /// The Dockerfile of the bundle, for the validator `community`.
    pub dockerfile: Option<File>,
    /// Categories that replace the standard ones.
    pub categories: Option<Vec<String>>,
}

/// What identifies a bundle; empty texts where it does not state it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name of the ClusterServiceVersion.
    pub name: String,
    /// The package in the annotations.
    pub package: String,
    /// The version.
    pub version: String,
    /// The name of the version that it replaces.
    pub replaces: String,
}

/// The result for one bundle.
#[derive(Clone, Debug, Default)]
pub struct Validated {
    /// The bundle.
    pub identity: Identity,
    /// The findings, by place.
    pub findings: Vec<Finding>,
}

/// Data outside of a bundle. It is read only if a selected validator needs it.
pub trait Surroundings {
    /// Returns the version to compare with; `None` if there is none.
    fn previous(&mut self, identity: &Identity) -> Option<Previous>;

    /// Returns the platforms of each image, or the reason why it cannot be inspected.
    fn platforms(&mut self, images: &BTreeSet<&str>) -> BTreeMap<String, Result<BTreeSet<Platform>, String>>;
}

/// No previous version, and images that cannot be inspected.
impl Surroundings for () {
    fn previous(&mut self, _: &Identity) -> Option<Previous> {
        None
    }

    fn platforms(&mut self, _: &BTreeSet<&str>) -> BTreeMap<String, Result<BTreeSet<Platform>, String>> {
        BTreeMap::new()
    }
}

/// Returns the finding that a file of a bundle cannot be read.
pub fn unreadable_file(message: impl Into<String>) -> Finding {
    rule::UNREADABLE_FILE.finding(message)
}

/// Returns the finding that a bundle cannot be read at all.
pub fn unreadable_bundle(message: impl Into<String>) -> Finding {
    rule::UNREADABLE_BUNDLE.finding(message)
}

/// Validates a bundle, and compares it with the previous version if there is one. The files have the paths `PATH/metadata/NAME` and
/// `PATH/manifests/NAME`, or that of the directory that the annotations name instead of `manifests`; others are ignored. A path that ends
/// with `/` is a directory.
pub fn validate(path: &str, files: &[File], options: &Options, surroundings: &mut dyn Surroundings) -> Validated {
    use Validator::{AlphaDeprecatedApis, Capabilities, Categories, OperatorHub, OperatorHubV2};
    let mut input = Input::read(path, files);
    let runs = |validator| options.selection.runs(validator);
    let any = |validators: &[Validator]| validators.iter().any(|validator| runs(*validator));
    format::check(&mut input);
    definitions::check_crds(&mut input);
    definitions::check_size(&mut input, files);
    if runs(Validator::Olm) {
        installation::check(&mut input, options);
        console::check_bundle(&mut input);
        sizes::check(&mut input);
        properties::check(&mut input);
    }
    if runs(Validator::Objects) {
        stability::check(&mut input);
    }
    let identity = input.identity();
    if let Some(csv) = input.csv.clone() {
        csv::check(&mut input, &csv);
        if runs(Validator::Olm) {
            console::check(&mut input, &csv);
        }
        definitions::check(&mut input, &csv);
        if runs(Validator::GoodPractices) {
            good_practices::check(&mut input, &csv);
        }
        if any(&[OperatorHub, OperatorHubV2]) {
            operator_hub::check(&mut input, &csv);
            csv::min_kube_version(&mut input, &csv);
        }
        if any(&[OperatorHub, Capabilities]) {
            operator_hub::capabilities(&mut input, &csv);
        }
        if any(&[OperatorHub, Categories]) {
            operator_hub::categories(&mut input, &csv, options.categories.as_deref());
        }
        if any(&[OperatorHub, OperatorHubV2, AlphaDeprecatedApis]) {
            removed_apis::check(&mut input, &csv, options);
        }
        if runs(OperatorHub) {
            let message = "The \"operatorhub\" validator is deprecated; for equivalent validation use \"operatorhub/v2\", \"standardcapabilities\" and \"standardcategories\" validators";
            input.add(rule::DEPRECATED_VALIDATOR.finding(message).at(path, 0));
        }
        if runs(Validator::Community) {
            removed_apis::community(&mut input, &csv, options);
        }
        if runs(Validator::Permissions) {
            permissions::check(&mut input, &csv);
        }
        if runs(Validator::MultipleArchitectures) {
            platforms::check(&mut input, &csv, surroundings);
        }
        if runs(Validator::Previous)
            && let Some(previous) = surroundings.previous(&identity)
        {
            previous::check(&mut input, &csv, &previous);
        }
    }
    let mut findings = input.end();
    findings.retain(|finding| options.selection.reports(finding.code));
    Validated { identity, findings }
}
