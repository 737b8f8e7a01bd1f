//! What a removal deletes and keeps.

use serde_json::{Value, json};

use super::{RECORD, Removal, Request, plan};
use crate::world::{Reader, World};

fn csv(namespace: &str, name: &str, owned: &[&str], required: &[&str]) -> Value {
    let crds = |names: &[&str]| {
        names.iter().map(|name| json!({ "name": name, "kind": "Rose", "version": "v1" })).collect::<Vec<_>>()
    };
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "customresourcedefinitions": { "owned": crds(owned), "required": crds(required) } },
    })
}

fn subscription(name: &str, package: &str, installed: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "namespace": "garden", "name": name },
        "spec": { "name": package, "channel": "stable", "source": "market", "sourceNamespace": "olm" },
        "status": { "installedCSV": installed, "currentCSV": installed },
    })
}

fn crd(name: &str, webhook: Option<&str>) -> Value {
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name }, "spec": {},
    });
    if let Some(namespace) = webhook {
        crd["spec"]["conversion"] =
            json!({ "strategy": "Webhook", "webhook": { "clientConfig": { "service": { "namespace": namespace } } } });
    }
    crd
}

fn world(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new();
    for object in objects {
        world.apply(object);
    }
    world
}

fn removal(world: &World, name: &str, delete_crds: bool, knows_all: bool) -> Removal {
    plan(&Reader::new(world), Request { namespace: "garden", name, delete_crds, knows_all })
}

/// Returns each definition with the reason why it is retained.
fn fates(removal: &Removal) -> Vec<String> {
    let fate = |crd: &super::OwnedCrd| match &crd.kept {
        Some(why) => format!("{} kept: {why}", crd.name),
        None => format!("{} deleted", crd.name),
    };
    removal.crds.iter().map(fate).collect()
}

#[test]
fn required_shared_and_unread_definitions_are_kept() {
    let world = world([
        subscription("rose", "rose", "rose.v1"),
        csv("garden", "rose.v1", &["roses", "tulips", "ivies", "oaks"], &["soils"]),
        csv("park", "rose.v1", &["tulips"], &[]),
        csv("park", "bee.v1", &[], &["ivies"]),
        crd("roses", None),
        crd("tulips", None),
        crd("soils", None),
    ]);
    assert_eq!(
        fates(&removal(&world, "rose", true, true)),
        [
            "ivies kept: park/bee.v1 requires it",
            "oaks deleted",
            "roses deleted",
            "tulips kept: park/rose.v1 also owns it",
        ]
    );
    let without_flag = fates(&removal(&world, "rose", false, true));
    assert_eq!(without_flag[2], "roses kept: it is deleted only with --delete-crds");
    let unread = fates(&removal(&world, "rose", true, false));
    assert_eq!(unread[2], "roses kept: it is unknown whether operators of other namespaces need it");
    assert_eq!(removal(&world, "rose", true, true).dependents, [""; 0], "it does not watch namespace park");
}

#[test]
fn dependents_are_in_watched_namespaces_without_another_provider() {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": { "namespace": "garden", "name": "all" },
        "spec": {},
    });
    let world = world([
        group,
        csv("garden", "rose.v1", &["roses"], &[]),
        csv("park", "bee.v1", &[], &["roses"]),
        csv("field", "bee.v1", &[], &["roses"]),
        csv("field", "rose.v1", &["roses"], &[]),
    ]);
    assert_eq!(removal(&world, "rose.v1", false, true).dependents, ["park/bee.v1"]);
}

#[test]
fn an_operator_is_found_by_subscription_package_csv_and_label() {
    let mut labelled = csv("garden", "rose.v1", &["roses"], &[]);
    labelled["metadata"]["labels"] = json!({ "operators.coreos.com/rose.garden": "" });
    let mut newer = csv("garden", "rose.v2", &["roses"], &[]);
    newer["spec"]["replaces"] = "rose.v1".into();
    let objects =
        [subscription("my-rose", "rose", "rose.v2"), labelled.clone(), newer, csv("garden", "ivy.v1", &[], &[])];
    let all = world(objects);
    for name in ["my-rose", "rose", "rose.v2"] {
        let removal = removal(&all, name, false, true);
        let names: Vec<&str> = removal.csvs.iter().map(|csv| csv.name.as_str()).collect();
        assert_eq!(names, ["rose.v1", "rose.v2"], "{name}");
    }
    let mut upgraded = csv("garden", "rose.v2", &[], &[]);
    upgraded["spec"]["replaces"] = "rose.v1".into();
    let replaced = removal(&world([subscription("rose", "rose", "rose.v2"), upgraded]), "rose", false, true).replaced;
    assert_eq!(replaced.iter().map(|csv| csv.name.as_str()).collect::<Vec<_>>(), ["rose.v1"]);
    // An interrupted removal: the Subscription is deleted.
    let rest = world([labelled]);
    assert_eq!(removal(&rest, "rose", false, true).csvs.len(), 1);
    let mut left = crd("roses", None);
    left["metadata"]["labels"] = json!({ "operators.coreos.com/rose.garden": "" });
    let rest = world([left]);
    assert_eq!(fates(&removal(&rest, "rose", true, true)), ["roses deleted"]);
    assert!(removal(&rest, "rose", false, true).is_empty());
}

