//! The content of a bundle, with the places of its parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Identity;
use super::rule::{self, Rule};
use crate::api::object::{self, list, text};
use crate::bundle::folder::{are_apart, folder};
use crate::bundle::synthesis::{self, KnownApis, MEDIA_TYPE, Manifest, Metadata, OLM_YAML};
use crate::bundle::{File, is_csv};
use crate::finding::{Finding, Severity};
use crate::yaml::{self, Document, Format};

/// The prefix of the keys in `metadata/annotations.yaml`.
pub(super) const PREFIX: &str = "operators.operatorframework.io.bundle.";
/// Maximum number of findings of one bundle.
const MOST_FINDINGS: usize = 2_000;
/// The directory of the manifests, unless the annotations name another one.
const MANIFESTS: &str = "manifests";
/// The directory of the metadata.
pub(super) const METADATA: &str = "metadata";
/// Number of repeated keys of a file that are reported.
const REPEATED: usize = 10;

/// The content of a bundle.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The directory or image, for messages.
    pub(super) path: String,
    /// The directory of the manifests within it.
    pub(super) manifests: String,
    /// The ClusterServiceVersion. Of a bundle of plain manifests it is the synthesized one, without a place.
    pub(super) csv: Option<Arc<Manifest>>,
    /// The first object of each file of the manifests, including the ClusterServiceVersion, by file name.
    pub(super) objects: Vec<Arc<Manifest>>,
    /// The file of `metadata/` with annotations.
    pub(super) annotations: Option<Arc<Manifest>>,
    /// The file of `metadata/` with dependencies.
    pub(super) dependencies: Option<Arc<Manifest>>,
    /// The file of `metadata/` with properties, of whatever type.
    pub(super) properties: Option<Arc<Manifest>>,
    /// Whether the manifests are plain (`k8s+v1`).
    pub(super) is_plain: bool,
    /// Whether there are files among the manifests and in `metadata/`.
    pub(super) has: (bool, bool),
    /// Whether objects could not be read, so that nothing follows from a missing one.
    pub(super) is_incomplete: bool,
    findings: Vec<Finding>,
}

impl Input {
    /// Reads the files of a bundle, and reports those that cannot be read. The metadata are in `PATH/metadata/`, the manifests in the
    /// directory that the annotations name; in `PATH/manifests/` if it has no files, as of images, where a label names the directory.
    pub(super) fn read(path: &str, files: &[File]) -> Self {
        let mut input = Self { path: path.to_owned(), ..Self::default() };
        let mut sorted: Vec<&File> = files.iter().collect();
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        let (mut plain, mut olm_yaml) = (Vec::new(), None);
        for file in &sorted {
            let Some(name) = within(path, METADATA, file) else { continue };
            input.has.1 = true;
            if format!("{METADATA}/{name}") == OLM_YAML {
                olm_yaml = Some((*file).clone());
            } else if !name.contains('/') && !name.starts_with('.') {
                input.add_metadata(file);
            }
        }
        let named = input.named_folder().filter(|named| sorted.iter().any(|file| within(path, named, file).is_some()));
        let manifests = named.unwrap_or(MANIFESTS).to_owned();
        input.manifests = manifests;
        for file in sorted {
            let Some(name) = within(path, &input.manifests, file) else { continue };
            input.has.0 = true;
            if name.contains('/') || name.starts_with('.') {
                input.unexpected(&file.path, name);
            } else {
                plain.push(file.clone());
            }
        }
        let has_csv = plain.iter().any(|file| memchr::memmem::find(&file.bytes, b"ClusterServiceVersion").is_some());
        if input.annotation("mediatype.v1") == Some(MEDIA_TYPE) || olm_yaml.is_some() && !has_csv {
            input.add_plain(&plain, olm_yaml.as_ref());
        } else {
            for file in &plain {
                input.add_manifest(file);
            }
        }
        input
    }

    /// Returns the directory of the manifests that the annotations name, if it is one of the bundle.
    pub(super) fn named_folder(&self) -> Option<&str> {
        folder(self.annotation("manifests.v1")?).filter(|named| are_apart(named, METADATA))
    }

    fn unexpected(&mut self, file: &str, name: &str) {
        let message = match name.split_once('/') {
            Some((folder, _)) => {
                let folder = format!("{}{folder}", &file[..file.len() - name.len()]);
                if self.findings.iter().any(|f| f.file == folder) {
                    return;
                }
                self.add(rule::UNEXPECTED_FILE.finding("bundle manifests dir contains directory").at(&folder, 0));
                return;
            }
            None => "bundle manifests dir has hidden file",
        };
        self.add(rule::UNEXPECTED_FILE.finding(message).at(file, 0));
    }

