//! Which objects reach out of their namespace by what they are, whatever rights they have: Pods that leave the walls between them and
//! their node, and Secrets that authenticate as another account.
//!
//! Pods are looked for by their form, in whatever kind of object: a ClusterServiceVersion, a `DaemonSet`, a custom resource. What is more
//! than an ordinary Pod is what the Pod Security Standard *baseline* of Kubernetes refuses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Change, Escalation, Object};
use crate::api::object;

/// Types of Secrets that authenticate as another account.
const TOKENS: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];

/// Capabilities that containers have anyhow, or may add.
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

/// Kernel parameters that hold for one Pod only.
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

/// What the SELinux type of a container may be.
const SELINUX: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Marks an object for what it is afterwards and was not before; `made` is what the step is to make, for objects that do not come to be.
pub(super) fn mark(told: &mut Object, made: Option<&Value>) {
    if matches!(told.change, Change::Delete | Change::Unchanged) {
        return;
    }
    let after = if told.after.is_null() { made } else { Some(&told.after) };
    let (after, before) = (after.map(of).unwrap_or_default(), of(&told.before));
    told.escalations = after.difference(&before).copied().collect();
}

/// Marks a ClusterServiceVersion for what its Deployments are and were not in the one that it replaces.
pub(super) fn mark_csv(told: &mut Object, new: &Value, old: Option<&Value>) {
    if matches!(told.change, Change::Delete | Change::Unchanged) {
        return;
    }
    let deployments = |csv: &'_ Value| object::list(csv, &["spec", "install", "spec", "deployments"]).to_vec();
    let old = old.map(deployments).unwrap_or_default();
    let before = |name: &str| -> BTreeSet<Escalation> {
        old.iter().filter(|deployment| object::text(deployment, &["name"]) == name).flat_map(of).collect()
    };
    let marks = deployments(new).into_iter().flat_map(|deployment| {
        let before = before(object::text(&deployment, &["name"]));
        of(&deployment).into_iter().filter(|mark| !before.contains(mark)).collect::<Vec<_>>()
    });
    let marks: BTreeSet<Escalation> = marks.collect();
    told.escalations = marks.into_iter().collect();
}

/// What an object is that reaches far.
fn of(object: &Value) -> BTreeSet<Escalation> {
    let mut marks = BTreeSet::new();
    let is_secret = object::text(object, &["kind"]) == "Secret";
    if is_secret && TOKENS.contains(&object::text(object, &["type"])) {
        marks.insert(Escalation::Tokens);
    }
    let is_volume = object::text(object, &["kind"]) == "PersistentVolume";
    if is_volume && ["hostPath", "local"].iter().any(|source| !object::at(object, &["spec", source]).is_null()) {
        marks.insert(Escalation::HostPath);
    }
    look_for_pods(object, &mut marks);
    marks
}

fn look_for_pods(value: &Value, marks: &mut BTreeSet<Escalation>) {
    match value {
        Value::Object(fields) => {
            if ["containers", "initContainers"].iter().any(|list| fields.get(*list).is_some_and(Value::is_array)) {
                of_pod(value, marks);
            }
            fields.values().for_each(|field| look_for_pods(field, marks));
        }
        Value::Array(items) => items.iter().for_each(|item| look_for_pods(item, marks)),
        _ => {}
    }
}

