//! Manifests as they are in a cluster without OLM: with defaults, in the namespace of the installation.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use jiff::SignedDuration;
use olm_core::api::object::{self, ObjectRef, at, text};
use olm_core::bundle::synthesis::Manifest;
use serde_json::Value;

use crate::scenario::engine::Engine as _;
use crate::scenario::sim::SimEngine;
use crate::sweep::case::namespace_object;

/// Limit of virtual time for the controllers of Kubernetes.
const SETTLING: SignedDuration = SignedDuration::from_mins(1);
/// The fields of objects that name the namespace of a Service.
const SERVICES: [&str; 2] = ["/spec/service/namespace", "/spec/conversion/webhook/clientConfig/service/namespace"];

/// The kinds that OLM creates in their current version from manifests of any version.
const GENERATED: [&str; 7] = [
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "Role",
    "RoleBinding",
    "ValidatingWebhookConfiguration",
];

/// Manifests, and the objects that they are in a cluster.
pub(super) struct Given {
    manifests: Vec<Manifest>,
    objects: Vec<Value>,
    /// All objects of that cluster, with those of Kubernetes.
    pub(super) cluster: Vec<Value>,
}

impl Given {
    /// Applies manifests to a simulated cluster, those of the operator's namespace in `namespace`.
    pub(super) fn new(manifests: &[Manifest], namespace: &str) -> Result<Self> {
        let mut deployments = manifests.iter().filter(|manifest| manifest.is("apps", "Deployment"));
        let home = deployments.find_map(|d| Some(object::namespace(&d.object)).filter(|name| !name.is_empty()));
        let accounts = accounts(manifests);
        let mut engine = SimEngine::start()?;
        engine.apply(&namespace_object(namespace))?;
        let mut order: Vec<usize> = (0..manifests.len()).collect();
        // As kubectl applies a directory: definitions before what they define.
        order.sort_by_key(|number| match manifests[*number].kind() {
            "Namespace" => 0,
            "CustomResourceDefinition" => 1,
            _ => 2,
        });
        let mut applied: BTreeMap<usize, ObjectRef> = BTreeMap::new();
        let mut objects: Vec<Value> = manifests.iter().map(|manifest| manifest.object.clone()).collect();
        for number in order {
            let simulation = engine.simulation();
            let gvk = object::gvk(&objects[number]);
            let Some(kind) = simulation.api().kind(&gvk.group, &gvk.kind) else { continue };
            let kind = kind.clone();
            move_to(&mut objects[number], home.unwrap_or_default(), namespace, kind.namespaced, &accounts);
            let place = object::namespace(&objects[number]).to_owned();
            if !place.is_empty() && place != namespace {
                engine.apply(&namespace_object(&place))?;
            }
            let is_served = kind.versions.iter().any(|version| version.served && version.name == gvk.version);
            if !is_served && GENERATED.contains(&gvk.kind.as_str()) {
                objects[number]["apiVersion"] = format!("{}/{}", gvk.group, kind.storage_version).into();
            }
            // The cluster may refuse an object, which is then compared as it is in the file.
            if engine.apply(&objects[number]).is_ok() {
                engine.simulation().establish();
                applied.insert(number, ObjectRef::from_object(&objects[number]));
            }
        }
        engine.simulation().settle(SETTLING);
        let api = engine.simulation().api();
        for (number, target) in &applied {
            if let Some(object) = api.get(target) {
                objects[*number] = object.clone();
            }
        }
        let cluster = api.iter().map(std::borrow::Cow::into_owned).collect();
        Ok(Self { manifests: manifests.to_vec(), objects, cluster })
    }

    /// Returns the manifests.
    pub(super) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter()
    }

    /// Returns the manifests with their objects.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&Manifest, &Value)> {
        self.manifests.iter().zip(&self.objects)
    }
}

/// Returns the ServiceAccounts of the Deployments.
fn accounts(manifests: &[Manifest]) -> BTreeSet<String> {
    let deployments = manifests.iter().filter(|manifest| manifest.is("apps", "Deployment"));
    let account = |deployment: &Manifest| {
        let pod = at(&deployment.object, &["spec", "template", "spec"]);
        let names = ["serviceAccountName", "serviceAccount"].map(|field| text(pod, &[field]));
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("default").to_owned()
    };
    deployments.map(account).collect()
}

/// Changes the operator's namespace, wherever the object names it. Bindings of ServiceAccounts that no Deployment uses name a
/// namespace that OLM does not change.
fn move_to(object: &mut Value, home: &str, namespace: &str, is_namespaced: bool, accounts: &BTreeSet<String>) {
    let is_home = |place: &str| place.is_empty() || place == home || home.is_empty();
    let metadata = object::map_mut(object, &["metadata"]);
    let place = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !is_namespaced {
        metadata.remove("namespace");
    } else if is_home(place) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let move_it = |value: &mut Value| {
        if value.as_str().is_some_and(is_home) {
            *value = namespace.into();
        }
    };
    for pointer in SERVICES {
        object.pointer_mut(pointer).into_iter().for_each(move_it);
    }
    for webhook in super::items_mut(object, "/webhooks") {
        webhook.pointer_mut("/clientConfig/service/namespace").into_iter().for_each(move_it);
    }
    for subject in super::items_mut(object, "/subjects") {
        if text(subject, &["kind"]) == "ServiceAccount" && accounts.contains(text(subject, &["name"])) {
            let place = object::map_mut(subject, &[]).entry("namespace").or_insert_with(|| "".into());
            move_it(place);
        }
    }
}
