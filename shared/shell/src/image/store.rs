//! Writes built images to OCI layouts and archives.
//!
//! *Guarantee.* Each file appears complete, by a rename, and the index last. An index is changed under a lock, so that processes that
//! write to the same layout do not lose each other's images.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};
use tempfile::NamedTempFile;

use super::build::{Assembled, Blob, INDEX_TYPE, MediaTypes, tar};
use super::layout::{INDEX, NAME, member};
use super::manifest::verify;
use super::{Error, LayoutError};

/// The file that marks a layout.
const MARKER: &str = "oci-layout";
const VERSION: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// Most bytes of an index that is changed.
const LONGEST_INDEX: u64 = 8 << 20;
/// The prefix of files that are being written.
const STAGED: &str = "..kubectl-olm-";

/// Adds an image to an OCI layout, which is created if it does not exist. An image of the same name is no longer in the index then; its
/// blobs stay.
///
/// # Errors
/// The directory has other content than a layout, its index cannot be read, or a file cannot be written.
pub fn write_layout(image: &impl Assembled, directory: &Path, name: Option<&str>) -> Result<(), Error> {
    let at = |path: &Path, source: io::Error| Error::File { path: path.to_owned(), source };
    check(image)?;
    let marker = directory.join(MARKER);
    let is_other = match fs::read_dir(directory) {
        // Another process may be creating the layout.
        Ok(mut entries) => entries.any(|entry| {
            let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
            !name.to_string_lossy().starts_with(STAGED) && name != "blobs"
        }),
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(at(directory, e)),
    };
    if is_other && !marker.is_file() {
        return Err(LayoutError::OtherContent.at(directory));
    }
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(|e| at(&blobs, e))?;
    // The file stays the same one, because it is locked.
    match staged(&marker, VERSION.as_bytes()).and_then(|file| Ok(file.persist_noclobber(&marker)?)) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(at(&marker, e)),
        _ => {}
    }
    let lock = File::open(&marker).map_err(|e| at(&marker, e))?;
    // Some file systems do not support locks.
    let _ = lock.lock();
    for blob in image.blobs() {
        let path = directory.join(member(&blob.digest));
        let is_stored = fs::read(&path).is_ok_and(|bytes| verify(&bytes, &blob.digest).is_ok());
        if !is_stored {
            replace(&path, &blob.bytes).map_err(|e| at(&path, e))?;
        }
    }
    let path = directory.join(INDEX);
    let index = match File::open(&path) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(LONGEST_INDEX + 1).read_to_end(&mut bytes).map_err(|e| at(&path, e))?;
            index_with(&bytes, image, name)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => new_index(image, name),
        Err(e) => return Err(at(&path, e)),
    };
    let index = index.map_err(|problem| problem.at(directory))?;
    replace(&path, &index).map_err(|e| at(&path, e))
}

/// Writes an image to a tar archive of an OCI layout. An existing file is replaced. The archive is reproducible, too.
///
/// # Errors
/// The file cannot be written.
pub fn write_archive(image: &impl Assembled, file: &Path, name: Option<&str>) -> Result<(), Error> {
    check(image)?;
    let index = new_index(image, name).map_err(|problem| problem.at(file))?;
    let mut files: BTreeMap<String, Vec<u8>> =
        image.blobs().into_iter().map(|blob| (member(&blob.digest), blob.bytes.clone())).collect();
    files.insert(MARKER.to_owned(), VERSION.as_bytes().to_vec());
    files.insert(INDEX.to_owned(), index);
    replace(file, &tar(&files)?).map_err(|source| Error::File { path: file.to_owned(), source })
}

/// Refuses docker's media types: readers of layouts do not find such images by their names.
fn check(image: &impl Assembled) -> Result<(), Error> {
    if image.root().media_type == MediaTypes::Docker.manifest() { Err(Error::DockerLayout) } else { Ok(()) }
}

/// An index of one image.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index<'a> {
    schema_version: u32,
    media_type: &'static str,
    manifests: [Entry<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    media_type: &'static str,
    digest: &'a str,
    size: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'a str>,
}

impl<'a> Entry<'a> {
    fn new(image: &'a impl Assembled, name: Option<&'a str>) -> Self {
        let Blob { media_type, digest, bytes } = image.root();
        let annotations = name.map(|name| (NAME, name)).into_iter().collect();
        Self { media_type, digest, size: bytes.len(), annotations }
    }
}

/// Returns an index of this image only.
fn new_index(image: &impl Assembled, name: Option<&str>) -> Result<Vec<u8>, LayoutError> {
    let index = Index { schema_version: 2, media_type: INDEX_TYPE, manifests: [Entry::new(image, name)] };
    serde_json::to_vec(&index).map_err(LayoutError::Index)
}