fn of_pod(pod: &Value, marks: &mut BTreeSet<Escalation>) {
    let mut mark = |is_one: bool, escalation| {
        if is_one {
            marks.insert(escalation);
        }
    };
    let is_on = |value: &Value, path: &[&str]| object::at(value, path) == &Value::Bool(true);
    mark(["hostNetwork", "hostPID", "hostIPC"].iter().any(|field| is_on(pod, &[field])), Escalation::HostNamespaces);
    let volumes = object::list(pod, &["volumes"]);
    mark(volumes.iter().any(|volume| !object::at(volume, &["hostPath"]).is_null()), Escalation::HostPath);
    let containers = ["containers", "initContainers", "ephemeralContainers"];
    let containers: Vec<&Value> = containers.iter().flat_map(|list| object::list(pod, &[list])).collect();
    for container in &containers {
        let takes_port = |port: &Value| object::at(port, &["hostPort"]).as_i64().is_some_and(|port| port != 0);
        mark(object::list(container, &["ports"]).iter().any(takes_port), Escalation::HostNamespaces);
        let adds = object::list(container, &["securityContext", "capabilities", "add"]);
        mark(adds.iter().filter_map(Value::as_str).any(is_more), Escalation::Capabilities);
    }
    for of in containers.iter().copied().chain([pod]) {
        let context = object::at(of, &["securityContext"]);
        let is_privileged = is_on(context, &["privileged"]) || is_on(context, &["windowsOptions", "hostProcess"]);
        mark(is_privileged, Escalation::Privileged);
        let text = |path: &[&str]| object::text(context, path);
        let is_unconfined = text(&["procMount"]) == "Unmasked"
            || text(&["seccompProfile", "type"]) == "Unconfined"
            || text(&["appArmorProfile", "type"]) == "Unconfined"
            || !SELINUX.contains(&text(&["seLinuxOptions", "type"]))
            || ["user", "role"].iter().any(|field| !text(&["seLinuxOptions", field]).is_empty())
            || object::list(context, &["sysctls"]).iter().any(|s| !SYSCTLS.contains(&object::text(s, &["name"])));
        mark(is_unconfined, Escalation::Unconfined);
    }
}

/// Is it a capability that an ordinary container does not get?
fn is_more(capability: &str) -> bool {
    let name = capability.to_ascii_uppercase();
    !CAPABILITIES.contains(&name.strip_prefix("CAP_").unwrap_or(&name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn marks(object: &Value) -> Vec<Escalation> {
        of(object).into_iter().collect()
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
    fn pods_that_reach_far_are_marked() {
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
    fn secrets_that_log_in_and_volumes_of_nodes_are_marked() {
        let secret = |of: &str| json!({ "kind": "Secret", "type": of });
        assert_eq!(marks(&secret("kubernetes.io/tls")), []);
        assert_eq!(marks(&secret("kubernetes.io/service-account-token")), [Escalation::Tokens]);
        assert_eq!(marks(&secret("bootstrap.kubernetes.io/token")), [Escalation::Tokens]);
        let volume = |source: &str| json!({ "kind": "PersistentVolume", "spec": { source: { "path": "/" } } });
        assert_eq!((marks(&volume("hostPath")), marks(&volume("nfs"))), (vec![Escalation::HostPath], vec![]));
    }

    #[test]
    fn only_what_is_new_is_marked() {
        let of = |context: &Value| json!({ "kind": "DaemonSet", "spec": container(context) });
        let privileged = of(&json!({ "privileged": true }));
        let both = of(&json!({ "privileged": true, "capabilities": { "add": ["ALL"] } }));
        let told = |change: Change, before: &Value, after: &Value, made: Option<&Value>| {
            let mut told = Object { change, before: before.clone(), after: after.clone(), ..Object::default() };
            mark(&mut told, made);
            told.escalations
        };
        assert_eq!(told(Change::Update, &privileged, &both, None), [Escalation::Capabilities]);
        assert_eq!(told(Change::Update, &both, &privileged, None), []);
        assert_eq!(told(Change::Delete, &both, &Value::Null, None), []);
        assert_eq!(told(Change::NotReached, &Value::Null, &Value::Null, Some(&privileged)), [Escalation::Privileged]);
        let csv = |name: &str, context: &Value| json!({ "spec": { "install": { "spec": { "deployments": [{ "name": name, "spec": container(context) }] } } } });
        let csvs = |new: &Value, old: Option<&Value>| {
            let mut told = Object { change: Change::Create, ..Object::default() };
            mark_csv(&mut told, new, old);
            told.escalations
        };
        let (old, new) = (csv("rose", &json!({ "privileged": true })), csv("rose", &json!({ "privileged": true })));
        assert_eq!(csvs(&new, Some(&old)), []);
        assert_eq!(csvs(&csv("other", &json!({ "privileged": true })), Some(&old)), [Escalation::Privileged]);
        assert_eq!(csvs(&new, None), [Escalation::Privileged]);
    }
}
