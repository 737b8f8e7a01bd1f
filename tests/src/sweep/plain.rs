//! Operators that are published as plain manifests, and the bundles of their two versions.
//!
//! The first version has the published manifests and two further objects, which the second one lacks; the second one has other
//! images, other rules, and another further object.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use olm_core::api::object::{at, list, text};
use olm_core::bundle::File;
use olm_core::bundle::synthesis::{
    Format, KnownApis, Manifest, Metadata, OLM_YAML, Proposal, Synthesis, read_manifests, synthesize,
};
use olm_core::finding::{Finding, Severity};
use serde_json::{Map, Value, json};

use super::case::{CATALOG, Case, Target};
use super::catalog::Scope;
use crate::data::{documents, files, repository};

/// The versions that are installed one after the other.
pub const VERSIONS: [&str; 2] = ["1.0.0", "1.1.0"];
/// What authors of the projects would write into olm.yaml beside the fields that every project needs: a file for each.
const OLM_YAMLS: &str = "tests/sweep/olm-yaml";
/// The file of the objects by which the versions differ.
const ADDED: &str = "added";
/// The rule that the operator of the second version has in addition.
const ADDED_RULE: &str = r#"{"apiGroups":["discovery.k8s.io"],"resources":["endpointslices"],"verbs":["watch"]}"#;

/// The manifests of an operator.
pub struct Project {
    /// Its name.
    pub name: String,
    /// The codes of errors about manifests, which bundles do not contain.
    pub errors: BTreeSet<&'static str>,
    /// The manifests that bundles do not contain, as `Kind/namespace/name`.
    pub excluded: BTreeSet<String>,
    /// The format of its bundles.
    pub format: Format,
    /// The manifests of each of the versions.
    manifests: [Vec<Manifest>; VERSIONS.len()],
    olm_yaml: Value,
}

