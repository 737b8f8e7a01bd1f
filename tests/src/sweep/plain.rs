//! Operators that are published as plain manifests: bundles from them, and the comparison of what runs with what was given.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use olm_core::api::object::{self, at, entries, list, text};
use olm_core::bundle::File;
use olm_core::bundle::synthesis::{
    Format, KnownApis, Manifest, Metadata, OLM_YAML, Proposal, Synthesis, read_manifests, synthesize,
};
use olm_core::finding::{Finding, Severity};
use serde_json::{Value, json};

use super::case::{CATALOG, Case, Target, View};
use super::catalog::Scope;
use crate::data::files;
use crate::scenario::engine::WATCHED;

/// The versions that are installed one after the other.
pub const VERSIONS: [&str; 2] = ["1.0.0", "1.1.0"];
const BINDINGS: [&str; 2] = ["RoleBinding", "ClusterRoleBinding"];

/// The manifests of an operator.
pub struct Project {
    /// Its name.
    pub name: String,
    /// The manifests that bundles contain.
    pub manifests: Vec<Manifest>,
    /// The codes of errors about manifests, which bundles do not contain.
    pub errors: BTreeSet<&'static str>,
    /// The format of its bundles.
    pub format: Format,
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
        let (manifests, unreadable) = read_manifests(&contents);
        let mut olm_yaml = olm_yaml.unwrap_or_else(|| {
            let mut proposal = Proposal::new(&name, VERSIONS[0]);
            proposal.display_name.clone_from(&name);
            proposal.olm_yaml()
        });
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
        let mut project = Self { name, manifests, errors: BTreeSet::new(), format, olm_yaml };
        loop {
            let synthesis = synthesize_as(project.format, &project.manifests, &project.olm_yaml);
            let faulty: Vec<&Finding> = synthesis.findings.iter().filter(|f| f.severity == Severity::Error).collect();
            if faulty.is_empty() {
                project.errors = errors;
                return Ok(Some(project));
            }
            errors.extend(faulty.iter().map(|finding| finding.code));
            let before = project.manifests.len();
            let is_faulty = |manifest: &Manifest| {
                faulty
                    .iter()
                    .any(|f| f.file == manifest.file && f.subject == manifest.subject() && f.line >= manifest.line)
            };
            project.manifests.retain(|manifest| !is_faulty(manifest));
            if project.manifests.len() == before {
                return Ok(None);
            }
        }
    }

    /// Returns what the manifests become in one of the versions.
    pub fn synthesis(&self, version: &str) -> Synthesis {
        let file = File::new(OLM_YAML, self.olm_yaml(version).to_string().into_bytes());
        synthesize(&self.manifests, &Metadata::read(Some(&file)), &KnownApis::default(), self.format)
    }

    fn olm_yaml(&self, version: &str) -> Value {
        let mut olm_yaml = self.olm_yaml.clone();
        olm_yaml["name"] = format!("{}.v{version}", self.name).into();
        olm_yaml["version"] = version.into();
        if version != VERSIONS[0] {
            olm_yaml["replaces"] = format!("{}.v{}", self.name, VERSIONS[0]).into();
        }
        olm_yaml
    }

    /// Writes the manifests and `metadata/olm.yaml` of a version, as an author has them.
    pub fn write_manifests(&self, folder: &Path, version: &str) -> Result<()> {
        fs::create_dir_all(folder.join("metadata"))?;
        fs::write(folder.join(OLM_YAML), self.olm_yaml(version).to_string())?;
        for (number, manifest) in self.manifests.iter().enumerate() {
            fs::write(folder.join(format!("{number:04}.json")), manifest.object.to_string())?;
        }
        Ok(())
    }

    /// Returns the installation of the first version from a channel, into a namespace of its own.
    pub fn case(&self, channel: &str) -> Case {
        Case {
            namespace: format!("{}-home", self.name),
            package: self.name.clone(),
            scope: Scope::All,
            install: Target { channel: channel.to_owned(), csv: format!("{}.v{}", self.name, VERSIONS[0]) },
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
                let objects: Vec<Value> = self.manifests.iter().map(|manifest| manifest.object.clone()).collect();
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

    /// Returns what was given and does not run: one line for each difference.
    pub fn differences(&self, view: &View, namespace: &str) -> Vec<String> {
        let mut differences = Vec::new();
        for manifest in &self.manifests {
            let object = &manifest.object;
            let missing = match manifest.kind() {
                // Become annotations, or certificates of OLM; what roles grant is compared by binding.
                "Namespace" | "Certificate" | "Issuer" | "ClusterIssuer" | "Role" | "ClusterRole" => None,
                "Service" => missing_service(view, namespace, object),
                "RoleBinding" | "ClusterRoleBinding" => self.missing_permission(view, namespace, object),
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => missing_webhook(view, object),
                "CustomResourceDefinition" => {
                    let mut given = object.clone();
                    // OLM writes the certificate authority.
                    given["spec"].as_object_mut().and_then(|spec| spec.remove("conversion"));
                    missing_object(view, "", &given)
                }
                "APIService" => {
                    let mut given = object.clone();
                    given["spec"] = json!({ "group": object["spec"]["group"], "version": object["spec"]["version"] });
                    missing_object(view, "", &given)
                }
                // OLM creates it with nothing but the name; what else is given has findings.
                "ServiceAccount" => missing_object(
                    view,
                    namespace,
                    &json!({ "kind": "ServiceAccount", "metadata": { "name": manifest.name() } }),
                ),
                "Deployment" => missing_object(view, namespace, &without_secrets(object)),
                kind if !WATCHED.iter().any(|(_, watched, _)| *watched == kind) || self.is_example(object) => None,
                _ if object::namespace(object).is_empty() => missing_object(view, "", object),
                _ => missing_object(view, namespace, object),
            };
            differences.extend(missing.map(|what| format!("{}: {what}", manifest.subject())));
        }
        differences
    }

    fn is_example(&self, object: &Value) -> bool {
        let gvk = object::gvk(object);
        self.manifests.iter().any(|manifest| {
            manifest.kind() == "CustomResourceDefinition"
                && text(&manifest.object, &["spec", "group"]) == gvk.group
                && text(&manifest.object, &["spec", "names", "kind"]) == gvk.kind
        })
    }

    /// Returns which rule of a binding a subject is not granted.
    fn missing_permission(&self, view: &View, namespace: &str, binding: &Value) -> Option<String> {
        let (kind, name) = (text(binding, &["roleRef", "kind"]), text(binding, &["roleRef", "name"]));
        let role = self.manifests.iter().find(|role| role.kind() == kind && role.name() == name);
        list(binding, &["subjects"]).iter().find_map(|subject| {
            let bindings: Vec<&Value> = BINDINGS
                .iter()
                .flat_map(|kind| view.objects_of(kind, ""))
                .filter(|other| has_subject(other, subject, namespace))
                .collect();
            // The rules of an aggregated role are those of others; Kubernetes' own roles are not in the manifests.
            let Some(role) = role.filter(|role| at(&role.object, &["aggregationRule"]).is_null()) else {
                return bindings.is_empty().then(|| format!("{subject} is bound to nothing"));
            };
            let rules: Vec<&Value> = bindings
                .iter()
                .flat_map(|other| {
                    let [kind, name] = ["kind", "name"].map(|field| text(other, &["roleRef", field]));
                    view.objects_of(kind, "").filter(move |object| object::name(object) == name)
                })
                .flat_map(|role| list(role, &["rules"]))
                .collect();
            let mut wanted = list(&role.object, &["rules"]).iter();
            let missing = wanted.find(|rule| !rules.iter().any(|granted| contains(granted, rule)));
            missing.map(|rule| format!("{subject} is not granted {rule}"))
        })
    }
}

/// Returns the resource, `PLURAL.GROUP`, of a finding about an API whose kind is unknown.
fn resource_of(finding: &Finding) -> Option<&str> {
    finding.message.strip_prefix("requires the API ")?.split_once(',').map(|(resource, _)| resource)
}

/// Accounts of Deployments are in the namespace of the installation; others stay where they were given.
fn has_subject(binding: &Value, subject: &Value, namespace: &str) -> bool {
    list(binding, &["subjects"]).iter().any(|other| {
        let same = |field: &str| text(other, &[field]) == text(subject, &[field]);
        same("kind") && same("name") && (same("namespace") || text(other, &["namespace"]) == namespace)
    })
}

/// Returns the Deployment without the names of Secrets, which OLM's certificates replace.
fn without_secrets(deployment: &Value) -> Value {
    let mut deployment = deployment.clone();
    let volumes = deployment.pointer_mut("/spec/template/spec/volumes").and_then(Value::as_array_mut);
    for secret in volumes.into_iter().flatten().filter_map(|volume| volume.get_mut("secret")?.as_object_mut()) {
        secret.remove("secretName");
    }
    // These are not carried, or replaced, which has a finding.
    let containers = deployment.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
    for mounts in containers.into_iter().flatten().filter_map(|c| c.get_mut("volumeMounts")?.as_array_mut()) {
        mounts.retain(|mount| text(mount, &["mountPath"]) != "/tmp/k8s-webhook-server/serving-certs");
    }
    object::map_mut(&mut deployment, &["metadata"]).remove("annotations");
    object::map_mut(&mut deployment, &["spec"]).remove("revisionHistoryLimit");
    deployment
}

/// Returns how the object of that kind and name differs.
fn missing_object(view: &View, namespace: &str, given: &Value) -> Option<String> {
    let found =
        view.objects_of(object::kind(given), namespace).find(|other| object::name(other) == object::name(given));
    let Some(found) = found else { return Some("does not exist".to_owned()) };
    let mut given = given.clone();
    let map = given.as_object_mut()?;
    map.remove("status");
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
        metadata.remove("creationTimestamp");
    }
    difference(found, &given, "")
}

