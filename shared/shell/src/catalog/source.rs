//! Parses references to catalogs, and reads them.

use std::fmt;
use std::fs::File as Disk;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::read::MultiGzDecoder;
use olm_core::budget::CATALOG_BYTES;
use olm_core::bundle::Bundle;
use olm_core::catalog::{CatalogIndex, Loaded, Meta, MigrationLevel, Package, Parsed, Snapshot, Template};
use olm_core::finding::{Finding, Severity};
use olm_core::yaml;
use serde_json::Value;
use tempfile::TempDir;

use super::catalog_sources::{self, Named};
use crate::blocking::block_on;
use crate::cli::flags::ClusterFlags;
use crate::cli::{CliError, ErrorKind, Printer};
use crate::cluster::fetch_catalog::{self, Fetched};
use crate::image::{self, Content, Kind, Location, Requested};
use crate::registry::read::{self, Item};
use crate::registry::{self, dir};

/// The size limit of a template, in bytes.
const TEMPLATE: u64 = 256 << 20;

/// How many bytes of a file are read to detect its format. A tar archive has a magic number after 257 bytes, a template its schema in the first lines.
const HEAD: u64 = 64 << 10;

/// A reference to a catalog or a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ref {
    /// A directory of catalog files, or of one bundle.
    Directory(PathBuf),
    /// An OCI layout: a directory of images.
    Layout(PathBuf),
    /// A file of blobs, a template, or an archive of a directory.
    File(PathBuf),
    /// Standard input, with the same content as a file.
    Stdin,
    /// An image in a registry.
    Image(String),
    /// A CatalogSource of the cluster: `catalogsource/NAME`, or `catalogsource/NAMESPACE/NAME`.
    CatalogSource(Box<Named>),
    /// A catalog server at `grpc://HOST:PORT`.
    Address(String),
}

impl Ref {
    /// Binds a CatalogSource to the cluster, with a default namespace.
    pub fn on(self, cluster: &ClusterFlags, namespace: Option<&String>) -> Self {
        let Self::CatalogSource(named) = self else { return self };
        let namespace = named.namespace.or_else(|| namespace.cloned());
        Self::CatalogSource(Box::new(Named { namespace, cluster: cluster.clone(), name: named.name }))
    }

    /// Returns whether the text can only be the name of a package, since it has no characters of paths or images.
    pub fn is_package_name(text: &str) -> bool {
        text != "-" && !text.contains(['/', '.', ':', '\\'])
    }
}

impl FromStr for Ref {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = Path::new(text);
        if text == "-" {
            return Ok(Self::Stdin);
        }
        if let Some(name) = text.strip_prefix("catalogsource/") {
            return name.parse().map(Box::new).map(Self::CatalogSource);
        }
        if let Some(address) = text.strip_prefix("grpc://") {
            return Ok(Self::Address(address.to_owned()));
        }
        if path.is_dir() {
            let is_layout = path.join("oci-layout").is_file();
            return Ok(if is_layout { Self::Layout(path.to_owned()) } else { Self::Directory(path.to_owned()) });
        }
        let looks_like_a_path = text.starts_with(['.', '/', '~']) || text.contains('\\') || !text.contains('/');
        if path.exists() || looks_like_a_path {
            Ok(Self::File(path.to_owned()))
        } else {
            Ok(Self::Image(text.to_owned()))
        }
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) | Self::Layout(path) | Self::File(path) => write!(f, "{}", path.display()),
            Self::Stdin => f.write_str("-"),
            Self::Image(image) => f.write_str(image),
            Self::CatalogSource(named) => named.fmt(f),
            Self::Address(address) => write!(f, "grpc://{address}"),
        }
    }
}

/// How many packages of a catalog are named if a package is not found.
const NAMED: usize = 10;

/// Returns the error for an image that cannot be read. A name without a registry host may be a mistyped path.
fn unread_image(error: CliError, reference: &str) -> CliError {
    match reference.split_once('/') {
        Some((host, _)) if host != "localhost" && !host.contains(['.', ':']) => {
            error.hint("no file or directory has this name; write ./PATH for a directory")
        }
        _ => error,
    }
}

/// A catalog that was read.
pub(super) struct Source {
    pub(super) catalog: CatalogIndex,
    held: Held,
}

