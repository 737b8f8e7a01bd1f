//! Determines which objects have effects beyond their namespace regardless of their permissions, such as Pods that are not isolated from
//! their node, and Secrets that authenticate as another account.
//!
//! Pod specs are recognised by their structure in any kind of object: a ClusterServiceVersion, a `DaemonSet`, a custom resource. A Pod is
//! marked if the Pod Security Standard *baseline* of Kubernetes refuses it. Each mark has details (which path, which container), so that
//! an upgrade is marked only if it adds to the marks of the previous version.

use std::collections::BTreeSet;

use serde_json::Value;

use super::escalations::Own;
use super::{Change, Escalation, Object};
use crate::api::cluster_service_version::Csv;
use crate::api::object;

/// Types of Secrets that authenticate as another account.
const TOKENS: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/// Capabilities that containers have by default, or may add.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Safe sysctls: they are limited to one Pod.
const SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];

/// Prefix of the deprecated annotation for the `AppArmor` profile of a container.
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Probes and lifecycle hooks of a container, and their handlers. With a host, the kubelet sends the request to that host.
const PROBES: [&[&str]; 5] = [
    &["livenessProbe"],
    &["readinessProbe"],
    &["startupProbe"],
    &["lifecycle", "postStart"],
    &["lifecycle", "preStop"],
];
const HANDLERS: [&str; 2] = ["httpGet", "tcpSocket"];

/// Permitted SELinux types of a container.
const SELINUX: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Marks, each with its details.
type Marks = BTreeSet<(Escalation, String)>;

/// Kinds of admission webhooks and policies. Webhooks of ClusterServiceVersions are checked in `mark_csv`.
const ADMISSION: [&str; 6] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Maximum number of webhook rules of one ClusterServiceVersion that are compared individually.
const MOST_RULES: usize = 10_000;

/// Sets the marks that an object has after the plan and did not have before. `made` is the manifest of the step, for objects that are not
/// created.
pub(super) fn mark(object: &mut Object, made: Option<&Value>) {
    if matches!(object.change, Change::Delete | Change::Unchanged) {
        return;
    }
    let after = if object.after.is_null() { made } else { Some(&object.after) };
    let (mut after, before) = (after.map(marks_of).unwrap_or_default(), marks_of(&object.before));
    let kind = object.gvk.kind.as_str();
    if let Some(made) = made.filter(|_| ADMISSION.contains(&kind)) {
        let is_same = |field| object::at(made, &[field]) == object::at(&object.before, &[field]);
        if !["webhooks", "spec"].into_iter().all(is_same) {
            after.insert((Escalation::Admission, String::new()));
        }
    }
    object.escalations = kinds(after.difference(&before));
}

fn kinds<'m>(marks: impl Iterator<Item = &'m (Escalation, String)>) -> Vec<Escalation> {
    marks.map(|(mark, _)| *mark).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Sets the marks of a ClusterServiceVersion, for its Deployments and webhooks, that the replaced version did not have. Webhooks for
/// resources that the plan creates itself, or that both versions provide, are not marked.
pub(super) fn mark_csv(object: &mut Object, new: &Value, old: Option<&Value>, own: &Own) {
    if matches!(object.change, Change::Delete | Change::Unchanged) {
        return;
    }
    let deployments = |csv: &'_ Value| Csv::new(csv).deployments().to_vec();
    let old_deployments = old.map(deployments).unwrap_or_default();
    let before = |name: &str| -> Marks {
        old_deployments
            .iter()
            .filter(|deployment| object::text(deployment, &["name"]) == name)
            .flat_map(marks_of)
            .collect()
    };
    let marks = deployments(new).into_iter().flat_map(|deployment| {
        let before = before(object::text(&deployment, &["name"]));
        marks_of(&deployment).into_iter().filter(|mark| !before.contains(mark)).collect::<Vec<_>>()
    });
    let mut marks: Marks = marks.collect();
    let is_ordinary = |group: &str, resource: &str| {
        let resource = resource.split('/').next().unwrap_or_default();
        own.creates(group, resource)
            || own.provides(group, resource) && old.is_some_and(|old| claims(old, group, resource))
    };
    let known = old.map(|old| admission_rules(old, &|_, _| false)).unwrap_or_default();
    if admission_rules(new, &is_ordinary).difference(&known).next().is_some() {
        marks.insert((Escalation::Admission, String::new()));
    }
    object.escalations = kinds(marks.iter());
}

/// Reports whether a ClusterServiceVersion claims to provide these custom resources.
fn claims(csv: &Value, group: &str, resource: &str) -> bool {
    let name = format!("{resource}.{group}");
    Csv::new(csv).owned_crd_names().any(|owned| owned.eq_ignore_ascii_case(&name))
}

/// Returns the requests for which the admission webhooks of a ClusterServiceVersion are called, except for ordinary resources: a string for
/// each operation on each resource.
fn admission_rules(csv: &Value, is_ordinary: &dyn Fn(&str, &str) -> bool) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    for webhook in Csv::new(csv).webhooks() {
        let type_ = object::text(webhook, &["type"]);
        if type_ == "ConversionWebhook" {
            continue;
        }
        let selector = object::at(webhook, &["objectSelector"]);
        for rule in object::list(webhook, &["rules"]) {
            let texts = |field| object::list(rule, &[field]).iter().map(|text| text.as_str().unwrap_or_default());
            for (group, resource) in texts("apiGroups").flat_map(|g| texts("resources").map(move |r| (g, r))) {
                if is_ordinary(&group.to_ascii_lowercase(), &resource.to_ascii_lowercase()) {
                    continue;
                }
                for operation in texts("operations") {
                    if rules.len() >= MOST_RULES {
                        // The webhook counts as new as a whole.
                        return BTreeSet::from([webhook.to_string()]);
                    }
                    rules.insert(format!("{type_} {operation} {group}/{resource} {selector}"));
                }
            }
        }
    }
    rules
}

