//! The fields that OLM itself writes into objects for webhooks and APIs, and rewrites with every certificate.

use std::collections::BTreeSet;

use serde_json::Value;

use super::serving::Server;
use super::{apiservices, webhooks};
use crate::api::cluster_service_version::Csv;
use crate::api::{kinds, labels, object};
use crate::plan::certificate::{AUTHORITY, AUTHORITY_HASH, CERTIFICATE, KEY};

/// Placeholder for generated values.
const GENERATED: &str = "(generated)";

/// The annotation of newer OLM versions on objects that mount a certificate.
const CERTIFICATE_HASH: &str = "olm.certificate-hash";

/// What is generated for some ClusterServiceVersions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Secrets with certificates: namespace and name.
    secrets: BTreeSet<(String, String)>,
    /// Deployments that mount them: namespace and name.
    deployments: BTreeSet<(String, String)>,
    /// APIServices.
    services: BTreeSet<String>,
    /// CustomResourceDefinitions with a conversion webhook.
    definitions: BTreeSet<String>,
    /// Namespace and name of the ClusterServiceVersions, which are the owners in configurations of webhooks.
    owners: BTreeSet<(String, String)>,
}

impl Generated {
    /// Adds what is generated for that ClusterServiceVersion.
    pub fn add(&mut self, csv: &Value) {
        let csv = Csv::new(csv);
        let here = |name: String| (csv.namespace().to_owned(), name);
        for server in Server::all(csv) {
            self.secrets.insert(here(server.secret()));
            self.deployments.insert(here(server.name().to_owned()));
        }
        self.services.extend(csv.owned_api_services().iter().map(apiservices::name));
        let is_owned = |name: &&str| csv.owned_crd_names().any(|owned| owned == *name);
        self.definitions.extend(webhooks::converted(csv).filter(is_owned).map(str::to_owned));
        self.owners.insert(here(csv.name().to_owned()));
    }