/// The data from which bundles are read on request: the folders of unpacked archives, and images.
#[derive(Default)]
pub(super) struct Held {
    unpacked: Vec<TempDir>,
    images: Vec<Content>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({} archives, {} images)", self.unpacked.len(), self.images.len())
    }
}

impl Source {
    /// Reads references as one catalog.
    pub(super) fn read(refs: &[Ref], images: &image::Options) -> Result<Self, CliError> {
        let mut reader = Reader { items: Vec::new(), held: Held::default(), images };
        refs.iter().try_for_each(|r| reader.take(r))?;
        Ok(Self { catalog: read::index(reader.items)?, held: reader.held })
    }

    /// Returns the catalog, and the data that it depends on.
    pub(super) fn into_parts(self) -> (CatalogIndex, Held) {
        (self.catalog, self.held)
    }

    /// Reads references as one catalog, and fails if some of it could not be read, for commands that need all of it.
    pub(super) fn read_whole(refs: &[Ref], images: &image::Options) -> Result<Self, CliError> {
        let source = Self::read(refs, images)?;
        match all_refused(source.catalog.findings()) {
            None => Ok(source),
            Some(error) => Err(error),
        }
    }
}

/// A catalog that was read and checked.
pub(crate) struct OpenCatalog {
    /// The valid packages, and the findings about others.
    pub(crate) load: Loaded,
    _held: Held,
}

impl OpenCatalog {
    /// Reads references as one catalog, and warns about findings.
    pub(crate) fn read(refs: &[Ref], images: &image::Options, printer: &mut Printer) -> Result<Self, CliError> {
        let progress = printer.progress("reading the catalog");
        let Source { catalog, held } = Source::read(refs, &images.watched(progress.watch()))?;
        let load = catalog.load();
        drop(progress);
        let wrong = load.findings.iter().filter(|f| f.severity == Severity::Error).count();
        if wrong > 0 {
            let aside: Vec<&str> = load.invalid_packages.iter().map(String::as_str).filter(|p| !p.is_empty()).collect();
            let aside =
                if aside.is_empty() { String::new() } else { format!(", invalid packages: {}", aside.join(", ")) };
            let named: Vec<String> = refs.iter().map(ToString::to_string).collect();
            let findings = if wrong == 1 { "1 finding".to_owned() } else { format!("{wrong} findings") };
            printer.warn(format_args!(
                "{} has {findings}{aside}; to list them, run kubectl olm catalog validate",
                named.join(" ")
            ));
        }
        Ok(Self { load, _held: held })
    }

    /// Returns the package of that name, or reports that it does not exist.
    pub(super) fn package(&self, name: &str, printer: &mut Printer) -> Option<&Package> {
        let found = self.load.snapshot.package(name);
        if found.is_none() {
            let is_broken = self.load.invalid_packages.contains(name);
            let why = if is_broken {
                "is invalid; for the reasons, run kubectl olm catalog validate".to_owned()
            } else {
                let names: Vec<&str> = self.load.snapshot.packages().keys().take(NAMED + 1).map(|n| &**n).collect();
                match names.len() {
                    0 => "is not in the catalog, which has no packages".to_owned(),
                    n if n > NAMED => format!("is not in the catalog; its packages: {}, …", names[..NAMED].join(", ")),
                    _ => format!("is not in the catalog; its packages: {}", names.join(", ")),
                }
            };
            printer.talk(format_args!("package {name:?} {why}"));
        }
        found
    }
}

/// How many errors of a catalog or a bundle are printed.
const PRINTED: usize = 20;

/// Returns all errors among findings as one; if there are many, the first ones and the number of the others.
pub(super) fn all_refused(findings: &[Finding]) -> Option<CliError> {
    let errors = || findings.iter().filter(|finding| finding.severity == Severity::Error);
    let others = errors().count().saturating_sub(PRINTED);
    let more = (others > 0).then(|| {
        CliError::input(format!("there are {others} more errors")).hint("kubectl olm catalog validate prints all")
    });
    CliError::all(errors().take(PRINTED).map(CliError::from).chain(more))
}

struct Reader<'a> {
    items: Vec<Item>,
    held: Held,
    images: &'a image::Options,
}

