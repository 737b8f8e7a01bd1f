//! What cannot be inferred from manifests: `metadata/olm.yaml`, and annotations of the manifests (bundle-format.md#metadataolmyaml).
//!
//! olm.yaml has the fields of a ClusterServiceVersion's `spec` under the same names, and its own: `name`, `annotations`, `metadataLabels`,
//! `apis` (descriptions and descriptors of provided APIs), `requiredAPIs` and `optionalAPIs`. Where an annotation states the same, olm.yaml applies.

use serde_json::{Map, Value, json};

use super::entries::{self, is_base64};
use super::{Manifest, Work};
use crate::api::cluster_service_version::InstallMode;
use crate::api::names::guess_plural;
use crate::api::object::{self, Gvk, at, text};
use crate::bundle::File;
use crate::finding::Finding;
use crate::yaml::{self, Document, Step, outline};

/// The file, within the bundle.
pub const OLM_YAML: &str = "metadata/olm.yaml";
/// What the annotations of manifests begin with that describe the bundle.
pub(super) const ANNOTATION_PREFIX: &str = "operators.operatorframework.io.bundle.";
/// The annotation of a binding whose APIs the operator uses if they exist (bundle-format.md#what-is-inferred).
pub(super) const DEPENDENCY: &str = "operators.operatorframework.io.bundle.dependency";
/// The fields without which no bundle is built (bundle-format.md#metadataolmyaml).
const REQUIRED: [(&str, &str); 4] = [
    ("name", "the name of the ClusterServiceVersion, as in rose.v1.0.0"),
    ("version", "the operator's version, as in 1.0.0"),
    ("minKubeVersion", "the oldest Kubernetes version that the operator supports, as in 1.28.0"),
    (
        "installModes",
        "the list of {type, supported} for OwnNamespace, SingleNamespace, MultiNamespace and AllNamespaces",
    ),
];
/// The names of these fields.
pub const REQUIRED_FIELDS: [&str; 4] = [REQUIRED[0].0, REQUIRED[1].0, REQUIRED[2].0, REQUIRED[3].0];
/// The modes in which an operator watches namespaces.
pub const INSTALL_MODES: [&str; 4] = [
    InstallMode::OwnNamespace.as_str(),
    InstallMode::SingleNamespace.as_str(),
    InstallMode::MultiNamespace.as_str(),
    InstallMode::AllNamespaces.as_str(),
];
/// The install mode of most operators: they watch all namespaces.
pub const DEFAULT_MODE: &str = InstallMode::AllNamespaces.as_str();
/// The oldest Kubernetes version that is proposed.
pub const MIN_KUBE_VERSION: &str = "1.28.0";

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Texts,
    List,
    Map,
    /// A map of strings.
    Strings,
    /// Text or a list.
    Icon,
}

/// The fields of olm.yaml that become fields of `spec`.
const FIELDS: [(&str, Type); 19] = [
    ("version", Type::Text),
    ("release", Type::Text),
    ("minKubeVersion", Type::Text),
    ("installModes", Type::List),
    ("displayName", Type::Text),
    ("description", Type::Text),
    ("keywords", Type::Texts),
    ("maturity", Type::Text),
    ("maintainers", Type::List),
    ("provider", Type::Map),
    ("links", Type::List),
    ("icon", Type::Icon),
    ("labels", Type::Strings),
    ("selector", Type::Map),
    ("replaces", Type::Text),
    ("skips", Type::Texts),
    ("nativeAPIs", Type::List),
    ("relatedImages", Type::List),
    ("cleanup", Type::Map),
];
/// The other fields of olm.yaml: the name, the ClusterServiceVersion's annotations and labels, and the APIs.
const OTHER_FIELDS: [(&str, Type); 6] = [
    ("name", Type::Text),
    ("annotations", Type::Strings),
    ("metadataLabels", Type::Strings),
    ("apis", Type::List),
    ("requiredAPIs", Type::List),
    ("optionalAPIs", Type::List),
];
/// The fields that annotations of a Deployment may state: the end of the annotation's key, and the field.
const DEPLOYMENT_ANNOTATIONS: [(&str, &str); 8] = [
    ("display-name", "displayName"),
    ("description", "description"),
    ("icon", "icon"),
    ("keywords", "keywords"),
    ("links", "links"),
    ("maintainers", "maintainers"),
    ("maturity", "maturity"),
    ("provider", "provider"),
];
/// The same for a CustomResourceDefinition; the fields are those of an owned API.
const DEFINITION_ANNOTATIONS: [(&str, &str); 3] =
    [("display-name", "displayName"), ("description", "description"), ("descriptors", "descriptors")];
