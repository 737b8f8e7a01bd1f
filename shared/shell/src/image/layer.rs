//! Reads a layer: verifies its digest, decompresses it, and reads its entries within limits.

use std::io::{self, BufRead, BufReader, Read};

use tar::{Archive, EntryType, PaxExtensions};

use super::manifest::{Descriptor, Digester};
use super::{Error, Excess};

/// Longest path in an image, in bytes.
const LONGEST_PATH: u64 = 4096;
/// Longest extended header, in bytes.
const LONGEST_HEADER: u64 = 1 << 20;
/// The base-2 logarithm of the largest window of a zstd frame: 128 MiB, the default limit of the zstd command.
const WINDOW_LOG: u32 = 27;
/// The magic number of a zstd frame.
pub(crate) const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A member of a layer, with unmodified paths.
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
    /// Another name of an earlier entry's file.
    HardLink {
        path: &'a str,
        target: &'a str,
    },
    /// A device, a pipe or another special file.
    Special {
        path: &'a str,
    },
}

/// Reads all entries of a layer, and verifies its size and digest. `unpacked` is the number of decompressed bytes that are left.
pub(super) fn read(
    blob: impl Read,
    layer: &Descriptor,
    unpacked: &mut u64,
    mut visit: impl FnMut(Entry<'_>, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut blob = BufReader::new(Verified::new(blob, layer));
    let visited = decompress(&mut blob, &layer.media_type).and_then(|content| {
        let mut bounded = Bounded { content, left: unpacked, exceeded: false };
        let visited = entries(&mut bounded, &mut visit);
        if bounded.exceeded { Err(Error::TooMuch(Excess::Unpacked)) } else { visited }
    });
    // Bytes after the last entry are part of the digest. An error of the blob comes first because it causes the other errors.
    let rest = io::copy(&mut blob, &mut io::sink());
    if let Some(failure) = blob.get_mut().failure.take() {
        return Err(failure);
    }
    visited?;
    rest?;
    Ok(())
}

/// Reads a blob to its end, and verifies its size and digest.
pub(super) fn verify(blob: impl Read, descriptor: &Descriptor) -> Result<(), Error> {
    let mut blob = Verified::new(blob, descriptor);
    let read = io::copy(&mut blob, &mut io::sink());
    match blob.failure.take() {
        Some(failure) => Err(failure),
        None => Ok(read.map(drop)?),
    }
}

/// Passes bytes through and verifies their number and digest at the end.
struct Verified<R> {
    inner: R,
    expected: String,
    digester: Option<Digester>,
    left: u64,
    size: u64,
    failure: Option<Error>,
}

impl<R: Read> Verified<R> {
    fn new(inner: R, layer: &Descriptor) -> Self {
        let digester = Some(Digester::like(&layer.digest));
        Self { inner, expected: layer.digest.clone(), digester, left: layer.size, size: layer.size, failure: None }
    }

    fn fail(&mut self, failure: Error) -> io::Error {
        let error = io::Error::other(failure.to_string());
        self.failure.get_or_insert(failure);
        self.digester = None;
        error
    }

    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        // An interrupted download returns an `Error` inside of the I/O error.
        let read = self.inner.read(buffer).map_err(|e| e.downcast().unwrap_or_else(Error::Io))?;
        let (size, digest) = (self.size, || self.expected.clone());
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| Error::LongLayer { digest: digest(), size })?;
        if read == 0 {
            if self.left > 0 {
                return Err(Error::ShortLayer { digest: digest(), got: size - self.left, size });
            }
            if let Some(digester) = self.digester.take() {
                let found = digester.finish();
                if found != self.expected {
                    return Err(Error::WrongDigest { expected: digest(), found });
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
            return Err(io::Error::other(failure.to_string()));
        }
        self.next(buffer).map_err(|e| self.fail(e))
    }
}

/// Decompresses a blob. Detects the format by the first bytes, because media types are often wrong.
fn decompress<'a>(blob: &'a mut impl BufRead, media_type: &str) -> Result<Box<dyn Read + 'a>, Error> {
    if media_type.ends_with("+encrypted") || media_type.contains("foreign") {
        return Err(Error::LayerType(media_type.to_owned()));
    }
    let start = blob.fill_buf()?;
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(blob)),
        start if start.starts_with(&ZSTD) => Box::new(unpack_zstd(blob)?),
        _ => Box::new(blob),
    })
}

/// Decompresses zstd, with limited memory.
pub(crate) fn unpack_zstd<'a, R: BufRead + 'a>(blob: R) -> io::Result<impl Read + 'a> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(blob)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(decoder)
}

/// Fails after more bytes than are left of the limit.
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
                return Err(io::Error::other("limit exceeded"));
            }
        }
        Ok(read)
    }
}

/// Visits the entries of a tar archive. Reads long names itself, because the tar crate reads them without a limit.
fn entries(
    content: &mut dyn Read,
    visit: &mut impl FnMut(Entry<'_>, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut archive = Archive::new(content);
    let (mut long_path, mut long_target) = (None, None);
    for entry in archive.entries().map_err(Error::LayerFormat)?.raw(true) {
        let mut entry = entry.map_err(Error::LayerFormat)?;
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
                            return Err(Error::LayerEntry("sparse files or files of more than 8 GB"));
                        }
                        _ => {}
                    }
                }
                continue;
            }
            EntryType::XGlobalHeader => continue,
            EntryType::GNUSparse => return Err(Error::LayerEntry("sparse files, which cannot be read")),
            _ => {}
        }
        let path = long_path.take().unwrap_or_else(|| text(&entry.header().path_bytes()));
        let target = long_target.take().unwrap_or_else(|| text(&entry.header().link_name_bytes().unwrap_or_default()));
        if path.len().max(target.len()) as u64 > LONGEST_PATH {
            return Err(Error::LayerEntry("a path of more than 4096 bytes"));
        }
        let size = entry.header().entry_size().map_err(Error::LayerFormat)?;
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

fn bounded(entry: &mut impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = entry.take(limit + 1).read_to_end(&mut bytes)?;
    if read as u64 > limit { Err(Error::LayerEntry("a name that is too long")) } else { Ok(bytes) }
}

/// Decodes a name, which ends at its first NUL if it has one.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
