//! Decides into which file each document is written: next to related documents, or into a new file when those have one
//! each.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::super::CatalogIndex;
use super::super::blob::{ChannelEntry, Place};
use super::super::index::{Located, PackageBlobs};
use super::super::meta::Meta;
use super::edit::{self, Edit};
use super::{Package, Request, package_blob};
use crate::api::object::text;
use crate::finding::Finding;
use crate::yaml::{self, Format};

/// The changes of a file.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// Path, as in the catalog's findings.
    pub path: String,
    /// Format of a new file.
    format: Format,
    /// Edited documents, by their offset.
    edits: BTreeMap<usize, Edits>,
    /// New documents, by the end of the document that they follow; [`usize::MAX`] is the end of the file.
    documents: BTreeMap<usize, Vec<Value>>,
}

#[derive(Clone, Debug)]
struct Edits {
    range: Range<usize>,
    format: Format,
    list: Vec<Edit>,
    /// The edited object, for messages.
    subject: String,
    line: usize,
}

impl FileChange {
    fn new(path: &str, format: Format) -> Self {
        Self { path: path.to_owned(), format, edits: BTreeMap::new(), documents: BTreeMap::new() }
    }

    /// Returns whether the change writes that bundle.
    pub(super) fn has(&self, package: &str, bundle: &str) -> bool {
        let is_it = |v: &Value| {
            text(v, &["schema"]) == "olm.bundle" && text(v, &["package"]) == package && text(v, &["name"]) == bundle
        };
        self.documents.values().flatten().any(is_it)
    }

    /// Returns the new text of a file, given its current text; `None` for a new file.
    ///
    /// # Errors
    /// The text is not the one that the catalog was read from, or its form does not allow an edit in place.
    pub fn apply(&self, old: Option<&str>) -> Result<String, Finding> {
        let old = old.unwrap_or_default();
        let mut replacements: BTreeMap<(usize, usize), (usize, String)> = BTreeMap::new();
        for (start, Edits { range, format, list, subject, line }) in &self.edits {
            let Some(document) = old.get(range.clone()) else { return Err(self.moved()) };
            let changed = edit::edited(document, *format, list).ok_or_else(|| {
                Finding::new("cannot-edit", "the form of the text does not allow an edit in place")
                    .at(&self.path, *line)
                    .about(subject.clone())
                    .hint("write the entries as a list of plain objects without anchors and tags")
            })?;
            replacements.insert((*start, 1), (range.end, changed));
        }
        for (end, blobs) in &self.documents {
            let at = if *end == usize::MAX { old.len() } else { *end };
            let Some((before, behind)) = old.split_at_checked(at) else { return Err(self.moved()) };
            let is_between = match Format::detect(before.as_bytes()) {
                Some(Format::Json) => before.trim_end().ends_with('}'),
                _ => behind.is_empty() || behind.starts_with("---"),
            };
            if !is_between {
                return Err(self.moved());
            }
            let written = self.write(before, blobs)?;
            replacements.insert((at, 0), (at, written));
        }
        let (mut new, mut done) = (String::with_capacity(old.len()), 0);
        for ((start, _), (end, text)) in replacements {
            new.push_str(old.get(done..start).ok_or_else(|| self.moved())?);
            new.push_str(&text);
            done = end;
        }
        new.push_str(&old[done..]);
        Ok(new)
    }

    fn moved(&self) -> Finding {
        Finding::new("changed", "the file has changed since it was read").at(&self.path, 0).hint("try again")
    }