/// The lists of descriptors, by what their paths begin with in the form with one list.
const DESCRIPTORS: [(&str, &str); 2] = [("spec", "specDescriptors"), ("status", "statusDescriptors")];
/// How base64 of an image begins, and its media type.
const ICONS: [(&str, &str); 5] = [
    ("iVBOR", "image/png"),
    ("PHN2Z", "image/svg+xml"),
    ("PD94b", "image/svg+xml"),
    ("/9j/", "image/jpeg"),
    ("R0lGO", "image/gif"),
];

/// An API that the operator requires.
#[derive(Clone, Debug)]
pub(super) struct RequiredApi {
    pub(super) gvk: Gvk,
    /// Whether an APIService provides it, not a CustomResourceDefinition.
    pub(super) is_aggregated: bool,
    /// `displayName` and `description`.
    pub(super) description: Map<String, Value>,
}

/// The content of olm.yaml.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    fields: Map<String, Value>,
    findings: Vec<Finding>,
    file: String,
}

impl Metadata {
    /// Reads olm.yaml. Without a file, or with one that cannot be read, the fields are missing, which [`super::synthesize`] reports.
    pub fn read(file: Option<&File>) -> Self {
        let mut metadata = Self { file: OLM_YAML.to_owned(), ..Self::default() };
        let Some(file) = file else {
            metadata.findings.push(
                Finding::new("no-olm-yaml", "the bundle has no metadata/olm.yaml")
                    .hint("add it, with name, version, minKubeVersion and installModes"),
            );
            return metadata;
        };
        metadata.file.clone_from(&file.path);
        let documents = yaml::documents(&file.bytes);
        let document = documents.as_ref().ok().and_then(|documents| documents.first().copied());
        let read = match (&documents, document) {
            (Err(error), _) => Err(error.clone()),
            (_, None) => Ok(Value::Null),
            (_, Some(document)) => document.value(),
        };
        let is_filled = |document: &&Document<'_>| !matches!(document.value(), Ok(Value::Null));
        if let Some(second) = documents.iter().flatten().skip(1).find(is_filled) {
            let finding = Finding::new("later-documents", "the file has several documents, but only the first is read");
            let finding = finding.at(&file.path, second.line).hint("write all fields into one document, without ---");
            metadata.findings.push(finding);
        }
        match (read, document) {
            (Err(error), _) => metadata.findings.push(
                Finding::new("unreadable-file", error.message)
                    .at(&file.path, error.line)
                    .hint(error.hint.unwrap_or_default()),
            ),
            (Ok(Value::Object(fields)), Some(document)) => {
                metadata.fields = fields;
                metadata.repair_flat_shape(document);
                metadata.check(document);
            }
            _ => metadata.missing(0),
        }
        metadata
    }

