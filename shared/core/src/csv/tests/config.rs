//! The effect of a Subscription's `spec.config` on the pods of a Deployment.

use serde_json::{Value, json};

use crate::api::cluster_service_version::Csv;
use crate::csv::config::Config;
use crate::testing;
use crate::world::{Reader, World};

/// Returns the pod spec after the config was applied.
fn with(config: &Value, pod: &Value) -> Value {
    let mut world = World::new();
    let subscription = |name: &str, installed: &str, config: &Value| {
        testing::with_status(
            testing::subscription("garden", name, &json!({ "config": config })),
            &json!({ "installedCSV": installed }),
        )
    };
    world.apply(subscription("a", "tulip.v1", &json!({ "nodeSelector": { "of": "another" } })));
    world.apply(subscription("b", "rose.v1", config));
    let csv = json!({ "metadata": { "name": "rose.v1", "namespace": "garden" } });
    let mut spec = json!({ "template": { "spec": pod } });
    Config::find(&Reader::new(&world), Csv::new(&csv)).unwrap().inject(&mut spec);
    spec["template"]["spec"].clone()
}

#[test]
fn entries_are_appended_or_replaced_by_name() {
    let pod = json!({
        "initContainers": [{ "name": "first" }],
        "containers": [{
            "name": "a", "env": [{ "name": "X", "value": "1" }, { "name": "Y", "value": "2" }],
            "envFrom": [{ "configMapRef": { "name": "e" } }], "resources": { "limits": { "cpu": "1" } },
        }, { "name": "b" }],
        "tolerations": [{ "key": "t" }],
        "volumes": [{ "name": "v", "emptyDir": {} }],
        "nodeSelector": { "old": "" },
    });
    let env = json!({ "name": "X", "value": "9" });
    let from = json!({ "configMapRef": { "name": "e" } });
    let mount = json!({ "name": "v", "mountPath": "/v" });
    let config = json!({
        "env": [env], "envFrom": [from], "volumeMounts": [mount], "resources": {}, "nodeSelector": {},
        "volumes": [{ "name": "v", "configMap": { "name": "e" } }], "tolerations": [{ "key": "t" }, { "key": "u" }],
    });
    assert_eq!(
        with(&config, &pod),
        json!({
            "initContainers": [{ "name": "first" }],
            "containers": [
                { "name": "a", "env": [env, { "name": "Y", "value": "2" }], "envFrom": [from], "volumeMounts": [mount], "resources": {} },
                { "name": "b", "env": [env], "envFrom": [from], "volumeMounts": [mount], "resources": {} },
            ],
            "tolerations": [{ "key": "t" }, { "key": "u" }],
            "volumes": [{ "name": "v", "configMap": { "name": "e" } }],
            "nodeSelector": {},
        })
    );
    assert_eq!(with(&json!({}), &pod), pod);
}

#[test]
fn empty_affinity_removes_its_kind() {
    let (node, pods) = (json!({ "preferred": 1 }), json!({ "required": 2 }));
    let pod = json!({ "affinity": { "nodeAffinity": node, "podAntiAffinity": pods } });
    let affinity = |config: Value| with(&json!({ "affinity": config }), &pod)["affinity"].clone();
    assert_eq!(affinity(Value::Null), pod["affinity"]);
    assert_eq!(affinity(json!({})), Value::Null);
    assert_eq!(affinity(json!({ "podAntiAffinity": {} })), json!({ "nodeAffinity": node }));
    assert_eq!(affinity(json!({ "nodeAffinity": {}, "podAntiAffinity": {} })), Value::Null);
    assert_eq!(affinity(json!({ "nodeAffinity": pods })), json!({ "nodeAffinity": pods, "podAntiAffinity": pods }));
}
