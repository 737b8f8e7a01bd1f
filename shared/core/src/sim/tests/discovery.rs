//! Discovery, and operators that require a kind regardless of who serves it.

use std::collections::BTreeMap;

use super::tenancy::{CLUSTER, LONG, reference};
use super::*;
use crate::api::object;
use crate::testing;
use crate::world::Discovery;

fn definition(version: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "pots.y.io" },
        "spec": {
            "group": "y.io", "scope": "Namespaced",
            "names": { "kind": "Pot", "listKind": "PotList", "plural": "pots", "singular": "pot" },
            "versions": [{
                "name": version, "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

#[test]
fn an_operator_follows_changes_of_native_apis() {
    let mut simulation = CLUSTER.clone();
    let apis = json!([
        { "group": "y.io", "version": "v1", "kind": "Pot" }, { "group": "apps", "version": "v1", "kind": "Deployment" },
        { "group": "", "version": "v1", "kind": "PodTemplate" },
    ]);
    let group = testing::operator_group("a", "g", &Value::Null);
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": "rose", "namespace": "a" },
        "spec": {
            "displayName": "Rose", "nativeAPIs": apis, "installModes": testing::install_modes(&["AllNamespaces"]),
            "install": { "strategy": "deployment", "spec": { "deployments": [{ "name": "rose", "spec": {
                "selector": { "matchLabels": { "app": "rose" } },
                "template": {
                    "metadata": { "labels": { "app": "rose" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
                },
            } }] } },
        },
    });
    simulation.apply(group).unwrap();
    simulation.apply(csv).unwrap();
    let ends = |simulation: &mut crate::sim::Simulation, phase: &str, reason: &str| {
        assert!(simulation.settle(LONG), "the simulation settles: no request is repeated forever");
        let csv = simulation.api().get(&reference("ClusterServiceVersion", "a", "rose")).unwrap();
        let text = |field: &str| object::text(csv, &["status", field]).to_owned();
        assert_eq!((text("phase").as_str(), text("reason").as_str()), (phase, reason));
        assert_eq!(simulation.replan(), vec![]);
    };
    ends(&mut simulation, "Pending", "RequirementsNotMet");
    simulation.apply(definition("v1")).unwrap();
    ends(&mut simulation, "Succeeded", "InstallSucceeded");
    let definition = ObjectRef {
        gvk: Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        namespace: String::new(),
        name: "pots.y.io".to_owned(),
    };
    simulation.delete(&definition).unwrap();
    ends(&mut simulation, "Pending", "RequirementsNotMet");
    assert_eq!(simulation.planner().world().discovered().count(), 3);
    simulation.delete(&reference("ClusterServiceVersion", "a", "rose")).unwrap();
    assert!(simulation.settle(LONG));
    assert_eq!(simulation.planner().world().discovered().count(), 0, "no controller reads it any more");
}

#[test]
fn discovery_lists_stored_and_unstored_kinds() {
    let mut server = server();
    let discover = |server: &ApiServer, group: &str, version: &str, kind: &str| {
        let discovery = server.discover(group, version);
        (discovery.serves(kind).ok(), discovery.is_namespaced(kind))
    };
    assert_eq!(discover(&server, "apps", "v1", "Deployment"), (Some(true), Some(true)));
    assert_eq!(discover(&server, "apps", "v9", "Deployment"), (Some(false), None));
    assert_eq!(discover(&server, "", "v1", "Namespace"), (Some(true), Some(false)));
    assert_eq!(discover(&server, "authorization.k8s.io", "v1", "SubjectAccessReview"), (Some(true), Some(false)));
    assert_eq!(discover(&server, "apps", "v1", "Scale"), (Some(true), None));
    create(&mut server, definition("v1"));
    assert_eq!(discover(&server, "y.io", "v1", "Pot"), (Some(false), None));
    settle(&mut server, now());
    assert_eq!(discover(&server, "y.io", "v1", "Pot"), (Some(true), Some(true)));
    create(
        &mut server,
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.z.io" },
            "spec": {
                "group": "z.io", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                "service": { "name": "z", "namespace": "garden" },
            },
        }),
    );
    assert_eq!(discover(&server, "z.io", "v1", "Zinnia"), (None, None));
    server.hide_version("apps", "v1", "unavailable");
    let apps = server.discover("apps", "v1");
    assert_eq!((apps.serves("Deployment"), apps.serves("Flower")), (Ok(true), Err("unavailable")));
}

#[test]
fn a_complete_list_limits_the_served_kinds_and_an_incomplete_one_leaves_them_unknown() {
    let mut server = server();
    let listed = [("apps", "v1", "Deployment"), ("metrics.k8s.io", "v1beta1", "PodMetrics")];
    let listed = listed.map(|(group, version, kind)| (Gvk::new(group, version, kind), Some(true)));
    server.serve(&BTreeMap::from(listed), true);
    assert_eq!(server.discover("", "v1"), Discovery::new(BTreeMap::new()));
    assert_eq!(server.discover("metrics.k8s.io", "v1beta1").is_namespaced("PodMetrics"), Some(true));
    assert_eq!(server.discover("apps", "v1").serves("Scale"), Ok(true));
    server.know_kinds_in_part();
    assert_eq!(server.discover("apps", "v1").serves("Deployment"), Ok(true));
    assert!(server.discover("apps", "v2").serves("Deployment").is_err());
}
