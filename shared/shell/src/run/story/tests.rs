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
fn each_cause_is_said_once_and_so_is_the_only_namespace() {
    let phase = |phase: &str, message: &str| json!({ "phase": phase, "reason": "Because", "message": message });
    let csv = controller(Controller::ClusterServiceVersion, "garden", "rose.v1.0.0");
    let long = "waiting for the gardener, who is on the way and will water it, ".repeat(2);
    let mut story = Story::from(BEGAN);
    story.step(BEGAN, "plant it");
    story.tell(vec![
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
        story.to_string(),
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
61.000s  resolution of namespace garden
           deleted Service rose
"
    );
}

#[test]
fn several_namespaces_are_named() {
    let mut story = Story::from(BEGAN);
    let status = json!({ "phase": "Succeeded", "reason": "Good", "message": "it blooms" });
    for namespace in ["garden", "park"] {
        let csv = controller(Controller::ClusterServiceVersion, namespace, "rose.v1.0.0");
        story.tell(vec![happening(0, &csv, WatchEvent::Modified(rose(namespace, status.clone())))]);
    }
    assert_eq!(
        story.to_string(),
        "0.000s  ClusterServiceVersion garden/rose.v1.0.0: Succeeded (Good): it blooms\n\
         0.000s  ClusterServiceVersion park/rose.v1.0.0: Succeeded (Good): it blooms\n"
    );
}
