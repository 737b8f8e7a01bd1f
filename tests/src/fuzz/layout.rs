//! OCI layouts: directories and archives, their indexes, manifests and configurations.

use std::fs;

use olm_shell::image::{self, Limits, Location, Options, Pushable, Requested, is_layout};
use serde_json::json;

use super::parts::{below, folder, parts};
use super::shown::render_error;
use crate::images::digest;

/// Limits of a layout.
const LIMITS: (u64, usize) = (1 << 20, 1000);

/// Reads the blobs of a layout. Without parts the input is an archive of a layout. Otherwise each part is a file: `index.json`,
/// or a blob; later parts may refer to its digest as `sha256:NAME`. Without an index the last blob is the manifest.
///
/// # Panics
/// A temporary file is left, or the layout is changed.
pub(super) fn run(bytes: &[u8]) {
    let folder = folder();
    let (head, parts) = parts(bytes);
    if parts.is_empty() {
        let path = folder.path().join("archive.tar");
        if fs::write(&path, head).is_ok() {
            pull(&Location::Layout { path: path.clone(), name: None });
            pull(&Location::Layout { path, name: Some("latest".to_owned()) });
        }
        return;
    }
    let root = folder.path().join("layout");
    let blobs = root.join("blobs/sha256");
    if fs::create_dir_all(&blobs).is_err() {
        return;
    }
    let mut known: Vec<(String, String)> = Vec::new();
    let mut index = None;
    for part in &parts {
        let mut bytes = part.bytes.to_vec();
        if let Ok(text) = std::str::from_utf8(part.bytes) {
            let known = known.iter();
            let named = |text: String, (name, digest): &(String, String)| text.replace(name, digest);
            bytes = known.fold(text.to_owned(), named).into_bytes();
        }
        if part.name == "index.json" {
            index = Some(bytes);
            continue;
        }
        let digest = digest(&bytes);
        let _ = fs::write(blobs.join(digest.trim_start_matches("sha256:")), bytes);
        if !part.name.is_empty() {
            known.push((format!("\"sha256:{}\"", part.name), format!("{digest:?}")));
        }
    }
    let last = known.last().map(|(_, digest)| digest.trim_matches('"').to_owned());
    let index = index.unwrap_or_else(|| {
        json!({ "schemaVersion": 2, "manifests": [{ "digest": last, "size": 1 }] }).to_string().into_bytes()
    });
    let _ = (fs::write(root.join("oci-layout"), b"{}"), fs::write(root.join("index.json"), index));
    assert!(is_layout(&root));
    let before = below(&root);
    pull(&Location::Layout { path: root.clone(), name: None });
    push(&Location::Layout { path: root.clone(), name: None });
    pull(&Location::Layout { path: root.clone(), name: Some("latest".to_owned()) });
    assert_eq!(before, below(&root), "the layout has changed");
}

/// Reads the layout as an image to push: every blob that would be sent has the digest and the size that the manifests state.
fn push(location: &Location) {
    let limits = Limits { document: 64 << 10, layers: 16, ..Limits::default() };
    match Pushable::read(location, &Options { limits, ..Options::default() }) {
        Ok(image) => {
            let Location::Layout { path, .. } = location else { return };
            for part in image.blobs() {
                let blob = fs::read(path.join("blobs/sha256").join(part.digest.trim_start_matches("sha256:")));
                let blob = blob.unwrap_or_default();
                assert_eq!((part.size, digest(&blob)), (blob.len() as u64, part.digest));
            }
        }
        Err(error) => render_error(error),
    }
}

fn pull(location: &Location) {
    let (kept, entries) = LIMITS;
    let limits = Limits { kept, entries, unpacked: 8 << 20, document: 64 << 10, layers: 16, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    for wanted in [Requested::Any, Requested::CatalogIn("configs".to_owned())] {
        match image::pull_blocking(location, wanted, &options) {
            Ok(content) => {
                let files = below(&content.root);
                assert!(files.len() <= entries && files.iter().all(|(_, is_file)| *is_file), "{files:?}");
            }
            Err(error) => render_error(error),
        }
    }
}