    /// Reads the first document of a file; reports further ones, and keys that occur twice.
    fn first(&mut self, file: &File) -> Option<Arc<Manifest>> {
        let unreadable = |e: yaml::Error| {
            let found = rule::UNREADABLE_FILE.finding(e.message).at(&file.path, e.line);
            found.hint(e.hint.unwrap_or_default())
        };
        let documents = match yaml::documents(&file.bytes) {
            Ok(documents) => documents,
            Err(error) => {
                self.add(unreadable(error));
                self.is_incomplete = true;
                return None;
            }
        };
        let empty = Document { line: 1, offset: 0, text: "", format: Format::Yaml };
        let (first, others) = documents.split_first().map_or((&empty, &[][..]), |(first, others)| (first, others));
        if let Some(second) = others.first() {
            let message = format!("only the first of {} documents is read", documents.len());
            self.add(rule::LATER_DOCUMENTS.finding(message).at(&file.path, second.line));
        }
        match first.parse() {
            Ok((value, repeated)) => {
                self.repeated(file, first, &repeated);
                Some(Arc::new(Manifest::new(value, &file.path, *first)))
            }
            Err(error) => {
                self.add(unreadable(error));
                self.is_incomplete = true;
                None
            }
        }
    }

    fn repeated(&mut self, file: &File, document: &Document<'_>, keys: &[String]) {
        for key in keys.iter().take(REPEATED) {
            let message = format!("the key {key:?} occurs more than once in a map");
            self.add(rule::REPEATED_KEY.finding(message).at(&file.path, document.line));
        }
    }

    /// Reports the keys of all documents of a file that occur twice. What cannot be read is reported by the synthesis.
    fn repeated_of_all(&mut self, file: &File) {
        for document in yaml::documents(&file.bytes).unwrap_or_default() {
            if self.findings.len() >= MOST_FINDINGS {
                return;
            }
            if let Ok((_, keys)) = document.parse() {
                self.repeated(file, &document, &keys);
            }
        }
    }

    fn add_manifest(&mut self, file: &File) {
        let Some(manifest) = self.first(file) else { return };
        let problem = match (&manifest.object, object::kind(&manifest.object)) {
            (Value::Null, _) => "the file is empty",
            (Value::Object(_), "") => "the object has no kind",
            (Value::Object(_), _) => {
                if is_csv(&manifest.object) {
                    if let Some(first) = &self.csv {
                        let message = format!("invalid bundle: contains multiple CSVs; {} is used", first.file);
                        self.report(&rule::SEVERAL_CSVS, &manifest, &["kind"], message);
                        return;
                    }
                    self.csv = Some(manifest.clone());
                }
                self.objects.push(manifest);
                return;
            }
            _ => "the file is not a map",
        };
        self.is_incomplete = true;
        self.add(rule::NO_OBJECT.finding(problem).at(&manifest.file, manifest.line));
    }

    /// Reads plain manifests, and the ClusterServiceVersion that they become.
    fn add_plain(&mut self, files: &[File], olm_yaml: Option<&File>) {
        self.is_plain = true;
        files.iter().chain(olm_yaml).for_each(|file| self.repeated_of_all(file));
        let (manifests, findings) = synthesis::read_manifests(files);
        let made = synthesis::synthesize(
            &manifests,
            &Metadata::read(olm_yaml),
            &KnownApis::default(),
            synthesis::Format::Plain,
        );
        findings.into_iter().chain(made.findings.iter().cloned()).for_each(|finding| self.add(finding));
        let place = olm_yaml.map_or(self.path.as_str(), |file| file.path.as_str()).to_owned();
        let nowhere = Document { line: 0, offset: 0, text: "", format: Format::Yaml };
        let key = |object: &Value| {
            (object::gvk(object), object::namespace(object).to_owned(), object::name(object).to_owned())
        };
        let sources: BTreeMap<_, _> = manifests.iter().map(|manifest| (key(&manifest.object), manifest)).collect();
        for object in made.objects {
            self.objects.push(Arc::new(match sources.get(&key(&object)) {
                Some(manifest) => {
                    let mut changed = (*manifest).clone();
                    changed.object = object;
                    changed
                }
                None => Manifest::new(object, &place, nowhere),
            }));
        }
        let csv = Arc::new(Manifest::new(made.csv, &place, nowhere));
        self.objects.push(csv.clone());
        self.csv = Some(csv);
    }