    /// Returns the name of the ClusterServiceVersion; empty when olm.yaml has none.
    pub fn name(&self) -> &str {
        self.fields.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Understands the shape of the published example, in which fields of `provider`, `maintainers` and `links` are not indented.
    fn repair_flat_shape(&mut self, document: Document<'_>) {
        let Some(outline) = outline::outline(document.text) else { return };
        let outline::Kind::Map { fields, .. } = &outline.kind else { return };
        let names: Vec<&str> =
            fields.iter().filter(|(key, _)| key.text() == Some("name")).filter_map(|(_, value)| value.text()).collect();
        let mut repaired = Vec::new();
        if let [name, provider] = names[..]
            && self.fields.get("provider").is_some_and(Value::is_null)
        {
            self.fields.insert("name".to_owned(), name.into());
            self.fields.insert("provider".to_owned(), json!({ "name": provider }));
            repaired.push("provider");
        }
        for (field, part) in [("maintainers", "email"), ("links", "url")] {
            let lone = self.fields.get(field).and_then(Value::as_array).is_some_and(|list| list.len() == 1);
            if let Some(value) = self.fields.get(part).cloned().filter(|_| lone) {
                self.fields.remove(part);
                if let Some(item) = self.fields.get_mut(field).and_then(|list| list.get_mut(0)?.as_object_mut()) {
                    item.insert(part.to_owned(), value);
                }
                repaired.push(field);
            }
        }
        if !repaired.is_empty() {
            let line = document.line_of(&[Step::Field(repaired[0].to_owned())]);
            let finding =
                Finding::new("flat-olm-yaml", format!("the fields of {} are not indented", repaired.join(", ")));
            self.findings.push(finding.warning().at(&self.file, line).hint("indent them below their field"));
        }
    }

    /// Checks names, types and required fields.
    fn check(&mut self, document: Document<'_>) {
        let line_of = |field: &str| document.line_of(&[Step::Field(field.to_owned())]);
        let (fields, file) = (&self.fields, self.file.clone());
        let mut findings = Vec::new();
        for (name, value) in fields {
            let known = FIELDS.iter().chain(&OTHER_FIELDS).find(|(known, _)| known == name);
            let Some((_, of_type)) = known else {
                let near = FIELDS.iter().chain(&OTHER_FIELDS).map(|(known, _)| *known);
                let near = near.filter(|known| strsim::damerau_levenshtein(known, name) <= 2).min();
                let finding = Finding::new("unknown-field", format!("field {name} is unknown, and ignored")).warning();
                let finding = near.map_or_else(
                    || finding.clone().hint("remove it"),
                    |near| finding.clone().hint(format!("did you mean {near}?")),
                );
                findings.push(finding.at(&file, line_of(name)));
                continue;
            };
            if let Some(expected) = mismatch(*of_type, value) {
                let finding = Finding::new("field-type", format!("field {name} must be {expected}"));
                findings.push(finding.at(&file, line_of(name)));
            }
        }
        let string = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
        for field in ["version", "minKubeVersion"] {
            let value = string(field);
            if !value.is_empty() && semver::Version::parse(value.trim_start_matches('v')).is_err() {
                let finding = Finding::new("field-value", format!("{field} {value:?} is no semantic version"));
                findings.push(
                    finding
                        .at(&file, line_of(field))
                        .hint("write it as MAJOR.MINOR.PATCH, in quotes if YAML reads a number"),
                );
            }
        }
        let name = string("name");
        if !crate::api::names::is_subdomain(name) && !name.is_empty() {
            let finding = Finding::new("field-value", format!("name {name:?} is no name of a Kubernetes object"));
            findings.push(finding.at(&file, line_of("name")).hint("use lower-case letters, digits, '-' and '.'"));
        }
        for (n, mode) in fields.get("installModes").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let is_known = INSTALL_MODES.contains(&text(mode, &["type"])) && at(mode, &["supported"]).is_boolean();
            if !is_known {
                let line = document.line_of(&[Step::Field("installModes".to_owned()), Step::Item(n)]);
                let finding = Finding::new("field-value", "an install mode must have a type and a boolean supported");
                findings.push(finding.at(&file, line).hint(format!("the types are {}", INSTALL_MODES.join(", "))));
            }
        }
        let line = |path: &[Step]| document.line_of(path);
        findings.extend(entries::check(fields, &file, &line));
        self.findings.append(&mut findings);
        self.missing(document.line);
    }

    /// Reports the required fields that are missing.
    fn missing(&mut self, line: usize) {
        for (field, meaning) in REQUIRED {
            let value = self.fields.get(field);
            let is_empty = match value {
                None | Some(Value::Null) => true,
                Some(Value::String(text)) => text.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                Some(_) => false,
            };
            if is_empty {
                let finding = Finding::new("required-field", format!("field {field} is required"));
                self.findings.push(finding.at(&self.file, line).hint(format!("add {field}: {meaning}")));
            }
        }
    }