    /// Removes a Secret that OLM does not create.
    pub fn forget_secret(&mut self, namespace: &str, name: &str) {
        self.secrets.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// Returns whether that value of that Secret is generated.
    pub fn is_value(&self, secret: &Value, key: &str) -> bool {
        self.secrets.contains(&place(secret)) && [AUTHORITY, CERTIFICATE, KEY].contains(&key)
    }

    /// Replaces everything that is generated in an object by the placeholder, except the values of Secrets.
    pub fn stand_in(&self, json: &mut Value) {
        let name = object::name(json).to_owned();
        let put = |json: &mut Value, path: &str| {
            if let Some(text) =
                json.pointer_mut(path).filter(|value| value.as_str().is_some_and(|text| !text.is_empty()))
            {
                *text = GENERATED.into();
            }
        };
        let Some(kind) = kinds::find(&object::gvk(json).group, object::kind(json)) else { return };
        match *kind {
            kinds::SECRET if self.secrets.contains(&place(json)) => {
                put(json, &format!("/metadata/annotations/{AUTHORITY_HASH}"));
            }
            kinds::DEPLOYMENT if self.deployments.contains(&place(json)) => {
                for key in [AUTHORITY_HASH, CERTIFICATE_HASH] {
                    put(json, &format!("/spec/template/metadata/annotations/{key}"));
                }
            }
            kinds::API_SERVICE if self.services.contains(&name) => put(json, "/spec/caBundle"),
            kinds::CUSTOM_RESOURCE_DEFINITION if self.definitions.contains(&name) => {
                put(json, "/spec/conversion/webhook/clientConfig/caBundle");
            }
            kinds::VALIDATING_WEBHOOK_CONFIGURATION | kinds::MUTATING_WEBHOOK_CONFIGURATION
                if self.is_configuration(json) =>
            {
                for index in 0..object::list(json, &["webhooks"]).len() {
                    put(json, &format!("/webhooks/{index}/clientConfig/caBundle"));
                }
            }
            _ => {}
        }
    }

    fn is_configuration(&self, json: &Value) -> bool {
        let label = |key| object::label(json, key).unwrap_or_default().to_owned();
        label(labels::MANAGED) == "true"
            && !label(webhooks::GENERATE_NAME).is_empty()
            && label(labels::OWNER_KIND) == "ClusterServiceVersion"
            && self.owners.contains(&(label(labels::OWNER_NAMESPACE), label(labels::OWNER)))
    }
}

/// Returns the placeholder for generated values.
pub fn generated() -> Value {
    GENERATED.into()
}

fn place(json: &Value) -> (String, String) {
    (object::namespace(json).to_owned(), object::name(json).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gate() -> Generated {
        let mut generated = Generated::default();
        generated.add(&json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "gate.v1", "namespace": "garden" },
            "spec": {
                "customresourcedefinitions": { "owned": [{ "name": "roses.example.com", "kind": "Rose", "version": "v1" }] },
                "apiservicedefinitions": { "owned": [
                    { "group": "metrics.example.com", "version": "v1", "kind": "Pot", "name": "pots", "deploymentName": "gate" },
                ] },
                "webhookdefinitions": [
                    { "type": "ConversionWebhook", "generateName": "c", "deploymentName": "gate",
                      "conversionCRDs": ["roses.example.com", "certificates.cert-manager.io"] },
                ],
                "install": { "strategy": "deployment", "spec": { "deployments": [{ "name": "gate", "spec": {} }] } },
            },
        }));
        generated
    }

    /// Returns the object with everything generated replaced.
    fn replaced(api_version: &str, kind: &str, name: &str, fields: &Value) -> Value {
        let mut object = fields.clone();
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = "garden".into();
        gate().stand_in(&mut object);
        object
    }

    #[test]
    fn only_the_fields_that_olm_writes_are_replaced() {
        let conversion = json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": "QQ==" } } } } });
        let of = |name| {
            let crd = replaced("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, &conversion);
            crd.pointer("/spec/conversion/webhook/clientConfig/caBundle").cloned().unwrap()
        };
        assert_eq!((of("roses.example.com"), of("tulips.example.com")), (generated(), "QQ==".into()));
        assert_eq!(of("certificates.cert-manager.io"), "QQ==", "only definitions that it owns");
        let service = json!({ "spec": { "caBundle": "QQ==" } });
        let of = |name| replaced("apiregistration.k8s.io/v1", "APIService", name, &service)["spec"]["caBundle"].clone();
        assert_eq!((of("v1.metrics.example.com"), of("v1.example.com")), (generated(), "QQ==".into()));
        let map = replaced("v1", "ConfigMap", "gate", &json!({ "data": { "caBundle": "QQ==" }, "caBundle": "QQ==" }));
        assert_eq!((&map["data"]["caBundle"], &map["caBundle"]), (&"QQ==".into(), &"QQ==".into()));
        let pods = json!({ "spec": { "template": { "metadata": { "annotations": { "olmcahash": "1" } } } } });
        let of = |name| {
            let deployment = replaced("apps/v1", "Deployment", name, &pods);
            deployment.pointer("/spec/template/metadata/annotations/olmcahash").cloned().unwrap()
        };
        assert_eq!((of("gate"), of("other")), (generated(), "1".into()));
    }

    #[test]
    fn only_configurations_of_its_own_are_replaced() {
        let of = |owner: &str| {
            let configuration = json!({
                "metadata": { "labels": { "olm.managed": "true", "olm.owner": owner, "olm.owner.namespace": "garden",
                    "olm.owner.kind": "ClusterServiceVersion", "olm.webhook-description-generate-name": "c" } },
                "webhooks": [{ "clientConfig": { "caBundle": "QQ==" } }],
            });
            let kind = "MutatingWebhookConfiguration";
            replaced("admissionregistration.k8s.io/v1", kind, "c-1", &configuration)["webhooks"][0]["clientConfig"]["caBundle"].clone()
        };
        assert_eq!((of("gate.v1"), of("other.v1")), (generated(), "QQ==".into()));
    }

    #[test]
    fn only_values_of_the_certificate_are() {
        let secret =
            |name: &str| json!({ "metadata": { "namespace": "garden", "name": name }, "type": "kubernetes.io/tls" });
        let mut gate = gate();
        let (ours, theirs) = (secret("gate-service-cert"), secret("their-tls"));
        assert!(gate.is_value(&ours, "tls.key") && gate.is_value(&ours, "olmCAKey"));
        assert!(!gate.is_value(&ours, "password") && !gate.is_value(&theirs, "tls.key"));
        gate.forget_secret("garden", "gate-service-cert");
        assert!(!gate.is_value(&ours, "tls.key"), "the bundle contains it");
    }
}
