//! Releases, changes to them, and the state of their objects.

use serde_json::{Value, json};

use super::installation::installations;
use super::removal::{Extent, Inventory, Part, Removal};
use super::state::{Health, State, health, state};
use super::*;
use crate::api::crd;
use crate::testing::data;
use crate::yaml;

const IMAGE: &str = "quay.io/operator-framework/olm@sha256:0a";

/// Manifests like those of upstream OLM.
fn manifests() -> Vec<Value> {
    let deployment = |name: &str, args: Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": name, "namespace": "olm", "labels": { "app": name }, "creationTimestamp": null },
            "spec": { "template": { "spec": { "containers": [{ "name": name, "image": IMAGE, "args": args }] } } },
        })
    };
    let server = deployment("packageserver", json!(["--global-namespace", "olm"]));
    let mut objects = vec![
        deployment(
            "catalog-operator",
            json!(["-namespace", "olm", "-util-image", format!(" {IMAGE}"), "--x=quay.io/a/b"]),
        ),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "packageserver", "namespace": "olm", "labels": { "olm.version": "0.28.0" } },
            "spec": { "version": "0.28.0", "install": { "spec": { "deployments": [{ "name": "packageserver", "spec": server["spec"] }] } } },
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": { "name": "olm-operators", "namespace": "olm" }, "spec": { "targetNamespaces": ["olm"] },
        }),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": { "name": "tea", "namespace": "olm" }, "spec": { "sourceType": "grpc", "image": "quay.io/tea/market:latest" },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "olm-operator-binding-olm" },
            "subjects": [{ "kind": "ServiceAccount", "name": "olm", "namespace": "olm" }],
        }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "olm", "namespace": "olm" } }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "olm" } }),
    ];
    objects.extend(crd::all());
    objects
}

fn release() -> Release {
    upstream(manifests(), None, false).unwrap()
}

#[test]
fn a_release_is_sorted_labelled_and_has_a_version() {
    let release = release();
    assert_eq!((release.version.as_str(), release.namespace.as_str()), ("v0.28.0", "olm"));
    let stages: Vec<Stage> = release.objects.iter().map(stage).collect();
    assert!(stages.is_sorted(), "{stages:?}");
    assert_eq!((stages.first(), stages.last()), (Some(&Stage::Definitions), Some(&Stage::Workloads)));
    for object in &release.objects {
        assert_eq!(object::label(object, RELEASE), Some("v0.28.0"), "{object}");
        assert!(object["metadata"].get("creationTimestamp").is_none(), "{object}");
    }
    let crds = upstream(manifests(), Some("0.28.0"), true).unwrap();
    assert_eq!(crds.objects.len(), crd::all().len() + 1, "and the namespace");
}

#[test]
fn manifests_that_are_no_release_are_refused_with_a_hint() {
    let of = |objects: Vec<Value>, version| {
        let error = upstream(objects, version, false).unwrap_err();
        assert!(!error.hint.is_empty());
        error.message
    };
    assert_eq!(of(Vec::new(), None), "the manifests lack OLM's CustomResourceDefinitions");
    assert_eq!(of(crd::all(), None), "the manifests lack the Deployments of OLM");
    assert_eq!(of(manifests(), Some("v0.29.0")), "the manifests are of version v0.28.0, not v0.29.0");
    let mut objects = manifests();
    objects.retain(|object| object::kind(object) != "ClusterServiceVersion");
    assert_eq!(of(objects, None), "the manifests do not contain their version");
    assert_eq!(upstream(crd::all(), None, true).unwrap_err().message, "the manifests do not contain their version");
}

#[test]
fn a_release_moves_to_another_namespace() {
    let changes = Changes { namespace: Some("tea".to_owned()), ..Changes::default() };
    let release = release().with(&changes);
    let text = serde_json::to_string(&release.objects[crd::all().len()..]).unwrap();
    assert!(!text.contains("\"namespace\":\"olm\""), "{text}");
    assert_eq!(text.matches("\"namespace\":\"tea\"").count(), 6, "{text}");
    for moved in ["[\"-namespace\",\"tea\"", "[\"--global-namespace\",\"tea\"]", "\"targetNamespaces\":[\"tea\"]"] {
        assert!(text.contains(moved), "{moved}: {text}");
    }
    assert!(release.stage(Stage::Namespaces).all(|namespace| object::name(namespace) == "tea"));
}

