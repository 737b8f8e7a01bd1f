//! OCI layouts: a directory with `index.json` and `blobs`, or a tar archive of one, which is read in place.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::manifest::{Descriptor, Manifest, verify};
use crate::error::{CliError, ErrorKind};

const INDEX: &str = "index.json";
const NAME: &str = "org.opencontainers.image.ref.name";
/// containerd and docker put the whole reference here.
const WHOLE_NAME: &str = "io.containerd.image.name";
/// Most members of an archive: blobs of a few images.
const MEMBERS: usize = 10_000;

/// An OCI layout.
pub(super) struct Layout {
    path: PathBuf,
    /// Where the members of an archive begin, and their sizes.
    members: Option<BTreeMap<String, (u64, u64)>>,
    limit: u64,
}

/// Is this directory an OCI layout?
pub fn is_layout(path: &Path) -> bool {
    path.join("oci-layout").is_file() && path.join(INDEX).is_file()
}

impl Layout {
    /// `limit`: most bytes of a manifest.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, CliError> {
        let refused = |e: io::Error| CliError::new(ErrorKind::Io, format!("cannot read: {e}")).at(path.display());
        let members = if fs::metadata(path).map_err(refused)?.is_dir() { None } else { Some(members(path)?) };
        let layout = Self { path: path.to_owned(), members, limit };
        if layout.read(INDEX).is_err() {
            let docker = layout.members.as_ref().is_some_and(|m| m.contains_key("manifest.json"));
            let hint = if docker {
                "it is an archive in docker's own format: skopeo copy docker-archive:FILE oci-archive:NEWFILE converts it"
            } else {
                "an OCI layout has the files oci-layout and index.json; skopeo copy docker://IMAGE oci:DIR makes one"
            };
            return Err(CliError::input("this is no OCI layout").at(path.display()).hint(hint));
        }
        Ok(layout)
    }

    /// The descriptor of the image of a name, or of the only one.
    pub(super) fn find(&self, name: Option<&str>) -> Result<Descriptor, CliError> {
        let index = Manifest::read(&self.document(INDEX)?)?;
        let images = index.manifests.unwrap_or_default();
        let names = |d: &Descriptor| -> Vec<String> {
            [NAME, WHOLE_NAME].iter().filter_map(|key| d.annotations.get(*key).cloned()).collect()
        };
        let known = || {
            let known: Vec<String> = images.iter().flat_map(names).collect();
            if known.is_empty() { "none has a name".to_owned() } else { format!("they are {}", known.join(", ")) }
        };
        match (name, &images[..]) {
            (None, [only]) => Ok(only.clone()),
            (None, []) => Err(CliError::input("this OCI layout has no image").at(self.path.display())),
            (None, _) => {
                let message = format!("this OCI layout has {} images", images.len());
                let hint = format!("say which: oci:{}:NAME; {}", self.path.display(), known());
                Err(CliError::input(message).at(self.path.display()).hint(hint))
            }
            (Some(name), _) => {
                images.iter().find(|d| d.digest == name || names(d).iter().any(|n| n == name)).cloned().ok_or_else(
                    || {
                        CliError::input(format!("this OCI layout has no image {name:?}"))
                            .at(self.path.display())
                            .hint(known())
                    },
                )
            }
        }
    }

    /// A manifest or configuration.
    pub(super) fn blob_document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, CliError> {
        let bytes = self.document(&member(&descriptor.digest))?;
        verify(&bytes, &descriptor.digest)?;
        Ok(bytes)
    }

    /// A layer.
    pub(super) fn blob(&self, descriptor: &Descriptor) -> Result<Box<dyn Read + Send>, CliError> {
        self.read(&member(&descriptor.digest))
    }

    fn document(&self, name: &str) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let read = self.read(name)?.take(self.limit + 1).read_to_end(&mut bytes);
        let read = read.map_err(|e| CliError::from(e).at(self.path.display()))?;
        if read as u64 > self.limit {
            return Err(CliError::input(format!("{name} is longer than {} bytes", self.limit)).at(self.path.display()));
        }
        Ok(bytes)
    }

    fn read(&self, name: &str) -> Result<Box<dyn Read + Send>, CliError> {
        let missing = || {
            CliError::input(format!("this OCI layout has no {name}"))
                .at(self.path.display())
                .hint("it is incomplete: make it again, with all of its blobs")
        };
        let io = |e: io::Error| CliError::from(e).at(self.path.display());
        let Some(members) = &self.members else {
            return match File::open(self.path.join(name)) {
                Ok(file) => Ok(Box::new(file)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Err(missing()),
                Err(e) => Err(io(e)),
            };
        };
        let (offset, size) = members.get(name).ok_or_else(missing)?;
        let mut file = File::open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(*offset)).map_err(io)?;
        Ok(Box::new(file.take(*size)))
    }
}

/// The digest was checked when its descriptor was read.
fn member(digest: &str) -> String {
    format!("blobs/{}", digest.replace(':', "/"))
}

fn members(path: &Path) -> Result<BTreeMap<String, (u64, u64)>, CliError> {
    let broken = |e: io::Error| {
        CliError::input(format!("this is no tar archive: {e}"))
            .at(path.display())
            .hint("a compressed archive has to be decompressed first; a directory is read as well")
    };
    let file = File::open(path).map_err(|e| CliError::from(e).at(path.display()))?;
    let mut archive = tar::Archive::new(file);
    let mut members = BTreeMap::new();
    for entry in archive.entries_with_seek().map_err(broken)?.raw(true) {
        let entry = entry.map_err(broken)?;
        let name = String::from_utf8_lossy(&entry.header().path_bytes()).into_owned();
        let size = entry.header().entry_size().map_err(broken)?;
        members.insert(name.trim_start_matches("./").to_owned(), (entry.raw_file_position(), size));
        if members.len() > MEMBERS {
            return Err(CliError::input("this archive has too many members for an OCI layout").at(path.display()));
        }
    }
    Ok(members)
}
