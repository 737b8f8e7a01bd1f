//! OCI layouts: a directory with `index.json` and `blobs`, or a tar archive of one, which is read without unpacking it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::manifest::{Descriptor, Manifest, verify};
use super::{Error, LayoutError};

/// The index of a layout.
pub(super) const INDEX: &str = "index.json";
/// The annotation of an image in the index with its name.
pub(super) const NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation in which containerd and docker store the complete reference.
const WHOLE_NAME: &str = "io.containerd.image.name";
/// Most members of an archive, which is enough for the blobs of many images.
const MEMBERS: usize = 10_000;

/// An OCI layout.
pub(super) struct Layout {
    path: PathBuf,
    /// Offset and size of each member of an archive.
    members: Option<BTreeMap<String, (u64, u64)>>,
    limit: u64,
}

/// Returns whether this directory is an OCI layout.
pub fn is_layout(path: &Path) -> bool {
    path.join("oci-layout").is_file() && path.join(INDEX).is_file()
}

impl Layout {
    /// Opens a layout. `limit` is the size of the largest manifest, in bytes.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, Error> {
        let metadata = fs::metadata(path).map_err(|e| LayoutError::Unreadable(e).at(path))?;
        let members = if metadata.is_dir() { None } else { Some(members(path).map_err(|problem| problem.at(path))?) };
        let layout = Self { path: path.to_owned(), members, limit };
        if layout.read(INDEX).is_err() {
            let is_of_docker = layout.members.as_ref().is_some_and(|m| m.contains_key("manifest.json"));
            return Err(LayoutError::Other { is_of_docker }.at(path));
        }
        Ok(layout)
    }

    /// Returns the descriptor of the image with this name or digest; without a name, of the only image.
    pub(super) fn find(&self, name: Option<&str>) -> Result<Descriptor, Error> {
        let index = Manifest::read(&self.document(INDEX)?)?;
        let images = index.manifests.unwrap_or_default();
        let names = |d: &Descriptor| -> Vec<String> {
            [NAME, WHOLE_NAME].iter().filter_map(|key| d.annotations.get(*key).cloned()).collect()
        };
        let known = || images.iter().flat_map(names).collect();
        let found = match (name, &images[..]) {
            (None, [only]) => Ok(only),
            (None, []) => Err(LayoutError::Empty),
            (None, _) => Err(LayoutError::Ambiguous { images: images.len(), names: known() }),
            (Some(name), _) => images
                .iter()
                .find(|d| d.digest == name || names(d).iter().any(|n| n == name))
                .ok_or_else(|| LayoutError::NoImage { name: name.to_owned(), names: known() }),
        };
        found.cloned().map_err(|problem| problem.at(&self.path))
    }

    /// Reads a manifest or configuration, and verifies its digest.
    pub(super) fn blob_document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let bytes = self.document(&member(&descriptor.digest))?;
        verify(&bytes, &descriptor.digest)?;
        Ok(bytes)
    }

    /// Opens a layer. The reader must verify its digest.
    pub(super) fn blob(&self, descriptor: &Descriptor) -> Result<Box<dyn Read + Send>, Error> {
        self.read(&member(&descriptor.digest)).map_err(|problem| problem.at(&self.path))
    }

    /// Reads a part of a blob.
    pub(super) fn part(&self, descriptor: &Descriptor, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        let read = self.open_at(&member(&descriptor.digest), offset).and_then(|mut from| {
            let mut bytes = Vec::new();
            from.by_ref().take(length).read_to_end(&mut bytes).map_err(LayoutError::Io)?;
            Ok(bytes)
        });
        let bytes = read.map_err(|problem| problem.at(&self.path))?;
        if bytes.len() as u64 == length {
            return Ok(bytes);
        }
        let (digest, size) = (descriptor.digest.clone(), descriptor.size);
        Err(Error::ShortLayer { digest, got: offset + bytes.len() as u64, size })
    }

    fn document(&self, name: &str) -> Result<Vec<u8>, Error> {
        let limit = self.limit;
        let read = self.read(name).and_then(|from| {
            let mut bytes = Vec::new();
            let read = from.take(limit + 1).read_to_end(&mut bytes).map_err(LayoutError::Io)?;
            let is_too_long = read as u64 > limit;
            if is_too_long { Err(LayoutError::LongDocument { name: name.to_owned(), limit }) } else { Ok(bytes) }
        });
        read.map_err(|problem| problem.at(&self.path))
    }

    fn read(&self, name: &str) -> Result<Box<dyn Read + Send>, LayoutError> {
        self.open_at(name, 0).map(|file| Box::new(file) as Box<dyn Read + Send>)
    }

    /// Opens a file or a member of the archive, from an offset to its end.
    fn open_at(&self, name: &str, skipped: u64) -> Result<io::Take<File>, LayoutError> {
        let missing = || LayoutError::Missing(name.to_owned());
        let (file, offset, size) = match &self.members {
            None => (File::open(self.path.join(name)), 0, u64::MAX),
            Some(members) => {
                let (offset, size) = members.get(name).ok_or_else(missing)?;
                (File::open(&self.path), *offset, *size)
            }
        };
        let mut file = match file {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(missing()),
            Err(e) => return Err(LayoutError::Io(e)),
        };
        file.seek(SeekFrom::Start(offset.saturating_add(skipped))).map_err(LayoutError::Io)?;
        Ok(file.take(size.saturating_sub(skipped)))
    }
}

/// Returns the path of a blob. The digest was checked when its descriptor was read.
pub(super) fn member(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn members(path: &Path) -> Result<BTreeMap<String, (u64, u64)>, LayoutError> {
    let file = File::open(path).map_err(LayoutError::Io)?;
    let mut archive = tar::Archive::new(file);
    let mut members = BTreeMap::new();
    for entry in archive.entries_with_seek().map_err(LayoutError::NotAnArchive)?.raw(true) {
        let entry = entry.map_err(LayoutError::NotAnArchive)?;
        let name = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        let size = entry.header().entry_size().map_err(LayoutError::NotAnArchive)?;
        members.insert(name.trim_start_matches("./").to_owned(), (entry.raw_file_position(), size));
        if members.len() > MEMBERS {
            return Err(LayoutError::TooManyMembers);
        }
    }
    Ok(members)
}
