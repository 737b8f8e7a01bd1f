//! The files of a directory that are read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::super::{dir, read};

fn package(name: &str) -> String {
    format!(
        r#"{{"schema": "olm.package", "name": "{name}", "defaultChannel": "c"}}
{{"schema": "olm.channel", "package": "{name}", "name": "c", "entries": [{{"name": "{name}.v1"}}]}}
{{"schema": "olm.bundle", "package": "{name}", "name": "{name}.v1", "image": "i",
  "properties": [{{"type": "olm.package", "value": {{"packageName": "{name}", "version": "1.0.0"}}}}]}}"#
    )
}

/// The packages of a catalog directory, and the codes of its findings.
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

fn bundle(folder: &Path, name: &str) {
    for (path, text) in [
        (
            "manifests/csv.yaml",
            format!("kind: ClusterServiceVersion\nmetadata: {{name: {name}.v1}}\nspec: {{version: 1.0.0}}\n"),
        ),
        (
            "metadata/annotations.yaml",
            format!(
                "annotations:\n  operators.operatorframework.io.bundle.package.v1: {name}\n  \
                 operators.operatorframework.io.bundle.channels.v1: c\n"
            ),
        ),
    ] {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// `bundles.txt` of an image must not name directories beside the image: the cache has the images of other tenants there.
#[cfg(unix)]
#[test]
fn a_list_of_bundles_stays_in_the_content() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let catalog = root.join("cache/catalog");
    bundle(&root.join("cache/private"), "private");
    bundle(&catalog.join("own"), "own");
    bundle(&catalog.join("leaky"), "leaky");
    fs::write(root.join("secret.yaml"), "kind: Secret\nmetadata: {name: secret}\n").unwrap();
    symlink(root.join("secret.yaml"), catalog.join("leaky/manifests/secret.yaml")).unwrap();
    symlink(root.join("cache/private"), catalog.join("link")).unwrap();
    fs::write(catalog.join(".indexignore"), "own\nleaky\nlink\n").unwrap();
    let absolute = root.join("cache/private");
    let list = format!("private\n{}\n../private\nlink\nown/\n./own\nleaky\n", absolute.display());
    fs::write(catalog.join("bundles.txt"), list).unwrap();

    let found = |items: Vec<read::Item>| {
        let catalog = read::index(items).unwrap();
        let bundles = catalog.bundle_directories().into_iter().map(|f| f.file).collect::<BTreeSet<_>>();
        (bundles, catalog.findings().iter().map(|f| (f.code, f.line)).collect::<Vec<_>>())
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let outside = |line| ("bundle-outside", line);
    let wanted = (
        names(&["own/", "leaky"]),
        vec![("missing-bundle", 1), outside(2), outside(3), outside(4), ("link-leads-out", 0)],
    );
    assert_eq!(found(dir::content_items(&catalog, &catalog).unwrap()), wanted);
    // In a directory that the user names, paths relative to its ancestors are allowed.
    let wanted = (names(&["own/", "leaky", "private"]), vec![outside(2), outside(3), ("link-leads-out", 0)]);
    assert_eq!(found(dir::items(&catalog).unwrap()), wanted);

    // The text of a file outside must not appear in messages.
    fs::write(root.join("words"), "[z-a]\nhunter2\n").unwrap();
    for name in ["bundles.txt", ".indexignore"] {
        fs::remove_file(catalog.join(name)).unwrap();
        symlink(root.join("words"), catalog.join(name)).unwrap();
    }
    let load = dir::load_content(&catalog).unwrap();
    let texts: Vec<String> = load.findings.iter().map(ToString::to_string).collect();
    assert!(texts.iter().filter(|text| text.contains("leads out of the catalog")).count() >= 2, "{texts:#?}");
    assert!(!texts.iter().any(|text| text.contains("hunter2") || text.contains("z-a")), "{texts:#?}");
}

#[test]
fn ignore_files_lists_and_depth_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let patterns = |count: usize| (0..count).map(|n| format!("weed{n}.json\n")).collect::<String>();
    write("rose.json", &package("rose"));
    write(".indexignore", &format!("{}{}\nweed.json\n", patterns(900), "x".repeat(1025)));
    write("weed.json", "no blob");
    write("beds/.indexignore", &patterns(100));
    write("beds/tulip.json", &package("tulip"));
    write("beds/long/.indexignore", &"#".repeat(300 << 10));
    write(&format!("{}daisy.json", "d/".repeat(63)), &package("daisy"));
    write(&format!("{}moss.json", "e/".repeat(64)), &package("moss"));
    let load = dir::load(folder.path()).unwrap();
    assert_eq!(load.snapshot.packages().keys().collect::<Vec<_>>(), ["daisy", "rose", "tulip"]);
    let texts: Vec<String> = load.findings.iter().map(ToString::to_string).collect();
    for words in
        ["more than 1024 bytes", "may have 1000 patterns", "more than 262144 bytes", "more than 64 folders deep"]
    {
        assert_eq!(texts.iter().filter(|text| text.contains(words)).count(), 1, "{words}: {texts:#?}");
    }
    assert_eq!(texts.len(), 4);
}

#[test]
fn a_missing_directory_is_named() {
    let error = dir::load(Path::new("no/such/catalog")).unwrap_err();
    assert!(format!("{error:?}").contains("no/such/catalog"));
}
