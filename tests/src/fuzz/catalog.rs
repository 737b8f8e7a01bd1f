//! Catalogs in all formats: blobs, bundle directories, templates, ConfigMaps.

use std::sync::Arc;

use olm_core::catalog::diff::Diff;
use olm_core::catalog::graph::{Graph, Lanes, Text};
use olm_core::catalog::{
    self, CatalogIndex, Chunk, File, Filter, Loaded, Loader, MigrationLevel, Parsed, Request, Snapshot, Stored,
    Template,
};
use olm_core::finding::Severity;
use olm_core::yaml::{self, Format};
use serde_json::{Value, json};

use super::parts::files;

/// The size of the pieces in which files are read.
const PIECE: usize = 97;
/// The prefix of files that are added to the catalog.
const NEW: &str = "new/";

/// Reads a catalog, and runs the operations of the commands on it.
///
/// # Panics
/// Reading it again gives a different result, or findings have no message.
pub(super) fn run(bytes: &[u8]) {
    let files = files(bytes, "catalog.yaml");
    let (new, files): (Vec<File>, Vec<File>) = files.into_iter().partition(|file| file.path.starts_with(NEW));
    let load = catalog::load(&files);
    check(&load);
    let again = catalog::load(&files);
    assert_eq!((&again.snapshot, &again.findings), (&load.snapshot, &load.findings));
    if let [file] = &files[..] {
        pieces(file, &load);
        template(file);
        config_map(file);
    }
    rendered(&files, &load);
    filtered(&files, &load);
    let added = catalog::index_files(&files).add(&catalog::index_files(&new), &Request::default());
    if let Err(findings) = added {
        assert!(!findings.is_empty());
    }
    let old = files.first().map(|file| catalog::load(std::slice::from_ref(file)).snapshot).unwrap_or_default();
    let diff = Diff::new(&old, &load.snapshot, None);
    assert!(serde_json::to_string(&diff).is_ok());
    let same = Diff::new(&load.snapshot, &load.snapshot, None);
    assert_eq!((&same.packages[..], &same.stranded[..]), (&[][..], &[][..]));
}

fn check(load: &Loaded) {
    let is_told = |f: &catalog::Loaded| f.findings.iter().all(|f| !f.code.is_empty() && !f.message.is_empty());
    assert!(is_told(load), "{:?}", load.findings);
    for package in load.snapshot.packages().values() {
        for channel in &package.channels {
            let graph = Graph::new(channel);
            for node in graph.nodes() {
                assert!(graph.walk(node.point()).hops.len() <= graph.nodes().len(), "the path from {}", node.name);
            }
            let lanes = Lanes::new(&graph, |_| true);
            assert_eq!(lanes.rows.len(), graph.nodes().len());
            let _ = Text { graph: &graph, lanes: &lanes }.to_string();
        }
    }
    for entry in load.snapshot.entries() {
        // Objects that cannot be read count as missing; reading them must not panic.
        let _ = load.snapshot.read_bundle(&entry.package, &entry.channel, &entry.name);
    }
}

/// Checks that reading the file in pieces gives the same catalog.
fn pieces(file: &File, load: &Loaded) {
    if !file.bytes.is_empty() && std::str::from_utf8(&file.bytes).is_ok() && file.path.contains('.') {
        let pieces = in_pieces(file, PIECE).load();
        assert_eq!(pieces.snapshot, load.snapshot);
        // How the rest of a damaged file is read depends on where it is divided.
        let is_damaged =
            |load: &Loaded| load.findings.iter().any(|f| ["unreadable-file", "not-an-object"].contains(&f.code));
        assert_eq!(is_damaged(&pieces), is_damaged(load));
        if !is_damaged(load) {
            assert_eq!(pieces.findings, load.findings);
        }
    }
}

fn in_pieces(file: &File, size: usize) -> CatalogIndex {
    let bytes = &file.bytes;
    let stored: Arc<dyn Stored> = Arc::new(bytes.to_vec());
    let mut loader = Loader::default();
    let (mut start, mut end, mut line) = (0, 0, 1);
    while start < bytes.len() {
        end = bytes.len().min(end + size);
        let is_end = end == bytes.len();
        let Some(format) = Format::detect(&bytes[start..end]) else {
            if is_end {
                break;
            }
            continue;
        };
        let cut = if is_end { end - start } else { yaml::whole(&bytes[start..end], format) };
        let piece = &bytes[start..start + cut];
        if cut > 0 {
            let path = &file.path;
            loader.add(Parsed::blobs(&Chunk { path, line, offset: start, bytes: piece, format, file: &stored }));
        }
        line += piece.split(|b| *b == b'\n').count() - 1;
        start += cut;
    }
    loader.finish()
}