#[test]
fn an_interrupted_removal_is_found_by_its_record() {
    let mut labelled = crd("roses", Some("garden"));
    labelled["metadata"]["labels"] = json!({ "operators.coreos.com/rose.garden": "" });
    let begun = removal(
        &world([
            subscription("my-rose", "rose", "rose.v2"),
            csv("garden", "rose.v2", &["roses"], &[]),
            labelled.clone(),
        ]),
        "my-rose",
        false,
        true,
    );
    assert_eq!(begun.operator().as_deref(), Some("rose.garden"));
    let record = begun.record("my-rose");
    let operator = |record: &super::Record| {
        json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "Operator",
            "metadata": { "name": "rose.garden", "annotations": { super::RECORD: serde_json::to_string(record).unwrap() } },
        })
    };
    // Subscription and ClusterServiceVersion are deleted.
    let rest = world([operator(&record), labelled.clone()]);
    for name in ["my-rose", "rose", "rose.v2"] {
        // A definition that is deleted needs no webhook that no longer responds, either.
        assert!(removal(&rest, name, true, true).crds[0].loses_conversion, "{name}");
        let removal = removal(&rest, name, false, true);
        assert!(!removal.is_empty(), "{name}");
        assert_eq!(removal.replaced.iter().map(|csv| csv.name.as_str()).collect::<Vec<_>>(), ["rose.v2"], "{name}");
        assert!(removal.crds[0].loses_conversion, "{name}");
        assert_eq!(removal.record(name).csvs, record.csvs, "{name}");
    }
    assert!(removal(&rest, "tulip", false, true).is_empty());
    // Without a record, a conversion that fails is still found by the label.
    assert!(!removal(&world([labelled]), "rose", false, true).is_empty());
    // Only the ClusterServiceVersion is left: others of the namespace do not belong to it.
    let rest = world([operator(&record), csv("garden", "rose.v2", &["roses"], &[]), csv("garden", "ivy.v1", &[], &[])]);
    let found = removal(&rest, "my-rose", false, true);
    assert_eq!(found.csvs.iter().map(|csv| csv.name.as_str()).collect::<Vec<_>>(), ["rose.v2"]);
    assert_eq!(found.replaced, []);
    // A record that another program wrote is ignored.
    let mut broken = operator(&record);
    broken["metadata"]["annotations"][super::RECORD] = "{".into();
    assert!(removal(&world([broken]), "my-rose", false, true).is_empty());
}

#[test]
fn dependencies_conversion_webhooks_and_the_group_are_found() {
    let mut group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "namespace": "garden", "name": "rose", "labels": { "kubectl-olm/compiled-by": "kubectl-olm" } },
        "spec": {},
    });
    let objects = || {
        vec![
            subscription("rose", "rose", "rose.v1"),
            subscription("soil-stable-market-olm", "soil", "soil.v1"),
            csv("garden", "rose.v1", &["roses"], &["soils"]),
            csv("garden", "soil.v1", &["soils"], &[]),
            crd("roses", Some("garden")),
            crd("soils", Some("park")),
        ]
    };
    let found = removal(&world(objects().into_iter().chain([group.clone()])), "rose", false, true);
    assert_eq!(found.dependencies, ["soil-stable-market-olm"]);
    assert!(found.crds[0].loses_conversion);
    assert_eq!(found.group, None, "the dependency is a member, too");
    let alone = |group: &Value| {
        let all = objects().into_iter().filter(|object| !object["metadata"]["name"].to_string().contains("soil"));
        removal(&world(all.chain([group.clone()])), "rose", false, true).group.map(|group| group.name)
    };
    assert_eq!(alone(&group), Some("rose".to_owned()));
    let waits = objects().into_iter().filter(|object| object["metadata"]["name"] != "soil.v1");
    let waits = removal(&world(waits.chain([group.clone()])), "rose", false, true);
    assert_eq!(waits.group, None, "another Subscription waits for its ClusterServiceVersion");
    group["metadata"]["labels"] = json!({});
    assert_eq!(alone(&group), None, "users manage it");
}

