//! Catalog directories: which files are used, ignore files, lists of bundles, and symbolic links.

use olm_core::catalog::Loaded;
use olm_shell::registry::dir;

use super::parts::{folder, link, parts, write};

/// A package outside of the directory, which must not be read.
const OUTSIDE: &str = "outside-of-the-directory";

/// Loads a directory of the parts; the text before them is the ignore file. A part `NAME -> TARGET` is a symbolic link.
///
/// # Panics
/// A file outside of the directory is read, or two reads of the directory differ.
pub(super) fn run(bytes: &[u8]) {
    let folder = folder();
    let root = folder.path().join("a/catalog");
    let package = format!("schema: olm.package\nname: {OUTSIDE}\ndefaultChannel: c\n");
    for place in ["outside.yaml", "a/outside.yaml", "a/catalog-2/outside.yaml"] {
        write(folder.path(), place, package.as_bytes());
    }
    for (place, text) in [
        ("a/bundle/manifests/csv.yaml", format!("kind: ClusterServiceVersion\nmetadata: {{name: {OUTSIDE}}}\n")),
        ("a/bundle/metadata/annotations.yaml", format!("annotations: {{p: {OUTSIDE}}}\n")),
    ] {
        write(folder.path(), place, text.as_bytes());
    }
    if std::fs::create_dir_all(&root).is_err() {
        return;
    }
    let (head, parts) = parts(bytes);
    if !head.is_empty() {
        write(&root, ".indexignore", head);
    }
    for part in &parts {
        match part.name.split_once(" -> ") {
            Some((name, target)) => link(&root, name, target),
            None => write(&root, part.name, part.bytes),
        }
    }
    let load = dir::load_content(&root);
    assert!(load.is_ok(), "{load:?}");
    let Ok(load) = load else { return };
    inside(&load);
    if let Ok(again) = dir::load_content(&root) {
        assert_eq!((&again.snapshot, &again.findings), (&load.snapshot, &load.findings));
    }
    // A directory named by the user may list bundles outside, and contains everything that the other load finds.
    if let Ok(named) = dir::load(&root) {
        assert!(named.findings.iter().all(|finding| finding.code != "bundle-outside" || !finding.hint.is_empty()));
    }
}

fn inside(load: &Loaded) {
    let said = |text: &str| text.contains(OUTSIDE);
    assert!(
        !load.snapshot.packages().keys().chain(&load.invalid_packages).any(|name| said(name)),
        "{:?}",
        load.invalid_packages
    );
    let told = load.findings.iter().find(|finding| said(&finding.message) || said(&finding.subject));
    assert!(told.is_none(), "{told:?}");
}