/// Checks that a valid catalog is unchanged after it was rendered and read again.
fn rendered(files: &[File], load: &Loaded) {
    for level in [MigrationLevel::None, MigrationLevel::BundleObjectToCsvMetadata] {
        let index = catalog::index_files(files);
        let blobs: Vec<_> = index.blobs(level).filter_map(Result::ok).collect();
        let text: String = blobs.iter().filter_map(|blob| serde_json::to_string(blob).ok()).collect();
        if level == MigrationLevel::None && load.findings.is_empty() && load.invalid_packages.is_empty() {
            let again = catalog::load(&[File::new("again.json", text.as_bytes())]);
            assert!(again.findings.is_empty(), "{:?} in {text}", again.findings);
            same(&again.snapshot, &load.snapshot);
        }
    }
    if let Ok(blobs) = load.snapshot.blobs() {
        let text: String = blobs.iter().filter_map(|blob| serde_json::to_string(blob).ok()).collect();
        let again = catalog::load(&[File::new("again.json", text.as_bytes())]);
        assert!(again.findings.iter().all(|f| f.severity != Severity::Error), "{:?} in {text}", again.findings);
        assert_eq!(names(&again.snapshot), names(&load.snapshot), "{text}");
    }
}

fn same(a: &Snapshot, b: &Snapshot) {
    assert_eq!(a.packages(), b.packages());
}

fn names(snapshot: &Snapshot) -> Vec<(&str, &str, &str)> {
    snapshot.entries().map(|e| (e.package.as_str(), e.channel.as_str(), e.name.as_str())).collect()
}

/// Checks that a part of a valid catalog is a valid catalog.
fn filtered(files: &[File], load: &Loaded) {
    let Some(package) = load.snapshot.packages().values().next() else { return };
    let channel = package.channels.first().map(|c| c.name.clone());
    let version = package.entries().find_map(|e| e.version.as_ref().map(|v| format!(">={v}")));
    let versions = version.and_then(|range| olm_core::version::Range::parse(&range).ok());
    for filter in [
        Filter { packages: vec![package.name.clone()], closure: true, ..Filter::default() },
        Filter { channels: channel.into_iter().collect(), ..Filter::default() },
        Filter { versions, ..Filter::default() },
    ] {
        let mut index = catalog::index_files(files);
        index.filter(&filter);
        let filtered = index.load();
        if load.findings.is_empty() {
            let wrong = filtered.findings.iter().find(|f| f.severity == Severity::Error);
            assert!(wrong.is_none(), "{wrong:?} by {filter:?}");
        }
        check(&filtered);
    }
}

fn template(file: &File) {
    for kind in [None, Some(catalog::TemplateKind::Basic), Some(catalog::TemplateKind::Semver)] {
        let Ok(template) = Template::read(&file.path, &file.bytes, kind) else { continue };
        if let Ok(blobs) = template.render(&mut bundle_of) {
            for blob in blobs {
                assert!(serde_json::to_string(&blob).is_ok());
            }
        }
    }
}

/// Returns the content of the image `NAME:VERSION`.
fn bundle_of(image: &str) -> Result<Vec<Value>, String> {
    let (name, version) = image.rsplit_once(':').ok_or_else(|| format!("no image {image}"))?;
    let package = name.rsplit('/').next().unwrap_or_default();
    let property = json!({ "type": "olm.package", "value": { "packageName": package, "version": version } });
    Ok(vec![json!({
        "schema": "olm.bundle", "name": format!("{package}.v{version}"), "package": package, "image": image,
        "properties": [property],
    })])
}

fn config_map(file: &File) {
    let Ok(object) = yaml::first(&file.bytes) else { return };
    if let Ok((snapshot, _)) = catalog::config_map(&object) {
        check(&Loaded { snapshot, findings: Vec::new(), invalid_packages: std::collections::BTreeSet::default() });
    }
}
