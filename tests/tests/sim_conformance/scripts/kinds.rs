//! Kinds: their defaults, their rules, and the definition of new ones.

use olm_core::sim::{Patch, Propagation};
use serde_json::{Value, json};

use super::{has_condition, is_absent, with};
use crate::transcript::Transcript;

pub(super) fn services(t: &mut Transcript<'_>) {
    let service = |t: &Transcript<'_>, name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": t.namespace}, "spec": spec});
    let made = t.create(service(t, "plain", json!({"ports": [{"port": 80}], "selector": {"app": "rose"}})));
    t.update(
        with(
            made.clone(),
            json!({"spec": {"ports": [{"port": 81, "targetPort": "http"}], "clusterIP": null, "clusterIPs": null}}),
        ),
        None,
    );
    t.patch(&made, Patch::Merge(json!({"spec": {"clusterIP": "10.0.0.77"}})));
    t.create(service(
        t,
        "headless",
        json!({"clusterIP": "None", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}),
    ));
    t.create(service(t, "external", json!({"type": "ExternalName", "externalName": "example.com"})));
    t.create(service(t, "sticky", json!({"sessionAffinity": "ClientIP", "ports": [{"port": 80}]})));
    t.create(service(t, "none", json!({})));
    t.create(service(t, "unnamed", json!({"ports": [{"port": 80}, {"port": 81}]})));
    t.create(service(t, "zero", json!({"ports": [{"port": 0}]})));
}

pub(super) fn access(t: &mut Transcript<'_>) {
    let rbac = |t: &Transcript<'_>, kind: &str, name: &str, rest: Value| {
        let object = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
        let object = if kind.starts_with("Cluster") {
            object
        } else {
            with(object, json!({"metadata": {"namespace": t.namespace}}))
        };
        with(object, rest)
    };
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    t.create(rbac(t, "Role", "empty", json!({})));
    t.create(rbac(t, "Role", "none", json!({"rules": []})));
    t.create(rbac(
        t,
        "Role",
        "full",
        json!({"rules": [rule("get"), {"apiGroups": ["a"], "resources": ["b"], "resourceNames": [], "verbs": ["*"]}]}),
    ));
    t.create(rbac(t, "Role", "no-verbs", json!({"rules": [{"apiGroups": [""], "resources": ["pods"]}]})));
    t.create(rbac(t, "Role", "no-groups", json!({"rules": [{"resources": ["pods"], "verbs": ["get"]}]})));
    t.create(rbac(t, "Role", "no-resources", json!({"rules": [{"apiGroups": [""], "verbs": ["get"]}]})));
    t.create(rbac(t, "Role", "urls", json!({"rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]})));
    t.create(rbac(
        t,
        "ClusterRole",
        "mixed-urls",
        json!({"rules": [{"apiGroups": [""], "nonResourceURLs": ["/x"], "verbs": ["get"]}]}),
    ));
    let binding = t.create(rbac(t, "RoleBinding", "b", json!({
        "roleRef": {"kind": "Role", "name": "full"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s", "namespace": "x"}],
    })));
    t.patch(&binding, Patch::Merge(json!({"roleRef": {"name": "other"}})));
    t.create(rbac(
        t,
        "RoleBinding",
        "bad",
        json!({"roleRef": {"kind": "Thing", "name": ""}, "subjects": [{"kind": "User", "name": ""}]}),
    ));
    t.create(rbac(
        t,
        "ClusterRoleBinding",
        "access-b",
        json!({"roleRef": {"kind": "ClusterRole", "name": "x"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
    ));
    let aggregate = t.create(rbac(
        t,
        "ClusterRole",
        "access-all",
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to": "access"}}]}}),
    ));
    t.create(rbac(
        t,
        "ClusterRole",
        "access-2",
        json!({"metadata": {"labels": {"to": "access"}}, "rules": [rule("get"), rule("list")]}),
    ));
    t.wait(&aggregate, |o| o["rules"].as_array().is_some_and(|rules| rules.len() == 2));
    t.create(rbac(
        t,
        "ClusterRole",
        "access-1",
        json!({"metadata": {"labels": {"to": "access"}}, "rules": [rule("watch"), rule("get")]}),
    ));
    t.wait(&aggregate, |o| o["rules"].as_array().is_some_and(|rules| rules.len() == 3));
    t.delete(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "access-1"}}),
        Propagation::Background,
    );
    t.delete(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "access-2"}}),
        Propagation::Background,
    );
    t.wait(&aggregate, |o| o["rules"].as_array().is_none_or(Vec::is_empty));
}

pub(super) fn small_kinds(t: &mut Transcript<'_>) {
    let object = |t: &Transcript<'_>, api_version: &str, kind: &str, name: &str, rest: Value| {
        with(
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": t.namespace}}),
            rest,
        )
    };
    t.create(object(t, "v1", "Secret", "s", json!({"stringData": {"password": "x"}, "data": {"a": "Yg=="}})));
    let secret = t.create(object(t, "v1", "Secret", "typed", json!({"type": "example.com/t"})));
    t.patch(&secret, Patch::Merge(json!({"type": "Opaque"})));
    t.create(object(
        t,
        "v1",
        "Secret",
        "tls",
        json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}),
    ));
    t.create(object(t, "v1", "ConfigMap", "c", json!({"data": {"a": ""}, "binaryData": {"b": "AA=="}})));
    t.create(object(t, "v1", "ServiceAccount", "sa", json!({"imagePullSecrets": [{"name": "pull"}]})));
    t.create(object(t, "networking.k8s.io/v1", "NetworkPolicy", "in", json!({"spec": {}})));
    t.create(object(
        t,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "out",
        json!({"spec": {"egress": [{"ports": [{"port": 53}]}]}}),
    ));
    t.create(object(
        t,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "none",
        json!({"spec": {"ingress": [], "policyTypes": ["Egress"]}}),
    ));
    t.create(object(
        t,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "small-kinds-a",
        json!({"metadata": {"namespace": null}, "value": 1000, "description": "d"}),
    ));
    let class = t.create(object(
        t,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "small-kinds-b",
        json!({"metadata": {"namespace": null}, "value": 5}),
    ));
    t.patch(&class, Patch::Merge(json!({"value": 6})));
    t.create(object(
        t,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "system-x",
        json!({"metadata": {"namespace": null}, "value": 5}),
    ));
    t.create(object(
        t,
        "v1",
        "Event",
        "e",
        json!({
            "involvedObject": {"kind": "ConfigMap", "namespace": t.namespace, "name": "c", "apiVersion": "v1"},
            "reason": "Because", "message": "of this", "type": "Normal", "count": 1, "source": {"component": "me"},
            "firstTimestamp": "2026-11-21T12:00:00Z", "lastTimestamp": "2026-11-21T12:00:00Z",
        }),
    ));
}

