//! Reads a bundle directory's files into a [`Bundle`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::synthesis::{self, Format, KnownApis, MEDIA_TYPE, Metadata, OLM_YAML, read_manifests};
use super::{Bundle, BundleContent, File, Property, is_csv};
use crate::api::object::{Gvk, entries, list, text};
use crate::finding::{Finding, Severity};
use crate::yaml;

/// The files of a `k8s+v1` bundle.
#[derive(Default)]
struct PlainFiles {
    manifests: Vec<File>,
    olm_yaml: Option<File>,
}

impl PlainFiles {
    fn add(&mut self, within: &str, file: &File) {
        if within == OLM_YAML {
            self.olm_yaml = Some(file.clone());
        } else if within.starts_with("manifests/") {
            self.manifests.push(file.clone());
        }
    }
}

/// Returns the first of several errors, with the number of the others.
fn first_of(errors: Vec<Finding>) -> Finding {
    let others = errors.len().saturating_sub(1);
    let first = errors.into_iter().next().unwrap_or_default();
    match others {
        0 => first,
        _ => Finding { message: format!("{} (and {others} more errors)", first.message), ..first },
    }
}

impl Bundle {
    /// Reads a bundle from the files of its directory, whose path is a prefix of every file's path.
    ///
    /// As opm does: of `manifests/` the first document of each file directly in it, without dot-files; of `metadata/`,
    /// independent of file names, the first file with annotations, dependencies and properties. Of several CSVs the first
    /// one is used. A manifest that is not a Kubernetes object is skipped.
    ///
    /// # Errors
    /// The first problem that makes the bundle unusable: its ClusterServiceVersion or a required annotation is missing or invalid, or a
    /// file cannot be parsed.
    pub fn read(path: &str, files: &[File]) -> Result<Self, Finding> {
        Self::read_whole(path, files).map_err(first_of)
    }

    /// Does the same, and returns every error of plain manifests; of other bundles the first one.
    ///
    /// # Errors
    /// As [`Bundle::read`]. The list is not empty.
    pub fn read_whole(path: &str, files: &[File]) -> Result<Self, Vec<Finding>> {
        match Self::collect(path, files) {
            (_, errors) if errors.len() > 1 => Err(errors),
            (bundle, errors) => bundle.check(errors.into_iter().next()).map_err(|finding| vec![finding]),
        }
    }

    /// Returns the objects of a bundle to install, from the files of its image: `manifests/NAME`, `metadata/NAME`.
    ///
    /// Like OLM's unpacking this requires only a CSV; what else a catalog requires is not checked.
    pub(super) fn unpack(files: &[File]) -> Result<BundleContent, Finding> {
        let (bundle, errors) = Self::collect("", files);
        bundle.check_csv((!errors.is_empty()).then(|| first_of(errors)).as_ref())?;
        let content = BundleContent::in_order(&bundle.objects, &bundle.csv);
        Ok(BundleContent { is_plain: bundle.is_plain, ..content })
    }

    /// Reads as much of the bundle as possible. Also returns the error of the first unreadable file, or all errors of plain manifests.
    fn collect(path: &str, files: &[File]) -> (Self, Vec<Finding>) {
        let mut bundle = Self { path: path.to_owned(), ..Self::default() };
        let mut unreadable = None;
        let mut plain = PlainFiles::default();
        let mut sorted: Vec<&File> = files.iter().collect();
        sorted.sort_by(|a, b| a.path.cmp(&b.path));
        for file in sorted {
            let Some(within) = file.path.strip_prefix(path).map(|p| p.trim_start_matches('/')) else { continue };
            let Some((folder, name)) = within.split_once('/') else { continue };
            if name.contains('/') || name.starts_with('.') {
                continue;
            }
            plain.add(within, file);
            match (folder, yaml::first(&file.bytes)) {
                ("metadata", _) if within == OLM_YAML => {}
                ("manifests", Ok(object)) => bundle.add_object(object),
                ("metadata", Ok(metadata)) => bundle.add_metadata(&metadata),
                ("manifests" | "metadata", Err(e)) => {
                    unreadable.get_or_insert_with(|| Finding::new("unreadable-file", e.message).at(&file.path, e.line));
                }
                _ => {}
            }
        }
        if bundle.csv.is_null() && (plain.olm_yaml.is_some() || bundle.annotation("mediatype.v1") == MEDIA_TYPE) {
            let errors = bundle.synthesize(&plain);
            return (bundle, errors);
        }
        (bundle, unreadable.into_iter().collect())
    }