/// Returns the first part of `given` that `found` lacks.
fn difference(found: &Value, given: &Value, path: &str) -> Option<String> {
    match (found, given) {
        (Value::Object(found), Value::Object(given)) => given.iter().find_map(|(key, value)| {
            let inner = format!("{path}.{key}");
            match found.get(key) {
                Some(found) => difference(found, value, &inner),
                None if is_default(value) => None,
                None => Some(format!("{inner} is missing: {value}")),
            }
        }),
        // OLM adds environment variables, volumes and mounts at the end.
        (Value::Array(found), Value::Array(given)) => given.iter().enumerate().find_map(|(n, value)| {
            let inner = format!("{path}[{n}]");
            let name = text(value, &["name"]);
            let other = if name.is_empty() { found.get(n) } else { found.iter().find(|f| text(f, &["name"]) == name) };
            other.map_or_else(|| Some(format!("{inner} is missing: {value}")), |found| difference(found, value, &inner))
        }),
        _ if found == given || is_same_quantity(found, given) => None,
        _ => Some(format!("{path} is {found}, not {given}")),
    }
}

/// Returns whether a value means the same as a missing one.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_default),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

/// Quantities are stored in a canonical form.
fn is_same_quantity(found: &Value, given: &Value) -> bool {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parse = |value: &Value| olm_core::api::quantity::canonical(&plain(value));
    parse(found).is_some() && parse(found) == parse(given)
}

