//! Reads the files of a catalog in chunks, on all processors.
//!
//! ```text
//!   items, in order --caller's thread--> pieces of whole documents --workers--> Parsed --in order--> Catalog
//! ```
//!
//! A chunk has about 1 MiB, and few are in memory at a time. Data that is needed later (the objects of a bundle) is read again
//! from its file, except for small catalogs, which stay in memory.

use std::fs::File as Disk;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::SystemTime;

use olm_core::budget::{CATALOG_BYTES, CATALOG_VALUES, DOCUMENT_BYTES, VALUE_BYTES};
use olm_core::catalog::{CatalogIndex, Chunk, File, Loader, Parsed, Stored};
use olm_core::finding::Finding;
use olm_core::yaml::{self, Format};

use super::Error;
use super::share::{Full, Share};
use crate::image::Content;

/// Size of a chunk, in bytes. A larger document becomes one chunk.
const PIECE: usize = 1 << 20;

/// Most bytes of a catalog's files that stay in memory. Further files are read again when needed.
const KEPT: u64 = 4 << 20;

/// Most worker threads. More would only wait for the disk.
const MOST_WORKERS: usize = 8;

/// A part of a catalog to be read.
pub(crate) enum Item {
    /// A file of blobs: its name in messages, and its path.
    File(String, PathBuf),
    /// A stream of blobs, which can be read only once.
    Stream(String, Box<dyn Read>),
    /// A bundle directory: its name in messages, and its files.
    Bundle(String, Vec<(String, PathBuf)>),
    /// A part that is already read.
    Parsed(Parsed),
}

/// Reads items and builds the index of their content.
///
/// # Errors
/// The items exceed a limit of a catalog.
pub(crate) fn index(items: Vec<Item>) -> Result<CatalogIndex, Error> {
    index_of(items, None)
}

/// Does the same for an image, which is not deleted as long as its files may be read again.
pub(crate) fn index_of(items: Vec<Item>, image: Option<Arc<Content>>) -> Result<CatalogIndex, Error> {
    index_within(items, image, CATALOG_VALUES, None)
}

/// Does the same for a catalog whose memory is limited by a share.
pub(crate) fn index_sharing(items: Vec<Item>, memory: &mut Share) -> Result<CatalogIndex, Error> {
    index_within(items, None, CATALOG_VALUES, Some(memory))
}

fn index_within(
    items: Vec<Item>,
    image: Option<Arc<Content>>,
    most: usize,
    memory: Option<&mut Share>,
) -> Result<CatalogIndex, Error> {
    let values = Values { read: AtomicUsize::new(0), most, memory: memory.map(Mutex::new), full: OnceLock::new() };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS);
    let (sender, receiver) = sync_channel(2 * workers);
    let receiver = Mutex::new(receiver);
    let mut parsed: Vec<(usize, Parsed)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| work(&receiver, &values))).collect();
        let mut cutter = Cutter { sender, next: 0, kept: 0, image };
        for item in items {
            cutter.item(item);
        }
        drop(cutter);
        let done = workers.into_iter().flat_map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        done.collect()
    });
    if let Some(full) = values.full.get() {
        return Err((*full).into());
    }
    if values.are_too_many() {
        return Err(Error::TooManyValues(most));
    }
    parsed.sort_by_key(|(number, _)| *number);
    let mut loader = Loader::default();
    for (_, parsed) in parsed {
        loader.add(parsed);
    }
    Ok(loader.finish())
}

/// The task of a worker.
enum Task {
    Chunk {
        path: Arc<str>,
        line: usize,
        offset: usize,
        bytes: Arc<[u8]>,
        format: Format,
        file: Option<Arc<dyn Stored>>,
    },
    Bundle(String, Vec<(String, PathBuf)>),
    Parsed(Parsed),
}

/// The number of values of the catalog, and its limits.
struct Values<'a> {
    read: AtomicUsize,
    most: usize,
    memory: Option<Mutex<&'a mut Share>>,
    full: OnceLock<Full>,
}

impl Values<'_> {
    fn add(&self, values: usize) {
        self.read.fetch_add(values, Ordering::Relaxed);
        if let Some(memory) = &self.memory {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(full) = memory.take(values.saturating_mul(VALUE_BYTES)) {
                self.full.get_or_init(|| full);
            }
        }
    }

    fn are_too_many(&self) -> bool {
        self.read.load(Ordering::Relaxed) > self.most || self.full.get().is_some()
    }
}

fn work(tasks: &Mutex<Receiver<(usize, Task)>>, values: &Values<'_>) -> Vec<(usize, Parsed)> {
    let mut done = Vec::new();
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, task)) = task else { return done };
        // The rest of a refused catalog is not parsed.
        if values.are_too_many() {
            done.clear();
            continue;
        }
        let parsed = task.parse();
        values.add(parsed.values());
        done.push((number, parsed));
    }
}