    /// Writes everything into the ClusterServiceVersion, with what annotations of the manifests add.
    pub(super) fn apply(&self, work: &mut Work<'_>) {
        work.findings.extend(self.findings.iter().cloned());
        let mut fields = self.fields.clone();
        for (number, manifest) in work.of_kind("apps", "Deployment") {
            report_unknown(work, number, manifest, &DEPLOYMENT_ANNOTATIONS);
            for (suffix, field) in DEPLOYMENT_ANNOTATIONS {
                let key = format!("{ANNOTATION_PREFIX}{suffix}");
                let Some(value) = object::annotation(&manifest.object, &key) else { continue };
                let of_type =
                    FIELDS.iter().find(|(name, _)| *name == field).map_or(Type::Text, |(_, of_type)| *of_type);
                let Some(value) = stated(work, number, &key, value, of_type) else { continue };
                if of_type == Type::Icon && value.as_str().is_some_and(|icon| !is_base64(icon)) {
                    let message = format!("annotation {key} is not base64, and is left out");
                    let finding = Finding::new("field-value", message).warning();
                    let finding = finding.hint("insert the output of: base64 icon.png");
                    work.report(number, &["metadata", "annotations", &key], finding);
                } else if fields.get(field).is_some_and(|other| *other != value) {
                    conflict(work, number, &key, field);
                } else {
                    fields.insert(field.to_owned(), value);
                }
            }
        }
        let spec = object::map_mut(&mut work.csv, &["spec"]);
        for (field, of_type) in FIELDS {
            if let Some(value) =
                fields.get(field).filter(|value| mismatch(of_type, value).is_none() && !value.is_null())
            {
                if of_type != Type::Icon {
                    spec.insert(field.to_owned(), value.clone());
                } else if let Some(icon) = icon(value) {
                    spec.insert(field.to_owned(), icon);
                }
            }
        }
        let metadata = object::map_mut(&mut work.csv, &["metadata"]);
        metadata.insert("name".to_owned(), self.name().into());
        for (field, part) in [("annotations", "annotations"), ("metadataLabels", "labels")] {
            let value = fields.get(field).filter(|value| mismatch(Type::Strings, value).is_none());
            if let Some(map @ Value::Object(_)) = value {
                metadata.insert(part.to_owned(), map.clone());
            }
        }
        for (number, manifest) in work.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
            let given = self.apis().filter(|api| {
                text(api, &["group"]) == text(&manifest.object, &["spec", "group"])
                    && text(api, &["kind"]) == text(&manifest.object, &["spec", "names", "kind"])
            });
            report_unknown(work, number, manifest, &DEFINITION_ANNOTATIONS);
            for (suffix, field) in DEFINITION_ANNOTATIONS {
                let key = format!("{ANNOTATION_PREFIX}{suffix}");
                let annotated = object::annotation(&manifest.object, &key);
                let annotated = annotated.and_then(|value| stated(work, number, &key, value, definition_type(field)));
                let mut stated = given.clone().map(|api| at(api, &[field])).filter(|stated| !stated.is_null());
                if annotated.is_some_and(|annotated| stated.any(|stated| *stated != annotated)) {
                    conflict(work, number, &key, &format!("apis[].{field}"));
                }
            }
        }
    }

    fn apis(&self) -> impl Iterator<Item = &Value> + Clone {
        self.fields.get("apis").and_then(Value::as_array).into_iter().flatten()
    }

    /// Returns displayed names, description, resources and descriptors of a provided API, from olm.yaml and its definition's annotations.
    pub(super) fn description_of(&self, gvk: &Gvk, definition: Option<&Value>) -> Map<String, Value> {
        let mut description = Map::new();
        for (suffix, field) in DEFINITION_ANNOTATIONS {
            let value = definition.and_then(|d| object::annotation(d, &format!("{ANNOTATION_PREFIX}{suffix}")));
            let value = value.and_then(|value| annotation_value(value, definition_type(field)).ok());
            if let Some(value) = value.filter(|value| mismatch(definition_type(field), value).is_none()) {
                description.insert(field.to_owned(), value);
            }
        }
        let is_it = |api: &&Value| {
            let version = text(api, &["version"]);
            (text(api, &["group"]), text(api, &["kind"])) == (gvk.group.as_str(), gvk.kind.as_str())
                && (version.is_empty() || version == gvk.version)
        };
        for (key, value) in self.apis().filter(is_it).filter_map(Value::as_object).flatten() {
            if !matches!(key.as_str(), "group" | "version" | "kind" | "resource") {
                description.insert(key.clone(), value.clone());
            }
        }
        // One list of descriptors with whole paths is the form of annotations.
        if let Some(Value::Array(descriptors)) = description.remove("descriptors") {
            for descriptor in descriptors {
                let path = text(&descriptor, &["path"]).to_owned();
                let (root, rest) = path.split_once('.').unwrap_or(("spec", &path));
                let Some((_, field)) = DESCRIPTORS.iter().find(|(of_root, _)| *of_root == root) else { continue };
                let mut descriptor = descriptor.clone();
                object::map_mut(&mut descriptor, &[]).insert("path".to_owned(), rest.into());
                let list = description.entry((*field).to_owned()).or_insert_with(|| json!([]));
                if let Some(list) = list.as_array_mut() {
                    list.push(descriptor);
                }
            }
        }
        description
    }

    /// Returns the kinds that olm.yaml lists for an API group and version, with their plurals.
    pub(super) fn kinds_of(&self, group: &str, version: &str) -> Vec<(String, Option<String>)> {
        let of_group = self.apis().filter(|api| (text(api, &["group"]), text(api, &["version"])) == (group, version));
        let plural = |api: &Value| Some(text(api, &["resource"]).to_owned()).filter(|plural| !plural.is_empty());
        of_group
            .map(|api| (text(api, &["kind"]).to_owned(), plural(api)))
            .filter(|(kind, _)| !kind.is_empty())
            .collect()
    }

    /// Returns whether olm.yaml lists a resource of rules, or its whole API group, as one that the operator also works without.
    pub(super) fn is_optional(&self, group: &str, resource: &str) -> bool {
        list_of(&self.fields, "optionalAPIs").iter().any(|api| {
            let listed = text(api, &["resource"]);
            text(api, &["group"]) == group && (listed.is_empty() || listed == "*" || listed == resource)
        })
    }

    /// Returns the required APIs of a synthesized ClusterServiceVersion that olm.yaml does not list, in the form of `requiredAPIs`.
    pub fn missing_required(&self, csv: &Value) -> Vec<Value> {
        let listed = self.required();
        let is_listed = |resource: &str, group: &str| {
            let name = format!("{resource}.{group}");
            listed.iter().any(|(listed, _)| *listed == name)
        };
        let definitions = object::list(csv, &["spec", "customresourcedefinitions", "required"]).iter().map(|entry| {
            let (resource, group) = text(entry, &["name"]).split_once('.').unwrap_or_default();
            (resource, group, entry, false)
        });
        let services = object::list(csv, &["spec", "apiservicedefinitions", "required"]).iter();
        let services = services.map(|entry| (text(entry, &["name"]), text(entry, &["group"]), entry, true));
        let missing = definitions.chain(services).filter(|(resource, group, ..)| !is_listed(resource, group));
        missing
            .map(|(resource, group, entry, is_aggregated)| {
                let mut api = json!({
                    "group": group, "version": entry["version"], "kind": entry["kind"], "resource": resource,
                });
                if is_aggregated {
                    api["aggregated"] = true.into();
                }
                api
            })
            .collect()
    }

    /// Returns whether olm.yaml has a list of required APIs.
    pub fn lists_required(&self) -> bool {
        self.fields.contains_key("requiredAPIs")
    }

    /// Returns the required APIs that olm.yaml lists, each with `PLURAL.GROUP`.
    pub(super) fn required(&self) -> Vec<(String, RequiredApi)> {
        let apis = list_of(&self.fields, "requiredAPIs");
        let required = apis.iter().map(|api| {
            let gvk = Gvk::new(text(api, &["group"]), text(api, &["version"]), text(api, &["kind"]));
            let plural = match text(api, &["resource"]) {
                "" => guess_plural(&gvk.kind),
                plural => plural.to_owned(),
            };
            let stated = |field: &&str| api.get(*field).is_some_and(Value::is_string);
            let description = ["displayName", "description"].into_iter().filter(stated);
            let description = description.map(|field| (field.to_owned(), api[field].clone())).collect();
            let is_aggregated = at(api, &["aggregated"]).as_bool() == Some(true);
            (format!("{plural}.{}", gvk.group), RequiredApi { gvk, is_aggregated, description })
        });
        required.filter(|(_, api)| !api.gvk.kind.is_empty() && !api.gvk.version.is_empty()).collect()
    }
}

