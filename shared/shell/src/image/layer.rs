//! One layer: its bytes checked against its digest, decompressed, and its entries read within bounds.

use std::io::{self, BufRead, BufReader, Read};

use tar::{Archive, EntryType, PaxExtensions};

use super::manifest::{Descriptor, Digester, wrong_digest};
use crate::error::{CliError, ErrorKind};

/// Longest path in an image, and longest extended header.
const LONGEST_PATH: u64 = 4096;
const LONGEST_HEADER: u64 = 1 << 20;
/// A zstd frame that needs a larger window than 128 MB is refused, as by zstd's own tool.
const WINDOW_LOG: u32 = 27;
/// How a zstd frame begins.
pub(crate) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A member of a layer. Paths are as they stand in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    File {
        path: &'a str,
        size: u64,
    },
    Folder {
        path: &'a str,
    },
    Link {
        path: &'a str,
        target: &'a str,
    },
    /// One file under another name of an earlier entry.
    HardLink {
        path: &'a str,
        target: &'a str,
    },
    /// A device, a pipe or the like.
    Special {
        path: &'a str,
    },
}

/// Reads a layer's entries until its end, and checks its size and digest.
pub(super) fn read(
    blob: impl Read,
    layer: &Descriptor,
    unpacked: &mut u64,
    mut visit: impl FnMut(Entry<'_>, &mut dyn Read) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut blob = BufReader::new(Verified::new(blob, layer));
    let visited = decompress(&mut blob, &layer.media_type).and_then(|content| {
        let mut bounded = Bounded { content, left: unpacked, exceeded: false };
        let visited = entries(&mut bounded, &mut visit);
        if bounded.exceeded { Err(too_much("more than it may when it is unpacked")) } else { visited }
    });
    // What stands behind the last entry belongs to the digest as well, and a damaged blob is the reason for all else.
    let rest = io::copy(&mut blob, &mut io::sink());
    if let Some(failure) = blob.get_mut().failure.take() {
        return Err(failure);
    }
    visited?;
    rest.map(|_| ()).map_err(CliError::from)
}

/// A layer, or the image, is larger than the limits allow.
pub(super) fn too_much(what: &str) -> CliError {
    CliError::input(format!("the image holds {what}"))
        .hint("no public catalog or bundle needs that much: ask its maker what is in it; kubectl olm run takes more of catalogs in the global namespace with --image-size-limit")
}

/// Passes bytes through and checks, at the end, that they are what they should be.
struct Verified<R> {
    inner: R,
    expected: String,
    digester: Option<Digester>,
    left: u64,
    size: u64,
    failure: Option<CliError>,
}

impl<R: Read> Verified<R> {
    fn new(inner: R, layer: &Descriptor) -> Self {
        let digester = Some(Digester::like(&layer.digest));
        Self { inner, expected: layer.digest.clone(), digester, left: layer.size, size: layer.size, failure: None }
    }

    fn fail(&mut self, failure: CliError) -> io::Error {
        let error = io::Error::other(failure.message.clone());
        self.failure.get_or_insert(failure);
        self.digester = None;
        error
    }

    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, CliError> {
        let read = self.inner.read(buffer).map_err(|e| from_io(&e))?;
        let size = self.size;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            CliError::input(format!("layer {} is longer than the {size} bytes of its manifest", self.expected))
        })?;
        if read == 0 {
            if self.left > 0 {
                let got = size - self.left;
                let message = format!("layer {} broke off after {got} of {size} bytes", self.expected);
                return Err(CliError::new(ErrorKind::Unreachable, message).hint("try again"));
            }
            if let Some(digester) = self.digester.take() {
                let found = digester.finish();
                if found != self.expected {
                    return Err(wrong_digest(&self.expected, &found));
                }
            }
        } else if let Some(digester) = &mut self.digester {
            digester.update(&buffer[..read]);
        }
        Ok(read)
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::other(failure.message.clone()));
        }
        self.next(buffer).map_err(|e| self.fail(e))
    }
}