/// Returns the marks of an object.
fn marks_of(object: &Value) -> Marks {
    let mut marks = BTreeSet::new();
    match object::kind(object) {
        "Secret" if TOKENS.contains(&object::text(object, &["type"])) => {
            let account = object::annotation(object, "kubernetes.io/service-account.name").unwrap_or_default();
            marks.insert((Escalation::Tokens, account.to_owned()));
        }
        "PersistentVolume" => {
            let sources = ["hostPath", "local"].map(|source| object::at(object, &["spec", source]));
            let sources = sources.into_iter().filter(|source| !source.is_null());
            marks.extend(sources.map(|source| (Escalation::HostPath, object::text(source, &["path"]).to_owned())));
        }
        "PriorityClass" if object::at(object, &["globalDefault"]) == &Value::Bool(true) => {
            marks.insert((Escalation::Priority, object::at(object, &["value"]).to_string()));
        }
        "Service" => {
            let addresses = object::list(object, &["spec", "externalIPs"]);
            marks.extend(addresses.iter().map(|address| (Escalation::ExternalAddresses, address.to_string())));
        }
        "Namespace" if object::label(object, "pod-security.kubernetes.io/enforce") == Some("privileged") => {
            marks.insert((Escalation::Unconfined, "pod-security.kubernetes.io/enforce".to_owned()));
        }
        _ => {}
    }
    look_for_pods(object, &mut marks);
    marks
}

fn look_for_pods(value: &Value, marks: &mut Marks) {
    match value {
        Value::Object(fields) => {
            for (key, profile) in fields.get("annotations").and_then(Value::as_object).into_iter().flatten() {
                if key.starts_with(APP_ARMOR) && profile == "unconfined" {
                    marks.insert((Escalation::Unconfined, key.clone()));
                }
            }
            if ["containers", "initContainers"].iter().any(|list| fields.get(*list).is_some_and(Value::is_array)) {
                of_pod(value, marks);
            }
            fields.values().for_each(|field| look_for_pods(field, marks));
        }
        Value::Array(items) => items.iter().for_each(|item| look_for_pods(item, marks)),
        _ => {}
    }
}