/// Returns the type of a field of an owned API.
fn definition_type(field: &str) -> Type {
    if field == "descriptors" { Type::List } else { Type::Text }
}

fn list_of<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn conflict(work: &mut Work<'_>, number: usize, key: &str, field: &str) {
    let finding =
        Finding::new("conflicting-metadata", format!("annotation {key} states another {field} than is already given"))
            .warning()
            .hint("state it once; olm.yaml applies before annotations, an earlier manifest before a later one");
    work.report(number, &["metadata", "annotations", key], finding);
}

/// Returns the value of an annotation: text as it is, lists and maps as YAML. A list of words may be separated by commas.
///
/// # Errors
/// The text is not YAML.
fn annotation_value(text: &str, of_type: Type) -> Result<Value, String> {
    if matches!(of_type, Type::Text | Type::Icon) {
        return Ok(text.into());
    }
    Ok(match yaml::first(text.as_bytes()).map_err(|error| error.to_string())? {
        Value::String(words) if of_type == Type::Texts => {
            words.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
        }
        Value::String(name) if of_type == Type::Map => json!({ "name": name }),
        value => value,
    })
}

/// Returns the value of an annotation. Reports a text that is not YAML, and a value of another type.
fn stated(work: &mut Work<'_>, number: usize, key: &str, text: &str, of_type: Type) -> Option<Value> {
    let problem = match annotation_value(text, of_type) {
        Ok(value) => match mismatch(of_type, &value) {
            None => return Some(value),
            Some(expected) => format!("annotation {key} must be {expected}"),
        },
        Err(error) => format!("annotation {key} is not YAML: {error}"),
    };
    work.report(number, &["metadata", "annotations", key], Finding::new("field-type", problem));
    None
}