#[test]
fn images_are_replaced_and_pulled_with_secrets() {
    let mirrors = vec!["quay.io=registry.example.com/quay".parse().unwrap(), "quay.i=wrong".parse().unwrap()];
    let changes = Changes { mirrors, pull_secrets: vec!["pull".to_owned()], ..Changes::default() };
    let text = serde_json::to_string(&release().with(&changes).objects).unwrap();
    assert!(!text.contains("\"quay.io") && !text.contains("wrong"), "{text}");
    assert_eq!(text.matches("registry.example.com/quay/operator-framework/olm@sha256:0a").count(), 3, "{text}");
    assert!(text.contains("--x=registry.example.com/quay/a/b") && text.contains("quay/tea/market:latest"), "{text}");
    assert_eq!(text.matches("\"imagePullSecrets\":[{\"name\":\"pull\"}]").count(), 3, "{text}");
    assert!(text.contains("\"secrets\":[\"pull\"]"), "{text}");

    let changes = Changes { image: Some("example.com/olm:1".to_owned()), ..Changes::default() };
    let text = serde_json::to_string(&release().with(&changes).objects).unwrap();
    assert_eq!((text.matches("example.com/olm:1").count(), text.contains(IMAGE)), (3, false), "{text}");
    assert!("quay.io".parse::<Mirror>().is_err() && "=a".parse::<Mirror>().is_err());
}

#[test]
fn the_own_release_keeps_the_namespace_of_the_lease() {
    let changes = Changes { namespace: Some("tea".to_owned()), ..Changes::default() };
    let release = own("0.1.0", Some("example.com/run:1")).with(&changes);
    let namespaces: Vec<&str> = release.stage(Stage::Namespaces).map(object::name).collect();
    assert_eq!(namespaces, ["tea", "operators", "olm"]);
    let deployment = release.stage(Stage::Workloads).next().unwrap();
    assert_eq!(object::namespace(deployment), "tea");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["image"], &container["args"][1]), (&json!("example.com/run:1"), &json!("tea")));
    // The pod states its address, whose port it exposes, and users may read what it serves.
    let words: Vec<&str> = container["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let port = container["ports"].as_array().unwrap().iter().find(|port| port["name"] == "packages").unwrap();
    let address = format!("$(POD_IP):{}", port["containerPort"]);
    assert!(words.ends_with(&["--packages", "--packages-address", &address]), "{words:?}");
    assert_eq!(container["env"][1]["name"], "POD_IP");
    assert!(release.creates_packages_api());
    let view = release.objects.iter().find(|object| object::name(object) == "aggregate-olm-view").unwrap();
    assert_eq!(view["rules"][1]["resources"], json!(["packagemanifests", "packagemanifests/icon"]));
    // Also without controllers in the cluster: those outside of it need the Lease.
    let definitions = own("0.1.0", None);
    assert!(!definitions.creates_packages_api());
    assert!(definitions.objects.iter().all(|object| stage(object) <= Stage::Namespaces));
    assert_eq!(definitions.stage(Stage::Namespaces).map(object::name).collect::<Vec<_>>(), ["olm"]);
}

#[test]
fn the_state_of_an_object_is_compared_with_its_manifest() {
    let desired = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "a", "labels": { RELEASE: "v2" } },
        "spec": { "list": [{ "name": "a", "env": [{ "name": "E", "value": "" }], "none": null, "empty": {} }] },
    });
    let mut actual = desired.clone();
    actual["metadata"]["uid"] = "1".into();
    actual["metadata"]["labels"][RELEASE] = "v1".into();
    actual["spec"]["list"][0] = json!({ "name": "a", "env": [{ "name": "E" }], "default": 1 });
    assert_eq!(state(Some(&desired), Some(&actual)), (State::Present, String::new()));
    actual["spec"]["list"][0]["name"] = "b".into();
    assert_eq!(
        state(Some(&desired), Some(&actual)),
        (State::Changed, "spec.list[0].name differs from the manifest".to_owned())
    );
    assert_eq!(state(None, Some(&actual)).0, State::Present);
    assert_eq!(state(Some(&desired), None).0, State::Absent);
    actual["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    actual["metadata"]["finalizers"] = json!(["tea.example.com/keep"]);
    assert_eq!(state(None, Some(&actual)), (State::Deleting, "it has the finalizers tea.example.com/keep".to_owned()));
}

