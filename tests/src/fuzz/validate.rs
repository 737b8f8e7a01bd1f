//! The validation of bundles: findings of any files have a place and a known rule, and two runs have the same ones.

use olm_core::bundle::File;
use olm_core::bundle::synthesis::MEDIA_TYPE;
use olm_core::validate::{self, Options, RULES, Selection};

use super::parts::files;

/// Validates the files of a bundle directory with all validators, as they are and as plain manifests. An input without parts is the
/// manifest of a ClusterServiceVersion.
///
/// # Panics
/// A finding is about another file or contains control characters, or a second run has others.
pub(super) fn run(bytes: &[u8]) {
    let files = files(bytes, "manifests/csv.yaml");
    check(&files);
    let annotations = format!("annotations: {{operators.operatorframework.io.bundle.mediatype.v1: {MEDIA_TYPE}}}\n");
    let plain = File::new("metadata/a.yaml", annotations.into_bytes());
    check(&files.into_iter().chain([plain]).collect::<Vec<_>>());
}

fn check(files: &[File]) {
    let mut selection = Selection::default();
    let _ = selection.add("suite=all");
    let options = Options { selection, ..Options::default() };
    let validated = validate::validate("", files, &options, &mut ());
    for finding in &validated.findings {
        let is_of_rule = RULES.iter().any(|rule| rule.code == finding.code);
        assert!(is_of_rule || !finding.code.starts_with("BV"), "{finding:?}");
        let folder = finding.file.split('/').next().unwrap_or_default();
        assert!(["", "manifests", "metadata"].contains(&folder), "{finding:?}");
    }
    assert_eq!(validate::validate("", files, &options, &mut ()).findings, validated.findings);
}