impl Task {
    fn parse(self) -> Parsed {
        match self {
            Self::Chunk { path, line, offset, bytes, format, file } => {
                // Without a file that can be read again, the chunk itself stays in memory, and offsets are relative to it.
                let (file, offset) = match file {
                    Some(file) => (file, offset),
                    None => (Arc::new(bytes.clone()) as Arc<dyn Stored>, 0),
                };
                Parsed::blobs(&Chunk { path: &path, line, offset, bytes: &bytes, format, file: &file })
            }
            Self::Bundle(directory, files) => {
                let read = |(shown, path): (String, PathBuf)| match std::fs::read(path) {
                    Ok(bytes) => Ok(File::new(shown, bytes)),
                    Err(e) => Err(unreadable(&shown, &e)),
                };
                match files.into_iter().map(read).collect::<Result<Vec<File>, Finding>>() {
                    Ok(files) => Parsed::bundle(&directory, &files),
                    Err(finding) => Parsed::finding(finding),
                }
            }
            Self::Parsed(parsed) => parsed,
        }
    }
}

fn unreadable(shown: &str, error: &io::Error) -> Finding {
    Finding::new("unreadable-file", error.to_string()).at(shown, 0)
}

/// Divides files into chunks.
struct Cutter {
    sender: SyncSender<(usize, Task)>,
    next: usize,
    /// Number of bytes that stay in memory.
    kept: u64,
    image: Option<Arc<Content>>,
}

impl Cutter {
    fn send(&mut self, task: Task) {
        // The workers receive until the sender is dropped.
        let _ = self.sender.send((self.next, task));
        self.next += 1;
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::File(shown, path) => {
                if let Err(e) = self.file(&shown, path) {
                    self.send(Task::Parsed(Parsed::finding(unreadable(&shown, &e))));
                }
            }
            Item::Stream(shown, stream) => {
                if let Err(e) = self.pieces(&shown, stream, None) {
                    self.send(Task::Parsed(Parsed::finding(unreadable(&shown, &e))));
                }
            }
            Item::Bundle(directory, files) => self.send(Task::Bundle(directory, files)),
            Item::Parsed(parsed) => self.send(Task::Parsed(parsed)),
        }
    }

    fn file(&mut self, shown: &str, path: PathBuf) -> io::Result<()> {
        let file = Disk::open(&path)?;
        let stamp = Stamp::from_file(&file)?;
        let again = if self.kept + stamp.length <= KEPT {
            self.kept += stamp.length;
            None
        } else {
            Some(Arc::new(Reread { path, stamp, _image: self.image.clone() }) as Arc<dyn Stored>)
        };
        self.pieces(shown, file, again)
    }

    fn pieces(&mut self, shown: &str, mut from: impl Read, file: Option<Arc<dyn Stored>>) -> io::Result<()> {
        let path: Arc<str> = shown.into();
        let (mut line, mut offset) = (1, 0);
        let (mut bytes, mut size, mut ended) = (Vec::new(), PIECE, false);
        while !ended {
            if size > DOCUMENT_BYTES {
                // The rest of the file is not read, because finding the next document would require reading this one.
                self.send(Task::Parsed(Parsed::too_long(&path, line)));
                return Ok(());
            }
            if file.is_none() && offset as u64 > CATALOG_BYTES {
                return Err(io::Error::other(format!(
                    "the stream has more than {CATALOG_BYTES} bytes; write it to a file"
                )));
            }
            let missing = size.saturating_sub(bytes.len()) as u64;
            ended = (from.by_ref().take(missing).read_to_end(&mut bytes)? as u64) < missing;
            let format = Format::detect(&bytes);
            let cut = match format {
                _ if ended => bytes.len(),
                Some(format) => yaml::whole(&bytes, format),
                None => 0,
            };
            let Some(format) = format.filter(|_| cut > 0) else {
                size *= 2;
                continue;
            };
            let rest = bytes.split_off(cut);
            let lines = memchr::memchr_iter(b'\n', &bytes).count();
            let chunk = std::mem::replace(&mut bytes, rest).into();
            self.send(Task::Chunk { path: path.clone(), line, offset, bytes: chunk, format, file: file.clone() });
            (line, offset, size) = (line + lines, offset + cut, PIECE);
        }
        Ok(())
    }
}

/// A file that is opened again when a part of it is needed.
#[derive(Debug)]
struct Reread {
    path: PathBuf,
    stamp: Stamp,
    /// The image that contains the file, if any, so that it is not deleted.
    _image: Option<Arc<Content>>,
}

/// Length and modification time of a file, to detect changes.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn from_file(file: &Disk) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { length: metadata.len(), modified: metadata.modified().ok() })
    }
}