#[test]
fn permissions_of_manifests_are_deleted_if_an_install_plan_created_them() {
    let role = |name: &str, created: &str, labels: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": name, "uid": format!("uid-{name}"), "creationTimestamp": created, "labels": labels },
        })
    };
    let step = |csv: &str, name: &str, status: &str| {
        json!({ "resolving": csv, "status": status, "resource": {
            "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": name } })
    };
    let plan = |steps: Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": { "namespace": "garden", "name": "install-1", "creationTimestamp": "2026-01-02T00:00:00Z" },
            "status": { "plan": steps },
        })
    };
    let (before, after) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:09Z");
    let objects = [
        subscription("my-rose", "rose", "rose.v2"),
        csv("garden", "rose.v2", &[], &[]),
        plan(json!([
            step("rose.v2", "created", "Created"),
            step("rose.v2", "older", "Created"),
            step("rose.v2", "present", "Present"),
            step("rose.v2", "shared", "Created"),
            step("rose.v2", "owned", "Created"),
            step("rose.v2", "missing", "Created"),
            step("rose.v2", "updated", "Created"),
            step("rose.v2", "updated-by-others", "Created"),
            step("ivy.v1", "shared", "Present"),
            step("ivy.v1", "other", "Created"),
        ])),
        role("created", after, json!({})),
        role("older", before, json!({})),
        role("present", after, json!({})),
        role("shared", after, json!({})),
        role("other", after, json!({})),
        role("owned", after, json!({ "olm.owner": "rose.v2", "olm.owner.namespace": "garden" })),
        role("updated", after, json!({ "olm.owner": "rose.v2" })),
        role("updated-by-others", after, json!({ "olm.owner": "ivy.v1" })),
    ];
    let permissions = |world: &World, knows_all: bool| -> Vec<String> {
        let all = removal(world, "rose", false, knows_all).permissions;
        all.iter().map(|p| format!("{} {}", p.name, p.kept.as_deref().unwrap_or("deleted"))).collect()
    };
    let all = world(objects.clone());
    let expected = [
        "created deleted",
        "older no InstallPlan is left that created it",
        "present no InstallPlan is left that created it",
        "shared the manifests of ivy.v1 contain it, too",
        "updated deleted",
        "updated-by-others the manifests of ivy.v1 contain it, too",
    ];
    assert_eq!(permissions(&all, true), expected);
    assert!(permissions(&all, false).iter().all(|line| line.ends_with("operators of other namespaces need it")));

    // The same package in another namespace uses the same object.
    let mut other = subscription("rose", "rose", "rose.v1");
    other["metadata"]["namespace"] = "park".into();
    let both = world(objects.into_iter().chain([other]));
    assert_eq!(permissions(&both, true)[0], "created Subscription park/rose has the same package");

    // The InstallPlans are deleted with the Subscription: the record of an interrupted removal names what they created.
    let record = removal(&all, "rose", false, true).record("rose");
    let operator = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "Operator",
        "metadata": { "name": "rose.garden", "annotations": { RECORD: serde_json::to_string(&record).unwrap() } },
    });
    let mut again = role("created", after, json!({}));
    let rest = world([operator.clone(), again.clone(), role("present", after, json!({}))]);
    assert_eq!(permissions(&rest, true), ["created deleted"]);
    again["metadata"]["uid"] = "another".into();
    assert_eq!(permissions(&world([operator, again]), true), [""; 0]);
}

#[test]
fn plans_that_only_install_the_operator_are_deleted_if_another_subscription_keeps_them() {
    let with_uid = |mut subscription: Value, uid: &str, plan: &str| {
        subscription["metadata"]["uid"] = uid.into();
        subscription["status"]["installPlanRef"] = json!({ "name": plan, "namespace": "garden" });
        subscription
    };
    let plan = |name: &str, csvs: &[&str], owners: &[&str]| {
        let owners: Vec<Value> =
            owners.iter().map(|uid| json!({ "kind": "Subscription", "name": uid, "uid": uid })).collect();
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan",
            "metadata": { "namespace": "garden", "name": name, "ownerReferences": owners },
            "spec": { "clusterServiceVersionNames": csvs, "approval": "Manual", "approved": false },
        })
    };
    let world = world([
        with_uid(subscription("rose", "rose", "rose.v1"), "1", "own"),
        with_uid(subscription("bee", "bee", "bee.v1"), "2", "linked"),
        csv("garden", "rose.v1", &[], &[]),
        csv("garden", "bee.v1", &[], &[]),
        plan("own", &["rose.v1"], &["1", "2"]),
        plan("collected", &["rose.v1"], &["1"]),
        plan("both", &["rose.v1", "bee.v1"], &["1", "2"]),
        plan("linked", &["rose.v1"], &["1", "2"]),
        plan("empty", &[], &["2"]),
    ]);
    let names =
        |name: &str| removal(&world, name, false, true).plans.iter().map(|plan| plan.name.clone()).collect::<Vec<_>>();
    assert_eq!((names("rose"), names("bee")), (vec!["own".to_owned()], vec![]));
}
