use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::json;

use super::*;

const BEGAN: Timestamp = Timestamp::UNIX_EPOCH;

fn happening(ms: i64, actor: &Actor, change: WatchEvent) -> Happening {
    Happening { at: BEGAN + SignedDuration::from_millis(ms), actor: actor.clone(), change }
}

fn rose(namespace: &str, status: Value) -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose.v1.0.0", "namespace": namespace }, "status": status,
    }))
}

fn core(kind: &str, namespace: &str, name: &str) -> Arc<Value> {
    Arc::new(json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": namespace } }))
}

fn controller(controller: Controller, namespace: &str, name: &str) -> Actor {
    Actor::Controller(Key::new(controller, namespace, name))
}

#[test]
fn each_cause_and_the_only_namespace_are_printed_once() {
    let phase = |phase: &str, message: &str| json!({ "phase": phase, "reason": "Because", "message": message });
    let csv = controller(Controller::ClusterServiceVersion, "garden", "rose.v1.0.0");
    let long = "waiting for the gardener, who is on the way and will water it, ".repeat(2);
    let mut change_log = ChangeLog::from(BEGAN);
    change_log.step(BEGAN, "plant it");
    change_log.record(vec![
        happening(0, &Actor::User, WatchEvent::Added(core("Namespace", "", "garden"))),
        happening(0, &Actor::User, WatchEvent::Added(rose("garden", Value::Null))),
        happening(2, &csv, WatchEvent::Modified(rose("garden", phase("Pending", "no water")))),
        happening(4, &Actor::Kubernetes, WatchEvent::Added(core("ServiceAccount", "garden", "default"))),
        happening(4, &Actor::Kubernetes, WatchEvent::Added(core("Event", "garden", "x"))),
        happening(6, &csv, WatchEvent::Modified(rose("garden", phase("Pending", "no water")))),
        happening(8, &csv, WatchEvent::Added(core("Service", "garden", "rose"))),
        happening(1010, &csv, WatchEvent::Modified(rose("garden", phase("Installing", long.trim())))),
        happening(
            61_000,
            &controller(Controller::Resolution, "", "garden"),
            WatchEvent::Deleted(core("Service", "garden", "rose")),
        ),
    ]);
    assert_eq!(
        change_log.to_string(),
        "\
Namespace garden:
0.000s  step: plant it
          created Namespace garden
          created ClusterServiceVersion rose.v1.0.0
0.002s  ClusterServiceVersion rose.v1.0.0
          Pending (Because): no water
          created Service rose
          Installing (Because): waiting for the gardener, who is on the way and will water it,
            waiting for the gardener, who is on the way and will water it,
61.000s  Resolution (namespace garden)
           deleted Service rose
"
    );
}

#[test]
fn several_namespaces_are_named() {
    let mut change_log = ChangeLog::from(BEGAN);
    let status = json!({ "phase": "Succeeded", "reason": "Good", "message": "it blooms" });
    for namespace in ["garden", "park"] {
        let csv = controller(Controller::ClusterServiceVersion, namespace, "rose.v1.0.0");
        change_log.record(vec![happening(0, &csv, WatchEvent::Modified(rose(namespace, status.clone())))]);
    }
    assert_eq!(
        change_log.to_string(),
        "0.000s  ClusterServiceVersion garden/rose.v1.0.0: Succeeded (Good): it blooms\n\
         0.000s  ClusterServiceVersion park/rose.v1.0.0: Succeeded (Good): it blooms\n"
    );
}

#[test]
fn equal_changes_of_many_objects_are_combined() {
    let copies = |name: &str| controller(Controller::CopiedCsv, "garden", name);
    let (rose, tulip) = (copies("rose.v1.0.0"), copies("tulip.v2.0.0"));
    let csv = |name: &str, namespace: &str, phase: &str| {
        Arc::new(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": name, "namespace": namespace },
            "status": if phase.is_empty() { Value::Null } else {
                json!({ "phase": phase, "reason": "Copied", "message": "it blooms in garden" })
            },
        }))
    };
    let mut change_log = ChangeLog::from(BEGAN);
    let given = (0..30).map(|n| WatchEvent::Added(core("Namespace", "", &format!("tenant-{n}"))));
    change_log.record(given.map(|added| happening(0, &Actor::User, added)).collect());
    let mut ms = 0;
    for chunk in [0..8, 8..16, 16..20] {
        for phase in ["", "Succeeded"] {
            for (actor, name) in [(&rose, "rose.v1.0.0"), (&tulip, "tulip.v2.0.0")] {
                for n in chunk.clone() {
                    let csv = csv(name, &format!("tenant-{n}"), phase);
                    let change = if phase.is_empty() { WatchEvent::Added } else { WatchEvent::Modified };
                    ms += 2;
                    change_log.record(vec![happening(ms, actor, change(csv))]);
                }
            }
        }
    }
    for n in 0..3 {
        ms += 2;
        let gone = csv("rose.v1.0.0", &format!("tenant-{n}"), "Succeeded");
        change_log.record(vec![happening(ms, &rose, WatchEvent::Deleted(gone))]);
    }
    change_log.step(BEGAN + SignedDuration::from_secs(1), "once more");
    change_log.record(vec![happening(1002, &rose, WatchEvent::Added(csv("rose.v1.0.0", "tenant-0", "")))]);
    assert_eq!(
        change_log.to_string(),
        "\
0.000s  applied from files
          created Namespace tenant-0
          created Namespace tenant-1
          created Namespace tenant-2
          created 27 more of kind Namespace
0.002s  copies of ClusterServiceVersion garden/rose.v1.0.0, until 0.136s
          created ClusterServiceVersion rose.v1.0.0 in 20 namespaces
0.018s  copies of ClusterServiceVersion garden/tulip.v2.0.0, until 0.144s
          created ClusterServiceVersion tulip.v2.0.0 in 20 namespaces
0.034s  copies of ClusterServiceVersion garden/rose.v1.0.0, until 0.152s
          ClusterServiceVersion rose.v1.0.0 in 20 namespaces: Succeeded (Copied): it blooms in
            garden
0.050s  copies of ClusterServiceVersion garden/tulip.v2.0.0, until 0.160s
          ClusterServiceVersion tulip.v2.0.0 in 20 namespaces: Succeeded (Copied): it blooms in
            garden
0.162s  copies of ClusterServiceVersion garden/rose.v1.0.0
          deleted ClusterServiceVersion tenant-0/rose.v1.0.0
          deleted ClusterServiceVersion tenant-1/rose.v1.0.0
          deleted ClusterServiceVersion tenant-2/rose.v1.0.0
1.000s  step: once more
1.002s  copies of ClusterServiceVersion garden/rose.v1.0.0
          created ClusterServiceVersion tenant-0/rose.v1.0.0
"
    );
}