fn of_pod(pod: &Value, marks: &mut Marks) {
    let mut mark = |escalation, detail: String| {
        marks.insert((escalation, detail));
    };
    let is_on = |value: &Value, path: &[&str]| object::at(value, path) == &Value::Bool(true);
    for field in ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| is_on(pod, &[field])) {
        mark(Escalation::HostNamespaces, field.to_owned());
    }
    let paths = object::list(pod, &["volumes"]).iter().map(|volume| object::at(volume, &["hostPath"]));
    paths
        .filter(|path| !path.is_null())
        .for_each(|path| mark(Escalation::HostPath, object::text(path, &["path"]).to_owned()));
    let containers = ["containers", "initContainers", "ephemeralContainers"];
    let containers: Vec<&Value> = containers.iter().flat_map(|list| object::list(pod, &[list])).collect();
    for container in &containers {
        let name = object::text(container, &["name"]);
        for port in object::list(container, &["ports"]) {
            if let Some(port) = object::at(port, &["hostPort"]).as_i64().filter(|port| *port != 0) {
                mark(Escalation::HostNamespaces, format!("port {port}"));
            }
        }
        for host in PROBES.iter().flat_map(|probe| {
            HANDLERS.map(|handler| object::text(container, &[&probe[..], &[handler, "host"]].concat()))
        }) {
            if !host.is_empty() {
                mark(Escalation::HostNamespaces, format!("{name} {host}"));
            }
        }
        let adds = object::list(container, &["securityContext", "capabilities", "add"]);
        for capability in adds.iter().filter_map(Value::as_str).filter(|capability| is_more(capability)) {
            mark(Escalation::Capabilities, format!("{name} {}", capability.to_ascii_uppercase()));
        }
    }
    for of in containers.iter().copied().chain([pod]) {
        let (name, context) = (object::text(of, &["name"]), object::at(of, &["securityContext"]));
        if is_on(context, &["privileged"]) || is_on(context, &["windowsOptions", "hostProcess"]) {
            mark(Escalation::Privileged, name.to_owned());
        }
        let text = |path: &[&str]| object::text(context, path);
        let sysctls = object::list(context, &["sysctls"]).iter().map(|sysctl| object::text(sysctl, &["name"]));
        let unconfined = [
            (text(&["procMount"]) == "Unmasked", "procMount"),
            (text(&["seccompProfile", "type"]) == "Unconfined", "seccomp"),
            (text(&["appArmorProfile", "type"]) == "Unconfined", "AppArmor"),
            (!SELINUX.contains(&text(&["seLinuxOptions", "type"])), text(&["seLinuxOptions", "type"])),
            (!text(&["seLinuxOptions", "user"]).is_empty(), text(&["seLinuxOptions", "user"])),
            (!text(&["seLinuxOptions", "role"]).is_empty(), text(&["seLinuxOptions", "role"])),
        ];
        let unconfined = unconfined.into_iter().filter(|(is_one, _)| *is_one).map(|(_, what)| what);
        for what in unconfined.chain(sysctls.filter(|name| !SYSCTLS.contains(name))) {
            mark(Escalation::Unconfined, format!("{name} {what}"));
        }
    }
}