    /// Takes the objects from plain manifests. Returns the errors; with any the bundle has no objects.
    fn synthesize(&mut self, plain: &PlainFiles) -> Vec<Finding> {
        let (manifests, mut findings) = read_manifests(&plain.manifests);
        let synthesis = synthesis::synthesize(
            &manifests,
            &Metadata::read(plain.olm_yaml.as_ref()),
            &KnownApis::default(),
            Format::Plain,
        );
        findings.extend(synthesis.findings);
        findings.retain(|finding| finding.severity == Severity::Error);
        if !findings.is_empty() {
            self.objects.clear();
            return findings;
        }
        self.objects = [vec![synthesis.csv.clone()], synthesis.objects].concat();
        self.csv = synthesis.csv;
        self.is_plain = true;
        Vec::new()
    }

    fn add_object(&mut self, object: Value) {
        if text(&object, &["kind"]).is_empty() {
            return;
        }
        if is_csv(&object) {
            if !self.csv.is_null() {
                return;
            }
            self.csv = object.clone();
        }
        self.objects.push(object);
    }

    fn add_metadata(&mut self, metadata: &Value) {
        if self.annotations.is_empty() {
            self.annotations = entries(metadata, &["annotations"]).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        }
        if self.dependencies.is_empty() {
            self.dependencies = Property::list(metadata, "dependencies");
        }
        if self.properties.is_empty() {
            self.properties = Property::list(metadata, "properties");
        }
    }

    fn check_csv(&self, unreadable: Option<&Finding>) -> Result<(), Finding> {
        if !self.csv.is_null() {
            return Ok(());
        }
        // An unreadable file is the likely cause.
        Err(unreadable.cloned().unwrap_or_else(|| {
            Finding::new("no-csv", "no csv in bundle".to_owned())
                .at(&self.path, 0)
                .hint("add a ClusterServiceVersion to the bundle's manifests directory")
        }))
    }

    fn check(self, unreadable: Option<Finding>) -> Result<Self, Finding> {
        let refused = |code, message: String| Finding::new(code, message).at(&self.path, 0);
        self.check_csv(unreadable.as_ref())?;
        if self.annotations.is_empty() {
            return Err(unreadable.unwrap_or_else(|| {
                refused("no-annotations", "Could not find annotations file".to_owned())
                    .hint("add metadata/annotations.yaml with the package and its channels")
            }));
        }
        for crd in self.objects.iter().filter(|o| text(o, &["kind"]) == "CustomResourceDefinition") {
            let versions = crd.pointer("/spec/versions");
            if versions.is_some_and(|v| !v.is_array() && !v.is_null()) {
                return Err(refused("bad-crd", "spec.versions of the CRD is not a list".to_owned())
                    .about(format!("CustomResourceDefinition/{}", text(crd, &["metadata", "name"]))));
            }
        }
        let provided: BTreeSet<Gvk> = self.provided_apis().into_iter().collect();
        for owned in list(&self.csv, &["spec", "customresourcedefinitions", "owned"]) {
            let group = text(owned, &["name"]).split_once('.').map_or("", |(_, group)| group);
            if !provided.contains(&Gvk::new(group, text(owned, &["version"]), text(owned, &["kind"]))) {
                let name = text(owned, &["name"]);
                return Err(refused(
                    "missing-crd",
                    format!("the CSV owns {name} {}, but no CRD of the bundle has it", text(owned, &["version"])),
                )
                .about(format!("ClusterServiceVersion/{}", self.name()))
                .hint("add the CRD to manifests/, or correct the name, kind or version in the CSV"));
            }
        }
        Ok(self)
    }
}