impl Project {
    /// Reads a folder of manifests. Manifests with errors are excluded, one after the other; APIs whose kinds are not known are
    /// listed as optional. `None` if nothing is left to install.
    pub fn read(folder: &Path, olm_yaml: Option<Value>) -> Result<Option<Self>> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let contents = files(folder)
            .into_iter()
            .map(|path| Ok(File::new(path.to_string_lossy(), fs::read(&path)?)))
            .collect::<Result<Vec<_>>>()?;
        let (mut manifests, unreadable) = read_manifests(&contents);
        let mut olm_yaml = match olm_yaml {
            Some(olm_yaml) => olm_yaml,
            None => Self::default_olm_yaml(&name)?,
        };
        let mut errors: BTreeSet<&str> = unreadable.iter().map(|finding| finding.code).collect();
        let synthesize_as = |format, manifests: &[Manifest], olm_yaml: &Value| {
            let file = File::new(OLM_YAML, olm_yaml.to_string().into_bytes());
            synthesize(manifests, &Metadata::read(Some(&file)), &KnownApis::default(), format)
        };
        let plain = synthesize_as(Format::Plain, &manifests, &olm_yaml);
        let unknown: BTreeSet<&str> =
            plain.findings.iter().filter(|f| f.code == "unknown-kind").filter_map(resource_of).collect();
        if !unknown.is_empty() {
            let api = |resource: &&str| {
                let (resource, group) = resource.split_once('.').unwrap_or_default();
                json!({ "group": group, "resource": resource })
            };
            olm_yaml["optionalAPIs"] = unknown.iter().map(api).collect();
        }
        let is_wildcard = |finding: &Finding| finding.code == "wildcard-rule";
        let format = if plain.findings.iter().any(is_wildcard) { Format::Registry } else { Format::Plain };
        let mut excluded = BTreeSet::new();
        loop {
            let synthesis = synthesize_as(format, &manifests, &olm_yaml);
            let faulty: Vec<&Finding> = synthesis.findings.iter().filter(|f| f.severity == Severity::Error).collect();
            if faulty.is_empty() {
                let manifests = versions(&name, manifests)?;
                return Ok(Some(Self { name, errors, excluded, format, manifests, olm_yaml }));
            }
            errors.extend(faulty.iter().map(|finding| finding.code));
            let before = manifests.len();
            let is_faulty = |manifest: &Manifest| {
                faulty
                    .iter()
                    .any(|f| f.file == manifest.file && f.subject == manifest.subject() && f.line >= manifest.line)
            };
            excluded.extend(manifests.iter().filter(|manifest| is_faulty(manifest)).map(Manifest::subject));
            manifests.retain(|manifest| !is_faulty(manifest));
            if manifests.len() == before {
                return Ok(None);
            }
        }
    }

    /// Returns the olm.yaml of a published project: what `bundle synthesize` proposes, and what its author would add.
    pub fn default_olm_yaml(name: &str) -> Result<Value> {
        let mut olm_yaml = Proposal::new(name, VERSIONS[0]).olm_yaml();
        let file = repository().join(OLM_YAMLS).join(format!("{name}.yaml"));
        if file.exists() {
            let added: Map<String, Value> = serde_json::from_value(documents(&file)?.remove(0))?;
            for (field, value) in added {
                olm_yaml[field] = value;
            }
        }
        Ok(olm_yaml)
    }

    /// Returns the manifests of a version, which its bundle contains.
    pub fn manifests(&self, version: &str) -> &[Manifest] {
        let number = VERSIONS.iter().position(|other| *other == version).unwrap_or_default();
        &self.manifests[number]
    }

    /// Returns what the manifests become in one of the versions.
    pub fn synthesis(&self, version: &str) -> Synthesis {
        let file = File::new(OLM_YAML, self.olm_yaml(version).to_string().into_bytes());
        synthesize(self.manifests(version), &Metadata::read(Some(&file)), &KnownApis::default(), self.format)
    }

    fn olm_yaml(&self, version: &str) -> Value {
        let mut olm_yaml = self.olm_yaml.clone();
        olm_yaml["name"] = self.csv(version).into();
        olm_yaml["version"] = version.into();
        if version != VERSIONS[0] {
            olm_yaml["replaces"] = self.csv(VERSIONS[0]).into();
        }
        olm_yaml
    }

    /// Returns the name of the ClusterServiceVersion of a version.
    pub fn csv(&self, version: &str) -> String {
        format!("{}.v{version}", self.name)
    }

    /// Writes the published manifests without those that have errors, and an olm.yaml with what an author adds to it.
    pub fn write_published(&self, folder: &Path) -> Result<()> {
        let published: Vec<Manifest> =
            self.manifests[0].iter().filter(|manifest| manifest.file != ADDED).cloned().collect();
        write(&published, &self.olm_yaml(VERSIONS[0]), folder)
    }

    /// Writes the manifests and `metadata/olm.yaml` of a version, as an author has them.
    pub fn write_manifests(&self, folder: &Path, version: &str) -> Result<()> {
        write(self.manifests(version), &self.olm_yaml(version), folder)
    }

    /// Returns the installation of the first version from a channel, into a namespace of its own.
    pub fn case(&self, channel: &str) -> Case {
        Case {
            namespace: format!("{}-home", self.name),
            package: self.name.clone(),
            scope: Scope::All,
            install: Target { channel: channel.to_owned(), csv: self.csv(VERSIONS[0]) },
            upgrade: None,
            catalog: CATALOG,
        }
    }

    /// Writes the bundles of all versions, each to its own subdirectory, and returns these.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        VERSIONS.iter().map(|version| self.write_version(folder, version)).collect()
    }

    fn write_version(&self, folder: &Path, version: &str) -> Result<PathBuf> {
        let directory = folder.join(format!("{}-{version}", self.name));
        let (objects, media_type) = match self.format {
            Format::Plain => {
                let objects = self.manifests(version).iter().map(|manifest| manifest.object.clone()).collect();
                (objects, "k8s+v1")
            }
            Format::Registry => {
                let synthesis = self.synthesis(version);
                ([vec![synthesis.csv], synthesis.objects].concat(), "registry+v1")
            }
        };
        let mut annotations = serde_json::Map::new();
        let of_bundle = [
            ("mediatype.v1", media_type),
            ("manifests.v1", "manifests/"),
            ("metadata.v1", "metadata/"),
            ("package.v1", &self.name),
            ("channels.v1", "stable"),
        ];
        for (key, value) in of_bundle {
            annotations.insert(format!("operators.operatorframework.io.bundle.{key}"), value.into());
        }
        let mut written = vec![("metadata/annotations.yaml".to_owned(), json!({ "annotations": annotations }))];
        if self.format == Format::Plain {
            written.push((OLM_YAML.to_owned(), self.olm_yaml(version)));
        }
        let numbered = objects.into_iter().enumerate();
        written.extend(numbered.map(|(number, object)| (format!("manifests/{number:04}.yaml"), object)));
        for (name, content) in written {
            let path = directory.join(name);
            fs::create_dir_all(path.parent().context("a file is in a directory")?)?;
            fs::write(path, content.to_string())?;
        }
        Ok(directory)
    }
}