pub(super) fn extensions(t: &mut Transcript<'_>) {
    let webhook = |kind: &str, name: &str, webhook: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "webhooks": [with(json!({
                "name": "a.b.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                "rules": [{"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothing"], "operations": ["CREATE"]}],
            }), webhook)],
        })
    };
    let made = t.create(webhook("ValidatingWebhookConfiguration", "extensions-v", json!({})));
    t.patch(&made, Patch::Json(json!([{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 5}])));
    t.create(webhook(
        "MutatingWebhookConfiguration",
        "extensions-m",
        json!({"timeoutSeconds": 3, "failurePolicy": "Ignore"}),
    ));
    t.create(webhook(
        "ValidatingWebhookConfiguration",
        "bad",
        json!({"name": "short", "sideEffects": null, "admissionReviewVersions": []}),
    ));
    t.create(webhook("ValidatingWebhookConfiguration", "bad", json!({"timeoutSeconds": 31})));
    let service = |name: &str, spec: Value| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": with(json!({
                "group": "metrics.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
                "insecureSkipTLSVerify": true, "service": {"name": "nothing", "namespace": "default"},
            }), spec),
        })
    };
    let made = t.create(service("v1.metrics.example.com", json!({})));
    t.wait(&made, |o| has_condition(o, "Available", "False", ""));
    t.create(service("wrong", json!({})));
    t.delete(&made, Propagation::Background);
}

