//! Tests of ephemeral catalogs.

use serde_json::{Value, json};

use super::*;
use crate::api::names::{LONGEST_LABEL, is_label};
use crate::bundle::{Bundle, File};
use crate::catalog::parts::join;

fn bundle(version: &str, text: &str) -> Rendered {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "name": format!("rose.v{version}") }, "spec": { "version": version, "description": text },
    });
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: rose\n  operators.operatorframework.io.bundle.channels.v1: stable\n";
    let files = [
        File::new("rose/manifests/csv.yaml", csv.to_string().into_bytes()),
        File::new("rose/metadata/annotations.yaml", annotations.as_bytes()),
    ];
    Bundle::read("rose", &files).unwrap().render().unwrap()
}

fn place(name: Option<&str>) -> Place<'_> {
    Place { namespace: "garden", name, channel: None }
}

/// The catalog as its ConfigMaps have it.
fn read(catalog: &Ephemeral) -> crate::catalog::Snapshot {
    join(&catalog.config_maps()).unwrap().0
}

#[test]
fn the_objects_of_a_catalog() {
    let catalog = Ephemeral::new(place(None), &bundle("1.0.0", "")).unwrap();
    let mut objects = vec![catalog.catalog_source(None)];
    objects.extend(catalog.config_maps());
    objects.extend(catalog.registry(RegistryPod { image: "registry.example.com/opm@sha256:1", sets_user: true }));
    let kinds: Vec<&str> = objects.iter().map(object::kind).collect();
    assert_eq!(kinds, ["CatalogSource", "ConfigMap", "Service", "Deployment"]);
    for object in &objects {
        assert_eq!(object["metadata"]["labels"], json!({ "kubectl-olm/run": "rose-run" }));
        assert_eq!(object["metadata"]["namespace"], "garden");
        assert_eq!(object["metadata"]["annotations"]["kubectl-olm/run-package"], "rose");
    }
    let names = catalog.config_map_names();
    assert_eq!(object::annotation(&objects[0], CONFIG_MAPS), Some(names[0].as_str()));
    assert_eq!(objects[0]["spec"]["address"], "rose-run.garden.svc:50051");
    assert_eq!((object::name(&objects[1]), &objects[1]["immutable"]), (names[0].as_str(), &true.into()));
    // The Service selects the pods, which mount every ConfigMap.
    let pod = &objects[3]["spec"]["template"];
    assert_eq!(objects[2]["spec"]["selector"], pod["metadata"]["labels"]);
    assert_eq!(pod["spec"]["volumes"][0], json!({ "name": "part-0", "configMap": { "name": names[0] } }));
    assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(pod["spec"]["securityContext"]["runAsUser"], 1001);
    let [_, on_openshift] = catalog.registry(RegistryPod { image: "opm", sets_user: false });
    assert!(on_openshift["spec"]["template"]["spec"]["securityContext"]["runAsUser"].is_null());
    let snapshot = read(&catalog);
    assert_eq!(snapshot.package("rose").unwrap().default_channel, CHANNEL);
    assert!(snapshot.bundle("rose", CHANNEL, "rose.v1.0.0").unwrap().csv_json.contains("rose.v1.0.0"));
}

#[test]
fn an_upgrade_replaces_what_is_installed_and_has_other_config_maps() {
    let first = Ephemeral::new(place(None), &bundle("1.0.0", "")).unwrap();
    let upgraded = |before: &Ephemeral, bundle: &Rendered, installed: &str| {
        Ephemeral::upgraded(("garden", "rose-run"), before.blobs(), bundle, installed)
    };
    let second = upgraded(&first, &bundle("1.1.0", "a"), "rose.v1.0.0").unwrap();
    assert_ne!(first.config_map_names(), second.config_map_names());
    let edges = |catalog: &Ephemeral| -> Vec<(String, Option<String>)> {
        read(catalog).entries().map(|entry| (entry.name.clone(), entry.replaces.clone())).collect()
    };
    let edge = |name: &str, replaces: Option<&str>| (name.to_owned(), replaces.map(str::to_owned));
    assert_eq!(edges(&second), [edge("rose.v1.0.0", None), edge("rose.v1.1.0", Some("rose.v1.0.0"))]);
    // A bundle that was not installed is replaced by another one of the same name.
    let again = upgraded(&second, &bundle("1.1.0", "b"), "rose.v1.0.0").unwrap();
    assert_eq!(edges(&again), edges(&second));
    assert!(read(&again).bundle("rose", CHANNEL, "rose.v1.1.0").unwrap().csv_json.contains("\"b\""));
    let refused = upgraded(&second, &bundle("1.1.0", "b"), "rose.v1.1.0").unwrap_err();
    assert_eq!(refused.to_string(), "rose.v1.1.0 is installed with other content");
    // Equal content has equal names: a repeated command creates nothing new.
    assert_eq!(upgraded(&first, &bundle("1.1.0", "a"), "rose.v1.0.0").unwrap(), second);
}

#[test]
fn a_bundle_that_no_install_plan_can_hold_is_refused() {
    // Letters that differ, so that gzip does not reduce them to nothing.
    let text: String = (0..200_000).map(|n: u32| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let error = Ephemeral::new(place(None), &bundle("1.0.0", &text)).unwrap_err();
    assert!(error.to_string().starts_with("the objects of rose.v1.0.0 have "), "{error}");
    // Half of it takes several megabytes of YAML on the way, and fits.
    let half = Ephemeral::new(place(None), &bundle("1.0.0", &text[..PLAN_BYTES / 2])).unwrap();
    assert!(half.config_maps().iter().all(|map| map["binaryData"][PART_KEY].as_str().unwrap().len() < 4 << 18));
}

#[test]
fn names_are_those_of_services_and_do_not_collide() {
    let long = "x".repeat(300);
    let packages = ["rose", "Rose", "rose.io", "rose-io", "rose-", "0rose", "", "-", "růže", &long, &long[..299]];
    let names: std::collections::BTreeSet<String> = packages.iter().map(|package| name(package)).collect();
    assert_eq!(names.len(), packages.len(), "{names:?}");
    for name in names {
        assert!(
            is_label(&name) && name.len() <= LONGEST_LABEL && !name.starts_with(|c: char| c.is_ascii_digit()),
            "{name}"
        );
    }
    assert_eq!(name("rose"), "rose-run");
}

#[test]
fn a_supplied_catalog_source_keeps_its_fields() {
    let catalog = Ephemeral::new(place(Some("my.roses")), &bundle("1.0.0", "")).unwrap();
    let base: Value = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "my.roses", "labels": { "team": "garden" } },
        "spec": { "displayName": "Roses", "priority": 10 },
    });
    let source = catalog.catalog_source(Some(&base));
    assert_eq!(source["metadata"]["labels"], json!({ "team": "garden", "kubectl-olm/run": "my.roses" }));
    assert_eq!(source["spec"]["displayName"], "Roses");
    assert_eq!(
        (&source["spec"]["priority"], &source["spec"]["address"]),
        (&10.into(), &"my-roses.garden.svc:50051".into())
    );
    assert_eq!(source["metadata"]["namespace"], "garden");
}