impl Reader<'_> {
    fn take(&mut self, named: &Ref) -> Result<(), CliError> {
        let refuse = |e: io::Error| CliError::new(ErrorKind::Io, format!("cannot read: {e}")).at(named);
        match named {
            Ref::Directory(path) => self.items.extend(dir::items(path)?),
            Ref::File(path) => {
                let mut file = Disk::open(path).map_err(refuse)?;
                let mut head = Vec::new();
                file.by_ref().take(HEAD).read_to_end(&mut head).map_err(refuse)?;
                match What::detect(&head) {
                    What::Blobs => self.items.push(Item::File(named.to_string(), path.clone())),
                    what => self.stream(named, what, Cursor::new(head).chain(file))?,
                }
            }
            Ref::Stdin => {
                let mut stdin = io::stdin();
                let mut head = Vec::new();
                stdin.by_ref().take(HEAD).read_to_end(&mut head).map_err(refuse)?;
                self.stream(named, What::detect(&head), Cursor::new(head).chain(stdin))?;
            }
            Ref::Layout(path) => self.image(&Location::Layout { path: path.clone(), name: None }, "")?,
            Ref::Image(reference) => {
                let location: Location =
                    reference.parse().map_err(|error: image::Error| unread_image(error.into(), reference))?;
                self.image(&location, reference)?;
            }
            Ref::CatalogSource(source) => match catalog_sources::read(source, self.images)? {
                Fetched::Snapshot(snapshot) => self.snapshot(named, &snapshot)?,
                Fetched::Image(image) => self.content(&image.0, "", image.1)?,
            },
            Ref::Address(address) => {
                let read = block_on(async { Ok::<_, CliError>(fetch_catalog::dial(address).await?) });
                self.snapshot(named, &*read?)?;
            }
        }
        Ok(())
    }

    fn image(&mut self, location: &Location, reference: &str) -> Result<(), CliError> {
        let content = image::pull_blocking(location, Requested::Any, self.images)
            .map_err(|error| unread_image(error.into(), reference))?;
        self.content(location, reference, content)
    }

    fn snapshot(&mut self, named: &Ref, snapshot: &Snapshot) -> Result<(), CliError> {
        let blobs = snapshot.blobs().map_err(|e| CliError::input(e).at(named))?;
        self.items.push(Item::Parsed(Parsed::metas(&named.to_string(), blobs)));
        Ok(())
    }

    /// Adds the content of an image; `reference` is its name as given by the user.
    fn content(&mut self, location: &Location, reference: &str, content: Content) -> Result<(), CliError> {
        let shown = location.to_string();
        match content.kind {
            Kind::Catalog => self.items.extend(dir::content_items(&content.root, Path::new(&shown))?),
            Kind::Bundle => self.items.push(Item::Parsed(match bundle(location, reference, &content) {
                Ok((bundle, blob)) => Parsed::metas(&shown, vec![Meta::new(blob)]).in_channels_of(&bundle),
                Err(findings) => Parsed::findings(findings),
            })),
        }
        self.items.extend(registry::image::left_out(location, &content).map(|f| Item::Parsed(Parsed::finding(f))));
        self.held.images.push(content);
        Ok(())
    }

    fn stream(&mut self, named: &Ref, what: What, mut from: impl Read + 'static) -> Result<(), CliError> {
        let refuse = |e: io::Error| CliError::new(ErrorKind::Io, format!("cannot read: {e}")).at(named);
        match what {
            What::Blobs => self.items.push(Item::Stream(named.to_string(), Box::new(from))),
            What::Template => {
                let mut bytes = Vec::new();
                from.by_ref().take(TEMPLATE + 1).read_to_end(&mut bytes).map_err(refuse)?;
                if bytes.len() as u64 > TEMPLATE {
                    let error = CliError::input(format!("the template has more than {TEMPLATE} bytes")).at(named);
                    return Err(error.hint("refer to bundles by their images instead of including their blobs"));
                }
                let rendered = Template::read(&named.to_string(), &bytes, None)
                    .and_then(|t| t.render(&mut |image| pull(image, self.images)));
                let blobs = rendered.map_err(|finding| CliError::from(&finding))?;
                self.items.push(Item::Parsed(Parsed::metas(&named.to_string(), blobs)));
            }
            What::Tar => self.unpack(named, from)?,
            What::GzippedTar => self.unpack(named, MultiGzDecoder::new(from))?,
            What::ZstdTar => {
                let tar = image::zstd(BufReader::new(from)).map_err(refuse)?;
                self.unpack(named, tar)?;
            }
        }
        Ok(())
    }

    fn unpack(&mut self, named: &Ref, from: impl Read) -> Result<(), CliError> {
        let refuse = |e: io::Error| CliError::input(format!("cannot unpack: {e}")).at(named);
        let folder = tempfile::tempdir().map_err(refuse)?;
        let mut archive = tar::Archive::new(Bounded { from, left: CATALOG_BYTES });
        archive.set_preserve_permissions(false);
        archive.set_preserve_mtime(false);
        // Entries with paths outside the folder are not written.
        archive.unpack(folder.path()).map_err(refuse)?;
        self.items.extend(dir::content_items(folder.path(), Path::new(&named.to_string()))?);
        self.held.unpacked.push(folder);
        Ok(())
    }
}

