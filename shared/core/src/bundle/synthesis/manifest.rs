//! The objects of manifest files, each with its place in the text.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::api::object::{self, ObjectRef};
use crate::bundle::File;
use crate::finding::Finding;
use crate::yaml::outline::{self, Node};
use crate::yaml::{self, Document, Format, Step};

/// Maximum number of objects in a bundle. The largest published bundles have fewer than two hundred.
const MOST_OBJECTS: usize = 5_000;

/// A document of a manifest file.
#[derive(Debug)]
struct Source {
    text: String,
    line: usize,
    format: Format,
    outline: OnceLock<Option<Node>>,
}

impl Source {
    /// Returns the line of the file on which a part of the document begins.
    fn line_of(&self, path: &[Step]) -> usize {
        let outline = self.outline.get_or_init(|| outline::outline(&self.text));
        let document = Document { line: self.line, offset: 0, text: &self.text, format: self.format };
        outline.as_ref().map_or(self.line, |outline| document.line_in(outline, path))
    }
}

/// An object of a manifest file.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The object.
    pub object: Value,
    /// File, as people should see it in messages.
    pub file: String,
    /// Line of the file on which the object begins, from 1.
    pub line: usize,
    source: Arc<Source>,
    /// The way to the object within a List.
    path: Vec<Step>,
}

impl Manifest {
    /// Creates a manifest of a document of a file. `object` is the content of the document.
    pub fn new(object: Value, file: &str, document: Document<'_>) -> Self {
        let Document { line, text, format, .. } = document;
        let source = Source { text: text.to_owned(), line, format, outline: OnceLock::new() };
        Self { object, file: file.to_owned(), line, source: Arc::new(source), path: Vec::new() }
    }

    /// Returns whether the object is of that kind of that API group, of whatever version.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        object::kind(&self.object) == kind && object::gvk(&self.object).group == group
    }

    /// Returns the kind of the object.
    pub fn kind(&self) -> &str {
        object::kind(&self.object)
    }

    /// Returns the name of the object.
    pub fn name(&self) -> &str {
        object::name(&self.object)
    }

    /// Returns the text of the object with its comments, if it is a YAML document of its own.
    pub fn text(&self) -> Option<&str> {
        (self.path.is_empty() && self.source.format == Format::Yaml).then_some(&self.source.text)
    }

    /// Returns the object as findings name it, `Kind/namespace/name`.
    pub fn subject(&self) -> String {
        ObjectRef::from_object(&self.object).to_string()
    }

    /// Returns the line of a part of the object; that of the part around it when the part does not exist.
    pub fn line_of(&self, path: &[&str]) -> usize {
        let steps = path.iter().map(|part| match part.parse() {
            Ok(number) => Step::Item(number),
            Err(_) => Step::Field((*part).to_owned()),
        });
        let whole: Vec<Step> = self.path.iter().cloned().chain(steps).collect();
        self.source.line_of(&whole)
    }
}

/// Reads all objects of manifest files, in the order of the files; a List is its items. The findings name documents that are not
/// objects.
pub fn read(files: &[File]) -> (Vec<Manifest>, Vec<Finding>) {
    let (mut manifests, mut findings) = (Vec::new(), Vec::new());
    for file in files {
        let refuse = |error: yaml::Error| {
            Finding::new("unreadable-file", error.message)
                .at(&file.path, error.line)
                .hint(error.hint.unwrap_or_default())
        };
        let documents = match yaml::documents(&file.bytes) {
            Ok(documents) => documents,
            Err(error) => {
                findings.push(refuse(error));
                continue;
            }
        };
        for document in documents {
            match document.value() {
                Ok(Value::Null) => {}
                Ok(object) => {
                    flatten(Manifest::new(object, &file.path, document), &mut manifests, &mut findings);
                }
                Err(error) => findings.push(refuse(error)),
            }
            if manifests.len() > MOST_OBJECTS || findings.len() > MOST_OBJECTS {
                let finding =
                    Finding::new("too-many-objects", format!("the bundle has more than {MOST_OBJECTS} objects"));
                findings.push(finding.at(&file.path, document.line).hint("split the operator into several bundles"));
                return (manifests, findings);
            }
        }
    }
    (manifests, findings)
}

/// Adds an object, or the items of a List.
fn flatten(manifest: Manifest, manifests: &mut Vec<Manifest>, findings: &mut Vec<Finding>) {
    let kind = object::kind(&manifest.object);
    let is_list = kind.ends_with("List") && manifest.object.get("items").is_some_and(Value::is_array);
    if is_list && object::name(&manifest.object).is_empty() {
        let Manifest { mut object, file, source, path, .. } = manifest;
        let items = object.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        for (number, item) in items.into_iter().enumerate() {
            // The caller reports that there are too many.
            if manifests.len() > MOST_OBJECTS || findings.len() > MOST_OBJECTS {
                return;
            }
            let mut path = path.clone();
            path.extend([Step::Field("items".to_owned()), Step::Item(number)]);
            let line = source.line_of(&path);
            let inner = Manifest { object: item, file: file.clone(), line, source: source.clone(), path };
            // The budget of a document limits its depth, so this ends.
            flatten(inner, manifests, findings);
        }
        return;
    }
    let problem = match (object::text(&manifest.object, &["apiVersion"]), kind, object::name(&manifest.object)) {
        ("", ..) => "has no apiVersion",
        (_, "", _) => "has no kind",
        (.., "") => "has no metadata.name",
        _ => {
            manifests.push(manifest);
            return;
        }
    };
    findings.push(
        Finding::new("no-object", format!("the document {problem}"))
            .at(&manifest.file, manifest.line)
            .hint("every document of manifests/ must be one Kubernetes object"),
    );
}
