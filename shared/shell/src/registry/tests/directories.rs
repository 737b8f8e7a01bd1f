//! What of a directory is read.

use std::fs;
use std::path::Path;

use super::super::dir;

fn package(name: &str) -> String {
    format!(
        r#"{{"schema": "olm.package", "name": "{name}", "defaultChannel": "c"}}
{{"schema": "olm.channel", "package": "{name}", "name": "c", "entries": [{{"name": "{name}.v1"}}]}}
{{"schema": "olm.bundle", "package": "{name}", "name": "{name}.v1", "image": "i",
  "properties": [{{"type": "olm.package", "value": {{"packageName": "{name}", "version": "1.0.0"}}}}]}}"#
    )
}

/// The packages of a catalog directory, and the codes of what is wrong with it.
fn load(folder: &Path) -> (Vec<String>, Vec<&'static str>) {
    let load = dir::load(folder).unwrap();
    (load.snapshot.packages().keys().cloned().collect(), load.findings.iter().map(|f| f.code).collect())
}

#[test]
fn ignore_files_hold_below_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(".indexignore", "# notes\n*.md\n/drafts\n");
    write("README.md", "no blob");
    write("rose.json", &package("rose"));
    write("drafts/tulip/catalog.json", &package("tulip"));
    write("beds/.indexignore", "weed.json\n");
    write("beds/weed.json", &package("weed"));
    write("beds/deep/weed.json", &package("weed"));
    write("beds/deep/daisy.json", &package("daisy"));
    write("beds/.hidden.json", &package("moss"));
    assert_eq!(load(folder.path()), (vec!["daisy".into(), "moss".into(), "rose".into()], vec![]));
}

#[cfg(unix)]
#[test]
fn links_stay_in_the_catalog() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let (catalog, outside) = (folder.path().join("catalog"), folder.path().join("outside"));
    // A mounted ConfigMap.
    fs::create_dir_all(catalog.join("..2026_11_21")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(catalog.join("..2026_11_21/rose.json"), package("rose")).unwrap();
    symlink("..2026_11_21", catalog.join("..data")).unwrap();
    symlink("..data/rose.json", catalog.join("rose.json")).unwrap();
    assert_eq!(load(&catalog), (vec!["rose".into()], vec![]));

    fs::write(outside.join("tulip.json"), package("tulip")).unwrap();
    symlink(outside.join("tulip.json"), catalog.join("tulip.json")).unwrap();
    symlink(&outside, catalog.join("outside")).unwrap();
    symlink("loop", catalog.join("loop")).unwrap();
    symlink("..2026_11_21", catalog.join("again")).unwrap();
    let wrong = vec!["link-to-directory", "unreadable-file", "link-leads-out", "link-leads-out"];
    assert_eq!(load(&catalog), (vec!["rose".into()], wrong));
}

#[test]
fn a_missing_directory_is_named() {
    let error = dir::load(Path::new("no/such/catalog")).unwrap_err();
    assert!(format!("{error:?}").contains("no/such/catalog"));
}