#[test]
fn health_is_read_from_the_status() {
    let deployment = |generation: u32, replicas: u32, updated: u32, available: u32, conditions: Value| {
        json!({
            "kind": "Deployment", "metadata": { "generation": generation }, "spec": { "replicas": replicas },
            "status": { "observedGeneration": 1, "updatedReplicas": updated, "availableReplicas": available, "conditions": conditions },
        })
    };
    let available = json!([{ "type": "Available", "status": "True" }]);
    let stuck =
        json!([{ "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "late" }]);
    let waiting = |why: &str| Health::Waiting(why.to_owned());
    for (object, expected) in [
        (deployment(1, 1, 1, 1, available.clone()), Health::Healthy),
        (deployment(2, 1, 1, 1, available.clone()), waiting("the rollout has not started")),
        (deployment(1, 0, 0, 0, available.clone()), waiting("it is scaled to zero")),
        (deployment(1, 2, 1, 2, available), waiting("1 of 2 replicas are available")),
        (deployment(1, 1, 1, 0, stuck), Health::Failed("ProgressDeadlineExceeded: late".to_owned())),
        (json!({ "kind": "ClusterServiceVersion" }), waiting("no controller has processed it")),
        (json!({ "kind": "ClusterServiceVersion", "status": { "phase": "Succeeded" } }), Health::Healthy),
        (
            json!({ "kind": "ClusterServiceVersion", "status": { "phase": "Failed", "reason": "NoOperatorGroup", "message": "m" } }),
            Health::Failed("NoOperatorGroup: m".to_owned()),
        ),
        (
            json!({ "kind": "ClusterServiceVersion", "status": { "phase": "Failed", "reason": "InstallCheckFailed", "message": "m" } }),
            waiting("Failed: InstallCheckFailed: m"),
        ),
        (json!({ "kind": "APIService" }), waiting("it is not available yet")),
        (
            json!({ "kind": "CatalogSource", "status": { "connectionState": { "lastObservedState": "READY" } } }),
            Health::Healthy,
        ),
        (
            json!({ "kind": "CatalogSource", "status": { "connectionState": { "lastObservedState": "TRANSIENT_FAILURE" } } }),
            waiting("TRANSIENT_FAILURE"),
        ),
        (json!({ "kind": "ConfigMap" }), Health::Healthy),
    ] {
        assert_eq!(health(&object), expected, "{object}");
    }
}

#[test]
fn installations_are_recognized() {
    let release = release();
    let deployments: Vec<Value> = release.stage(Stage::Workloads).cloned().collect();
    let csvs: Vec<Value> = release.stage(Stage::Resources).cloned().collect();
    let found = installations(&deployments, &csvs);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].describe(), "upstream OLM v0.28.0 in namespace olm");
    assert_eq!(found[0].controllers, ["catalog-operator"]);
    // Without the controllers, the ClusterServiceVersion remains.
    assert_eq!(installations(&[], &csvs)[0].controllers, [""; 0]);
    let own = own("0.1.0", Some("image"));
    let both: Vec<Value> = own.stage(Stage::Workloads).cloned().chain(deployments).collect();
    let names: Vec<String> = installations(&both, &[]).iter().map(installation::Installation::describe).collect();
    assert_eq!(names, ["kubectl-olm v0.1.0 in namespace olm", "upstream OLM v0.28.0 in namespace olm"]);
}

#[test]
fn a_published_release_is_read() {
    let Some(folder) = data() else { return };
    let mut objects = Vec::new();
    for file in ["crds.yaml", "olm.yaml"] {
        let bytes = std::fs::read(folder.join("plain/olm").join(file)).unwrap();
        for document in yaml::documents(&bytes).unwrap() {
            objects.extend(Some(document.value().unwrap()).filter(Value::is_object));
        }
    }
    let changes = Changes { namespace: Some("tea".to_owned()), ..Changes::default() };
    let release = upstream(objects, None, false).unwrap().with(&changes);
    assert_eq!((release.version.as_str(), release.namespace.as_str()), ("v0.18.3", "tea"));
    // CRDs have a category of that name.
    let others: Vec<&Value> = release.objects.iter().filter(|object| stage(object) > Stage::Definitions).collect();
    let text = serde_json::to_string(&others).unwrap();
    assert!(others.len() > 10 && !text.contains("\"namespace\":\"olm\"") && !text.contains("[\"olm\"]"), "{text}");
}

/// The objects of the release, an operator of a user, and a copy of its ClusterServiceVersion.
fn inventory() -> Inventory {
    let release = release();
    let csv = |namespace: &str, labels: Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": { "name": "rose.v1", "namespace": namespace, "labels": labels }, "spec": {}, "status": {},
        })
    };
    let of = |kinds: &[&str]| -> Vec<Value> {
        release.objects.iter().filter(|object| kinds.contains(&object::kind(object))).cloned().collect()
    };
    let mut resources: Vec<Value> = release.stage(Stage::Resources).cloned().collect();
    resources.extend([csv("garden", json!({})), csv("olm", json!({ "olm.copiedFrom": "garden" }))]);
    let namespace = |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let role = |name: &str, labels: Value| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name, "labels": labels } });
    let mut access = of(&["ClusterRoleBinding"]);
    access.extend([
        role("tea", json!({ "olm.owner": "packageserver" })),
        role("aggregate-olm-view", json!({})),
        role("mine", json!({})),
    ]);
    let workloads = of(&["Deployment"]);
    let claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data", "namespace": "operators" } });
    Inventory {
        installations: installations(&workloads, &resources),
        resources,
        crds: of(&["CustomResourceDefinition"]),
        access,
        namespaces: ["olm", "operators", "garden"].map(namespace).to_vec(),
        api: Some(
            json!({ "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": PACKAGES_API } }),
        ),
        serving: vec![
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kubectl-olm-packages", "namespace": "olm" } }),
        ],
        workloads: workloads.into_iter().chain([claim]).collect(),
    }
}