    fn add_metadata(&mut self, file: &File) {
        let Some(manifest) = self.first(file) else { return };
        let is_filled = |key: &str| match manifest.object.get(key) {
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            _ => false,
        };
        if self.annotations.is_none() && is_filled("annotations") {
            self.annotations = Some(manifest.clone());
        }
        if self.dependencies.is_none() && is_filled("dependencies") {
            self.dependencies = Some(manifest.clone());
        }
        let has_properties = match manifest.object.get("properties") {
            None | Some(Value::Null) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        };
        if self.properties.is_none() && has_properties {
            self.properties = Some(manifest);
        }
    }

    /// Returns an annotation of the bundle, by the part of its key after the common prefix.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = self.annotations.as_ref()?.object.get("annotations")?;
        annotations.get(format!("{PREFIX}{key}"))?.as_str()
    }

    /// Returns the package in the annotations; empty when none.
    pub(super) fn package(&self) -> &str {
        self.annotation("package.v1").unwrap_or_default()
    }

    /// Returns the channels in the annotations.
    pub(super) fn channels(&self) -> Vec<&str> {
        let channels = self.annotation("channels.v1").unwrap_or_default().split(',');
        channels.map(str::trim).filter(|channel| !channel.is_empty()).collect()
    }

    /// Returns the ClusterServiceVersion; `null` if there is none.
    fn csv(&self) -> &Value {
        self.csv.as_ref().map_or(&Value::Null, |csv| &csv.object)
    }

    /// Returns what identifies the bundle.
    pub(super) fn identity(&self) -> Identity {
        let of = |path: &[&str]| text(self.csv(), path).to_owned();
        Identity {
            name: object::name(self.csv()).to_owned(),
            package: self.package().to_owned(),
            version: of(&["spec", "version"]),
            replaces: of(&["spec", "replaces"]),
        }
    }

    /// Returns the CustomResourceDefinitions.
    pub(super) fn crds(&self) -> impl Iterator<Item = &Arc<Manifest>> {
        self.objects.iter().filter(|manifest| object::kind(&manifest.object) == "CustomResourceDefinition")
    }

    /// Reports a finding, unless there are too many.
    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        }
    }

    /// Reports a finding about a part of an object.
    pub(super) fn report(&mut self, rule: &Rule, manifest: &Manifest, path: &[&str], message: impl Into<String>) {
        self.report_as(rule.severity, rule, manifest, path, message);
    }

    /// Reports a finding with another severity than that of its rule.
    pub(super) fn report_as(
        &mut self,
        severity: Severity,
        rule: &Rule,
        manifest: &Manifest,
        path: &[&str],
        message: impl Into<String>,
    ) {
        if self.findings.len() >= MOST_FINDINGS {
            return;
        }
        let found = Finding { severity, ..rule.finding(message) }.at(&manifest.file, manifest.line_of(path));
        let subject = if object::kind(&manifest.object).is_empty() { String::new() } else { manifest.subject() };
        self.findings.push(found.about(subject));
    }

    /// Returns the findings, sorted by place, without duplicates.
    pub(super) fn end(mut self) -> Vec<Finding> {
        let key = |f: &Finding| (f.file.clone(), f.line, f.severity, f.code, f.message.clone());
        self.findings.sort_by_cached_key(key);
        self.findings.dedup();
        self.findings
    }
}

/// Returns the path of a file within a directory of a bundle; `None` if it is not in the directory.
pub(super) fn within<'f>(path: &str, folder: &str, file: &'f File) -> Option<&'f str> {
    file.path.strip_prefix(path)?.trim_start_matches('/').strip_prefix(folder)?.strip_prefix('/')
}

/// Returns the directory of the manifests that the metadata of a bundle name, for reading its files: `manifests` if they name none, or none
/// of the bundle.
pub fn manifests_folder(path: &str, metadata: &[File]) -> String {
    Input::read(path, metadata).named_folder().unwrap_or(MANIFESTS).to_owned()
}

/// Returns the items of a list of strings.
pub(super) fn texts<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    list(object, &[field]).iter().filter_map(Value::as_str)
}

/// Formats group, version and kind as Go does.
pub(super) fn gvk_text(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}, Kind={kind}")
}

/// Returns group, version and kind of an owned or required CustomResourceDefinition; the group is what follows the first dot of its
/// name, or the whole name.
pub(super) fn description_gvk(description: &Value) -> (&str, &str, &str) {
    let name = text(description, &["name"]);
    let group = name.split_once('.').map_or(name, |(_, group)| group);
    (group, text(description, &["version"]), text(description, &["kind"]))
}
