//! Defaults of pods and pod templates, and the fields that admission adds to a pod.

use serde_json::{Value, json};

use super::{child, each, set, set_always, with};
use crate::api::object::{list, text};

/// Default mode of files in a ConfigMap or Secret volume.
const DEFAULT_MODE: i64 = 0o644;
/// Lifetime of a projected ServiceAccount token in seconds.
const TOKEN_SECONDS: i64 = 3600;

/// Sets the defaults of a Pod.
pub(super) fn pod(object: &mut Value) {
    let spec = child(object, "spec");
    pod_spec(spec);
    set(spec, "enableServiceLinks", true);
    let host_network = spec["hostNetwork"] == json!(true);
    for containers in ["containers", "initContainers"] {
        each(spec, containers, |container| {
            if host_network {
                each(container, "ports", |port| {
                    let number = port["containerPort"].clone();
                    set(port, "hostPort", number);
                });
            }
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (resource, limit) in limits {
                set(child(child(container, "resources"), "requests"), &resource, limit);
            }
        });
    }
    set(child(object, "status"), "phase", "Pending");
}

/// Sets the defaults of the pod template under `template`.
pub(super) fn template(spec: &mut Value) {
    let template = child(spec, "template");
    child(template, "metadata");
    pod_spec(child(template, "spec"));
}

fn pod_spec(spec: &mut Value) {
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "restartPolicy", "Always");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    child(spec, "securityContext");
    // serviceAccount is the deprecated alias of serviceAccountName: the server keeps them equal.
    let account = match text(spec, &["serviceAccountName"]) {
        "" => text(spec, &["serviceAccount"]),
        name => name,
    }
    .to_owned();
    if !account.is_empty() {
        set_always(spec, "serviceAccount", account.as_str());
        set_always(spec, "serviceAccountName", account.as_str());
    }
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, containers, container);
    }
    each(spec, "volumes", volume);
}

fn container(container: &mut Value) {
    let policy = if pulls_always(text(container, &["image"])) { "Always" } else { "IfNotPresent" };
    set(container, "imagePullPolicy", policy);
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    child(container, "resources");
    each(container, "ports", |port| set(port, "protocol", "TCP"));
    each(container, "env", |env| with(env, "valueFrom", field_ref));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        with(container, probe, |probe| {
            set(probe, "timeoutSeconds", 1);
            set(probe, "periodSeconds", 10);
            set(probe, "successThreshold", 1);
            set(probe, "failureThreshold", 3);
            with(probe, "httpGet", http_get);
            with(probe, "grpc", |grpc| set(grpc, "service", ""));
        });
    }
    with(container, "lifecycle", |lifecycle| {
        for hook in ["postStart", "preStop"] {
            with(lifecycle, hook, |hook| with(hook, "httpGet", http_get));
        }
    });
}

/// Returns whether the default pull policy is `Always`: the tag is `latest`, or there is neither tag nor digest.
fn pulls_always(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn http_get(get: &mut Value) {
    set(get, "path", "/");
    set(get, "scheme", "HTTP");
}

fn field_ref(source: &mut Value) {
    with(source, "fieldRef", |field| set(field, "apiVersion", "v1"));
    with(source, "resourceFieldRef", |field| set(field, "divisor", "0"));
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|v| v.len() == 1 && v.contains_key("name")) {
        child(volume, "emptyDir");
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        with(volume, source, |source| set(source, "defaultMode", DEFAULT_MODE));
    }
    with(volume, "hostPath", |path| set(path, "type", ""));
    with(volume, "downwardAPI", |source| each(source, "items", field_ref));
    with(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            with(source, "downwardAPI", |source| each(source, "items", field_ref));
            with(source, "serviceAccountToken", |token| set(token, "expirationSeconds", TOKEN_SECONDS));
        });
    });
    with(volume, "ephemeral", |source| {
        with(source, "volumeClaimTemplate", |claim| with(claim, "spec", |spec| set(spec, "volumeMode", "Filesystem")));
    });
}

/// Adds the fields that admission sets in a new pod: its ServiceAccount with a token volume, its priority, and the tolerations
/// of nodes that are not ready. `priority` is the value of its priority class, `suffix` the five characters of the volume's
/// name.
pub(in super::super) fn admit(object: &mut Value, priority: i64, suffix: &str) {
    let spec = child(object, "spec");
    set(spec, "serviceAccountName", "default");
    let account = spec["serviceAccountName"].clone();
    set(spec, "serviceAccount", account);
    set(spec, "priority", priority);
    set(spec, "preemptionPolicy", "PreemptLowerPriority");
    let mut tolerations = list(spec, &["tolerations"]).to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations
            .iter()
            .any(|t| (t["key"] == key || t["key"].is_null()) && (t["effect"] == "NoExecute" || t["effect"].is_null()));
        if !tolerated {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    set_always(spec, "tolerations", tolerations);
    let class = quality(spec);
    if spec["automountServiceAccountToken"] != json!(false) {
        mount_token(spec, suffix);
    }
    set(child(object, "status"), "qosClass", class);
}

/// Returns the QoS class of the pod, from the resource requests of its containers.
fn quality(spec: &Value) -> &'static str {
    let containers = || ["containers", "initContainers"].into_iter().flat_map(|field| list(spec, &[field]));
    let resources = |container: &Value, kind: &str| {
        ["cpu", "memory"]
            .map(|resource| container["resources"][kind][resource].clone())
            .map(|q| (!q.is_null()).then_some(q))
    };
    let asks = |container: &Value| ["limits", "requests"].iter().any(|kind| resources(container, kind) != [None, None]);
    let fixed = |container: &Value| {
        let limits = resources(container, "limits");
        limits.iter().all(Option::is_some) && limits == resources(container, "requests")
    };
    if !containers().any(asks) {
        "BestEffort"
    } else if containers().all(fixed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

fn mount_token(spec: &mut Value, suffix: &str) {
    let name = format!("kube-api-access-{suffix}");
    let mount = json!({"name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
    for containers in ["containers", "initContainers"] {
        each(spec, containers, |container| {
            let mut mounts = list(container, &["volumeMounts"]).to_vec();
            mounts.push(mount.clone());
            set_always(container, "volumeMounts", mounts);
        });
    }
    let mut volumes = list(spec, &["volumes"]).to_vec();
    volumes.push(json!({"name": name, "projected": {"defaultMode": DEFAULT_MODE, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}}));
    set_always(spec, "volumes", volumes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, always) in [
            ("registry.example.com/operator:1", false),
            ("registry.example.com/operator:latest", true),
            ("registry.example.com:5000/operator", true),
            ("operator", true),
            ("operator@sha256:00", false),
            ("operator:latest@sha256:00", false),
        ] {
            assert_eq!(pulls_always(image), always, "{image}");
        }
    }

    #[test]
    fn a_template_gets_the_defaults_of_the_server() {
        let mut spec = json!({"template": {"spec": {
            "serviceAccountName": "rose-sa",
            "containers": [{
                "name": "c", "image": "i:1", "ports": [{"containerPort": 80}],
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "livenessProbe": {"httpGet": {"port": 80}},
            }],
            "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}],
        }}});
        template(&mut spec);
        assert_eq!(
            spec,
            json!({"template": {"metadata": {}, "spec": {
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "securityContext": {}, "terminationGracePeriodSeconds": 30,
                "serviceAccount": "rose-sa", "serviceAccountName": "rose-sa",
                "containers": [{
                    "name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "env": [{"name": "N", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                    "livenessProbe": {
                        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
                    },
                }],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "s", "defaultMode": 420}}],
            }}})
        );
    }
}