    /// Adds new documents after a part of a text, in its style.
    fn write(&self, before: &str, blobs: &[Value]) -> Result<String, Finding> {
        let is_json = Format::detect(before.as_bytes()).unwrap_or(self.format) == Format::Json;
        let last = before.trim_end().lines().next_back().unwrap_or_default();
        let is_compact = last.starts_with('{') && last.ends_with('}');
        let ends_line = before.is_empty() || before.ends_with('\n');
        // The keys of YAML that opm wrote are sorted; YAML that a user wrote, and JSON, begin with the schema.
        let document = before.rsplit("\n---").next().unwrap_or_default().lines();
        let first =
            document.map(str::trim).find(|l| !l.is_empty() && !l.starts_with(['#', '-', '%'])).unwrap_or("schema");
        let is_sorted = !first.trim_start_matches(['{', '"', ' ']).starts_with("schema");
        let mut written = String::new();
        if !is_json && !ends_line {
            written.push('\n');
        }
        for blob in blobs {
            let meta = Meta(blob.clone());
            let text = match (is_json, is_compact, is_sorted) {
                (true, true, _) => serde_json::to_string(&meta).map_err(|e| e.to_string()),
                (true, false, _) => pretty(&meta),
                (false, _, true) => serde_json::to_value(&meta).map_err(|e| e.to_string()).and_then(|v| yaml(&v)),
                (false, _, false) => yaml(&meta),
            };
            let text = text.map_err(|e| Finding::new("internal", e).at(&self.path, 0))?;
            written.push_str(&match (is_json, ends_line) {
                (true, true) => format!("{text}\n"),
                (true, false) => format!("\n{text}"),
                (false, _) => format!("---\n{text}"),
            });
        }
        Ok(if before.contains("\r\n") { written.replace('\n', "\r\n") } else { written })
    }
}

fn yaml(value: &impl serde::Serialize) -> Result<String, String> {
    yaml::to_string(value).map_err(|e| e.to_string())
}

/// Renders JSON with opm's indentation.
fn pretty(value: &impl serde::Serialize) -> Result<String, String> {
    let mut text = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, format);
    value.serialize(&mut serializer).map_err(|e| e.to_string())?;
    String::from_utf8(text).map_err(|e| e.to_string())
}

/// The changes of all files while they are computed.
struct Files<'a> {
    changes: BTreeMap<String, FileChange>,
    /// Number of documents in each file of the catalog.
    counts: BTreeMap<&'a str, usize>,
    format: Format,
}

impl CatalogIndex {
    /// Returns the changes of files that the changes of packages require.
    pub(super) fn file_changes(&self, packages: &[Package<'_>], request: &Request) -> Result<Vec<FileChange>, Finding> {
        let places: Vec<(&Place, Option<Format>)> = self.packages.values().flat_map(PackageBlobs::places).collect();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, _) in &places {
            *counts.entry(&*place.file).or_default() += 1;
        }
        let mut formats = places.iter().filter_map(|(_, format)| *format).peekable();
        let is_json = formats.peek().is_some() && formats.all(|f| f == Format::Json);
        let format = if is_json { Format::Json } else { Format::Yaml };
        let mut files = Files { changes: BTreeMap::new(), counts, format };
        for package in packages {
            files.package(package, request)?;
        }
        Ok(files.changes.into_values().collect())
    }
}

impl PackageBlobs {
    fn places(&self) -> impl Iterator<Item = (&Place, Option<Format>)> {
        fn located<T>(list: &[Located<T>]) -> impl Iterator<Item = (&Place, Option<Format>)> {
            list.iter().map(|of| (&of.place, of.source.span().map(|span| span.format())))
        }
        let known = located(&self.packages).chain(located(&self.channels)).chain(located(&self.bundles));
        known.chain(located(&self.deprecations)).chain(located(&self.others))
    }
}

