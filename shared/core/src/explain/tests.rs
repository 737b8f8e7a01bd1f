//! Plans of the scenarios, explained before they are executed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::api::object;
use crate::settings::Settings;
use crate::testing::{data, files};
use crate::{catalog, yaml};

/// The scenarios of the repository.
fn scenarios() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios"))
}

/// What a scenario has before its first step is done: its objects of that file, and the catalogs.
fn cluster(folder: &Path, catalogs: &[&str], file: &str) -> Cluster {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut cluster = Cluster { now, ..Cluster::default() };
    for name in catalogs {
        let mut all = files(&folder.join("catalogs"), name);
        // Bundles of the data folder.
        let named = all.iter().position(|file| file.path.ends_with("/bundles.txt")).map(|at| all.remove(at));
        let named = named.map(|file| String::from_utf8(file.bytes.to_vec()).unwrap()).unwrap_or_default();
        for bundle in named.lines().filter(|line| !line.starts_with('#')) {
            all.extend(files(&data().unwrap(), bundle));
        }
        let load = catalog::load(&all);
        cluster.catalogs.insert(("olm".to_owned(), (*name).to_owned()), Arc::new(load.snapshot));
    }
    let text = std::fs::read(folder.join("objects").join(file)).unwrap();
    cluster.objects = yaml::documents(&text).unwrap().into_iter().map(|d| d.value().unwrap()).collect();
    cluster
}

fn subscription(name: &str) -> Subject {
    Subject::Subscription { namespace: "garden".to_owned(), name: name.to_owned() }
}

fn explained(cluster: Cluster, subject: &Subject) -> Explanation {
    let began = std::time::Instant::now();
    let explainer = Explainer::new(&Settings::default(), cluster);
    eprintln!("copied {:?}", began.elapsed());
    let explanation = explainer.explain(subject).unwrap();
    eprintln!("explained {:?}", began.elapsed());
    explanation
}

#[test]
fn look_own() {
    let cluster = cluster(&scenarios().join("upgrade-manual-steps"), &["main"], "01-subscribe-with-startingcsv.yaml");
    let mut e = explained(cluster, &subscription("rose"));
    for o in &mut e.objects {
        o.before = Value::Null;
        o.after = Value::Null;
    }
    eprintln!("{}", serde_json::to_string_pretty(&e).unwrap());
}

#[test]
fn look() {
    for (scenario, file, name) in [
        ("real-etcd", "01-subscribe-with-startingcsv.yaml", "etcd"),
        ("real-argocd-v1beta1-crds", "01-subscribe.yaml", "argocd-operator"),
        ("real-kuadrant", "01-subscribe.yaml", "kuadrant-operator"),
    ] {
        let Some(data) = data() else { return };
        let cluster = cluster(&data.join("scenarios").join(scenario), &["main"], file);
        for o in &cluster.objects {
            eprintln!("{} {}", object::text(o, &["kind"]), object::name(o));
        }
        let mut e = explained(cluster, &subscription(name));
        for o in &mut e.objects {
            o.before = Value::Null;
            o.after = Value::Null;
        }
        eprintln!("{}", serde_json::to_string_pretty(&e).unwrap());
    }
}