/// The error that an I/O error carries, or one made of it.
pub(super) fn from_io(error: &io::Error) -> CliError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<CliError>());
    inner.cloned().unwrap_or_else(|| CliError::new(ErrorKind::Io, error.to_string()))
}

/// By the first bytes, as media types are often wrong.
fn decompress<'a>(blob: &'a mut impl BufRead, media_type: &str) -> Result<Box<dyn Read + 'a>, CliError> {
    if media_type.ends_with("+encrypted") || media_type.contains("foreign") {
        return Err(CliError::input(format!("a layer of type {media_type} cannot be read")));
    }
    let start = blob.fill_buf().map_err(CliError::from)?;
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(blob)),
        start if start.starts_with(&ZSTD) => Box::new(unpack_zstd(blob)?),
        _ => Box::new(blob),
    })
}

/// What is compressed with zstd, within bounded memory.
pub(crate) fn unpack_zstd<'a, R: BufRead + 'a>(blob: R) -> io::Result<impl Read + 'a> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(blob)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(decoder)
}

/// Ends what unpacks to more than is left.
struct Bounded<'a, R> {
    content: R,
    left: &'a mut u64,
    exceeded: bool,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => *self.left = left,
            None => {
                self.exceeded = true;
                return Err(io::Error::other("too much"));
            }
        }
        Ok(read)
    }
}

/// Long names are read here and not by the tar crate, which would take any amount of memory for them.
fn entries(
    content: &mut dyn Read,
    visit: &mut impl FnMut(Entry<'_>, &mut dyn Read) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let broken = |e: &io::Error| CliError::input(format!("a layer is not a tar archive: {e}"));
    let mut archive = Archive::new(content);
    let (mut long_path, mut long_target) = (None, None);
    for entry in archive.entries().map_err(|e| broken(&e))?.raw(true) {
        let mut entry = entry.map_err(|e| broken(&e))?;
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => {
                long_path = Some(text(&bounded(&mut entry, LONGEST_PATH + 1)?));
                continue;
            }
            EntryType::GNULongLink => {
                long_target = Some(text(&bounded(&mut entry, LONGEST_PATH + 1)?));
                continue;
            }
            EntryType::XHeader => {
                let header = bounded(&mut entry, LONGEST_HEADER)?;
                for extension in PaxExtensions::new(&header).flatten() {
                    match extension.key_bytes() {
                        b"path" => long_path = Some(text(extension.value_bytes())),
                        b"linkpath" => long_target = Some(text(extension.value_bytes())),
                        b"size" | b"GNU.sparse.major" => {
                            return Err(CliError::input("a layer has sparse files or files of more than 8 GB"));
                        }
                        _ => {}
                    }
                }
                continue;
            }
            EntryType::XGlobalHeader => continue,
            EntryType::GNUSparse => return Err(CliError::input("a layer has sparse files, which cannot be read")),
            _ => {}
        }
        let path = long_path.take().unwrap_or_else(|| text(&entry.header().path_bytes()));
        let target = long_target.take().unwrap_or_else(|| text(&entry.header().link_name_bytes().unwrap_or_default()));
        if path.len().max(target.len()) as u64 > LONGEST_PATH {
            return Err(CliError::input("a layer has a path of more than 4096 bytes"));
        }
        let size = entry.header().entry_size().map_err(|e| broken(&e))?;
        let entry_of = match kind {
            EntryType::Regular | EntryType::Continuous => Entry::File { path: &path, size },
            EntryType::Directory => Entry::Folder { path: &path },
            EntryType::Symlink => Entry::Link { path: &path, target: &target },
            EntryType::Link => Entry::HardLink { path: &path, target: &target },
            _ => Entry::Special { path: &path },
        };
        visit(entry_of, &mut entry)?;
    }
    Ok(())
}

fn bounded(entry: &mut impl Read, limit: u64) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = entry.take(limit + 1).read_to_end(&mut bytes).map_err(CliError::from)?;
    if read as u64 > limit { Err(CliError::input("a layer has an overlong name")) } else { Ok(bytes) }
}

/// A name ends at its first NUL, if it has one.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