pub(super) fn definition(group: &str) -> Value {
    let spec = json!({"type": "object", "required": ["colour"], "properties": {
        "colour": {"type": "string", "enum": ["red", "white"]},
        "petals": {"type": "integer", "default": 5, "minimum": 1, "maximum": 9},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "maybe": {"type": "string", "nullable": true},
        "port": {"x-kubernetes-int-or-string": true},
        "since": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "leaves": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
        },
    }});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("roses.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": "Rose", "plural": "roses"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

pub(super) fn is_established(o: &Value) -> bool {
    has_condition(o, "Established", "True", "") && has_condition(o, "NamesAccepted", "True", "")
}

pub(super) fn definitions(t: &mut Transcript<'_>) {
    let made = t.create(definition("one.example.com"));
    t.wait(&made, is_established);
    t.create(with(definition("two.example.com"), json!({"metadata": {"name": "rose.two.example.com"}})));
    t.create(with(
        definition("two.example.com"),
        json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true}]}}),
    ));
    t.create(with(definition("two.example.com"), json!({"spec": {"scope": null}})));
    t.create(with(definition("two.example.com"), json!({"spec": {"preserveUnknownFields": true}})));
    t.create(definition("x.k8s.io"));
    let mut unstored = definition("two.example.com");
    unstored["spec"]["versions"][0]["storage"] = false.into();
    t.create(unstored);
    let mut shapeless = definition("two.example.com");
    shapeless["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"properties": {"a": {"type": "array"}}});
    t.create(shapeless);
    t.patch(&made, Patch::Merge(json!({"spec": {"scope": "Cluster"}})));
    t.patch(&made, Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})));
    let version = made["spec"]["versions"][0].clone();
    let two = json!([with(version.clone(), json!({"storage": false})), with(version.clone(), json!({"name": "v2"}))]);
    t.patch(&made, Patch::Merge(json!({"spec": {"versions": two}})));
    t.patch(&made, Patch::Merge(json!({"spec": {"versions": [with(version, json!({"name": "v2"}))]}})));
    t.delete(&made, Propagation::Background);
    t.wait(&made, is_absent);
}

pub(super) fn custom_resources(t: &mut Transcript<'_>) {
    let defined = t.create(definition("garden.example.com"));
    t.wait(&defined, is_established);
    let rose = |t: &Transcript<'_>, name: &str, spec: Value| json!({"apiVersion": "garden.example.com/v1", "kind": "Rose", "metadata": {"name": name, "namespace": t.namespace}, "spec": spec});
    // Served a moment after the condition is set.
    let probe = rose(t, "probe", json!({"colour": "red"}));
    t.until_served(&probe);
    let made =
        t.create(with(rose(t, "a", json!({"colour": "red", "thorns": 3})), json!({"status": {"x": 1}, "other": 1})));
    t.create(rose(t, "bad-1", json!({"petals": "many"})));
    t.create(rose(t, "bad-2", json!({"colour": "blue", "petals": 10, "name": "A"})));
    t.create(rose(t, "bad-3", json!({"colour": "red", "petals": 0, "name": "abcdefg", "maybe": null, "port": true})));
    t.create(rose(t, "bad-4", json!({"colour": "red", "tags": ["a", "a", "b"]})));
    t.create(rose(t, "bad-5", json!({"colour": "red", "leaves": [{"name": "x"}, {"name": "x"}, {}]})));
    t.create(rose(t, "bad-6", json!({"colour": null, "since": "yesterday"})));
    t.create(rose(t, "bad-7", json!("text")));
    t.create(rose(t, "bad-8", json!({"colour": "red", "name": null, "tags": [null]})));
    t.create(with(rose(t, "a", json!({})), json!({"metadata": {"labels": {"a": 1}}})));
    t.create(rose(t, "fine", json!({"colour": "red", "maybe": null, "petals": null, "port": "50%", "tags": [], "since": "2026-01-01T00:00:00Z"})));
    t.update(
        with(
            made.clone(),
            json!({"spec": {"colour": "white"}, "status": {"bloom": true}, "metadata": {"labels": {"a": "b"}}}),
        ),
        Some("status"),
    );
    let current = t.get(&made);
    t.update(
        with(
            current.clone(),
            json!({"spec": {"colour": "white"}, "status": {"bloom": false}, "metadata": {"labels": {"a": "b"}}}),
        ),
        None,
    );
    t.update(with(made.clone(), json!({"metadata": {"resourceVersion": null}})), None);
    t.update(made.clone(), None);
    t.patch(&made, Patch::Strategic(json!({"spec": {"colour": "red"}})));
    t.patch(&made, Patch::Merge(json!({"spec": {"petals": null}})));
    t.patch(&made, Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}})));
    t.delete(&made, Propagation::Background);
    t.apply(
        rose(t, "applied", json!({"colour": "red", "tags": ["a"], "leaves": [{"name": "x", "size": 1}]})),
        "me",
        false,
    );
    t.apply(
        rose(t, "applied", json!({"colour": "red", "tags": ["b"], "leaves": [{"name": "y", "size": 2}]})),
        "you",
        false,
    );
    t.apply(rose(t, "applied", json!({"colour": "white", "leaves": [{"name": "x", "size": 3}]})), "you", false);
    t.apply(rose(t, "applied", json!({"colour": "white", "leaves": [{"name": "x", "size": 3}]})), "you", true);
    t.apply(rose(t, "applied", json!({})), "me", false);
    t.delete(&defined, Propagation::Background);
    t.patch(&made, Patch::Merge(json!({"metadata": {"finalizers": null}})));
    t.wait(&defined, is_absent);
}