/// Writes manifests, and olm.yaml.
fn write(manifests: &[Manifest], olm_yaml: &Value, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("metadata"))?;
    fs::write(folder.join(OLM_YAML), olm_yaml.to_string())?;
    for (number, manifest) in manifests.iter().enumerate() {
        fs::write(folder.join(format!("{number:04}.json")), manifest.object.to_string())?;
    }
    Ok(())
}

/// Returns the manifests of each of the versions.
fn versions(name: &str, published: Vec<Manifest>) -> Result<[Vec<Manifest>; VERSIONS.len()]> {
    let metadata = |suffix: &str| json!({ "name": format!("{name}-{suffix}") });
    let config_map = |suffix: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(suffix), "data": { "version": suffix } });
    let rule = json!({ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"] });
    let cluster_role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": metadata("first"), "rules": [rule] });
    let of_first = further(&[config_map("first"), cluster_role])?;
    let of_second = further(&[config_map("second")])?;
    let mut second = published.clone();
    for deployment in second.iter_mut().filter(|manifest| manifest.is("apps", "Deployment")) {
        let containers = deployment.object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            container["image"] = other_image(text(container, &["image"])).into();
        }
    }
    if let Some(number) = role_of_operator(&published) {
        let rules = second[number].object["rules"].as_array_mut().context("a role has rules")?;
        let verbs = rules.iter_mut().filter_map(|rule| rule["verbs"].as_array_mut()).find(|verbs| verbs.len() > 1);
        verbs.and_then(Vec::pop);
        rules.push(serde_json::from_str(ADDED_RULE)?);
    }
    let first = [published, of_first].concat();
    second.extend(of_second);
    Ok([first, second])
}

/// Returns objects as manifests.
fn further(objects: &[Value]) -> Result<Vec<Manifest>> {
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    let (manifests, findings) = read_manifests(&[File::new(ADDED, text.join("\n---\n").into_bytes())]);
    ensure!(findings.is_empty(), "{findings:?}");
    Ok(manifests)
}

/// Returns an image with the tag of the second version.
fn other_image(image: &str) -> String {
    let name = image.split('@').next().unwrap_or_default();
    let (path, last) = name.rsplit_once('/').map_or(("", name), |(path, last)| (path, last));
    let last = last.split(':').next().unwrap_or_default();
    [path, last].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("/") + ":" + VERSIONS[1]
}

/// Returns the number of the first role of a Deployment's ServiceAccount whose rules can be changed.
fn role_of_operator(manifests: &[Manifest]) -> Option<usize> {
    let accounts: BTreeSet<&str> = manifests
        .iter()
        .filter(|manifest| manifest.is("apps", "Deployment"))
        .map(|deployment| text(&deployment.object, &["spec", "template", "spec", "serviceAccountName"]))
        .collect();
    let is_bound = |role: &Manifest| {
        manifests.iter().filter(|binding| binding.kind() == "ClusterRoleBinding").any(|binding| {
            text(&binding.object, &["roleRef", "name"]) == role.name()
                && list(&binding.object, &["subjects"]).iter().any(|s| accounts.contains(text(s, &["name"])))
        })
    };
    manifests.iter().position(|role| {
        let has_rules = at(&role.object, &["aggregationRule"]).is_null() && !list(&role.object, &["rules"]).is_empty();
        role.kind() == "ClusterRole" && has_rules && is_bound(role)
    })
}

/// Returns the resource, `PLURAL.GROUP`, of a finding about an API whose kind is unknown.
fn resource_of(finding: &Finding) -> Option<&str> {
    finding.message.strip_prefix("requires the API ")?.split_once(',').map(|(resource, _)| resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_version_has_other_images() {
        assert_eq!(other_image("example.com:5000/a/rose@sha256:00"), "example.com:5000/a/rose:1.1.0");
        assert_eq!(other_image("example.com/rose:v1"), "example.com/rose:1.1.0");
        assert_eq!(other_image("rose"), "rose:1.1.0");
    }
}
