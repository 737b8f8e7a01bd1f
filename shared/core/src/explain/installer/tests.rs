use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::bundle::Bundle;
use crate::catalog;
use crate::explain::Cluster;
use crate::settings::Settings;
use crate::testing;
use crate::testing::{data, files};

fn gardener() -> Account {
    Account { namespace: "garden".to_owned(), name: "gardener".to_owned() }
}

fn group(targets: &[&str]) -> Value {
    let mut group = testing::operator_group("garden", "garden", &json!({"serviceAccountName": "gardener"}));
    if !targets.is_empty() {
        group["spec"]["targetNamespaces"] = json!(targets);
    }
    group
}

/// Returns a namespace with a group, and a catalog with a bundle that contains every kind of object.
fn roses() -> Cluster {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios/bundle-every-kind"));
    let load = catalog::load(&files(&folder.join("catalogs"), "main"));
    let mut cluster = Cluster { now: "2026-01-01T00:00:00Z".parse().unwrap(), ..Cluster::default() };
    cluster.catalogs.insert(("olm".to_owned(), "main".to_owned()), Arc::new(load.snapshot));
    cluster.objects.push(group(&["garden"]));
    cluster
}

fn subject(package: &str) -> Subject {
    Subject::Package { namespace: "garden".to_owned(), package: package.to_owned(), range: None }
}

/// Returns the computed permissions if the cluster also contains these objects.
fn found(cluster: &Cluster, subject: &Subject, with: &[Value]) -> Option<Vec<Value>> {
    let objects = cluster.objects.iter().chain(with).cloned().collect();
    let cluster = Cluster { objects, ..cluster.clone() };
    Explainer::new(&Settings::default(), cluster).installer(subject, &gardener()).unwrap()
}

#[test]
fn the_computed_permissions_are_sufficient_and_necessary() {
    let (cluster, subject) = (roses(), subject("rose"));
    let needed = found(&cluster, &subject, &unlimited(&gardener())).unwrap();
    let kinds: Vec<&str> = needed.iter().map(|o| object::text(o, &["kind"])).collect();
    assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]);
    // With these permissions the same objects are written, so the same permissions are computed.
    assert_eq!(found(&cluster, &subject, &needed), Some(needed.clone()));
    let mut tried = 0;
    for (at, role) in needed.iter().enumerate().filter(|(_, o)| !object::list(o, &["rules"]).is_empty()) {
        for (number, rule) in object::list(role, &["rules"]).iter().enumerate() {
            // Permissions to read and change existing objects are not needed for a first installation.
            if object::list(rule, &["verbs"]).contains(&"patch".into()) {
                continue;
            }
            let mut less = needed.clone();
            less[at]["rules"].as_array_mut().unwrap().remove(number);
            assert_eq!(found(&cluster, &subject, &less), None, "{rule} is not needed");
            tried += 1;
        }
    }
    assert!(tried > 3, "{tried}");
}

/// Returns a bundle of the data folder, and a group that it supports.
fn real(folder: &str) -> Option<(Cluster, Subject)> {
    let bundle = Bundle::read(folder, &files(&data()?, folder)).unwrap();
    let everywhere = json!({ "type": "AllNamespaces", "supported": true });
    let is_global = object::list(&bundle.csv, &["spec", "installModes"]).contains(&everywhere);
    let kinds = bundle.objects.iter().map(|o| (object::gvk(o), None)).collect();
    let cluster = Cluster {
        objects: vec![group(if is_global { &[] } else { &["garden"] })],
        kinds,
        now: "2026-01-01T00:00:00Z".parse().unwrap(),
        ..Cluster::default()
    };
    let bundle = Box::new(bundle.render().unwrap());
    Some((cluster, Subject::Bundle { namespace: "garden".to_owned(), bundle }))
}

#[test]
fn real_bundles_are_installed_with_the_computed_permissions() {
    // With webhooks, with an APIService, and with neither.
    for folder in ["bundles/metallb-operator/0.0.0", "bundles/keda/2.6.0", "bundles/etcd/0.9.4"] {
        let Some((cluster, subject)) = real(folder) else { return };
        let needed = found(&cluster, &subject, &unlimited(&gardener())).unwrap_or_else(|| panic!("{folder}"));
        assert_eq!(found(&cluster, &subject, &needed), Some(needed.clone()), "{folder}");
        assert_eq!(found(&cluster, &subject, &needed[..1]), None, "{folder}");
    }
}
