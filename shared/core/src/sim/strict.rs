//! Strict field validation of the API server, as kubectl requests it (`fieldValidation=Strict`).

use std::sync::LazyLock;

use serde_json::Value;

use super::api_server::ApiServer;
use super::kinds::{KindSchema, Kinds, ResourceKind};
use super::typed;
use crate::api::crd;
use crate::api::object::{Gvk, at, gvk};
use crate::structural::{self, Unknown, Walk};

/// The kinds that objects are validated against: those of Kubernetes, those of OLM, and those of further
/// CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct Strict {
    kinds: Kinds,
}

impl Default for Strict {
    fn default() -> Self {
        static KNOWN: LazyLock<Kinds> = LazyLock::new(|| {
            let mut kinds = Kinds::built_in();
            crd::all().iter().filter_map(ResourceKind::from_crd).for_each(|kind| kinds.register(kind));
            kinds
        });
        Self { kinds: KNOWN.clone() }
    }
}

impl Strict {
    /// Returns the kinds that a server knows.
    pub fn new(server: &ApiServer) -> Self {
        Self { kinds: server.kinds.clone() }
    }

    /// Adds the kind that a CustomResourceDefinition defines.
    pub fn define(&mut self, object: &Value) {
        let Gvk { group, kind, .. } = gvk(object);
        if (group.as_str(), kind.as_str()) == ("apiextensions.k8s.io", "CustomResourceDefinition")
            && let Some(kind) = ResourceKind::from_crd(object)
        {
            self.kinds.register(kind);
        }
    }

    /// Returns the fields of an object that its kind does not have. For an unknown kind only the metadata is validated.
    pub fn unknown_fields(&self, object: &Value) -> Vec<Unknown> {
        let gvk = gvk(object);
        let kind = self.kinds.get(&gvk.group, &gvk.kind);
        let schema = kind.and_then(|kind| kind.version(&gvk.version)).map(|version| &version.schema);
        let mut found = match schema {
            Some(KindSchema::BuiltIn(type_)) => return typed::unknown_fields(type_, object),
            Some(KindSchema::Structural(schema)) => structural::unknown_fields(schema, object),
            Some(KindSchema::Anything) | None => Vec::new(),
        };
        let mut walk = Walk::default();
        walk.field("metadata", |walk| typed::visit_meta(at(object, &["metadata"]), walk));
        found.extend(walk.end());
        found
    }

    /// Returns whether objects of this kind are namespaced, or `None` for an unknown kind.
    pub fn is_namespaced(&self, gvk: &Gvk) -> Option<bool> {
        self.kinds.get(&gvk.group, &gvk.kind).map(|kind| kind.namespaced)
    }

    /// Returns a kind of the group with a similar name, or `None` if the kind is known.
    pub fn similar_kind(&self, gvk: &Gvk) -> Option<&str> {
        if self.kinds.get(&gvk.group, &gvk.kind).is_some() {
            return None;
        }
        let of_group = self.kinds.iter().filter(|kind| kind.group == gvk.group).map(|kind| &kind.kind);
        structural::similar(&gvk.kind, of_group)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unknown(object: &Value) -> Vec<(String, Option<String>)> {
        Strict::default().unknown_fields(object).into_iter().map(|u| (u.to_string(), u.similar)).collect()
    }

    #[test]
    fn misspelled_fields_are_found() {
        let subscription = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "s", "namepsace": "n"},
            "spec": {"name": "p", "source": "c", "sourceNamespace": "olm", "chanel": "x", "instalPlanApproval": "Manual",
                     "config": {"env": [{"name": "A", "vale": "b"}]}}});
        let wanted = [
            ("spec.chanel", Some("channel")),
            ("spec.config.env[0].vale", Some("value")),
            ("spec.instalPlanApproval", Some("installPlanApproval")),
            ("metadata.namepsace", Some("namespace")),
        ];
        let wanted: Vec<_> = wanted.into_iter().map(|(p, s)| (p.to_owned(), s.map(str::to_owned))).collect();
        assert_eq!(unknown(&subscription), wanted);
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"any": "x"}},
            "spec": {"replica": 1, "template": {"spec": {"containers": [{"name": "c", "imgae": "i", "resources": {"limits": {"any": 1}}}]}}}});
        let wanted = [("spec.replica", Some("replicas")), ("spec.template.spec.containers[0].imgae", Some("image"))];
        let wanted: Vec<_> = wanted.into_iter().map(|(p, s)| (p.to_owned(), s.map(str::to_owned))).collect();
        assert_eq!(unknown(&deployment), wanted);
    }

    #[test]
    fn free_form_fields_are_accepted() {
        let crd = |schema: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "roses.garden"}, "spec": {"group": "garden", "scope": "Namespaced",
            "names": {"kind": "Rose", "plural": "roses"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}}]}})
        };
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": "true"}],
            "properties": {"size": {"type": "integer", "default": {"any": 1}, "enum": [{"x": 1}]}}}}});
        let definition = crd(schema);
        assert_eq!(unknown(&definition), []);
        let rose = json!({"apiVersion": "garden/v1", "kind": "Rose", "metadata": {"name": "r", "annotations": {"a": "b"}}, "spec": {"sizes": 1}});
        assert_eq!(unknown(&rose), [], "the kind is unknown");
        let mut strict = Strict::default();
        strict.define(&definition);
        let found = strict.unknown_fields(&rose);
        assert_eq!(
            found.iter().map(|u| (u.to_string(), u.similar.as_deref())).collect::<Vec<_>>(),
            [("spec.sizes".to_owned(), Some("size"))]
        );
        assert_eq!(strict.is_namespaced(&gvk(&rose)), Some(true));
        let misspelt = Gvk::new("operators.coreos.com", "v1alpha1", "Subscripton");
        assert_eq!(strict.similar_kind(&misspelt), Some("Subscription"));
    }

    #[test]
    fn definitions_of_olm_and_server_fields_are_known() {
        for definition in crd::all() {
            assert_eq!(unknown(&definition), []);
        }
        let dumped = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "immutable": true, "metadata": {
            "name": "c", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1, "selfLink": "/x",
            "creationTimestamp": null, "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}],
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": true}]}});
        assert_eq!(unknown(&dumped), []);
    }
}
