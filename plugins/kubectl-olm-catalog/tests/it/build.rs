//! `build`: images of catalogs.

use std::fs;
use std::path::Path;

use super::*;

fn built(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    run_command(catalog(&[&["build"][..], arguments].concat()).current_dir(folder))
}

#[test]
fn the_image_of_a_catalog_is_reproducible_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for (name, order) in [("one", ["rose.yaml", "README.md"]), ("two", ["README.md", "rose.yaml"])] {
        let directory = folder.path().join(name).join("nested");
        fs::create_dir_all(&directory).unwrap();
        for file in order {
            let text = if file == "README.md" { "# Roses\n" } else { CATALOG };
            fs::write(directory.join(file), text).unwrap();
        }
        fs::write(folder.path().join(name).join(".indexignore"), "*.md\n").unwrap();
    }
    let (code, digest, err) = built(folder.path(), &["one", "-t", "market:1", "--oci-layout", "images"]);
    assert_eq!((code, err.as_str()), (0, "image added to images\n"));
    assert!(digest.starts_with("sha256:"), "{digest}");
    let (code, same, err) = built(folder.path(), &["./two", "--archive", "market.tar"]);
    assert_eq!((code, same), (0, digest), "{err}");
    let render = |named: &str| {
        let (code, out, err) = run_command(catalog(&["render", named]).current_dir(folder.path()));
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    assert_eq!(render("images"), render("one"));
    let config = fs::read_dir(folder.path().join("images/blobs/sha256")).unwrap();
    let config = config.map(|blob| fs::read(blob.unwrap().path()).unwrap());
    let config = config.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).find(|text| text.contains("history"));
    let config = config.unwrap();
    assert!(config.contains("\"operators.operatorframework.io.index.configs.v1\":\"/configs\""), "{config}");
    assert!(config.contains("kubectl olm catalog build"), "{config}");
}

#[test]
fn an_invalid_catalog_has_no_image() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("market")).unwrap();
    let file = folder.path().join("market/rose.yaml");
    let refused = |words: &str| {
        let (code, out, err) = built(folder.path(), &["market", "--archive", "market.tar"]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(words), "{words} is not in {err}");
        assert!(!folder.path().join("market.tar").exists());
    };
    refused("the catalog has no packages");
    fs::write(&file, CATALOG.replace("name: c\nentries", "name: d\nentries")).unwrap();
    refused("market/rose.yaml");
    fs::write(&file, CATALOG).unwrap();
    for part in ["manifests", "metadata"] {
        fs::create_dir_all(folder.path().join("market/bundle").join(part)).unwrap();
    }
    fs::write(folder.path().join("market/bundle/metadata/annotations.yaml"), "annotations: {}\n").unwrap();
    refused("this is the directory of a bundle");
}