/// Reports annotations of a manifest with the prefix that state no field.
fn report_unknown(work: &mut Work<'_>, number: usize, manifest: &Manifest, known: &[(&str, &str)]) {
    let all = object::entries(&manifest.object, &["metadata", "annotations"]).map(|(key, _)| key);
    let is_known = |key: &str, suffix: &str| key == DEPENDENCY || known.iter().any(|(name, _)| *name == suffix);
    let unknown = all.filter(|key| key.strip_prefix(ANNOTATION_PREFIX).is_some_and(|suffix| !is_known(key, suffix)));
    for key in unknown.map(str::to_owned).collect::<Vec<_>>() {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let finding = Finding::new("unknown-annotation", format!("annotation {key} states no field, and is left out"));
        let finding = finding.warning().hint(format!("after {ANNOTATION_PREFIX} write one of {}", names.join(", ")));
        work.report(number, &["metadata", "annotations", &key], finding);
    }
}

/// Returns what a field must be, if it is something else.
fn mismatch(of_type: Type, value: &Value) -> Option<&'static str> {
    let is_text = |value: &Value| value.is_string();
    let (fits, expected) = match of_type {
        Type::Text => (value.is_string(), "text, in quotes if YAML reads a number"),
        Type::Texts => (value.as_array().is_some_and(|items| items.iter().all(is_text)), "a list of texts"),
        Type::List => (value.is_array(), "a list"),
        Type::Map => (value.is_object(), "a map"),
        Type::Strings => (value.as_object().is_some_and(|map| map.values().all(is_text)), "a map of texts"),
        Type::Icon => {
            (value.is_string() || value.is_array(), "base64 of an image, or a list of {base64data, mediatype}")
        }
    };
    (!fits && !value.is_null()).then_some(expected)
}

/// Returns the list of icons of a ClusterServiceVersion: base64 alone gets the media type that its first bytes show; other text is none.
fn icon(value: &Value) -> Option<Value> {
    let Some(data) = value.as_str() else { return Some(value.clone()) };
    if !is_base64(data) {
        return None;
    }
    let data: String = data.split_whitespace().collect();
    let media_type =
        ICONS.iter().find(|(start, _)| data.starts_with(start)).map_or("image/png", |(_, of_type)| of_type);
    Some(json!([{ "base64data": data, "mediatype": media_type }]))
}

/// What only the author of a bundle knows.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The package.
    pub package: String,
    /// The operator's version.
    pub version: String,
    /// The name that consoles show; if empty, the package.
    pub display_name: String,
    /// The oldest Kubernetes version that the operator supports.
    pub min_kube_version: String,
    /// The supported install modes.
    pub install_modes: Vec<String>,
}

impl Proposal {
    /// Returns the proposal for a package and a version, with the values of most operators.
    pub fn new(package: &str, version: &str) -> Self {
        Self {
            package: package.to_owned(),
            version: version.to_owned(),
            display_name: package.to_owned(),
            min_kube_version: MIN_KUBE_VERSION.to_owned(),
            install_modes: vec![DEFAULT_MODE.to_owned()],
        }
    }

    /// Returns the content of olm.yaml.
    pub fn olm_yaml(&self) -> Value {
        let modes: Vec<Value> = INSTALL_MODES
            .iter()
            .map(|mode| json!({ "type": mode, "supported": self.install_modes.iter().any(|m| m == mode) }))
            .collect();
        json!({
            "name": format!("{}.v{}", self.package, self.version), "version": self.version,
            "minKubeVersion": self.min_kube_version, "displayName": self.display_name, "installModes": modes,
        })
    }
}
