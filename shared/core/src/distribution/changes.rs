//! Changes to the manifests of a release: namespace, images, pull secrets.

use std::str::FromStr;

use serde_json::{Value, json};

use super::{Distribution, Release, stage};
use crate::api::object;

/// The flags of OLM's programs whose value is the namespace of OLM.
const NAMESPACE_FLAGS: [&str; 3] = ["namespace", "global-namespace", "catalogNamespace"];

/// A prefix of image references, and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The prefix.
    pub from: String,
    /// The replacement.
    pub to: String,
}

impl FromStr for Mirror {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => {
                Ok(Self { from: from.to_owned(), to: to.to_owned() })
            }
            _ => Err("expected FROM=TO, as in quay.io=registry.example.com/quay".to_owned()),
        }
    }
}

/// Changes to a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Another namespace for the controllers.
    pub namespace: Option<String>,
    /// Another image for the controllers.
    pub image: Option<String>,
    /// Replacements in image references.
    pub mirrors: Vec<Mirror>,
    /// Names of Secrets for pulling images.
    pub pull_secrets: Vec<String>,
}

impl Release {
    /// Returns the release with these changes.
    #[must_use]
    pub fn with(mut self, changes: &Changes) -> Self {
        if let Some(image) = &changes.image {
            self.use_image(image);
        }
        for object in &mut self.objects {
            each_image(object, &mut |image| mirrored(image, &changes.mirrors));
        }
        if !changes.pull_secrets.is_empty() {
            self.pull_with(&changes.pull_secrets);
        }
        if let Some(namespace) = changes.namespace.as_ref().filter(|namespace| **namespace != self.namespace) {
            self.move_to(namespace);
        }
        self
    }

    /// Replaces the image of the controllers, and their arguments with this image.
    fn use_image(&mut self, image: &str) {
        let olds: Vec<String> = self
            .objects
            .iter_mut()
            .flat_map(templates)
            .filter_map(|pod| pod.pointer("/containers/0/image").and_then(Value::as_str).map(str::to_owned))
            .collect();
        for object in &mut self.objects {
            each_image(object, &mut |text| olds.iter().any(|old| old == text).then(|| image.to_owned()));
        }
    }

    fn pull_with(&mut self, secrets: &[String]) {
        let references: Vec<Value> = secrets.iter().map(|name| json!({ "name": name })).collect();
        for object in &mut self.objects {
            match object::kind(object) {
                "ServiceAccount" => object["imagePullSecrets"] = references.clone().into(),
                "CatalogSource" => object["spec"]["secrets"] = json!(secrets),
                _ => templates(object).into_iter().for_each(|pod| pod["imagePullSecrets"] = references.clone().into()),
            }
        }
    }

    fn move_to(&mut self, namespace: &str) {
        let old = std::mem::replace(&mut self.namespace, namespace.to_owned());
        let is_old = |value: &Value| value.as_str() == Some(old.as_str());
        let rename = |value: Option<&mut Value>| {
            if let Some(value) = value.filter(|value| is_old(value)) {
                *value = namespace.into();
            }
        };
        let mut added = None;
        for object in &mut self.objects {
            rename(object.pointer_mut("/metadata/namespace"));
            match object::kind(object) {
                "Namespace" if object::name(object) == old => {
                    // The Lease of this project's controllers is always in the default namespace.
                    if self.distribution == Distribution::Own {
                        added = Some(object.clone());
                    }
                    rename(object.pointer_mut("/metadata/name"));
                }
                "ClusterRoleBinding" | "RoleBinding" => {
                    for subject in items(object, "/subjects") {
                        rename(subject.get_mut("namespace"));
                    }
                }
                "OperatorGroup" => {
                    for target in items(object, "/spec/targetNamespaces") {
                        rename(Some(target));
                    }
                }
                _ => {}
            }
            for pod in templates(object) {
                for container in items(pod, "/containers") {
                    for part in ["/command", "/args"] {
                        move_flags(items(container, part), &old, namespace);
                    }
                }
            }
        }
        self.objects.extend(added);
        self.objects.sort_by_key(stage);
    }
}

/// Replaces the namespace in `--namespace olm` and `--namespace=olm`.
fn move_flags(words: &mut [Value], old: &str, new: &str) {
    let mut is_value = false;
    for word in words {
        let text = word.as_str().unwrap_or_default().to_owned();
        let (flag, value) = text.split_once('=').map_or((text.as_str(), None), |(flag, value)| (flag, Some(value)));
        let is_flag = flag.starts_with('-') && NAMESPACE_FLAGS.contains(&flag.trim_start_matches('-'));
        match value {
            Some(value) if is_flag && value == old => *word = format!("{flag}={new}").into(),
            None if is_value && text == old => *word = new.into(),
            _ => {}
        }
        is_value = is_flag && value.is_none();
    }
}

/// Returns the pod specs of a Deployment or a ClusterServiceVersion.
fn templates(object: &mut Value) -> Vec<&mut Value> {
    match object::kind(object) {
        "Deployment" => object.pointer_mut("/spec/template/spec").into_iter().collect(),
        "ClusterServiceVersion" => items(object, "/spec/install/spec/deployments")
            .iter_mut()
            .filter_map(|deployment| deployment.pointer_mut("/spec/template/spec"))
            .collect(),
        _ => Vec::new(),
    }
}

fn items<'a>(value: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    value.pointer_mut(pointer).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// Replaces image references for which `change` returns another one: in containers, in their arguments and variables, and in catalogs.
fn each_image(object: &mut Value, change: &mut dyn FnMut(&str) -> Option<String>) {
    if object::kind(object) == "CatalogSource" {
        edit(object.pointer_mut("/spec/image"), change);
    }
    for pod in templates(object) {
        for list in ["/initContainers", "/containers"] {
            for container in items(pod, list) {
                edit(container.get_mut("image"), change);
                for part in ["/command", "/args"] {
                    for word in items(container, part) {
                        edit(Some(word), change);
                    }
                }
                for variable in items(container, "/env") {
                    edit(variable.get_mut("value"), change);
                }
            }
        }
    }
}

/// Changes a reference, or the one after `--flag=`.
fn edit(value: Option<&mut Value>, change: &mut dyn FnMut(&str) -> Option<String>) {
    let Some(value) = value else { return };
    let Some(text) = value.as_str() else { return };
    let (flag, reference) = match text.split_once('=') {
        Some((flag, reference)) if flag.starts_with('-') => (format!("{flag}="), reference),
        _ => (String::new(), text),
    };
    if let Some(changed) = change(reference.trim()) {
        *value = format!("{flag}{changed}").into();
    }
}

/// Returns the reference with the first prefix that is replaced. A prefix ends at a separator.
fn mirrored(image: &str, mirrors: &[Mirror]) -> Option<String> {
    mirrors.iter().find_map(|Mirror { from, to }| {
        let rest = image.strip_prefix(from.as_str())?;
        let ends = rest.is_empty() || rest.starts_with(['/', ':', '@']) || from.ends_with('/');
        ends.then(|| format!("{to}{rest}"))
    })
}