/// Reports whether a capability is not permitted by the baseline.
fn is_more(capability: &str) -> bool {
    let name = capability.to_ascii_uppercase();
    !CAPABILITIES.contains(&name.strip_prefix("CAP_").unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marks(object: &Value) -> Vec<Escalation> {
        kinds(marks_of(object).iter())
    }

    fn pod(spec: &Value) -> Value {
        let mut pod = json!({ "containers": [{ "name": "rose", "image": "r" }] });
        pod.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        pod
    }

    fn container(context: &Value) -> Value {
        pod(&json!({ "containers": [{ "name": "rose" }, { "name": "thorn", "securityContext": context }] }))
    }

    #[test]
    fn privileged_pods_are_marked() {
        use Escalation as E;
        for (spec, wanted) in [
            (pod(&json!({})), &[][..]),
            (pod(&json!({ "hostNetwork": false, "volumes": [{ "emptyDir": {} }] })), &[]),
            (pod(&json!({ "hostNetwork": true })), &[E::HostNamespaces]),
            (pod(&json!({ "hostPID": true })), &[E::HostNamespaces]),
            (pod(&json!({ "hostIPC": true })), &[E::HostNamespaces]),
            (pod(&json!({ "containers": [{ "ports": [{ "hostPort": 80 }] }] })), &[E::HostNamespaces]),
            (pod(&json!({ "volumes": [{ "name": "a", "hostPath": { "path": "/" } }] })), &[E::HostPath]),
            (pod(&json!({ "initContainers": [{ "securityContext": { "privileged": true } }] })), &[E::Privileged]),
            (pod(&json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } })), &[E::Privileged]),
            (
                container(&json!({ "privileged": true, "capabilities": { "add": ["ALL"] } })),
                &[E::Privileged, E::Capabilities],
            ),
            (container(&json!({ "capabilities": { "add": ["NET_BIND_SERVICE", "cap_chown"], "drop": ["ALL"] } })), &[]),
            (container(&json!({ "capabilities": { "add": ["SYS_ADMIN"] } })), &[E::Capabilities]),
            (container(&json!({ "capabilities": { "add": ["CAP_BPF"] } })), &[E::Capabilities]),
            (container(&json!({ "procMount": "Unmasked" })), &[E::Unconfined]),
            (container(&json!({ "seccompProfile": { "type": "RuntimeDefault" }, "runAsNonRoot": true })), &[]),
            (container(&json!({ "seccompProfile": { "type": "Unconfined" } })), &[E::Unconfined]),
            (container(&json!({ "seLinuxOptions": { "type": "spc_t" } })), &[E::Unconfined]),
            (
                pod(&json!({ "securityContext": { "sysctls": [{ "name": "kernel.msgmax", "value": "1" }] } })),
                &[E::Unconfined],
            ),
        ] {
            let daemons = json!({ "kind": "DaemonSet", "spec": { "template": { "spec": spec } } });
            let custom = json!({ "kind": "Garden", "spec": { "beds": [{ "podSpec": spec }] } });
            for object in [json!({ "kind": "Pod", "spec": spec }), daemons, custom] {
                assert_eq!(marks(&object), wanted, "{object}");
            }
        }
    }

    #[test]
    fn authentication_tokens_and_host_volumes_are_marked() {
        let secret = |of: &str| json!({ "kind": "Secret", "type": of });
        assert_eq!(marks(&secret("kubernetes.io/tls")), []);
        assert_eq!(marks(&secret("kubernetes.io/service-account-token")), [Escalation::Tokens]);
        assert_eq!(marks(&secret("bootstrap.kubernetes.io/token")), [Escalation::Tokens]);
        let volume = |source: &str| json!({ "kind": "PersistentVolume", "spec": { source: { "path": "/" } } });
        assert_eq!((marks(&volume("hostPath")), marks(&volume("nfs"))), (vec![Escalation::HostPath], vec![]));
    }

    #[test]
    fn only_new_privileges_are_marked() {
        let of = |context: &Value| json!({ "kind": "DaemonSet", "spec": container(context) });
        let privileged = of(&json!({ "privileged": true }));
        let both = of(&json!({ "privileged": true, "capabilities": { "add": ["ALL"] } }));
        let marked = |change: Change, before: &Value, after: &Value, made: Option<&Value>| {
            let mut object = Object { change, before: before.clone(), after: after.clone(), ..Object::default() };
            mark(&mut object, made);
            object.escalations
        };
        assert_eq!(marked(Change::Update, &privileged, &both, None), [Escalation::Capabilities]);
        assert_eq!(marked(Change::Update, &both, &privileged, None), []);
        assert_eq!(marked(Change::Delete, &both, &Value::Null, None), []);
        assert_eq!(marked(Change::NotReached, &Value::Null, &Value::Null, Some(&privileged)), [Escalation::Privileged]);
        let csv = |name: &str, context: &Value| json!({ "spec": { "install": { "spec": { "deployments": [{ "name": name, "spec": container(context) }] } } } });
        let csvs = |new: &Value, old: Option<&Value>| {
            let mut object = Object { change: Change::Create, ..Object::default() };
            mark_csv(&mut object, new, old, &Own::default());
            object.escalations
        };
        let (old, new) = (csv("rose", &json!({ "privileged": true })), csv("rose", &json!({ "privileged": true })));
        assert_eq!(csvs(&new, Some(&old)), []);
        assert_eq!(csvs(&csv("other", &json!({ "privileged": true })), Some(&old)), [Escalation::Privileged]);
        assert_eq!(csvs(&new, None), [Escalation::Privileged]);
    }

    /// A version that is marked already must not gain privileges unnoticed.
    #[test]
    fn an_upgrade_that_adds_privileges_is_marked() {
        use Escalation as E;
        let csv = |spec: &Value| json!({ "spec": { "install": { "spec": { "deployments": [{ "name": "rose", "spec": pod(spec) }] } } } });
        let path = |path: &str| json!({ "volumes": [{ "hostPath": { "path": path } }] });
        let adds = |name: &str| json!({ "containers": [{ "name": "rose", "securityContext": { "capabilities": { "add": [name] } } }] });
        let privileged =
            |name: &str| json!({ "containers": [{ "name": name, "securityContext": { "privileged": true } }] });
        let sysctl = |name: &str| json!({ "securityContext": { "sysctls": [{ "name": name }] } });
        let port = |port: u16| json!({ "containers": [{ "name": "rose", "ports": [{ "hostPort": port }] }] });
        let probe = |host: &str| json!({ "containers": [{ "name": "rose", "livenessProbe": { "httpGet": { "host": host } } }] });
        for (old, new, mark) in [
            (path("/var/log"), path("/"), E::HostPath),
            (adds("NET_ADMIN"), adds("SYS_ADMIN"), E::Capabilities),
            (privileged("rose"), privileged("thorn"), E::Privileged),
            (sysctl("kernel.msgmax"), sysctl("vm.swappiness"), E::Unconfined),
            (port(80), port(6443), E::HostNamespaces),
            (probe(""), probe("169.254.169.254"), E::HostNamespaces),
        ] {
            let mut object = Object { change: Change::Create, ..Object::default() };
            mark_csv(&mut object, &csv(&new), Some(&csv(&old)), &Own::default());
            assert_eq!(object.escalations, [mark], "{old} to {new}");
            mark_csv(&mut object, &csv(&new), Some(&csv(&new)), &Own::default());
            assert_eq!(object.escalations, [], "{new}");
        }
        let template = |profile: &str| json!({ "spec": { "template": { "metadata": { "annotations": { format!("{APP_ARMOR}rose"): profile } } } } });
        assert_eq!(
            (marks(&template("unconfined")), marks(&template("runtime/default"))),
            (vec![E::Unconfined], vec![])
        );
        let secret = |account: &str| json!({ "kind": "Secret", "type": TOKENS[0], "metadata": { "annotations": { "kubernetes.io/service-account.name": account } } });
        let mut object =
            Object { change: Change::Update, before: secret("rose"), after: secret("admin"), ..Object::default() };
        mark(&mut object, None);
        assert_eq!(object.escalations, [E::Tokens]);
        for (object, wanted) in [
            (json!({ "kind": "PriorityClass", "globalDefault": true, "value": 9 }), &[E::Priority][..]),
            (json!({ "kind": "PriorityClass", "value": 9 }), &[]),
            (json!({ "kind": "Service", "spec": { "externalIPs": ["192.0.2.1"] } }), &[E::ExternalAddresses]),
            (
                json!({ "kind": "Namespace", "metadata": { "labels": { "pod-security.kubernetes.io/enforce": "privileged" } } }),
                &[E::Unconfined],
            ),
        ] {
            assert_eq!(marks(&object), wanted, "{object}");
        }
    }

    #[test]
    fn webhooks_for_other_resources_are_marked() {
        let webhook = |type_: &str, operations: &Value, group: &str, resource: &str| {
            json!({
                "type": type_, "generateName": "hook.example.com",
                "rules": [{ "operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource] }],
            })
        };
        let csv = |webhooks: &[Value]| {
            json!({ "spec": {
            "customresourcedefinitions": { "owned": [{ "name": "roses.example.com", "kind": "Rose", "version": "v1" }] },
            "webhookdefinitions": webhooks,
        } })
        };
        let marked = |new: &[Value], old: Option<&[Value]>, own: &Own| {
            let mut object = Object { change: Change::Create, ..Object::default() };
            mark_csv(&mut object, &csv(new), old.map(csv).as_ref(), own);
            !object.escalations.is_empty()
        };
        let (none, creating) = (Own::default(), Own::creating("example.com", "roses"));
        let all = json!(["CREATE", "UPDATE"]);
        let secrets = [webhook("MutatingAdmissionWebhook", &all, "", "secrets")];
        let roses = [webhook("ValidatingAdmissionWebhook", &all, "example.com", "roses/status")];
        let fewer = [webhook("MutatingAdmissionWebhook", &json!(["CREATE"]), "", "secrets")];
        assert!(marked(&secrets, None, &creating) && marked(&secrets, Some(&[]), &none));
        assert!(!marked(&secrets, Some(&secrets), &none), "as before");
        assert!(marked(&secrets, Some(&fewer), &none), "wider");
        assert!(!marked(&fewer, Some(&secrets), &none), "narrower");
        assert!(!marked(&roses, None, &creating), "for its own resources");
        let whole = |group| [webhook("ValidatingAdmissionWebhook", &all, group, "*/*")];
        assert!(!marked(&whole("example.com"), None, &creating), "for all resources of its own group");
        assert!(marked(&whole("apps"), None, &creating) && marked(&whole("*"), None, &creating));
        assert!(marked(&roses, None, &none), "it only claims to provide these");
        let provided = Own::providing("example.com", "roses");
        assert!(
            marked(&roses, None, &provided) && !marked(&roses, Some(&[]), &provided),
            "as the previous version did"
        );
        assert!(!marked(&[webhook("ConversionWebhook", &all, "", "secrets")], None, &none));
        assert!(marked(&[webhook("ValidatingAdmissionWebhook", &all, "*", "*")], None, &creating));
    }
}