/// A reader that fails on archives larger than the limit of catalogs.
struct Bounded<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!("it has more than {CATALOG_BYTES} bytes; unpack it, and specify the directory"))
        })?;
        Ok(read)
    }
}

/// Returns the bundle in an image, and its blob in opm's format; `reference` is the name of the image as given by the user.
fn bundle(location: &Location, reference: &str, content: &Content) -> Result<(Bundle, Value), Vec<Finding>> {
    let shown = location.to_string();
    let files = registry::image::files(&content.root)
        .map_err(|e| vec![Finding::new("unreadable-file", e.to_string()).at(&shown, 0)])?
        .into_iter()
        .map(|file| olm_core::bundle::File::new(format!("{shown}/{}", file.path), file.bytes))
        .collect::<Vec<_>>();
    let reference = match location {
        Location::Registry(_) => reference.trim_start_matches("docker://"),
        // The registry that it will be pulled from is unknown.
        Location::Layout { .. } => "",
    };
    let bundle = Bundle::read_whole(&shown, &files)?;
    let blob = bundle.render().map_err(|finding| vec![finding])?.blob(reference);
    Ok((bundle, blob))
}

/// Returns the messages of findings, one in a line.
fn messages(findings: Vec<Finding>) -> String {
    findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("\n")
}

/// Returns the blobs of an image that a template names.
fn pull(image: &str, options: &image::Options) -> Result<Vec<Value>, String> {
    let told = |e: CliError| e.to_string();
    let location: Location = image.parse().map_err(|e: image::Error| e.to_string())?;
    let content = image::pull_blocking(&location, Requested::Any, options).map_err(|e| told(e.into()))?;
    if content.kind == Kind::Bundle {
        return bundle(&location, image, &content).map(|(_, blob)| vec![blob]).map_err(messages);
    }
    let items = dir::content_items(&content.root, Path::new(image)).map_err(|e| told(e.into()))?;
    let blobs = read::index(items).map_err(|e| told(e.into()))?;
    blobs.blobs(MigrationLevel::None).map(|blob| blob.map(|b| b.0).map_err(|finding| finding.message)).collect()
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Blobs,
    Template,
    Tar,
    GzippedTar,
    ZstdTar,
}

impl What {
    fn detect(head: &[u8]) -> Self {
        if head.starts_with(&[0x1f, 0x8b]) {
            Self::GzippedTar
        } else if head.starts_with(&image::ZSTD) {
            Self::ZstdTar
        } else if head.get(257..262) == Some(b"ustar") {
            Self::Tar
        } else if is_template(head) {
            Self::Template
        } else {
            Self::Blobs
        }
    }
}

/// Returns whether the text begins like a template. It may be truncated, so it is only parsed if complete.
fn is_template(head: &[u8]) -> bool {
    let schema = yaml::first(head).ok().and_then(|first| {
        let fields = first.as_object()?;
        let schema = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case("schema"))?.1;
        Some(schema.as_str()?.to_owned())
    });
    let in_lines = || {
        let text = String::from_utf8_lossy(head);
        let mut lines = text
            .lines()
            .filter_map(|l| l.get(..7).filter(|k| k.eq_ignore_ascii_case("schema:")).map(|_| l[7..].trim()));
        lines.next().map(|schema| schema.trim_matches(['"', '\'']).to_owned())
    };
    schema.or_else(in_lines).is_some_and(|schema| Template::is_schema(&schema))
}