/// Returns whether a rule grants all that another one does.
fn contains(granted: &Value, wanted: &Value) -> bool {
    wanted.as_object().is_some_and(|fields| {
        fields.iter().all(|(field, values)| {
            is_default(values)
                || values.as_array().is_some_and(|values| values.iter().all(|v| list(granted, &[field]).contains(v)))
        })
    })
}

/// A Service that OLM generates has another name and the same selector; that of an APIService has the port of the container.
fn missing_service(view: &View, namespace: &str, service: &Value) -> Option<String> {
    let selector: Vec<_> = entries(service, &["spec", "selector"]).collect();
    let selects = |other: &&Value| {
        let labels: Vec<_> = entries(other, &["spec", "selector"]).collect();
        selector.iter().all(|pair| labels.contains(pair))
    };
    let found: Vec<&Value> = view
        .objects_of("Service", namespace)
        .filter(selects)
        .flat_map(|other| list(other, &["spec", "ports"]))
        .collect();
    let is_found = |port: &&Value| {
        found.iter().any(|other| other["port"] == port["port"] || other["targetPort"] == port["targetPort"])
    };
    let missing = list(service, &["spec", "ports"]).iter().find(|port| !is_found(port));
    missing.map(|port| format!("no Service of these pods has {port}"))
}

fn missing_webhook(view: &View, configuration: &Value) -> Option<String> {
    let kind = object::kind(configuration);
    list(configuration, &["webhooks"]).iter().find_map(|webhook| {
        let mut found = view.objects_of(kind, "").flat_map(|other| list(other, &["webhooks"]));
        let same = |other: &Value| {
            let compared =
                ["rules", "failurePolicy", "sideEffects", "timeoutSeconds", "matchPolicy", "admissionReviewVersions"];
            // Of two webhooks with one name, one is renamed.
            text(other, &["name"]).ends_with(text(webhook, &["name"]))
                && compared.iter().all(|field| {
                    webhook.get(*field).is_none_or(|given| difference(&other[*field], given, "").is_none())
                })
        };
        (!found.any(same)).then(|| format!("webhook {} is missing", text(webhook, &["name"])))
    })
}
