//! Installation from catalogs in ConfigMaps.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::tenancy::{CLUSTER, reference};
use crate::api::object;
use crate::bundle::{Bundle, File};
use crate::catalog::ephemeral::{Ephemeral, Place};
use crate::testing;

const NAME: &str = "lilies.z.io";

fn definition(version: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": NAME },
        "spec": {
            "group": "z.io", "scope": "Namespaced",
            "names": { "kind": "Lily", "listKind": "LilyList", "plural": "lilies", "singular": "lily" },
            "versions": [{
                "name": version, "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

fn csv(version: &str, replaces: &str, owned: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": format!("lily.v{version}") },
        "spec": {
            "displayName": "Lily", "version": version, "replaces": replaces,
            "installModes": testing::install_modes(&["AllNamespaces"]),
            "customresourcedefinitions": { "owned": [{ "name": NAME, "version": owned, "kind": "Lily" }] },
            "install": { "strategy": "deployment", "spec": { "deployments": [] } },
        },
    })
}

/// Both bundles contain a different definition of the same name: the second would lose a version in which objects may be
/// stored.
#[test]
fn an_upgrade_that_would_lose_data_is_refused() {
    let mut simulation = CLUSTER.clone();
    let catalog = json!({
        "clusterServiceVersions": json!([csv("1.0.0", "", "v1alpha1"), csv("2.0.0", "lily.v1.0.0", "v1")]).to_string(),
        "customResourceDefinitions": json!([definition("v1alpha1"), definition("v1")]).to_string(),
        "packages": json!([{ "packageName": "lily", "channels": [{ "name": "stable", "currentCSV": "lily.v2.0.0" }] }]).to_string(),
    });
    for object in [
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "lilies", "namespace": "a" }, "data": catalog }),
        testing::catalog_source("a", "lilies", &json!({ "sourceType": "internal", "configMap": "lilies" })),
        testing::operator_group("a", "g", &Value::Null),
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": { "name": "lily", "namespace": "a" },
            "spec": {
                "name": "lily", "channel": "stable", "source": "lilies", "sourceNamespace": "a", "startingCSV": "lily.v1.0.0",
            },
        }),
    ] {
        simulation.apply(object).unwrap();
    }
    assert!(simulation.settle(SignedDuration::from_mins(5)));
    let phases: Vec<(String, String)> = simulation
        .api()
        .list("operators.coreos.com", "InstallPlan", Some("a"))
        .map(|plan| {
            let text = |path: &[&str]| object::text(plan, path).to_owned();
            (text(&["status", "phase"]), text(&["status", "message"]))
        })
        .collect();
    let [complete, failed] = &phases[..] else { panic!("{phases:?}") };
    let (complete, failed) = if complete.0 == "Complete" { (complete, failed) } else { (failed, complete) };
    assert_eq!((complete.0.as_str(), failed.0.as_str()), ("Complete", "Failed"));
    assert!(failed.1.contains("risk of data loss"), "{}", failed.1);
    let mut target = reference("CustomResourceDefinition", "", NAME);
    target.gvk = object::Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    assert_eq!(simulation.api().get(&target).unwrap()["spec"]["versions"][0]["name"], "v1alpha1");
}

/// The CatalogSource names other ConfigMaps after a change, so that every reader has the catalog before or after it.
#[test]
fn an_ephemeral_catalog_installs_and_upgrades() {
    let bundle = |version: &str| {
        let mut csv = csv(version, "", "v1");
        csv["metadata"]["name"] = format!("lily.v{version}").into();
        let annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: lily}\n";
        let files = [
            File::new("lily/manifests/csv.yaml", csv.to_string().into_bytes()),
            File::new("lily/manifests/crd.yaml", definition("v1").to_string().into_bytes()),
            File::new("lily/metadata/annotations.yaml", annotations.as_bytes()),
        ];
        Bundle::read("lily", &files).unwrap().render().unwrap()
    };
    let mut simulation = CLUSTER.clone();
    let first = Ephemeral::new(Place { namespace: "a", name: None, channel: None }, &bundle("1.0.0")).unwrap();
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": "lily", "namespace": "a" },
        "spec": { "name": "lily", "source": first.name(), "sourceNamespace": "a" },
    });
    let mut publish = |catalog: &Ephemeral, others: Vec<Value>| {
        for object in catalog.config_maps().into_iter().chain([catalog.catalog_source(None)]).chain(others) {
            simulation.apply(object).unwrap();
        }
        assert!(simulation.settle(SignedDuration::from_mins(5)));
        let installed = simulation.api().get(&reference("Subscription", "a", "lily")).unwrap();
        object::text(installed, &["status", "installedCSV"]).to_owned()
    };
    let objects = vec![testing::operator_group("a", "g", &Value::Null), subscription];
    assert_eq!(publish(&first, objects), "lily.v1.0.0");
    let second = Ephemeral::upgraded(("a", first.name()), first.blobs(), &bundle("1.1.0"), "lily.v1.0.0").unwrap();
    assert_eq!(publish(&second, Vec::new()), "lily.v1.1.0");
}