impl Stored for Reread {
    fn read(&self, range: Range<usize>) -> Result<Vec<u8>, String> {
        let path = self.path.display();
        let refused = |e: io::Error| format!("{path} cannot be read again: {e}");
        let mut file = Disk::open(&self.path).map_err(refused)?;
        if Stamp::from_file(&file).map_err(refused)? != self.stamp {
            return Err(format!("{path} has changed since the catalog was read"));
        }
        let mut bytes = vec![0; range.len()];
        file.seek(SeekFrom::Start(range.start as u64)).map_err(refused)?;
        file.read_exact(&mut bytes).map_err(refused)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use olm_core::budget::TENANTS_MEMORY;

    use super::*;
    use crate::registry::share::Quota;

    /// Returns a catalog with this number of packages, of 40 kB each.
    fn large(packages: usize) -> String {
        let mut text = String::new();
        for n in 0..packages {
            let padding = "x".repeat(40_000);
            write!(
                text,
                "---\nschema: olm.package\nname: p{n}\ndefaultChannel: c\ndescription: {padding}\n\
                 ---\nschema: olm.channel\npackage: p{n}\nname: c\nentries: [{{name: p{n}.v1}}]\n\
                 ---\nschema: olm.bundle\npackage: p{n}\nname: p{n}.v1\nproperties:\n\
                 - {{type: olm.package, value: {{packageName: p{n}, version: 1.0.0}}}}\n\
                 - type: olm.bundle.object\n  value:\n    data: eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0=\n"
            )
            .unwrap();
        }
        text
    }

    #[test]
    fn chunks_are_in_order_and_objects_are_read_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("catalog.yaml");
        let text = large(150);
        assert!(text.len() as u64 > KEPT + PIECE as u64);
        std::fs::write(&path, &text).unwrap();
        let load = index(vec![Item::File("catalog.yaml".into(), path.clone())]).unwrap().load();
        let streamed = index(vec![Item::Stream("-".into(), Box::new(io::Cursor::new(text)))]).unwrap().load();
        for load in [&load, &streamed] {
            assert_eq!((&load.findings[..], load.snapshot.packages().len()), (&[][..], 150));
        }
        assert_eq!(load.snapshot, streamed.snapshot);
        let object = |load: &olm_core::catalog::Loaded| load.snapshot.bundle("p149", "c", "p149.v1");
        assert_eq!(object(&load).unwrap().csv_json.to_string(), r#"{"kind":"ClusterServiceVersion"}"#);
        std::fs::write(&path, "shorter").unwrap();
        assert!(object(&load).is_none() && object(&streamed).is_some());
        let why = load.snapshot.read_bundle("p149", "c", "p149.v1").unwrap_err();
        assert!(why.ends_with("catalog.yaml has changed since the catalog was read"), "{why}");
    }

    #[test]
    fn lines_are_those_of_the_file() {
        let text = format!("{}---\nschema: [1]\n", large(60));
        let line = text.lines().count();
        let load = index(vec![Item::Stream("-".into(), Box::new(io::Cursor::new(text)))]).unwrap().load();
        assert_eq!(load.findings.iter().map(|f| (f.code, f.line)).collect::<Vec<_>>(), [("bad-blob", line)]);
    }

    /// A document beyond the limit is refused before it is in memory: a small compressed image may have one of any length.
    #[test]
    fn documents_and_catalogs_are_bounded() {
        let endless = |text: &'static str| io::Cursor::new(text).chain(io::repeat(b'x').take(1 << 40));
        for start in ["schema: olm.package\nname: ", "{\"schema\": \""] {
            let load = index(vec![Item::Stream("-".into(), Box::new(endless(start)))]).unwrap().load();
            let finding = load.findings[0].to_string();
            assert!(
                finding.contains("-:1: the document has more than 33554432 bytes")
                    && finding.contains("hint: split it"),
                "{finding}"
            );
        }
        // Many values in many small documents.
        let channel = |n: usize| {
            let entries = vec!["{}"; 100].join(",");
            format!("{{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c{n}\",\"entries\":[{entries}]}}\n")
        };
        let text: String = (0..25).map(channel).collect();
        let items = |text: &str| vec![Item::Stream("-".into(), Box::new(io::Cursor::new(text.to_owned())))];
        assert!(index_within(items(&text), None, 3000, None).is_ok());
        let error = index_within(items(&text), None, 2000, None).unwrap_err();
        assert!(matches!(error, Error::TooManyValues(2000)), "{error}");
        let mut shares = Quota::new().shares("park");
        assert!(index_sharing(items(&text), &mut shares.memory).is_ok());
        shares.memory.take(TENANTS_MEMORY / 2 - 2 * 2000 * VALUE_BYTES).unwrap();
        let error = index_sharing(items(&text), &mut shares.memory).unwrap_err().to_string();
        assert!(error.contains("more than their share of the 536870912 bytes of memory"), "{error}");
        let more = format!(
            "{{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":[{}]}}",
            vec!["{}"; 300_001].join(",")
        );
        let load = index(vec![Item::Stream("-".into(), Box::new(io::Cursor::new(more)))]).unwrap().load();
        assert!(load.findings[0].message.contains("more than 300000 values"), "{}", load.findings[0]);
    }
}