#[test]
fn a_removal_is_ordered_and_spares_what_users_have() {
    let inventory = inventory();
    let names = |removal: &Removal, part: Part| -> Vec<String> {
        removal.part(part).map(|target| target.name.clone()).collect()
    };
    let removal = Removal::new(&inventory, Extent { user_objects: false, keep_crds: false });
    assert!(removal.deleted.iter().map(|(part, _)| *part).is_sorted());
    assert_eq!(removal.users.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["rose.v1"]);
    assert_eq!(names(&removal, Part::Versions), ["packageserver"]);
    assert_eq!(names(&removal, Part::Controllers), ["catalog-operator"]);
    assert_eq!(names(&removal, Part::Apis), [PACKAGES_API, "kubectl-olm-packages"]);
    assert_eq!(names(&removal, Part::Access), ["olm-operator-binding-olm", "tea", "aggregate-olm-view"]);
    assert_eq!(names(&removal, Part::Namespaces), ["olm"]);
    assert_eq!(
        (names(&removal, Part::Definitions).len(), removal.kept[0].1.as_str()),
        (8, "it contains persistentvolumeclaim/data")
    );

    let all = Removal::new(&inventory, Extent { user_objects: true, keep_crds: false });
    assert_eq!(names(&all, Part::Versions), ["packageserver", "rose.v1"]);

    let controllers = Removal::new(&inventory, Extent { user_objects: false, keep_crds: true });
    assert_eq!((controllers.users.len(), controllers.kept.len()), (0, 0));
    assert_eq!(names(&controllers, Part::Versions), ["packageserver"]);
    for part in [Part::Resources, Part::Namespaces, Part::Definitions] {
        assert_eq!(names(&controllers, part), [""; 0]);
    }

    // Nothing is planned for a cluster without OLM.
    let empty = Inventory { namespaces: vec![inventory.namespaces[2].clone()], ..Inventory::default() };
    assert_eq!(Removal::new(&empty, Extent { user_objects: true, keep_crds: false }), Removal::default());
}
