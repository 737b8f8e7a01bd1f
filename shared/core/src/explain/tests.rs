//! Plans of the scenarios, explained before they are executed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::api::object;
use crate::settings::Settings;
use crate::testing::files;
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
        let load = catalog::load(&files(&folder.join("catalogs"), name));
        cluster.catalogs.insert(("olm".to_owned(), (*name).to_owned()), Arc::new(load.snapshot));
    }
    let text = std::fs::read(folder.join("objects").join(file)).unwrap();
    cluster.objects = yaml::documents(&text).unwrap().into_iter().map(|d| d.value().unwrap()).collect();
    cluster
}

fn subscription(name: &str) -> Subject {
    Subject::Subscription { namespace: "garden".to_owned(), name: name.to_owned() }
}

fn explainer(cluster: Cluster) -> Explainer {
    Explainer::new(&Settings::default(), cluster)
}

/// Roses in three versions, and a Subscription that begins with the first and waits for approval of each.
fn roses() -> Cluster {
    cluster(&scenarios().join("upgrade-manual-steps"), &["main"], "01-subscribe-with-startingcsv.yaml")
}

#[test]
fn a_plan_to_come_and_the_same_when_it_is_there_do_the_same() {
    let explainer_before = explainer(roses());
    let to_come = explainer_before.explain(&subscription("rose")).unwrap();
    assert_eq!(to_come.verdict.result, Outcome::Safe, "{:?}", to_come.verdict);
    assert!(!to_come.plan.exists && !to_come.plan.approved);
    let [csv] = &to_come.csvs[..] else { panic!("{:?}", to_come.csvs) };
    assert_eq!((csv.from.as_deref(), csv.to.as_deref(), csv.change), (None, Some("1.0.0"), CsvChange::Install));
    assert_eq!((csv.phase.as_str(), csv.bystander, csv.dependency), ("Succeeded", false, false));
    assert_eq!(to_come.afterwards, [Next { csvs: vec!["rose.v1.1.0".to_owned()], needs_approval: true }]);
    assert_eq!(explainer_before.explain(&subscription("rose")).unwrap(), to_come);

    // Later, and with other uids, the plan is there.
    let objects: Vec<Value> = explainer_before.settled.api().iter().cloned().collect();
    let name =
        objects.iter().find(|o| object::text(o, &["kind"]) == "InstallPlan").map(object::name).unwrap().to_owned();
    let there = Cluster { objects, now: "2026-02-01T00:00:00Z".parse().unwrap(), ..roses() };
    let plan = Subject::Plan { namespace: "garden".to_owned(), name: name.clone() };
    let there = explainer(there).explain(&plan).unwrap();
    assert!(there.plan.exists && there.plan.name == name && there.plan.phase == "RequiresApproval");
    assert_eq!(there.hash, to_come.hash);
}

#[test]
fn packages_and_bundles_are_tried_out_without_a_subscription() {
    let mut bare = roses();
    bare.objects.retain(|o| object::text(o, &["kind"]) != "Subscription");
    let explainer = explainer(bare);
    let of = |range: &str| {
        let range = Some(Range::parse(range).unwrap());
        let (namespace, package) = ("garden".to_owned(), "rose".to_owned());
        explainer.explain(&Subject::Package { namespace, package, range })
    };
    assert_eq!(of("<2.0.0").unwrap().csvs[0].to.as_deref(), Some("1.1.0"));
    let error = of(">2.0.0").unwrap_err();
    assert_eq!(error.to_string(), "none of the catalogs that are known has package rose in versions >2.0.0 (olm/main)");

    let folder = "main/bundles/rose.v2.0.0";
    let files = files(&scenarios().join("upgrade-manual-steps/catalogs"), folder);
    let bundle = Box::new(crate::bundle::Bundle::read(folder, &files).unwrap().render().unwrap());
    let explanation = explainer.explain(&Subject::Bundle { namespace: "garden".to_owned(), bundle }).unwrap();
    assert_eq!((explanation.csvs[0].name.as_str(), explanation.verdict.result), ("rose.v2.0.0", Outcome::Safe));
    assert!(explainer.explain(&subscription("rose")).is_err());
}

#[test]
fn what_could_not_be_read_is_a_doubt_only_where_it_matters() {
    let unread = |resource: &str| Unread { resource: resource.to_owned(), ..Unread::default() };
    let with = |resource: &str| {
        let cluster = Cluster { unread: vec![unread(resource)], ..roses() };
        explainer(cluster).explain(&subscription("rose")).unwrap().verdict.result
    };
    assert_eq!(with("priorityclasses.scheduling.k8s.io"), Outcome::Safe);
    assert_eq!(with("deployments.apps"), Outcome::Unknown);
}

#[test]
fn secrets_are_not_told() {
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "seed", "uid": "u", "resourceVersion": "7" },
        "data": { "key": "dGhvcm5z" }, "status": {},
    });
    let told = objects::told(&secret);
    assert!(told["data"]["key"].as_str().unwrap().starts_with("(hidden, sha256 "), "{told}");
    assert_eq!(told["metadata"], serde_json::json!({ "name": "seed" }));
    assert!(told.get("status").is_none());
}