/// Returns an index with the image added. It replaces an image of the same name, or without a name the same image without a name.
/// Other fields and images stay as they are.
fn index_with(index: &[u8], image: &impl Assembled, name: Option<&str>) -> Result<Vec<u8>, LayoutError> {
    if index.len() as u64 > LONGEST_INDEX {
        return Err(LayoutError::LongDocument { name: INDEX.to_owned(), limit: LONGEST_INDEX });
    }
    let mut index: Map<String, Value> = serde_json::from_slice(index).map_err(LayoutError::Index)?;
    let mut manifests = match index.remove("manifests") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(manifests)) => manifests,
        Some(_) => return Err(LayoutError::NoList),
    };
    let named = |manifest: &Value| manifest["annotations"][NAME].as_str().map(str::to_owned);
    manifests.retain(|manifest| match (named(manifest), name) {
        (Some(old), Some(new)) => old != new,
        (None, None) => manifest["digest"] != image.root().digest,
        _ => true,
    });
    manifests.push(serde_json::to_value(Entry::new(image, name)).map_err(LayoutError::Index)?);
    index.insert("manifests".to_owned(), manifests.into());
    serde_json::to_vec(&index).map_err(LayoutError::Index)
}

/// Writes a file and renames it to its path.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    staged(path, bytes)?.persist(path)?;
    Ok(())
}

/// Writes a temporary file beside a path, with the usual permissions.
fn staged(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(STAGED);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::build::{Built, Recipe, build};
    use super::*;

    fn image(text: &str) -> Built {
        let files = [("manifests/a.yaml".to_owned(), text.as_bytes().to_vec())].into();
        build(&Recipe { files, ..Recipe::default() }).unwrap()
    }

    fn index(directory: &Path) -> Vec<(String, Option<String>)> {
        let index: Value = serde_json::from_slice(&fs::read(directory.join(INDEX)).unwrap()).unwrap();
        let entries = index["manifests"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        entries.map(|entry| (text(&entry["digest"]).unwrap(), text(&entry["annotations"][NAME]))).collect()
    }

    #[test]
    fn images_are_added_to_a_layout() {
        let folder = tempfile::tempdir().unwrap();
        let layout = folder.path().join("layout");
        let [first, second] = ["1", "2"].map(image);
        let named = |name: &str| Some(name.to_owned());
        write_layout(&first, &layout, Some("rose:1")).unwrap();
        write_layout(&second, &layout, None).unwrap();
        write_layout(&second, &layout, None).unwrap();
        let [one, two] = [&first, &second].map(|image| image.manifest.digest.clone());
        assert_eq!(index(&layout), [(one.clone(), named("rose:1")), (two.clone(), None)]);
        // Another image takes the name, and unknown fields and images stay.
        let text = fs::read_to_string(layout.join(INDEX)).unwrap();
        fs::write(layout.join(INDEX), text.replacen('{', r#"{"annotations":{"kept":"yes"},"#, 1)).unwrap();
        write_layout(&second, &layout, Some("rose:1")).unwrap();
        assert_eq!(index(&layout), [(two.clone(), None), (two, named("rose:1"))]);
        assert!(fs::read_to_string(layout.join(INDEX)).unwrap().contains(r#""kept":"yes""#));
        // A damaged blob is written again.
        let blob = layout.join(member(&second.layer.digest));
        fs::write(&blob, "damaged").unwrap();
        write_layout(&second, &layout, None).unwrap();
        assert_eq!(fs::read(blob).unwrap(), second.layer.bytes);
        assert!(fs::read_dir(&layout).unwrap().all(|e| !e.unwrap().file_name().to_string_lossy().starts_with(STAGED)));
    }

    #[test]
    fn processes_that_write_to_one_layout_keep_all_images() {
        let folder = tempfile::tempdir().unwrap();
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let layout = folder.path().join("layout");
                std::thread::spawn(move || write_layout(&image(&n.to_string()), &layout, Some(&n.to_string())))
            })
            .collect();
        for writer in writers {
            writer.join().unwrap().unwrap();
        }
        assert_eq!(index(&folder.path().join("layout")).len(), 8);
    }

    #[test]
    fn other_directories_and_media_types_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("README"), "").unwrap();
        let refused = write_layout(&image("1"), &other, None);
        assert!(matches!(refused, Err(Error::Layout { problem: LayoutError::OtherContent, .. })), "{refused:?}");
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
        let recipe = Recipe { media_types: MediaTypes::Docker, ..Recipe::default() };
        let docker = build(&recipe).unwrap();
        let archive = folder.path().join("a.tar");
        assert!(matches!(write_archive(&docker, &archive, None), Err(Error::DockerLayout)));
        assert!(matches!(write_layout(&docker, &folder.path().join("new"), None), Err(Error::DockerLayout)));
        assert!(!archive.exists() && !folder.path().join("new").exists());
        let layout = folder.path().join("layout");
        write_layout(&image("1"), &layout, None).unwrap();
        for invalid in ["", "[]", r#"{"manifests":{}}"#] {
            fs::write(layout.join(INDEX), invalid).unwrap();
            let refused = write_layout(&image("2"), &layout, None);
            assert!(matches!(refused, Err(Error::Layout { .. })), "{refused:?}");
            assert_eq!(fs::read_to_string(layout.join(INDEX)).unwrap(), invalid);
        }
    }

    #[test]
    fn archives_are_reproducible() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        write_archive(&image("1"), &a, Some("x")).unwrap();
        fs::write(&b, "old").unwrap();
        write_archive(&image("1"), &b, Some("x")).unwrap();
        assert_eq!(fs::read(a).unwrap(), fs::read(b).unwrap());
    }
}