impl Files<'_> {
    fn package(&mut self, package: &Package<'_>, request: &Request) -> Result<(), Finding> {
        if let Some((of, default)) =
            package.blobs.and_then(|b| b.packages.first()).zip(package.default_channel.as_ref())
        {
            let subject = format!("package {}", crate::go_format::quote(&package.name));
            self.edit(of, vec![Edit::DefaultChannel(default.clone())], subject)?;
        }
        let mut documents = Vec::new();
        for (name, channel) in package.channels.iter().filter(|(_, c)| !c.new.is_empty()) {
            let Some(of) = channel.known else {
                let entries: Vec<Value> = channel.entries.iter().map(ChannelEntry::to_value).collect();
                let blob = json!({"schema": "olm.channel", "package": package.name, "name": name, "entries": entries});
                documents.push(blob);
                continue;
            };
            let quoted = crate::go_format::quote;
            self.edit(
                of,
                channel.edits.clone(),
                format!("channel {} of package {}", quoted(name), quoted(&package.name)),
            )?;
        }
        let bundles = package.new.iter().map(|new| {
            let mut blob = new.blob.clone();
            request.level.migrate(&mut blob);
            blob
        });
        let Some(blobs) = package.blobs else {
            let path = format!("{}/{}/catalog.{}", request.root.trim_end_matches('/'), package.name, self.extension());
            let all = std::iter::once(package_blob(package)).chain(documents).chain(bundles);
            self.change(&path).documents.entry(usize::MAX).or_default().extend(all);
            return Ok(());
        };
        for blob in documents {
            let last = blobs.channels.iter().rev().find(|of| of.source.span().is_some());
            let old = last.map(|of| vec![of.blob.name.clone()]).unwrap_or_default();
            let new = vec![text(&blob, &["name"]).to_owned()];
            let at = last.map(|of| (&of.place, &of.source));
            self.beside(at.or_else(|| of_package(blobs)), &old, &new, blob)?;
        }
        for (blob, new) in bundles.zip(&package.new) {
            let last = blobs.bundles.iter().rev().find(|of| of.source.span().is_some());
            let version = |of: &Located<super::BundleBlob>| super::blob::version(&of.blob.properties).to_owned();
            let old = last.map(|of| vec![of.blob.name.clone(), version(of)]).unwrap_or_default();
            let at = last.map(|of| (&of.place, &of.source));
            self.beside(at.or_else(|| of_package(blobs)), &old, &[new.name.clone(), new.version.clone()], blob)?;
        }
        Ok(())
    }

    fn change(&mut self, path: &str) -> &mut FileChange {
        let format = self.format;
        self.changes.entry(path.to_owned()).or_insert_with(|| FileChange::new(path, format))
    }

    fn extension(&self) -> &'static str {
        if self.format == Format::Json { "json" } else { "yaml" }
    }

    fn edit<T>(&mut self, of: &Located<T>, list: Vec<Edit>, subject: String) -> Result<(), Finding> {
        let span = of.source.span().ok_or_else(|| no_place(&of.place.file))?;
        let edits = Edits { range: span.range(), format: span.format(), list, subject, line: of.place.line };
        self.change(&of.place.file).edits.insert(edits.range.start, edits);
        Ok(())
    }

    /// Adds a document after another one. If that one has a file of its own that is named after it, the new one gets a file
    /// as well.
    fn beside(
        &mut self,
        at: Option<(&Place, &super::super::blob::Source)>,
        old: &[String],
        new: &[String],
        blob: Value,
    ) -> Result<(), Finding> {
        let found = at.and_then(|(place, source)| Some((place, source.span()?)));
        let Some((place, span)) = found else { return Err(no_place(at.map_or("", |(place, _)| &place.file))) };
        let (folder, name) = place.file.rsplit_once('/').map_or(("", &*place.file), |(folder, name)| (folder, name));
        let named = old.iter().zip(new).find(|(old, _)| !old.is_empty() && name.contains(old.as_str()));
        if let Some((old, new)) = named.filter(|_| self.counts.get(&*place.file) == Some(&1)) {
            let name = name.replacen(old.as_str(), new, 1);
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let change = self.change(&path);
            change.format = span.format();
            change.documents.entry(usize::MAX).or_default().push(blob);
        } else {
            self.change(&place.file).documents.entry(span.range().end).or_default().push(blob);
        }
        Ok(())
    }
}

fn of_package(blobs: &PackageBlobs) -> Option<(&Place, &super::super::blob::Source)> {
    blobs.packages.first().map(|of| (&of.place, &of.source))
}

fn no_place(file: &str) -> Finding {
    Finding::new("no-place", "the package is not in a file that can be edited")
        .at(file, 0)
        .hint("render the package to a file first")
}
