//! Deployments that existed before an install, and edits of them.

use super::*;
use crate::api::object;
use crate::plan::{Action, Verb};
use crate::sim::ApiServer;
use crate::testing;

/// Returns the actions of an operator that is about to install an existing Deployment.
fn install(deployment: Option<&Value>) -> Vec<Action> {
    let mut csv = csv("rose.v2", "", "InstallReady", "AllRequirementsMet");
    csv["spec"]["install"]["spec"]["deployments"] = json!([{
        "name": "rose",
        "spec": {
            "selector": {"matchLabels": {"app": "rose"}},
            "template": {
                "metadata": {"labels": {"app": "rose"}},
                "spec": {"containers": [{
                    "name": "manager", "image": "registry.example.com/operator:1", "ports": [{"containerPort": 8080}],
                    "livenessProbe": {"httpGet": {"path": "/", "port": 8080}},
                    "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                }], "volumes": [{"name": "config", "configMap": {"name": "rose"}}], "serviceAccountName": "rose"},
            },
        },
    }]);
    let mut world = World::new();
    for object in [&csv].into_iter().chain(deployment) {
        world.apply(object.clone());
    }
    let key = Key::new(Controller::ClusterServiceVersion, "garden", "rose.v2");
    transition::next(&Reader::new(&world), Csv::new(&csv), &key, Timestamp::UNIX_EPOCH).before
}

#[test]
fn edits_are_reverted_and_defaults_are_not_edits() {
    let [Action::Create(made)] = &install(None)[..] else { panic!() };
    let mut server = ApiServer::with_stock_objects(1, Timestamp::UNIX_EPOCH);
    let namespace = testing::namespace("garden");
    server.create(namespace, Timestamp::UNIX_EPOCH).unwrap();
    let stored = server.create(made.clone(), Timestamp::UNIX_EPOCH).unwrap();
    assert_ne!(stored["spec"], made["spec"], "the API server sets defaults");
    assert_eq!(install(Some(&stored)), []);
    let pod = json!({"template": {"spec": {"nodeSelector": {"zone": "a"}}}});
    for edit in [
        json!({"replicas": 3}),
        json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}),
        json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}}),
        json!({"template": {"metadata": {"annotations": {"kick": "1"}}}}),
        json!({"template": {"metadata": {"labels": {"mine": "yes"}}}}),
        json!({"template": {"spec": {"terminationGracePeriodSeconds": 5}}}),
        json!({"template": {"spec": {"containers": [{"name": "manager", "image": "registry.example.com/operator:2"}]}}}),
        json!({"paused": true}),
        pod,
    ] {
        let mut edited = stored.clone();
        json_patch::merge(&mut edited["spec"], &edit);
        let actions = install(Some(&edited));
        let [Action::Update(written)] = &actions[..] else { panic!("{edit}: {actions:?}") };
        assert_eq!((actions[0].verb(), &written["spec"]), (Verb::Update, &made["spec"]), "{edit}");
        assert_eq!(object::uid(written), object::uid(&stored));
    }
}
